-- Stiffness, Poisson's ratio and density of a soft finger from noisy motion capture.        cqlua examples/identify.lua
-- Source: advanced-chainqueen 5.1, with muscles in place of its cables, and by L-BFGS in place of Adam. Truth E 20, nu
-- 0.25, density 2.33; start 15, 0.3, 3. Expect: all three within 0.1 % of the truth after 19 evaluations, and a misfit
-- of 2e-7, which is what the mean of ten films with this noise leaves. Other first guesses may end in local minima
-- (examples/studies/starts.lua): a misfit far above that tells.
-- Kept: not asked: it identifies. Size: 256 particles, 10 trials of 200 x 6 steps. Time: 6 s.
local cq = require "cq"

local trials, steps, copies, noise = 10, 200, 10, 1e-3
local width, height, spacing = 0.1, 0.4, 1 / 80
-- a box as high as the finger, from x on and w wide
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
-- ten random levels of a signal for each trial, held for a tenth of the steps each: {trials, steps, 1}
local function levels(least, most)
  return random:uniform({ trials, 10, 1 }, { min = least, max = most }):expand({ trials, 10, steps / 10 }):reshape {
    trials, steps, 1 }
end
local pulls = cq.concat({ levels(-1, 1), levels(-1, -0.5) }, -1)

-- simulates a finger with the numbers p for signals {batch, steps, 2}: where its markers are in each step, {steps,
-- batch, 100, 2}, and the rollout
local function film(p, u)                                                                      -- {steps, batch, 100, 2}
  local roll = world:rollout {
    robot = finger:with(p), batch = u:size(1), steps = steps, controller = cq.Controller.open_loop(u),
    record = function(state) return state:gather "markers" end,
  }
  return roll.record, roll
end

local truth, seen = film({ young = 20, poisson = 0.25, density = 2.33 }, pulls), {}
for k = 1, copies do seen[k] = truth + random:normal(truth:shape(), { deviation = noise }) end

-- trained are factors of a first guess, near 1 whatever the unit
local params = {
  young = cq.param(1, { min = 0.1, max = 4 }), poisson = cq.param(1, { min = 0, max = 1.6 }),
  density = cq.param(1, { min = 0.1, max = 4 }),
}
-- numbers of the material from parameters, that are factors of a guess
local function values(p) return { young = 15 * p.young, poisson = 0.3 * p.poisson, density = 3 * p.density } end

-- All trials in each evaluation, without chance: L-BFGS wants exact gradients of one function. A mean over the copies
-- has the same minimum as all of them, and a tenth of their noise squared.
local mean = cq.stack(seen):mean(1)
-- mean square distance of all simulated markers, with parameters p, from the mean of the copies; and the rollout
local function misfit(p)
  local found, roll = film(values(p), pulls)
  return (found - mean):square():sum(-1):mean(), roll
end
local solution = cq.Optimizer.nlopt { algorithm = "lbfgs" }:solve(params, misfit, {
  iterations = cq.option("iterations", 40), folder = cq.Run.default_folder(),
})
print(solution)
local found = values(params)
print(("E %.3f, nu %.4f, density %.4f"):format(found.young:item(), found.poisson:item(), found.density:item()))
-- the first trial, as identified
cq.Experiment {
  world = world, robot = finger:with(found), steps = steps, controller = cq.Controller.open_loop(pulls[1]),
  objective = function(state) return state:center(finger)[1] end,
}:render "identify.mp4"
