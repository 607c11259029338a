-- study: runs parameter studies and shows what came of them.      cqlua study run s.lua --jobs 8
--   run      works on the study until it is done; the same command goes on where it was stopped
--   status   how far it has come, and the best
--   show N   all that is known of trial N, and the command that reruns it alone
--   rerun N  tries trial N once more, beside the study
--   render N draws a film of trial N from what it has found; N of show, rerun and render may be the word best
--   plot     reported curves, and the objective over each parameter, as PNG files
--   export   a table as CSV
--   retry    lets trials of some states be tried again: --state failed,lost
--   stop     lets running trials end and starts no more
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

local INTERRUPTED = 130

-- the options of cqlua study itself
local options_of_command = {
  jobs = is.integer { min = 1, max = 4096, default = 1,
    help = "processes at a time; threads and memory are split between them" },
  seeds = is.integer { min = 1, max = 1e6, optional = true,
    help = "the script returns no study but numbers, { loss = ... }, and is run with so many seeds, from --seed on" },
  ["force-new"] = is.boolean { default = false, help = "run: begin anew; what is there is kept in a folder earlier-1, -2, ..." },
  ["go-on"] = is.boolean { default = false, help = "run: the script or its options were changed, and what it gave before counts" },
  state = is.string { optional = true, help = "retry and export: trials of these states, as failed,lost" },
  launch = is.one_of { "slurm", "ssh", optional = true,
    help = "run: workers on other machines: slurm, or ssh HOST,HOST,..." },
  workers = is.integer { min = 1, max = 1e6, optional = true,
    help = "launch: how many workers" },
  sbatch = is.string { optional = true,
    help = "launch: more for sbatch, as --sbatch=\"--time=4:00:00 --partition=short\"" },
  store = is.string { optional = true,
    help = "a PostgreSQL server that keeps the study for many machines, postgresql://user@host/database" },
  curves = is.boolean { default = false, help = "export: what trials reported, a line for each step" },
  json = is.boolean { default = false, help = "status: as one JSON object" },
  share = is.integer { min = 1, default = 1, help = "processes that share the memory; run sets it" },
}

-- The cq.Session of a script's study, with its folder and store.
local function session_of(script, options)
  return require("cq.study.session").open(script, options.store, options.seeds, options_of_command)
end

-- The number of a trial, as the words behind an action of the command line have it: "best" asks the study for the best
-- one that is done, any other must be a number; whether there is such a trial is not looked at.
local function number_of(words, action, session)
  if words[1] == "best" then
    local store, study = session:look()
    local best = store:best(study.repeats)
    return best and best.trial or is.fail "the study has no trial that is done"
  end
  local number = tonumber(words[1] or "")
  if not number or number < 1 or number % 1 ~= 0 then
    scripts.misuse("study %s needs the number of a trial: cqlua study %s script.lua 12, or best, got %s", action, action,
      tostring(words[1] or "nothing"))
  end
  return number
end

-- Prints a list of lines.
local function print_all(lines) for _, line in ipairs(lines) do print(line) end end

local actions = {}

-- Warns of a study's pruner that had nothing to compare: a misspelt name, or steps that it does not look at.
local function tell_idle_pruner(study, store, counts)
  if not study.pruner or counts.done == 0 or store:has_compared() then return end
  local name = study.objectives[1].name
  message.warn("%s had nothing to compare: no trial has reported %s at one of its steps; trial.report(step, { %s = ... })"
    .. " does", tostring(study.pruner), name, name)
end

-- Works on a store of trials until none is left; first takes back an order to stop, unless `launch` started this
-- worker. Returns how that ended, "finished", "stopped" or "interrupted", the counts of trials by state, and lines on
-- their results. Closes the store.
local function work(session, store, options)
  local runners = require "cq.study.runner"
  -- one who starts a worker by hand takes back that all were to stop
  if not (session.address and require("cq.study.launch").is_launched()) then store:set_flag("stop", nil) end
  local child, threads = runners.command_line(session, options.jobs)
  local outcome = runners.new {
    study = session.study, store = store, folder = session.folder, jobs = options.jobs, words = child,
    threads = threads,
    script = session:hash(), options = option.of_results(),
    command = function(number) return session:rerun_command(number) end,
    fingerprint = function() return session:fingerprint() end,
  }:run()
  local counts, summary = store:counts(), require "cq.study.summary" (session.study, store)
  if outcome == "finished" then tell_idle_pruner(session.study, store, counts) end
  store:close()
  return outcome, counts, summary
