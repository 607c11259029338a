-- piece: a convex cell clipped by one plane after another, as faces to be drawn.
--
-- Planes are where linear fields are zero. A corner is named by the nodes of the cell's edge, face or inside that it
-- lies in and by the planes through it, and whoever comes to it by the same name gets the same one: pieces of cells
-- that share a face share its corners to the last bit, however many planes meet there, so that what they enclose
-- together is closed.

---@class cq.export.Corner
---@field nodes integer[]     that it lies between, ascending
---@field cuts integer[]      planes through it, ascending
---@field place number[]      {3} [length]
---@field value number[]      of each field

local piece = {}

-- The ascending union of two ascending lists of numbers; with `both` their intersection.
local function merged(a, b, both)
  local out, i, j = {}, 1, 1
  while a[i] or b[j] do
    local x, y = a[i] or math.huge, b[j] or math.huge
    if x == y or not both then out[#out + 1] = math.min(x, y) end
    if x <= y then i = i + 1 end
    if y <= x then j = j + 1 end
  end
  return out
end

-- A place, or values, between a and b: a + t (b - a), component by component.
local function mixed(a, b, t)
  local out = {}
  for k = 1, #a do out[k] = a[k] + t * (b[k] - a[k]) end
  return out
end

-- The corner where a plane cuts the edge between corners a and b, at which its field is at_a and at_b, of opposite
-- signs. known: corners made for earlier edges, by name; cut: the plane's number.
local function crossing(known, a, b, cut, at_a, at_b)
  local nodes, cuts = merged(a.nodes, b.nodes), merged(merged(a.cuts, b.cuts, true), { cut })
  local name = table.concat(nodes, " ") .. "|" .. table.concat(cuts, " ")
  if not known[name] then
    local t = at_a / (at_a - at_b)
    known[name] = { nodes = nodes, cuts = cuts, place = mixed(a.place, b.place, t), value = mixed(a.value, b.value, t) }
  end
  return known[name]
end

-- The part of a face, a list of corners, where the field is not below zero; known, cut: of crossing. Records the new
-- edge in `back`, end by start, in reverse, for the face that closes the body in the plane.
local function cut_face(known, face, cut, field, back)
  local out, ends = { drawn = face.drawn }, {}
  for k, a in ipairs(face) do
    local b = face[k % #face + 1]
    local at_a, at_b = field(a.value), field(b.value)
    if at_a >= 0 then out[#out + 1] = a end
    if (at_a >= 0) ~= (at_b >= 0) then
      local c = crossing(known, a, b, cut, at_a, at_b)
      out[#out + 1] = c
      ends[#ends + 1] = { corner = c, leaves = at_a >= 0 }
    end
  end
  for k, e in ipairs(ends) do
    if e.leaves then
      local entry = ends[k % #ends + 1].corner
      back[#back + 1], back[entry] = entry, e.corner
    end
  end
  return out
end

---The part of a convex body on the side of a plane where a field is not below zero.
---@param known table<string, cq.export.Corner>     corners on planes by name, shared by all cells
---@param faces cq.export.Corner[][]                anticlockwise from outside; face.drawn: is it on the surface that is
---  drawn?
---@param cut integer                                 number of the plane
---@param field fun(value: number[]): number
---@return cq.export.Corner[][] faces               and, in the plane, a face that is drawn
function piece.cut(known, faces, cut, field)
  local out, back = {}, {}
  for _, face in ipairs(faces) do
    local left = cut_face(known, face, cut, field, back)
    if #left > 0 then out[#out + 1] = left end
  end
  for _, at in ipairs(back) do
    local face = { drawn = true }
    while back[at] do
      face[#face + 1] = at
      at, back[at] = back[at], nil
    end
    if #face > 0 then out[#out + 1] = face end
  end
  return out
end

return piece
