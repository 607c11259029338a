-- Stiffness, Poisson's ratio and density of a finger that two cables bend, from noisy motion capture.
--                                                                                   cqlua examples/cable_finger.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.1 and fig. 5: ten trajectories that bend to the
-- left, 200 keyframes of 100 particles each, ten noisy copies of each; truth E 20, nu 0.25, density 2.33 from 15, 0.3,
-- 3. The paper prints no geometry, cable or noise. Expect: all three within 0.15 % of the truth after 100 epochs.
-- Kept: not asked: it identifies. Size: 256 particles, 10 trials of 200 x 6 steps. Time: 95 s.
local cq = require "cq"

local trials, steps, copies, batch, noise = 10, 200, 10, 2, 1e-3
local epochs = cq.option("iterations", 100)
local truth, guess = { young = 20, poisson = 0.25, density = 2.33 }, { young = 15, poisson = 0.3, density = 3 }
local finger = cq.Creature.finger { drive = "cables", markers = 100, material = cq.Material.neo_hookean(truth) }
local world  = cq.World { cells = { 40, 32 }, dx = 1 / 40, dt = 1e-2, substeps = 6, finger:at { 0.5, 0.1 } }

-- each trial winds in the left cable to ten random levels, and the right one to at most a quarter
local random = cq.random { seed = cq.option("seed", 1) }
-- random levels of one cable in each trial, {trials, steps / 20, 1}
local function levels(least, most) return random:uniform({ trials, steps / 20, 1 }, { min = least, max = most }) end
local winding = cq.concat({ levels(-1, 1), levels(-1, -0.5) }, -1)

-- simulates fingers with these material numbers for signals {batch, steps / 20, 2}: where their markers are in each
-- step, {steps, batch, 100, 2}, and the rollout
local function film(values, u)                                         -- {steps, trials, 100, 2}
  local roll = world:rollout {
    robot = finger:with(values), batch = u:size(1), steps = steps,
    controller = cq.Controller.open_loop { u = u, hold = 20 },
    record = function(state) return state:gather "markers" end,
  }
  return roll.record, roll
end

local clean, seen = film(truth, winding), {}
for k = 1, copies do seen[k] = clean + random:normal(clean:shape(), { deviation = noise }) end

local run   = cq.Run.open { iterations = epochs, device = world.device }
local saved = run.saved                                                                          -- with --resume
-- trained are factors of the first guess, so that one rate suits all three
local params = saved and saved.params or {
  young = cq.param(1, { min = 0.1 }), density = cq.param(1, { min = 0.1 }),
  poisson = cq.param(1, { min = 0, max = 1.6 }),
}
-- numbers of the material from parameters, that are factors of the guess
local function values(p)
  return { young = guess.young * p.young, poisson = guess.poisson * p.poisson, density = guess.density * p.density }
end
local descend = cq.value_and_grad(function(p, which)
  local found, roll = film(values(p), winding:gather(which, 1))
  return (found - random:choice(seen):gather(which, 2)):square():sum(-1):mean(), roll
end)
-- E and nu lie in a narrow valley: a short memory of squares lets steps grow again along it
local adam = cq.Optimizer.adam { rate = 0.05, beta2 = 0.95, schedule = function(i) return 0.994 ^ i end }
if saved then adam:restore(saved.optimizer.adam) random:restore(saved.optimizer.random) end
-- the state to save after an epoch: of Adam and of the random numbers
local function progress() return { adam = adam:state(), random = random:state() } end

for epoch = run.done + 1, epochs do
  local order, sum = random:permutation(trials):totable(), 0
  for first = 1, trials, batch do                                      -- a few trajectories at a time
    local loss, gradient, roll = descend(params, { unpack(order, first, first + batch - 1) })
    adam:update(params, gradient)
    roll:release()
    sum = sum + loss
  end
  local now = values(params)
  run:record {
    iteration = epoch, loss = sum * batch / trials, young = now.young, poisson = now.poisson, density = now.density,
  }
  run:checkpoint(epoch, params, progress())
end
local found, worst = values(params), 0
for name, value in pairs(truth) do worst = math.max(worst, math.abs(found[name]:item() / value - 1)) end
print(("E %.3f, nu %.4f, density %.4f: within %.2f %% of the truth"):format(found.young:item(), found.poisson:item(),
  found.density:item(), 100 * worst))
run:finish(params, progress())

-- the first trial as identified; the goals are the markers of its first copy, one in seven
local shot = cq.Experiment {
  world = world, robot = finger:with(found), steps = steps,
  controller = cq.Controller.open_loop { u = winding[1], hold = 20 },
  objective = function(state) return state:center(finger)[1] end,
}
-- a list of circles where the first trial's markers were seen in this step; none at the start
local function markers(state)
  local list = {}
  if state.step > 0 then
    for k = 4, 100, 7 do list[#list + 1] = { at = seen[1][state.step][1][k], radius = 0.008, colour = "#c0392b" } end
  end
  return list
end
local look = { zoom = 1.2, goals = markers, colour = { by = "von_mises", range = { 0, 5 } } }
look.stills = { 0.2, 0.5, 0.8, 1.1, 1.4, 1.7 }
shot:render("cable_finger.png", look)
