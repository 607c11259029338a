-- robust: how much of what a run has learned is left in a simulation that is a little different.
--   cqlua robust runs/walk                   a table; robustness.json and robustness.png in the folder
--   cqlua robust runs/walk --draws 100
-- The run's script is run again without training, up to its end.
local host = require "cq.host"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"

return {
  summary = "how much a trained run keeps of its gain in simulations that are a little different",
  arguments = "RUN",
  options = {
    draws = is.integer { min = 0, max = 1e6, default = 32, help = "simulations with all changes at once" },
  },
  run = function(options, words)
    if #words ~= 1 then
      scripts.misuse("robust takes the folder of one run, got %s", #words == 0 and "none" or table.concat(words, " "))
    end
    local folder = words[1]:gsub("(.)/+$", "%1")
    local fork = require "cq.run.fork"
    local manifest = require("cq.run.manifest").read(folder, "cqlua robust")
    local arguments = fork.arguments(manifest, folder, { "--out=" .. folder, "--render=no" })
    if not host.kind(folder .. "/saved.bin") then
      is.fail("cqlua robust: %s has no best yet: it has no saved.bin", folder)
    end
    option.program.replay = true
    local code = require("cq.program").main(arguments)
    local run = require("cq.experiment.untrained").replayed
    if not run then
      return code ~= 0 and code or is.fail("cqlua robust: the script of %s has optimized no experiment", folder)
    end
    local report = require("cq").robustness(run, { draws = options.draws, seed = option.program.seed or 0 })
    print(report)
    report:save(folder .. "/robustness.json")
    message.note("%s", report:plot(folder .. "/robustness.png"))
  end,
}
