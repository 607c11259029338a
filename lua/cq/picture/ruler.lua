-- ruler: ticks with round numbers, on the ground of scenes and along the axes of plots.
local text = require "cq.text"
local colour = require "cq.colour"
local ffi = require "ffi"
local engine = require "cq.engine"

local ruler = {}

---The step out of 1, 2, 5 times a power of ten that gives about `count` ticks over a range.
---@return number
function ruler.step(range, count)
  local raw = range / count
  local power = 10 ^ math.floor(math.log10(raw))
  for _, k in ipairs { 1, 2, 5 } do
    if k * power >= raw * (1 - 1e-9) then return k * power end
  end
  return 10 * power
end

---Multiples of step within lo..hi, as whole factors.
---@return fun(): integer?
function ruler.ticks(lo, hi, step)
  local k, last = math.ceil(lo / step - 1e-9) - 1, math.floor(hi / step + 1e-9)
  return function()
    k = k + 1
    if k <= last then return k end
  end
end

---Ticks along level ground in 2D, with their numbers in the ground.
function ruler.flat(canvas, scene, view)
  local width = scene.width / view.scale
  local lo, hi = math.max(view.left, 0), math.min(view.left + width, scene.domain[1])
  local step = ruler.step(width, 9)
  local y = scene.height - view.scale * (scene.ground - view.bottom)
  local room = scene.height - y                      -- [pixel] of ground below
  canvas:view()
  local pale = colour.number("#ffffff", 0.75)
  for k in ruler.ticks(lo, hi, step / 5) do
    local x, major = (k * step / 5 - view.left) * view.scale, k % 5 == 0
    canvas:line({ { x, y + 2 }, { x, y + math.min(major and 10 or 5, math.max(room - 2, 3)) } }, major and 2 or 1, pale)
    if major and room > 28 then
      canvas:text { x = x, y = y + 25, size = 9, align = "centre", colour = "#ffffff", text = text.number(k / 5 * step) }
    end
  end
end

---Where the ticks of a ruler on the ground in 3D stand: along x, in front of the bodies.
---@return table[]      { x =, z =, text = }
function ruler.solid(scene, focus)
  local reach, out = scene.reach, {}
  local step = ruler.step(4 * reach, 7)
  for k in ruler.ticks(math.max(focus[1] - 2.6 * reach, 0), math.min(focus[1] + 2.2 * reach, scene.domain[1]), step) do
    out[#out + 1] = { x = k * step, z = focus[3] + 1.25 * reach, text = text.number(k * step) }
  end
  return out
end

---Writes the numbers under the ticks, over the finished picture.
function ruler.numbers(canvas, scene, ticks)
  local point, pixel = ffi.new("double[3]"), ffi.new("double[2]")
  for _, tick in ipairs(ticks) do
    point[0], point[1], point[2] = tick.x, scene.ground, tick.z
    engine.check(engine.C.cq_picture_project(canvas.handle, 1, point, pixel))
    if pixel[0] == pixel[0] then
      canvas:text { x = pixel[0], y = pixel[1] + 17, size = 9, align = "centre", colour = "#5b6875", text = tick.text }
    end
  end
end

return ruler
