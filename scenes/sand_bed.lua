-- sand_bed: a flat bed of sand on rough ground that gravity pulls aslant, as if the ground were tilted; it begins to
-- flow at its angle of repose.
-- Source: none, a scene of our own. The sand is Mohr and Coulomb's and does not dilate: an endless slope of it flows
-- from tan(slope) = sin(friction angle) on (Davis 1968), with an acceleration of g (sin(tilt) - tan(slope) cos(tilt)).
local cq = require "cq"

local LENGTH, DEPTH, WALL, REPOSE = 1, 0.1, 3, 30
local STEPS = 50                    -- after which the damped bed has its final speed

-- The tilt [degree] at which the bed begins to flow, from a simulation of two tilts above the angle of repose as one
-- batch. With damping, the beds come to speeds in proportion to sin(tilt) - tan(onset) cos(tilt), which gives the onset
-- from the two speeds. world: cq.World of the scene; repose: expected angle of repose [degree].
local function onset_of(world, repose)
  local gravity, tilts = {}, { repose + 8, repose + 12 }
  for k, tilt in ipairs(tilts) do gravity[k] = { math.sin(math.rad(tilt)), -math.cos(math.rad(tilt)) } end
  local speed = world:rollout({ steps = STEPS, batch = #tilts, gravity = cq.tensor(gravity) }).state:velocity "middle"
  local low, high = speed[1][1]:item(), speed[2][1]:item()
  -- low (sin 2 - m cos 2) = high (sin 1 - m cos 1)
  local m = (high * gravity[1][1] - low * gravity[2][1]) / (low * gravity[2][2] - high * gravity[1][2])
  return math.deg(math.atan(m))
end

---A bed of sand and the fields of its world.
---@param options? { repose?: number, cells?: integer, damping?: number, precision?: string, device?: string }
---  repose: angle of repose, 30 degrees unless given [degree]; cells: in the depth of the bed, 8 unless given
---@return { robot: cq.Robot, world: cq.World.def, repose: number, onset: fun(world: cq.World): number }
---  repose: angle of repose [degree]; onset: tilt from which the bed flows, of a world made of these fields [degree]
return function(options)
  local given = options or {}
  local repose, cells = given.repose or REPOSE, given.cells or 8
  local dx = DEPTH / cells
  local robot = cq.Robot {
    name = "sand", shape = cq.Shape.box { name = "bed", size = { LENGTH, DEPTH }, count = { 20 * cells, 2 * cells } },
    material = cq.Material.drucker_prager {
      young = 100, poisson = 0.3, friction_angle = math.asin(math.tan(math.rad(repose))), density = 1,
    },
    groups = { middle = function(x) return x > 0.4 * LENGTH and x < 0.6 * LENGTH end },
  }
  return {
    robot = robot, repose = repose, onset = function(world) return onset_of(world, repose) end,
    world = {
      cells = { math.floor(1.6 * LENGTH / dx), cells + 4 + 2 * WALL }, dx = dx, dt = 0.02, substeps = "auto",
      gravity = { 0, -1 }, damping = given.damping or 5, precision = given.precision, device = given.device,
      walls = cq.Boundary.floor { at = WALL * dx }, robot:at { 0.2 * LENGTH, WALL * dx },
    },
  }
end
