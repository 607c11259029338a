-- cloud: particles in the making. Plain lists, because a shape filters, maps and joins them
-- before their number is known.
--
-- Fields: dim, count, position (flat, dim numbers for each), volume, names (of groups, in order) and groups (name to an
-- ascending list of particle numbers from 1). colour: 0xRRGGBB of the particles of a drawing. walls (by name, in the
-- order of wall_names): surfaces of a mesh that a pressure may push on, see cloud.wall.
local ffi = require "ffi"
local cavity = require "cq.shape.cavity"

local cloud = {}

-- An empty cloud of particles in dim dimensions, which shapes fill.
function cloud.new(dim)
  return {
    dim = dim, count = 0, position = {}, volume = {}, colour = {}, names = {}, groups = {}, walls = {}, wall_names = {},
  }
end

---@internal
---@class cq.Wall
---@field particle integer[]    numbers from 1
---@field area number[]         flat, dim for each: N A of the undeformed body, N out of the solid [length^(dim-1)]
---@field arm number[]          flat, dim for each: from the particle to the wall [length]
---@field corner number[]       flat, dim for each: where the corners of its faces are [length]
---@field face integer[]        flat, dim for each: corners, from 1, turned so that a chamber has a positive volume
---@field chamber boolean       must it be closed?
---@field meshed boolean?       of a mesh, and no lattice
---@field closed boolean        it was when it was read, and no particle of it was taken away

