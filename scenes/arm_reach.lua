-- arm_reach: an arm of two links must be at a goal when time is over, and at rest there, with the least effort of its
-- chambers; its stiffness is given, or learnt with its signals. The task of the arms of both ChainQueen papers: ICRA
-- 2019, fig. 5 and 8, in the plane, and Robotica 2021, fig. 10, in space.
--
--   local reach = require "scenes.arm_reach" { dim = 2, count = 14, goal = { 0.2, -0.15 } }
--   local cases = { { name = "E 10", young = 10 }, { name = "learnt", young = 10, range = { 3, 40 } } }
--   reach:compare(cases, { iterations = 200, optimizer = function() return reach.optimizer(0.05, 100) end })
--
-- Both constraints are a length and a speed, and not their squares as in the papers: the same points keep them, and
-- their gradients do not fade near the goal.
local cq = require "cq"

local NEAR, SLOW = 0.01, math.sqrt(1e-3)       -- of the goal [length]; root of the mean square velocity [length/time]

local Reach = {}
Reach.__index = Reach

-- The index of the patch that each particle of the undeformed robot lies in, as a list. Patches are cubes (2D: squares)
-- of side `size`, counted from the point `corner`. cells: index by the patch's integer coordinates, and `count`; new
-- patches are added to it.
local function patches_of(robot, corner, size, cells)
  local at, rows = robot.position:totable(), {}
  for p, x in ipairs(at) do
    for d, value in ipairs(x) do x[d] = math.floor((value - corner[d]) / size + 1e-6) end
    local key = table.concat(x, ",")
    if not cells[key] then
      cells.count = cells.count + 1
      cells[key] = cells.count
    end
    rows[p] = cells[key]
  end
  return rows
end

-- The index of the patch that each particle of `body` lies in, as a list. body: the arm, or the arm sampled again with
-- a different number of particles (cq.robustness, variants with change.grid). self: the scene, a Reach.
local function patches_in(self, body)
  local n = body.particle_count
  self.patches_by_count[n] = self.patches_by_count[n] or patches_of(body, self.corner, self.patch, self.cells)
  return self.patches_by_count[n]
end

