-- env: serves the environment that a script returns to another program, as Python.   cqlua env script.lua [its options]
-- examples/python/cqlua_env.py is the other side for Gymnasium and Stable-Baselines3.
local host = require "cq.host"
local scripts = require "cq.base.script"
local message = require "cq.base.message"
local text = require "cq.base.text"

-- The cq.Env that a script returns. Ends the program, as after wrong use, if it returns something else.
local function environment(path, words)
  local chunk, problem = scripts.load(path, words)
  if not chunk then error(problem, 0) end
  local env = chunk(unpack(words))
  if text.class_of(env) ~= "cq.Env" then
    scripts.misuse("%s must return the cq.Env that is to be served, as return env; it returned %s", path,
      env == nil and "nothing" or text.describe(env))
  end
  return env
end

-- Message handler: wrong use of the command line keeps its sentence, other errors get a traceback.
local function explain(problem)
  return type(problem) == "table" and problem.misuse and problem or scripts.explain(problem)
end

return {
  summary = "serves the environment that a script returns over standard input and output, to Python",
  arguments = "script.lua",
  runs_script = true,
  -- The subcommand: runs the script of `words` and serves its environment. Returns the exit code; nil: 0.
  run = function(_, words)
    local path = table.remove(words, 1)
    if not path then scripts.misuse "env needs the script that returns a cq.Env, got nothing" end
    if host.terminal(1) then
      scripts.misuse "env answers a program through standard input and output, not a terminal; see docs/python.md"
    end
    local serve = require "cq.learn.serve"
    local frames = serve.frames()
    local fine, env = xpcall(environment, explain, path, words)
    if not fine then
      local sentence = type(env) == "table" and env.misuse or env
      frames:receive()                        -- whatever was asked, it is answered so
      frames:send("error", sentence:match "^[^\n]*")
      message.fault("%s", sentence)
      return type(env) == "table" and 2 or 1
    end
    scripts.tell_unused()
    serve.run(frames, env)
  end,
}
