-- taken: the folders that runs of the script have taken. A run whose folder another run of the script has taken before
-- is in the subfolder run-2 of it, the next one in run-3: by the order in which they begin, so that --resume finds each
-- of them again, and none goes on with another one or replaces it. Not so where the script names the folder: that has
-- the run that began last, as such scripts read it there.
--
--   runs/walk                    the first run of walk.lua
--   runs/walk/run-2              the second one, which has no name either
--   runs/walk/fixed              one with name = "fixed"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local script = require "cq.base.script"

local taken = {}

-- A path without the slashes at its end.
local function plain(path) return (path:gsub("(.)/+$", "%1")) end

---Two values for the run that begins next: its folder, and its name as one of several runs of the script (nil: it has
---none). The given ones, unless that folder is taken and the run does not go on in it.
---@param folder string
---@param name? string           that the run was given
---@param goes_on? boolean       the script itself says that the run resumes what lies there
---@return string folder, string? name
function taken.next(folder, name, goes_on)
  local before = script.folders[plain(folder)]
  if before == nil then return folder, name end
  if goes_on then return folder, name or before or nil end
  local count = 2
  -- The path of the subfolder with the present number.
  local function inner() return ("%s/run-%d"):format(plain(folder), count) end
  while script.folders[inner()] ~= nil do count = count + 1 end
  if not (option.program.replay or option.program.check) then
    message.note("the script has a run in %s already; this one is in %s", folder, inner())
  end
  return inner(), ("%srun-%d"):format(name and name .. "/" or "", count)
end

---Raises an error if --resume would go on with a run that the script itself has begun.
---@param folder string
---@param resume? boolean         as the script says
function taken.check(folder, resume)
  if resume ~= nil or not taken.has(folder) or not option.get("resume", false) then return end
  is.fail("the script has two runs in %s, which --resume cannot tell apart; give each a folder or a name of its own",
    folder)
end

---Notes that a run of the script is in a folder.
---@param folder string
---@param name? string           as taken.next gives it
function taken.add(folder, name) script.folders[plain(folder)] = name or false end

---Notes that no run of the script is in a folder.
---@param folder string
function taken.remove(folder) script.folders[plain(folder)] = nil end

---Has a run of the script taken this folder?
---@param folder string
---@return boolean
function taken.has(folder) return script.folders[plain(folder)] ~= nil end

return taken
