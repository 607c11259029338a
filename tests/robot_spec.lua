-- robot: groups, materials, actuators, variants, and what is refused.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local soft = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 2 }
local hard = cq.Material.linear { young = 50, poisson = 0.1 }

local function block(name, y)
  return cq.Shape.box { name = name, at = { 0, y }, size = { 0.1, 0.1 }, count = { 4, 4 } }
end

local function robot(changes)
  local fields = { shape = { block("foot", 0), block("trunk", 0.1) }, material = soft }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Robot(fields)
end

describe("what comes too late for a world", function()
  it("is an error", function()
    local r = robot()
    local placed = r:at { 0.4, 0.2 }
    says(sentence(function() r:group("foot"):pin() end), "another robot was already made from this one, as by robot:at")
    local world = scene.world(r)
    for _, one in ipairs { r, world.robot, world.robot:with { young = 20 } } do
      says(sentence(function() one:group("foot"):pin() end), "the world of this robot is already made")
    end
    placed:group("foot"):pin()
    local pinned = r:with { young = 20 }
    pinned:group("foot"):pin()
    says(sentence(function() world:rollout { steps = 1, robot = pinned } end),
      "robot 1 of the world is given with other pins than those with which the world was made")
    says(sentence(function() world:rollout { steps = 1, robot = r:at { 0.1, 0.3 } } end),
      "robot 1 of the world stands at {0.4, 0.127}, and is given at {0.1, 0.3}")
    world:close()
  end)
end)

