-- rollout_mistakes: what a rollout refuses, or stops at, and the sentence that tells it.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

describe("mistakes in a rollout", function()
  local world
  setup(function() world = scene.world(scene.robot()) end)

  it("in a function of the user's say where and when", function()
    local function at_step(i) return function(s)
      if s.step == i then local nothing = nil; return nothing.x end
      return s:center "foot"
    end end
    local message = sentence(function()
      world:rollout { steps = 5, observer = at_step(3), controller = function() return { 0, 0 } end }
    end)
    assert(message:find("in the observer, control step 4 of 5", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, record = at_step(2) } end)
    assert(message:find("in record, control step 2 of 5", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, controller = function() return { 0, 0 / 0 } end } end)
    assert(message:find("signal 2 is nan", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, controller = function() return { 0, 0, 0 } end } end)
    assert(message:find("must give signals of shape {2}", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, running = function(s) return s:center "foot" end } end)
    assert(message:find("running must give one number", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, running = function() world:rollout { steps = 1 } end } end)
    assert(message:find("cannot be called from inside", 1, true), message)
  end)

  it("in its fields are told at the user's line", function()
    local message = sentence(function() world:rollout { step = 5 } end)
    assert(message:find("unknown field step (did you mean steps?)", 1, true), message)
    message = sentence(function()
      world:rollout { steps = 5, controller = cq.Controller.open_loop(cq.zeros { 4, 2 }) }
    end)
    assert(message:find("has signals for 4 control steps, the rollout makes 5", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, gravity = { 0, -9.8, 0 } } end)
    assert(message:find("gravity must have the shape {2}, got {3}", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, batch = 2, gravity = cq.zeros { 3, 2 } } end)
    assert(message:find("the shape {2}, or {5, 2} of control steps, with the batch of 2 before it if it differs between "
      .. "scenes, got {3, 2}", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, controller = cq.Controller.mlp {} } end)
    assert(message:find("needs an observer", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, friction = { 1, 2, 3 } } end)
    assert(message:find("friction must have the shape one number or {1}", 1, true), message)
    local sticky = scene.world(scene.robot(), { walls = cq.Boundary.box { kind = "sticky", separable = true } })
    message = sentence(function() sticky:rollout { steps = 5, friction = 0.1 } end)
    assert(message:find("friction is given, but no wall is of kind \"friction\": they are sticky", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, robot = scene.robot() } end)
    assert(message:find("this robot is not in the world", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, robot = world.robot:with { young = 1e5 } } end)
    assert(message:find("the Courant number of the robot's values is", 1, true), message)
    message = sentence(function() world:rollout { steps = 5, memory = "lots" } end)
    assert(message:find("must be an amount such as", 1, true), message)
    message = sentence(function()
      world:rollout { steps = 5, batch = 2, robot = world.robot:with { young = T.ones { 3, world.particle_count } } }
    end)
    assert(message:find("is for 3 scenes, the batch has 2", 1, true), message)
  end)

  it("in a list of numbers name the field, or the function, that holds it", function()
    local list = { 1, "a" }
    for said, fields in pairs {
      ["world:rollout: gravity: entry 2"] = { gravity = list },
      ["world:rollout: friction: entry 2"] = { friction = list },
      ["world:rollout: wall_velocity: entry 2"] = { wall_velocity = list },
      ["the controller's signals: entry 2"] = { controller = function() return list end },
      ["record: entry 2"] = { record = function() return list end },
    } do
      fields.steps = 2
      local message = sentence(function() world:rollout(fields) end)
      assert(message:find(said .. ' must be a number, got "a"', 1, true), message)
    end
    local message = sentence(function() world.robot:with { young = list } end)
    assert(message:find("young: entry 2 must be", 1, true), message)
    local state = world:rollout({ steps = 1 }).state
    message = sentence(function() state:raster(nil, { size = { 2, 2 }, center = list }) end)
    assert(message:find("state:raster: center: entry 2 must be", 1, true), message)
  end)

  it("of a state that is gone", function()
    local old
    local roll = world:rollout { steps = 3, record = function(s)
      old = old or s
      return s:center "foot"
    end }
    local message = sentence(function() old:center "foot" end)
    assert(message:find("this state is of control step 1 and the rollout is at 3", 1, true), message)
    roll:release()
    message = sentence(function() roll.state:center "foot" end)
    assert(message:find("was released", 1, true), message)
    message = sentence(function() world:rollout { steps = 1 }.state:center "fot" end)
    assert(message:find("no group \"fot\" (did you mean foot?)", 1, true), message)
  end)

  it("that make the simulation fail name step, particle, group and advice", function()
    local message = sentence(function()
      world:rollout { steps = 300, robot = world.robot:with { velocity = { trunk = { 0, 12 } } } }
    end)
    assert(message:find "the simulation failed at control step %d+"
      and message:find "particle %d+ of robot, group \"%a+\"", message)
    assert(message:find("substeps", 1, true) or message:find("walls", 1, true), message)
    message = sentence(function()
      world:rollout { steps = 1, robot = world.robot:with { position = world.robot.position + 10 } }
    end)
    assert(message:find("robot starts outside the world: x of particle 1 of group \"foot\" at {10.41", 1, true),
      message)
    local open = scene.world(scene.robot(), { walls = {} })
    message = sentence(function() open:rollout { steps = 300 } end)
    assert(message:find "group \"foot\", left the world %(y = %-?[%d.]+, the world is 1 long there%); give the world walls", message)
    message = sentence(function()
      world:rollout { steps = 50, controller = function() return { -90, -90 } end }
    end)
    assert(message:find("turned inside out (det F = ", 1, true) and not message:find("viscosity", 1, true), message)
    local own = scene.world(scene.robot(), { formulation = "total_lagrangian" })
    message = sentence(function()
      own:rollout { steps = 50, controller = function() return { -90, -90 } end }
    end)
    assert(message:find("or a stiffer material; total Lagrangian steps damp nothing themselves: give the material a viscosity",
      1, true), message)
  end)

  it("in a deformation that is inside out, with its scene", function()
    local function deformed(value, steps)
      return sentence(function()
        world:rollout { steps = steps, batch = 2, robot = world.robot:with { deformation = value } }
      end)
    end
    local said = "world:rollout: deformation of particle 1 turns it inside out: its determinant is %s; it must be above 0"
    local two = T.stack({ T.eye(2), T.tensor { { 0, 1 }, { 2, 0 } } }, 1):unsqueeze(2)
    assert.equal(said:format(-1), deformed({ { -1, 0 }, { 0, 1 } }, 0))
    assert.equal(said:format(0), deformed({ { 0, 0 }, { 0, 0 } }, 0))
    assert.equal(said:format(-2), deformed(two, 0))
    says(deformed({ { -1, 0 }, { 0, 1 } }, 2), "turned inside out (det F = -1); its deformation at the start has such a")
    says(deformed(two, 2), "turned inside out (det F = -2); its deformation at the start has such a determinant, which")
  end)

  it("of a trainable that cannot reach the objective", function()
    local message = sentence(function()
      T.value_and_grad(function(p)
        assert(p.unused)
        return world:rollout { steps = 2, robot = world.robot:with { young = p.young } }.state:center("foot")[1]
      end) { young = T.param(10), unused = T.param(1) }
    end)
    assert(message:find("parameter unused does not reach the objective", 1, true), message)
  end)
end)

