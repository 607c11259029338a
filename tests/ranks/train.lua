-- A finger that is shown nine goals, for tests/ranks/mpi.sh; --kill R --at I: rank R is killed at iteration I, or fails
-- (--fail R). --constrained yes: with constraints.
local cq = require "cq"
local alone = cq.option("alone", false)
local ranks = alone and cq.Ranks.alone() or cq.Ranks.mpi()

local function strip(name, x)
  return cq.Shape.box { name = name, at = { x, 0 }, size = { 0.1, 0.4 }, spacing = 1 / 30 }
end
local robot = cq.Robot {
  shape = { strip("left", 0), strip("right", 0.1) }, material = cq.Material.neo_hookean { young = 20, poisson = 0.3 },
  actuators = cq.Actuator.muscle { groups = { "left", "right" }, axis = "y", max = 4 },
  groups = { foot = function(_, y) return y < 0.05 end }, pins = "foot",
}
local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-2, substeps = "auto", robot:at { 0.4, 0.1 } }
local goals = cq.random { seed = cq.option("goals", 1) }:uniform({ 9, 2 }, { min = 0.25, max = 0.55 })
local kill, fail, at, iteration = cq.option("kill", -1), cq.option("fail", -1), cq.option("at", 6), 1

local adam, constrained = cq.Optimizer.adam { rate = 0.01 }, cq.option("constrained", false)

local run = cq.Experiment {
  world = world, steps = 20, observer = cq.Observer.centroid { groups = robot.groups, velocity = true },
  controller = cq.Controller.mlp { hidden = { 8 } },
  optimizer = constrained and cq.Optimizer.augmented_lagrangian { inner = adam } or adam,
  constraints = constrained and {
    { name = "rest", at_most = 1e-3, terminal = function(state) return state:velocity(world.robot):square():sum() end },
    { name = "soft", at_most = 20, of = function(params) return params.robot.young:mean() end },
  } or nil,
  trainable = { young = { min = 5, max = 50 } },
  objective = function(state) return state:center(world.robot)[1] end,
  scenes = { count = 9, each = function(k)
    return { gravity = { 0, -0.1 * k }, objective = function(state)
      if iteration == at and ranks.rank == kill then os.execute "kill -9 $PPID" end
      if iteration == at and ranks.rank == fail then error("goal " .. k .. " is nowhere", 0) end
      return (state:center(world.robot) - goals[k]):square():sum()
    end }
  end },
}
print "told once"
local result = run:optimize { iterations = cq.option("iterations", 12),
  on_iteration = function(i) iteration = i + 1 end }
print(("loss %.17g"):format(result.loss))
local found = run:evaluate()
local mean, losses = found.loss, found.losses
print(("mean %.17g of %d"):format(mean, #losses))
run:scene(3):render("three.png", { width = 96 })
