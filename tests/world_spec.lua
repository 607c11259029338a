-- world: what it accepts, what it finds out before anything runs, and what it owns.
local cq = require "cq"
local messages = require "cq.base.message"
local scene = require "tests.scene"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local function world(changes)
  local fields = { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, walls = cq.Boundary.box { mu = 0.4 },
    scene.robot():at { 0.4, 0.127 } }
  for key, value in pairs(changes) do fields[key] = value end
  return cq.World(fields)
end

describe("a world", function()
  it("knows itself", function()
    local w = world {}
    assert.equal(32, w.particle_count)
    assert.equal(2, w.actuator_count)
    assert.equal(6e-3, w.control_dt)
    assert.equal(w.robot, w.robots[1])
    assert.is_true(w.courant > 0 and w.courant < 1)
    says(tostring(w), "24 x 24 cells, 32 particles, 2 signals")
    assert.equal(3, w:info().substeps)
    w:close()
    w:close()
    says(sentence(function() w:rollout { steps = 1 } end), "this world is closed")
  end)

  it("has no plural of one", function()
    local thing = cq.Robot {
      shape = cq.Shape.box { name = "thing", at = { 0.5, 0.5 }, size = { 0.1, 0.1 }, count = { 1, 1 } },
      material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 },
    }
    local w = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, substeps = 1, thing }
    says(tostring(w), "cells, 1 particle, 0 signals,")
    says(tostring(w.robot), "1 particle, 1 group, 0 signals")
    says(tostring(w.robot:group "thing"), "1 particle }")
    says(tostring(w:rollout { steps = 1 }), "1 control step, 1 scene }")
  end)

  it("tells amounts of memory in three digits", function()
    local capacity = require "cq.base.capacity"
    for bytes, wanted in pairs { [17] = "17 B", [1000] = "0.977 KiB", [1020 * 2 ^ 20] = "0.996 GiB",
      [1.5 * 2 ^ 30] = "1.5 GiB" } do
      assert.equal(wanted, capacity.text(bytes))
    end
  end)

  it("finds as many substeps as it needs", function()
    local one = world { dt = 0.05, substeps = 100 }
    local auto = world { dt = 0.05, substeps = "auto" }
    assert.is_true(auto.courant <= 0.5 and auto.courant * auto.substeps / (auto.substeps - 1) > 0.5)
    assert.is_true(math.abs(auto.courant * auto.substeps - one.courant * 100) < 1e-9)
  end)

  it("takes as many substeps as the values of its robots ask for", function()
    local robot = scene.robot():at { 0.4, 0.127 }
    local function substeps(changes) return world({ robot:with(changes), dt = 0.05, substeps = "auto" }).substeps end
    local usual, n = world({ robot, dt = 0.05, substeps = "auto" }).substeps, robot.particle_count
    assert.is_true(substeps { young = 400 } > 4 * usual)
    assert.equal(substeps { young = { foot = 400 } }, substeps { young = { foot = 400, trunk = 8 } })
    assert.is_true(substeps { density = 1e-2 } > 5 * usual)
    local batch = T.tensor({ 10, 400 }):reshape({ 2, 1 }):expand { 2, n }
    assert.equal(substeps { young = 400 }, substeps { young = batch })
    assert.equal(usual, substeps { young = 0.1 })
    local w = world { robot:with { young = 400 }, dt = 0.05, substeps = "auto" }
    local same = world { robot, dt = 0.05, substeps = w.substeps }
    assert.is_true(w:rollout({ steps = 2, robot = robot }).state:positions():equal(
      same:rollout({ steps = 2 }).state:positions()))
  end)

  it("warns of units that float32 is too small for", function()
    local told, warn = {}, messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    for _, precision in ipairs { "float32", "float64" } do
      for _, unit in ipairs { 1e-9, 1e-6, 1, 1e6 } do
        local robot = cq.Robot { shape = cq.Shape.box { size = { unit, unit, unit }, count = { 8, 8, 8 } },
          material = cq.Material.neo_hookean { young = 1e5 * unit ^ 2, poisson = 0.3, density = 1000 } }
        cq.World { cells = { 16, 16, 16 }, dx = unit / 4, dt = 1e-3, substeps = "auto", precision = precision,
          gravity = { 0, -10 * unit, 0 }, robot:at { unit, unit, unit } }:close()
      end
    end
    messages.warn = warn
    says(table.concat(told, " "), "in these units the momentum of a particle is about ")
    assert.equal(1, #told)
  end)

  it("warns of walls that no node of its grid is in", function()
    local told, warn = {}, messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local h = 1 / 24
    for _, wall in ipairs {
      cq.Boundary.obstacle { lower = { 15 * h, 2.1 * h }, upper = { 20 * h, 2.9 * h } },
      cq.Boundary.sphere { center = { 18.5 * h, 3.5 * h }, radius = 0.7 * h },
      cq.Boundary.obstacle { lower = { 15 * h, 2.1 * h }, upper = { 20 * h, 3 * h } },
      cq.Boundary.sphere { center = { 18.5 * h, 3.5 * h }, radius = 0.72 * h },
    } do world { walls = wall } end
    world { walls = cq.Boundary.sphere { center = { 18.5 * h, 3.5 * h }, radius = 0.7 * h },
      formulation = "total_lagrangian" }
    messages.warn = warn
    assert.equal(2, #told)
    says(told[1], "wall 1 (obstacle) has no node of the grid in its solid, so bodies pass through it")
    says(told[2], "wall 1 (sphere)")
  end)

  it("has substeps for actuation that a design gives later", function()
    local block = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.025 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
      actuators = cq.Actuator.isotropic { count = 2, max = 200 } }
    local w = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = "auto", block:at { 0.4, 0.4 } }
    local weight = T.zeros { w.particle_count, 2 } + T.tensor { 1, 0 }
    local roll = w:rollout { steps = 1, robot = block:with { actuation_weight = weight } }
    assert.is_true(roll.state:center(block):get(1) > 0.4)
    -- without weights so far the number of the world is that of the material
    assert.is_true(w.courant < 0.2, w.courant)
  end)

  it("holds several robots", function()
    local a, b = scene.robot(), scene.robot()
    local w = world { a:at { 0.3, 0.127 }, b:at { 0.6, 0.127 } }
    assert.equal(64, w.particle_count)
    assert.equal(4, w.actuator_count)
    local thrown = w.robots[2]:with { velocity = { 0.5, 0 } }
    local roll = w:rollout { steps = 2, robot = thrown, gravity = { 0, 0 },
      controller = function() return { 0, 0, 0, 0.5 } end }
    local s = roll.state
    assert.is_true(math.abs(s:velocity(b)[1]:item() - 0.5) < 1e-2)
    assert.is_true(math.abs(s:velocity(a)[1]:item()) < 1e-6)
    assert.is_true(s:center(b:group "foot"):equal(s:center(w.robots[2]:group "foot")))
    assert.is_true(s:center(w.robots[2]:group "foot"):get(1) > 0.6)
    says(sentence(function() s:center "foot" end),
      "several robots have a group \"foot\"; use world.robots[i]:group(\"foot\")")
    local twins = world { a:at { 0.3, 0.127 }, a:at { 0.6, 0.127 } }
    local roll2 = twins:rollout { steps = 1 }
    says(sentence(function() roll2.state:center(a) end), "several robots made from this one")
    assert.is_true(roll2.state:center(twins.robots[2]):get(1) > 0.6)
  end)

  it("takes as many scenes as the engine does", function()
    local w, many = world {}, C.CQ_BATCH_MAX + 1
    local allowed = ("batch must be a whole number at least 1 and at most %d, got %d"):format(C.CQ_BATCH_MAX, many)
    says(sentence(function() w:memory_plan { steps = 1, batch = many } end), "world:memory_plan: " .. allowed)
    says(sentence(function() w:rollout { steps = 1, batch = many } end), "world:rollout: " .. allowed)
  end)

  it("plans memory", function()
    local w = world {}
    local plan = w:memory_plan { steps = 100, memory = "1 GiB" }
    assert.equal(1, plan.recompute)
    assert.equal(100, plan.records)
    assert.is_true(plan.bytes >= 100 * plan.record_bytes)
    local tight = w:memory_plan { steps = 100, memory = plan.bytes / 10 }
    assert.is_true(tight.recompute > 1 and tight.bytes <= plan.bytes / 10)
    says(tight.text, "checkpoints")
    says(sentence(function() w:memory_plan { steps = 100, memory = "1 KiB" } end), "needs at least")
  end)

  it("counts the time of its phases", function()
    local w = world {}
    w:rollout { steps = 20 }
    local timers, sum = w:timers(true), 0
    for _, seconds in pairs(timers) do sum = sum + seconds end
    assert.is_true(sum > 0)
  end)

  it("gives its memory back when it is garbage", function()
    local destroyed = 0
    for _ = 1, 3 do
      local w = world {}
      local close = w.pool.close
      w.pool.close = function(pool)
        destroyed = destroyed + 1
        return close(pool)
      end
      w:rollout { steps = 2 }
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(destroyed >= 2)
  end)
