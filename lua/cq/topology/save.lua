-- save: a design, or the body that it becomes, as tables that other programs read.
local export = require "cq.export"
local is = require "cq.base.schema"
local place = require "cq.base.place"
local text = require "cq.base.text"

local axes = { "x", "y", "z" }

-- Writes rows as the lines of a file.
local function write(what, path, rows) export.write(what, path, table.concat(rows, "\n") .. "\n") end

-- x, y, density, actuator and the share of each signal, a line for each particle
local function particles(design, map)
  local x, dim, signals = design.robot.position, design.robot.dim, design.signals
  local head = {}
  for d = 1, dim do head[d] = axes[d] end
  head[#head + 1], head[#head + 2] = "density", "actuator"
  for s = 1, signals do head[#head + 1] = "share_" .. s end
  local rows, which = { table.concat(head, ",") }, map.shares:argmax(1)
  for p = 1, map.density.count do
    local row = {}
    for d = 1, dim do row[d] = ("%.9g"):format(x:get(p, d)) end
    row[#row + 1] = ("%.6g"):format(map.density:get(p))
    row[#row + 1] = tostring(which:get(p) <= signals and which:get(p) or 0)
    for s = 1, signals do row[#row + 1] = ("%.6g"):format(map.shares:get(s, p)) end
    rows[#rows + 1] = table.concat(row, ",")
  end
  return rows
end

-- The lines of a table over time: names, then for each of `count` times, dt apart, the signals in row row_of(k) of
-- `values`.
local function times(signals, count, dt, values, row_of)
  local head = { "time" }
  for s = 1, signals do head[s + 1] = "signal_" .. s end
  local rows = { table.concat(head, ",") }
  for k = 1, count do
    local row = { ("%.9g"):format((k - 0.5) * dt) }
    for s = 1, signals do row[s + 1] = ("%.9g"):format(values:get(row_of(k), s)) end
    rows[#rows + 1] = table.concat(row, ",")
  end
  return rows
end

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
  write(what, paths[1], particles(design, map))
  -- pulses that come again are there as often as they come
  write(what, paths[2], times(design.signals, pulses.all, pulses.interval, map.amplitudes,
    function(k) return (k - 1) % pulses.count + 1 end))
  write(what, paths[3], times(design.signals, pulses.steps, pulses.control_dt, map.signals, function(k) return k end))
  return paths
end
