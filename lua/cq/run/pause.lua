-- pause: Ctrl-C at a terminal asks what is to be done, at the end of the iteration: go on, stop, or a prompt with what
-- is trained at hand. Elsewhere, and at a second Ctrl-C, it stops.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local host = require "cq.host"
local message = require "cq.base.message"
local option = require "cq.option"
local script = require "cq.base.script"
local watch = require "cq.base.watch"

local C = engine.C

ffi.cdef "void clearerr(void *stream); int siginterrupt(int signal, int ends);"

local ENDING = { 2, 15, 1 }          -- Ctrl-C, SIGTERM, SIGHUP

-- What is meant by an answer; an empty one goes on.
local answers = { c = "continue", continue = "continue", [""] = "continue", s = "stop", stop = "stop", p = "prompt",
  prompt = "prompt" }

local pause = {}

-- Can the program ask the user: is it a single process at a terminal?
local function can_ask()
  local Ranks = package.loaded["cq.ranks"]
  return script.prompt and not option.program.quiet and not (Ranks and Ranks.current())
    and host.terminal(0) ~= nil and host.terminal(2) ~= nil
end

-- Writes a question to the terminal and reads the answer, a line; nil at the end of input, or at another Ctrl-C.
local function ask(question)
  io.stderr:write(question)
  io.stderr:flush()
  ffi.C.clearerr(io.stdin)
  for _, signal in ipairs(ENDING) do ffi.C.siginterrupt(signal, 1) end
  local line = io.read "*l"
  for _, signal in ipairs(ENDING) do ffi.C.siginterrupt(signal, 0) end
  if C.cq_interrupted() ~= 0 then return nil end
  return line
end

-- Opens a Lua prompt within a paused run; the manifest stores the statements that were typed. about: as in pause.stops.
local function prompt(about)
  local typed = script.prompt(about.globals)
  local manifest = about.run and about.run.manifest
  if manifest and #typed > 0 then
    manifest.prompt = manifest.prompt or {}
    manifest.prompt[#manifest.prompt + 1] = { iteration = about.iteration, text = table.concat(typed, "\n") }
  end
end

---Shall the run stop? After Ctrl-C at a terminal asks whether to go on, stop, or open a prompt; elsewhere it shall, as
---it shall with --watch when a new version of the script was saved.
---@param about { iteration: integer, run: cq.Run?, globals: table, save: fun()? }   globals: of the prompt; save: before it asks
---@return boolean
function pause.stops(about)
  if watch.wants() then
    C.cq_interrupt(1)
    return true
  end
  if C.cq_interrupted() == 0 then return false end
  if not can_ask() then return true end
  if message.wipe then message.wipe() end
  if about.save then about.save() end          -- who is asked may end the program
  while true do
    C.cq_interrupt(0)
    host.listen()
    local answer = ask(("after iteration %d: continue, stop or prompt [c/s/p]? "):format(about.iteration))
    local word = answer and answers[answer:match "^%s*(.-)%s*$"]
    if not answer or word == "stop" then
      C.cq_interrupt(1)
      return true
    elseif word == "prompt" then
      prompt(about)
    elseif word == "continue" then
      engine.interruption = nil
      return false
    else
      message.note("answer c, s or p; Lua is typed at the prompt, after p")
    end
  end
end

return pause
