-- gmsh_file: small bodies with cavities as Gmsh would write them, in each version of its files.
--
--   local mesh = gmsh_file.blocks { count = { 3, 3, 3 }, empty = { chamber_1 = { 2, 2, 2 } } }
--   local bytes = gmsh_file.bytes(mesh, "4.1 binary")
local ffi = require "ffi"

local gmsh_file = {}

gmsh_file.versions = { "2.2 text", "2.2 binary", "4.0 text", "4.1 text", "4.1 binary", "4.1 swapped" }

-- ---- bodies ---------------------------------------------------------------------------------------------------------

-- corners of the simplices of a unit cube: paths from one end of its diagonal to the other (Kuhn), alike in all cubes
local PATHS = {
  [2] = { { 1, 2 }, { 2, 1 } },
  [3] = { { 1, 2, 3 }, { 1, 3, 2 }, { 2, 1, 3 }, { 2, 3, 1 }, { 3, 1, 2 }, { 3, 2, 1 } },
}

local function each_block(count, visit)
  for i = 1, count[1] do
    for j = 1, count[2] do
      for k = 1, count[3] or 1 do visit { i, j, count[3] and k or nil } end
    end
  end
end

-- the blocks of a chamber: one, or a list
local function blocks_of(entry) return type(entry[1]) == "table" and entry or { entry } end

local function is_empty(empty, block)
  for _, entry in pairs(empty) do
    for _, at in ipairs(blocks_of(entry)) do
      if table.concat(at, " ") == table.concat(block, " ") then return true end
    end
  end
end

local function is_within(face, corners, block)
  for _, node in ipairs(face) do
    for d, low in ipairs(block) do
      if corners[node][d] < low - 1 or corners[node][d] > low then return false end
    end
  end
  return true
end

