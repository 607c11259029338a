-- axis: from values to places between 0 and 1, and the ticks between: linear, logarithmic, or of categories.
local ruler = require "cq.picture.ruler"

---@class cq.StudyAxis
---@field label string
---@field kind "linear"|"log"|"category"
local Axis = {}
Axis.__index = Axis

local axis = {}

-- fixes the range of an axis: logarithms, and some air at both ends
local function finish(self)
  if self.kind == "log" then self.lo, self.hi = math.log10(self.lo), math.log10(self.hi) end
  if self.lo == self.hi then
    local pad = math.max(math.abs(self.lo) * 0.1, 1e-12)
    self.lo, self.hi = self.lo - pad, self.hi + pad
  end
  local air = (self.air or 0.04) * (self.hi - self.lo)
  self.lo, self.hi = self.lo - air, self.hi + air
  return setmetatable(self, Axis)
end

---Of a parameter of a study.
---@param entry { name: string, parameter: cq.Parameter }
function axis.of_parameter(entry)
  local parameter = entry.parameter
  if parameter.kind == "choice" then
    local labels = {}
    for k = 1, #parameter.values do labels[k] = parameter:label(k) end
    return finish { label = entry.name, kind = "category", labels = labels, lo = 0.5, hi = #labels + 0.5, air = 0 }
  end
  return finish { label = entry.name, kind = parameter.log and "log" or "linear", lo = parameter.min,
    hi = parameter.max }
end

local WIDE = 100             -- positive values whose largest is so many times the least are shown by their logarithm

---Of values: a range that holds all of them.
---@param label string
---@param values number[]
---@param kind? "linear"|"log"     what suits the values unless given
function axis.of_values(label, values, kind)
  local lo, hi = math.huge, -math.huge
  for _, value in ipairs(values) do
    if value - value == 0 then lo, hi = math.min(lo, value), math.max(hi, value) end
  end
  if lo > hi then lo, hi = 0, 1 end
  return finish { label = label, kind = kind or lo > 0 and hi / lo >= WIDE and "log" or "linear", lo = lo, hi = hi }
end

---The place of a value: 0 at the first end, 1 at the last; nan where it has none.
function Axis:place(value)
  if self.kind == "log" then value = value > 0 and math.log10(value) or 0 / 0 end
  return (value - self.lo) / (self.hi - self.lo)
end

---Ticks: their places and texts, about so many; of categories all.
---@param count integer
---@return { place: number, text: string }[]
function Axis:ticks(count)
  local out = {}
  local function add(at, label) out[#out + 1] = { place = (at - self.lo) / (self.hi - self.lo), text = label } end
  if self.kind == "category" then
    for k = 1, #self.labels do add(k, self.labels[k]) end
    return out
  end
  local step = ruler.step(self.hi - self.lo, count)
  if self.kind == "log" then step = math.max(step, self.hi - self.lo >= 1.5 and 1 or 0.25) end
  for k in ruler.ticks(self.lo, self.hi, step) do
    local at = k * step
    if math.abs(at) < step * 1e-6 then at = 0 end
    add(at, self.kind == "log" and ("%.3g"):format(10 ^ at) or ("%.6g"):format(at))
  end
  return out
end

return axis