end

-- Works on a study on this machine until it is done; returns as work does.
local function run_here(session, options)
  local store = session:begin { force_new = options["force-new"], go_on = options["go-on"] }
  message.note("%s in %s, %s", tostring(session.study), session.folder, text.count(options.jobs, "job"))
  return work(session, store, options)
end

-- Prepares a study for its workers: makes its tables on the server, and removes an order to stop.
local function make_ready(session, options)
  local store = session:begin { force_new = options["force-new"], go_on = options["go-on"] }
  store:set_flag("stop", nil)
  store:close()
end

-- Starts workers by ssh or Slurm; they share a PostgreSQL store. Errors: no such store; workers that fail.
local function launch(session, options, words)
  local launcher = require "cq.study.launch"
  if not session.address then
    scripts.misuse "--launch needs --store, a PostgreSQL server that all workers reach: --store postgresql://me@server/studies"
  end
  local hosts = words[1]
  if options.launch == "slurm" and not options.workers then
    scripts.misuse "--launch slurm needs --workers: how many workers the array has"
  elseif options.launch == "ssh" and not hosts then
    scripts.misuse "--launch ssh needs the hosts: cqlua study run s.lua --launch ssh host1,host2"
  end
  -- Makes the study ready for workers on other machines.
  local function ready() make_ready(session, options) end
  if options.launch == "slurm" then
    for _, line in ipairs(launcher.slurm(session, options, ready)) do print(line) end
    print(session:command "status" .. " tells how far they are")
    return
  end
  local failed = launcher.ssh(session, options, hosts, ready)
  if failed ~= 0 then
    is.fail("not all workers came to their end; what each said is above, and which in %s/launch/ssh.log", session.folder)
  end
end

-- cqlua study run: works on the study, here or by workers, and prints the results. Returns the exit code; nil: 0.
function actions.run(options, script, words)
  if option.program.overwrite then
    scripts.misuse "--overwrite is for runs; a study begins anew with --force-new, which keeps the earlier one"
  end
  if option.given().resume then
    scripts.misuse "--resume is for runs; a study goes on with the command that began it"
  end
  local session = session_of(script, options)
  if options.launch then return launch(session, options, words) end
  local outcome, counts, summary = run_here(session, options)
  if outcome == "interrupted" then
    message.interruption("interrupted; the same command goes on with %s", text.count(counts.waiting, "trial"))
    return INTERRUPTED
  end
  if outcome == "finished" then print_all(summary) end
  if outcome == "stopped" then message.note "stopped; the same command goes on" end
  if counts.failed + counts.lost > 0 then
    message.note("%d failed and %d lost: %s says why", counts.failed, counts.lost, session:command("show", "N"))
    message.note("%s lets them be tried again", session:command("retry", "--state failed,lost"))
    if counts.done == 0 and outcome ~= "stopped" then return 1 end       -- nothing came of it
  end
end

-- cqlua study work: the worker process that cqlua study run starts, and to which it sends trials.
function actions.work(options, script)
  option.program.share = options.share
  if not require("cq.study.process").await(script) then return require("cq.study.trial").refuse_changed() end
  local session = session_of(script, options)
  scripts.hold_modules()
  require("cq.study.trial").serve(session.study, session:fingerprint())
end

-- cqlua study status: prints how far the study has come, and its best trial.
function actions.status(options, script)
  local session = session_of(script, options)
  return require("cq.study.report").status(session, options.json)
end

-- cqlua study show: prints all that is known of a trial.
function actions.show(options, script, words)
  local session = session_of(script, options)
  require("cq.study.report").show(session, number_of(words, "show", session))
end

-- cqlua study rerun: runs a trial alone. Returns the exit code; nil: 0.
function actions.rerun(options, script, words)
  local session = session_of(script, options)
  return require("cq.study.report").rerun(session, number_of(words, "rerun", session))
end

-- cqlua study render: renders a trial's saved result as a film.
function actions.render(options, script, words)
  local session = session_of(script, options)
  require("cq.study.report").render(session, number_of(words, "render", session))
