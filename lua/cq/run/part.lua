-- part: files that are being written, NAME.PID.part beside what they will be. A process that is killed leaves its own.
local ffi = require "ffi"
local host = require "cq.host"

ffi.cdef "int getpid(void); int kill(int pid, int signal);"

local part = {}

local ESRCH = 3              -- there is no such process

---Where this process writes what will be `path`.
---@param path string
---@return string
function part.of(path) return ("%s.%d.part"):format(path, ffi.C.getpid()) end

local function is_alive(process) return ffi.C.kill(process, 0) == 0 or ffi.errno() ~= ESRCH end

-- what runs write: no other program's parts are touched
local kinds = {
  csv = true, json = true, lua = true, bin = true, mp4 = true, mkv = true, webm = true, gif = true, log = true,
  status = true,
}

---Removes what killed processes have left in a folder.
---@param folder string
---@param begins? string      only names that begin so
function part.sweep(folder, begins)
  for _, name in ipairs(host.entries(folder) or {}) do
    local kind, process = name:match "%.(%a%w*)%.([1-9]%d*)%.part$"
    process = tonumber(process)
    local ours = kinds[kind] and process < 2 ^ 31 and (not begins or name:sub(1, #begins) == begins)
    if ours and not is_alive(process) then os.remove(folder .. "/" .. name) end
  end
end

---Removes what killed processes have left of a file.
---@param path string
function part.sweep_of(path)
  local folder, name = path:match "^(.*)/([^/]*)$"
  if folder == "" then folder = "/" end
  part.sweep(folder or ".", (name or path) .. ".")
end

return part
