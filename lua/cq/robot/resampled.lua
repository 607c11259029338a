-- resampled: a robot whose particles stand closer, or farther apart: its body is filled anew, each block of it on a
-- lattice that fits between its faces. Each particle has all that the nearest one of before had.
local ffi = require "ffi"
local is = require "cq.base.schema"
local T = require "cq.tensor"
local cables = require "cq.actuator.cable"
local field = require "cq.base.field"
local selection = require "cq.robot.selection"
local values = require "cq.robot.values"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

local resampled = {}

-- ---- where particles come to lie ------------------------------------------------------------------------------------

local FULL = 0.02          -- share of its box that a block may lack
local MOST = 2 ^ 25        -- places of a block, of which a table of Lua holds all coordinates
local LATTICE = 0.05       -- by how much the volume of a particle may differ from that of a cell of its lattice

-- The median gap between different coordinates along an axis; nil: there is only one coordinate. list: numbers from 1.
local function gap_along(robot, list, d)
  local x, dim, places, gaps = robot.position:data(), robot.dim, {}, {}
  for k, p in ipairs(list) do places[k] = x[(p - 1) * dim + d - 1] end
  table.sort(places)
  local least = 1e-3 * robot.volume:get(list[1]) ^ (1 / dim)
  for k = 2, #places do
    if places[k] - places[k - 1] > least then gaps[#gaps + 1] = places[k] - places[k - 1] end
  end
  table.sort(gaps)
  return gaps[math.ceil(#gaps / 2)]
end

-- Side lengths {dim} of the boxes that particles stand for: of their lattice, which may differ by axis; of cubes of
-- their mean volume where they are on no lattice. Also returns the sum of their volumes.
local function sides_of(robot, list)
  local dim, sum, product, sides = robot.dim, 0, 1, {}
  for _, p in ipairs(list) do sum = sum + robot.volume:get(p) end
  local volume = sum / #list
  for d = 1, dim do
    sides[d] = gap_along(robot, list, d)
    product = product * (sides[d] or 0)
  end
  if math.abs(product / volume - 1) < LATTICE then return sides, sum end
  for d = 1, dim do sides[d] = volume ^ (1 / dim) end
  return sides, sum
end

-- The lower and upper corner, two lists {dim}, of the box around some particles, with half of their sides beyond their
-- places.
local function box_of(robot, sides, list)
  local x, half = robot.position:gather(list, 1), T.tensor(sides) / 2
  return (x:min(1) - half):totable(), (x:max(1) + half):totable()
end

-- Does a group fill its bounding box? Then it is a block, with a lattice of its own up to its faces.
local function is_block(robot, list)
  local sides, sum = sides_of(robot, list)
  local lower, upper = box_of(robot, sides, list)
  local box = 1
  for d = 1, robot.dim do box = box * (upper[d] - lower[d]) end
  return math.abs(sum / box - 1) < FULL
end

-- A list of the parts of a body, disjoint lists of particle numbers from 1, that have a lattice each: groups that are
-- blocks, the smallest first, and the rest together.
local function parts_of(robot)
  local names, taken, out, rest = { unpack(robot.group_names) }, {}, {}, {}
  table.sort(names, function(a, b)
    local p, q = robot.group_table[a].particle_count, robot.group_table[b].particle_count
    if p ~= q then return p < q end
    return a < b
  end)
  for _, name in ipairs(names) do
    local list, free = robot.group_table[name]:particles(), true
    for _, p in ipairs(list) do free = free and not taken[p] end
    if free and is_block(robot, list) then
      out[#out + 1] = list
      for _, p in ipairs(list) do taken[p] = true end
    end
  end
  for p = 1, robot.particle_count do
    if not taken[p] then rest[#rest + 1] = p end
  end
  if #rest > 0 then out[#out + 1] = rest end
  return out
end

-- Sorts the particles of a list into the cells of a lattice as wide as they are. Returns a function near(place, each)
-- that calls each(p), with numbers from 1, for all particles in the cells around a place: every one whose box the place
-- may lie in is among them.
local function buckets(robot, list, lower, sides)
  local x, dim, cells = robot.position:data(), robot.dim, {}
  -- A cell as a number, key of a table.
  local function key_of(i, j, k) return (i * 65536 + j) * 65536 + k end
  -- The cell along axis d that a coordinate lies in.
  local function cell(value, d) return math.floor((value - lower[d]) / sides[d]) + 1 end
  for _, p in ipairs(list) do
    local at = (p - 1) * dim
    local key = key_of(cell(x[at], 1), cell(x[at + 1], 2), dim == 3 and cell(x[at + 2], 3) or 0)
    cells[key] = cells[key] or {}
    table.insert(cells[key], p)
  end
  return function(place, each)
    local i, j, k = cell(place[1], 1), cell(place[2], 2), dim == 3 and cell(place[3], 3) or 0
    for di = -1, 1 do
      for dj = -1, 1 do
        for dk = dim == 3 and -1 or 0, dim == 3 and 1 or 0 do
          for _, p in ipairs(cells[key_of(i + di, j + dj, k + dk)] or {}) do each(p) end
        end
      end
    end
  end
end

-- A function that finds, at a place, the nearest particle of a list in whose box the place lies; nil where there is
-- none.
local function finder(robot, sides, list, lower)
  local x, dim, near = robot.position:data(), robot.dim, buckets(robot, list, lower, sides)
  return function(place)
    local best, least = nil, math.huge
    near(place, function(p)
      local farthest, square = 0, 0
      for d = 1, dim do
        local share = math.abs(place[d] - x[(p - 1) * dim + d - 1]) / sides[d]
        farthest, square = math.max(farthest, share), square + share * share
      end
      if farthest <= 0.5 * (1 + 1e-9) and square < least then best, least = p, square end
    end)
    return best
  end
end

-- Fills a part with new particles, factor times as far apart, within the boxes of its old ones (list, from 1): appends
-- to out.places their coordinates, to out.sources the number of the old particle that each replaces, and to out.volumes
-- volumes that sum to the old ones.
local function fill(robot, list, factor, out)
  local sides, before = sides_of(robot, list)
  local lower, upper = box_of(robot, sides, list)
  local dim, counts, steps, first = robot.dim, {}, {}, #out.sources
  for d = 1, dim do
    counts[d] = math.max(1, math.floor((upper[d] - lower[d]) / (factor * sides[d]) + 0.5))
    steps[d] = (upper[d] - lower[d]) / counts[d]
  end
  local count = counts[1] * counts[2] * (counts[3] or 1)
  if count > MOST then
    is.fail("robot:resampled: %s apart by %s of their distance are %s or more places, and it takes %d at most",
      text.count(#list, "particle"), text.number(factor), text.number(count), MOST)
  end
  local find = finder(robot, sides, list, lower)
  for i = 1, counts[1] do
    for j = 1, counts[2] do
      for k = 1, dim == 3 and counts[3] or 1 do
        local place = { lower[1] + (i - 0.5) * steps[1], lower[2] + (j - 0.5) * steps[2],
          dim == 3 and lower[3] + (k - 0.5) * steps[3] or nil }
        local source = find(place)
        if source then
          out.sources[#out.sources + 1] = source
          for d = 1, dim do out.places[#out.places + 1] = place[d] end
        end
      end
    end
  end
  for k = first + 1, #out.sources do out.volumes[k] = before / (#out.sources - first) end
end

-- Fills the body with particles whose distance is `factor` times that of before: their places {n, dim}, the number of
-- the old one that each replaces, and volumes {n} that sum to the old ones.
local function sample(robot, factor)
  local out = { places = {}, sources = {}, volumes = {} }
  for _, list in ipairs(parts_of(robot)) do fill(robot, list, factor, out) end
  return T.tensor(out.places):reshape { #out.sources, robot.dim }, out.sources, T.tensor(out.volumes)
end

-- ---- what they have -------------------------------------------------------------------------------------------------

-- A function of the number of an old particle that gives a list of the new ones in its place; the nearest one where
-- there is none. Numbers from 1. position {m, dim}, sources: of the new particles.
local function successors(robot, position, sources)
  local out = {}
  for k, source in ipairs(sources) do
    out[source] = out[source] or {}
    table.insert(out[source], k)
  end
  local x, y, dim = robot.position:data(), position:data(), robot.dim
  return function(p)
    if out[p] then return out[p] end
    local best, least = 1, math.huge
    for k = 0, #sources - 1 do
      local square = 0
      for d = 0, dim - 1 do
        local way = y[k * dim + d] - x[(p - 1) * dim + d]
        square = square + way * way
      end
      if square < least then best, least = k + 1, square end
    end
    out[p] = { best }
    return out[p]
  end
end

-- The numbers of new particles, int32_t from 0, that stand for `index`, {count} old ones from 0, each once and in
-- order; and how many they are. after(p): the list of the new particles that replace the old one p, both from 1.
local function renewed(index, count, after)
  local seen, list = {}, {}
  for k = 0, count - 1 do
    for _, p in ipairs(after(index[k] + 1)) do
      if not seen[p] then seen[p], list[#list + 1] = true, p end
    end
  end
  table.sort(list)
  return selection.index_of(list)
end

-- Sets position and volume of a resampled robot, and copies constants and values of the old particles to the new ones
-- that replace them.
local function take_values(out, robot, position, sources, volume)
  for _, entry in ipairs(field.of_robot) do
    local own = robot.base[entry.name]
    if own and entry.owner ~= "cable" then out.base[entry.name] = own:gather(sources, 1) end
  end
  out.base.position, out.base.volume = position, volume
  out.values = {}
  for name, value in pairs(robot.values or {}) do
    if field.by_name[name].owner == "cable" then
      out.values[name] = value
    else
      local spread = values.spread(robot, name)
      out.values[name] = { tensor = spread:gather(sources, spread.rank - #values.width(robot, name)) }
    end
  end
end

-- A copy of a table, with its metatable, in which the entries of `fields` replace its own.
local function with(one, fields)
  local out = setmetatable(tables.merged(one), getmetatable(one))
  for key, value in pairs(fields) do out[key] = value end
  return out
end

-- A copy of a cable whose points are the means of the new particles that replace the old ones; the distance of its
-- points is limited only by a gap that the user gave. after: as in renewed.
local function take_cable(cable, after)
  local points = {}
  for k, point in ipairs(cable.points) do
    local list = point.index and {}
    if point.index then
      local index, count = renewed(ffi.new("int32_t[?]", #point.index, point.index), #point.index, after)
      for i = 1, count do list[i] = index[i - 1] end
    end
    points[k] = { anchor = point.anchor, index = list }
  end
  return with(cable, { points = points, actuator = with(cable.actuator, { gap = cable.actuator.gap or math.huge }) })
end

-- Gives a resampled robot `out` copies of the actuators of the original robot, on its own particles. after: as
-- in renewed.
local function take_actuators(out, robot, after)
  -- An actuator with the new particles in place of the old ones.
  local function with_particles(one)
    if not one.index then return with(one, { count = one.count > 0 and out.particle_count or 0 }) end
    local index, count = renewed(one.index, one.count, after)
    return with(one, { index = index, count = count })
  end
  out.stresses, out.forces, out.cables = {}, {}, {}
  for k, stress in ipairs(robot.stresses) do out.stresses[k] = with_particles(stress) end
  for k, force in ipairs(robot.forces) do out.forces[k] = with_particles(force) end
  for k, cable in ipairs(robot.cables) do out.cables[k] = take_cable(cable, after) end
  cables.measure(out)
end

-- Gives a resampled robot `out` the groups and the pins of the original robot, with new particles. after: as in
-- renewed.
local function take_groups(out, robot, after)
  for name, group in pairs(robot.group_table) do
    local own = out.group_table[name]
    own.index, own.particle_count = renewed(group.index, group.particle_count, after)
  end
  out.pins = {}
  for _, pin in ipairs(robot.pins) do
    for _, one in ipairs(type(pin) == "number" and after(pin) or { pin }) do out.pins[#out.pins + 1] = one end
  end
end

---Samples `out`, a copy of a robot, again in place. Errors: surfaces under pressure, whose areas belong to the old
---particles; places or volumes set by robot:with.
---@param out cq.Robot       the copy
---@param robot cq.Robot
---@param factor number      of the distance between particles
---@return cq.Robot out      with sources: for each particle the number of the old one that it replaces
function resampled.make(out, robot, factor)
  if #robot.surfaces > 0 then
    is.fail("%s has surfaces under pressure, which are those of its particles: they cannot be resampled", robot.name)
  end
  local given = robot.values or {}
  if given.position or given.volume then
    is.fail("%s has places or volumes of its own for its %d particles, which others cannot take", robot.name,
      robot.particle_count)
  end
  local position, sources, volume = sample(robot, factor)
  local after = successors(robot, position, sources)
  out.particle_count, out.entry_index, out.sources = #sources, nil, sources
  take_values(out, robot, position, sources, volume)
  out.law, out.laws, out.drawn = ffi.new("int32_t[?]", #sources), { having = {} }, {}
  for key, value in pairs(robot.laws) do
    if key ~= "having" then out.laws[key] = value end
  end
  for k, p in ipairs(sources) do out.law[k - 1], out.drawn[k] = robot.law[p - 1], robot.drawn[p] end
  take_groups(out, robot, after)
  take_actuators(out, robot, after)
  return out
end

return resampled
