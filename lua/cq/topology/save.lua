-- save: a design as tables that other programs read.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local option = require "cq.option"

local axes = { "x", "y", "z" }

local function write(path, rows)
  if option.program.follows then return end
  local file, problem = io.open(path, "w")
  if not file then is.fail("design:save: %s", problem) end
  file:write(table.concat(rows, "\n"), "\n")
  file:close()
end

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

-- a line for each pulse: its time, and its amplitude for each signal
local function pulses(design, map)
  local head = { "time" }
  for s = 1, design.signals do head[s + 1] = "signal_" .. s end
  local rows = { table.concat(head, ",") }
  for k = 1, design.pulses.count do
    local row = { ("%.9g"):format((k - 0.5) * design.pulses.every) }
    for s = 1, design.signals do row[s + 1] = ("%.6g"):format(map.amplitudes:get(k, s)) end
    rows[#rows + 1] = table.concat(row, ",")
  end
  return rows
end

---@param design cq.Topology
---@param params table
---@param path string
return function(design, params, path)
  is.argument("design:save", "path", is.string(), path)
  local front = path:match "^(.*)%.csv$"
  if not front then is.fail("design:save: path must end in .csv, got \"%s\"", path) end
  local map = T.tape.pause(design.map, design, params)
  write(path, particles(design, map))
  write(front .. "_pulses.csv", pulses(design, map))
end