describe("a robot", function()
  it("has the particles and groups of its shape, and the user's", function()
    local r = robot { groups = { top = function(_, y) return y > 0.18 end, ends = { "foot", 32 }, ["one"] = { 5 } },
      markers = 6 }
    assert.equal(32, r.particle_count)
    assert.same({ "foot", "trunk" }, r.groups)
    assert.equal(4, r:group("top").particle_count)
    assert.equal(17, r:group("ends").particle_count)
    assert.same({ 5 }, r:group("one"):particles())
    assert.equal(6, r:group("markers").particle_count)
    assert.is_true(math.abs(r.volume:sum():item() - 0.02) < 1e-15)
    says(tostring(r), "2D, 32 particles")
  end)

  it("has groups where a function gives true, and refuses one that gives a number", function()
    local function top(f) return robot { groups = { top = f } } end
    assert.equal(4, top(function(_, y) if y > 0.18 then return true end end):group("top").particle_count)
    says(sentence(top, function(_, y) return y > 0.18 and 1 or 0 end),
      "cq.Robot: groups.top: the function must give true or false, got 0 at (0.0125, 0.0125); in Lua every number is "
        .. "true, also 0: compare it, as in value < 0")
    says(sentence(top, function(_, y) return y > 0.18 and "yes" end), "must give true or false, got \"yes\" at (")
    says(sentence(top, function(_, y) return y.height end), "cq.Robot: groups.top: the function failed at (0.0125, ")
  end)

  it("has each particle once in groups that overlap, whatever their names", function()
    local r = robot { groups = { all = { "sole", "trunk", "foot", 1, 1 }, sole = { "zero", "foot" }, zero = { 1, 2 } } }
    assert.equal(32, r:group("all").particle_count)
    assert.equal(16, r:group("sole").particle_count)
    local world = scene.world(r)
    local state = world:rollout({ steps = 1, robot = r:with { velocity = { 0.5, 0 } } }).state
    for _, which in ipairs { "all", r, { { "foot", "sole", "trunk" } } } do
      assert.near(state:momentum()[1]:item(), state:momentum(which):reshape({ 2 })[1]:item(), 1e-15)
    end
    says(sentence(function() robot { groups = { a = { "b" }, b = { "foot", "a" } } } end),
      "groups.a is a part of itself")
    says(sentence(function() robot { groups = { a = { "foot", b = "trunk" } } } end),
      "cq.Robot: groups.a: takes a list, whose entries have no names, got one with the name \"b\"")
    says(sentence(function() state:center { "foot", other = "trunk" } end), "got one with the name \"other\"")
    world:close()
  end)

  it("has materials by group", function()
    local r = robot { material = { foot = hard, default = soft } }
    local foot, trunk = r:group("foot").index[0] + 1, r:group("trunk").index[0] + 1
    assert.equal(50, r.young:get(foot))
    assert.equal(10, r.young:get(trunk))
    assert.equal(2, r.density:get(trunk))
    assert.are_not.equal(r.law[foot - 1], r.law[trunk - 1])
  end)

  it("has particles of one volume or one mass when asked to", function()
    local shape = { block("foot", 0), cq.Shape.box { name = "trunk", at = { 0, 0.1 }, size = { 0.1, 0.1 },
      count = { 8, 4 } } }
    local function masses(changes)
      changes.shape = shape
      local r = robot(changes)
      return r.density * r.volume, r
    end
    assert.is_false(masses({}):min():item() == masses({}):max():item())
    local mass, r = masses { particle_mass = "equal" }
    assert.is_true(mass:close(T.full({ 48 }, 2 * 0.02 / 48), 1e-14))
    assert.is_true(r.volume:equal(robot({ shape = shape }).volume))
    assert.is_true(masses({ particle_mass = 3 }):close(T.full({ 48 }, 3), 1e-14))
    mass, r = masses { particle_volume = "equal" }
    assert.is_true(mass:close(T.full({ 48 }, 2 * 0.02 / 48), 1e-14) and r.density:equal(T.full({ 48 }, 2)))
    mass, r = masses { particle_volume = 1e-3, particle_mass = 5e-3 }
    assert.is_true(r.volume:equal(T.full({ 48 }, 1e-3)) and mass:close(T.full({ 48 }, 5e-3), 1e-14))
    says(sentence(robot, { particle_mass = "same" }),
      "particle_mass must be a finite number above 0, or \"equal\", got \"same\"")
    -- the engine has them: its means weigh by mass
    mass, r = masses { particle_mass = "equal" }
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, precision = "float64", r:at { 0.4, 0.4 } }
    local state = world:rollout({ steps = 1 }).state
    assert.is_true(mass:finite() and state:center(r):close(state:center(r, { weight = "particle" }), 1e-14))
  end)

  it("moves without changing the one it was made from", function()
    local r = robot()
    local moved = r:at { 1, 2 }
    assert.is_true(moved.position:equal(r.position + T.tensor { 1, 2 }))
    assert.is_true(moved:descends_from(r))
    assert.equal(moved, moved:group("foot").robot)
    says(sentence(function() r:at { 1, 2, 3 } end), "offset must be a list of 2 finite numbers")
  end)

  it("pins groups and particles", function()
    local function drop(r)
      local w = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, gravity = { 0, -2 },
        precision = "float64", r:at { 0.4, 0.4 } }
      return w:rollout { steps = 30 }.state
    end
    local free, pinned = robot(), robot { pins = { "trunk" } }
    assert.is_true(drop(free):center("trunk"):get(2) < 0.53)
    assert.is_true(math.abs(drop(pinned):center("trunk"):get(2) - 0.55) < 1e-3)
    assert.is_true(drop(pinned):center("foot"):get(2) < 0.45)
    local later = robot()
    later:group("trunk"):pin()
    assert.is_true(drop(later):center("trunk"):equal(drop(pinned):center "trunk"))
    says(sentence(function() later:group("foot"):pin() end), "the world of this robot is already made")
    assert.is_true(math.abs(drop(robot { pins = { 1, 32 } }):center("trunk"):get(2) - 0.55) < 0.05)
  end)

  it("names its signals", function()
    local r = robot { actuators = {
      cq.Actuator.pressure { groups = { "foot", { "foot", "trunk" } }, axis = "x" },
      cq.Actuator.isotropic { count = 2 },
      { particles = "trunk", signals = 3, force = function() end },
    } }
    assert.equal(7, r.actuator_count)
    assert.same({ "foot", "pressure 2", "isotropic 1", "isotropic 2", "trunk", "trunk", "trunk" }, r.signals)
  end)
end)

