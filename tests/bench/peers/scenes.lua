-- scenes: what cqlua and its peers are compared on: the falling block of `cqlua bench` and the 2D walker of
-- ChainQueen (ICRA 2019) with its linear controller. All competitors run the same particles, step for step;
-- export.lua writes them to a file.
local cq = require "cq"

local blocks = {
  ["2d-1600"] = { dim = 2, side = 40, cells = { 100, 100 }, steps = 500 },
  ["2d-6400"] = { dim = 2, side = 80, cells = { 100, 120 }, steps = 200 },
  ["3d-8000"] = { dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200 },
  ["2d-6400-lattice"] = { dim = 2, side = 80, cells = { 100, 120 }, steps = 200, jitter = 0 },
  ["3d-8000-lattice"] = { dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, jitter = 0 },
  ["3d-8000-smooth"] = { dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, floor = "separate" },
}

local scenes = { names = { "2d-1600", "2d-6400", "3d-8000", "2d-6400-lattice",
  "3d-8000-lattice", "3d-8000-smooth", "walker" } }

---@class peers.Scene
---@field name string
---@field law "neo_hookean"|"corotated"
---@field robot cq.Robot
---@field world cq.World.def         holds the robot
---@field steps integer              engine steps, each with its own signals
---@field mu number                  friction of the box
---@field inset number               cells from the edge of the world to the sides of the box
---@field velocity cq.Tensor         {n, dim} initial
---@field target integer             loss = direction . mean position of this group, from 1
---@field direction number[]         {dim}
---@field groups string[][]          names of the robot's groups in each group; every particle is in one
---@field strength number?           stress of a signal of 1, along y in the material frame
---@field actuated integer[]?        group of each signal
---@field controller cq.Controller?  u = tanh(W z + b), z the mean positions, then the mean velocities of all groups

local INSET = 3                   -- of cq.Boundary.box

local function block(name, case, steps)
  local made = require "scenes.falling_block" { dim = case.dim, side = case.side, cells = case.cells,
    floor = case.floor, jitter = case.jitter }
  return {
    name = name, law = "neo_hookean", robot = made.robot, world = made.world, steps = steps or case.steps,
    mu = made.world.walls.mu or 0,
    inset = INSET, velocity = made.velocity, target = 1, direction = case.dim == 2 and { 1, 1 } or { 1, 1, 1 },
    groups = { { "block" } },
  }
end

-- one control step for each engine step, as in ChainQueen
local function walker(steps)
  local def = require "scenes.walker2d" {}
  local robot, mu = cq.Robot(def), 0.5
  local groups, number, target = {}, {}, nil
  for k, name in ipairs(robot.groups) do
    groups[k], number[name] = { name }, k
    if name == "trunk" then target = k end
  end
  local actuated = {}
  for k, name in ipairs(robot.signals) do actuated[k] = number[name] end
  return {
    name = "walker", law = "corotated", robot = robot, steps = steps or 800, mu = mu, inset = INSET,
    velocity = cq.zeros { robot.particle_count, 2 }, target = target, direction = { -1, 0 }, groups = groups,
    strength = def.actuators.max, actuated = actuated,
    controller = cq.Controller.linear { scale = 0.1, inputs = 2 * 2 * #groups, signals = #actuated },
    world = {
      cells = { 80, 40 }, dx = 1 / 40, gravity = { 0, -2 }, dt = 5e-3,
      walls = cq.Boundary.box { kind = "friction", mu = mu }, robot:at { 0.2, 0.1 },
    },
  }
end

---@param name string
---@param steps? integer      instead of the scene's own
---@return peers.Scene
function scenes.make(name, steps)
  if name == "walker" then return walker(steps) end
  if not blocks[name] then
    error(("there is no case %s; there are %s"):format(name, table.concat(scenes.names, ", ")), 0)
  end
  return block(name, blocks[name], steps)
end

return scenes
