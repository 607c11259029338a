-- signature: a design apart from its variables, in words, to recognise it when a run is resumed.
local text = require "cq.base.text"

-- A number with nine digits.
local function digits(x) return ("%.9g"):format(x) end

-- A text of the particles of a mask {n} by their numbers, with runs as "81 to 100".
local function numbers_of(mask)
  local words, first = {}, nil
  for p = 1, mask.count + 1 do
    local inside = p <= mask.count and mask:get(p) > 0
    if inside and not first then first = p end
    if not inside and first then
      words[#words + 1] = first == p - 1 and tostring(first) or ("%d to %d"):format(first, p - 1)
      first = nil
    end
  end
  return "particles " .. table.concat(words, ", ")
end

---The settings of a design as texts by name, to compare with those of a saved run.
---@param design cq.Topology
---@return table<string, string>
return function(design)
  local filter, pulses, x = design.filter, design.pulses, design.robot.position
  local out = {
    block = ("%s from %s to %s"):format(text.count(x:size(1), "particle"), tostring(x:min(1)), tostring(x:max(1))),
    signals = tostring(design.signals), duration = digits(design.duration),
    ["filter.radius"] = digits(filter.radius), ["filter.power"] = digits(filter.power),
    ["layout.sharpness"] = digits(design.layout.sharpness),
    ["pulses.interval"] = digits(pulses.interval), ["pulses.width"] = digits(pulses.width),
    ["pulses.gain"] = digits(pulses.gain), ["pulses.period"] = pulses.period and digits(pulses.period) or "none",
    solid_region = design.mask and numbers_of(design.mask) or "none",
    symmetry = design.fold_words or "none", rounding = design.rounding or "none",
    connected = design.graph and "yes" or "none", remove_void = design.remove_void and "yes" or "none",
  }
  for name, value in pairs(design.material) do out["material." .. name] = digits(value) end
  return out
end