describe("actuators", function()
  it("pull along their direction when positive, and push when negative", function()
    local function shape_after(actuator, u)
      local r = robot { actuators = actuator, material = cq.Material.corotated { young = 10, poisson = 0 } }
      local w = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 4, precision = "float64",
        r:at { 0.4, 0.4 } }
      return w:rollout { steps = 8, controller = function() return u end }.state:mean(r, "deformation")
    end
    local F = shape_after(cq.Actuator.pressure { groups = { { "foot", "trunk" } }, axis = "y", max = 2 }, 1)
    assert.is_true(F:get(2, 2) < 0.97 and math.abs(F:get(1, 1) - 1) < 0.02)
    F = shape_after(cq.Actuator.pressure { groups = { { "foot", "trunk" } }, direction = { 5, 0 }, max = 2 }, -1)
    assert.is_true(F:get(1, 1) > 1.03 and math.abs(F:get(2, 2) - 1) < 0.02)
    F = shape_after(cq.Actuator.pressure { groups = { { "foot", "trunk" } }, direction = { { 0, 1 }, { 1, 0 } },
      max = 2 }, 1)
    assert.is_true(math.abs(F:get(1, 2) + F:get(2, 1)) > 0.02)
    F = shape_after(cq.Actuator.isotropic { groups = { { "foot", "trunk" } }, max = 2 }, 1)
    assert.is_true(F:get(1, 1) < 0.97 and F:get(2, 2) < 0.97)
    local rest = shape_after(cq.Actuator.muscle { groups = { { "foot", "trunk" } }, axis = "y", max = 2 }, -1)
    assert.is_true(rest:close(T.eye(2), 0, 1e-6))
    assert.is_true(shape_after(cq.Actuator.muscle { groups = { { "foot", "trunk" } }, axis = "y", max = 2 }, 0):get(2,
      2) < 0.99)
  end)

  it("of count follow the weights", function()
    local r = robot { actuators = cq.Actuator.isotropic { count = 2, max = 2 } }
    local w = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 4, precision = "float64",
      r:at { 0.4, 0.4 } }
    local weights = T.zeros { 32, 2 }
    for _, p in ipairs(r:group("foot"):particles()) do weights:set(1, p, 2) end
    local function areas(u)
      local s = w:rollout { robot = r:with { actuation_weight = weights }, steps = 8,
        controller = function() return u end }.state
      return s:mean("foot", "deformation"):get(2, 2), s:mean("trunk", "deformation"):get(2, 2)
    end
    local foot, trunk = areas { 1, 0 }
    assert.is_true(math.abs(foot - 1) < 1e-6 and math.abs(trunk - 1) < 1e-6)
    foot, trunk = areas { 0, 1 }
    assert.is_true(foot < 0.98 and foot < trunk - 0.01)
    says(sentence(function() w:rollout { steps = 1 } end), "give robot:with { actuation_weight = a tensor {32, 2} }")
    -- what is no stress has a signal, but no column
    local push = { particles = "foot", signals = 3, force = function(_, _, x) return x * 0 end }
    r = robot { actuators = { push, cq.Actuator.isotropic { count = 2, max = 2 }, push } }
    w = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 4, precision = "float64", r:at { 0.4, 0.4 } }
    local again, other = areas { 1, 1, 1, 0, 1, 1, 1, 1 }
    assert.same({ foot, trunk }, { again, other })
    says(sentence(function() return r:with { actuation_weight = T.zeros { 32, 8 } } end),
      "must have the shape {32, 2} or {batch, 32, 2}, got {32, 8}")
    r = robot { actuators = push }
    says(sentence(function() return r:with { actuation_weight = T.zeros { 32, 3 } } end),
      "the robot has no actuators that are stresses")
  end)

  it("are refused when they are not", function()
    says(sentence(cq.Actuator.pressure, { groups = { "a" } }), "give either axis")
    says(sentence(cq.Actuator.pressure, { groups = { "a" }, axis = "y", direction = { 1, 0 } }), "not both")
    says(sentence(cq.Actuator.pressure, { groups = { "a" }, axis = "w" }), "axis must be one of")
    says(sentence(cq.Actuator.isotropic, {}), "give either groups or count")
    says(sentence(cq.Actuator.pressure, { groups = { "a" }, axis = "y", max = 0 }),
      "max must be a finite number above 0")
    local function refused(actuator) return sentence(robot, { actuators = actuator }) end
    says(refused(cq.Actuator.pressure { groups = { "fot" }, axis = "y" }), "no group \"fot\" (did you mean foot?)")
    says(refused(cq.Actuator.pressure { groups = { "foot" }, axis = "z" }), "axis must be \"x\" or \"y\" in 2D")
    says(refused(cq.Actuator.pressure { groups = { "foot" }, direction = { 1, 0, 0 } }),
      "direction must have 2 components")
    says(refused(cq.Actuator.pressure { groups = { "foot" }, direction = { { 1, 2 }, { 3, 4 } } }), "must be symmetric")
    for direction, told in pairs { [{ { 1, 0, 0 }, { 0, 1, 0 } }] = "2 rows of 2 numbers, got 3 numbers in row 1",
      [{ { 0, 0 }, { 0, 0 } }] = "direction must not be a matrix of zeros" } do
      says(refused(cq.Actuator.pressure { groups = { "foot" }, direction = direction }), told)
    end
    says(refused { 3 }, "got 3 at position 1")
    says(refused { { force = function() end, signals = 1 } }, "has no particles")
    says(refused { { force = function() end, particles = "foot" } },
      "signals of force actuator 1 must be a whole number")
    says(refused { { force = function() end, particles = "foot", signals = 1e9 } },
      "and at most 1000000, got 1000000000")
    says(refused { { force = function() end, particles = { 99 }, signals = 0 } },
      "particles are whole numbers from 1 to 32")
    for path, name in pairs { [{ "foot", "trunk", back = "foot" }] = "back", [{ "foot", [0] = "trunk" }] = "0" } do
      says(sentence(cq.Actuator.cable, { path = path, stiffness = 1 }), "cq.Actuator.cable: path: takes a list")
      says(sentence(cq.Actuator.cable, { path = path, stiffness = 1 }), name)
    end
  end)
