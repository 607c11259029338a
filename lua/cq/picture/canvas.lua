-- canvas: the engine's rasterizer as an object. Coordinates are pixels, x right and y down, until
-- view maps a plane with y up.
local method = require "cq.base.method"
local ffi = require "ffi"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"
local colour = require "cq.base.colour"
local option = require "cq.option"
local place = require "cq.base.place"
local text = require "cq.base.text"
local ascii = require "cq.picture.ascii"

local C = engine.C

---@class cq.Canvas
---@field width integer     [pixel]
---@field height integer    [pixel]
local Canvas = { __name = "cq.Canvas" }
Canvas.__index = Canvas

local SIDE_MAX = 8192            -- the engine's own limit, told here at the user's line

---@class cq.Picture.canvas.def
---@field width? integer                   [pixel]
---@field height? integer                  [pixel]
---@field samples? integer                 along each side of a pixel, 1 to 4
---@field background? string|string[]      a colour, or two for a gradient from top to bottom

local spec = is.define("cq.Picture.canvas", {
  width = is.integer { min = 16, max = SIDE_MAX, default = 1280 },
  height = is.integer { min = 16, max = SIDE_MAX, default = 720 },
  samples = is.integer { min = 1, max = 4, default = 2 },
  background = is.any_of { colour.checker(), is.list(colour.checker(), { min = 2 }), default = "#ffffff" },
})

-- The engine's number of a colour, from "#rrggbb" or such a number.
local function number(value) return type(value) == "string" and colour.number(value) or value end

-- A double array of a list of numbers, flat or nested once, and how many numbers it has.
local function flat(list)
  local n, k = type(list[1]) == "table" and #list * #list[1] or #list, 0
  local out = ffi.new("double[?]", math.max(n, 1))
  for _, entry in ipairs(list) do
    if type(entry) == "table" then
      for _, x in ipairs(entry) do out[k], k = x, k + 1 end
    else
      out[k], k = entry, k + 1
    end
  end
  return out, k
end
Canvas.flat = flat

local of_number, of_colour = is.number { infinite = true }, colour.checker()

-- The engine's number of a colour that the method `what` was given as `name`. Errors: no colour.
local function ink(what, name, value)
  return type(value) == "number" and value or number(is.argument(what, name, of_colour, value))
end

-- Raises an error for the first argument that is no number. what: the method; names: of the arguments.
local function require_numbers(what, names, ...)
  for k, name in ipairs(names) do
    local value = select(k, ...)
    -- nan is drawn nowhere
    if value == value then is.argument(what, name, of_number, value) end
  end
end

-- The double array of points { x, y }, or of their numbers one after the other, and how many numbers there are. Errors:
-- another list.
local function points_of(what, points)
  is.argument(what, "points", is.table(), points)
  for k, p in ipairs(points) do
    local is_point = type(p) == "table" and #p == 2 and type(p[1]) == "number" and type(p[2]) == "number"
    if type(p) ~= type(points[1]) or type(p) ~= "number" and not is_point then
      is.fail("%s: points must be a list of points { x, y }, got %s at position %d", what, text.describe(p), k)
    end
  end
  return flat(points)
end

---Makes an empty canvas of some pixels.
---@param fields? cq.Picture.canvas.def
---@return cq.Canvas
local function new(fields)
  local def = spec(fields == nil and {} or fields)
  local out = ffi.new("cq_picture *[1]")
  engine.check(C.cq_picture_create(def.width, def.height, def.samples, out), "cq.Picture.canvas")
  local self = setmetatable({ width = def.width, height = def.height, samples = def.samples }, Canvas)
  self.handle = ffi.gc(out[0], C.cq_picture_destroy)
  C.cq_picture_threads(self.handle, option.program.threads or 0)
  self:clear(def.background)
  return self
end

-- The canvas in one line: its width and height.
function Canvas:__tostring() return ("cq.Canvas { %d x %d pixels }"):format(self.width, self.height) end

---Removes everything drawn, and fills the canvas with a background.
---@param background string|string[]     a colour, or two from top to bottom
---@return cq.Canvas
function Canvas:clear(background)
  local top, bottom = background, background
  if type(background) == "table" then top, bottom = background[1], background[2] end
  local what = "canvas:clear"
  C.cq_picture_background(self.handle, ink(what, "background", top), ink(what, "background", bottom))
  return self
end

---From now on coordinates are a plane's, y up, with `left`, `bottom` at the lower left
---corner. No arguments: pixels again.
---@param scale? number      [pixel / length]
---@param left? number
---@param bottom? number
---@return cq.Canvas
function Canvas:view(scale, left, bottom)
  require_numbers("canvas:view", { "scale", "left", "bottom" }, scale or 0, left or 0, bottom or 0)
  C.cq_picture_view(self.handle, scale or 0, left or 0, bottom or 0)
  return self
end