describe("an argument that is missing, or of another kind", function()
  -- each a sentence at the user's line, never an error from within the library
  local function refused(cases)
    for _, case in ipairs(cases) do says(sentence(case[1]), case[2]) end
  end

  it("is told of experiments and worlds", function()
    local world = scene.world(scene.robot())
    local run = cq.Experiment { world = world, steps = 2, objective = function(s) return s:center("foot")[2] end }
    refused {
      { function() run:loss() end, "run:loss: roll is missing, it must be a cq.Rollout" },
      { function() run:path() end, "run:path: name is missing" },
      { function() run:robot_with() end, "run:robot_with: params is missing" },
      { function() run:rollout() end, "run:rollout: params is missing" },
      { function() world:with_robots() end, "world:with_robots: robots is missing, it must be a cq.Robot, or a list" },
      { function() world:rollout({ steps = 0 }):export { path = "nowhere.csv" } end,
        "the rollout makes no control step, and a .csv has a row after each" },
      { function() world:rollout({ steps = 2, contact = true }):start():contact(1) end,
        "state:contact: no control step was made before the first state" },
    }
  end)

  it("is told of tensors, tapes and schedules", function()
    local t, pulses = T.ones { 2, 3 }, cq.Topology.pulses { duration = 1, interval = 0.1, control_dt = 0.05,
      width = 0.1, gain = 1 }
    refused {
      { function() t:expand(2) end, "expand: shape {2, 3} does not stretch to {2}" },
      { function() t:expand "x" end, "expand: a shape is a list of sizes" },
      { function() t:reshape { "x" } end, "reshape: size 1 of the shape must be a whole number" },
      { function() t:repeated(1e308) end, "are more than the 67108864 that are allowed" },
      { function() cq.tape.new():backward(1) end, "tape:backward: outputs must be a tensor, or a list" },
      { function() cq.tape.with(nil) end, "tape.with: f is missing, it must be a function" },
      { function() cq.tape.pause(nil) end, "tape.pause: f is missing" },
      { function() cq.tape.whole(nil) end, "tape.whole: f is missing" },
      { function() cq.Schedule.linear({ from = 1, to = 2 }):at(1) end, "schedule:at: count is missing" },
      { function() pulses:amplitudes({}, {}) end, "pulses:amplitudes: sign must be a tensor" },
      { function() pulses:rounded(1, 1) end, "pulses:rounded: sign must be a tensor" },
      { function() cq.Shape.disc({ radius = 1 }):contains(0 / 0, 0) end, "as { x, y }, got nan among them" },
    }
  end)

  it("is told of pictures", function()
    local canvas, world = cq.Picture.canvas { width = 64, height = 64 }, scene.world(scene.robot())
    local picture = cq.Picture.scene { domain = { 1, 1 }, dx = 0.1, rest = world.robot.position,
      volume = world.robot.volume, width = 64, height = 64 }
    refused {
      { function() canvas:clear() end, "canvas:clear: background is missing, it must be a colour" },
      { function() canvas:line() end, "canvas:line: points is missing" },
      { function() canvas:line({ { 1, 2 }, { 3, 4 } }) end, "canvas:line: width is missing" },
      { function() canvas:polygon({ { 1, 2 }, { 3, 4, 5, 6 } }, "#000000") end,
        "points must be a list of points { x, y }, got a list of 4 at position 2" },
      { function() canvas:polygon({ { 1, 2 }, { 3, 4 } }, "#00000z") end, "canvas:polygon: fill must be a colour" },
      { function() canvas:rectangle(1, 2) end, "canvas:rectangle: width is missing" },
      { function() canvas:disc() end, "canvas:disc: x is missing" },
      { function() canvas:text_width "x" end, "canvas:text_width: size is missing" },
      { function() canvas:paste() end, "canvas:paste: from is missing, it must be a cq.Canvas" },
      { function() picture:pass() end, "picture_scene:pass: centre is missing" },
      { function() picture:explain() end, "picture_scene:explain: canvas is missing" },
      { function() picture:explain(canvas) end, "picture_scene:explain: no frame was drawn yet" },
      { function() picture:include_in_scales() end, "picture_scene:include_in_scales: fields is missing" },
    }
  end)
end)
