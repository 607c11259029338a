-- resume: goes on with a run where it stopped, or forks it: from an iteration that it has kept, in a folder of its own,
-- with other options.
--   cqlua resume runs/walk                                   as its command with --resume
--   cqlua resume runs/walk --at 40 --set optimizer.rate=1e-3 --as runs/slow
--   cqlua resume runs/walk --best 0.3 --as runs/again        from its best, with 0.3 of the rate
--   cqlua resume runs/walk --as runs/longer --iterations 500 options of the script stand with the others
local is = require "cq.base.schema"
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
  local out = {}
  for name, value in pairs(option.given()) do
    out[#out + 1] = "--" .. name
    if value ~= true then out[#out] = ("--%s=%s"):format(name, value) end
  end
  table.sort(out)
  return out
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
    local more = typed()
    table.insert(more, 1, "--out=" .. (options.as or parent))
    table.insert(more, 2, "--resume=true")
    local manifest = require("cq.run.manifest").read(parent, "cqlua resume")
    if manifest.notes and manifest.notes.name then
      is.fail("cqlua resume: %s is %q of several runs of its script; run that with --resume", parent,
        manifest.notes.name)
    end
    local arguments, script = fork.arguments(manifest, parent, more, "cqlua resume")
    if is_fork then
      fork.make(parent, { at = options.at, best = options.best, set = settings(options.set), folder = options.as,
        script = script, arguments = arguments })
    end
    return require("cq.program").main(arguments)
  end,
}
