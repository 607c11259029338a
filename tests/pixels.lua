-- pixels: which of a canvas pass a test, for tests of what is drawn.
local pixels = {}

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
