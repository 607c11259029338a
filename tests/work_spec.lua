-- work: what actuators do to bodies in each control step, as rollout.work tells it: against the energy that bodies
-- gain, with gradients, in batches, and what it is not told of.
local cq = require "cq"
local scratch = require "tests.scratch"
local sentence = require "tests.sentence"

local A = cq.Actuator
local soft = cq.Material.neo_hookean { young = 20, poisson = 0.3 }

local function block(actuators, more, dim)
  local fields = {
    shape = cq.Shape.box { name = "b", size = dim == 3 and { 0.3, 0.3, 0.3 } or { 0.4, 0.2 },
      spacing = dim == 3 and 1 / 20 or 1 / 40 },
    material = soft, actuators = actuators,
  }
  for name, value in pairs(more or {}) do fields[name] = value end
  return cq.Robot(fields)
end

local function world_of(robot, substeps)
  local three = robot.dim == 3
  return cq.World {
    cells = three and { 24, 24, 24 } or { 32, 24 }, dx = three and 1 / 10 or 1 / 20, dt = 2e-2,
    substeps = substeps or "auto", precision = "float64", threads = 1,
    robot:at(three and { 1, 1, 1 } or { 0.6, 0.5 }),
  }
end

local ring = {
  shape = cq.Shape.disc { at = { 0.3, 0.3 }, radius = 0.3 } - cq.Shape.disc { at = { 0.3, 0.3 }, radius = 0.15 },
  spacing = 1 / 40,
}
local row = { { 0.05, 0.05 }, { 0.15, 0.05 }, { 0.25, 0.05 }, { 0.35, 0.05 } }
local function cable(more)
  local fields = { path = row, stiffness = 5, contraction = 0.4 }
  for name, value in pairs(more or {}) do fields[name] = value end
  return A.cable(fields)
end

-- signals that go smoothly from one value to another, {steps, signals}
local function ramp(steps, signals, from, to)
  local rows = {}
  for i = 1, steps do
    rows[i] = {}
    for s = 1, signals do rows[i][s] = from + (to - from) * (1 - math.cos(math.pi * i / steps)) / 2 end
  end
  return cq.tensor(rows)
end

