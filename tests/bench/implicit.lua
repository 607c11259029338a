-- implicit: what implicit steps and settle cost on both grids, at which error.
--
--   cqlua tests/bench/implicit.lua [--cells 3,6,12] --threads 1
--
-- The beam of tests/beam.lua, which is held at one end and bends under its weight: by world:settle, and by 60 steps of
-- backward Euler until it rests, on the grid of the world and on that of its shape, with as many cells across as
-- --cells says and three and two particles along a cell. Errors of the tip's way are against settle on 32 cells of its
-- shape. Processor time of the whole, the making of the world
-- included.
local cq = require "cq"
local beam = require "tests.beam"

local GRAVITY = 0.1 * beam.LENGTH / beam.timoshenko(1)      -- its tip sinks by a tenth of its length

local function seconds(f)
  local began = os.clock()
  local value = f()
  return os.clock() - began, value
end

local exact = beam.sink(32, GRAVITY, "total Lagrangian, settle", 2)
print(("%-28s %5s %9s %9s"):format("", "cells", "error", "seconds"))
for cells in cq.option("cells", "3,6,12"):gmatch "%d+" do
  for _, how in ipairs { { "settle", 3 }, { "total Lagrangian, settle", 2 }, { "implicit", 3 },
    { "total Lagrangian, implicit", 2 } } do
    local time, sink = seconds(function() return beam.sink(tonumber(cells), GRAVITY, how[1], how[2]) end)
    local error = sink / exact - 1
    print(("%-28s %5s %8.2f%% %9.2f"):format(how[1], cells, 100 * error, time))
  end
end
