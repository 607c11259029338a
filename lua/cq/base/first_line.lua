-- first_line: the first line that a program prints, such as its version.

---The first line that a shell command prints.
---@param command string
---@return string?            nil: it is not there, or prints nothing
return function(command)
  local pipe = io.popen(command .. " 2>/dev/null")
  local line = pipe and pipe:read "*l"
  if pipe then pipe:close() end
  return line
end
