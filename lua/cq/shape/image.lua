-- image: a shape from a PNG drawing. What is opaque is body; regions of named colours are groups. y points up.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local colour = require "cq.base.colour"
local images = require "cq.base.image"
local primitive = require "cq.shape.primitive"
local cloud = require "cq.shape.cloud"
local locate = require "cq.base.locate"

---@class cq.Shape.image.def : cq.Shape.part.def
---@field path string                       a PNG file, from the working directory, else the script's folder, else cqlua's
---@field width? number                     of the whole picture, its height follows [length]; or size
---@field size? number[]                    {2} of the whole picture [length]; or width
---@field at? number[]                      {2} its lower left corner [length]
---@field colours? table<string, string>    groups by name with their colours, { leg = "#3f7fbf" }; other opaque pixels are in no group
---@field background? string                a colour that is outside, as what is transparent
---@field tolerance? number                 of colours, in 1/255 of a channel
---@field trim? boolean                     take the box that holds the body for the picture

local spec = is.define("cq.Shape.image", primitive.with_common {
  path = is.string(),
  at = is.vector { size = 2, default = { 0, 0 } },
  width = is.number { above = 0, optional = true },
  size = is.vector { size = 2, above = 0, optional = true },
  colours = is.table { optional = true },
  background = colour.checker { optional = true },
  tolerance = is.number { min = 0, max = 255, default = 24 },
  trim = is.boolean { default = false },
})

