-- robust: prints how much of its gain a trained robot keeps in changed simulations.
--   cqlua robust runs/walk                   a table; robustness.json in the folder, for cqlua report
--   cqlua robust runs/walk --draws 100
--   cqlua robust runs/walk --seed 1          other draws; the script has the seed of its run
--   cqlua robust biped                       a trained robot of the zoo (cqlua replay); files in runs/robust/biped
--   cqlua robust runs/walk --out elsewhere   robustness.json in that folder
-- The run's script is run again without training, up to its end. A changed script, by which the run's best has another
-- loss, is refused, unless that loss is one of variants that are drawn for each iteration.
local ensemble = require "cq.experiment.ensemble"
local host = require "cq.host"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"
local text = require "cq.base.text"
local T = require "cq.tensor"

-- The experiment of a run's folder, made by running its script without training; nil and the exit code where the script
-- failed. Errors: a run without a best; a script that makes no experiment of that folder.
local function replayed(folder)
  local fork = require "cq.run.fork"
  local manifest = require("cq.run.manifest").read(folder, "cqlua robust")
  local more = { "--out=" .. fork.folder_of_script(folder, manifest, "cqlua robust"), "--render=no" }
  for _, word in ipairs(option.typed_for_program()) do
    if not word:find "^%-%-seed=" then more[#more + 1] = word end            -- that is of the draws
  end
  local arguments = fork.arguments(manifest, folder, more, "cqlua robust")
  if not host.kind(folder .. "/saved.bin") then
    is.fail("cqlua robust: %s has no best yet: it has no saved.bin", folder)
  end
  local data = require "cq.load"(folder).data
  if not data.world and data.version ~= 0 then
    is.fail("cqlua robust: the run in %s is of optimizer:solve or of a learner without cq.Env, and no experiment was "
      .. "trained in it; measure one by cq.robustness(experiment) in a script", folder)
  end
  option.program.replay = true
  local code = require("cq.program").main(arguments)
  local run = require("cq.experiment.untrained").replayed(folder)
  if run or code ~= 0 then return run, code end
  is.fail("cqlua robust: the script of %s has optimized no experiment of that folder; a learner's run has none", folder)
end

local SAME = 0.01      -- of the loss: by so much a run measured on another device may differ

-- The loss of a run's best as its stage has it: over the variants, where there are some. nil: they were drawn for its
-- iteration alone.
local function loss_of_best(run)
  if not run.ensemble then return run:evaluate().loss end
  if not run.ensemble.fixed then return nil end
  return T.tape.pause(function()
    local numbers, rolls = ensemble.numbers(run, run.best.params)
    local loss = numbers.objective:item()
    rolls:release()
    return loss
  end)
end

-- Tells whether the script, run again, is still that of the run in a folder. Errors: its text was changed, and the
-- run's best has another loss by it.
local function require_same(run, folder)
  local changes = require("cq.run.changed_script").list(folder, scripts.text())
  local words, kept = {}, {}
  for k, source in ipairs(changes) do
    kept[k] = folder .. "/" .. source.path
    words[k] = ("%s was changed since the run in %s: %s"):format(source.name, folder, source.line)
  end
  local said, result = table.concat(words, "; "), require "cq.load"(folder).result
  local now = result and loss_of_best(run)
  if not now then
    if said ~= "" then message.warn("%s; what is measured is the changed one", said) end
    return
  end
  if math.abs(now - result.loss) <= SAME * math.max(math.abs(now), math.abs(result.loss)) then
    if said ~= "" then message.note("%s; the loss of its best is the same", said) end
  elseif said ~= "" then
    is.fail("cqlua robust: %s; the loss of its best was %.4g and is %.4g: this measures another problem; %s has the text of before",
      said, result.loss, now, text.join(kept))
  else
    message.warn("the loss of the best of %s was %.4g and is %.4g when its script is run again", folder, result.loss, now)
  end
end

-- Two values for a robot of the zoo: the saved run, and its objective, which is its figure as a loss.
local function of_zoo(name)
  local zoo = require "cq.zoo"
  local entry = zoo.entry(name)
  local saved = require("cq").load(zoo.path(entry))
  return saved, zoo.objective(entry, saved)
end

return {
  summary = "how much a trained run, or a robot of the zoo, keeps of its gain in simulations that are a little different",
  arguments = "RUN|NAME",
  options = {
    draws = is.integer { min = 0, max = 1e6, default = 32, help = "simulations with all changes at once, drawn by --seed, 0 unless given" },
  },
  -- The subcommand: prints the robustness of the run or robot in `words` and saves it. Returns the exit code; nil: 0.
  run = function(options, words)
    if #words ~= 1 then
      scripts.misuse("robust takes the folder of one run or a name of the zoo, got %s",
        #words == 0 and "none" or table.concat(words, " "))
    end
    local seed = option.program.seed or 0      -- of the draws
    option.program.seed = nil
    local given = words[1]:gsub("(.)/+$", "%1")
    local name = given:match "^zoo/([^/]+)$" or given
    local out = option.program.out             -- the script of a run is run with another
    local run, objective, folder, code
    if host.kind(given) == "folder" then
      folder = given
      run, code = replayed(folder)
      if not run then return code end
      require_same(run, folder)
    elseif host.kind(given) == "file" and not given:find "^zoo/" then
      is.fail("cqlua robust: %s is a file, which has no objective; give the folder of a run, or call cq.robustness(cq.load(PATH), { objective = function(state, start) ... end }) in a script",
        given)
    else
      name = name:gsub("%.bin$", "")
      folder = out or "runs/robust/" .. name
      run, objective = of_zoo(name)
    end
    if out or objective then require("cq.run.folder").make(out or folder) end
    local report = require("cq").robustness(run, { draws = options.draws, seed = seed,
      objective = objective })
    print(folder .. ":")            -- its script, run again, may have printed reports of its own
    print(report)
    message.note("%s", report:save((out or folder) .. "/robustness.json"))
  end,
}