describe("rollout.work", function()
  -- a slow pull loses nothing: what actuators give is the elastic energy
  for name, case in pairs {
    ["a chamber that contracts"] = { A.pressure { groups = { "b" }, axis = "x", max = 4 }, 0, 1 },
    ["a chamber that expands"] = { A.pressure { groups = { "b" }, direction = { 1, 1 }, max = 4 }, 0, -1 },
    ["a muscle"] = { A.muscle { groups = { "b" }, axis = "y", max = 4 }, -1, 1 },
    ["pulses"] = { A.muscle { groups = { "b" }, isotropic = true, pulses = true, max = 4 }, 0, 1 },
    ["in space"] = { A.pressure { groups = { "b" }, axis = "z", max = 4 }, 0, 1, dim = 3 },
    ["a cable"] = { cable(), -1, 1, within = 0.02 },
    ["air in a cavity"] = { A.follower_pressure { surface = { inside = { 0.3, 0.3 } }, max = 2 }, 0, 1, more = ring,
      within = 0.05 },
  } do
    it("is the energy that a body gains slowly: " .. name, function()
      local robot = block(case[1], case.more, case.dim)
      local world = world_of(robot)
      local u = ramp(120, robot.actuator_count, case[2], case[3])
      local roll = world:rollout { steps = 120, controller = cq.Controller.open_loop(u), work = true }
      local gained = (roll.state:energy() - roll:start():energy()):item()
      assert.same({ 120, robot.actuator_count }, roll.work:shape())
      assert(gained > 1e-3, gained)
      assert.near(1, roll.work:sum():item() / gained, case.within or 0.005)
    end)
  end

  it("has gradients to signals, materials, weights, cables, density and volumes", function()
    local robot = block {
      A.pressure { groups = { "b" }, axis = "x", max = 2 }, A.isotropic { count = 2, max = 2 }, cable(),
    }
    local world = world_of(robot, 5)
    local random = cq.random { seed = 4 }
    local function f(p)
      local body = robot:with {
        young = p.young, actuation_weight = p.weight, cable_stiffness = p.stiffness, cable_length = p.length,
        density = p.density, volume = p.volume, velocity = p.velocity,
      }
      local roll = world:rollout {
        robot = body, steps = 5, controller = cq.Controller.open_loop(p.u), work = true,
        record = function(state) return state:center(robot) end,
      }
      return (roll.work * p.factor):sum() + 0.01 * roll.record:sum()
    end
    local report = cq.check_gradient(f, {
      young = cq.param(20), weight = cq.param(random:uniform({ robot.particle_count, 3 }, { min = 0, max = 1 })),
      density = cq.param(1.2), volume = cq.param(robot.volume * 1.1), velocity = cq.param { 0.1, 0.05 },
      stiffness = cq.param { 5 }, length = cq.param { 0.29 },
      u = cq.param(random:uniform({ 5, 4 }, { min = 0.2, max = 0.9 })),
      factor = cq.param(random:uniform({ 5, 4 }, { min = 0.5, max = 1 })),
    }, { each = true })
    assert(report.ok, tostring(report))
  end)

  it("has gradients through the air in a cavity", function()
    local robot = block({ A.follower_pressure { surface = { inside = { 0.3, 0.3 } }, max = 2 },
      A.isotropic { count = 1, max = 1 } }, ring)
    local world = world_of(robot, 5)
    local report = cq.check_gradient(function(p)
      local roll = world:rollout { steps = 5, controller = cq.Controller.open_loop(p.u), work = true,
        robot = robot:with { young = p.young, density = p.density, velocity = p.velocity,
          actuation_weight = cq.ones { robot.particle_count, 1 } } }
      -- the work of the air alone, which the muscle changes through the cavity's volume
      return (roll.work:slice(1, 1, 2) * p.factor):sum()
    end, {
      young = cq.param(20), density = cq.param(1.2), velocity = cq.param { 0.1, 0.05 },
      u = cq.param(cq.random { seed = 4 }:uniform({ 5, 2 }, { min = 0.2, max = 0.9 })),
      factor = cq.param(cq.random { seed = 5 }:uniform({ 5, 1 }, { min = 0.5, max = 1 })),
    }, { each = true })
    assert(report.ok, tostring(report))
  end)

  it("is of each scene in a batch", function()
    local robot = block { A.pressure { groups = { "b" }, axis = "x", max = 2 }, cable() }
    local world = world_of(robot, 5)
    local all = cq.random { seed = 1 }:uniform({ 2, 4, 2 }, { min = -1, max = 1 })
    local function work(u, batch)
      return world:rollout { steps = 4, batch = batch, controller = cq.Controller.open_loop(u), work = true }.work
    end
    local both = work(all, 2)
    assert.same({ 4, 2, 2 }, both:shape())
    for scene = 1, 2 do
      assert(work(all[scene]):close(both:slice(scene, scene, 2):squeeze(2), 1e-9, 1e-15), scene)
    end
  end)

  it("is a part of an objective", function()
    local robot = block(A.pressure { groups = { "b" }, axis = "x", max = 2 })
    local function width(state) return state:moment(robot)[1][1] end
    local run = cq.Experiment {
      world = world_of(robot, 5), steps = 6, controller = cq.Controller.open_loop { steps = 6, init = 0.5 },
      objective = { terminal = width, work = function(work) return 3 * work:sum() end },
      optimizer = cq.Optimizer.adam { rate = 0.05 },
    }
    local found = run:evaluate()
    local loss, roll = found.loss, found.rollout
    assert(roll.work:sum():item() > 1e-4)
    assert.near(width(roll.state):item() + 3 * roll.work:sum():item(), loss, 1e-15)
    run:optimize { iterations = 5, folder = scratch.open() }
    scratch.close()
    assert(run:evaluate().loss < loss)
  end)

  it("is refused where it does not follow from the ends of a control step", function()
    local function says(words, actuators, more)
      local robot = block(actuators, more)
      local world = world_of(robot, 5)
      sentence.says(sentence.of(function() world:rollout { steps = 1, work = true } end),
        "world:rollout: work = true" .. words)
    end
    says(", but the robots of the world have no actuators")
    says(" is of actuators of cq.Actuator",
      { particles = "b", signals = 1, force = function(_, u, x) return u * cq.ones(x:shape()) end })
    says(": a cable has a friction of 0.1", cable { friction = 0.1 })
    says(": the surface \"air\" under pressure is open", A.follower_pressure {
      name = "air", surface = { particles = { 1, 2 }, area = 0.1, normal = { 1, 0 } },
    })
  end)
end)
