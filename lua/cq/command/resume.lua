-- resume: goes on with a run where it stopped, or forks it: from an iteration that it has kept, in a folder of its own,
-- with other options.
--   cqlua resume runs/walk                                   as its command with --resume
--   cqlua resume runs/walk --at 40 --set optimizer.rate=1e-3 --as runs/slow
--   cqlua resume runs/walk --best 0.3 --as runs/again        from its best, with 0.3 of the rate
--   cqlua resume runs/walk --as runs/longer --iterations 500 options of the script stand with the others
--   cqlua resume runs/walk/run-2                             the second run of a script; the first one goes on too
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"

-- The settings of an optimizer from the text "optimizer.rate=1e-3,optimizer.clip=1", as a table of texts by name. Ends
-- the program, as after wrong use, for another text.
local function settings(given)
  local out = {}
  for part in ((given or "") .. ","):gmatch "([^,]+)," do
    local name, value = part:match "^%s*(optimizer%.[%w_.]+)%s*=%s*(.-)%s*$"
    if not name or value == "" then
      scripts.misuse("--set takes optimizer.NAME=VALUE, as optimizer.rate=1e-3, got %s; options of the script are given as --name value",
        part)
    end
    out[name] = value
  end
  return out
end

-- A sorted list of the options of script and program that the user has typed, as words of a command line.
local function typed()
  local out = option.typed_for_program()
  for name, value in pairs(option.given()) do
    out[#out + 1] = "--" .. name
    if value ~= true then out[#out] = ("--%s=%s"):format(name, value) end
  end
  table.sort(out)
  return out
end

-- Notes that a run with a name, as one of several runs of its script, goes on with those before and after it, in
-- `folder`. Errors: it is to be forked, in a folder where the script would look for the others too.
local function tell_of_others(run, folder, name, is_fork)
  if is_fork then
    is.fail("cqlua resume: %s is %q of several runs of its script, which would look for the others beside the fork; cqlua resume %s goes on with it, without --as",
      run, name, run)
  end
  message.note("%s is %q of the runs of its script in %s, which go on one after the other", run, name, folder)
end

return {
  summary = "goes on with a run, or forks it: from an iteration that was kept, with other options",
  arguments = "RUN",
  runs_script = true,
  joins = { set = true },            -- may be given several times
  options = {
    at = is.integer { min = 1, optional = true,
      help = "iteration of the run that the fork begins after; its last unless given" },
    set = is.string { optional = true,
      help = "of the optimizer, as optimizer.rate=1e-3 or optimizer.rate=x0.5; several with commas, or --set for each" },
    best = is.number { above = 0, optional = true, help = "back to the best parameters, with so much of the rate" },
    as = is.string { optional = true, help = "folder of the fork" },
  },
  -- The subcommand: goes on with the run of the folder in `words`, or forks it. Returns the exit code.
  run = function(options, words)
    if #words ~= 1 then scripts.misuse("resume takes the folder of one run, got %s", #words == 0 and "none" or
      table.concat(words, " ")) end
    if option.program.out then
      scripts.misuse("resume goes on in the folder of its run, or with --as DIR in that of a fork; it takes no --out, got %s",
        option.program.out)
    end
    local parent = words[1]:gsub("(.)/+$", "%1")
    local is_fork = options.at or options.set or options.best or options.as
    if is_fork and not options.as then scripts.misuse "a fork needs a folder of its own: --as DIR" end
    local fork = require "cq.run.fork"
    local manifest = require("cq.run.manifest").read(parent, "cqlua resume")
    local folder = fork.folder_of_script(parent, manifest, "cqlua resume")
    if folder ~= parent then tell_of_others(parent, folder, manifest.notes.name, is_fork) end
    local more = typed()
    table.insert(more, 1, "--out=" .. (options.as or folder))
    table.insert(more, 2, "--resume=true")
    local arguments, script = fork.arguments(manifest, parent, more, "cqlua resume")
    if is_fork then
      fork.make(parent, { at = options.at, best = options.best, set = settings(options.set), folder = options.as,
        script = script, arguments = arguments })
    end
    return require("cq.program").main(arguments)
  end,
}
