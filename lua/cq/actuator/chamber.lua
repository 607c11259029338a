-- chamber: the surface of a closed chamber as the engine takes it: corners that particles carry, and faces between
-- them; and the volume inside.
--
-- A corner lies on the wall, half a spacing outside of the particles. It is a weighted sum of the particles near it:
-- the weights are those of a moving least-squares fit, so that a corner goes where any affine motion of its particles
-- takes it.
local ffi = require "ffi"
local sparse = require "cq.sparse"
local T = require "cq.tensor"

local chamber = {}

local REACH = 2                    -- of the particles that carry a corner, in spacings of particles
local WIDEN, TRIES = 1.4, 6        -- where these do not span the space around the corner

-- Solves M w = (1, 0, ...) for a small matrix, nested lists, which is overwritten; returns w, nil where M is singular.
local function first_column(m)
  local n, b = #m, {}
  for i = 1, n do b[i] = i == 1 and 1 or 0 end
  local largest = m[1][1]
  for k = 1, n do
    local best = k
    for i = k + 1, n do best = math.abs(m[i][k]) > math.abs(m[best][k]) and i or best end
    m[k], m[best], b[k], b[best] = m[best], m[k], b[best], b[k]
    if not (math.abs(m[k][k]) > 1e-4 * largest) then return nil end
    for i = k + 1, n do
      local share = m[i][k] / m[k][k]
      for j = k, n do m[i][j] = m[i][j] - share * m[k][j] end
      b[i] = b[i] - share * b[k]
    end
  end
  for k = n, 1, -1 do
    for j = k + 1, n do b[k] = b[k] - m[k][j] * b[j] end
    b[k] = b[k] / m[k][k]
  end
  return b
end

-- Moving least-squares weights, with the sum 1, of particles near a corner. places: the vectors d from the corner to
-- each, in units of the search radius. Weight of a particle: phi (1, d) . M^-1 (1, 0), M the sum of phi (1, d) (1,
-- d)^T. Returns nil without places, or if they do not span the space and ridge, which is added to M, is 0.
local function weights_at(places, dim, ridge)
  local m, phi = {}, {}
  for i = 1, dim + 1 do
    m[i] = {}
    for j = 1, dim + 1 do m[i][j] = i == j and i > 1 and ridge or 0 end
  end
  for k, d in ipairs(places) do
    local square = 0
    for i = 1, dim do square = square + d[i] * d[i] end
    local near = 1 - math.sqrt(square)
    phi[k] = near * near
    for i = 1, dim + 1 do
      for j = 1, dim + 1 do m[i][j] = m[i][j] + phi[k] * (i > 1 and d[i - 1] or 1) * (j > 1 and d[j - 1] or 1) end
    end
  end
  local column = #places > 0 and first_column(m)
  if not column then return nil end
  local weight, sum = {}, 0
  for k, d in ipairs(places) do
    local value = column[1]
    for i = 1, dim do value = value + column[i + 1] * d[i] end
    weight[k] = phi[k] * value
    sum = sum + weight[k]
  end
  for k in ipairs(weight) do weight[k] = weight[k] / sum end
  return weight
end