end)

describe("a variant of a robot", function()
  local values = require "cq.robot.values"
  local r = robot()
  local function of(fields, name) return values.spread(r:with(fields), name) end

  it("spreads numbers, groups, particles and scenes", function()
    assert.is_true(of({ young = 3 }, "young"):equal(T.full({ 32 }, 3)))
    assert.is_true(of({ young = T.tensor { 3 } }, "young"):equal(T.full({ 32 }, 3)))
    local by_group = of({ young = { foot = 4 } }, "young")
    assert.equal(4 * 16 + 10 * 16, by_group:sum():item())
    assert.equal(4, by_group:get(r:group("foot"):particles()[1]))
    assert.same({ 5, 32 }, of({ density = T.ones { 5, 1 } }, "density"):shape())
    assert.same({ 5, 32 }, of({ density = { trunk = T.ones { 5, 1 } } }, "density"):shape())
    assert.same({ 32, 2 }, of({ velocity = { 1, 0 } }, "velocity"):shape())
    assert.same({ 3, 32, 2 }, of({ velocity = T.ones { 3, 1, 2 } }, "velocity"):shape())
    local v = of({ velocity = { trunk = { 1, 2 } } }, "velocity")
    assert.is_true(v:sum(1):equal(T.tensor { 16, 32 }))
    assert.same({ 32, 2, 2 }, of({ deformation = T.eye(2) }, "deformation"):shape())
    assert.is_nil(of({ young = 1 }, "poisson"))
  end)

  it("keeps what an earlier with has set", function()
    local twice = r:with { young = 3 }:with { density = 4 }
    assert.equal(3, values.spread(twice, "young"):get(1))
    assert.equal(4, values.spread(twice, "density"):get(1))
    assert.is_nil(r.values)
  end)

  it("shows the values that hold, and takes them further", function()
    local double = r:with { young = r.young * 2, density = { foot = 5 } }
    local young, density = double:with({ young = double.young * 2 }).young, double.density
    assert.is_true(young:equal(4 * r.young) and r.young:get(1) == 10)
    for p = 1, 32 do assert.equal(p <= 16 and 5 or r.density:get(p), density:get(p)) end
    local long = r:stretched { axis = "x", factor = 2 }:at { 1, 2 }
    local column = r.position:slice(1, 1, 2)
    assert.is_true(long.position:slice(1, 1, 2):close(2 * column + 1, 1e-12))
    assert.is_true(long.volume:close(2 * r.volume, 1e-12))
    assert.is_true(long:with({ position = long.position - 1 }).position:close(long.position - 1, 1e-12))
    local placed = cq.World { cells = { 64, 64 }, dx = 1 / 16, dt = 1e-3, long:with { young = 7 } }.robot
    assert.is_true(placed.young:equal(T.full({ 32 }, 7)) and placed.position:close(long.position, 1e-12))
    -- a group that keeps the robot's own values keeps those of cq.Robot
    assert.equal(10, double:with({ young = { foot = 1 } }).young:get(32))
    local grad = cq.grad(function(p)
      local one = r:with { young = p }
      return one:with({ young = one.young:square() }).young:sum()
    end)(cq.param(3))
    assert.near(32 * 2 * 3, grad:item(), 1e-9)
    assert.same({ 5, 32 }, r:with({ density = T.ones { 5, 1 } }).density:shape())
  end)

  it("refuses what cannot be", function()
    local function refused(fields) return sentence(function() return r:with(fields) end) end
    says(refused { yong = 1 }, "unknown field yong (did you mean young?)")
    says(refused { young = -1 }, "young must be at least 0 everywhere, the least is -1")
    says(refused { actuator_weights = T.ones { 32, 1 } },
      "unknown field actuator_weights (its name is actuation_weight here)")
    says(refused { poisson = 0.5 }, "poisson must be below 0.5 everywhere")
    says(refused { poisson = -1 }, "poisson must be above -1 everywhere")
    says(refused { density = T.tensor { 1, -2 }:reshape { 2, 1 } },
      "density must be above 0 everywhere, the least is -2")
    says(refused { young = T.ones { 7 } }, "young must have the shape one number or {32} or {batch, 32}, got {7}")
    says(refused { velocity = { 1, 0, 0 } }, "velocity must have the shape {2} or {32, 2} or {batch, 32, 2}, got {3}")
    says(refused { position = { 1, 0 } }, "position must have the shape {32, 2}")
    says(refused { young = { foot = 1, nose = 2 } }, "no group \"nose\"")
    says(refused { young = 0 / 0 }, "young must be finite everywhere")
    says(refused { actuation_weight = T.ones { 32, 1 } }, "the robot has no actuators")
    local overlapping = robot { groups = { all = { "foot", "trunk" } } }
    says(sentence(function() overlapping:with { young = { all = 1, foot = 2 } } end),
      "is in the groups \"all\" and \"foot\"")
  end)
end)

