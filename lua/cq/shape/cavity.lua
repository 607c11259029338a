-- cavity: the walls of a closed cavity in a lattice of particles, found by filling it.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"

local cavity = {}

-- ---- lattices -------------------------------------------------------------------------------------------------------

-- Of the coordinates of the particles in `list` along an axis (from 0): the least, the least distance of two that
-- differ (nil: none do), and the extent.
local function spacing_along(x, list, dim, axis)
  local sorted = {}
  for k, p in ipairs(list) do sorted[k] = x[p * dim + axis] end
  table.sort(sorted)
  local extent, least = sorted[#sorted] - sorted[1], math.huge
  for k = 2, #sorted do
    local gap = sorted[k] - sorted[k - 1]
    if gap > 1e-6 * extent then least = math.min(least, gap) end
  end
  return sorted[1], least < math.huge and least or nil, extent
end

-- The lattice of a body's particles, with a margin of one cell: { dim, lower, h, size, stride, count, cell }, where
-- cell[] holds particle + 1, or 0 where there is none. Errors: particles that lie on no lattice.
local function lattice_of(body)
  local x, dim, list = body.position, body.dim, body.list
  local out = { dim = dim, lower = {}, h = {}, size = {}, stride = {}, count = 1 }
  for i = 1, dim do
    local low, h, extent = spacing_along(x, list, dim, i - 1)
    h = h or body.size
    out.lower[i], out.h[i] = low, h
    out.size[i] = math.floor(extent / h + 0.5) + 3
    out.stride[i], out.count = out.count, out.count * out.size[i]
  end
  if out.count > 5e7 then out.count = 0 end    -- nothing that is a lattice
  out.cell = ffi.new("int32_t[?]", out.count)  -- 0: empty, -1: cavity, else particle + 1
  for _, p in ipairs(list) do
    local at = 0
    for i = 1, dim do
      local place = (x[p * dim + i - 1] - out.lower[i]) / out.h[i]
      local near = math.floor(place + 0.5)
      if out.count == 0 or math.abs(place - near) > 1e-3 then
        is.fail("%s: the particles of %s do not lie on one lattice, by which the walls of a cavity are found; name a "
          .. "group that does, or give cq.Actuator.follower_pressure their particles, area and normal", body.what, body.name)
      end
      at = at + (near + 1) * out.stride[i]
    end
    out.cell[at] = p + 1
  end
  return out
end

-- The number of the cell that holds a place {dim}, from which a cavity is searched. Errors: the place is outside of the
-- body, or on a particle.
local function start_cell(lattice, place, body)
  local at = 0
  for i = 1, lattice.dim do
    local k = math.floor((place[i] - lattice.lower[i]) / lattice.h[i] + 0.5) + 1
    if k < 1 or k > lattice.size[i] - 2 then
      is.fail("%s: the place %s is not inside of %s", body.what, text.place(place), body.name)
    end
    at = at + k * lattice.stride[i]
  end
  if lattice.cell[at] > 0 then
    is.fail("%s: at the place %s there is a particle of %s; a place in the empty cavity is wanted", body.what,
      text.place(place), body.name)
  end
  return at
end

-- The number of the first empty cell whose centre fulfils is_within(x, y, z), and that centre {dim}; nothing if there
-- is none.
local function first_cell(lattice, is_within)
  for at = 0, lattice.count - 1 do
    if lattice.cell[at] == 0 then
      local x = {}
      for i = 1, lattice.dim do
        x[i] = lattice.lower[i] + (math.floor(at / lattice.stride[i]) % lattice.size[i] - 1) * lattice.h[i]
      end
      if is_within(x[1], x[2], x[3]) then return at, x end
    end
  end
end

-- The list of all empty cells connected with the cell `first`, which are marked -1 in the lattice. Errors: the border
-- of the lattice is reached, so that the cavity is open.
local function flood(lattice, first, place, body)
  local stack, cells, cell = { first }, {}, lattice.cell
  cell[first] = -1
  while #stack > 0 do
    local at = table.remove(stack)
    cells[#cells + 1] = at
    for i = 1, lattice.dim do
      local k = math.floor(at / lattice.stride[i]) % lattice.size[i]
      if k == 0 or k == lattice.size[i] - 1 then
        is.fail("%s: the cavity at %s is open: from there one comes out of the body without meeting a particle; close it, or give particles, area "
          .. "and normal of the walls", body.what, text.place(place))
      end
      for step = -1, 1, 2 do
        local next_to = at + step * lattice.stride[i]
        if cell[next_to] == 0 then
          cell[next_to] = -1
          stack[#stack + 1] = next_to
        end
      end
    end
  end
  return cells
end

-- Corners (a flat list of coordinates) and faces (a flat list of corner numbers from 1) around a cavity, turned so that
-- they enclose a positive volume: lines in 2D, two triangles for each face of a cell in 3D.
local function faces_of(lattice, cells)
  local dim, of, corner, face = lattice.dim, {}, {}, {}
  -- The number of a corner, from 1, which is added to the list at first use. place: numbers of the cell above it.
  local function number(place)
    local key = 0
    for i = 1, dim do key = key * (lattice.size[i] + 1) + place[i] end
    if not of[key] then
      of[key] = #corner / dim + 1
      for i = 1, dim do corner[#corner + 1] = lattice.lower[i] + (place[i] - 1.5) * lattice.h[i] end
    end
    return of[key]
  end
  -- Appends numbers of corners to the list of faces.
  local function add(...)
    for _, k in ipairs { ... } do face[#face + 1] = k end
  end
  for _, at in ipairs(cells) do
    for i = 1, dim do
      for step = -1, 1, 2 do
        if lattice.cell[at + step * lattice.stride[i]] > 0 then
          local place, ring = {}, {}
          for j = 1, dim do place[j] = math.floor(at / lattice.stride[j]) % lattice.size[j] end
          if step > 0 then place[i] = place[i] + 1 end
          local j, l = i % dim + 1, (i + 1) % dim + 1
          for k, move in ipairs(dim == 2 and { { 0 }, { 1 } } or { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } }) do
            local there = { unpack(place) }
            there[j] = there[j] + move[1]
            if dim == 3 then there[l] = there[l] + move[2] end
            ring[k] = number(there)
          end
          -- in the plane the way along y keeps the cavity of a face towards x on its left, that along x does so of -y
          local turned = step < 0
          if dim == 2 and i == 2 then turned = not turned end
          for k = 1, turned and #ring / 2 or 0 do ring[k], ring[#ring + 1 - k] = ring[#ring + 1 - k], ring[k] end
          add(ring[1], ring[2], ring[3])
          if dim == 3 then add(ring[1], ring[3], ring[4]) end
        end
      end
    end
  end
  return corner, face
end

-- The wall of a cavity of the given cells, a cq.Wall with area vectors and arms of the particles around it. The areas
-- are the gradient of the indicator of the body, and sum to zero.
local function walls_of(lattice, cells)
  local of, dim, out = {}, lattice.dim, { particle = {}, area = {}, arm = {}, chamber = true, closed = true }
  -- Index, from 0, of a particle in the cavity's arrays; added at first use.
  local function entry(particle)
    local k = of[particle]
    if k then return k end
    k = #out.particle
    of[particle], out.particle[k + 1] = k, particle
    for j = 1, dim do out.area[k * dim + j], out.arm[k * dim + j] = 0, 0 end
    return k
  end
  for _, at in ipairs(cells) do
    for i = 1, dim do
      local face = 1
      for j = 1, dim do face = j == i and face or face * lattice.h[j] end
      for step = -1, 1, 2 do
        local particle = lattice.cell[at + step * lattice.stride[i]]
        if particle > 0 then
          -- out of the solid is from the particle to the cavity
          local k = entry(particle) * dim + i
          out.area[k], out.arm[k] = out.area[k] - step * face, out.arm[k] - step * lattice.h[i] / 2
        end
      end
    end
  end
  out.corner, out.face = faces_of(lattice, cells)
  return out
end

---Particles on a lattice, around a cavity.
---@class cq.Cavity.body
---@field what string            who asks, for errors
---@field name string            of the body
---@field dim integer
---@field position ffi.cdata*    double[n dim]
---@field list integer[]         the particles that count, from 0
---@field size number            of a cell where one layer of particles does not say it [length]

---The walls of the closed cavity at a place, between its cells and those of particles. Errors: the place is within the
---body; the cavity is open.
---@param body cq.Cavity.body
---@param place number[]|fun(x: number, y: number, z: number?): boolean   or a function that is true within it
---@return cq.Wall?         nil: the function is true of no empty cell
function cavity.walls(body, place)
  local lattice = lattice_of(body)
  if type(place) ~= "function" then
    return walls_of(lattice, flood(lattice, start_cell(lattice, place, body), place, body))
  end
  local first, there = first_cell(lattice, place)
  return first and walls_of(lattice, flood(lattice, first, there, body)) or nil
end

return cavity
