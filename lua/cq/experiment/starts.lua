-- starts: run:optimize with several seeds, each in a process of its own, and on with the best of them.
local constraint = require "cq.optimizer.constraint"
local message = require "cq.base.message"

local starts = {}

-- what is kept of a start: with constraints, how far the best point is from keeping them
local function values_of(run)
  local values = { loss = run.best.loss }
  if #run.constraints > 0 then
    local judged = constraint.judge(run.constraints, run.best.values)
    values.violation = judged.feasible and 0 or judged.worst
  end
  return values
end

local function is_better(a, b)
  local there, here = a.violation or 0, b.violation or 0
  if there ~= here then return there < here end
  return a.loss < b.loss
end

-- the definition of one of the starts
local function alone(def, folder, resume)
  local out = {}
  for key, value in pairs(def) do out[key] = value end
  out.seeds, out.name, out.folder, out.resume = nil, nil, folder, resume
  return out
end

---@param run cq.Experiment
---@param def run.optimize.def     with its folder
---@return table                   what run:optimize gives of the best start
function starts.optimize(run, def)
  local found = require "cq.seeds" {
    count = def.seeds, folder = def.folder, run = function(_, folder)
      run:optimize(alone(def, folder))
      return values_of(run)
    end,
  }
  local best = found.rows[1]
  for _, row in ipairs(found.rows) do
    if is_better(row, best) then best = row end
  end
  message.note("the best of %d starts is that of seed %d: %.6g", #found.rows, best.seed, best.loss)
  local result = run:optimize(alone(def, best.folder, true))
  result.starts = found.rows
  return result
end

return starts
