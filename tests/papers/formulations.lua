-- The pictures of docs/total_lagrangian.md: updated and total Lagrangian steps beside each other.
--   cqlua tests/papers/formulations.lua --to examples/pictures
-- formulation_updated.png, formulation_total_lagrangian.png: height of a block of rubber that falls on a floor and
-- bounces, at a step and at a half, a quarter and an eighth of it. formulation_cells.png: what the tip of a cantilever
-- sinks by, over the cells across it, beside finite elements (tests/verify/fem/cantilever.csv).
-- Time: 30 s.
local cq = require "cq"
local beam = require "tests.beam"

local folder = cq.option("to", "runs/formulations")
local finest = cq.option("finest", 16)                   -- cells across the cantilever
require("cq.host").make_folder(folder)

local FORMULATIONS = {
  { key = "updated", name = "updated", method = "explicit", colour = "#d9694f" },
  { key = "total_lagrangian", name = "total Lagrangian", method = "total Lagrangian", colour = "#1f3b73" },
}
-- [pixel] two pictures beside each other on a desk; on a phone one, and letters stay as large as those of the page
local WIDTH, HEIGHT = 440, 360

-- ---- a bounce -------------------------------------------------------------------------------------------------------

local SIDE, FALL, FLOOR = 0.06, 0.03, 0.02               -- [m]
local STEP, CONTROL, TIME = 1e-4, 1e-3, 0.5              -- [s]
-- a step of STEP / parts
local STEPS = {
  { parts = 1, name = "dt", colour = "#e8a33d" }, { parts = 2, name = "dt / 2", colour = "#d9694f" },
  { parts = 4, name = "dt / 4", colour = "#9b4f96" }, { parts = 8, name = "dt / 8", colour = "#1f3b73" },
}

-- times [ms], and heights of the block's middle over those of a block that stands on the floor [cm]
local function fall(formulation, parts)
  local dx = SIDE / 12
  local block = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { SIDE, SIDE }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = 1.2e5, poisson = 0.3, density = 1000 },
  }
  local world = cq.World {
    cells = { 40, 40 }, dx = dx, dt = CONTROL, substeps = CONTROL / STEP * parts, gravity = { 0, -9.81 },
    walls = cq.Boundary.floor { at = FLOOR, kind = "separate" }, precision = "float64", formulation = formulation,
    block:at { SIDE, FLOOR + FALL },
  }
  local roll = world:rollout { steps = TIME / CONTROL, record = function(state) return state:center("block")[2] end }
  local times, heights = {}, {}
  for k, y in ipairs(roll.record:totable()) do
    times[k], heights[k] = 1e3 * CONTROL * k, 100 * (y - SIDE / 2 - FLOOR)
  end
  world:close()
  return times, heights
end

for _, formulation in ipairs(FORMULATIONS) do
  local series = {}
  for k, step in ipairs(STEPS) do
    local times, heights = fall(formulation.key, step.parts)
    local first = 0                                      -- the highest point after the first blow, at 80 ms
    for i = 90, #heights do first = math.max(first, heights[i]) end
    print(("%-16s %-6s bounces to %.2f cm"):format(formulation.name, step.name, first))
    series[k] = { x = times, y = heights, name = step.name, colour = step.colour }
  end
  cq.Plot { width = WIDTH, height = HEIGHT, title = formulation.name .. ": height [cm]", y_range = { -0.3, 3 },
    x_label = ("time [ms]; dt: %g ms"):format(1e3 * STEP), series = series }
    :write(("%s/formulation_%s.png"):format(folder, formulation.key))
end

-- ---- a cantilever ---------------------------------------------------------------------------------------------------

-- Timoshenko's beam, which stays nearly straight, would sink by half of its length
local gravity = 0.5 * beam.LENGTH / beam.timoshenko(1)
local found = cq.csv "tests/verify/fem/cantilever.csv":column "tip lower by":totable()
local exact = found[#found]                              -- of 8 finite elements across

local series = {}
for k, formulation in ipairs(FORMULATIONS) do
  local x, y, cells = {}, {}, 2
  while cells <= finest do
    local sunk = beam.sink(cells, gravity, formulation.method, 2) / beam.LENGTH
    x[#x + 1], y[#y + 1] = cells, 100 * sunk
    print(("%-16s %2d cells across: %.4f, %+.1f %%"):format(formulation.name, cells, sunk, 100 * (sunk / exact - 1)))
    cells = 2 * cells
  end
  series[k] = { x = x, y = y, name = formulation.name, colour = formulation.colour }
  series[k + 3] = { x = x, y = y, points = true, colour = formulation.colour }
end
series[3] = { x = { 2, finest }, y = { 100 * exact, 100 * exact }, name = "finite elements", colour = "#3b8f5a" }
cq.Plot { width = WIDTH, height = HEIGHT, title = "the tip sinks by [% of the length]", y_range = { 40, 48 },
  x_label = "cells across the beam", series = series }:write(folder .. "/formulation_cells.png")