end)

describe("a world tells", function()
  local told, warn

  before_each(function()
    told, warn = {}, messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
  end)
  after_each(function() messages.warn = warn end)

  local solid = cq.Material.neo_hookean { young = 10, poisson = 0.3 }
  local function body(shape, material, name)
    return cq.Robot { name = name, shape = shape, material = material or solid }
  end
  local function block(spacing) return cq.Shape.box { size = { 0.4, 0.4 }, spacing = spacing } end
  local function placed(...)
    told = {}
    cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-3, substeps = "auto", ... }:close()
    return told
  end

  it("of a body that tears, as its particles are more than a cell apart", function()
    local fine, coarse = body(block(0.05)):at { 0.3, 0.3 }, body(block(0.08)):at { 0.3, 0.3 }
    assert.same({}, placed(fine))
    assert.same({ "cq.World: particles of robot are about 0.08 apart, 1.6 cells of 0.05: a body tears where that is more "
      .. "than one; take more particles (spacing = dx / 2) or larger cells" }, placed(coarse))
    -- its upper part is held, and the lower one falls off
    local function drop(spacing)
      local robot = cq.Robot { shape = block(spacing), material = solid, pins = "top",
        groups = { top = function(_, y) return y > 0.3 end, low = function(_, y) return y < 0.1 end } }
      local place = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = "auto", gravity = { 0, -1 },
        robot:at { 0.3, 0.5 } }
      local before, after = place:rollout { steps = 0 }.state, place:rollout { steps = 60 }.state
      return before:center("low"):get(2) - after:center("low"):get(2)
    end
    assert(drop(0.05) < 0.01 and drop(0.08) > 0.05, drop(0.05) .. " " .. drop(0.08))
    -- grains and liquids part, and one particle does not
    assert.same({}, placed(body(block(0.08), cq.Material.fluid { bulk = 10 }):at { 0.3, 0.3 }))
    assert.same({}, placed(body(cq.Shape.box { size = { 0.4, 0.4 }, count = { 1, 1 } }):at { 0.3, 0.3 }))
  end)

  it("of robots that stand in each other, and not of such as touch", function()
    local disc = cq.Shape.disc { at = { 0.21, 0.2 }, radius = 0.12, spacing = 0.021 }
    local whole = block(0.025)
    assert.same({}, placed(body(whole - disc):at { 0.3, 0.3 }, body(disc):at { 0.3, 0.3 }))
    assert.same({}, placed(body(whole):at { 0.1, 0.3 }, body(whole):at { 0.5, 0.31 }))
    local cut = placed(body(whole):at { 0.3, 0.3 }, body(disc, cq.Material.fluid { bulk = 10 }, "drop"):at { 0.3, 0.3 })
    assert.equal(1, #cut)
    says(cut[1], "cq.World: robot 2 (drop) stands in robot 1 (robot), with about ", " % of the smaller one: masses and "
      .. "stresses of both add up there; move one with robot:at, or leave it out of the other's shape (shape - other)")
    says(placed(body(whole):at { 0.3, 0.3 }, body(whole):at { 0.3, 0.3 })[1], "with about 100 % of")
    says(placed(body(whole):at { 0.2, 0.3 }, body(whole):at { 0.5, 0.31 })[1], "robot 2 (robot) stands in robot 1")
    local left = body(whole):at { 0.1, 0.3 }
    local batch = left:with { position = T.stack({ left.position, left.position + 0.1 }, 1),
      volume = T.stack({ left.volume, left.volume }, 1) }
    assert.same({}, placed(batch, body(whole):at { 0.5, 0.31 }))
    says(placed(batch, body(whole):at { 0.1, 0.3 })[1], "with about 100 % of")
  end)
end)

