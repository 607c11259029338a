-- ply: Stanford's polygon files, binary, for Blender and MeshLab: particles as vertices with their fields as
-- properties, or surfaces.
local ffi = require "ffi"
local columns = require "cq.export.columns"

local ply = { name = "ply", summary = "PLY for Blender and MeshLab, binary; all frames: a file each" }

local kinds = {
  float32 = { word = "float", size = 4, pointer = ffi.typeof "float *",
    vertices = ffi.typeof "struct __attribute__((packed)) { float x[3]; int32_t body; }[?]" },
  float64 = { word = "double", size = 8, pointer = ffi.typeof "double *",
    vertices = ffi.typeof "struct __attribute__((packed)) { double x[3]; int32_t body; }[?]" },
  int = { pointer = ffi.typeof "int32_t *" },
}
local faces_of = ffi.typeof "struct __attribute__((packed)) { uint8_t count; int32_t corner[3]; }[?]"

-- The text in front of the data of a .ply file, from its lines, which are changed.
local function header(lines)
  table.insert(lines, 1, "ply\nformat binary_little_endian 1.0\ncomment cqlua")
  lines[#lines + 1] = "end_header"
  return table.concat(lines, "\n") .. "\n"
end

-- A list of the columns of a frame in a .ply file: { name, word of the format, data, at: its first number, step to the
-- next, is_integer }.
local function list_columns(frame)
  local out = {}
  -- Adds a column to the file for each component of a field.
  local function add(field)
    local names = columns.names(field, frame.dim)
    for k, name in ipairs(names) do
      out[#out + 1] = { name = name, word = field.integer and "int" or kinds[frame.precision].word, data = field.values
        :data(), at = k - 1, step = #names, values = field.values, is_integer = field.integer }
    end
    if #names == 2 and field.name == "position" then out[3] = { name = "z", word = out[1].word, at = 0, step = 0 } end
  end
  add { name = "position", values = frame.points }
  for _, field in ipairs(frame.fields) do add(field) end
  return out
end

-- Writes a column of n numbers into the file's records, double or float, of `size` bytes.
local function put(rows, size, column, kind, n)
  local data, pointer = column.data, kind.pointer
  if not data then return end                    -- zeros
  for p = 0, n - 1 do ffi.cast(pointer, rows + p * size + column.offset)[0] = data[p * column.step + column.at] end
end

---A frame of particles as binary PLY, a vertex with all fields for each particle.
---@param frame cq.export.Frame
---@return string
function ply.particles(frame)
  local list, n = list_columns(frame), frame.points:size(1)
  local lines = { ("comment time %.17g"):format(frame.time) }
  for _, note in ipairs(frame.notes) do lines[#lines + 1] = "comment " .. note end
  lines[#lines + 1] = ("element vertex %d"):format(n)
  local size, number = 0, kinds[frame.precision]
  for _, column in ipairs(list) do
    lines[#lines + 1] = ("property %s %s"):format(column.word, column.name)
    column.offset, size = size, size + (column.is_integer and 4 or number.size)
  end
  local rows = ffi.new("uint8_t[?]", math.max(n * size, 1))
  for _, column in ipairs(list) do put(rows, size, column, column.is_integer and kinds.int or number, n) end
  return header(lines) .. ffi.string(rows, n * size)
end

---Surfaces as binary PLY, in one mesh whose vertices name their body.
---@param surface cq.export.Surface
---@return string
function ply.surface(surface)
  local points, triangles, body = surface:joined()
  local n, count = points:size(1), #triangles / 3
  local kind = kinds[surface.precision]
  local vertices, faces = kind.vertices(n), faces_of(count)
  local x, which = points:data(), body:data()
  for v = 0, n - 1 do
    for d = 0, 2 do vertices[v].x[d] = x[3 * v + d] end
    vertices[v].body = which[v]
  end
  for f = 0, count - 1 do
    faces[f].count = 3
    for c = 0, 2 do faces[f].corner[c] = triangles[3 * f + c + 1] end
  end
  local lines = { ("comment time %.17g"):format(surface.time), ("element vertex %d"):format(n) }
  for _, axis in ipairs { "x", "y", "z" } do lines[#lines + 1] = ("property %s %s"):format(kind.word, axis) end
  lines[#lines + 1] = ("property int body\nelement face %d\nproperty list uchar int vertex_indices"):format(count)
  return header(lines) .. ffi.string(vertices, ffi.sizeof(vertices)) .. ffi.string(faces, ffi.sizeof(faces))
end

return ply
