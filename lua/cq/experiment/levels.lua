-- levels: the experiments of a plan whose stages have other grids, steps or durations: one for each level that the
-- experiment's function was given, and what is trained carried from one to another.
local is = require "cq.base.schema"
local fixed = require "cq.experiment.fixed"
local message = require "cq.base.message"
local option = require "cq.option"
local text = require "cq.base.text"
local words = require "cq.plan.words"
local nearest = require "cq.robot.transfer"
local T = require "cq.tensor"
local class = require "cq.tensor.class"

local levels = {}

local whole = words.whole_level

---The experiment's fields at a level, the argument of the user's function: calls that function. Errors: it gives no
---table.
---@param problem fun(level: table): table
---@param level table
---@return table def
function levels.define(problem, level)
  level = whole(level)
  local def = problem(level)
  if type(def) ~= "table" then
    is.fail("cq.Experiment: the function of a level must give a table of fields, as { world = ..., objective = ... }, got %s for %s",
      text.describe(def), words.of(level))
  end
  return def
end

-- Warns of a level whose cells are as large as those of coarsen = 1, so that its stages train at full size.
-- fine: the experiment of coarsen = 1, if it is there; own: that of the level.
local function tell_unused(fine, own, level)
  local dx = fine and fine.world.dx
  if not dx or whole(level).coarsen == 1 or math.abs(own.world.dx - dx) > 1e-9 * dx then return end
  message.warn("cq.Experiment: the function of a level gives cells of dx = %s for coarsen = %s as for coarsen = 1, so that its stages simulate no other grid; multiply dx, dt and spacing by level.coarsen, and divide cells by it",
    text.number(dx), words.of(level.coarsen))
end

-- A new experiment of a level by the user's function, problem; its errors name the level.
local function create(problem, level)
  local fine, out = pcall(function() return require "cq.experiment"(levels.define(problem, level)) end)
  if fine then return out end
  error(type(out) == "string" and is.with_more(out, " (level: %s)", words.of(whole(level))) or out, 0)
end

---The experiment of a level, created at the first call and kept in run.levels. Errors: a level, where the experiment
---was not made by a function.
---@param run cq.Experiment      the user's
---@param level table
---@return cq.Experiment
function levels.of(run, level)
  local key = words.of(whole(level))
  run.levels = run.levels or { [words.of(whole {})] = run }
  if not run.levels[key] then
    if not run.problem then
      is.fail("run:optimize: a stage with a level, %s, needs an experiment that is made by a function: cq.Experiment(function(level) ... end)",
        key)
    end
    run.levels[key] = create(run.problem, level)
    run.levels[key].optimizer = run.levels[key].optimizer or run.optimizer
    run.levels[key].family, run.levels[key].level = run, level
    tell_unused(run.levels[words.of(whole {})], run.levels[key], level)
  end
  return run.levels[key]
end

---The experiment of a level if it was created already, else `run`: for a look at it that must not create one.
---@param run cq.Experiment
---@param level table
---@return cq.Experiment
function levels.made(run, level) return run.levels and run.levels[words.of(whole(level))] or run end

---Was the experiment made by a function of a level?
---@param run cq.Experiment
---@return boolean
function levels.is_function(run) return (run.family or run).problem ~= nil end

---The experiment on a grid whose cell size is multiplied by a factor below 1.
---@param run cq.Experiment      of any level
---@param factor number
---@return cq.Experiment
function levels.finer(run, factor)
  local level = whole(run.level or {})
  level.coarsen = level.coarsen * factor
  return levels.of(run.family or run, level)
end

---Gives the user's experiment all fields of the experiment of a level, and forgets those of other levels. Called at the
---end of a plan, with the level of its last stage.
---@param run cq.Experiment
---@param level table
function levels.become(run, level)
  local key = words.of(whole(level))
  local own = levels.of(run, level)
  if own == run then return end
  for name, value in pairs(own) do
    if name ~= "levels" and name ~= "base_optimizer" and name ~= "family" then run[name] = value end
  end
  run.extracted, run.body, run.levels = own.extracted, own.body, { [key] = run }
  fixed.remember(run)