describe("mistakes in a world", function()
  it("in its fields", function()
    says(sentence(world, { cell = { 1, 1 } }), "unknown field cell (did you mean cells?)")
    says(sentence(world, { dx = -1 }), "dx must be a finite number above 0, got -1")
    says(sentence(world, { gravity = { 0, 0, -1 } }), "gravity has 3 components, the world is 2D")
    says(sentence(world, { substeps = 0 }), "substeps must be")
    says(sentence(world, { 3 }), "entry 1 must be a cq.Robot, got 3")
    says(sentence(cq.World, { cells = { 8, 8 }, dx = 1, dt = 1 }), "has no robot")
    says(sentence(cq.World, { cells = { 8, 8 }, dx = 1, dt = 1, nil, scene.robot() }),
      "entry 1 is nil, and entry 2 follows")
    says(sentence(cq.Plan, { { name = "a" }, nil, { name = "b" } }), "cq.Plan: entry 2 is nil, and entry 3 follows")
    local press = cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 }
    says(sentence(scene.robot, { actuators = { nil, press } }),
      "cq.Robot: actuators: entry 1 is nil, and entry 2 follows")
    for _, given in ipairs { { press = press }, { press, left = press } } do
      says(sentence(scene.robot, { actuators = given }),
        "cq.Robot: actuators: takes a list, whose entries have no names, got one with the name ")
    end
    says(sentence(world, { cells = { 24, 24, 24 }, walls = {} }), "robot is 2D, the world is 3D by its cells")
    local ball = cq.Boundary.sphere { center = { 0, 0, 0 }, radius = 1 }
    says(sentence(world, { walls = ball }), "wall 1 (sphere) is 3D by its point, the world is 2D")
  end)

  it("in time: the Courant number", function()
    local message = sentence(world, { dt = 0.2, substeps = 2 })
    says(message, "the Courant number is")
    local wanted = tonumber(message:match "use substeps = (%d+)")
    assert.is_true(world({ dt = 0.2, substeps = wanted }).courant <= 0.5)
  end)

  it("in time: waves that no number of substeps can follow", function()
    for _, young in ipairs { 1e14, 1e39, 1.7e308 } do
      local robot = cq.Robot {
        shape = cq.Shape.box { size = { 0.2, 0.2 }, count = { 4, 4 } },
        material = cq.Material.neo_hookean { young = young, poisson = 0.3 },
      }
      for _, substeps in ipairs { 4, "auto" } do
        local refused = sentence(function()
          local made = cq.World { cells = { 16, 16 }, dx = 0.1, dt = 0.01, substeps = substeps, robot:at { 0.5, 0.5 } }
          return made
        end)
        says(refused, "the Courant number is")
        says(refused, "more than the 100000 that there may be")
        says(refused, "integrator = cq.Implicit {}")
        assert.is_nil(refused:find "%-%d")
      end
    end
  end)

  it("in place: outside, or in a wall", function()
    says(sentence(world, { scene.robot():at { 2, 0.2 } }),
      "robot starts outside the world: x of particle 1 of group \"foot\"")
    says(sentence(world, { scene.robot():at { 0.4, 0.1 } }),
      "robot overlaps wall 1 (box): particle 1 of group \"foot\" at {0.4125, 0.1125} is inside its solid")
    local function with_wall(wall) return sentence(world, { walls = wall }) end
    says(with_wall(cq.Boundary.floor { at = 0.2 }), "overlaps wall 1 (floor)")
    says(with_wall(cq.Boundary.sphere { center = { 0.45, 0.2 }, radius = 0.02 }), "overlaps wall 1 (sphere)")
    says(with_wall(cq.Boundary.sphere { center = { 0.1, 0.1 }, radius = 0.02, hollow = true }),
      "overlaps wall 1 (sphere)")
    says(with_wall(cq.Boundary.obstacle { lower = { 0.42, 0.2 }, upper = { 0.6, 0.22 } }), "overlaps wall 1 (obstacle)")
    says(with_wall(cq.Boundary.height_field { heights = { 0, 0.3, 0 }, spacing = 0.45 }),
      "overlaps wall 1 (height_field)")
    says(with_wall(cq.Boundary.slope { point = { 0.4, 0.1 }, angle = 0.6 }), "overlaps wall 1 (slope)")
    local hill, slope = cq.Boundary.height_field { heights = { 0, 0.1, 0 }, spacing = 0.45 },
      cq.Boundary.slope { point = { 0.4, 0.1 }, angle = 0.1 }
    assert.equal(2, #world({ walls = { hill, slope } }).walls)
  end)

  it("in the place that its robots have been given, and in no other", function()
    local robot = scene.robot():at { 0.4, 0.2 }
    local function walled(one)
      return world { one, walls = cq.Boundary.floor { at = 0.7, axis = "x", kind = "separate" } }
    end
    says(sentence(walled, robot), "overlaps wall 1 (floor)")
    local moved = robot:with { position = robot.position + T.tensor { 0.35, 0 } }
    local kept = walled(moved)
    says(sentence(kept.rollout, kept, { steps = 1, robot = robot }), "world:rollout: robot overlaps wall 1 (floor)")
    assert.is_true(kept:rollout({ steps = 1 }).state:center("foot"):get(1) > 0.7)
    kept:close()
    local long = robot:stretched { axis = "y", factor = 3 }
    says(sentence(world, { long, walls = cq.Boundary.obstacle { lower = { 0.3, 0.6 }, upper = { 0.7, 0.8 } } }),
      "cq.World: robot overlaps wall 1 (obstacle)")
    says(sentence(world, { robot:stretched { axis = "y", factor = 9 } }), "cq.World: robot starts outside the world: y of")
    local scenes = T.stack({ robot.position, robot.position + 0.7 }, 1)
    says(sentence(world, { robot:with { position = scenes } }), "cq.World: robot starts outside the world")
  end)

  it("in its walls", function()
    says(sentence(cq.Boundary.box, { kind = "friction" }), "needs its coefficient mu")
    says(sentence(cq.Boundary.box, { kind = "slip", mu = 1 }), "mu is for kind \"friction\"")
    says(sentence(cq.Boundary.box, { mu = -1 }), "mu must be a finite number at least 0")
    says(sentence(cq.Boundary.box, { kind = "slip", separable = true }),
      "the kind is \"slip\"; slip that lets go is kind \"separate\"")
    says(sentence(cq.Boundary.box, { mu = 1, separable = true }), "the kind is \"friction\", which lets go anyway")
    says(sentence(cq.Boundary.box, { mu = 1, clamp = true }),
      "what starts within, kind \"sticky\" or \"slip\"; kind \"friction\" lets go")
    says(sentence(cq.Boundary.box, { separable = true, clamp = true }), "one that is separable lets go")
    says(sentence(cq.Boundary.box, { moves = true }), "a wall that moves needs a velocity")
    says(sentence(cq.Boundary.box, { inset = 1, lower = { 0, 0 } }), "either inset or lower and upper")
    says(sentence(cq.Boundary.obstacle, { lower = { 0, 0 }, upper = { 1, 0 } }),
      "upper must be above lower on every axis, got 0 and 0 on axis 2")
    says(sentence(cq.Boundary.half_plane, { point = { 0, 0 }, normal = { 0, 0 } }), "must have a direction")
    says(sentence(cq.Boundary.height_field, { heights = { 1, "a" }, spacing = 1 }),
      "heights must be finite numbers, got \"a\" at sample 2")
    says(sentence(cq.Boundary.floor, { at = 0, knd = "slip" }), "unknown field knd (did you mean kind?)")
  end)
end)

