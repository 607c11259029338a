-- export: files that other programs read. One table of formats, a file each in export/; what a format can hold is what
-- its file has functions for, and help and errors are made from the table.
--
--   particles(frame)        particles of one moment with their fields
--   surface(surface)        surfaces of bodies at one moment
--   moving(frames, series)  all frames in one file; formats without it write a file for each, and `list` of them
local atomic_file = require "cq.base.atomic_file"
local host = require "cq.host"
local is = require "cq.base.schema"
local place = require "cq.base.place"
local text = require "cq.base.text"

local export = {}

---@class cq.export.Field
---@field name string
---@field unit string?
---@field values cq.Tensor      {n}, {n, dim} or {n, dim, dim}
---@field integer boolean?      whole numbers, as of groups
---@field names string[]?       of the numbers 0, 1, ... of integers

---Particles of one moment.
---@class cq.export.Frame
---@field time number
---@field dim integer
---@field points cq.Tensor      {n, dim} [length]
---@field fields cq.export.Field[]
---@field notes string[]        lines for people
---@field precision "float32"|"float64"
---@field units table<string, string>?

---What a rollout has beside its frames.
---@class cq.export.Series
---@field control_dt number
---@field signals cq.Tensor     {steps, signals}
---@field signal_names string[]
---@field force cq.Tensor?      {steps, walls, dim} mean force of each wall in each control step
---@field wall_names string[]

export.formats = {}
for k, name in ipairs { "vtp", "ply", "npz", "csv", "obj", "stl", "glb" } do
  export.formats[k] = require("cq.export." .. name)
  export.formats[name] = export.formats[k]
end

-- ---- which format ---------------------------------------------------------------------------------------------------

local WORDS = { particles = "particles", surface = "surfaces" }

---A list of the names of the formats that hold particles or a surface; of all formats without `holds`.
---@param holds? "particles"|"surface"
---@return string[]
function export.names(holds)
  local out = {}
  for _, format in ipairs(export.formats) do
    if not holds or format[holds] then out[#out + 1] = format.name end
  end
  return out
end

-- The file endings of formats that hold particles or surfaces, as text.
local function endings(holds) return "." .. table.concat(export.names(holds), ", .") end

---The file format of a path, and whether it holds particles or a surface. Errors: an unknown ending; a format that
---does not hold what is asked for.
---@param what string           for the errors
---@param path string
---@param as? "particles"|"surface"    particles if the format holds them, else surface, unless given
---@return table format, "particles"|"surface" as
function export.of(what, path, as)
  local ending = path:match "%.(%w+)$"
  local format = ending and export.formats[ending]
  if not format then
    is.fail("%s: path must end in one of %s, got %s", what, endings(as), text.describe(path))
  end
  as = as or format.particles and "particles" or "surface"
  if not format[as] then
    is.fail("%s: .%s files hold no %s; %s take them", what, format.name, WORDS[as], endings(as))
  end
  return format, as
end

-- ---- writing --------------------------------------------------------------------------------------------------------

---Writes a file, whole or not at all; none in cqlua check and on ranks but the first.
---@param what string           for the error
---@param path string
---@param content string
function export.write(what, path, content)
  if not place.is_left_out() then atomic_file.write(path, content, { what = what }) end
end

-- Removes the files of an earlier series that had more frames than `count`: those that go on with its numbers, without
-- a gap. Others are the user's own.
local function remove_others(folder, ending, count)
  local number = count
  while os.remove(("%s/%05d.%s"):format(folder, number, ending)) do number = number + 1 end
end

---A series of files, 00000.EXT and so on, in the folder named by the path without its ending. Closing it removes files
---of a longer series that was there, and gives the path of their list, or the folder where the format has none. Errors:
---the path lies in a folder that is not there; the folder cannot be made.
---@param what string
---@param path string
---@param format table
---@return { add: fun(self: table, content: string, time: number), close: fun(self: table): string }
function export.series(what, path, format)
  local front = path:gsub("%.%w+$", "")
  local name, files, made = front:match "[^/]*$", {}, false
  return {
    -- Writes a file with this content as the next one of the series, at a time.
    add = function(_, content, time)
      if not made and not place.is_left_out() then
        local problem = atomic_file.problem(front .. "." .. format.name)
        if problem then is.fail("%s: %s cannot be written: %s", what, path, problem) end
        made, problem = host.make_folder(front)
        if not made then is.fail("%s: the folder %s cannot be made: %s", what, front, tostring(problem)) end
      end
      local file = ("%05d.%s"):format(#files, format.name)
      files[#files + 1] = { path = name .. "/" .. file, time = time }
      export.write(what, front .. "/" .. file, content)
    end,
    -- Writes the list of the series' files, if the format has one, and removes files of an earlier, longer series.
    -- Returns the path of the list, or of the folder.
    close = function()
      if place.is_left_out() then return front end
      local list = format.index and front .. "." .. format.index
      if list then export.write(what, list, format.list(files)) end
      remove_others(front, format.name, #files)
      return list or front
    end,
  }
end

return export