-- a foot that is given by shear and bulk modulus, and a trunk by young and poisson
local function mixed()
  return robot { material = {
    foot = cq.Material.neo_hookean { shear = 4, bulk = 8 }, trunk = cq.Material.corotated { young = 8, poisson = 0.2,
      density = 1.5, incompressible = 2 },
  } }
end

describe("materials of several kinds in a robot", function()
  local values = require "cq.robot.values"
  local r = mixed()
  local foot, trunk = r:group("foot"), r:group("trunk")

  it("are told with the constants that they were given", function()
    assert.equal("cq.Material.neo_hookean { shear 4, bulk 8, density 1 }",
      tostring(cq.Material.neo_hookean { shear = 4, bulk = 8 }))
    assert.equal("cq.Material.corotated { young 8, poisson 0.2, density 2, incompressible 4 }",
      tostring(cq.Material.corotated { young = 8, poisson = 0.2, density = 2, incompressible = 4 }))
  end)

  it("have an array of each constant, with no number where it means nothing", function()
    for p = 1, 32 do
      local of_foot = p <= 16
      assert.equal(of_foot, r.shear:get(p) == 4 and r.bulk:get(p) == 8)
      assert.equal(of_foot, r.young:get(p) ~= r.young:get(p) and r.poisson:get(p) ~= r.poisson:get(p))
    end
    assert.equal(8, r.young:get(32))
    local one = "robot: no material of robot has shear; they are neo_hookean with young and poisson"
    assert.equal(one, sentence(function() return robot().shear end))
    assert.is_nil(robot().nothing_like_it)
  end)

  it("take values for those of their particles alone", function()
    local function spread(fields, name) return values.spread(r:with(fields), name) end
    assert.equal(9, spread({ shear = 9 }, "shear"):get(1))
    for _, shear in ipairs { 9, T.full({ 16 }, 9), T.full({ 32 }, 9), T.full({ 2, 1 }, 9) } do
      local given = spread({ shear = shear }, "shear")
      local first, last = given:gather({ 1, 16 }, -1), given:gather({ 17, 32 }, -1)
      assert.is_true(first:min():item() == 9 and first:max():item() == 9)
      assert.is_true(last:min():item() ~= last:min():item() and not last:finite(), "another material has no shear")
    end
    local total = cq.grad(function(p) return r:with({ shear = p }).shear:gather({ 1, 2, 20 }, 1):slice(1, 2):sum() end)
    assert.equal(2, total(cq.param(9)):item())
    local by_group = spread({ shear = { foot = 5 } }, "shear")
    assert.equal(5, by_group:get(16))
    assert.is_true(by_group:get(17) ~= by_group:get(17))
    local own = T.arange(1, 16)
    assert.is_true(spread({ young = own }, "young"):gather(r:group("trunk"):particles()):equal(own))
    assert.same({ 3, 32 }, spread({ young = T.ones { 3, 16 } }, "young"):shape())
    -- what stands where nobody reads may be anything
    assert.equal(16, spread({ young = r.young * 2 }, "young"):get(32))
    assert.equal(7, r:with({ shear = 7 }):with({ young = { trunk = 3 } }).values.shear.tensor:item())
  end)

  it("refuse values of constants that they lack", function()
    local function refused(body, fields) return sentence(function() return body:with(fields) end) end
    says(refused(robot(), { bulk = 3 }),
      "robot:with: no material of robot has bulk; they are neo_hookean with young and poisson")
    assert.equal("robot:with: young.foot: the material of this group has no young; the robot's are neo_hookean with shear and bulk; "
      .. "corotated with young and poisson", refused(r, { young = { foot = 3 } }))
    says(refused(r, { young = T.ones { 7 } }),
      "young must have the shape one number or {32} or {batch, 32} or {16} or {batch, 16}, got {7}")
    says(refused(r, { young = -T.ones { 16 } }), "young must be at least 0 everywhere, the least is -1")
    says(refused(r, { young = r.shear }), "young must be finite everywhere")
    local w = scene.world(r)
    local function trained(trainable)
      return sentence(cq.Experiment, { world = w, steps = 1, objective = print, trainable = trainable })
    end
    says(trained { young = { per = "particle", min = 9 } }, "trainable.young: element 1 is 8, outside its bounds")
    w = scene.world(robot { material = hard })
    says(trained { shear = {} }, "cq.Experiment: trainable.shear: no material of robot has shear; they are linear with young and poisson")
  end)

  it("train what they have", function()
    local w = scene.world(r)
    local function params(trainable)
      return cq.Experiment {
        world = w, steps = 2, objective = function(s) return s:center("trunk"):sum() end,
        optimizer = cq.Optimizer.adam { rate = 0.1 },
        trainable = trainable,
      }
    end
    local run = params { young = { per = "group" }, shear = { per = "particle" }, bulk = {},
      poisson = { per = "particle", init = 0.25 } }
    local p = run.params.robot
    assert.is_nil(p.young.foot)
    assert.equal(8, p.young.trunk:item())
    assert.same({ 16 }, p.shear:shape())
    assert.same({ 16 }, p.poisson:shape())
    assert.equal(8, p.bulk:item())
    run:optimize { iterations = 2, folder = scratch.open() }
    scratch.close()
    assert.is_true(p.shear:finite() and p.young.trunk:item() ~= 8)
  end)

  it("move as those that are given by other constants", function()
    local function fall(foot_material)
      local w = scene.world(robot { material = { foot = foot_material, default = soft } })
      return w:rollout({ steps = 20 }).state:positions()
    end
    local E, nu = 10, 0.3
    local by_moduli = cq.Material.neo_hookean { shear = E / (2 * (1 + nu)), bulk = E / (3 * (1 - 2 * nu)),
      incompressible = 2 }
    local by_young = fall(cq.Material.neo_hookean { young = E, poisson = nu, incompressible = 2 })
    assert.is_true(fall(by_moduli):close(by_young, 1e-12))
    assert.is_false(fall(cq.Material.neo_hookean { shear = 2, bulk = 8 }):close(by_young, 1e-4))
    assert.is_true(foot.particle_count == 16 and trunk.particle_count == 16)
  end)

  it("stand in one world with those of other robots", function()
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 4, precision = "float64",
      r:at { 0.2, 0.4 }, robot():at { 0.6, 0.4 } }
    local function shapes_of(a, b) return world:rollout({ robot = { a, b }, steps = 10 }).state:deformations() end
    local stretched = { deformation = T.eye(2) * 1.1 }
    local a, b = world.robots[1]:with(stretched), world.robots[2]:with(stretched)
    local before = shapes_of(a, b)
    assert.is_true(shapes_of(a:with { shear = 4 }, b:with { young = 10 }):equal(before))
    assert.is_false(shapes_of(a:with { shear = 6 }, b):close(before, 1e-3))
    assert.is_false(shapes_of(a, b:with { poisson = 0.1 }):close(before, 1e-3))
    -- and what an earlier rollout has set is forgotten
    assert.is_true(shapes_of(a, b):equal(before))
  end)

  it("do what robots do that were made of the values", function()
    local w = scene.world(r)
    local set = w:rollout({ robot = w.robot:with { young = { trunk = 6 }, shear = T.full({ 16 }, 3) },
      steps = 20 }).state:positions()
    local made = scene.world(robot { material = {
      foot = cq.Material.neo_hookean { shear = 3, bulk = 8 }, trunk = cq.Material.corotated { young = 6, poisson = 0.2,
        density = 1.5, incompressible = 2 },
    } })
    assert.is_true(made:rollout({ steps = 20 }).state:positions():equal(set))
    assert.is_false(w:rollout({ steps = 20 }).state:positions():equal(set))
  end)
