-- process: runs cqlua as a user would, for tests of the program.
local host = require "cq.host"

local process = {}

local function quote(word) return "'" .. tostring(word):gsub("'", "'\\''") .. "'" end

---A folder of its own that is empty.
---@return string
function process.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(host.make_folder(path))
  return path
end

---Removes a folder of a test, and those that earlier runs in it have moved to.
function process.remove(folder)
  assert(folder:find "^/tmp/", folder)
  os.execute(("rm -rf %s %s-earlier-*"):format(quote(folder), quote(folder)))
end

function process.write(path, content)
  local file = assert(io.open(path, "w"))
  file:write(content)
  file:close()
  return path
end

function process.read(path)
  local file = io.open(path)
  if not file then return nil end
  local content = file:read "*a"
  file:close()
  return content
end

---Is this program built with AddressSanitizer?
function process.sanitized()
  local ffi = require "ffi"
  ffi.cdef "void __asan_init(void);"
  return (pcall(function() return ffi.C.__asan_init end))
end

---Runs cqlua; a shell's `before` stands in front of it ("ulimit -f 8;"), `after` behind ("< /dev/null").
---@param words string[]
---@param shell? { before: string?, after: string? }
---@return { code: integer, out: string, err: string }
function process.cqlua(words, shell)
  local folder = process.folder()
  local parts = { quote(host.executable) }
  for _, word in ipairs(words) do parts[#parts + 1] = quote(word) end
  -- the braces: what the shell itself says of a killed process is not for the test's output
  local command = ("{ %s %s > %s/out 2> %s/err %s; echo $? > %s/code; } 2>/dev/null")
    :format(shell and shell.before or "", table.concat(parts, " "),
    folder, folder, shell and shell.after or "</dev/null", folder)
  os.execute(command)
  local result = {
    code = tonumber(process.read(folder .. "/code")), out = process.read(folder .. "/out"),
    err = process.read(folder .. "/err"),
  }
  process.remove(folder)
  return result
end

return process
