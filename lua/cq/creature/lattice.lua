-- lattice: numbers of particles along each side of a creature's parts for a wanted total.
local tables = require "cq.base.tables"

local lattice = {}

-- Calls visit(counts, cost) for every way to fill blocks of these sizes by whole numbers of cells near a spacing; cost:
-- how far these cells are from equal squares. counts is one table for all calls: copy it.
local function each_way(sizes, spacing, visit)
  local counts = {}
  -- Visits every choice of particle counts near size / spacing, along axis d of block `part` and all axes that follow.
  -- cost: of the counts chosen before.
  local function along(part, d, cost)
    if part > #sizes then return visit(counts, cost) end
    local size = sizes[part].size
    if d > #size then return along(part + 1, 1, cost) end
    if d == 1 then counts[part] = {} end
    local nearest = math.max(1, math.floor(size[d] / spacing + 0.5))
    for n = math.max(1, nearest - 1), nearest + 1 do
      counts[part][d] = n
      local off = math.log(size[d] / (n * spacing))
      along(part, d + 1, cost + off * off)
    end
  end
  along(1, 1, 0)
end

---Particles along each side of boxes, so that all of them together come as near as they can to a number, with
---cells as square as they can be.
---@param sizes { size: number[], times: integer }[]     boxes, and how often each is there
---@param particles integer
---@return integer[][]      for each of sizes
function lattice.counts(sizes, particles)
  local volume = 0
  for _, part in ipairs(sizes) do volume = volume + part.times * tables.product(part.size) end
  local best, least_miss, least_cost = nil, math.huge, math.huge
  each_way(sizes, (volume / particles) ^ (1 / #sizes[1].size), function(counts, cost)
    local total = 0
    for k, part in ipairs(sizes) do total = total + part.times * tables.product(counts[k]) end
    local miss = math.abs(total - particles)
    if miss < least_miss or miss == least_miss and cost < least_cost then
      best, least_miss, least_cost = {}, miss, cost
      for k, n in ipairs(counts) do best[k] = { unpack(n) } end
    end
  end)
  return best
end

---The spacing at which a shape has the number of particles that comes nearest to the wanted one.
---@param shape cq.Shape        of which no part has a spacing of its own
---@param particles integer
---@return number
function lattice.spacing(shape, particles)
  local dim, longest, box = shape.dim, 0, 1
  for d = 1, dim do
    local extent = shape.upper[d] - shape.lower[d]
    longest, box = math.max(longest, extent), box * extent
  end
  local best, least = nil, math.huge
  -- Samples with n particles along the longest side, and returns how many there are; keeps n if that is nearest so far.
  local function try(n)
    local count = shape:sample({ spacing = longest / n }).count
    local miss = math.abs(count - particles)
    if miss < least then best, least = n, miss end
    return count
  end
  -- the number grows as the power of dim: one correction of the first guess, then spacings near what it gives; those
  -- between whole numbers of cells differ along the other axes
  local n = longest / ((shape.exact or box / 2) / particles) ^ (1 / dim)
  n = math.max(1, math.floor(n + 0.5))
  n = math.max(1, math.floor(n * (particles / try(n)) ^ (1 / dim) + 0.5))
  for k = -3, 3 do try(math.max(1, n + 0.3 * k)) end
  return longest / best
end

return lattice