-- For each corner of a chamber's surface, a list: the particles that carry it, from 0, and their weights, which sum to
-- 1. corner: coordinates of all corners, one after the other; size: of a particle [length]. The search widens where
-- particles near a corner are too few.
local function carriers(robot, corner, size)
  local dim, x, out, open = robot.dim, robot.position:data(), {}, {}
  for c = 1, #corner / dim do open[c] = c end
  local reach = REACH * size
  for try = 1, TRIES do
    local rows, still = {}, {}
    for k, c in ipairs(open) do rows[k] = { unpack(corner, (c - 1) * dim + 1, c * dim) } end
    if #rows == 0 then break end
    local near = sparse.neighbours { points = robot.position, places = T.tensor(rows), radius = reach }
    for k, c in ipairs(open) do
      local particles, places = {}, {}
      for e = tonumber(near.start[k - 1]), tonumber(near.start[k]) - 1 do
        local p, d = tonumber(near.column[e]), {}
        for i = 1, dim do d[i] = (x[p * dim + i - 1] - corner[(c - 1) * dim + i]) / reach end
        particles[#particles + 1], places[#places + 1] = p, d
      end
      local weight = weights_at(places, dim, try == TRIES and 1e-2 * #places or 0)
      if weight then out[c] = { particle = particles, weight = weight } else still[#still + 1] = c end
    end
    open, reach = still, reach * WIDEN
  end
  return out
end

---The surface of a chamber, from the particles that carry its corners.
---@param list { particle: integer[], weight: number[] }[]     of each corner; particles from 0
---@param face integer[]       numbers of dim corners for each face, flat, from 1
---@return table      carriers: the list; face; index: all particles that carry corners, from 0; matrix: sparse
---  {corners, particles of index}, from coordinates of particles to those of corners
function chamber.of(list, face)
  local self = { face = face, carriers = list, index = {} }
  local of, row, column, value = {}, {}, {}, {}
  for c, carrier in ipairs(list) do
    for k, p in ipairs(carrier.particle) do
      if not of[p] then
        self.index[#self.index + 1] = p
        of[p] = #self.index
      end
      row[#row + 1], column[#column + 1], value[#value + 1] = c, of[p], carrier.weight[k]
    end
  end
  self.matrix = sparse { shape = { #list, #self.index }, row = row, column = column, value = value }
  return self
end

---The surface of a chamber of a robot: finds the particles that carry the corners of the walls around it.
---@param robot cq.Robot
---@param walls { corner: number[], face: integer[], index: integer[] }   flat; faces from 1; particles at the walls from 0
---@return table      as chamber.of gives it
function chamber.bind(robot, walls)
  local volume = 0
  for _, p in ipairs(walls.index) do volume = volume + robot.volume:data()[p] end
  local size = (volume / #walls.index) ^ (1 / robot.dim)
  return chamber.of(carriers(robot, walls.corner, size), walls.face)
end

---Fills the engine's struct of a chamber, but for its actuator. Returns the arrays to which the struct points: the
---caller keeps them as long as the struct.
---@param self table    of chamber.of
---@param to ffi.cdata*       cq_chamber
---@param first integer       number in the world of the robot's first particle, from 0
---@param dim integer
---@return table
function chamber.fill(self, to, first, dim)
  local pairs_count = self.matrix.count
  local start, particle = ffi.new("int64_t[?]", #self.carriers + 1), ffi.new("int32_t[?]", pairs_count)
  local weight, face = ffi.new("double[?]", pairs_count), ffi.new("int32_t[?]", #self.face)
  local at = 0
  for c, carrier in ipairs(self.carriers) do
    for k, p in ipairs(carrier.particle) do
      particle[at], weight[at], at = first + p, carrier.weight[k], at + 1
    end
    start[c] = at
  end
  for k, corner in ipairs(self.face) do face[k - 1] = corner - 1 end
  to.point_count, to.face_count = #self.carriers, #self.face / dim
  to.point_start, to.particle, to.weight, to.face = start, particle, weight, face
  return { start, particle, weight, face }
end

-- The coordinates of corner k, from 1, of every face: for each axis a tensor {..., faces}. y: for each axis the
-- coordinates {..., corners} of all corners.
local function corners(self, y, k, dim)
  local list, out = {}, {}
  for f = k, #self.face, dim do list[#list + 1] = self.face[f] end
  for i = 1, dim do out[i] = y[i]:gather(list, -1) end
  return out
end

---The volume that a chamber encloses if its particles are at x [length^dim] (E64).
---@param self table    of chamber.of
---@param x cq.Tensor[]       for each axis the coordinates {..., index} of the chamber's particles
---@return cq.Tensor          {...}
function chamber.volume(self, x)
  local dim, y, at = #x, {}, {}
  -- about a corner, for large coordinates would leave the volume as a difference
  for i = 1, dim do
    local all = self.matrix:product(x[i])
    y[i] = all - all:slice(1, 1, -1)
  end
  for k = 1, dim do at[k] = corners(self, y, k, dim) end
  local a, b, c = at[1], at[2], at[3]
  if dim == 2 then return (a[1] * b[2] - a[2] * b[1]):sum(-1) * 0.5 end
  local sum = a[1] * (b[2] * c[3] - b[3] * c[2]) + a[2] * (b[3] * c[1] - b[1] * c[3])
    + a[3] * (b[1] * c[2] - b[2] * c[1])
  return sum:sum(-1) / 6
end

return chamber
