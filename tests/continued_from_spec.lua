-- continued_from: rollouts that go on from states of no control steps, from the state of one scene, and where walls
-- move by a function of time.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local scratch = require "tests.scratch"

local HALF = 30

local function same(a, b)
  return a:positions():equal(b:positions()) and a:deformations():equal(b:deformations())
    and a:velocities():equal(b:velocities())
end

local function is_close(a, b, tolerance)
  local scale = a:abs():max():item()
  assert.is_true(scale > 0 and (a - b):abs():max():item() / scale < tolerance)
end

describe("a rollout without control steps", function()
  it("stands where walls have moved by a function of time", function()
    local floor = cq.Boundary.floor { at = 0.1, mu = 0.5,
      velocity = function(t) return { 0.3 * math.sin(90 * t), 0.2 * math.cos(50 * t) } end }
    local world = scene.world(scene.robot(), { walls = floor })
    local whole, first = world:rollout { steps = 2 * HALF }, world:rollout { steps = HALF }
    for _, from in ipairs { first.state:detach(), world:rollout { steps = 0, from = first.state }.state } do
      assert.is_true(same(whole.state, world:rollout { steps = HALF, from = from }.state))
    end
    assert.is_true(same(first.state, world:rollout { steps = HALF, from = world:rollout { steps = 0 }.state }.state))
    local other = { steps = HALF, wall_velocity = { 0, 0.3 } }
    other.from = world:rollout(other).state:detach()
    assert.is_true(same(world:rollout { steps = 2 * HALF, wall_velocity = { 0, 0.3 } }.state,
      world:rollout(other).state))
    world:close()
  end)
end)

describe("a rollout without control steps and walls that move", function()
  it("has a row of velocities for each engine step", function()
    local push = { particles = "trunk", signals = 0, every = "engine_step", force = function(_, _, x) return 0 * x end }
    local world = scene.world(scene.robot { actuators = push }, { substeps = 8,
      walls = cq.Boundary.floor { at = 0.1, mu = 0.5, velocity = function(t) return { t, 0 } end } })
    for _ = 1, 20 do
      local _ = T.zeros { 4000 } / 0                       -- numbers that memory may have had
      collectgarbage()
      assert.equal(0, world:rollout({ steps = 0 }).state.step)
    end
    world:close()
  end)

  it("is a copy where there are as many walls as scenes", function()
    local world = scene.world(scene.robot(), { walls = { cq.Boundary.floor { at = 0.1 },
      cq.Boundary.floor { at = 0.05 } } })
    local roll = world:rollout { steps = 2, batch = 2, wall_velocity = { 0.1, 0 } }
    assert.is_true(roll.state:detach():positions():equal(roll.state:positions()))
    world:close()
  end)
end)

describe("the state of one scene", function()
  it("begins a rollout without a batch, with the values of the scene", function()
    local world = scene.world(scene.robot())
    local robot, n = world.robot, world.robot.particle_count
    local young = cq.tensor({ 8, 9 }):reshape({ 2, 1 }):expand { 2, n }
    local first = world:rollout { steps = 2, batch = 2, robot = robot:with { young = young } }
    local roll = world:rollout { steps = 2, from = first.state:scene(2) }
    assert.same({ 2 }, roll.state:center(robot):shape())
    assert.same({ 2 }, roll:start():center(robot):shape())
    local folder = scratch.open()
    for k, state in ipairs { roll.state, first.state:scene(2), roll.state:detach() } do
      local path = ("%s/%d.csv"):format(folder, k)
      state:save(path)
      assert.equal(9, cq.csv(path):column("young"):max():item())
      assert.equal(9, cq.csv(path):column("young"):min():item())
    end
    scratch.close()
    world:close()
  end)

  it("has the undeformed shape of the scene with total Lagrangian steps", function()
    local world = scene.world(scene.robot { count = 8 }, { formulation = "total_lagrangian" })
    local robot = world.robot
    local places = cq.stack({ robot.position, robot.position + cq.tensor { 0.02, 0.05 } }, 1)
    local one = robot:with { position = places[2] }
    local first = world:rollout { steps = 5, batch = 2, robot = robot:with { position = places } }
    local whole = world:rollout { steps = 10, robot = one }
    for _, given in ipairs { one, false } do
      local second = world:rollout { steps = 5, from = first.state:scene(2), robot = given or nil }
      assert.is_true(second.state:positions():close(whole.state:positions(), 1e-12))
    end
    assert.is_true(world:rollout({ steps = 5, from = first.state:scene(2), robot = robot }).state:positions():close(
      whole.state:positions(), 1e-12))
    world:close()
  end)

  it("is gone on from as that scene", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local world = scene.world(scene.robot { count = 8 }, { formulation = formulation })
      local robot, v = world.robot, cq.tensor { 1, 0.2, -0.6, 0.1 }
      local function cost(p, scenes)
        local first = world:rollout { steps = HALF, batch = 2,
          robot = robot:with { velocity = p:reshape { 2, 1, 2 }:expand { 2, robot.particle_count, 2 } } }
        if scenes then
          return world:rollout({ steps = HALF, from = first.state, scenes = scenes }).state:center(robot)
        end
        return cq.concat({ world:rollout { steps = HALF, from = first.state:scene(2) }.state:center(robot),
          world:rollout { steps = HALF, from = first.state:scene(1), batch = 2 }.state:center(robot):mean(1),
          world:rollout { steps = HALF, from = first.state:scene(2):detach() }.state:center(robot) }, 1)
      end
      local all = cost(v)
      for k = 1, 2 do
        local one = world:rollout { steps = 2 * HALF, robot = robot:with { velocity = v:slice(2 * k - 1, 2 * k, 1) } }
        for d = 1, 2 do
          assert.near(one.state:center(robot)[d]:item(), all[k == 2 and d or 2 + d]:item(), 1e-12)
          if k == 2 then assert.near(all[d]:item(), all[4 + d]:item(), 1e-12) end
        end
      end
      local _, one = cq.value_and_grad(function(p) return cost(p):slice(1, 4, 1):sum() end)(cq.param(v:totable()))
      local _, two = cq.value_and_grad(function(p) return cost(p, { 2, 1 }):sum() end)(cq.param(v:totable()))
      is_close(two, one, 1e-12)
      world:close()
    end
  end)

  it("has a start where a wall that moves has another velocity than its own", function()
    local ball = cq.Robot { shape = cq.Shape.disc { name = "ball", radius = 0.1, spacing = 1 / 40 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    local world = cq.World { cells = { 30, 20 }, dx = 1 / 20, dt = 1e-2, substeps = 4, gravity = { 0, -2 },
      walls = cq.Boundary.floor { at = 0.2, kind = "separate", velocity = { 0, 0.1 } }, ball:at { 0.5, 0.3 } }
    local v = cq.tensor { { 0, 0.2 } }
    local first = world:rollout { steps = 4, wall_velocity = v }
    local more = world:rollout { steps = 4, wall_velocity = v, from = first.state }
    assert.is_true(more:start():center(ball):equal(first.state:center(ball)))
  end)
end)
