-- resting_bar: a long bar without weight that floats at rest, and whose left end contracts and stretches. Waves run
-- into what is at rest, and the adjoint of the other end runs back to meet them: numbers that fade to nothing, which a
-- moving body does not have.
--
--   local scene = require "scenes.resting_bar" {}
--   local world = cq.World(scene.world)
local cq = require "cq"

local DX = 0.01                 -- size of a cell
local DT = 5e-4                 -- Courant number about 0.2 with the material below
local CELLS_HIGH = 4            -- of the bar, with two particles along each side of a cell
local CELLS_DRIVEN = 4          -- of its length
local MARGIN = 20               -- cells around it

---@param options { length?: integer, substeps?: integer }   cells, 240 unless given; engine steps of DT in a control step
---@return { robot: cq.Robot, world: cq.World.def, driven: string, far: string }   the groups of the two ends
return function(options)
  local length, substeps = options.length or 240, options.substeps or 1
  local function block(name, at, cells)
    return cq.Shape.box {
      name = name, at = { at * DX, 0 }, size = { cells * DX, CELLS_HIGH * DX }, count = { 2 * cells, 2 * CELLS_HIGH },
      jitter = 0.9, seed = 1,
    }
  end
  local robot = cq.Robot {
    shape = {
      block("driven", 0, CELLS_DRIVEN), block("middle", CELLS_DRIVEN, length - 2 * CELLS_DRIVEN),
      block("far", length - CELLS_DRIVEN, CELLS_DRIVEN),
    },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "driven" }, axis = "x", max = 1 },
  }
  return {
    robot = robot, driven = "driven", far = "far",
    world = {
      cells = { length + 2 * MARGIN, CELLS_HIGH + 2 * MARGIN }, dx = DX, dt = DT * substeps, substeps = substeps,
      gravity = { 0, 0 },
      robot:at { MARGIN * DX, MARGIN * DX },
    },
  }
end
