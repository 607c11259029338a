-- npz: NumPy's archives: a zip of .npy files, not compressed, as numpy.savez writes it.
local bit = require "bit"
local ffi = require "ffi"
local bytes = require "cq.export.bytes"
local npy = require "cq.tensor.npy"
local schema = require "cq.base.schema"
local T = require "cq.tensor"

local npz = { name = "npz",
  summary = "NumPy's archive of arrays; all frames: one file, with signals and contact forces" }

local MOST = 2 ^ 32 - 2 ^ 20      -- [byte] of an archive whose places are 32 bits

local crc_table = ffi.new "uint32_t[256]"
for k = 0, 255 do
  local c = k
  for _ = 1, 8 do c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0xEDB88320 or 0) end
  crc_table[k] = c
end

---The check sum that a ZIP archive has of each file.
---@param text string
---@return integer
local function crc32(text)
  local crc, from = bit.bnot(0), ffi.cast("const uint8_t *", text)
  for k = 0, #text - 1 do
    crc = bit.bxor(bit.rshift(crc, 8), bit.tobit(crc_table[bit.band(bit.bxor(crc, from[k]), 255)]))
  end
  return bit.bnot(crc) % 2 ^ 32
end

local VERSION, DATE = 20, 0x21               -- of the format; 1 January 1980, so that equal arrays are equal files

-- The bytes of the fields that the head of a file in a ZIP archive and its entry in the archive's list have in common.
local function described(name, content)
  return bytes.of("uint16", { VERSION, 0, 0, 0, DATE }) .. bytes.of("uint32", { crc32(content), #content, #content })
    .. bytes.of("uint16", { #name, 0 })
end

-- The bytes of an uncompressed ZIP archive of .npy files, a list { name, content }. Errors: more than 4 GiB.
local function archive(files)
  local parts, list, size = {}, {}, 0
  for _, file in ipairs(files) do
    local name, about = file.name .. ".npy", described(file.name .. ".npy", file.content)
    list[#list + 1] = "PK\1\2" .. bytes.of("uint16", { VERSION }) .. about .. bytes.of("uint16", { 0, 0, 0 })
      .. bytes.of("uint32", { 0, size }) .. name
    parts[#parts + 1] = "PK\3\4" .. about .. name .. file.content
    size = size + #parts[#parts]
    if size > MOST then
      schema.fail("an npz archive holds 4 GiB, and these frames are more; give an interval, fewer fields, or format = \"vtp\"")
    end
  end
  local directory = table.concat(list)
  return table.concat(parts) .. directory .. "PK\5\6" .. bytes.of("uint16", { 0, 0, #list, #list })
    .. bytes.of("uint32", { #directory, size }) .. bytes.of("uint16", { 0 })
end

-- Adds an array to a list of files, as { name, content }. kind: of its numbers, float64 unless given.
local function add(files, name, values, kind)
  files[#files + 1] = { name = name:gsub("[^%w_]", "_"), content = npy.encode(values, kind) }
end

-- Adds an array for each field to a list of files: of several frames {frames, n, ...}. Integers do not change, so that
-- they are of the first frame alone.
local function add_fields(files, frames)
  for k, field in ipairs(frames[1].fields) do
    if field.integer then
      add(files, field.name, field.values, "int32")
      files[#files + 1] = field.names and { name = field.name .. "_names", content = npy.encode_names(field.names) }
    else
      local all = {}
      for f, frame in ipairs(frames) do all[f] = frame.fields[k].values end
      add(files, field.name, #frames > 1 and T.stack(all, 1) or all[1], frames[1].precision)
    end
  end
end

---A frame of particles as .npz of NumPy: time, position {n, dim}, and an array for each field.
---@param frame cq.export.Frame
---@return string
function npz.particles(frame)
  local files = {}
  add(files, "time", T.tensor(frame.time))
  add(files, "position", frame.points, frame.precision)
  add_fields(files, { frame })
  return archive(files)
end

---The bytes of the archive of a whole rollout: fields {frames, n, ...} and series by control step.
---@param frames cq.export.Frame[]
---@param series cq.export.Series
---@return string
function npz.moving(frames, series)
  local files, times, points = {}, {}, {}
  for f, frame in ipairs(frames) do times[f], points[f] = frame.time, frame.points end
  add(files, "time", T.tensor(times))
  add(files, "position", T.stack(points, 1), frames[1].precision)
  add_fields(files, frames)
  add(files, "control_dt", T.tensor(series.control_dt))
  if series.signals.count > 0 then
    add(files, "signals", series.signals, frames[1].precision)
    files[#files + 1] = { name = "signal_names", content = npy.encode_names(series.signal_names) }
  end
  if series.force then
    add(files, "wall_force", series.force, frames[1].precision)
    files[#files + 1] = { name = "wall_names", content = npy.encode_names(series.wall_names) }
  end
  return archive(files)
end

return npz
