-- stl: binary files of triangles, for printers.
local ffi = require "ffi"
local text = require "cq.base.text"

local stl = { name = "stl", summary = "STL for printers, binary, surfaces; all frames: a file each" }

ffi.cdef [[
typedef struct __attribute__((packed)) cq_stl_facet { float normal[3], corner[3][3]; uint16_t attribute; } cq_stl_facet;
]]

-- Are two corners, of three numbers, at the same place?
local function same(a, b) return a[0] == b[0] and a[1] == b[1] and a[2] == b[2] end

-- Sets the normal of a facet, of length 1, from its corners, which turn to the left seen from outside; 0 where they lie
-- on a line.
local function set_normal(facet)
  local a, b, c, n = facet.corner[0], facet.corner[1], facet.corner[2], {}
  for d = 0, 2 do
    local e, f = (d + 1) % 3, (d + 2) % 3
    n[d] = (b[e] - a[e]) * (c[f] - a[f]) - (b[f] - a[f]) * (c[e] - a[e])
  end
  local length = math.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
  for d = 0, 2 do facet.normal[d] = length > 0 and n[d] / length or 0 end
end

---Writes a surface as STL, without triangles that are degenerate in the file's digits: the surface stays closed.
---@param surface cq.export.Surface
---@return string
function stl.surface(surface)
  local points, triangles = surface:joined()
  local facets, count, x = ffi.new("cq_stl_facet[?]", math.max(#triangles / 3, 1)), 0, points:data()
  for k = 1, #triangles, 3 do
    local corner = facets[count].corner
    for c = 0, 2 do
      for d = 0, 2 do corner[c][d] = x[3 * triangles[k + c] + d] end
    end
    local is_line = same(corner[0], corner[1]) or same(corner[1], corner[2]) or same(corner[2], corner[0])
    set_normal(facets[count])
    count = count + (is_line and 0 or 1)
  end
  local head = ("cqlua; %s"):format(text.count(count, "triangle"))
  return head .. (" "):rep(80 - #head) .. ffi.string(ffi.new("uint32_t[1]", count), 4) .. ffi.string(facets, count * 50)
end

return stl
