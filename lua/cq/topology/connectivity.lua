-- connectivity: the share of a body that is not connected with the rest, as a number with a gradient.
--
-- A virtual problem of heat (Li, Chen, Liu, Tong: Structural topology optimization considering connectivity constraint,
-- SMO 54, 2016). The core of the body is held at temperature 1; heat goes from particle to particle that touch, as well
-- as both conduct, and a little of it leaks out of each. What hangs together with the core is then warm, also at the
-- end of a long way, and what does not is cold:
--
--   sum_j k_i k_j (c_i - c_j) + leak k_i c_i = k_i (1 - c_i) in the core, 0 elsewhere        k = floor + density^8
--
-- Disconnected is the share of the solid that is cold, sum v density (1 - c) / sum v density. A particle that leaks
-- as little as it conducts is as warm as its neighbours: a soft skin counts as part of the body, a soft bridge is none.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local components = require "cq.topology.components"

local POWER = 8               -- bridges below a density of about 0.3 let nothing through
local FLOOR = 1e-9            -- conduction of void: what touches only void is cold
local REACH = 30              -- extents of the body that heat goes through solid before it has leaked
local CORE = 0.5              -- the core is denser than this share of the densest particle

-- The graph of the design's particles that are nearer than the radius (components.graph; components.touching without a
-- radius) with matrix: 1 at its pairs, but 0 at those of a particle with itself, own {entries}: 1 at these alone, and
-- leak: the rate at which diffused heat leaks. Errors: none touches another.
local function touching(design, radius)
  local points = design.robot.position
  local graph = radius and components.graph(points, radius) or components.touching(design.robot, design.spacing)
  local near = graph.near
  local own = T.tensor(graph.row):equals(T.tensor(graph.column))
  if near.count == near.rows then
    is.fail("design:connectivity: no particle touches another within the radius %s; it must be above the spacing, %s",
      text.number(radius), text.number(design.spacing))
  end
  local extent = (points:max(1) - points:min(1)):max():item()
  local diffusivity = near.value:square():sum():item() / points:size(1) / (2 * points:size(2))
  graph.matrix, graph.own, graph.leak = near:with(1 - own), own, diffusivity / (REACH * extent * REACH * extent)
  return graph
end

-- A row {n}: 1 for the particles of the largest connected part among those denser than half of the densest, else 0.
-- Heat begins there.
local function core_of(graph, density)
  return components.largest(graph, density:greater(CORE * density:max():item()))
end

-- The temperatures {n} of heat conduction in the design, whose core {n} (1 there, else 0) is warm: material that is not
-- connected with it stays cold.
local function temperatures(graph, density, core)
  local k = density:pow(POWER) * (1 - FLOOR) + FLOOR
  local diagonal = k * (graph.matrix:product(k) + graph.leak + core)
  local pairs_of = k:gather(graph.row, 1) * k:gather(graph.column, 1) * (graph.own - 1)
  local all = graph.matrix:with(pairs_of + diagonal:gather(graph.row, 1) * graph.own)
  return all:solve(k * core)
end

---A function that measures a mapped design: the share of its solid, by volume, that is not connected with the rest, a
---tensor of rank 0. Errors: none touches another.
---@param design cq.Topology
---@param radius number?         particles nearer than this touch; those of components.touching unless given [length]
---@param root cq.Tensor?        {n} 1 for the particles that the rest must hang together with; the largest part
---  unless given
---@return fun(map: table): cq.Tensor
return function(design, radius, root)
  local graph, volume = touching(design, radius), design.robot.volume
  return function(map)
    local density = map.smooth.density
    local core = root or T.tape.pause(core_of, graph, density:detach())
    local solid = density * volume
    return (solid * (1 - temperatures(graph, density, core))):sum() / solid:sum()
  end
end