end)

describe("mistakes in a robot", function()
  it("are told at the user's line", function()
    says(sentence(robot, { material = 3 }), "material must be")
    says(sentence(robot, { material = { foot = soft } }), "no material for 16 particles")
    says(sentence(robot, { material = { foot = soft, noze = soft } }), "no group \"noze\"")
    says(sentence(robot, { shape = {} }), "shape must be")
    says(sentence(robot, { shape = { block("foot", 0), block("foot", 0.3) }, groups = { foot = { 1 } } }),
      "two groups with the name \"foot\"")
    says(sentence(robot, { groups = { none = function() return false end } }), "group \"none\" has no particles")
    says(sentence(robot, { groups = { bad = { 0 } } }),
      "particles are whole numbers from 1 to 32 or group names, got 0")
    says(sentence(robot, { pins = "noze" }), "no group \"noze\"")
    says(sentence(robot, { markers = 100 }), "markers is 100, the robot has only 32 particles")
    says(sentence(cq.Material.neo_hookean, { young = 1, poisson = 0.5 }),
      "poisson must be a finite number above -1 and below 0.5, got 0.5")
    says(sentence(cq.Material.linear, { young = 1, poisson = 0.2, density = -1 }),
      "density must be a finite number above 0, got -1")
    says(sentence(cq.Material.corotated, { young = 1, poisson = 0.2, incompressible = 3 }),
      "incompressible must be one of 0, 2, 4, 6, 8, got 3")
    assert.equal(3, scene.robot { dim = 3 }.dim)
  end)

  it("in the constants of a material say which go together", function()
    local pairs_of = "cq.Material.neo_hookean: give young and poisson, or shear and bulk; got "
    assert.equal(pairs_of .. "none of them", sentence(cq.Material.neo_hookean, {}))
    assert.equal(pairs_of .. "young", sentence(cq.Material.neo_hookean, { young = 3 }))
    assert.equal(pairs_of .. "young and shear", sentence(cq.Material.neo_hookean, { young = 3, shear = 2 }))
    assert.equal(pairs_of .. "young, poisson and shear",
      sentence(cq.Material.neo_hookean, { young = 3, poisson = 0.1, shear = 2 }))
    says(sentence(cq.Material.linear, { shear = -1, bulk = 2 }), "shear must be a finite number at least 0, got -1")
    says(sentence(cq.Material.linear, { K = 1, shear = 2 }), "unknown field K (its name is bulk here)")
  end)

  it("with the names of other simulators are told those of this one", function()
    says(sentence(cq.Material.neo_hookean, { E = 1, poisson = 0.3 }),
      "cq.Material.neo_hookean: unknown field E (its name is young here)")
    says(sentence(cq.Material.linear, { young = 1, nu = 0.3 }), "unknown field nu (its name is poisson here)")
    local both = sentence(cq.Material.corotated, { mu = 4, lambda = 6 })
    says(both, "(Lame's constants are young = mu (3 lambda + 2 mu) / (lambda + mu) and poisson = lambda / (2 (lambda + mu)): young = 10.4, poisson = 0.3)")
    says(sentence(cq.Material.corotated, { mu = 4, poisson = 0.3 }),
      "unknown field mu (Lame's constants are young = mu")
    says(sentence(function() robot():with { E = 3 } end), "robot:with: unknown field E (its name is young here)")
    says(sentence(cq.Experiment, {
      world = scene.world(scene.robot()), steps = 1, objective = print, trainable = { nu = {} },
    }), 'cq.Experiment: trainable has no "nu" (its name is poisson here)')
  end)
end)
