-- subset: a robot of some of the particles of another, beside it, beside other subsets, and in its place.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local says = require("tests.sentence").refuses

local block, world_of = block_design.robot, block_design.world

describe("robot:subset", function()
  it("keeps places, groups, materials and values of its particles", function()
    local r = block { pins = { "tip", 3 } }:with { young = T.arange(1, 100) }
    local some = r:subset { 90, 3, 10, 10 }
    assert.equal(3, some.particle_count)
    assert.is_true(some.position:equal(r.position:gather({ 3, 10, 90 }, 1)))
    assert.same({ 3, 10, 90 }, some.values.young.tensor:totable())
    assert.same({ 2, 3 }, some:group("tip"):particles())
    assert.same({ "tip", 1 }, some.pins)
    assert.same({}, r:subset({ 1, 2 }).pins)
    says(function() r:subset({ 1, 2 }):group "tip" end, "no group")
    says(function() r:subset { 101 } end, "whole numbers from 1 to 100")
  end)

  it("is told from another subset of as many particles, and from the whole", function()
    local r = block { actuators = {} }
    local first, second, again = r:subset { 1, 2, 3, 4 }, r:subset { 5, 6, 7, 8 }, r:subset { 4, 3, 2, 1 }
    local world = world_of(first)
    local state = world:rollout { steps = 0, robot = again:with { velocity = { 0.5, 0 } } }.state
    assert.same({ 0.5, 0 }, state:velocity(first):totable())
    assert.same(state:center(first):totable(), state:center(r):totable())
    assert.same(state:center(first):totable(), state:center(again):totable())
    says(function() world:rollout { steps = 0, robot = second:with { velocity = { 0.5, 0 } } } end,
      "this robot is a subset, and the world's robot has other particles")
    says(function() return state:center(second) end, "state:center: this robot is a subset")
    says(function() return state:center(first:subset { 1, 2 }) end, "state:center: this robot is a subset")
    says(function() return world_of(r):rollout { steps = 0 }.state:center(first) end, "this robot is a subset")
    says(function() return state:center(block { actuators = {} }) end, "this robot is not in the world")
    says(function() r:subset(block { actuators = {} }:group "tip") end, 'the group "tip" is of another robot')
    -- beside the whole each is itself
    local both = r:with { velocity = { 0.25, 0 } }
    local beside = world_of(first):with_robots { r:at { 0.3, 0.5 }, first:at { 0.3, 0.2 } }:rollout { steps = 0 }.state
    assert.equal(100, #beside:gather(both, "position"):totable())
    assert.equal(4, #beside:gather(again, "position"):totable())
  end)

  it("takes of a whole robot the values of its own particles", function()
    local r = block { actuators = {} }
    local world = world_of(r:subset { 11, 12, 13 })
    local rates = (T.arange(1, 100) / 100):unsqueeze(2):expand { 100, 2 }
    local state = world:rollout { steps = 0, robot = r:with { velocity = rates, density = 1200 } }.state
    assert.is_true(state:velocities():close(rates:slice(11, 13), 1e-12))
    local long = r:stretched { axis = "x", factor = 1.5 }
    local apart = world_of(long:subset({ 11, 12, 13 }):at { 0.3, 0.2 }):rollout { steps = 0 }.state
    local whole = world_of(long:at { 0.3, 0.2 }):rollout { steps = 0 }.state
    assert.is_true(apart:positions():close(whole:positions():slice(11, 13), 1e-12))
    apart = world_of(long:at({ 0.3, 0.2 }):subset { 11, 12, 13 }):rollout { steps = 0 }.state
    assert.is_true(apart:positions():close(whole:positions():slice(11, 13), 1e-12))
  end)

  it("moves as the whole where the rest does not touch it", function()
    local shape = { cq.Shape.box { name = "left", size = { 0.1, 0.1 }, spacing = 0.02 },
      cq.Shape.box { name = "right", at = { 0.5, 0 }, size = { 0.1, 0.1 }, spacing = 0.02 } }
    local r = block { shape = shape, groups = {}, actuators = cq.Actuator.pressure { groups = { "right", "left" },
      axis = "x", max = 1e4 } }
    local whole = world_of(r)
    local u = cq.Controller.open_loop(T.full({ 10, 2 }, 0.5))
    local both = whole:rollout { steps = 10, controller = u }
    local one = whole:with_robots(whole.robot:subset "left")
    local alone = one:rollout { steps = 10, controller = u }
    assert.is_true(alone.state:positions():close(both.state:gather("left", "position"), 1e-12))
  end)
end)
