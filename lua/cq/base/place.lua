-- place: where a file goes that a script writes. A name without a slash is in the folder of the run; a path with one is
-- as it stands.
--
--   place.of "gait.mp4"                runs/walk/gait.mp4 of the script walk.lua
--   place.of "./gait.mp4"              in the current folder
local host = require "cq.host"
local option = require "cq.option"
local schema = require "cq.base.schema"
local script = require "cq.base.script"

local place = {
  open = nil, ---@type { folder: string }?      the run that is open
}

---The folder of a run that names none: --out, else runs/<name of the script>, or runs/cqlua for a script from
---standard input.
---@return string
function place.default_folder()
  local name = (script.path and script.path ~= "-" and script.path or "cqlua"):match "([^/]+)$":gsub("%.lua$", "")
  return option.program.out or "runs/" .. name
end

---The folder of a run. Without a run: the folder of the run that is open now; if none is, the folder that a run of the
---script would take.
---@param run? { folder: string? }
---@return string
function place.folder(run) return run and run.folder or place.open and place.open.folder or place.default_folder() end

---Does the script write no files? True under cqlua check, and under MPI on all ranks but the first.
---@return boolean
function place.is_left_out() return option.program.check or option.program.follows end

---The first of the paths FRONT1, FRONT2, ... that is neither a file nor a folder.
---@param front string          a path without its number
---@return string
function place.unused(front)
  local count = 1
  while host.kind(front .. count) do count = count + 1 end
  return front .. count
end

---Makes a folder and returns the path of a file in it. Errors: a folder that cannot be made.
---@param folder string
---@param name string
---@return string
function place.within(folder, name)
  local path = folder .. "/" .. name
  local made, problem = host.make_folder(path:match "^(.*)/")
  if not made then schema.fail("the folder of %s cannot be made: %s; choose another with --out", path, tostring(problem)) end
  return path
end

---The path that a file is written to. A path with a slash stays as it is. A name without one is in the run's folder, as
---place.folder, which is made unless place.is_left_out. Errors: a folder that cannot be made.
---@param path string
---@param run? { folder: string? }    whose folder takes a name
---@return string
function place.of(path, run)
  if path:find("/", 1, true) then return path end
  local folder = place.folder(run)
  return place.is_left_out() and folder .. "/" .. path or place.within(folder, path)
end

return place