-- The user's colours as a list of { name, text, r, g, b, pixels = 0 }, by the alphabet. Errors: a name that is no
-- string; a colour that cannot be read.
local function named_colours(given)
  local list = {}
  for name, value in pairs(given or {}) do
    if type(name) ~= "string" then
      is.fail("cq.Shape.image: colours is a table of names, got %s as a name", text.describe(name))
    end
    local r, g, b = colour.parse(value, ("cq.Shape.image: colours.%s"):format(name))
    list[#list + 1] = { name = name, text = colour.text(r, g, b), r = r, g = g, b = b, pixels = 0 }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- The number of the colour in the list that is nearest to r, g, b by the largest difference of a channel; 0: none is
-- within the tolerance.
local function nearest(list, tolerance, r, g, b)
  local best, least = 0, tolerance
  for k, c in ipairs(list) do
    local away = math.max(math.abs(r - c.r), math.abs(g - c.g), math.abs(b - c.b))
    if away < least or (away == least and best == 0) then best, least = k, away end
  end
  return best
end

-- For every pixel of a picture, a table from 0: -1 outside, 0 body, k for the k-th colour of the list, whose count
-- `pixels` is raised; and the number of pixels inside.
local function classify(self, picture, list)
  local kinds, inside, count = {}, 0, picture.width * picture.height
  local back = self.background and { {} }
  if back then back[1].r, back[1].g, back[1].b = colour.parse(self.background, "cq.Shape.image: background") end
  local px, tolerance = picture.pixels, self.tolerance
  for k = 0, count - 1 do
    local r, g, b, a = px[4 * k], px[4 * k + 1], px[4 * k + 2], px[4 * k + 3]
    local kind = -1
    if a >= 128 and not (back and nearest(back, tolerance, r, g, b) == 1) then
      kind, inside = nearest(list, tolerance, r, g, b), inside + 1
      if kind > 0 then list[kind].pixels = list[kind].pixels + 1 end
    end
    kinds[k] = kind
  end
  return kinds, inside
end

-- The opaque colours of a picture as texts, the most frequent first, for an error.
local function palette(picture)
  local seen, list = {}, {}
  for k = 0, picture.width * picture.height - 1 do
    local px = picture.pixels + 4 * k
    if px[3] >= 128 then
      local key = colour.text(px[0], px[1], px[2])
      if not seen[key] then list[#list + 1] = key end
      seen[key] = (seen[key] or 0) + 1
    end
  end
  table.sort(list, function(a, b) return seen[a] > seen[b] or (seen[a] == seen[b] and a < b) end)
  return list
end

-- The first six texts of a list, joined by commas, and ", ..." if there are more.
local function commonest(list)
  return table.concat(list, ", ", 1, math.min(#list, 6)) .. (#list > 6 and ", ..." or "")
end

-- Raises an error if no pixel of a picture is outside: most likely its paper is taken for the body. Not so where each
-- pixel has one of the colours that the user named. count: of the pixels inside.
local function require_outline(self, picture, list, count)
  local named = 0
  for _, c in ipairs(list) do named = named + c.pixels end
  if count < picture.width * picture.height or named == count then return end
  local colours, px = palette(picture), picture.pixels
  if #colours == 1 then
    is.fail("cq.Shape.image: every pixel of '%s' is %s, it has no outline; what is outside must be transparent, or of another colour that background names",
      self.path, colours[1])
  end
  is.fail("cq.Shape.image: every pixel of '%s' is body, it has no outline: none is transparent%s; its commonest colours are %s; say which is outside, for instance background = \"%s\"",
    self.path, self.background and " or has the background " .. self.background or "", commonest(colours),
    colour.text(px[0], px[1], px[2]))
end

-- The smallest rectangle of a picture that holds the body: kinds of its pixels, width, height, and the column and row
-- of its upper left corner.
local function trimmed(picture, kinds)
  local w, h = picture.width, picture.height
  local left, right, top, bottom = w, 0, h, 0
  for k = 0, w * h - 1 do
    if kinds[k] >= 0 then
      local i, j = k % w, math.floor(k / w)
      left, right, top, bottom = math.min(left, i), math.max(right, i), math.min(top, j), math.max(bottom, j)
    end
  end
  local out, wide = {}, right - left + 1
  for j = top, bottom do
    for i = left, right do out[(j - top) * wide + i - left] = kinds[j * w + i] end
  end
  return out, wide, bottom - top + 1, left, top
end

---A shape from a PNG file. Pixels that are transparent, or near the background colour if there is one, are outside.
---Errors: both or neither of width and size; a file that is missing or damaged; a colour that no pixel has; a picture
---of which nothing is outside, unless each of its pixels has one of the colours.
---@param fields cq.Shape.image.def
---@return cq.Shape
local function image(fields)
  local self = spec(fields)
  if (self.width == nil) == (self.size == nil) then
    is.fail("cq.Shape.image: give either width or size, %s given", self.width and "both are" or "none is")
  end
  local picture = images.read(locate(self.path), "cq.Shape.image")
  local w, h = picture.width, picture.height
  local list = named_colours(self.colours)
  local kinds, count = classify(self, picture, list)
  if count == 0 then
    is.fail("cq.Shape.image: '%s' has no body: every pixel is transparent or background", self.path)
  end
  for _, c in ipairs(list) do
    if c.pixels == 0 then
      is.fail("cq.Shape.image: '%s' has no pixel of the colour %s of \"%s\"; its commonest are %s", self.path, c.text,
        c.name, commonest(palette(picture)))
    end
  end
  require_outline(self, picture, list, count)
  local left, top = 0, 0
  if self.trim then kinds, w, h, left, top = trimmed(picture, kinds) end
  local size = self.size or { self.width, self.width * h / w }
  local x0, y0, scale_x, scale_y = self.at[1], self.at[2], w / size[1], h / size[2]
  -- At a place: -1 outside, 0 body, or the number of a named colour; and its pixel's place in picture.pixels, or nil.
  local function kind_at(x, y)
    local i, j = math.floor((x - x0) * scale_x), h - 1 - math.floor((y - y0) * scale_y)
    if i < 0 or j < 0 or i >= w or j >= h then return -1 end
    return kinds[j * w + i], 4 * ((j + top) * picture.width + i + left)
  end
  local upper = { x0 + size[1], y0 + size[2] }
  local exact = count * size[1] * size[2] / (w * h)
  self.size, self.width = nil, nil
  self = primitive.new("image", self, self.at, upper, exact, function(x, y) return kind_at(x, y) >= 0 end)
  -- The particles of the drawing, with its colours as groups.
  self.fill = function(spacing)
    local out = primitive.fill(self, spacing)
    for _, c in ipairs(list) do cloud.group(out, c.name) end
    for p = 1, out.count do
      local kind, pixel = kind_at(cloud.at(out, p))
      local c, px = list[kind], picture.pixels + pixel
      out.colour[p] = c and c.r * 65536 + c.g * 256 + c.b or px[0] * 65536 + px[1] * 256 + px[2]
      if c then
        local group = out.groups[c.name]
        group[#group + 1] = p
      end
    end
    return out
  end
  return self
end

return image
