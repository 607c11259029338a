-- evaluate: an experiment once more, with parameters that are chosen, in its own world or a changed one.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local changed = require "cq.experiment.changed"
local constrained = require "cq.experiment.constrained"
local objectives = require "cq.experiment.objective"
local recover = require "cq.experiment.recover"
local scenes = require "cq.experiment.scenes"
local tables = require "cq.base.tables"

local evaluate = {}

-- ---- parameters -----------------------------------------------------------------------------------------------------

---@class run.evaluate.def : run.changes.def
---@field params? "best"|"last"|table|cq.Tensor   of the least loss so far, or the present ones; or values in the shape of
---  run.params, of which what is left out is as in the best, or one tensor of all numbers in their order
---@field converge? boolean     evaluates with half of the time step too, and prints the difference: a gait that it changes lives on the
---  size of the steps

---Which parameters are meant.
evaluate.params_kind = is.any_of { is.one_of { "best", "last" }, is.tensor(), is.table(), default = "best" }

local spec = is.define("run:evaluate", changed.fields { params = evaluate.params_kind,
  converge = is.boolean { default = false } })

-- Splits one tensor of all numbers, in their order, into a new table that is nested as the experiment's parameters.
-- Errors: another count.
local function unpacked(run, all, what)
  local list, count, at = T.leaves.list(run.params), 0, 0
  for _, leaf in ipairs(list) do count = count + leaf.tensor.count end
  if all.count ~= count then
    is.fail("%s: params must have all %d numbers of the parameters, got %d", what, count, all.count)
  end
  local flat = all:reshape { count }
  return T.leaves.map(run.params, function(tensor)
    at = at + tensor.count
    return flat:slice(at - tensor.count + 1, at):reshape(tensor:shape())
  end)
end

-- The path of entry `key` of a nested table that is itself at `path`, as "robot.young".
local function join(path, key) return path == "" and tostring(key) or path .. "." .. tostring(key) end

-- A user's value for one parameter as a tensor of the parameter's shape; a number fills it. path: of the parameter, for
-- errors. Errors: no number, list or tensor; another shape.
local function fitted(tensor, value, path, what)
  if type(value) ~= "number" and type(value) ~= "table" then
    is.fail("%s: params.%s must be a number, a list or a tensor, got %s", what, path, text.describe(value))
  end
  local own, shape = T.as_tensor(value, what), tensor:shape()
  if own.rank == 0 then return own:expand(shape) end
  if table.concat(own:shape(), ", ") ~= table.concat(shape, ", ") then
    is.fail("%s: params.%s must have the shape {%s}, got {%s}", what, path, table.concat(shape, ", "),
      table.concat(own:shape(), ", "))
  end
  return own
end

