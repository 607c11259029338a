-- check: everything that can be known of a script before it runs for long.      cqlua check script.lua [its options]
-- The script runs with one iteration; an experiment makes a few control steps forward and backward instead of
-- training, and tells its plan. Nothing is drawn, and no folder is written. Loops of one's own end where
-- cq.option("iterations") says so.
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local program = require "cq.program"
local script = require "cq.base.script"
local is = require "cq.base.schema"

-- The facts of an experiment's check for --json, a table.
local function facts_of(path, report)
  local plan = report.plan
  return {
    script = path, steps = report.steps, loss = report.loss, gradients = report.gradients, bytes = plan.bytes,
    checkpoints = plan.checkpoints,
    recompute = plan.recompute,
  }
end

-- Writes its arguments to stderr as print does, while --json owns standard output.
local function print_to_stderr(...)
  local words = { ... }
  for i = 1, select("#", ...) do words[i] = tostring(words[i]) end
  io.stderr:write(table.concat(words, "\t"), "\n")
end

-- Prints a finding as a line of JSON.
local function tell(object)
  io.stdout:write(json.encode(object, { "script", "fine" }), "\n")
end

return {
  summary = "what can be known of a script before it runs",
  arguments = "script.lua",
  options = { json = is.boolean { default = false, help = "one JSON object a line" } },
  runs_script = true,
  -- The subcommand: runs the script of `words` with one iteration and prints the findings. Returns the exit code; nil:
  -- 0.
  run = function(options, words)
    local path = table.remove(words, 1)
    if not path then script.misuse "check needs the script to look at, got nothing" end
    option.set_silently("iterations", "1")
    option.set_silently("render", "no")
    option.program.check = true
    local say, has_skipped = print, false
    if options.json then rawset(_G, "print", print_to_stderr) end
    option.on_check = function(report)
      has_skipped = true
      if options.json then tell(facts_of(path, report)) else say(report.text) end
    end
    local fine, problem = program.run_script(path, words)
    if options.json then tell { script = path, fine = fine, problem = problem } end
    if not fine then
      -- what reads the folder or the gain of a training finds none
      if has_skipped then
        message.note("this came after a training, which a check leaves out: it may be right in a run")
      end
      return 1
    end
    script.tell_unused()
    if not options.json then say(("%s: nothing wrong was found"):format(path)) end
  end,
}
