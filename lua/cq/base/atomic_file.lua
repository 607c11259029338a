-- atomic_file: files that are written whole or not at all: as NAME.PID.part beside, which is renamed. A process that is
-- killed leaves its part.
--
--   atomic_file.write("table.csv", text)              an error where any of it cannot be written
--   atomic_file.write("params.bin", bytes, { durable = true })
local ffi = require "ffi"
local engine = require "cq.base.engine"
local host = require "cq.host"

ffi.cdef "int getpid(void); int kill(int pid, int signal);"

local atomic_file = {}

---Replaces a file as a whole. Where that fails, as on a full disk, the old file stays and an error is raised.
---@param path string
---@param content string
---@param how? { what: string?, durable: boolean? }    who writes, for errors; durable: flushed to disk, for what a power cut must not
---  take
function atomic_file.write(path, content, how)
  engine.check(engine.C.cq_file_replace(path, ffi.cast("const void *", content), #content,
    how and how.durable and 1 or 0), how and how.what)
end

---Why a file cannot be written, in words; nil where it can. The file is not changed.
---@param path string
---@return string?
function atomic_file.problem(path)
  if host.kind(path) == "folder" then return "it is a folder" end
  local probe = atomic_file.of(path)
  local file, problem = io.open(probe, "wb")
  if not file then
    local folder = path:match "^(.*)/"
    if folder and folder ~= "" and not host.kind(folder) then return ("there is no folder %s"):format(folder) end
    return (tostring(problem):gsub("^.-: ", "", 1))
  end
  file:close()
  os.remove(probe)
end

local ESRCH = 3              -- there is no such process

---The temporary file that becomes `path` when this process has written it.
---@param path string
---@return string
function atomic_file.of(path) return ("%s.%d.part"):format(path, ffi.C.getpid()) end

-- Does this process, by its id, still run?
local function is_alive(process) return ffi.C.kill(process, 0) == 0 or ffi.errno() ~= ESRCH end

-- what runs write: no other program's parts are touched
local kinds = {
  csv = true, json = true, lua = true, bin = true, png = true, stl = true, mp4 = true, mkv = true, webm = true,
  gif = true, log = true, status = true, vtp = true, pvd = true, ply = true, npz = true, npy = true, obj = true,
  glb = true, html = true,
}

---Removes temporary files of killed processes from a folder; only of the endings that runs write.
---@param folder string
---@param begins? string      only names that begin so
function atomic_file.sweep(folder, begins)
  for _, name in ipairs(host.entries(folder) or {}) do
    local kind, process = name:match "%.(%a%w*)%.([1-9]%d*)%.part$"
    process = tonumber(process)
    local ours = kinds[kind] and process < 2 ^ 31 and (not begins or name:sub(1, #begins) == begins)
    if ours and not is_alive(process) then os.remove(folder .. "/" .. name) end
  end
end

---Removes temporary files that killed processes wrote for one path.
---@param path string
function atomic_file.sweep_of(path)
  local folder, name = path:match "^(.*)/([^/]*)$"
  if folder == "" then folder = "/" end
  atomic_file.sweep(folder or ".", (name or path) .. ".")
end

return atomic_file
