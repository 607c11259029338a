-- The walker's stiffness is learnt together with its controller, and compared to the controller alone.  cqlua examples/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), section 5.3.2: Young's modulus of every particle within
-- 7 to 20, from 10; it adds nearly 50 % to the way of a biped. Expect: some 40 % after 100 iterations. Other first weights
-- (--seed 1 to 3) gave 9, 162 and 9 %; all four together 37 %: where the controller alone stays in a poor gait, the body helps most.
local cq = require "cq"

local world = cq.World {                          -- as in walker2d.lua
  cells = { 160, 40 }, dx = 1 / 40, dt = 5e-3, substeps = 2, gravity = { 0, -2 },
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  cq.Robot(require "scenes.walker2d" {}):at { 0.2, 0.1 },
}
local robot    = world.robot
local observer = cq.Observer.centroid { groups = robot.groups, velocity = true }
local run      = cq.Run.open { iterations = cq.option("iterations", 100), resume = false }

-- a walker that learns; its body stays as it is unless `young` is to be learnt too
local function Walker(file, young)
  local controller = cq.Controller.linear { scale = 0.1 }
  local params = { net = controller:prepare(world, observer), young = young }
  local net, body = cq.Optimizer.gradient_descent { rate = 1, clip = 0.1 }, cq.Optimizer.adam { rate = 0.1 }    -- weights are about 0.1, stiffness 10
  local self = { way = -math.huge }
  function self.walk(p, watch)
    return world:rollout { robot = robot:with { young = p.young }, steps = 800, observer = observer, controller = controller:with(p.net), watch = watch }
  end
  local step = cq.value_and_grad(function(p) return -self.walk(p).state:center("trunk")[1] end)
  function self.learn()
    local loss, gradient = step(params)
    local way = -loss - 0.5                       -- of the trunk, from its first place
    if way > self.way then self.way = way; cq.save(file, params) end
    net:update(params.net, gradient.net)
    if young then body:update(params.young, gradient.young) end
    return loss
  end
  return self
end

local codesign, fixed = Walker(run:path "codesign.bin", cq.param(robot.young, { min = 7, max = 20 })), Walker(run:path "fixed.bin")
local added                                       -- by co-design [%]
for i = 1, run.iterations do
  local loss, alone = codesign.learn(), fixed.learn()
  added = 100 * (codesign.way / fixed.way - 1)
  run:record { iteration = i, loss = loss, fixed = alone, added = added }
end
print(("the way is %.2f, with co-design %.2f: %+.0f %%"):format(fixed.way, codesign.way, added))

if not cq.option("render", true) then return end
local shades, groups = { "#fdf0c8", "#f7d69a", "#efb86f", "#e2954f", "#cd7140", "#ae5039", "#873637", "#5c2334" }, {}      -- from 7 to 20
for k, colour in ipairs(shades) do groups[k] = { particles = {}, colour = colour } end
local best = cq.load(run:path "codesign.bin")
for p, young in ipairs(best.young:totable()) do table.insert(groups[math.min(math.floor((young - 7) / 13 * 8) + 1, 8)].particles, p) end
local scene = cq.Picture.scene { domain = world.domain.size, volume = robot.volume, walls = world.walls, dx = world.dx, groups = groups }
local film  = cq.Picture.video { path = run:path "codesign.mp4", fps = 40 }
codesign.walk(best, function(s) if s.step % 5 == 0 then film:add(scene:frame { position = s:positions(), deformation = s:deformations() }) end end)
film:close()
