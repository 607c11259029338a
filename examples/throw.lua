-- A soft block is thrown so that it bounces once on the floor and arrives at a target.         cqlua examples/throw.lua
-- Source: the basketball demo of ChainQueen's public release (ICRA 2019); here the room is twice as long, the floor has
-- friction and the target lies beyond the bounce. Expect: less than 1e-5 from the target after 30 iterations.
-- The loop is the script's own: an experiment is a function from parameters to a number, with a gradient.
-- Size: 100 particles, 150 x 2 steps. Time: 3 s.
local cq = require "cq"

local room  = cq.Boundary.box { kind = "friction", mu = 0.3 }
local block = cq.Robot {
  shape    = cq.Shape.box { name = "block", at = { 0.1, 0.425 }, size = { 1 / 6, 1 / 6 }, count = { 10, 10 } },
  material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
}
local world  = cq.World { cells = { 60, 30 }, dx = 1 / 30, dt = 1e-2, substeps = 2, gravity = { 0, -1 }, walls = room,
  block }
local target = cq.tensor { 1.3, 0.3 }

-- the rollout of the block thrown with p.velocity
local function throw(p, on_step)
  return world:rollout { robot = block:with { velocity = p.velocity }, steps = 150, on_step = on_step }
end
local step = cq.value_and_grad(function(p) return (throw(p).state:center(block) - target):pow(2):sum() end)

local params  = { velocity = cq.param { 0.2, 0.3 } }
local descent = cq.Optimizer.gradient_descent { rate = 0.2 }
local run     = cq.Run.open { iterations = cq.option("iterations", 30), resume = false }
for i = 1, run.iterations do
  local loss, gradient = step(params)
  run:record { iteration = i, loss = loss, error = math.sqrt(loss), velocity = params.velocity }
  descent:update(params, gradient)
  run:checkpoint(i, params, descent:state())
end
run:finish(params)

print(("thrown with (%.3f, %.3f), it is %.1e from the target"):format(params.velocity[1]:item(),
  params.velocity[2]:item(),
  (throw(params).state:center(block) - target):norm():item()))

-- the film: once more, looking on
if cq.option("render", true) then
  local scene = cq.Picture.scene { domain = world.domain.size, volume = block.volume, dx = world.dx, walls = room }
  local film  = cq.Picture.video { path = "throw.mp4", fps = 25 }
  throw(params, function(state)
    if state.step % 2 == 1 then return end
    film:add(scene:frame {
      position = state:positions(), deformation = state:deformations(), goals = { { at = target, radius = 0.02 } },
    })
  end)
  film:close()
end
