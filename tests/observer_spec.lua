-- observer: what each tells of a state, in what order, alone and in a batch.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

-- what a controller is told at each control step, beside what the state says itself
local function told(observer, look, options)
  local world = scene.world(scene.robot())
  local seen, looked = {}, {}
  local fields = {
    steps = 3, observer = function(s)
      looked[#looked + 1] = look and look(s)
      return 0
    end,
    controller = function() return { 0.5, -0.2 } end, robot = world.robot:with { velocity = { 0.4, 0.1 } },
  }
  for key, value in pairs(options or {}) do fields[key] = value end
  world:rollout(fields)
  fields.observer, fields.controller = observer, function(observation)
    seen[#seen + 1] = observation
    return { 0.5, -0.2 }
  end
  world:rollout(fields)
  return seen, looked, world
end

describe("the centroid observer", function()
  it("gives positions, then velocities", function()
    local seen, looked = told(cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true }, function(s)
      return T.concat { s:center "foot", s:center "trunk", s:velocity "foot", s:velocity "trunk" }
    end)
    for i = 1, 3 do assert.is_true(seen[i]:equal(looked[i])) end
    assert.is_false(seen[1]:equal(seen[3]))
  end)

  it("gives acceleration as the change of velocity over a control step", function()
    local observer = cq.Observer.centroid { groups = "trunk", position = false, acceleration = true }
    local seen, looked, world = told(observer, function(s) return s:velocity "trunk" end)
    assert.is_true(seen[1]:equal(T.zeros { 2 }))
    for i = 2, 3 do assert.is_true(seen[i]:close((looked[i] - looked[i - 1]) / world.control_dt, 1e-14)) end
    assert.is_true(seen[2]:norm():item() > 0.1)
  end)

  it("has a row for each scene of a batch", function()
    local observer = cq.Observer.centroid { groups = { "foot" }, velocity = true }
    local function look(s) return T.concat({ s:center "foot", s:velocity "foot" }, -1) end
    local seen, looked = told(observer, look, { batch = 2, gravity = { { 0, -1 }, { 0, -4 } } })
    assert.same({ 2, 4 }, seen[1]:shape())
    for i = 1, 3 do assert.is_true(seen[i]:equal(looked[i])) end
    assert.is_false(seen[3][1]:equal(seen[3][2]))
  end)

  it("may end with a clock, as those of clusters and particles may", function()
    local function look(s)
      local phase = 2 * math.pi * 5 * s.time
      local waves = T.tensor { 2 * math.sin(phase), 2 * math.cos(phase) }
      return T.concat({ s:center "foot", s.batched and waves:expand { s.batch, 2 } or waves }, -1)
    end
    for _, batch in ipairs { false, 2 } do
      local seen, looked = told(cq.Observer.centroid { groups = "foot", clock = 5, clock_amplitude = 2 }, look,
        { batch = batch or nil })
      for i = 1, 3 do assert.is_true(seen[i]:equal(looked[i])) end
    end
    local clock = { 1, 20 }
    for family, fields in pairs { kmeans = { clusters = 2 }, particles = { group = "foot" },
      centroid = { groups = "foot", velocity = true } } do
      local without = told(cq.Observer[family](fields))[2]
      fields.clock = clock
      local seen, _, world = told(cq.Observer[family](fields))
      local ticks = seen[2]:slice(without.count + 1, without.count + 4)
      assert.equal(without.count + 4, seen[2].count)
      for k, f in ipairs(clock) do
        assert.near(math.sin(2 * math.pi * f * world.control_dt), ticks:get(2 * k - 1), 1e-12)
        assert.near(math.cos(2 * math.pi * f * world.control_dt), ticks:get(2 * k), 1e-12)
      end
    end
    says(sentence(cq.Observer.kmeans, { clusters = 2, clock_amplitude = 2 }),
      "cq.Observer.kmeans: clock_amplitude has no effect without clock")
  end)

  it("refuses what it cannot observe", function()
    says(sentence(cq.Observer.centroid, {}), "groups is missing")
    says(sentence(cq.Observer.centroid, { groups = "foot", position = false }), "observes nothing")
    says(sentence(told, cq.Observer.centroid { groups = { "fot" } }), "no group \"fot\" (did you mean foot?)")
  end)
end)

describe("the k-means observer", function()
  it("finds clusters of the particles at rest, the same ones each time", function()
    local observer = cq.Observer.kmeans { clusters = 4, velocity = true, seed = 2 }
    local seen, _, world = told(observer)
    assert.same({ 4 * 2 * 2 }, seen[1]:shape())
    local again = told(cq.Observer.kmeans { clusters = 4, velocity = true, seed = 2 })
    assert.is_true(seen[3]:equal(again[3]))
    -- all clusters together are the robot
    local groups = observer:groups_of(world)
    assert.equal(4, groups.count)
    assert.equal(32, groups.total)
    says(sentence(told, cq.Observer.kmeans { clusters = 33 }), "33 clusters are more than the 32 particles")
  end)

  it("finds them in one robot or group where others are in the world", function()
    local body, ball = scene.robot(), scene.robot()
    local world = cq.World { cells = { 36, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, body:at { 0.3, 0.2 },
      ball:at { 0.8, 0.2 } }
    local function seen_by(fields, where)
      fields.clusters = 4
      local groups, numbers = cq.Observer.kmeans(fields):groups_of(where or world), {}
      for k = 0, groups.total - 1 do numbers[k + 1] = groups.particles[k] end
      table.sort(numbers)
      return numbers
    end
    assert.equal(64, #seen_by {})
    local own = seen_by { group = ball }
    assert.same({ 32, 32, 63 }, { #own, own[1], own[#own] })
    -- the same clusters as in a world of its own
    local alone = cq.World { cells = { 36, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, body:at { 0.3, 0.2 } }
    local of_one, of_all = cq.Observer.kmeans { clusters = 4, group = body }, cq.Observer.kmeans { clusters = 4 }
    assert.is_true(of_one:observe(world:rollout({ steps = 0 }).state)
      :equal(of_all:observe(alone:rollout({ steps = 0 }).state)))
    -- groups that overlap, and a finer world
    local foot = ball:group "foot"
    assert.equal(foot.particle_count, #seen_by { group = { foot, foot } })
    local finer = world:refined(0.8)
    own = seen_by({ group = ball }, finer)
    assert.same({ finer.robots[2].particle_count, finer.robots[2].first }, { #own, own[1] })
    says(sentence(seen_by, { group = "fot" }), "cq.Observer.kmeans: no group \"fot\" (did you mean foot?)")
  end)

  it("serves another world as well", function()
    local observer = cq.Observer.kmeans { clusters = 3 }
    local a, b = told(observer), told(observer)
    assert.is_true(a[2]:equal(b[2]))
  end)
end)

describe("the particle observer", function()
  it("sees every particle", function()
    local seen, looked = told(cq.Observer.particles { group = { 3, 7 }, velocity = true }, function(s)
      return T.concat { s:gather({ 3, 7 }):flatten(), s:gather({ 3, 7 }, "velocity"):flatten() }
    end)
    for i = 1, 3 do assert.is_true(seen[i]:equal(looked[i])) end
    says(sentence(cq.Observer.particles, { group = "foot", position = false }), "observes nothing")
  end)
end)

describe("an observer of the user's", function()
  it("may be a table with a hidden value and a start", function()
    local Count = {}
    function Count.start() return { n = T.zeros {} } end
    function Count:observe(state, hidden) return hidden.n + state.step * 0, { n = hidden.n + self.by } end
    Count.by = 2
    local seen = told(Count)
    assert.same({ 0, 2, 4 }, { seen[1]:item(), seen[2]:item(), seen[3]:item() })
  end)

  it("is refused when it is none, or gives none", function()
    says(sentence(told, 3), "observer must be one of cq.Observer, a function of the state")
    says(sentence(told, function() return nil end),
      "the observer must give a tensor, got nil (in the observer, control step 1 of 3)")
  end)
end)

describe("readouts of a state", function()
  it("agree with the particles", function()
    local world = scene.world(scene.robot())
    local s = world:rollout { steps = 4, robot = world.robot:with { velocity = { 0.3, 0.1 } } }.state
    local x, v, F = s:positions(), s:velocities(), s:deformations()
    assert.same({ 32, 2 }, x:shape())
    assert.same({ 32, 2, 2 }, F:shape())
    local mass = world.robot.density * world.robot.volume
    local weights = (mass / mass:sum()):unsqueeze(2)
    assert.is_true(s:center(world.robot):close((x * weights):sum(1), 1e-12))
    assert.is_true(s:center(world.robot, { weight = "particle" }):close(x:mean(1), 1e-12))
    assert.is_true(s:velocity(world.robot):close((v * weights):sum(1), 1e-12))
    assert.is_true(s:mean_square_velocity(world.robot):close((v * v * weights):sum(), 1e-12))
    local centred = x - (x * weights):sum(1)
    assert.is_true(s:moment(world.robot):close((centred * weights):transpose():matmul(centred), 1e-9, 1e-14))
    assert.is_true(s:moment(world.robot, { about = "origin", weight = "particle" }):close(x:transpose():matmul(x) / 32,
      1e-12))
    assert.is_true(s:mean(world.robot, "deformation", { weight = "particle" }):close(F:mean(1), 1e-12))
    assert.is_true(s:gather({ 3, 1 }):equal(x:gather { 3, 1 }))
    assert.same({ 2, 2 }, s:center({ "foot", "trunk" }):shape())
    assert.is_true(s:center({ "foot", "trunk" })[2]:equal(s:center "trunk"))
    assert.is_true(s:center({ { "foot", "trunk" } })[1]:close(s:center(world.robot), 1e-14))
    assert.same({ 2 }, s:mean_square_velocity({ "foot", "trunk" }):shape())
    assert.equal(4, s.step)
    assert.is_true(math.abs(s.time - 4 * 6e-3) < 1e-15)
  end)

  it("refuse what is no selection", function()
    local s = scene.world(scene.robot()):rollout { steps = 1 }.state
    says(sentence(function() s:center(3) end),
      "takes a group name, a group, a robot, a list of names, or a list of particle numbers, got 3")
    for _, list in ipairs { { 1, "foot" }, { "foot", 1 } } do
      says(sentence(function() s:center(list) end), "put numbers and names of one row into a list of their own")
    end
    assert.is_true(s:center({ { 1, "foot" } }):equal(s:center { { "foot", 1 } }))
    says(sentence(function() s:center { 33 } end), "particles are whole numbers from 1 to 32, got 33")
    says(sentence(function() s:gather("foot", "speeds") end), "field must be one of")
    says(sentence(function() s:center("foot", { weight = "area" }) end), "weight must be one of")
  end)
end)
