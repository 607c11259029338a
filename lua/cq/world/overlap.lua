-- overlap: robots that stand in each other, whose masses and stresses the grid of the world adds up there.
local FILLED = 0.8              -- of a cell of two spacings: by each of two bodies it is so only where they overlap
local CELL = 2                  -- spacings along a side: a lattice has as many particles in each cell
local SHIFT = 0.23              -- spacings by which cells begin before the first particle, so that none is on an edge

-- Places {n, dim} and volumes {n} of a robot's particles, in the first scene of a batch.
local function particles_of(robot)
  local position, volume = robot.position:detach(), robot.volume:detach()
  return { position = position.rank == 3 and position[1] or position, volume = volume.rank == 2 and volume[1] or volume,
    count = robot.particle_count, dim = robot.dim }
end

-- The lower and upper corner {dim} of a robot's particles.
local function box_of(particles) return particles.position:min(1):totable(), particles.position:max(1):totable() end

-- The volume of a robot's particles in each cell, by its number. grid: { lower, count: {dim} of cells, side }.
local function fill(particles, grid)
  local x, volume, dim, filled = particles.position:data(), particles.volume:data(), particles.dim, {}
  for p = 0, particles.count - 1 do
    local cell, within = 0, true
    for d = 1, dim do
      local i = math.floor((x[p * dim + d - 1] - grid.lower[d]) / grid.side)
      within = within and i >= 0 and i < grid.count[d]
      cell = cell * grid.count[d] + i
    end
    if within then filled[cell] = (filled[cell] or 0) + volume[p] end
  end
  return filled
end

---The volume in which two robots both are, as they are drawn: of cells of two spacings that each of them fills. Parts
---that are thinner are not counted, nor bodies that touch. Of a batch the first scene is looked at.
---@param a cq.Robot
---@param b cq.Robot       of the same dimension
---@return number          [length^dim]
return function(a, b)
  a, b = particles_of(a), particles_of(b)
  local dim, grid = a.dim, { lower = {}, count = {} }
  local spacing = math.max(a.volume:mean():item(), b.volume:mean():item()) ^ (1 / dim)
  local lower, upper = box_of(a)
  local other_lower, other_upper = box_of(b)
  grid.side = CELL * spacing
  for d = 1, dim do
    local low, high = math.max(lower[d], other_lower[d]), math.min(upper[d], other_upper[d])
    grid.lower[d], grid.count[d] = low - SHIFT * spacing, math.ceil((high - low) / grid.side)
    if high - low < spacing / 2 then return 0 end
  end
  local filled, by_b, out, whole = fill(a, grid), fill(b, grid), 0, grid.side ^ dim
  for cell, volume in pairs(filled) do
    if math.min(volume, by_b[cell] or 0) >= FILLED * whole then out = out + whole end
  end
  return out
end
