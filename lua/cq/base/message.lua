-- message: notes and warnings to the user. On stderr, so that results on stdout can be piped.
local option = require "cq.option"

local message = {}

-- a progress line that stands on the terminal is wiped before anything else is written
message.wipe = nil

-- Writes a line to stderr, over a progress bar that is drawn there. Under MPI only the first rank writes.
local function write(line)
  if option.program.follows then return end
  if message.wipe then message.wipe() end
  io.stderr:write(line, "\n")
end

---Prints a note on stderr; nothing with --quiet.
---@param format string
---@param ... any
function message.note(format, ...)
  if not option.program.quiet then write(select("#", ...) > 0 and format:format(...) or format) end
end

local told_interruption = false

---Prints a note on what an interruption by the user (Ctrl-C) has left undone, as message.note; only the first one of
---the process.
---@param format string
---@param ... any
function message.interruption(format, ...)
  if not told_interruption then message.note(format, ...) end
  told_interruption = true
end

local noted, warned = {}, {}

---Prints a note on stderr, the same one only once; nothing with --quiet.
function message.note_once(format, ...)
  local line = format:format(...)
  if not noted[line] then message.note("%s", line) end
  noted[line] = true
end

---Prints a warning on stderr, also with --quiet; the same one only once.
---@param format string
---@param ... any
function message.warn(format, ...)
  local line = "cqlua: warning: " .. (select("#", ...) > 0 and format:format(...) or format)
  if not warned[line] then write(line) end
  warned[line] = true
end

---Prints the error that ends the program on stderr; the caller ends the program.
function message.fault(format, ...)
  write("cqlua: " .. (select("#", ...) > 0 and format:format(...) or format))
end

return message
