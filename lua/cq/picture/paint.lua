-- paint: the palette, and the colour of every particle: its group's, with its actuation blended over.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local colour = require "cq.base.colour"

local paint = {}

-- soft tints that stay apart for colour-blind eyes too, and leave strong red and blue to actuation
paint.groups = { "#e8bd6b", "#9db7a0", "#b9a5cf", "#8fc1c9", "#e3a48b", "#c9c98a", "#d7a6bd", "#8fa3bd" }
paint.body = "#a9b3be"
paint.positive, paint.negative = "#c8313a", "#2160ad"
-- of a number: from dark to light, read the same in grey and by colour-blind eyes (viridis)
paint.scale = { "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b",
  "#fde725" }
paint.sky = { "#f8fafb", "#e4ebf1" }
paint.ground, paint.ground_edge = "#566270", "#39434f"
paint.ink, paint.faint = "#24303c", "#7b8794"
paint.trail = "#d1603d"
paint.cable = "#2b2622"
paint.goal, paint.arrow = "#2f9e57", "#c2410c"
-- of forces that are drawn over bodies whose signals are red and blue; and around all arrows
paint.force, paint.arrow_rim = "#14181d", "#ffffff"
-- of a number with a sign: from blue by a pale grey to red
paint.signed = { "#2160ad", "#5b8dc7", "#a3bfdf", "#e9e9ea", "#e5ada6", "#d56b6a", "#c8313a" }
-- of tensions, apart from those of the bodies that cables run through: from a warm white to a dark red
paint.tension = { "#fff3d6", "#fdd28a", "#fb9f4b", "#ea5f2b", "#b3221d", "#6e0b14" }
-- of categories: tell apart what is one of several things
paint.categories = { "#a9b3be", "#d1603d", "#2160ad", "#e8bd6b", "#3b8f5a", "#8a5fb0", "#4a9aa5", "#b34a72", "#7a5c3e",
  "#c9c98a" }
paint.pinned = "#3d4752"
-- of plots
paint.lines = { "#2160ad", "#d1603d", "#3b8f5a", "#8a5fb0", "#b3892b", "#4a9aa5", "#b34a72", "#5c6670" }

-- The count of particles of an entry of `groups`, and a function from k = 1..count to an index from 0. Errors: an entry
-- without particles.
local function members(entry, position)
  local particles = entry.particles
  if entry.index ~= nil and entry.particle_count then
    return entry.particle_count, function(k) return entry.index[k - 1] end
  elseif type(particles) == "table" then
    return #particles, function(k) return particles[k] - 1 end
  end
  is.fail("cq.Picture: groups[%d] must have particles (a list of numbers from 1), got %s", position,
    text.describe(entry))
end

---Colours of n particles by group: {n} of red, green, blue. Groups later in the list paint over earlier ones. Errors: a
---particle beyond n.
---@param n integer
---@param groups table[]      { name=, particles=, colour? }
---@param drawn table<integer, integer>   0xRRGGBB of particles, by number from 1, over the colours of groups
---@return ffi.cdata*         float[3 n], 0..255
function paint.base(n, groups, drawn)
  local out = ffi.new("float[?]", 3 * n)
  local r, g, b = colour.parse(paint.body, "body")
  for p = 0, n - 1 do out[3 * p], out[3 * p + 1], out[3 * p + 2] = r, g, b end
  for position, entry in ipairs(groups) do
    local count, index = members(entry, position)
    local own = entry.colour or paint.groups[(position - 1) % #paint.groups + 1]
    r, g, b = colour.parse(own, ("cq.Picture: groups[%d].colour"):format(position))
    for k = 1, count do
      local p = index(k)
      if p < 0 or p >= n then is.fail("cq.Picture: groups[%d] has particle %d, there are %d", position, p + 1, n) end
      out[3 * p], out[3 * p + 1], out[3 * p + 2] = r, g, b
    end
  end
  for p, rgb in pairs(drawn) do
    out[3 * p - 3], out[3 * p - 2], out[3 * p - 1] = math.floor(rgb / 65536), math.floor(rgb / 256) % 256, rgb % 256
  end
  return out
end

---Darkens the colours of pinned particles, in place.
---@param out ffi.cdata*         uint32_t[n]
---@param pinned integer[]       particle numbers from 1
function paint.darken(out, pinned)
  local hr, hg, hb = colour.parse(paint.pinned, "pinned")
  for _, p in ipairs(pinned) do
    local rgba = out[p - 1]
    local r, g, b = math.floor(rgba / 2 ^ 24), math.floor(rgba / 2 ^ 16) % 256, math.floor(rgba / 2 ^ 8) % 256
    out[p - 1] = colour.pack(r + 0.62 * (hr - r), g + 0.62 * (hg - g), b + 0.62 * (hb - b), rgba % 256)
  end
end

---Sets the opacity of colours 0xRRGGBBAA, in place: alpha of particle p becomes fade times opacity[p].
---@param out ffi.cdata*         uint32_t[n]
---@param n integer
---@param opacity ffi.cdata*?    double[n] in 0..1; all 1 unless given
---@param fade number            0: all are transparent, 1: opacity alone
function paint.fade(out, n, opacity, fade)
  for p = 0, n - 1 do
    local alpha = fade * (opacity and math.max(0, math.min(1, opacity[p])) or 1)
    if alpha ~= alpha then alpha = fade end
    out[p] = out[p] - out[p] % 256 + math.floor(255 * alpha + 0.5)
  end
end

---Mixes colours with the background, in place, for bodies at earlier moments. Alpha stays.
---@param out ffi.cdata*         uint32_t[n]
---@param n integer
---@param share number           0: as they are, 1: the background's
function paint.pale(out, n, share)
  for p = 0, n - 1 do
    local rgba = out[p]
    local r, g, b = math.floor(rgba / 2 ^ 24), math.floor(rgba / 2 ^ 16) % 256, math.floor(rgba / 2 ^ 8) % 256
    out[p] = colour.pack(r + share * (240 - r), g + share * (243 - g), b + share * (246 - b), rgba % 256)
  end
end

---Writes the engine's colours: base blended towards red by positive actuation and towards blue by negative.
---@param out ffi.cdata*         uint32_t[n]
---@param n integer
---@param base ffi.cdata*        float[3 n]
---@param actuation ffi.cdata*?  double[n] in -1..1
function paint.blend(out, n, base, actuation)
  local pr, pg, pb = colour.parse(paint.positive, "positive")
  local nr, ng, nb = colour.parse(paint.negative, "negative")
  for p = 0, n - 1 do
    local r, g, b = base[3 * p], base[3 * p + 1], base[3 * p + 2]
    local u = actuation and actuation[p] or 0
    if u ~= u then u = 0 end
    if u ~= 0 then
      local tr, tg, tb = pr, pg, pb
      if u < 0 then tr, tg, tb = nr, ng, nb end
      local w = 0.9 * math.min(math.abs(u), 1)^0.7
      r, g, b = r + w * (tr - r), g + w * (tg - g), b + w * (tb - b)
    end
    out[p] = colour.pack(r, g, b)
  end
end

return paint
