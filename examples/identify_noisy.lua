-- Young's modulus of a silicone bar from a noisy film of its tip, with error bars.    cqlua examples/identify_noisy.lua
-- Source: Bard, Nonlinear Parameter Estimation, 1974. scenes/make_measurements.lua makes the film, of a bar with E 150
-- kPa and damping 2 on a grid twice as fine. Expect: E 144.4 +- 0.14, damping 1.97 +- 0.03. The error bars are those of
-- the camera; the grid is off by forty of them, and a reduced chi-square of 1.09 does not tell. --cells 8, the grid of
-- the film, finds 149.9 +- 0.14: identify on two grids. Kept: not asked: it identifies. Size: 256 particles, 105 x 98
-- steps. Time: 7 s.
local cq = require "cq"

-- a camera's file: time, and the tip from a point of the camera's own; it sees to 0.3 mm
local film = cq.csv(cq.option("film", "../scenes/assets/bar_swing.csv"))
local measured, noise = cq.stack({ film["tip x"], film["tip y"] }, 2), cq.option("noise", 0.3)   -- {pictures, 2} [mm]

local guess = cq.option("guess", 120)
local bar = require "scenes.swinging_bar" { young = 2.5 * guess, cells = cq.option("cells", 4) }
local params = {
  young   = cq.param(1, { min = 0.2, max = 5 }),                        -- times the guess
  damping = cq.param(1, { min = 0, max = 20 }),                         -- [1/s]
  origin  = cq.param({ 100, 100 }),                                     -- of the camera [mm]
}
-- the numbers that are found, from parameters
local function values(p) return { young = guess * p.young, damping = p.damping, x = p.origin[1], y = p.origin[2] } end
-- simulated less measured places of the tip [mm], at each time of the film
local function residuals(p)
  local roll = bar.world:rollout {
    robot = bar.robot:with { young = guess * p.young }, damping = p.damping, steps = 105,
    record = function(state) return state:center "tip" end,
  }
  return 1000 * roll.record:at(film.time) - p.origin - measured
end

print(cq.Optimizer.nlopt { algorithm = "lbfgs" }:solve(params, function(p) return residuals(p):square():mean() end,
  { iterations = cq.option("iterations", 60), folder = cq.Run.default_folder() }))
print(cq.uncertainty(residuals, params, { noise = noise }):propagate(values))
