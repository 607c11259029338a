-- chamber: air chambers by position: the bottom of a body, or each of its feet, cut along axes.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local chamber = {}

---Chambers at the bottom of a body.
---@class cq.Creature.chambers.def
---@field bottom? number                  part of the height that they fill, from below [-]
---@field of? "body"|"foot"               cut the bottom as a whole, or each piece of it that hangs together
---@field split? table<string, integer>   how many along each axis: { x = 2, z = 2 } are quadrants
---@field gap? number                     between neighbours, without actuation [length]

-- A hint for the error about chambers by name that are not all colours, or not all functions; nil: they are neither.
local function hint(name, given)
  if type(given[name]) == "string" then return "chambers by colour are for a picture, and then all of them colours" end
  if text.is_callable(given[name]) then return "chambers by functions of a place are all of them functions" end
end

local spec = is.define("cq.Creature: chambers", {
  bottom = is.number { above = 0, max = 1, default = 0.25 },
  of = is.one_of { "body", "foot", optional = true },
  split = is.table { optional = true },
  gap = is.number { min = 0, default = 0 },
}, nil, hint)

local AXES = { "x", "y", "z" }
local SIDES = { x = { "back", "fore" }, y = { "low", "high" }, z = { "left", "right" } }

-- A list {dim} of how many chambers a part is cut into along each axis, from the user's counts by axis, as { x = 2, z =
-- 2 }, 1 along an axis that they leave out; without these 2 along x and z, 1 along y.
local function split_of(given, dim, what)
  local out = { 1, 1, dim == 3 and 1 or nil }
  if not given then
    out[1], out[3] = 2, dim == 3 and 2 or nil
    return out
  end
  for axis, count in pairs(given) do
    local d = axis == "x" and 1 or axis == "y" and 2 or axis == "z" and dim == 3 and 3
    if not d or type(count) ~= "number" or count % 1 ~= 0 or count < 1 then
      is.fail("%s: chambers.split must be counts by axis, such as %s, got %s = %s", what, dim == 3
        and "{ x = 2, z = 2 }" or "{ x = 2 }",
        tostring(axis), text.describe(count))
    end
    out[d] = count
  end
  return out
end

-- ---- pieces ---------------------------------------------------------------------------------------------------------

