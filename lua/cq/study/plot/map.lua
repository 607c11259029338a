-- map: of a grid, the mean of what came out for each pair of values of two parameters, over all others and all
-- replicates.
local colour = require "cq.base.colour"
local names = require "cq.study.plot.names"
local paint = require "cq.picture.paint"
local panels = require "cq.study.plot.panel"

local SIDE, ACROSS, MOST = 420, 3, 6          -- [pixel] of a panel, panels in a row, panels at most
local INSET = { left = 92, right = 24, top = 40, bottom = 56 }

local function colour_at(place)
  local at = math.min(math.max(place, 0), 1) * (#paint.scale - 1)
  local k = math.min(math.floor(at), #paint.scale - 2)
  local w, a, b = at - k, { colour.parse(paint.scale[k + 1], "scale") }, { colour.parse(paint.scale[k + 2], "scale") }
  return colour.pack(a[1] + w * (b[1] - a[1]), a[2] + w * (b[2] - a[2]), a[3] + w * (b[3] - a[3]))
end

-- mean objective at each pair of values of two parameters; the least and the largest mean
local function means(data, a, b)
  local sums, counts, lo, hi = {}, {}, math.huge, -math.huge
  for _, entry in ipairs(data.done) do
    local key = entry.point[a.name] .. "," .. entry.point[b.name]
    sums[key], counts[key] = (sums[key] or 0) + entry.value, (counts[key] or 0) + 1
  end
  for key, sum in pairs(sums) do
    sums[key] = sum / counts[key]
    lo, hi = math.min(lo, sums[key]), math.max(hi, sums[key])
  end
  return sums, lo, hi
end

local function labels_of(parameter)
  local out = {}
  for k = 1, #parameter.values do out[k] = parameter:label(k) end
  return out
end

-- names of the columns below, where y is, and of the rows on the left
local function label(canvas, x0, y, lay, b, tall)
  names.write(canvas, lay, y + 16)
  local texts = names.below(canvas, labels_of(b.parameter), INSET.left - 16)
  for j = 1, #texts, math.ceil(names.LINE / tall) do
    canvas:text { x = x0 - 8, y = y - (j - 0.5) * tall + 4, size = names.SIZE, align = "right", colour = paint.faint,
      text = texts[j] }
  end
end

-- draws one map: a coloured cell for each pair of values
local function draw(canvas, data, a, b, left, top)
  local mean, lo, hi = means(data, a, b)
  local columns, rows = #a.parameter.values, #b.parameter.values
  local x0, y0 = left + INSET.left, top + INSET.top
  local wide = (SIDE - INSET.left - INSET.right) / columns
  local lay = names.across { canvas = canvas, labels = labels_of(a.parameter), left = x0, pitch = wide,
    before = INSET.left - 30, after = INSET.right - 4 }
  local tall = (SIDE - INSET.top - INSET.bottom - names.LINE * (lay.rows - 1)) / rows
  for i = 1, columns do
    for j = 1, rows do
      local value = mean[i .. "," .. j]
      local x, y = x0 + (i - 1) * wide, y0 + (rows - j) * tall
      local place = value and (hi > lo and (value - lo) / (hi - lo) or 0.5)
      canvas:rectangle(x, y, wide - 1, tall - 1, place and colour_at(place) or colour.number "#e6e9ec")
      if value and wide > 46 and tall > 18 then
        canvas:text { x = x + wide / 2, y = y + tall / 2 + 4, size = 9, align = "centre", colour = place < 0.6
          and "#ffffff" or paint.ink,
          text = ("%.3g"):format(value) }
      end
    end
  end
  label(canvas, x0, y0 + rows * tall, lay, b, tall)
  canvas:text { x = x0 + columns * wide / 2, y = top + SIDE - INSET.bottom + 36, size = 10, align = "centre",
    text = a.name }
  canvas:text { x = left + 20, y = y0 - 10, size = 10, text = b.name }
end

return function(data)
  local space, pairs_of = data.study.space, {}
  if data.study.sampler ~= "grid" or #space < 2 then return nil end
  for i = 1, #space do
    for j = i + 1, #space do
      if #pairs_of < MOST then pairs_of[#pairs_of + 1] = { space[i], space[j] } end
    end
  end
  local across = math.min(#pairs_of, ACROSS)
  local canvas = panels.canvas(across * SIDE, math.ceil(#pairs_of / across) * SIDE + 44,
    ("%s: mean %s"):format(data.study.name, data.label))
  for k, pair in ipairs(pairs_of) do
    draw(canvas, data, pair[1], pair[2], (k - 1) % across * SIDE, 44 + math.floor((k - 1) / across) * SIDE)
  end
  return canvas
end
