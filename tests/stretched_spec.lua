-- stretched: lengths as parameters: places, volumes, cables and pins of a stretched robot,
-- and gradients to the lengths.
local cq = require "cq"
local T = require "cq.tensor"
local mistake = require "tests.sentence"
local process = require "tests.process"
local sentence, says = mistake.of, mistake.says

local Creature = cq.Creature

local function world_of(robot, at, more)
  local fields = { cells = { 40, 48 }, dx = 1 / 40, dt = 5e-3, substeps = 8, precision = "float64",
    gravity = { 0.5, -1 }, robot:at(at) }
  for key, value in pairs(more or {}) do fields[key] = value end
  return cq.World(fields)
end

local function signals(world, steps) return cq.Controller.open_loop(cq.full({ steps, world.actuator_count }, 0.3)) end

-- where a rollout ends
local function end_of(world, robot, steps)
  local roll = world:rollout { robot = robot, steps = steps, controller = signals(world, steps) }
  local out = roll.state:positions():copy()
  roll:release()
  return out
end

describe("a stretched robot", function()
  it("is the robot that is drawn with those lengths", function()
    for _, drive in ipairs { "cables", "pressure" } do
      local count = drive == "pressure" and 8 or nil
      local function finger(height, root)
        return Creature.finger { drive = drive, height = height, root = root, count = count }
      end
      local factor, at = drive == "pressure" and 1.25 or 1.025, { 0.4, 0.2 }
      local plain, long = finger(0.4, 0.04), finger(0.4 * factor, 0.04 * factor)
      assert.equal(plain.particle_count, long.particle_count)
      -- the head of the one with chambers stays as it is
      local how = drive == "pressure" and { axis = "y", joints = { 0, 0.4 }, lengths = 0.5 }
        or { axis = "y", factor = factor }
      local drawn = end_of(world_of(long, at), nil, 20)
      -- a cable is led by the nearest particles, of which one may be another
      local tolerance = drive == "cables" and 1e-4 or 1e-9
      -- given as it was drawn, or as the world placed it
      local world = world_of(plain, at)
      assert.is_true(end_of(world, plain:stretched(how), 20):close(drawn, tolerance))
      assert.is_true(end_of(world, world.robot:stretched(how), 20):close(drawn, tolerance))
      -- and the next rollout of the world is as it was
      assert.is_true(end_of(world, nil, 20):equal(end_of(world_of(plain, at), nil, 20)))
    end
  end)

  it("looks as the robot that is drawn with those lengths, in the plane and in space", function()
    local image, option = require "cq.base.image", require("cq.option").program
    local folder, quiet = process.folder(), option.quiet
    option.quiet = true
    local function picture(world, robot, name)
      local run = cq.Experiment { world = world, robot = robot, steps = 1,
        objective = function(s) return s:center(world.robot)[1] end }
      return image.read(run:render(folder .. "/" .. name .. ".png", { width = 160, height = 120 }))
    end
    for dim = 2, 3 do
      local function body(height)
        local size, count = { 0.1, height, 0.1 }, { 5, 10, 5 }
        return cq.Robot { shape = cq.Shape.box { size = { unpack(size, 1, dim) }, count = { unpack(count, 1, dim) } },
          material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
      end
      local function world(height)
        return cq.World { cells = { unpack({ 20, 20, 20 }, 1, dim) }, dx = 1 / 20, dt = 5e-3, substeps = 5,
          body(height):at { unpack({ 0.4, 0.2, 0.4 }, 1, dim) } }
      end
      local drawn, plain, different = picture(world(0.5), nil, "drawn"), world(0.25), 0
      local long = picture(plain, plain.robot:stretched { axis = "y", factor = 2 }, "long")
      for k = 0, 4 * 160 * 120 - 1 do
        if math.abs(drawn.pixels[k] - long.pixels[k]) > 8 then different = different + 1 end
      end
      assert(different < 20, ("%d of %d numbers differ in %dD"):format(different, 4 * 160 * 120, dim))
    end
    option.quiet = quiet
    process.remove(folder)
  end)

  it("takes the pins along that hold it", function()
    local function arm(chamber, block, root)
      return Creature.arm {
        dim = 2, links = 1, count = 8, hanging = true, chamber = chamber, block = block, root = root,
      }
    end
    local drawn = end_of(world_of(arm(0.3, 0.15, 0.075), { 0.3, 0.3 }), nil, 20)
    local world = world_of(arm(0.2, 0.1, 0.05), { 0.3, 0.3 })
    for _ = 1, 2 do
      assert.is_true(end_of(world, world.robot:stretched { axis = "y", factor = 1.5 }, 20):close(drawn, 1e-9))
      -- the root has moved up by 0.15, six cells; held at the old place the arm would be torn
      for k = 1, 5 do end_of(world, world.robot:stretched { axis = "y", factor = 1 + 0.1 * k }, 1) end
    end
    world:close()
  end)

  it("moves along beyond its joints, and keeps what is fixed", function()
    local robot = Creature.finger { drive = "cables" }
    local function height(fields, group)
      fields.axis = "y"
      local world = world_of(robot, { 0.4, 0.2 })
      local roll = world:rollout { robot = robot:stretched(fields), steps = 1, controller = signals(world, 1) }
      return (roll.state:positions():gather(robot:group(group):particles(), 1):mean(1)[2]
        - robot.position:gather(robot:group(group):particles(), 1):mean(1)[2])
        :item() - 0.2
    end
    assert.near(0, height({ joints = { 0.1, 0.2 }, factor = 1.3 }, "root"), 1e-4)
    assert.near(0.03, height({ joints = { 0.1, 0.2 }, factor = 1.3 }, "tip"), 2e-3)
    assert.near(-0.03, height({ joints = { 0.1, 0.2 }, factor = 1.3, fixed = 2 }, "root"), 1e-4)
    assert.near(0.06, height({ joints = { 0.1, 0.2, 0.3 }, places = { 0.1, 0.25, 0.36 } }, "tip"), 2e-3)
    local volume = robot:stretched({ axis = "y", joints = { 0, 0.4 }, lengths = 0.5 }):stretched({ axis = "x",
      factor = 0.5 }).values.volume.tensor
    assert.near(0.5 * 0.05, volume:sum():item(), 1e-12)
  end)

  it("may be stretched again along an axis, from where the joints then are", function()
    local body = cq.Robot { shape = cq.Shape.box { size = { 0.5, 0.25 }, spacing = 1 / 32 },
      material = cq.Material.neo_hookean { young = 20, poisson = 0.3 } }:at { 0.2, 0.3 }
    local function along(first, second) return body:stretched(first):stretched(second) end
    local thrice = body:stretched { axis = "x", factor = 3 }
    for _, factor in ipairs { 1.5, 2, 0.5 } do
      local twice = along({ axis = "x", factor = factor }, { axis = "x", factor = 3 / factor })
      assert.is_true(twice.position:close(thrice.position, 1e-12) and twice.volume:close(thrice.volume, 1e-12))
    end
    -- the second section alone, though the first has moved it; then both, by the place that the middle has then
    local long = { axis = "x", joints = { 0, 0.25 }, factor = 2 }
    local both = body:stretched { axis = "x", joints = { 0, 0.25, 0.5 }, lengths = { 0.5, 0.75 } }
    local twice = along(long, { axis = "x", joints = { 0.25, 0.5 }, lengths = 0.75 })
    assert.is_true(twice.position:close(both.position, 1e-12) and twice.volume:close(both.volume, 1e-12))
    twice = along(long, { axis = "x", joints = { 0, 0.25, 0.5 }, places = { 0, 0.5, 1.25 } })
    assert.is_true(twice.position:close(both.position, 1e-12))
    twice = along({ axis = "x", factor = 2, fixed = 2 }, { axis = "x", factor = 0.5, fixed = 2 })
    assert.is_true(twice.position:close(body.position, 1e-12))
    -- saved between, and the gradient of both
    local robot = require "cq.saved.robot"
    local data = robot.data(body, body:stretched(long))
    local again = robot.make(data, "a test"):stretched { axis = "x", joints = { 0.25, 0.5 }, lengths = 0.75 }
    assert.is_true(again.position:close(both.position, 1e-12))
    data.values.position.stretches = nil
    says(sentence(again.stretched, robot.make(data, "a test"), long), "did not keep its stretches")
    local check = cq.check_gradient(function(p)
      local one = along({ axis = "x", joints = { 0, 0.25 }, factor = p[1] },
        { axis = "x", joints = { 0.1, 0.4 }, factor = p[2] })
      return (one.position:square():sum(2) * one.volume):sum() * 100
    end, cq.param { 1.3, 0.8 }, { each = true })
    assert.is_true(check.ok, tostring(check))
  end)

  it("has the gradient to its lengths, through volumes, cables and pins", function()
    local robots = { Creature.finger { drive = "cables" }, Creature.arm { dim = 2, count = 4, hanging = true } }
    for _, robot in ipairs(robots) do
      local world = world_of(robot, { 0.4, 0.2 })
      local tip = robot.group_table.tip and "tip" or "hand"
      local check = cq.check_gradient(function(p)
        local body = robot:stretched { axis = "y", joints = { 0, 0.1, 0.25, 0.3 }, lengths = p.lengths }:stretched {
          axis = "x", factor = p.width }
        return world:rollout({ robot = body, steps = 15, controller = signals(world, 15) }).state:center(tip):square(
          ):sum()
      end, { lengths = cq.param { 0.13, 0.12, 0.06 }, width = cq.param(1.01) },
        { each = true, directions = 1, steps = { 1e-5, 1e-6 } })
      assert.is_true(check.ok, tostring(check))
    end
    -- joints that are places
    local places = cq.param { 0, 0.25, 0.45 }
    local robot = robots[1]
    local grad = cq.grad(function(p)
      return robot:stretched({ axis = "y", joints = { 0, 0.2, 0.4 }, places = p }).values.volume.tensor:sum()
    end)(places)
    assert.is_true(grad:close(T.tensor { -0.1, 0, 0.1 }, 1e-12))
  end)

  it("has thicker walls around its chambers, as one that is built so", function()
    local dx = 0.0125
    local function drawn()
      local shape = cq.Shape.box { size = { 0.15, 0.075 }, spacing = dx / 2 }
        - cq.Shape.box { at = { 0.1, 0.025 }, size = { 0.025, 0.025 } }
      return cq.Robot {
        shape = shape, material = cq.Material.neo_hookean { young = 100, poisson = 0.4, density = 1 },
        groups = { root = function(x) return x < 2 * dx end, tip = function(x) return x > 0.14 end }, pins = "root",
        actuators = cq.Actuator.follower_pressure { name = "air", surface = { inside = { 0.11, 0.04 } }, max = 4 },
      }
    end
    local function world_with(body)
      return cq.World { cells = { 30, 26 }, dx = dx, dt = 1e-3, precision = "float64",
        integrator = cq.Implicit { tolerance = 1e-10, adjoint_tolerance = 1e-10,
          linear_iterations = 20000 }, body:at { 0.1, 0.12 } }
    end
    local function thick(robot, wall, roof)
      return robot:stretched { axis = "x", joints = { 0.05, 0.1, 0.125, 0.15 }, lengths = { 0.05, 0.025, wall } }
        :stretched { axis = "y", joints = { 0.05, 0.075 }, lengths = { roof } }
    end
    local robot = drawn()
    local world = world_with(robot)
    local function ends(body, where)
      local state = where:settle { robot = body, signals = { 1 } }
      return cq.stack { state:center(where.robot:group("tip"))[2], state:cavity_volume "air" }
    end
    -- the body of those walls, built of its particles in a world of its own
    local function built(wall, roof)
      local values = thick(robot, wall, roof).values
      local again = drawn()
      again.base.position, again.base.volume = values.position.tensor, values.volume.tensor
      require("cq.base.made").remember(again, {})             -- as if they had been drawn so
      local place = world_with(again)
      local out = ends(nil, place)
      place:close()
      return out
    end
    assert.is_true(ends(thick(robot, 0.03, 0.02), world):close(built(0.03, 0.02), 1e-12))
    -- the chamber is as large as it was, but for corners whose particles are stretched on one side alone
    local still = world:settle { robot = thick(robot, 0.03, 0.03), signals = { 0 } }
    assert.near(0.025 ^ 2, still:cavity_volume "air":item(), 0.02 * 0.025 ^ 2)
    local long = world:settle { robot = robot:stretched { axis = "x", factor = 1.2 }, signals = { 0 } }
    assert.near(1.2 * 0.025 ^ 2, long:cavity_volume "air":item(), 1e-12)
    assert.near(0.025 ^ 2, ends(nil, world):get(2), 0.2 * 0.025 ^ 2)
    for k = 1, 2 do
      local grad = cq.grad(function(p) return ends(thick(robot, p[1], p[2]), world)[k] end)(cq.param { 0.03, 0.02 })
      local h = 1e-6
      local slope = { (built(0.03 + h, 0.02) - built(0.03 - h, 0.02)):get(k) / (2 * h),
        (built(0.03, 0.02 + h) - built(0.03, 0.02 - h)):get(k) / (2 * h) }
      for i = 1, 2 do assert.near(1, grad:get(i) / slope[i], 1e-4) end
    end
    -- what would change the areas of an open surface
    local open = cq.Robot {
      shape = cq.Shape.box { size = { 0.15, 0.075 }, spacing = dx / 2 },
      material = cq.Material.neo_hookean { young = 100, poisson = 0.4, density = 1 },
      groups = { roof = function(x, y) return x > 0.1 and x < 0.125 and y > 0.07 end },
      actuators = cq.Actuator.follower_pressure { name = "air", surface = { particles = "roof", area = dx / 2,
        normal = { 0, 1 } } },
    }
    local function refused(fields)
      return sentence(open.stretched, open, fields)
    end
    says(refused { axis = "x", factor = 1.1 }, 'section from 0 to 0.15 holds walls of the pressure "air"')
    says(refused { axis = "x", joints = { 0.1, 0.125, 0.15 }, lengths = { 0.026, 0.025 } },
      "give its length as the number 0.025, or its factor as the number 1")
    says(refused { axis = "x", joints = { 0.1, 0.125, 0.15 }, factor = cq.tensor { 1, 1.2 } }, "from 0.1 to 0.125")
    says(refused { axis = "x", joints = { 0.1, 0.125, 0.15 }, places = { 0.1, 0.125, 0.16 } }, "from 0.1 to 0.125")
    world:close()
  end)

  it("is trained by an experiment", function()
    local robot = Creature.arm { dim = 2, count = 4 }
    local world = world_of(robot, { 0.4, 0.2 }, { gravity = { 0, 0 }, precision = "float32" })
    local run = cq.Experiment {
      world = world, steps = 10, optimizer = cq.Optimizer.adam { rate = 0.02 },
      objective = function(s) return (s:center("hand")[2] - 0.86):square() end,
      trainable = { length = { init = 1, min = 0.5, max = 2, apply = function(body, s)
        return body:stretched { axis = "y", factor = s }
      end } },
    }
    local folder = require("tests.process").folder()
    local quiet = require("cq.option").program
    local before = quiet.quiet
    quiet.quiet = true
    run:optimize { iterations = 30, folder = folder }
    quiet.quiet = before
    process.remove(folder)
    assert(math.sqrt(run.best.loss) < 5e-3, run.best.loss)
    assert.near(1.2, run.best.params.named.length:item(), 0.02)
  end)

  it("with pins ends as it does alone, whatever was stretched before", function()
    local dx = 1 / 16
    local function bar(name, formulation)
      return cq.Robot { name = name, formulation = formulation, pins = "tip",
        shape = cq.Shape.box { size = { 12 * dx, 2 * dx }, spacing = dx / 2 },
        groups = { tip = function(x) return x > 11 * dx end },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    end
    for _, formulations in ipairs { { "total_lagrangian" }, { "updated" }, { "total_lagrangian", "updated" } } do
      -- where both bars end for the last of these factors
      local function ends(factors)
        local fields = { cells = { 32, 24 }, dx = dx, dt = 1e-2, substeps = 10, gravity = { 0, -1 },
          precision = "float64" }
        for k, formulation in ipairs(formulations) do
          fields[k] = bar("bar " .. k, formulation):at { 6.2 * dx, (2.1 + 6 * k) * dx }
        end
        local world, out = cq.World(fields), nil
        for _, factor in ipairs(factors) do
          local robots = {}
          for k, robot in ipairs(world.robots) do robots[k] = robot:stretched { axis = "x", factor = factor } end
          out = world:rollout { steps = 20, robot = robots }.state:positions():copy()
        end
        return out
      end
      local alone = ends { 1.1 }
      assert.is_true(alone:equal(ends { 1.12, 1.1 }) and alone:equal(ends { 1.08, 1.1 }), formulations[1])
    end
  end)

  it("follows a rest length of the user's where it was given", function()
    local body = Creature.finger { drive = "cables" }
    local values = require "cq.robot.values"
    local long = body:stretched { axis = "y", factor = 2 }
    assert.is_true(values.spread(long, "cable_length"):close(2 * body.cable_length, 1e-12))
    assert.is_true(values.spread(long:with { cable_length = 0.2 }, "cable_length"):equal(cq.full({ 2 }, 0.2)))
    local kept = body:with({ cable_length = 0.2 }):stretched { axis = "y", factor = 2 }
    assert.is_true(values.spread(kept, "cable_length"):equal(cq.full({ 2 }, 0.2)))
  end)

  it("is refused where it cannot be", function()
    local robot = Creature.finger { drive = "cables" }
    local function made(fields)
      fields.axis = fields.axis or "y"
      return sentence(robot.stretched, robot, fields)
    end
    says(made {}, "give one of factor, lengths and places, got none")
    says(made { factor = 1, lengths = 1 }, "got factor and lengths")
    says(made { factor = -1 }, "the section from 0 to 0.4 would be -0.4 long, it must be above 0")
    says(made { factor = 1, axis = "z" }, "axis must be \"x\" or \"y\" in 2D")
    says(made { factor = 1, joints = { 0.2, 0.1 } }, "joints must ascend, got 0.1 after 0.2")
    says(made { lengths = { 1, 2, 3 }, joints = { 0, 0.1, 0.2 } },
      "lengths must be one number, or 2 numbers, one for each section, got a tensor {3}")
    says(made { lengths = { 0.1 }, joints = { 0, 0.1, 0.4 } }, "one for each section, got a tensor {1}")
    says(made { places = { 1 }, joints = { 0, 0.1 } }, "places must be 2 numbers, one for each joint")
    says(made { factor = { 1, 2 } }, "factor must be one number, got a tensor {2}")
    says(made { factor = 2, joints = { 1.1, 1.2 } },
      "no particle lies between the joints 1.1 and 1.2; along y the robot has them from 0.00625 to")
    says(made { factor = 1, fixed = 3 }, "fixed is joint 3, there are 2")
    says(made { places = { 0, 1 }, fixed = 2 }, "fixed goes with factor and lengths, and has no effect on places")
    says(sentence(robot.stretched, robot:with { position = robot.position }, { axis = "y", factor = 1 }),
      "has a position by robot:with")
    local world = world_of(robot, { 0.4, 0.2 })
    says(sentence(world.rollout, world, { steps = 1, robot = robot:stretched { axis = "y", factor = 4 } }),
      "starts outside the world")
  end)
end)
