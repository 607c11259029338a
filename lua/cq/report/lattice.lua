-- lattice: particles in the order of the lattice that their shape was filled with, and the earlier neighbours of each,
-- from which the report predicts how it moves. Particles of a cloud without a lattice have fewer neighbours.
local ffi = require "ffi"

local REACH = 2 ^ 16                 -- cells along an axis, more than a body has
local STRAIGHT = 0.25                -- how far beside an axis its neighbour may lie, of its distance

local lattice = {}

-- The key of the lattice cell in which a particle rests, a number that rises with z, then y, then x. at, from: where
-- its coordinates, and those of the particle from which cells are counted, begin in double rest[].
local function cell_of(rest, at, from, dim, spacing)
  local key = 0
  for d = dim, 1, -1 do
    key = key * REACH + math.floor((rest[at + d - 1] - rest[from + d - 1]) / spacing + 0.5) + REACH / 2
  end
  return key
end

-- Calls see(key) for a cell and its neighbours until it returns a value that is not nil, and returns that; else nil.
local function around(key, dim, see)
  for z = dim == 3 and -1 or 0, dim == 3 and 1 or 0 do
    for y = -1, 1 do
      for x = -1, 1 do
        local found = see(key + x + REACH * (y + REACH * z))
        if found ~= nil then return found end
      end
    end
  end
end

-- Are all cells around a cell taken, so that it is not at the surface? taken: lists of particles by cell.
local function is_inside(taken, key, dim)
  return around(key, dim, function(one) return not taken[one] or nil end) == nil
end

-- The number of the nearest particle in the direction -axis from p, if it lies straight enough; nil: there is none.
-- key: the cell of p; taken: lists of particles by cell.
local function neighbour(rest, p, axis, key, dim, taken)
  local best, least = nil, math.huge
  around(key, dim, function(one)
    for _, q in ipairs(taken[one] or {}) do
      local way, beside = rest[dim * p + axis - 1] - rest[dim * q + axis - 1], 0
      if way > 0 and way < least then
        for d = 1, dim do
          beside = beside + (d == axis and 0 or (rest[dim * p + d - 1] - rest[dim * q + d - 1]) ^ 2)
        end
        if beside < (STRAIGHT * way) ^ 2 then best, least = q, way end
      end
    end
  end)
  return best
end

---@class cq.Report.lattice
---@field count integer          particles that are kept
---@field order ffi.cdata*       int32_t[count] numbers from 0 of the particles, in the order of the report
---@field outer ffi.cdata*       uint8_t[count] 1 for particles on the surface, in the plane all, and for those that flow
---@field outer_count integer
---@field before ffi.cdata*[]    {dim} of int32_t[count]: the place in `order` of the neighbour along -x, -y, -z; -1: none

---Orders the particles of bodies by cells of their lattices, and finds each one's neighbours before it, and which lie
---at the surface. In 2D all count as outer ones.
---@param rest ffi.cdata*        double[n dim] where the particles are undeformed
---@param dim integer
---@param bodies { first: integer, count: integer, spacing: number, loose: boolean|integer[] }[]   first from 0
---@param keep? fun(p: integer, outer: boolean): boolean    all unless given
---@return cq.Report.lattice
function lattice.new(rest, dim, bodies, keep)
  local list, outer, at, before_of = {}, {}, {}, {}
  for _, body in ipairs(bodies) do
    local keys, taken, own, loose = {}, {}, {}, {}
    for _, p in ipairs(type(body.loose) == "table" and body.loose or {}) do loose[body.first + p - 1] = true end
    for p = body.first, body.first + body.count - 1 do
      local key = cell_of(rest, dim * p, dim * body.first, dim, body.spacing)
      keys[p], taken[key] = key, taken[key] or {}
      table.insert(taken[key], p)
    end
    for p, key in pairs(keys) do
      outer[p] = dim == 2 or body.loose == true or loose[p] or not is_inside(taken, key, dim)
      if not keep or keep(p, outer[p]) then own[#own + 1] = p end
    end
    table.sort(own, function(a, b)
      if keys[a] ~= keys[b] then return keys[a] < keys[b] end
      return a < b
    end)
    for _, p in ipairs(own) do
      at[p], list[#list + 1], before_of[p] = #list, p, {}
      for d = 1, dim do before_of[p][d] = neighbour(rest, p, d, keys[p], dim, taken) end
    end
  end
  local out = { count = #list, order = ffi.new("int32_t[?]", #list), outer = ffi.new("uint8_t[?]", #list),
    outer_count = 0, before = {} }
  for d = 1, dim do out.before[d] = ffi.new("int32_t[?]", #list) end
  for k, p in ipairs(list) do
    out.order[k - 1], out.outer[k - 1] = p, outer[p] and 1 or 0
    out.outer_count = out.outer_count + out.outer[k - 1]
    for d = 1, dim do
      local q = before_of[p][d] and at[before_of[p][d]]
      out.before[d][k - 1] = q and q < k - 1 and q or -1
    end
  end
  return out
end

return lattice
