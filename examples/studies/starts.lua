-- From which first guesses does the descent of examples/identify.lua find the finger? 64 of them, spread widely.
--   cqlua study run examples/studies/starts.lua --jobs 2      cqlua study plot examples/studies/starts.lua
-- Source: advanced-chainqueen 5.1, as examples/identify.lua; the guesses are points of a scrambled Sobol sequence.
-- Expect: 26 of 64 within 1 % after 120 iterations. 19 are off by more than half: those whose young / density is less
-- than a tenth, or more than three times, of the truth's 8.6. The others are on their way. 1.5 s a trial on one core.
-- Size: 144 particles, 64 trials of 80 x 6 steps. Time: 75 s.
local cq = require "cq"

local iterations, steps = cq.option("iterations", 120), 80
local truth = { young = 20, density = 2.33 }

-- a box as high as the finger, from x on and w wide
local function strip(name, x, w) return cq.Shape.box { name = name, at = { x, 0 }, size = { w, 0.4 },
  spacing = 1 / 60 } end
local finger = cq.Robot {
  shape     = { strip("left", 0, 0.025), strip("core", 0.025, 0.05), strip("right", 0.075, 0.025) },
  material  = cq.Material.neo_hookean { young = 20, poisson = 0.25, density = 2.33 },
  actuators = cq.Actuator.muscle { groups = { "left", "right" }, axis = "y", max = 4 },
  groups    = { foot = function(_, y) return y < 0.05 end }, pins = "foot", markers = 40,
}
local world = cq.World { cells = { 40, 32 }, dx = 1 / 40, dt = 1e-2, substeps = 6, finger:at { 0.5, 0.1 } }

-- the same pulls for all: eight random levels of each muscle
local levels = cq.random { seed = 5 }:uniform({ 8, 1, 2 }, { min = -1, max = 1 }):expand({ 8, steps / 8,
  2 }):reshape { steps, 2 }
-- where the markers of a finger with the numbers p are in each step, {steps, 40, 2}
local function film(p)
  return world:rollout {
    robot = finger:with(p), steps = steps, controller = cq.Controller.open_loop(levels),
    record = function(state) return state:gather "markers" end,
  }.record
end

return cq.Study {
  name = "starts", minimize = "error", trials = 64,
  space = { young = cq.Space.log(4, 100), density = cq.Space.log(0.5, 12) },
  run = function(guess, trial)
    local seen   = film(truth)
    -- trained are factors of the guess, so that one rate suits both
    local params = { young = cq.param(1, { min = 0.02 }), density = cq.param(1, { min = 0.02 }) }
    -- numbers of the material from factors
    local function values(p) return { young = guess.young * p.young, density = guess.density * p.density } end
    local descend = cq.value_and_grad(function(p) return (film(values(p)) - seen):square():sum(-1):mean() end)
    local adam    = cq.Optimizer.adam { rate = 0.05, schedule = function(i) return 0.98 ^ i end }
    for i = 1, iterations do
      local loss, gradient = descend(params)
      adam:update(params, gradient)
      trial.report(i, { loss = loss, young = values(params).young:item() })
    end
    local found, worst = values(params), 0
    for name, value in pairs(truth) do worst = math.max(worst, math.abs(found[name]:item() / value - 1)) end
    return { error = worst, found_young = found.young, found_density = found.density }
  end,
}
