-- seeds: the study of a script that trains one thing: cqlua study run walk.lua --seeds 8. Each trial is a run of the
-- whole script, with a seed and a folder of its own. The script returns numbers, the loss among them; where it returns
-- nothing, the loss is the best that its experiment has found:
--
--   return { loss = run.best.loss, lengths = walked / length }
local host = require "cq.host"
local is = require "cq.base.schema"
local option = require "cq.option"
local scripts = require "cq.base.script"
local Run = require "cq.run"
local Study = require "cq.study"
local text = require "cq.base.text"

local seeds = {}

-- Reports the losses in the trial's history.csv, if the script's run has written one, as the trial's curve.
local function report_history(trial)
  if not host.kind(trial.folder .. "/history.csv") then return end
  for _, row in ipairs(Run.read_history(trial.folder)) do
    if type(row.loss) == "number" then trial.report(row.iteration, row.loss) end
  end
end

-- The result { loss } of a trial whose script returned none: the best loss in its folder's saved.bin; nil or false
-- without one.
local function saved_loss(trial)
  local path = trial.folder .. "/saved.bin"
  local saved = host.kind(path) and require "cq.load" (path)
  return saved and { loss = saved.result.loss }
end

---The study that runs a script with `count` seeds: first, first + 1, ..., where first is --seed, or 1. For --seeds.
---Errors, in a trial: the script returns no table with a loss; a script that returns a study, which ends this one.
---@param path string       of the script
---@param count integer
---@return cq.Study
function seeds.study(path, count)
  local chunk, problem = scripts.load(path, {})
  if not chunk then error(problem, 0) end
  local first, list = option.program.seed or 1, {}
  for k = 1, count do list[k] = first + k - 1 end
  local name = path:match "([^/]+)$":gsub("%.lua$", ""):gsub("[^%w_.-]", "-")
  local study
  study = Study {
    name = name .. "-seeds", grid = { seed = list },
    run = function(_, trial)
      local returned = chunk()
      Run.close_open()
      if text.is_instance(returned, "cq.Study") then
        study.refusal = "the script returns a cq.Study, which is run without --seeds: its field repeats says how many seeds "
          .. "each point has"
        is.fail("%s", study.refusal)
      end
      if returned == nil then returned = saved_loss(trial) end
      if type(returned) ~= "table" or text.class_of(returned) or type(returned.loss) ~= "number" then
        is.fail("a script that is run with --seeds must return its numbers, as return { loss = run.best.loss }, or train "
          .. "one experiment; it returned %s", returned == nil and "nothing" or text.describe(returned))
      end
      report_history(trial)
      return returned
    end,
  }
  study.resumes = true
  return study
end

return seeds
