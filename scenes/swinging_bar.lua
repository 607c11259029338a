-- swinging_bar: a bar of soft silicone that is held at one end and swings down under its weight, on a grid of its own
-- shape; for identification from a film of its tip. Lengths in m, masses in Mg, stresses in kPa.
local Shape = require "cq.shape"
local Robot = require "cq.robot"
local World = require "cq.world"
local Material = require "cq.material"

local LENGTH, WIDTH, HELD = 0.12, 0.03, 0.015

---A bar and its world.
---@param options { young: number, cells?: integer, precision?: string }   cells over the width, 4
---@return { robot: cq.Robot, world: cq.World }
return function(options)
  local n = options.cells or 4
  local dx = WIDTH / n
  local robot = Robot {
    name = "bar", shape = Shape.box { size = { LENGTH, WIDTH }, spacing = dx / 2 },
    material = Material.neo_hookean { young = options.young, poisson = 0.45, density = 1.07 },
    groups = { root = function(x) return x < HELD end, tip = function(x) return x > LENGTH - WIDTH / 4 end },
    pins = "root",
  }
  return {
    robot = robot,
    world = World { cells = { 6 * n, 8 * n }, dx = dx, dt = 1e-2, substeps = "auto", gravity = { 0, -9.81 },
      formulation = "total_lagrangian", precision = options.precision, robot:at { WIDTH, 0.14 } },
  }
end
