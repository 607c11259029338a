-- image: PNG files as pixels, both ways.
local ffi = require "ffi"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"

local image = {}

---@class cq.Image
---@field width integer
---@field height integer
---@field pixels ffi.cdata*     uint8_t[height * width * 4], red green blue alpha, the top row first

---Reads a PNG file into width, height and pixels. Missing, damaged and enormous files are errors at the user's line.
---@param path string
---@param what? string       put before the sentence of an error
---@return cq.Image
function image.read(path, what)
  local size = ffi.new("int32_t[2]")
  engine.check(engine.C.cq_image_size(path, size), what)
  local bytes = 4 * size[0] * size[1]
  local pixels = ffi.new("uint8_t[?]", bytes)
  engine.check(engine.C.cq_image_read(path, bytes, pixels), what)
  return { width = size[0], height = size[1], pixels = pixels }
end

local spec = is.define("cq.image.write", {
  path = is.string(), width = is.integer { min = 1, max = 16384 }, height = is.integer { min = 1, max = 16384 },
  pixel = is.callable(),
})

---Writes a PNG file, an error if it cannot be written; pixel(x, y) gives red, green, blue, alpha in 0..255 (alpha 255
---unless given), x from the left and y from the top, both from 0.
---@param fields { path: string, width: integer, height: integer, pixel: fun(x: integer, y: integer): integer, integer, integer, integer? }
function image.write(fields)
  local def = spec(fields)
  local pixels = ffi.new("uint8_t[?]", 4 * def.width * def.height)
  for y = 0, def.height - 1 do
    for x = 0, def.width - 1 do
      local r, g, b, a = def.pixel(x, y)
      local k = 4 * (y * def.width + x)
      pixels[k], pixels[k + 1], pixels[k + 2], pixels[k + 3] = r, g, b, a or 255
    end
  end
  engine.check(engine.C.cq_image_write(def.path, def.width, def.height, pixels), "cq.image.write")
end

return image
