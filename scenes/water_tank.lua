-- water_tank: a tank of water at rest, with room for a body in it.
-- Source: none; what it is compared with is linear theory of waves and Archimedes. Units: gravity 1, density 1.
--
-- The grid holds a liquid half a cell behind the last nodes of a wall, and lets it flow from the nodes on. So the walls
-- stand on nodes, length and depth are measured from there, and the water fills half a cell more:
--
--   node   2   3   4   5   6 ...
--            |(o)  o   o   o       (o) the wall, | the end of the water
local cq = require "cq"

local GRAVITY, EDGE = 1, 3        -- EDGE: cells from the edge of the world to the walls

-- The pressure {n} of the particles of group `which` in a state: minus the mean of both normal stresses in the plane.
local function pressure(state, which)
  return (state:gather(which, "cauchy") * cq.eye(2)):sum { 2, 3 } * -0.5
end

-- The error of the pressure of water at rest, without bodies in it: particles are averaged in horizontal layers a cell
-- thick, and the largest difference from the hydrostatic pressure is returned, relative to the pressure at the bottom.
-- scene: the table that this file's function returns.
local function worst_pressure(state, scene)
  local p, x, off, count = pressure(state, "water"), state:gather("water", "position"), {}, {}
  for k = 1, p.count do
    local y = x:get(k, 2) - scene.corner[2]
    local layer = math.floor(y / scene.dx + 0.5)
    off[layer] = (off[layer] or 0) + p:get(k) - scene.gravity * (scene.depth - y)
    count[layer] = (count[layer] or 0) + 1
  end
  local worst = 0
  for layer, sum in pairs(off) do worst = math.max(worst, math.abs(sum) / count[layer]) end
  return worst / (scene.gravity * scene.depth)
end

-- The first sloshing mode of the tank by linear theory: returns its angular frequency, and the velocity {n, 2} of each
-- particle of `robot`, the water as it lies in the world, when the surface is level. amplitude: of the surface at the
-- walls [length]; scene: as in worst_pressure.
local function mode(scene, robot, amplitude)
  local k = math.pi / scene.length
  local omega = math.sqrt(scene.gravity * k * math.tanh(k * scene.depth))
  local x = (robot.position - cq.tensor(scene.corner)) * k
  local px, py = x:slice(1, 1, 2), x:slice(2, 2, 2)
  local up, down = py:exp(), (-py):exp()
  local v = amplitude * omega / (2 * math.sinh(k * scene.depth))
  return omega, cq.concat({ -v * px:sin() * (up + down), v * px:cos() * (up - down) }, 2)
end

---A tank of water and the fields of its world.
---@param options? { length?: number, depth?: number, height?: number, across?: integer, stiffness?: number,
---  kind?: string, mu?: number, without?: cq.Shape, bodies?: cq.Robot[], [string]: any }
---  length: of the tank, 1 unless given; depth: of the water, 0.5; height: of the tank, 1.6 times its depth
---  across: cells along the length, 32; stiffness: bulk modulus in density * gravity * depth, 200
---  kind, mu: of the walls, "separate"; without: what the water leaves out, and bodies: what is in it, from the corner
---  viscosity, damping, pressure_smoothing (20), precision, dt (0.02): as the library has them
---@return { water: cq.Robot, world: cq.World.def, corner: number[], [string]: any }
---  corner: {2} of the tank in the world; pressure(state, which), worst_pressure(state, scene),
---  mode(scene, robot, amplitude): as they stand above; colour: of pictures
return function(options)
  local given = options or {}
  local length, depth, across = given.length or 1, given.depth or 0.5, given.across or 32
  local dx = length / across
  local corner, up = { EDGE * dx, EDGE * dx }, math.ceil((given.height or 1.6 * depth) / dx)
  local shape = cq.Shape.box {
    name = "water", at = { -dx / 2, -dx / 2 }, size = { length + dx, depth + dx / 2 }, spacing = dx / 2,
  }
  if given.without then shape = shape - given.without end
  local water = cq.Robot {
    name = "water", shape = shape,
    material = cq.Material.fluid {
      bulk = (given.stiffness or 200) * GRAVITY * depth, density = 1, viscosity = given.viscosity,
    },
  }
  local world = {
    cells = { across + 2 * EDGE, up + 2 * EDGE }, dx = dx, dt = given.dt or 0.02, substeps = "auto",
    gravity = { 0, -GRAVITY }, damping = given.damping, pressure_smoothing = given.pressure_smoothing or 20,
    precision = given.precision, walls = cq.Boundary.box { kind = given.kind or "separate", mu = given.mu },
    water:at(corner):hydrostatic { gravity = { 0, -GRAVITY }, surface = corner[2] + depth },
  }
  for _, body in ipairs(given.bodies or {}) do world[#world + 1] = body:at(corner) end
  return {
    water = water, world = world, corner = corner, length = length, depth = depth, dx = dx, gravity = GRAVITY,
    pressure = pressure, worst_pressure = worst_pressure, mode = mode,
    colour = {
      by = function(state)
        local parts = {}
        for k, robot in ipairs(state.world.robots) do parts[k] = pressure(state, robot) end
        return cq.concat(parts, 1)
      end, label = "pressure", range = { 0, GRAVITY * depth },
    },
  }
end
