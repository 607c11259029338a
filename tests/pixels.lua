-- pixels: a body to be drawn, and which pixels of a canvas pass a test, for tests of pictures.
local Shape = require "cq.shape"

local pixels = {}

---A square body of 2 x 2 groups in a world of 1 x 1.
function pixels.body()
  local part = Shape.box { name = "part", size = { 0.1, 0.1 }, spacing = 0.01 }
  return part:translate { 0.4, 0.3 }:sample()
end

---One group of all particles, in red.
function pixels.in_red(sample)
  local list = {}
  for p = 1, sample.count do list[p] = p end
  return { { particles = list, colour = "#c81e1e" } }
end

---Pixels that pass test(red, green, blue): their number and the box { left, top, right, bottom } that holds them.
---@return integer count, number[] box
function pixels.count(canvas, test)
  local p, n, box = canvas:pixels(), 0, { math.huge, math.huge, -1, -1 }
  for y = 0, canvas.height - 1 do
    for x = 0, canvas.width - 1 do
      local q = p + 4 * (y * canvas.width + x)
      if test(q[0], q[1], q[2]) then
        n = n + 1
        box = { math.min(box[1], x), math.min(box[2], y), math.max(box[3], x), math.max(box[4], y) }
      end
    end
  end
  return n, box
end

function pixels.dark(r, g, b) return r + g + b < 300 end
function pixels.reddish(r, g, b) return r > 150 and g < 110 and b < 110 end

return pixels
