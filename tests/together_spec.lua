-- together: variants that share a batch have the losses and gradients that each has alone, where the world's own values
-- are functions of time too.
local cq = require "cq"
local T = require "cq.tensor"
local numbers = require "cq.experiment.numbers"

local ball = cq.Robot { shape = cq.Shape.disc { name = "ball", radius = 0.1, spacing = 1 / 40 },
  material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }

local function world_of(fields)
  fields.cells, fields.dx, fields.dt, fields.substeps, fields.precision = { 30, 20 }, 1 / 20, 1e-2, 4, "float64"
  fields[1] = ball:at { 0.5, 0.3 }
  return cq.World(fields)
end

-- the loss over variants, and its gradient to the velocity that the ball begins with
local function loss_and_slope(world, variants)
  local run = cq.Experiment { world = world, steps = 20, variants = variants,
    trainable = { velocity = { init = { 0.3, 0.1 } } }, optimizer = cq.Optimizer.adam { rate = 0.1 },
    objective = function(state) return state:center(ball)[2] + state:center(ball)[1]:square() end }
  local value, gradients = T.value_and_grad(function(p) return numbers(run, p).objective end)(run.params)
  return value, gradients.robot.velocity
end

describe("variants of a world whose values are functions of time", function()
  local function holds(fields, one, other)
    local world = world_of(fields)
    local first, slope = loss_and_slope(world, { one })
    local second, next_slope = loss_and_slope(world, { other })
    local both, mean = loss_and_slope(world, { one, other })
    assert.near((first + second) / 2, both, 1e-14)
    assert.is_true(mean:close((slope + next_slope) / 2, 1e-12))
    assert.is_true(math.abs(first - second) > 1e-4)
  end

  it("keep gravity's function where one of them has a constant", function()
    holds({ gravity = function(t) return { 2 * math.sin(20 * t), -50 * t } end,
      walls = cq.Boundary.floor { at = 0.2, kind = "separate" } }, { gravity = { 0, -1 } }, {})
  end)

  it("keep a wall's function where one of them has a constant", function()
    holds({ gravity = { 0, -2 }, walls = cq.Boundary.floor { at = 0.2, kind = "sticky",
      velocity = function(t) return { 10 * t, 0 } end } }, { wall_velocity = { 0, 0 } }, {})
  end)
end)
