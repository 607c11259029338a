-- folder: where a run leaves its files: made, kept from other runs, and cleared of earlier ones.
local ffi = require "ffi"
local host = require "cq.host"
local message = require "cq.base.message"
local part = require "cq.run.part"
local schema = require "cq.base.schema"

ffi.cdef "char *mkdtemp(char *pattern);"

local folder = {}

---Makes it, or finds it there; it takes files, which is told before any work is done.
---@param path string
function folder.make(path)
  local made, problem = host.make_folder(path)
  local probe = path .. "/.writable"
  if made then
    local file
    file, problem = io.open(probe, "w")
    if file then
      file:close()
      os.remove(probe)
      return
    end
    problem = tostring(problem):gsub("^.-: ", "", 1)
  end
  schema.fail("the folder %s cannot be written: %s; choose another with --out", path, tostring(problem))
end

---@type table<string, integer>     folders that this process has locked
local locks = {}

---Two runs in one folder would mix their files; one whose script went on without finishing it is over.
function folder.lock(path)
  local lock = locks[path] or host.lock(path)
  if lock == false then
    local count = tonumber(os.getenv "OMPI_COMM_WORLD_SIZE" or os.getenv "PMI_SIZE" or "1")
    schema.fail("another run is at work in the folder %s; choose another with --out, or let it end%s", path, count > 1
      and ("; mpirun has started %d, and a script that is to be one of them asks for cq.Ranks.mpi()"):format(count) or "")
  end
  locks[path] = lock
end

function folder.unlock(path)
  if locks[path] then host.unlock(locks[path]) end
  locks[path] = nil
end

---Removes what killed runs were writing here.
function folder.sweep(path) part.sweep(path) end

---Makes one that was removed while its run went on.
---@return boolean made      false: it is there
function folder.restore(path)
  if host.kind(path) == "folder" then return false end
  folder.make(path)
  folder.unlock(path)         -- what was locked is gone
  folder.lock(path)
  message.warn("the folder %s was removed while its run went on; it was made again", path)
  return true
end

local files = { "history.csv", "manifest.json", "script.lua", "params.bin", "optimizer.bin", "best.bin", "design.json" }

---What an earlier run left here is never overwritten: it moves to earlier-1, earlier-2, ...
function folder.move_earlier(path)
  local found = {}
  for _, name in ipairs(files) do
    if host.kind(path .. "/" .. name) then found[#found + 1] = name end
  end
  if #found == 0 then return end
  local count = 1
  while host.kind(("%s/earlier-%d"):format(path, count)) do count = count + 1 end
  local earlier = ("%s/earlier-%d"):format(path, count)
  folder.make(earlier)
  for _, name in ipairs(found) do
    local moved, problem = os.rename(path .. "/" .. name, earlier .. "/" .. name)
    if not moved then schema.fail("the earlier run in %s cannot be moved away: %s", path, problem) end
  end
  message.note("the earlier run in %s is now in %s", path, earlier)
end

-- ---- for runs that are only checked ---------------------------------------------------------------------------------

---Can this folder be written? An error if not; nothing is left there.
---@param path string
function folder.check(path)
  local missing, rest = {}, path
  while rest and rest ~= "" and not host.kind(rest) do
    missing[#missing + 1] = rest
    rest = rest:match "^(.*)/[^/]*$"
  end
  local fine, problem = pcall(folder.make, path)
  for _, made in ipairs(missing) do os.remove(made) end
  if not fine then error(problem, 0) end
end

---A new folder among the temporary ones.
---@return string path
function folder.scratch()
  local pattern = (os.getenv "TMPDIR" or "/tmp") .. "/cqlua-XXXXXX"
  local path = ffi.new("char[?]", #pattern + 1, pattern)
  if ffi.C.mkdtemp(path) == nil then
    schema.fail("no temporary folder %s can be made; set TMPDIR to a folder that can be written", pattern)
  end
  return ffi.string(path)
end

---Removes it with its files.
---@param path string         from scratch
function folder.remove_scratch(path)
  for _, name in ipairs(host.entries(path) or {}) do os.remove(path .. "/" .. name) end
  os.remove(path)
end

return folder