-- A copy of `own`, a nested table of parameters, with the values of `given` in their places. path: of `own` in the
-- experiment's parameters, for errors. Errors: a name that the parameters lack; a value that does not fit.
local function merged(own, given, path, what)
  if given == nil then return own end
  if T.is_tensor(own) then return fitted(own, given, path, what) end
  if type(given) ~= "table" or T.is_tensor(given) then
    is.fail("%s: params.%s must be a table, got %s", what, path, text.describe(given))
  end
  local out, keys = {}, T.leaves.sorted_keys(own)
  for _, key in ipairs(keys) do out[key] = merged(own[key], given[key], join(path, key), what) end
  for _, key in ipairs(T.leaves.sorted_keys(given)) do
    if own[key] == nil then
      for k, name in ipairs(keys) do keys[k] = tostring(name) end
      is.fail("%s: params%s has no %s%s; it has %s", what, path == "" and "" or "." .. path, tostring(key),
        text.suggestion(tostring(key), keys), #keys > 0 and table.concat(keys, ", ") or "nothing")
    end
  end
  return out
end

---The parameters of an evaluation: the best of the run, the last, or those that the user gives, with the best in the
---place of what a table leaves out. The best are the present ones before there are any.
---@param run cq.Experiment
---@param given "best"|"last"|table|cq.Tensor
---@param what string        for errors
---@return table
function evaluate.params(run, given, what)
  if given == "last" then return run.params end
  local best = run.best and run.best.params or run.params
  if given == "best" then return best end
  return T.is_tensor(given) and unpacked(run, given, what) or merged(best, given, "", what)
end

-- ---- what comes of them ---------------------------------------------------------------------------------------------

---What run:evaluate found: loss, each part of the objective and each constraint by its name, as numbers.
---@class cq.Evaluation
---@field loss number
---@field losses number[]?          of each scene, where there are several; loss, parts and constraints are means
---@field rollout cq.Rollout?       of one scene
---@field [string] number           a part of the objective, as terminal or running, or a constraint
local Evaluation = { __name = "cq.Evaluation" }
Evaluation.__index = Evaluation

-- The evaluation in one line: "loss -0.312, effort 0.038, terminal -0.35".
function Evaluation:__tostring()
  local names, words = {}, { ("loss %.6g"):format(self.loss) }
  for name, value in pairs(self) do
    if type(value) == "number" and name ~= "loss" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do words[#words + 1] = ("%s %.6g"):format(name, self[name]) end
  return table.concat(words, ", ")
end

-- Raises an error if a constraint has the name of another field of an evaluation (cq.Evaluation).
local function require_free(run)
  for _, c in ipairs(run.constraints) do
    if c.name == "losses" or c.name == "rollout" or run.objective[c.name] then
      is.fail("run:evaluate: the constraint %s has the name of %s; call it otherwise", c.name,
        run.objective[c.name] and "a part of the objective" or "a field of what this gives")
    end
  end
end

-- Simulates one scene: loss, parts of the objective and constraints, as numbers by name; and the rollout.
local function one(run, params, def)
  local roll = run:rollout(params, def)
  local loss, parts = objectives.loss(run.objective, roll)
  local out = { loss = loss:item() }
  for name, value in pairs(parts) do out[name] = value:item() end
  for name, value in pairs(constrained.values(run, params, roll)) do out[name] = value:item() end
  return out, roll
end

-- Simulates all scenes, which ranks share: { loss, losses {scenes}, and each part and constraint by name }; all but
-- losses are means over scenes. A part that some scene lacks is left out.
local function several(run, params, def)
  local found = {}
  local losses, loss = scenes.map(run, function(scene, k)
    local values, roll = one(scene, params, def)
    found[k] = values
    return values.loss, roll
  end)
  local out, names = { loss = loss, losses = losses }, {}
  for _, name in ipairs(objectives.names) do
    if run.objective[name] then names[#names + 1] = name end
  end
  for _, c in ipairs(run.constraints) do names[#names + 1] = c.name end
  for _, name in ipairs(names) do
    local _, having = scenes.map(run, function(_, k) return found[k][name] and 1 or 0 end)
    local _, mean = scenes.map(run, function(_, k) return found[k][name] or 0 end)
    if having == 1 then out[name] = mean end
  end
  return out
end

-- The loss with twice as many substeps; a sentence why that simulation failed where it did.
local function finer_loss(run, params, def)
  local finer = tables.merged(def)
  local fine, found = pcall(function()
    finer.world = changed.world(run, def):variant { substeps = 2 }
    return run.scenes and several(run, params, finer).loss or one(run, params, finer).loss
  end)
  if not fine and not recover.is_of_simulation(found) then error(found, 0) end
  return found
end

-- Prints the loss beside the one with twice as many substeps, and their difference. finer: what finer_loss returns.
local function tell_difference(run, def, loss, finer)
  local substeps = changed.world(run, def).substeps
  local told = ("loss %.6g with substeps = %d and "):format(loss, substeps)
  if type(finer) == "string" then
    print(("%snone with %d, where %s: the result lives on the size of the steps"):format(told, 2 * substeps,
      finer:match "the simulation failed at[^:]*" or finer))
    return
  end
  local share = loss ~= 0 and (", %.2g %%"):format(100 * math.abs((finer - loss) / loss)) or ""
  print(("%s%.6g with %d: they differ by %.2g%s"):format(told, finer, 2 * substeps, finer - loss, share))
end

---run:evaluate: simulates once, without gradients, by the parameters and changes given; with `converge` once more with
---finer steps, and prints how far the losses differ. Errors: unknown fields; changes that do not fit the experiment.
---@param run cq.Experiment
---@param given? run.evaluate.def
---@return cq.Evaluation
function evaluate.run(run, given)
  if type(given) == "string" then
    is.fail("run:evaluate: takes a table, as { params = %q }, got %s", given, text.describe(given))
  elseif text.is_instance(given, "cq.Topology.Body") then
    is.fail("run:evaluate: takes a table, as { body = ... }, got %s", text.describe(given))
  end
  local def = spec(given or {})
  local params = evaluate.params(run, def.params, "run:evaluate")
  local converge = def.converge
  def.params, def.converge = nil, nil
  require_free(run)
  local finer = converge and finer_loss(run, params, def)
  local out
  if run.scenes then
    out = several(run, params, def)
  else
    local roll
    out, roll = one(run, params, def)
    out.rollout = roll
  end
  if finer then tell_difference(run, def, out.loss, finer) end
  return setmetatable(out, Evaluation)
end

return evaluate
