-- save: a design, or the body that it becomes, as tables that other programs read.
local csv = require "cq.base.csv"
local export = require "cq.export"
local is = require "cq.base.schema"
local place = require "cq.base.place"
local text = require "cq.base.text"
local T = require "cq.tensor"

local axes = { "x", "y", "z" }

-- The CSV text of a design's particles, a row each: place, density, actuator (0: none) and the share of each signal.
-- map: of Topology:map.
local function particles(design, map)
  local heads, lists, formats = {}, {}, {}
  -- Adds a column.
  local function add(name, values, format)
    heads[#heads + 1], lists[#lists + 1], formats[#formats + 1] = name, values:totable(), format
  end
  local which = map.shares:argmax(1)
  for d = 1, design.robot.dim do add(axes[d], design.robot.position:slice(d, d, 2):flatten(), "%.9g") end
  add("density", map.density, "%.6g")
  add("actuator", which * which:less_equal(design.signals), "%d")
  for s = 1, design.signals do add("share_" .. s, map.shares[s], "%.6g") end
  return csv.columns(heads, lists, formats)
end

-- The CSV text of values {times, signals}, each held for dt [time]: a column with the middle time of each interval, and
-- one for each signal. For pulses, and for the signals made from them.
local function signals(values, dt)
  local heads, lists = { "time" }, { ((T.arange(values:size(1)) - 0.5) * dt):totable() }
  for s = 1, values:size(2) do
    heads[s + 1], lists[s + 1] = "signal_" .. s, values:slice(s, s, 2):flatten():totable()
  end
  return csv.columns(heads, lists, "%.9g")
end

---Writes the tables of particles, pulses and signals. Errors: another ending than .csv; a path that cannot be written.
---@param what string       the method that saves, for errors
---@param design cq.Topology
---@param map { density: cq.Tensor, shares: cq.Tensor, amplitudes: cq.Tensor, signals: cq.Tensor }   as design:map gives it
---@param path string
---@param run? cq.Experiment       in whose folder a name is
---@return string[] paths
return function(what, design, map, path, run)
  is.argument(what, "path", is.string(), path)
  if not path:match "%.csv$" then is.fail("%s: path must end in .csv, got %s", what, text.describe(path)) end
  path = place.of(path, run)
  local front = path:sub(1, -5)
  local pulses, paths = design.pulses, { path, front .. "_pulses.csv", front .. "_signals.csv" }
  export.write(what, paths[1], particles(design, map))
  -- pulses that come again are there as often as they come
  local all = map.amplitudes:repeated(math.ceil(pulses.all / pulses.count), 1):slice(1, pulses.all, 1)
  export.write(what, paths[2], signals(all, pulses.interval))
  export.write(what, paths[3], signals(map.signals, pulses.control_dt))
  return paths
end
