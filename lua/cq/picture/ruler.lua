-- ruler: ticks with round numbers, on the ground of scenes and along the axes of plots.
local text = require "cq.base.text"
local colour = require "cq.base.colour"
local ffi = require "ffi"
local engine = require "cq.base.engine"
local walls = require "cq.picture.wall"

local ruler = {}

---The step out of 1, 2, 5 times a power of ten that divides a range into `count` parts, or fewer.
---@return number
function ruler.step(range, count)
  local raw = range / count
  local power = 10 ^ math.floor(math.log10(raw))
  for _, k in ipairs { 1, 2, 5 } do
    if k * power >= raw * (1 - 1e-9) then return k * power end
  end
  return 10 * power
end

local WHOLE = 2^52         -- doubles below it have every whole number

---An iterator over the whole numbers k for which k * step lies within lo..hi; none where a double cannot count the
---steps from 0 to lo or hi.
---@return fun(): integer?
function ruler.ticks(lo, hi, step)
  local k, last = math.ceil(lo / step - 1e-9) - 1, math.floor(hi / step + 1e-9)
  if not (math.abs(k) < WHOLE and math.abs(last) < WHOLE) then last = -math.huge end
  return function()
    k = k + 1
    if k <= last then return k end
  end
end

local AIR = 10             -- [pixel] between two numbers, at least

---The step of ticks whose numbers, written along an axis at size 9, do not run together: `count` of them, or fewer.
---@param canvas cq.Canvas
---@param axis { lo: number, hi: number, pixels: number, count: integer, write: fun(value: number, step: number): string }
---@return number
function ruler.fitting_step(canvas, axis)
  local range, step = axis.hi - axis.lo, nil
  for count = axis.count, 1, -1 do
    step = ruler.step(range, count)
    local widest = 0
    for k in ruler.ticks(axis.lo, axis.hi, step) do
      widest = math.max(widest, canvas:text_width(axis.write(k * step, step), 9))
    end
    if widest + AIR <= step / range * axis.pixels then break end
  end
  return step
end

-- Does a number written around x [pixel] fit between the sides of the picture?
local function is_whole(canvas, label, x)
  local half = canvas:text_width(label, 9) / 2
  return x - half > 2 and x + half < canvas.width - 2
end

local NUMBERS = 28         -- [pixel] from the ruler's line to below its numbers

-- The pixel row of a 2D ruler, and the colour of its numbers. The ruler moves with the ground; where the ground leaves
-- the picture at its lower edge, the ruler stays readable above.
local function line_of(scene, view, ground)
  -- The pixel row of a height in the scene.
  local function row(height) return scene.height - view.scale * (height - view.bottom) end
  local white, grey = "#ffffff", "#7b8794"
  local y, first = row(ground), row(scene.ground)
  if scene.has_ground and ground < scene.ground and y + NUMBERS > scene.height then
    return math.min(first, y - NUMBERS, scene.height - NUMBERS - 2), grey
  end
  return y, scene.has_ground and white or grey
end

---Draws ticks along level ground in 2D, with their numbers in the ground; numbers that the sides would cut off are left
---out. The canvas takes pixels afterwards.
---@param ground number      where it is now
function ruler.flat(canvas, scene, view, ground)
  local width = scene.width / view.scale
  local lo, hi = math.max(view.left, 0), math.min(view.left + width, scene.domain[1])
  local step = ruler.fitting_step(canvas, { lo = view.left, hi = view.left + width, pixels = scene.width,
    count = 9, write = text.number })
  local y, ink = line_of(scene, view, ground)
  local room = scene.height - y                      -- [pixel] of ground below
  canvas:view()
  local pale = colour.number(ink, 0.75)
  for k in ruler.ticks(lo, hi, step / 5) do
    local x, major = (k * step / 5 - view.left) * view.scale, k % 5 == 0
    canvas:line({ { x, y + 2 }, { x, y + math.min(major and 10 or 5, math.max(room - 2, 3)) } }, major and 2 or 1, pale)
    local label = text.number(k / 5 * step)
    if major and room > NUMBERS and is_whole(canvas, label, x) then
      canvas:text { x = x, y = y + 25, size = 9, align = "centre", colour = ink, text = label }
    end
  end
end

-- The pixel x and y of a point in space.
local function project(canvas, x, y, z)
  local point, pixel = ffi.new("double[3]", x, y, z), ffi.new "double[2]"
  engine.check(engine.C.cq_picture_project(canvas.handle, 1, point, pixel))
  return pixel[0], pixel[1]
end

local APART = 70           -- [pixel] between two numbers, about

-- Middle and half length of a ruler along x, and its z [length]. A picture of several moments has one for their whole
-- way.
local function extent(scene, now)
  local reach, focus, box = scene.reach, now.camera_centre, now.box
  if not scene.fit then return focus[1], 2.6 * reach, focus[3] + 1.25 * reach end
  return (box.lower[1] + box.upper[1]) / 2, (box.upper[1] - box.lower[1]) / 2 + reach, box.upper[3] + 0.4 * reach
end

---Where the ticks of a ruler on the ground in 3D stand: along x, in front of the bodies.
---@param now table     the centre that the camera follows, the box that is seen, and the walls
---@return table[]      { x =, y =, z =, text = }
function ruler.solid(canvas, scene, now)
  local reach, out = scene.reach, {}
  local middle, side, z = extent(scene, now)
  -- The height of the ground at x.
  local function height(x) return walls.height(now.walls, x, z, now.ground) end
  local x0, y0 = project(canvas, middle - 0.5 * reach, height(middle - 0.5 * reach), z)
  local x1, y1 = project(canvas, middle + 0.5 * reach, height(middle + 0.5 * reach), z)
  local pixels = math.sqrt((x1 - x0)^2 + (y1 - y0)^2) / reach
  if not (pixels > 0) then return out end            -- behind the camera
  local step = ruler.step(APART / pixels, 1)
  side = math.max(side, scene.fit and 0 or 4 * step)
  for k in ruler.ticks(math.max(middle - side, 0), math.min(middle + side, scene.domain[1]), step) do
    out[#out + 1] = { x = k * step, y = height(k * step), z = z, text = text.number(k * step) }
  end
  return out
end

---Writes the numbers of ticks, of ruler.solid, under them over the finished picture; those that its sides would cut off
---are left out.
function ruler.numbers(canvas, scene, ticks)
  for _, tick in ipairs(ticks) do
    local x, y = project(canvas, tick.x, tick.y, tick.z)
    if is_whole(canvas, tick.text, x) and y + 20 < scene.height then
      canvas:text { x = x, y = y + 17, size = 9, align = "centre", colour = "#5b6875", text = tick.text }
    end
  end
end

return ruler