---The wall of the cloud that has this name; an empty one is added if there is none.
---@return cq.Wall
function cloud.wall(self, name)
  local wall = self.walls[name]
  if not wall then
    wall = { particle = {}, area = {}, arm = {}, corner = {}, face = {}, chamber = false, closed = true }
    self.walls[name], self.wall_names[#self.wall_names + 1] = wall, name
  end
  return wall
end

---The cloud's list of the particle numbers in a group; an empty one is added if there is none.
function cloud.group(self, name)
  local list = self.groups[name]
  if not list then
    list = {}
    self.groups[name], self.names[#self.names + 1] = list, name
  end
  return list
end

---Removes a group from the cloud, but not the particles in it.
function cloud.drop_group(self, name)
  self.groups[name] = nil
  for k, other in ipairs(self.names) do
    if other == name then return table.remove(self.names, k) end
  end
end

---Appends a particle; z is left out in 2D. Returns its number, from 1.
function cloud.add(self, volume, x, y, z)
  local n, position = self.count, self.position
  if self.dim == 2 then
    position[2 * n + 1], position[2 * n + 2] = x, y
  else
    position[3 * n + 1], position[3 * n + 2], position[3 * n + 3] = x, y, z
  end
  self.volume[n + 1] = volume
  self.count = n + 1
  return n + 1
end

---The coordinates x, y, z of particle p, which counts from 1; z is nil in 2D.
function cloud.at(self, p)
  local x, dim = self.position, self.dim
  local k = (p - 1) * dim
  return x[k + 1], x[k + 2], dim == 3 and x[k + 3] or nil
end

-- Adds the members of the groups of the cloud `from` to those of `to`; number: the new number of each particle, nil of
-- one that is left out.
local function carry_groups(to, from, number)
  for _, name in ipairs(from.names) do
    local list = cloud.group(to, name)
    for _, p in ipairs(from.groups[name]) do
      if number[p] then list[#list + 1] = number[p] end
    end
  end
end

-- Adds the walls of the cloud `from` to those of `to`; number: the new number of each particle, nil of one that is left
-- out, which leaves its wall open.
local function carry_walls(to, from, number)
  local dim = from.dim
  for _, name in ipairs(from.wall_names) do
    local old, new = from.walls[name], cloud.wall(to, name)
    new.meshed = new.meshed or old.meshed
    new.chamber, new.closed = new.chamber or old.chamber, new.closed and old.closed
    local before = #new.corner / dim
    for _, x in ipairs(old.corner) do new.corner[#new.corner + 1] = x end
    for _, k in ipairs(old.face) do new.face[#new.face + 1] = before + k end
    for k, p in ipairs(old.particle) do
      local count = #new.particle
      if number[p] then
        new.particle[count + 1] = number[p]
        for d = 1, dim do
          new.area[count * dim + d], new.arm[count * dim + d] = old.area[(k - 1) * dim + d],
            old.arm[(k - 1) * dim + d]
        end
      else
        new.closed = false
      end
    end
  end
end

---Appends the particles of another cloud for which keep(x, y, z) is true, all if keep is nil, with their groups and
---walls. Returns the cloud.
function cloud.append(self, other, keep)
  local number = {}
  for p = 1, other.count do
    local x, y, z = cloud.at(other, p)
    if not keep or keep(x, y, z) then
      number[p] = cloud.add(self, other.volume[p], x, y, z)
      self.colour[number[p]] = other.colour[p]
    end
  end
  carry_groups(self, other, number)
  carry_walls(self, other, number)
  return self
end

---A new cloud of the particles for which keep(x, y, z) is true.
function cloud.filter(self, keep)
  return cloud.append(cloud.new(self.dim), self, keep)
end

-- Maps a list of vectors, dim numbers for each, by a linear function of two or three numbers, in place.
local function map_vectors(list, dim, linear)
  for k = 0, #list / dim - 1 do
    local x, y, z = linear(list[k * dim + 1], list[k * dim + 2], list[k * dim + 3])
    list[k * dim + 1], list[k * dim + 2] = x, y
    if dim == 3 then list[k * dim + 3] = z end
  end
end

-- Reverses the order of each face's corners, as a mirror image needs.
local function turn_faces(face, dim)
  for k = 0, #face - dim, dim do face[k + 1], face[k + dim] = face[k + dim], face[k + 1] end
end

---Moves every particle by place(x, y, z) -> x, y, z and multiplies its volume by a number, in place; returns the cloud.
---A linear place comes with functions that turn area vectors and arms of walls; without them there must be no walls.
---@param linear? { area: function, arm: function, mirrors: boolean }
function cloud.map(self, place, volume, linear)
  for _, name in ipairs(self.wall_names) do
    map_vectors(self.walls[name].area, self.dim, linear.area)
    map_vectors(self.walls[name].arm, self.dim, linear.arm)
    map_vectors(self.walls[name].corner, self.dim, place)
    if linear.mirrors then turn_faces(self.walls[name].face, self.dim) end
  end
  local position, dim = self.position, self.dim
  for p = 1, self.count do
    local k = (p - 1) * dim
    local x, y, z = place(cloud.at(self, p))
    position[k + 1], position[k + 2] = x, y
    if dim == 3 then position[k + 3] = z end
    self.volume[p] = self.volume[p] * volume
  end
  return self
end

---Makes every particle a member of the group; returns the cloud.
function cloud.all(self, name)
  local list = cloud.group(self, name)
  for p = #list, 1, -1 do list[p] = nil end
  for p = 1, self.count do list[p] = p end
  return self
end

---Adds the walls of the cavity at a place to the cloud, and a group of the particles at them, which lie on a lattice. A
---place may be a function of coordinates that is true in the cavity; where no empty cell is in it, nothing is added.
---Returns the cloud.
---@param place number[]|fun(x: number, y: number, z: number?): boolean
---@param what string        for errors: who asks
---@param described string   for errors: the body, in words
function cloud.chamber(self, name, place, what, described)
  local n, dim, list = self.count, self.dim, {}
  local position = ffi.new("double[?]", n * dim + 1)
  for k = 1, n * dim do position[k - 1] = self.position[k] end
  for p = 1, n do list[p] = p - 1 end
  local wall = n > 0 and cavity.walls({ what = what, name = described, dim = dim, position = position, list = list,
    size = self.volume[1] ^ (1 / dim) }, place)
  if not wall then return self end
  self.walls[name], self.wall_names[#self.wall_names + 1] = wall, name
  local group = cloud.group(self, name)
  for k, p in ipairs(wall.particle) do group[k] = p end
  table.sort(group)
  return self
end

return cloud