-- A list of the particles, from 1, in the lowest share `def.bottom` of a body's height.
local function bottom_of(sample, def)
  local x, dim, out = sample.position:data(), sample.dim, {}
  local low, high = sample.position:min(1):get(2), sample.position:max(1):get(2)
  for p = 0, sample.count - 1 do
    if x[p * dim + 1] <= low + def.bottom * (high - low) then out[#out + 1] = p + 1 end
  end
  return out
end

-- The connected pieces of a list of particles, lists in the order of their least x. Two particles are connected where
-- their cells, on a grid 1.5 times as coarse as their spacing, are one or touch, if only at a corner.
local function pieces_of(sample, list)
  local x, dim, of, names, first = sample.position:data(), sample.dim, {}, {}, {}
  local size = 1.5 * sample.volume:get(1) ^ (1 / dim)
  -- A cell of the lattice as a key of a table.
  local function key(i, j, k) return ("%d %d %d"):format(i, j, k) end
  for _, p in ipairs(list) do
    local at = {}
    for d = 1, 3 do at[d] = d <= dim and math.floor(x[(p - 1) * dim + d - 1] / size) or 0 end
    local name = key(at[1], at[2], at[3])
    if not of[name] then of[name], names[#names + 1] = { at = at, particles = {} }, name end
    table.insert(of[name].particles, p)
  end
  local pieces = {}
  for _, name in ipairs(names) do
    local stack, piece = not of[name].piece and { of[name] } or {}, nil
    if stack[1] then
      piece = {}
      pieces[#pieces + 1], of[name].piece = piece, piece
    end
    while #stack > 0 do
      local cell = table.remove(stack)
      for _, p in ipairs(cell.particles) do piece[#piece + 1] = p end
      for n = 0, 26 do
        local near = of[key(cell.at[1] + n % 3 - 1, cell.at[2] + math.floor(n / 3) % 3 - 1,
          cell.at[3] + math.floor(n / 9) - 1)]
        if near and not near.piece then
          near.piece = piece
          stack[#stack + 1] = near
        end
      end
    end
  end
  for _, piece in ipairs(pieces) do
    first[piece] = math.huge
    for _, p in ipairs(piece) do first[piece] = math.min(first[piece], x[(p - 1) * dim]) end
  end
  table.sort(pieces, function(a, b) return first[a] < first[b] end)
  return pieces
end

-- ---- cuts -----------------------------------------------------------------------------------------------------------

-- The box around some particles. Returns its lower and its upper corner.
local function bounds_of(sample, list)
  local x = sample.position:gather(list, 1)
  return x:min(1):totable(), x:max(1):totable()
end

-- The number of the slot, from 1 to count, that a coordinate between low and high lies in; nil in a gap. Particles
-- exactly on a cut are in neither, so that both sides are alike.
local function slot_of(value, low, high, count, gap)
  local width = (high - low) / count
  if count == 1 or width == 0 then return 1 end
  local k = math.min(math.floor((value - low) / width + 1e-9), count - 1)
  local inside = value - low - k * width
  gap = math.max(gap, 1e-6 * width)
  -- half of a gap on each side of a cut, none at the ends
  if k > 0 and inside < gap / 2 or k < count - 1 and inside > width - gap / 2 then return nil end
  return k + 1
end

-- Cuts a list of particles, and appends the names of its parts to out.names and their particles to out.groups: back to
-- fore, low to high, left to right. def: { split, gap, what }; prefix: before each name, or nil. Errors: a part without
-- particles.
local function cut(sample, list, def, prefix, out)
  local x, dim, split = sample.position:data(), sample.dim, def.split
  local low, high = bounds_of(sample, list)
  local parts = {}
  for _, p in ipairs(list) do
    local number = 0
    for d = 1, dim do
      local slot = number and slot_of(x[(p - 1) * dim + d - 1], low[d], high[d], split[d], def.gap)
      number = slot and number * split[d] + slot - 1
    end
    if number then
      parts[number] = parts[number] or {}
      table.insert(parts[number], p)
    end
  end
  for number = 0, split[1] * split[2] * (split[3] or 1) - 1 do
    local words, rest = {}, number
    for d = dim, 1, -1 do
      local slot = rest % split[d] + 1
      rest = (rest - slot + 1) / split[d]
      if split[d] > 1 then table.insert(words, 1, split[d] == 2 and SIDES[AXES[d]][slot] or tostring(slot)) end
    end
    if prefix then table.insert(words, 1, prefix) end
    local name = #words > 0 and table.concat(words, ".") or "bottom"
    if not parts[number] then
      is.fail("%s: the chamber \"%s\" has no particles: nothing of the body is there; take a larger bottom, another split or of = \"foot\"", def.what, name)
    end
    out.names[#out.names + 1], out.groups[name] = name, parts[number]
  end
end

---Cuts a body into chambers by position: returns their particles, from 1, by name, and the names in order. Errors: a
---chamber without particles; a wrong split.
---@param sample cq.Sample
---@param given cq.Creature.chambers.def
---@param what string        for errors
---@return table<string, integer[]> groups, string[] names
function chamber.cut(sample, given, what)
  local def, out = spec(given), { groups = {}, names = {} }
  def.what, def.split = what, split_of(def.split, sample.dim, what)
  local list = bottom_of(sample, def)
  if (def.of or (sample.dim == 2 and "foot" or "body")) == "body" then
    cut(sample, list, def, nil, out)
  else
    local pieces = pieces_of(sample, list)
    for k, piece in ipairs(pieces) do cut(sample, piece, def, #pieces > 1 and ("foot.%d"):format(k) or nil, out) end
  end
  return out.groups, out.names
end

return chamber