---The experiment of one case: the arm must be near its goal and at rest at the end, with the least effort. Its signals
---are trained, and, if the case has a range, Young's modulus of each patch of the arm.
---@param case { young: number, range: number[]? }    Young's modulus at first; range { min, max } within which to learn
---@param optimizer cq.Optimizer
---@return cq.Experiment
function Reach:experiment(case, optimizer)
  local robot, trainable, goal, steps = self.world.robot, {}, self.goal, self.steps
  if case.range then
    trainable.stiffness = {
      init = cq.full({ self.cells.count }, case.young), min = case.range[1], max = case.range[2],
      rate = (case.range[2] - case.range[1]) / 75,
      apply = function(body, young) return body:with { young = young:gather(patches_in(self, body), 1) } end,
    }
  end
  local draw = cq.random { seed = cq.option("seed", 0) }
  local interval = self.world.control_dt
  return cq.Experiment {
    world = self.world, robot = robot:with { young = case.young }, steps = steps, trainable = trainable,
    controller = cq.Controller.open_loop {
      steps = steps, hold = self.hold, init = draw:normal({ steps / self.hold, #robot.signals }, { deviation = 0.1 }),
    },
    objective = { effort = function(u) return u:square():sum() * (self.strength ^ 2 * interval) end },
    constraints = {
      { name = "place", at_most = NEAR, tolerance = 1e-4,
        terminal = function(state) return (state:center "hand" - goal):norm() end },
      { name = "rest", at_most = SLOW, tolerance = 3e-4,
        terminal = function(state) return state:mean_square_velocity(robot):sqrt() end },
    },
    optimizer = optimizer,
  }
end

---Young's modulus of every particle {n} that a case with a range has learnt, at its best parameters.
---@param result table        of that case, from compare
---@return cq.Tensor
function Reach:young(result) return result.best.params.named.stiffness:gather(self.patches, 1) end

-- How far an evaluation, a row of a run's history, is from keeping both constraints (place and rest at the end): the
-- root of the sum of squares of both excesses; 0 if it keeps them.
local function violation_of(row)
  return math.sqrt(math.max(0, row.place - NEAR - 1e-4) ^ 2 + math.max(0, row.rest - SLOW - 3e-4) ^ 2)
end

-- The result of a case for Reach:compare: name, run, violation of the constraints at each evaluation of the history
-- (violation_of), `first`: the index of the first evaluation that keeps both (nil: none), and the run's best.
local function result_of(case, run, history)
  local result = { name = case.name, run = run, violation = {}, best = run.best }
  for i, row in ipairs(history) do
    result.violation[i] = violation_of(row)
    if result.violation[i] == 0 then result.first = result.first or i end
  end
  return result
end

-- A cq.Plan of two stages, which may take `count` evaluations in all: the first minimizes the violation of the
-- constraints until they are kept, the second the objective under the constraints. folder: of the run, whose history
-- tells how many evaluations the first stage has used.
local function two_stages(count, folder)
  local used
  return cq.Plan {
    { name = "feasible", iterations = count, minimize = "violation" },
    { name = "objective", iterations = count, stop = function(history)
      if not used then
        used = 0
        for _, row in ipairs(cq.Run.read_history(folder)) do used = used + (row.stage == "feasible" and 1 or 0) end
      end
      return used + #history >= count
    end },
  }
end

---Optimizes several cases, first until both constraints are kept, then for the least effort, and prints a line on each.
---The case with a range writes its run to the folder of --out, each other case to a folder of its name in it. The
---option --resume continues a comparison where it was stopped.
---@param cases { name: string, young: number, range: number[]? }[]   as for experiment
---@param def { iterations: integer, optimizer: fun(): cq.Optimizer }   iterations: evaluations of each case
---@return { name: string, run: cq.Experiment, violation: number[], first: integer?, best: table }[] results   first:
---  evaluation that first kept both constraints
function Reach:compare(cases, def)
  local folder, results = cq.option("out", self.folder), {}
  for k, case in ipairs(cases) do
    local run, name = self:experiment(case, def.optimizer()), not case.range and case.name:gsub("%W+", "_") or nil
    local own = name and folder .. "/" .. name or folder
    local resume                                  -- as --resume says, unless it was stopped before this case began
    if not cq.Run.can_resume(own) then resume = false end
    run:optimize { plan = two_stages(def.iterations, own), folder = folder, name = name, resume = resume }
    results[k] = result_of(case, run, cq.Run.can_resume(own) and cq.Run.read_history(own) or {})
    local r, values = results[k], run.best.values or {}
    print(("%-10s %s; effort %.3f, %.4f from the goal, speed %.4f"):format(case.name,
      r.first and ("at rest at the goal from evaluation %d on"):format(r.first) or "never at rest at the goal",
      run.best.loss, values.place or 0, values.rest or 0))
  end
  return results
end

---Writes a plot of the least violation of the constraints so far, over the evaluations, a curve for each case.
---@param results table[]     from compare
---@param name string         of the picture, in the folder of the run
function Reach:plot(results, name)
  local series = {}
  for k, result in ipairs(results) do
    local y, least = {}, math.huge
    for i, value in ipairs(result.violation) do
      least = math.min(least, value)
      y[i] = math.max(least, 1e-4)
    end
    series[k] = { name = result.name, y = y }
  end
  cq.Plot {
    title = "Constraints of an arm", x_label = "evaluation", y_label = "least violation so far, 1e-4: none",
    log_y = true, series = series,
  }:write(cq.option("out", self.folder) .. "/" .. name)
end

---The optimizer that the option --optimizer names: "augmented_lagrangian", which is built in and the default; "ipopt";
---or an algorithm of NLopt.
---@param rate number       of Adam, within the built-in optimizer
---@param penalty number    initial penalty of the constraints in the built-in optimizer: larger for a larger effort
---@return cq.Optimizer
function Reach.optimizer(rate, penalty)
  local name = cq.option("optimizer", "augmented_lagrangian")
  if name == "ipopt" then return cq.Optimizer.ipopt { tolerance = 1e-4 } end
  if name ~= "augmented_lagrangian" then return cq.Optimizer.nlopt { algorithm = name, objective_tolerance = 1e-6 } end
  -- short inner loops that go on with the moments of the one before, and a rate that falls over all of them
  return cq.Optimizer.augmented_lagrangian {
    inner = cq.Optimizer.adam { rate = rate, schedule = function(i) return 0.985 ^ i end },
    restart = false, inner_iterations = 20, penalty = penalty, penalty_growth = 1.5, rate_factor = 1,
  }
end

---@class scenes.arm_reach.options
---@field dim 2|3
---@field count? integer        particles along each side of a block; or spacing
---@field spacing? number        of particles; or count
---@field cells integer[]       of the grid
---@field dx number
---@field at number[]           of the arm's lower corner
---@field goal number[]         from where the hand is at first
---@field substeps integer
---@field dt number             control step
---@field steps integer         control steps
---@field hold integer          steps that signals are held over
---@field strength number       stress of a chamber at a signal of 1
---@field patch number          side of the squares or cubes that have a stiffness each
---@field folder string         unless --out is given
---@field hanging? boolean
---@field gravity? number[]

---An arm, its goal and its world, with the methods of Reach: experiment, compare, plot, young and optimizer.
---@param options scenes.arm_reach.options
return function(options)
  local robot = cq.Creature.arm {
    dim = options.dim, count = options.count, spacing = options.spacing, max = options.strength,
    hanging = options.hanging,
  }
  local world = cq.World {
    cells = options.cells, dx = options.dx, dt = options.dt, substeps = options.substeps, gravity = options.gravity,
    robot:at(options.at),
  }
  local hand = robot:group "hand":particles()
  local rest = robot.position:gather(hand, 1):mean(1) + cq.tensor(options.at)
  local self = setmetatable({
    world = world, robot = world.robot, goal = rest + cq.tensor(options.goal), steps = options.steps,
    hold = options.hold, strength = options.strength, folder = options.folder, patch = options.patch,
    corner = options.at, cells = { count = 0 }, patches_by_count = {},
  }, Reach)
  self.patches = patches_in(self, world.robot)
  return self
end
