-- variant_steps: more substeps for variants of an experiment whose steps are too long for their own values, where those
-- of the experiment itself are not. The experiment's world keeps its substeps, and so do the other variants.
local is = require "cq.base.schema"
local recover = require "cq.experiment.recover"
local T = require "cq.tensor"

local variant_steps = {}

local MOST = 8                -- times the substeps of its world that a variant may have, as those of a recovered stage

-- Are the steps of a world too long for the values of these robots? Begins a rollout of no steps, which checks it.
local function is_too_long(world, robot)
  local fine, found = pcall(T.tape.pause, function() world:rollout({ steps = 0, robot = robot }):release() end)
  return not fine and recover.is_of_courant(found)
end

---Are the steps of an experiment itself too long for its parameters? Then these are at fault, and not its variants.
---@param run cq.Experiment
---@param params table
---@return boolean
function variant_steps.is_nominal(run, params)
  local def = run:rollout_def(params, {})
  return is_too_long(def.world, def.fields.robot)
end

---The definition of a variant's rollout with twice, four or eight times the substeps, the least that its values need;
---the same one where they need no more, or where it goes on from a state, which is of its world.
---Errors: eight times are too few.
---@param def table           from run:rollout_def
---@return table def
function variant_steps.refined(def)
  if def.fields.from or not is_too_long(def.world, def.fields.robot) then return def end
  local out, factor = {}, 2
  for name, value in pairs(def) do out[name] = value end
  while factor <= MOST do
    out.world = def.world:variant { substeps = factor }
    if not is_too_long(out.world, def.fields.robot) then return out end
    factor = 2 * factor
  end
  is.fail("cq.Experiment: variant: the Courant number of its values is above 1 even with %d times the %d substeps of its world: change it less, or give it a world of more substeps",
    MOST, def.world.substeps)
end

return variant_steps
