-- vtp: VTK's PolyData, which ParaView opens: XML that says where each array lies in the raw bytes behind it. A time
-- series is a file for each state and a list of them, .pvd.
local ffi = require "ffi"
local bytes = require "cq.export.bytes"
local columns = require "cq.export.columns"
local T = require "cq.tensor"

local vtp = { name = "vtp", summary = "VTK PolyData for ParaView, raw; all frames with a .pvd", index = "pvd" }

local types = { float32 = "Float32", float64 = "Float64", int32 = "Int32", int64 = "Int64" }

-- The section behind the XML that holds the arrays: of each a count of bytes, then the bytes, in the order in which the
-- XML names them.
local Appended = {}
Appended.__index = Appended

-- Appends an array to the file's binary data; returns its XML element. kind: of bytes.of; more: further attributes.
function Appended:array(name, kind, values, more)
  local raw = bytes.of(kind, values)
  self.parts[#self.parts + 1] = bytes.of("int64", { #raw }) .. raw
  local xml = ('<DataArray type="%s" Name="%s"%s format="appended" offset="%d"/>'):format(types[kind], name, more or "",
    self.offset)
  self.offset = self.offset + 8 + #raw
  return xml
end

-- Vectors {n, 3} from vectors {n, dim}, with z = 0 in 2D.
local function in_space(values)
  return values:size(2) == 3 and values or T.concat({ values, T.zeros { values:size(1), 1 } }, 2)
end

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
-- Text with XML's special characters escaped.
local function escaped(text) return (text:gsub('[&<>"]', entities)) end

-- The XML of one field of the points, whose numbers are appended to out. A vector in 2D gets z = 0, so that ParaView
-- can draw arrows; a matrix keeps its dim * dim components.
local function field_array(out, field, frame)
  local values, names = field.values, columns.names(field, frame.dim)
  local more = #names > 1 and (' NumberOfComponents="%d"'):format(#names) or ""
  if values.rank == 2 and values:size(2) == frame.dim then
    values, more = in_space(values), ' NumberOfComponents="3"'
  elseif #names > 1 then
    for k, name in ipairs(names) do more = ('%s ComponentName%d="%s"'):format(more, k - 1, name:match "_(%w+)$") end
  end
  return out:array(escaped(field.name), field.integer and "int32" or frame.precision, values, more)
end

-- The XML of `count` cells of one kind (name: Verts or Polys) with `size` corners each; corner: indices of points from
-- 0
local function cells(out, name, size, corner, count)
  local offsets = {}
  for k = 1, count do offsets[k] = k * size end
  return ("<%s>\n%s\n%s\n</%s>"):format(name, out:array("connectivity", "int32", corner),
    out:array("offsets", "int32", offsets), name)
end

-- The contents of a .vtp file, with the points {n, dim} and the frame's fields of them. counts: the numbers of cells,
-- verts and polys; cells_xml(out): the XML of these cells, whose arrays it appends to out.
local function polydata(frame, points, counts, cells_xml)
  local out = setmetatable({ parts = {}, offset = 0 }, Appended)
  local xml = {
    '<?xml version="1.0"?>',
    '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">', "<PolyData>",
    ('<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">%.17g</DataArray></FieldData>')
      :format(frame.time),
    ('<Piece NumberOfPoints="%d" NumberOfVerts="%d" NumberOfLines="0" NumberOfStrips="0" NumberOfPolys="%d">')
      :format(points:size(1), counts.verts, counts.polys),
    "<Points>" .. out:array("Points", frame.precision, in_space(points), ' NumberOfComponents="3"') .. "</Points>",
    "<PointData>",
  }
  for _, field in ipairs(frame.fields) do xml[#xml + 1] = field_array(out, field, frame) end
  xml[#xml + 1] = "</PointData>"
  xml[#xml + 1] = cells_xml(out)
  xml[#xml + 1] = "</Piece>\n</PolyData>"
  return table.concat(xml, "\n") .. '\n<AppendedData encoding="raw">\n_' .. table.concat(out.parts)
    .. "\n</AppendedData>\n</VTKFile>\n"
end

---A frame of particles as VTK PolyData, a vertex cell for each particle.
---@param frame cq.export.Frame
---@return string
function vtp.particles(frame)
  local n, corner = frame.points:size(1), {}
  for k = 1, n do corner[k] = k - 1 end
  return polydata(frame, frame.points, { verts = n, polys = 0 }, function(out)
    return cells(out, "Verts", 1, corner, n)
  end)
end

---Surfaces as VTK PolyData, triangles with the number of the body at each vertex.
---@param surface cq.export.Surface
---@return string
function vtp.surface(surface)
  local points, triangles, body = surface:joined()
  local frame = { time = surface.time, precision = surface.precision, dim = 3,
    fields = { { name = "body", integer = true, values = body } } }
  return polydata(frame, points, { verts = 0, polys = #triangles / 3 }, function(out)
    return cells(out, "Polys", 3, triangles, #triangles / 3)
  end)
end

---The list of the files of a time series.
---@param files { path: string, time: number }[]    beside the list
---@return string
function vtp.list(files)
  local xml = { '<?xml version="1.0"?>', '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">',
    "<Collection>" }
  for _, one in ipairs(files) do
    xml[#xml + 1] = ('<DataSet timestep="%.17g" part="0" file="%s"/>'):format(one.time, escaped(one.path))
  end
  return table.concat(xml, "\n") .. "\n</Collection>\n</VTKFile>\n"
end

assert(ffi.abi "le", "files are written as the bytes of a little-endian machine")

return vtp