end

local has_ended = { failed = true, lost = true, pruned = true, done = true }

-- The states of trials that --state lists; nil: it was not given.
local function states_of(options)
  local states = options.state and {}
  for state in (options.state or ""):gmatch "[^,]+" do
    if not has_ended[state] then
      scripts.misuse("--state takes failed, lost, pruned and done, with commas between, got %s", text.describe(state))
    end
    states[#states + 1] = state
  end
  return states
end

-- cqlua study export: prints a CSV of trials, or of reported values.
function actions.export(options, script)
  local states = states_of(options)
  if states and options.curves then scripts.misuse "--state picks trials of the table; --curves exports those of all" end
  require("cq.study.report").export(session_of(script, options), options.curves, states)
end

-- cqlua study plot: draws the results and prints the paths of the files.
function actions.plot(options, script)
  local session = session_of(script, options)
  local store, study = session:look()
  local paths = require "cq.study.plot" (study, store, session.folder .. "/plots")
  for _, path in ipairs(paths) do print(path) end
end

-- cqlua study retry: lets trials of the states in --state be tried again, and prints how many.
function actions.retry(options, script)
  if not options.state then scripts.misuse "study retry needs --state: which trials, as --state failed,lost" end
  local states, session = states_of(options), session_of(script, options)
  local store = session:look(true)
  session:require_trials()
  print(("%s will be tried again by %s"):format(text.count(store:retry(states), "trial"), session:command "run"))
end

-- cqlua study stop: gives the order to stop to all workers.
function actions.stop(options, script)
  local session = session_of(script, options)
  session:look(true):set_flag("stop", "now")
  print "running trials will end, and no more are begun"
end

local names = { "run", "status", "show", "rerun", "render", "plot", "export", "retry", "stop" }

-- the actions on which an option has an effect, where it has one on some alone; and the words behind the script
local effect_on = {
  jobs = { "run" }, ["force-new"] = { "run" }, ["go-on"] = { "run" }, launch = { "run" }, workers = { "run" },
  sbatch = { "run" }, json = { "status" }, curves = { "export" }, state = { "export", "retry" }, share = {},
}
local words_of = { show = 1, rerun = 1, render = 1 }

-- Ends the program with an error if an option or a word that was given has no effect on the action.
local function require_effect(action, options, words)
  if action == "work" then return end               -- of a worker's process
  for _, name in ipairs(tables.names(options)) do
    local on, fits = effect_on[name], false
    for _, other in ipairs(on or {}) do fits = fits or other == action end
    if on and not fits then
      scripts.misuse("study %s has no use for --%s, which is for %s", action, name,
        #on > 0 and "study " .. table.concat(on, " and ") or "the processes that run starts")
    end
  end
  for _, name in ipairs { "workers", "sbatch" } do
    if options[name] ~= nil and options.launch ~= "slurm" then
      scripts.misuse("--%s is for --launch slurm; --jobs is how many processes work on this machine", name)
    end
  end
  local stray = words[(words_of[action] or options.launch == "ssh" and 1 or 0) + 1]
  if stray then
    scripts.misuse("study %s has no use for the word %s%s", action, text.describe(stray),
      action == "run" and "; hosts are for --launch ssh" or "")
  end
end

return {
  summary = "runs a parameter study and shows what came of it: " .. table.concat(names, ", "),
  arguments = "run|status|show|... script.lua",
  runs_script = true,
  options = options_of_command,
  -- The subcommand: carries out the action that is the first of `words`, on the script that is the second. Returns the
  -- exit code; nil: 0.
  run = function(options, words)
    local action, script = table.remove(words, 1), table.remove(words, 1)
    -- "show 12 s.lua" is "show s.lua 12"
    if (tonumber(script) or script == "best") and words[1] then script, words[1] = words[1], script end
    if not actions[action or ""] then
      scripts.misuse("study needs what to do and a script, as cqlua study run s.lua; it knows %s%s",
        table.concat(names, ", "), action and ", got " .. text.describe(action) .. text.suggestion(action, names) or "")
    end
    if not script then scripts.misuse("study %s needs the script that returns the study, got nothing", action) end
    require_effect(action, options, words)
    options.jobs, options.share = options.jobs or 1, options.share or 1
    return actions[action](options, script, words)
  end,
}