---Fills a polygon.
---@param points number[][]     {n, 2}
---@param fill string|integer   colour
---@return cq.Canvas
function Canvas:polygon(points, fill)
  local data, n = points_of("canvas:polygon", points)
  engine.check(C.cq_picture_polygon(self.handle, n / 2, data, ink("canvas:polygon", "fill", fill)), "canvas:polygon")
  return self
end

---Draws a line through points, with round ends.
---@param points number[][]     {n, 2}
---@param width number          [pixel]
---@param stroke string|integer colour
---@return cq.Canvas
function Canvas:line(points, width, stroke)
  local what, data, n = "canvas:line", points_of("canvas:line", points)
  require_numbers(what, { "width" }, width)
  engine.check(C.cq_picture_polyline(self.handle, n / 2, data, width, ink(what, "stroke", stroke)), what)
  return self
end

---Fills a rectangle, from its corner of least x and y.
---@param x number
---@param y number
---@param width number
---@param height number
---@param fill string|integer   colour
---@return cq.Canvas
function Canvas:rectangle(x, y, width, height, fill)
  require_numbers("canvas:rectangle", { "x", "y", "width", "height" }, x, y, width, height)
  return self:polygon({ { x, y }, { x + width, y }, { x + width, y + height }, { x, y + height } }, fill)
end

---Fills a disc.
---@param x number              of its centre
---@param y number
---@param radius number         in the unit of x and y
---@param fill string|integer   colour
---@return cq.Canvas
function Canvas:disc(x, y, radius, fill)
  require_numbers("canvas:disc", { "x", "y", "radius" }, x, y, radius)
  C.cq_picture_discs(self.handle, 1, ffi.new("double[2]", x, y), ffi.new("double[1]", radius),
    ffi.new("uint32_t[1]", ink("canvas:disc", "fill", fill)))
  return self
end

---@class canvas.text.def
---@field x number              of its left end, centre or right end, as align says [pixel]
---@field y number              of the baseline, from the top [pixel]
---@field text any              what tostring makes of it; é is written as e, ± as +-, α as alpha
---@field size? number          height of a capital [pixel]
---@field weight? number        width of the strokes, by the size unless given [pixel]
---@field colour? string        "#rrggbb"
---@field align? "left"|"centre"|"right"   which part of the line is at x

local text_spec = is.define("canvas:text", {
  x = is.number(), y = is.number(), text = is.any(), size = is.number { above = 0, default = 11 },
  weight = is.number { above = 0, optional = true },
  colour = colour.checker { default = "#24303c" }, align = is.one_of { "left", "centre", "right", default = "left" },
})

local text_of = ffi.new "cq_text"

-- The width of a line of text of a size [pixels].
local function width_of(line, size)
  text_of.x, text_of.size = 0, size
  return C.cq_picture_text(nil, text_of, line)
end

---Writes a line of text; its place is always in pixels.
---@param fields canvas.text.def
---@return number      its width [pixel]
function Canvas:text(fields)
  local def = text_spec(fields)
  local line = ascii(tostring(def.text))
  local width = width_of(line, def.size)
  text_of.x = def.x - (def.align == "right" and width or def.align == "centre" and width / 2 or 0)
  text_of.y, text_of.weight, text_of.rgba = def.y, def.weight or 0.8 + 0.055 * def.size, number(def.colour)
  return C.cq_picture_text(self.handle, text_of, line)
end

---How wide a line of text would be.
---@param line any             what tostring makes of it
---@param size number          height of a capital [pixel]
---@return number              [pixel]
function Canvas:text_width(line, size)
  require_numbers("canvas:text_width", { "size" }, size)
  return width_of(ascii(tostring(line)), size)
end

---Copies another picture, of as many samples, onto this one.
---@param from cq.Canvas
---@param x integer             of its upper left corner on this one [pixel]
---@param y integer
---@return cq.Canvas
function Canvas:paste(from, x, y)
  is.argument("canvas:paste", "from", is.instance "cq.Canvas", from)
  require_numbers("canvas:paste", { "x", "y" }, x, y)
  engine.check(C.cq_picture_paste(self.handle, from.handle, x, y), "canvas:paste")
  return self
end

---The pixels: {height, width, 4} bytes, red green blue alpha, the top row first.
---@return ffi.cdata* pixels     uint8_t[]
function Canvas:pixels()
  local out = ffi.new("uint8_t[?]", 4 * self.width * self.height)
  C.cq_picture_pixels(self.handle, out)
  return out
end

---Writes a PNG file, beside its place and renamed; nothing under cqlua check, and under MPI on ranks but the first.
---Errors: another ending.
---@param path string        ends in .png; a name without a slash is in the run's folder
---@return string path
function Canvas:write(path)
  is.argument("picture:write", "path", is.string(), path)
  if not path:lower():match "%.png$" then
    is.fail("picture:write: a picture is written as PNG, so its path must end in .png, got %s", text.describe(path))
  end
  path = place.of(path)
  if place.is_left_out() then return path end
  engine.check(C.cq_image_write(path, self.width, self.height, self:pixels()), "picture:write")
  return path
end

method.guard(Canvas, "canvas")

return { new = new, class = Canvas, number = number, flat = flat }