end

---Frees the memory that worlds of other levels keep for their next rollout.
---@param run cq.Experiment      the user's
---@param kept cq.Experiment     of the level that runs next
function levels.release(run, kept)
  for _, other in pairs(run.levels) do
    if other.world ~= kept.world then other.world.pool:trim() end
  end
end

---Have the parameters changed since the experiment was made: by training, loading or the script?
---@param run cq.Experiment
---@return boolean
function levels.is_changed(run)
  local found = T.leaves.pair(run.params, run.made_params)
  for _, leaf in ipairs(T.leaves.list(run.params)) do
    if not leaf.tensor:equal(found[leaf.tensor]) then return true end
  end
  return false
end

---Initial parameters of a further start of a multi-start plan, drawn by its seed: of a new experiment by the user's
---function, or a copy of `first` with the design's variables drawn. Errors: the experiment was not made by a function
---and has no design, so that nothing would be drawn.
---@param run cq.Experiment      the user's
---@param level table
---@param seed integer
---@param first table           parameters of the first start
---@return table params
function levels.drawn(run, level, seed, first)
  if run.problem then
    local before = option.program.seed
    option.program.seed = seed
    local fine, out = pcall(function()
      local other = require "cq.experiment"(levels.define(run.problem, level))
      if other.design then T.leaves.load(other.params.design, other.design:start(seed), "run:optimize") end
      return other.params
    end)
    option.program.seed = before
    if not fine then error(out, 0) end
    return out
  end
  if not run.design then
    is.fail("run:optimize: several starts need an experiment that is made by a function, cq.Experiment(function(level) ... end), or one with a design: nothing of this one is drawn anew")
  end
  local out = T.leaves.snapshot(first)
  T.leaves.load(out.design, run.design:start(seed), "run:optimize")
  return out
end

-- ---- from one level to another --------------------------------------------------------------------------------------

-- Particle values {n, ...} of the robot `from` as a new tensor for the robot `to`: each particle takes the nearest
-- one's, at the same relative place in the bounding box.
local function by_particle(value, from, to)
  to.nearest_in = to.nearest_in or setmetatable({}, { __mode = "k" })
  to.nearest_in[from] = to.nearest_in[from] or nearest.nearest(to, from)
  return value:gather(to.nearest_in[from], 1)
end

---Parameters of the experiment of one level for that of another, differentiable: design variables and particle values
---from the nearest particle and time, others unchanged. Errors: a parameter of another shape that is neither of
---particles nor of time.
---@param from cq.Experiment
---@param params table         of `from`
---@param to cq.Experiment
---@return table               in the shape of to.params
function levels.carried(from, params, to)
  if from == to then return params end
  local found = T.leaves.pair(to.params, params)
  local design = to.design and from.design and require "cq.topology.transfer"(to.design, from.design, params.design)
  local of_design = design and T.leaves.pair(to.params.design, design) or {}
  local paths = {}
  for _, leaf in ipairs(T.leaves.list(to.params)) do paths[leaf.tensor] = leaf.path end
  return T.leaves.map(to.params, function(own)
    local other, path = found[own], paths[own]
    local value = of_design[own] or T.is_tensor(other) and class.same_dims(own.dims, other.dims) and other
    if not value and T.is_tensor(other) and path:find "^robot%." and own:size(1) == to.robot.particle_count
      and other.rank == own.rank and other:size(1) == from.robot.particle_count then
      value = by_particle(other, from.robot, to.robot)
    end
    return value or is.fail("run:optimize: %s cannot be carried to the experiment of another level or variant: its shape is {%s}, and there {%s}",
      path, T.is_tensor(other) and table.concat(other:shape(), ", ") or "none", table.concat(own:shape(), ", "))
  end)
end

---Sets the parameters of the experiment `to` from those of another level, in place.
---@param from cq.Experiment
---@param params table         of `from`
---@param to cq.Experiment
function levels.transfer(from, params, to)
  local carried = from ~= to and T.tape.pause(levels.carried, from, params, to) or params
  T.leaves.load(to.params, carried, "run:optimize")
end

return levels