describe("walls", function()
  -- a block thrown at a wall of each kind
  local function thrown(wall, velocity)
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "block", at = { 0, 0 }, size = { 0.1, 0.1 }, count = { 6, 6 } },
      material = cq.Material.neo_hookean { young = 20, poisson = 0.2 },
    }
    local w = cq.World { cells = { 32, 32 }, dx = 1 / 32, dt = 5e-3, substeps = 5, walls = wall, precision = "float64",
      robot:at { 0.4, 0.3 } }
    return w:rollout { steps = 60, robot = robot:with { velocity = velocity } }.state
  end

  it("of each kind act as they are named", function()
    local down = { 0.5, -1 }
    local sticky, slip = thrown(cq.Boundary.floor { at = 0.25 }, down),
      thrown(cq.Boundary.floor { at = 0.25, kind = "slip" }, down)
    local separate = thrown(cq.Boundary.floor { at = 0.25, kind = "separate" }, down)
    local friction = thrown(cq.Boundary.floor { at = 0.25, mu = 0.3 }, down)
    local function vx(s) return s:velocity("block"):get(1) end
    assert.is_true(vx(sticky) < 0.4)
    assert.is_true(math.abs(vx(slip) - 0.5) < 1e-9 and math.abs(vx(separate) - 0.5) < 1e-9)
    assert.is_true(vx(friction) < 0.45 and vx(friction) > 0)
    assert.is_true(separate:velocity("block"):get(2) > slip:velocity("block"):get(2))
  end)

  it("that are separable hold what presses, and let it go", function()
    local function of(fields, velocity) return thrown(cq.Boundary.floor(fields), velocity):velocity "block" end
    local held = { kind = "sticky", separable = true, at = 0.29 }
    assert.equal("cq.Boundary.floor { sticky, separable }", tostring(cq.Boundary.floor(held)))
    -- what leaves is not touched, and what presses does not slide
    assert.is_true(of(held, { 0.1, 0.5 }):close(T.tensor { 0.1, 0.5 }, 1e-9))
    assert.is_true(of({ at = 0.29 }, { 0.1, 0.5 }):get(2) < 0.2)
    local down = { 0.5, -1 }
    assert.is_true(of(held, down):close(of({ mu = 99, at = 0.29 }, down), 1e-9))
    assert.is_true(of(held, down):get(2) > of({ at = 0.29 }, down):get(2) + 0.1)
  end)

  it("hold robots that start in them if they are clamps", function()
    local function start(wall)
      return cq.World {
        cells = { 32, 32 }, dx = 1 / 32, dt = 5e-3, substeps = "auto", walls = wall, precision = "float64",
        gravity = { 0, -1 },
        scene.robot():at { 0.4, 0.3 },
      }
    end
    local function at(more)
      local fields = { lower = { 0.3, 0.2 }, upper = { 0.6, 0.36 }, clamp = true }
      for key, value in pairs(more or {}) do fields[key] = value end
      return cq.Boundary.obstacle(fields)
    end
    says(sentence(start, at { clamp = false }), "or have clamp = true where the wall is to hold it")
    local held = start(at())
    local state = held:rollout { steps = 20 }.state
    assert.is_true(math.abs(state:center("foot"):get(2) - 0.35) < 0.01)
    -- a gripper takes it along
    local lifted = start(at { velocity = { 0, 0.5 } }):rollout { steps = 40 }.state
    assert.is_true(math.abs(lifted:center("foot"):get(2) - 0.35 - 0.1) < 0.02)
    -- and places that a rollout sets are looked at in the same way
    held:rollout { steps = 1, robot = held.robot:with { position = held.robot.position + 0.01 } }
  end)

  it("stand where each shape has them", function()
    for _, wall in ipairs {
      cq.Boundary.half_plane { point = { 0, 0.2 }, normal = { 0, 3 }, kind = "separate" },
      cq.Boundary.box { kind = "separate", inset = 0.2 },
      cq.Boundary.height_field { heights = { 0.2, 0.2, 0.2 }, spacing = 0.5, kind = "separate" },
      cq.Boundary.obstacle { lower = { 0.1, 0.1 }, upper = { 0.9, 0.2 }, kind = "separate" },
      cq.Boundary.slope { point = { 0.5, 0.2 }, angle = 0, kind = "separate" },
    } do
      local reference = thrown(cq.Boundary.floor { at = 0.2, kind = "separate" }, { 0, -1 }):center "block"
      assert.is_true(thrown(wall, { 0, -1 }):center("block"):close(reference, 1e-9), tostring(wall))
    end
  end)

  it("level to an axis are the plane across it, in both dimensions", function()
    for dim = 2, 3 do
      local size, at = { 0.1, 0.1, dim == 3 and 0.1 or nil }, { 0.4, 0.4, dim == 3 and 0.4 or nil }
      local body = cq.Robot { shape = cq.Shape.box { name = "block", size = size, spacing = 1 / 48 },
        material = cq.Material.neo_hookean { young = 20, poisson = 0.2 } }
      for axis = 1, dim do
        local point, normal, gravity, push = {}, {}, {}, {}
        for d = 1, dim do
          point[d], normal[d], gravity[d], push[d] = d == axis and 0.375 or 0.1, d == axis and 2 or 0, 0, 0
        end
        gravity[axis], push[axis], gravity[axis % dim + 1] = -4, 0.3, -0.5
        -- Where a block on a wall is after 30 control steps, and the impulses of the wall.
        local function on(wall)
          local place = cq.World { cells = size[3] and { 24, 24, 24 } or { 24, 24 }, dx = 1 / 24, dt = 5e-3,
            substeps = "auto", precision = "float64", gravity = gravity, walls = wall, body:at(at) }
          local roll = place:rollout { steps = 30, contact = true }
          return roll.state:positions(), roll.contact.impulse
        end
        for _, velocity in ipairs { false, push } do
          local v, letter = velocity or nil, ("xyz"):sub(axis, axis)
          local floor, impulse = on(cq.Boundary.floor { at = 0.375, axis = letter, mu = 0.3, velocity = v })
          local plane, wanted = on(cq.Boundary.half_plane { point = point, normal = normal, mu = 0.3, velocity = v })
          assert.is_true(floor:close(plane, 1e-12) and impulse:close(wanted, 1e-12), letter .. " in " .. dim .. "D")
          assert.is_true(impulse:abs():max():item() > 1e-6)
        end
      end
    end
  end)

  it("that move push, and conveyors carry", function()
    local pushed = thrown(cq.Boundary.obstacle { lower = { 0.3, 0.2 }, upper = { 0.36, 0.5 }, velocity = { 1, 0 } },
      { 0, 0 })
    assert.is_true(pushed:velocity("block"):get(1) > 0.3)
    local carried = thrown(cq.Boundary.floor { at = 0.28, mu = 1, velocity = { 0.7, 0 }, moves = false }, { 0, -0.5 })
    assert.is_true(carried:velocity("block"):get(1) > 0.05)
    assert.is_true(T.is_tensor(carried:positions()))
  end)
