-- folder: where a run leaves its files: made, kept from other runs, and cleared of earlier ones.
local ffi = require "ffi"
local atomic_file = require "cq.base.atomic_file"
local host = require "cq.host"
local json = require "cq.base.json"
local message = require "cq.base.message"
local place = require "cq.base.place"
local read_file = require "cq.base.read_file"
local schema = require "cq.base.schema"

ffi.cdef "char *mkdtemp(char *pattern);"

local folder = {}

-- Advice to take another folder than `path`: with --out, unless the script names the folder.
local function another(path)
  local default = place.default_folder()
  local is_default = path == default or path:sub(1, #default + 1) == default .. "/"
  return is_default and "choose another with --out" or "choose another"
end

---Creates a folder if needed; an error if it cannot hold files, before any work is done.
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
  schema.fail("the folder %s cannot be written: %s; %s", path, tostring(problem), another(path))
end

---@type table<string, integer>     folders that this process has locked
local locks = {}

---Locks a folder for this process, so that two runs do not mix their files. A run that this process left open there
---counts as over. Errors: another process holds the lock.
function folder.lock(path)
  local lock = locks[path] or host.lock(path)
  if lock == false then
    local count = tonumber(os.getenv "OMPI_COMM_WORLD_SIZE" or os.getenv "PMI_SIZE" or "1")
    schema.fail("another run is at work in the folder %s; %s, or let it end%s", path, another(path), count > 1
      and ("; mpirun has started %d, and a script that is to be one of them asks for cq.Ranks.mpi()"):format(count) or "")
  end
  locks[path] = lock
end

---Is a run at work in the folder, of this process or another one? True where that cannot be known.
---@param path string
---@return boolean
function folder.is_locked(path)
  local lock = host.lock(path)
  if lock then host.unlock(lock) end
  return not lock
end

-- Releases the lock on a run's folder.
function folder.unlock(path)
  if locks[path] then host.unlock(locks[path]) end
  locks[path] = nil
end

---Removes the temporary files of killed processes from a folder.
function folder.sweep(path) atomic_file.sweep(path) end

---Creates and locks a run's folder again if it was removed while the run was at work.
---@return boolean made      false: it is there
function folder.restore(path)
  if host.kind(path) == "folder" then return false end
  folder.make(path)
  folder.unlock(path)         -- what was locked is gone
  folder.lock(path)
  message.warn("the folder %s was removed while its run went on; it was made again", path)
  return true
end

-- what a run leaves, by which its folder is known
local files = {
  "history.csv", "manifest.json", "script.lua", "params.bin", "optimizer.bin", "best.bin", "saved.bin", "design.json",
  "failure.bin",
}
local of_stage = { "state.bin", "saved.bin" }

-- A list of all files of the run in a folder, as paths within it, each subfolder after its contents, so that they can
-- be removed in this order. A user's own files are not listed.
local function left_in(path)
  local out = {}
  -- Appends a file or folder to the list, if it exists.
  local function add(name)
    if host.kind(path .. "/" .. name) then out[#out + 1] = name end
  end
  local fine, manifest = pcall(json.decode, read_file(path .. "/manifest.json") or "")
  local sources = fine and type(manifest) == "table" and type(manifest.sources) == "table" and manifest.sources or {}
  for name in pairs(sources) do
    name = "sources/" .. tostring(name)
    add(name)
    while name do
      name = name:match "^(.*)/[^/]*$"
      if name then add(name) end
    end
  end
  for _, stage in ipairs(host.entries(path .. "/stages") or {}) do
    for _, name in ipairs(of_stage) do add(("stages/%s/%s"):format(stage, name)) end
    add("stages/" .. stage)
  end
  for _, name in ipairs(host.entries(path .. "/checkpoints") or {}) do
    if name:match "^%d+%.bin$" then add("checkpoints/" .. name) end
  end
  for _, name in ipairs(host.entries(path) or {}) do
    if name:match "^script%-%d+%.lua$" then add(name) end
  end
  for _, name in ipairs { "stages", "checkpoints", "plan.json", unpack(files) } do add(name) end
  return out
end

---Does the folder hold a run, finished or not?
---@param path string
---@return boolean
function folder.has_run(path)
  for _, name in ipairs(files) do
    if host.kind(path .. "/" .. name) then return true end
  end
  return false
end

-- Is `inner` the folder `path` itself or a path within it?
local function holds(path, inner)
  local outer, resolved = host.resolve(path), host.resolve(inner)
  return outer and resolved and (resolved .. "/"):sub(1, #outer + 1) == outer .. "/"
end

-- A sentence why a folder cannot be moved; nil if it can. script: path of the script that runs, or nil.
local function why_not_moved(path, script)
  if holds(path, ".") then return "the program was started in it" end
  if script and holds(path, script) then return "the script lies in it" end
end

---Was this file, or one in this folder, written since the program began?
---@param path string
---@return boolean
function folder.is_changed(path)
  if host.kind(path) ~= "folder" then return host.changed(path) == true end
  for _, name in ipairs(host.entries(path) or {}) do
    if folder.is_changed(path .. "/" .. name) then return true end
  end
  return false
end

---Moves an earlier run away, so that it is not overwritten: renames its folder, with everything in it, to
---NAME-earlier-1, -2, ..., and creates the folder anew. Entries for which `stays` is true go back into it. The folder
---is locked before and after. Errors: the folder cannot be moved.
---@param path string
---@param stays fun(name: string, moved: string): boolean   does this entry, which is at `moved` now, belong to the run
---  that begins?
---@param script? string                       path of the script that runs
function folder.move_earlier(path, stays, script)
  local refused = "the folder %s has an earlier run and cannot be moved to %s: %s; choose another folder with --out, or "
    .. "give --overwrite to lose the earlier run"
  local earlier, moved = place.unused(path:gsub("(.)/+$", "%1") .. "-earlier-"), nil
  local problem = why_not_moved(path, script)
  if not problem then moved, problem = os.rename(path, earlier) end
  if not moved then schema.fail(refused, path, earlier, problem) end
  folder.unlock(path)
  folder.make(path)
  folder.lock(path)
  for _, name in ipairs(host.entries(earlier) or {}) do
    local there = earlier .. "/" .. name
    if stays(name, there) then os.rename(there, path .. "/" .. name) end
  end
  message.note("the earlier run in %s is now in %s", path, earlier)
end

---Removes the files of an earlier run from a folder, so that none is taken for one of the new run.
---@param path string
function folder.remove_earlier(path)
  -- a folder goes when it is empty
  for _, name in ipairs(left_in(path)) do os.remove(path .. "/" .. name) end
end

---Removes the saved files of stages of a plan that will be made again.
---@param path string
---@param stays table<string, boolean>     names of the stages that are not
function folder.remove_stages(path, stays)
  for _, name in ipairs(host.entries(path .. "/stages") or {}) do
    local stage = path .. "/stages/" .. name
    for _, file in ipairs(stays[name] and {} or of_stage) do os.remove(stage .. "/" .. file) end
    os.remove(stage)
  end
  os.remove(path .. "/stages")
end

---Copies files of the run in a folder to another folder, which is there.
---@param path string
---@param to string
---@param picks? fun(name: string): boolean   which of its files, by their paths within the folder; all unless given
function folder.copy(path, to, picks)
  for _, name in ipairs(left_in(path)) do
    if host.kind(path .. "/" .. name) == "file" and (not picks or picks(name)) then
      local within = name:match "^(.*)/"
      if within then folder.make(to .. "/" .. within) end
      atomic_file.write(to .. "/" .. name, read_file(path .. "/" .. name), { durable = true })
    end
  end
end

---Copies the files of a run into a subfolder, before the run is repeated from an earlier stage; the copy can be
---resumed too.
---@param path string
---@return string kept         path of the subfolder
function folder.keep_earlier(path)
  local kept = place.unused(path .. "/earlier-")
  folder.make(kept)
  folder.copy(path, kept)
  return kept
end

-- ---- for runs that are only checked ---------------------------------------------------------------------------------

---Raises an error if a folder cannot be written; leaves no new folder behind.
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

---Creates a temporary folder. Errors: TMPDIR cannot be written.
---@return string path
function folder.scratch()
  local pattern = (os.getenv "TMPDIR" or "/tmp") .. "/cqlua-XXXXXX"
  local path = ffi.new("char[?]", #pattern + 1, pattern)
  if ffi.C.mkdtemp(path) == nil then
    schema.fail("no temporary folder %s can be made; set TMPDIR to a folder that can be written", pattern)
  end
  return ffi.string(path)
end

---Removes a temporary folder with all that is in it.
---@param path string         from scratch
function folder.remove_scratch(path)
  for _, name in ipairs(host.entries(path) or {}) do
    local one = path .. "/" .. name
    if not os.remove(one) then folder.remove_scratch(one) end
  end
  os.remove(path)
end

return folder