-- The faces of cells that no other cell has, by the chamber in one of whose blocks all their corners lie.
local function walls_of(mesh, cells, corners, empty)
  local seen = {}
  for _, cell in ipairs(cells) do
    for out = 1, mesh.dim + 1 do
      local face = {}
      for k, node in ipairs(cell) do if k ~= out then face[#face + 1] = node end end
      local sorted = { unpack(face) }
      table.sort(sorted)
      local key = table.concat(sorted, " ")
      seen[key] = { face = face, count = (seen[key] and seen[key].count or 0) + 1 }
    end
  end
  local names, keys = {}, {}
  for name in pairs(empty) do names[#names + 1] = name end
  for key in pairs(seen) do keys[#keys + 1] = key end
  table.sort(names)
  table.sort(keys)
  for _, name in ipairs(names) do
    local group = { dim = mesh.dim - 1, name = name, element = {} }
    for _, key in ipairs(keys) do
      local one, here = seen[key], false
      for _, block in ipairs(blocks_of(empty[name])) do here = here or is_within(one.face, corners, block) end
      if here and one.count == 1 then group.element[#group.element + 1] = one.face end
    end
    mesh.group[#mesh.group + 1] = group
  end
end

---Cubes (squares in the plane) in rows, cut into tetrahedra (triangles), some of them empty; numbered from 7 on.
---@param def { count: integer[], empty: table<string, integer[]|integer[][]>?, size: number? }   empty: a block, or several
---@return table    dim, node: places, group: { dim, name, element: lists of nodes }
function gmsh_file.blocks(def)
  local dim, number, corners, cells = #def.count, {}, {}, {}
  local mesh = { dim = dim, node = {}, group = {} }
  local function node_at(place)
    local key = table.concat(place, " ")
    if not number[key] then
      local n, x = #mesh.node + 1, {}
      for d = 1, 3 do x[d] = (def.size or 1) * (place[d] or 0) end
      number[key], corners[n], mesh.node[n] = n, { unpack(place) }, x
    end
    return number[key]
  end
  each_block(def.count, function(block)
    if is_empty(def.empty or {}, block) then return end
    for _, path in ipairs(PATHS[dim]) do
      local place, cell = {}, {}
      for d = 1, dim do place[d] = block[d] - 1 end
      cell[1] = node_at(place)
      for k, axis in ipairs(path) do
        place[axis] = place[axis] + 1
        cell[k + 1] = node_at(place)
      end
      cells[#cells + 1] = cell
    end
  end)
  mesh.group[1] = { dim = dim, name = "body", element = cells }
  walls_of(mesh, cells, corners, def.empty or {})
  return mesh
end

-- ---- files ----------------------------------------------------------------------------------------------------------

local TYPE = { 1, 2, 4 }               -- Gmsh's numbers of a line, a triangle, a tetrahedron
local FIRST = 7                        -- the number of the first node

-- what writes ints, counts and reals, each to the end of a list
local function writer(out, binary, swapped)
  local function raw(kind, value)
    local bytes = ffi.string(ffi.new(kind .. "[1]", value), ffi.sizeof(kind))
    out[#out + 1] = swapped and bytes:reverse() or bytes
  end
  local function plain(_, value) out[#out + 1] = ("%.17g "):format(value) end
  local put = binary and raw or plain
  return {
    int = function(value) put("int32_t", value) end, count = function(value) put("uint64_t", value) end,
    real = function(value) put("double", value) end,
    line = function() if not binary then out[#out + 1] = "\n" end end,
    text = function(...) out[#out + 1] = (...):format(select(2, ...)) end,
  }
end

local function elements_in(mesh)
  local count = 0
  for _, group in ipairs(mesh.group) do count = count + #group.element end
  return count
end

local function write_2(mesh, w, binary)
  w.text("$Nodes\n%d\n", #mesh.node)
  for n, x in ipairs(mesh.node) do
    w.int(n + FIRST - 1)
    for d = 1, 3 do w.real(x[d]) end
    w.line()
  end
  w.text("\n$EndNodes\n$Elements\n%d\n", elements_in(mesh))
  local number = 0
  for tag, group in ipairs(mesh.group) do
    if binary and #group.element > 0 then
      for _, value in ipairs { TYPE[group.dim], #group.element, 2 } do w.int(value) end
    end
    for _, element in ipairs(group.element) do
      number = number + 1
      w.int(number)
      for _, value in ipairs(binary and { tag, 1 } or { TYPE[group.dim], 2, tag, 1 }) do w.int(value) end
      for _, n in ipairs(element) do w.int(n + FIRST - 1) end
      w.line()
    end
  end
  w.text "\n$EndElements\n"
end

local function write_entities(mesh, w)
  local count = { [0] = 0, 0, 0, 0 }
  for _, group in ipairs(mesh.group) do count[group.dim] = count[group.dim] + 1 end
  w.text "$Entities\n"
  for dim = 0, 3 do w.count(count[dim]) end
  w.line()
  for dim = 0, 3 do
    for tag, group in ipairs(mesh.group) do
      if group.dim == dim then
        w.int(10 + tag)
        for _ = 1, 6 do w.real(0.5) end
        w.count(1)
        w.int(tag)
        w.count(0)
        w.line()
      end
    end
  end
  w.text "\n$EndEntities\n"
end

local function write_4(mesh, w, old)
  write_entities(mesh, w)
  local id = old and w.int or w.count
  w.text "$Nodes\n"
  for _, value in ipairs { 1, #mesh.node, not old and FIRST or nil, not old and #mesh.node + FIRST - 1 or nil } do
    w.count(value)
  end
  for _, value in ipairs { 1, 1, 0 } do w.int(value) end
  w.count(#mesh.node)
  w.line()
  for n = 1, old and 0 or #mesh.node do w.count(n + FIRST - 1) end
  for n, x in ipairs(mesh.node) do
    if old then w.int(n + FIRST - 1) end
    for d = 1, 3 do w.real(x[d]) end
    w.line()
  end
  local total, number = elements_in(mesh), 0
  w.text "\n$EndNodes\n$Elements\n"
  for _, value in ipairs { #mesh.group, total, not old and 1 or nil, not old and total or nil } do w.count(value) end
  for tag, group in ipairs(mesh.group) do
    w.int(old and 10 + tag or group.dim)
    w.int(old and group.dim or 10 + tag)
    w.int(TYPE[group.dim])
    w.count(#group.element)
    w.line()
    for _, element in ipairs(group.element) do
      number = number + 1
      id(number)
      for _, n in ipairs(element) do id(n + FIRST - 1) end
      w.line()
    end
  end
  w.text "\n$EndElements\n"
end

---The bytes of a file.
---@param mesh table
---@param version string    of gmsh_file.versions
---@return string
function gmsh_file.bytes(mesh, version)
  local number, kind = version:match "^(%S+) (%a+)$"
  local out, binary = {}, kind ~= "text"
  local w = writer(out, binary, kind == "swapped")
  w.text("$MeshFormat\n%s %d 8\n", number, binary and 1 or 0)
  if binary then
    w.int(1)
    w.text "\n"
  end
  w.text("$EndMeshFormat\n$PhysicalNames\n%d\n", #mesh.group)
  for tag, group in ipairs(mesh.group) do w.text('%d %d "%s"\n', group.dim, tag, group.name) end
  w.text "$EndPhysicalNames\n"
  if number == "2.2" then write_2(mesh, w, binary) else write_4(mesh, w, number == "4.0") end
  return table.concat(out)
end

return gmsh_file