end)

describe("a world", function()
  -- so many robots, of a material each
  local function of_materials(count)
    local def = { cells = { 50, 50 }, dx = 1 / 50, dt = 1e-3, substeps = 1 }
    for k = 0, count - 1 do
      def[#def + 1] = cq.Robot { shape = cq.Shape.box { at = { 0.1 + 0.1 * (k % 8), 0.1 + 0.15 * math.floor(k / 8) },
        size = { 0.04, 0.04 }, spacing = 1 / 50 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1, f_bar = k / 64 } }
    end
    return cq.World(def)
  end

  it("has as many materials as it allows", function()
    assert.is_true(of_materials(31):rollout({ steps = 1 }).state:positions():finite())
    says(sentence(function() of_materials(32) end), "32 materials; a world has 1 to 31")
  end)

  it("gives the same rollout after a tensor of its robot was written into", function()
    local robot = scene.robot():at { 0.4, 0.127 }
    local own = world { robot, gravity = { 0, -2 } }
    local function height(body) return own:rollout({ steps = 20, robot = body }).state:center("trunk"):get(2) end
    local before = height()
    assert.is_true(height(robot:with { young = 30 }) ~= before)
    robot.young:fill(2)
    height(robot:with { young = 7 })
    assert.equal(before, height())
  end)

  it("refuses walls whose fields have different dimensions", function()
    local heights = { { 0.4, 0.1 }, { 0.4, 0.1 } }
    for part, wall in pairs {
      ["height_field: it is 3D by its heights, and 2D by its velocity"] =
        cq.Boundary.height_field { heights = heights, spacing = 1, velocity = { 0, 0 } },
      ["sphere: it is 2D by its point, and 3D by its velocity"] =
        cq.Boundary.sphere { center = { 0.5, 0 }, radius = 0.1, velocity = { 0, 0, 5 } },
      ["floor: it is 3D by its axis, and 2D by its velocity"] = cq.Boundary.floor { at = 0.1, axis = "z", velocity = { 0, 0 } },
    } do
      says(sentence(function() world { walls = wall } end), part)
    end
  end)
end)

describe("world:variant", function()
  it("has variants of other steps and precision; those of a variant are its own", function()
    local robot = scene.robot()
    local first = scene.world(robot)
    local double = first:variant { substeps = 2, precision = "float32" }:variant { substeps = 2 }
    assert.same({ 12, "float32" }, { double.substeps, double.precision })
    assert.equal(first, double.variant_of)
    assert.equal(double, first:variant(double.variation))
    assert.equal(2, first:variant { substeps = 0.6 }.substeps)
  end)
end)
