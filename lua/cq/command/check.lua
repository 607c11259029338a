-- check: everything that can be known of a script before it runs for long.      cqlua check script.lua [its options]
-- The script runs with one iteration; an experiment makes a few control steps forward and backward instead of training,
-- and prints its plan. Loops of one's own end where cq.option("iterations") says so.
local option = require "cq.option"
local program = require "cq.program"

return {
  summary = "what can be known of a script before it runs",
  arguments = "script.lua",
  runs_script = true,
  run = function(_, words)
    local path = table.remove(words, 1)
    if not path then program.misuse "check needs the script to look at, got nothing" end
    option.set_silently("iterations", "1")
    option.program.check = true
    if not program.run_script(path, words) then return 1 end
    program.tell_unused()
    print(("%s: nothing wrong was found"):format(path))
  end,
}
