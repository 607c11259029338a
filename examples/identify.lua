-- Stiffness, Poisson's ratio and density of a soft finger from noisy motion capture.        cqlua examples/identify.lua
-- Source: advanced-chainqueen 5.1, with muscles in place of its cables. Truth E 20, nu 0.25, density 2.33; start 15,
-- 0.3, 3. Expect: all three within 0.2 % of the truth after 100 epochs, and a loss of twice the noise squared, 2e-6.
-- Size: 256 particles, 10 trials of 200 x 6 steps. Time: 9 s.
local cq = require "cq"

local trials, steps, copies, batch, noise = 10, 200, 10, 2, 1e-3
local width, height, spacing = 0.1, 0.4, 1 / 80
local function strip(name, x, w)
  return cq.Shape.box { name = name, at = { x, 0 }, size = { w, height }, spacing = spacing }
end
local finger = cq.Robot {
  shape     = { strip("left", 0, width / 4), strip("core", width / 4, width / 2),
    strip("right", 3 / 4 * width, width / 4) },
  material  = cq.Material.neo_hookean { young = 20, poisson = 0.25, density = 2.33 },
  -- bends it by half a right angle
  actuators = cq.Actuator.muscle { groups = { "left", "right" }, axis = "y", max = 4 },
  groups    = { foot = function(_, y) return y < 0.05 end }, pins = "foot", markers = 100,
}
local world = cq.World { cells = { 40, 32 }, dx = 1 / 40, dt = 1e-2, substeps = 6, finger:at { 0.5, 0.1 } }

-- pulls to the left: for each trial ten random levels of the left muscle, and of the right one up to a quarter
local random = cq.random { seed = cq.option("seed", 1) }
local function levels(least, most)
  return random:uniform({ trials, 10, 1 }, { min = least, max = most }):expand({ trials, 10, steps / 10 }):reshape {
    trials, steps, 1 }
end
local pulls = cq.concat({ levels(-1, 1), levels(-1, -0.5) }, -1)

local function film(p, u)                                                                      -- {steps, batch, 100, 2}
  local roll = world:rollout {
    robot = finger:with(p), batch = u:size(1), steps = steps, controller = cq.Controller.open_loop(u),
    record = function(state) return state:gather "markers" end,
  }
  return roll.record, roll
end

local truth, seen = film({ young = 20, poisson = 0.25, density = 2.33 }, pulls), {}
for k = 1, copies do seen[k] = truth + random:normal(truth:shape(), { deviation = noise }) end

local epochs = cq.option("iterations", 100)
local run    = cq.Run.open { iterations = epochs, device = world.device }
local saved  = run.saved                                                                       -- with --resume
-- trained are factors of the first guess, so that one rate suits all three
local params = saved and saved.params
  or { young = cq.param(1, { min = 0.1 }), poisson = cq.param(1, { min = 0, max = 1.6 }),
    density = cq.param(1, { min = 0.1 }) }
local function values(p) return { young = 15 * p.young, poisson = 0.3 * p.poisson, density = 3 * p.density } end
local function misfit(p, which)
  local found, roll = film(values(p), pulls:gather(which, 1))
  return (found - random:choice(seen):gather(which, 2)):square():sum(-1):mean(), roll
end

local descend = cq.value_and_grad(misfit)
local adam    = cq.Optimizer.adam { rate = 0.05, schedule = function(i) return 0.998 ^ i end }
if saved then adam:restore(saved.optimizer.adam) random:restore(saved.optimizer.random) end
local function progress() return { adam = adam:state(), random = random:state() } end             -- going on needs both
for epoch = run.done + 1, epochs do
  local order, sum = random:permutation(trials):totable(), 0
  for first = 1, trials, batch do                                                              -- a few trials at a time
    local loss, grad, roll = descend(params, { unpack(order, first, first + batch - 1) })
    adam:update(params, grad)
    roll:release()
    sum = sum + loss
  end
  local now = values(params)
  run:record { iteration = epoch, loss = sum * batch / trials, young = now.young, poisson = now.poisson,
    density = now.density }
  run:checkpoint(epoch, params, progress())
end
local found = values(params)
print(("E %.3f, nu %.4f, density %.4f"):format(found.young:item(), found.poisson:item(), found.density:item()))
-- the first trial, as identified
cq.Experiment {
  world = world, robot = finger:with(found), steps = steps, controller = cq.Controller.open_loop(pulls[1]),
  objective = function(state) return state:center(finger)[1] end,
}:render "identify.mp4"
run:finish(params, progress())
