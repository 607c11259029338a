-- sum: several controllers together, and a controller beside the pulses of a design: signals, gradients, files, plans.
local cq = require "cq"
local block_design = require "tests.block_design"
local differences = require "tests.differences"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"

local sentence, says = mistake.of, mistake.says

local function centroid() return cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true } end

local function rhythm_and_feedback(scale)
  return cq.Controller.sum { rhythm = cq.Controller.sines { count = 2, frequency = 8, seed = 1, deviation = 0.5 },
    feedback = cq.Controller.linear { scale = scale, seed = 2 } }
end

describe("a sum of controllers", function()
  local robot = scene.robot()
  local world = scene.world(robot)

  it("adds up the signals of its parts", function()
    local sum = rhythm_and_feedback(1)
    local roll = world:rollout { steps = 20, controller = sum, observer = centroid() }
    assert.same({ "b", "w" }, (function(t) local out = {} for k in pairs(t) do out[#out + 1] = k end table.sort(out)
      return out end)(sum.params.rhythm))
    local z = centroid():observe(roll:start())
    local expected = (sum.parts.rhythm:act(nil, nil, 0, 1) + sum.parts.feedback:act(z)):clamp(-1, 1)
    for k = 1, expected.count do assert.equal(expected:get(k), roll.signals[1]:get(k)) end
  end)

  it("keeps the parameters of parts that are given none", function()
    local sum = rhythm_and_feedback(1)
    sum:prepare(world, centroid())
    local other = sum:with { feedback = cq.Controller.linear { seed = 5 }:prepare(world, centroid()) }
    assert.is_true(rawequal(sum.params.rhythm.w, other.params.rhythm.w))
    assert.is_true(rawequal(other.parts.feedback.params.w, other.params.feedback.w))
    assert.is_false(rawequal(sum.parts.feedback, other.parts.feedback))
  end)

  it("is the other part alone where one begins with scale = 0, to the bit", function()
    local sum = rhythm_and_feedback(0)
    local ends = {}
    for k, controller in ipairs { sum, sum.parts.rhythm } do
      ends[k] = world:rollout { steps = 30, controller = controller, observer = centroid() }.state:center(robot)
    end
    for d = 1, 2 do assert.equal(ends[2]:get(d), ends[1]:get(d)) end
  end)

  it("hands each part what it remembers", function()
    local function counting(by)
      return { start = function() return cq.zeros { 1 } end,
        act = function(_, _, hidden) return cq.full({ 2 }, by) * hidden, hidden + 1 end }
    end
    local roll = world:rollout { steps = 4, controller = cq.Controller.sum { a = counting(0.1), b = counting(0.01),
      c = function() return cq.full({ 2 }, 0.75) end } }
    -- and what is beyond 1 is cut off
    for i = 1, 4 do assert.near(math.min(0.75 + 0.11 * (i - 1), 1), roll.signals[i]:get(2), 1e-14) end
  end)

  it("has the gradients of differences, in a batch too", function()
    local sum = rhythm_and_feedback(0.3)
    sum:prepare(world, centroid())
    for batch = 1, 2 do
      local moving = batch == 2 and robot:with {
        velocity = cq.concat({ cq.zeros { 1, 32, 2 }, cq.full({ 1, 32, 2 }, 0.05) }, 1) } or nil
      local function loss(w1, w)
        local controller = sum:with { rhythm = { w = w, b = sum.params.rhythm.b },
          feedback = { w1 = w1, b1 = sum.params.feedback.b1 } }
        local roll = world:rollout { steps = 40, controller = controller, observer = centroid(), robot = moving,
          batch = batch == 2 and 2 or nil }
        return roll.state:center(robot):sum()
      end
      local inputs = { sum.params.feedback.w1:detach(), sum.params.rhythm.w:detach() }
      for _, one in ipairs(differences.gradients(loss, inputs)) do
        local expected = differences.along(loss, inputs, one.directions, 1e-5)
        assert.near(expected, one.along, 1e-7 * math.max(1, math.abs(expected)))
      end
    end
  end)

  it("is told what is wrong", function()
    says(sentence(function() cq.Controller.sum {} end), "needs controllers by names")
    says(sentence(function() cq.Controller.sum { cq.Controller.linear {} } end), "a name must be a word")
    says(sentence(function() cq.Controller.sum { a = 3 } end), "cq.Controller.sum: a: controller must be one of")
    says(sentence(function() rhythm_and_feedback(1):with { other = {} } end), "no part \"other\"; they are feedback, rhythm")
    says(sentence(function() rhythm_and_feedback(1):with(3) end), "needs a table of tensors")
    local named = cq.Controller.sum { default = cq.Controller.sines {}, ["end"] = cq.Controller.sines {} }
    world:rollout { steps = 2, controller = named }
    local path = os.tmpname()
    says(sentence(function() named:export(path .. ".h") end), "called default, which is a word of C")
    local one = cq.Controller.sines {}
    local nested = cq.Controller.sum { b_a = one, b = cq.Controller.sum { a = one, c = one } }
    world:rollout { steps = 2, controller = nested }
    says(sentence(function() nested:export(path .. ".h") end), "two parts of the sum are called b_a in C")
    named:export(path .. ".lua")
    assert.equal(2, #assert(loadfile(path .. ".lua"))().signals)
    for _, ending in ipairs { "", ".lua" } do os.remove(path .. ending) end
    says(scene.failure(world, { steps = 2, controller = rhythm_and_feedback(1) }), "needs an observer")
    says(scene.failure(world, { steps = 2, controller = cq.Controller.sum { a = function() return cq.zeros { 3 } end,
      b = function() return cq.zeros { 2 } end } }), "{3}")
  end)
end)

describe("a controller beside a design", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment(changes)
    local fields = {
      observer = cq.Observer.centroid { groups = { "tip" }, position = false, velocity = true },
      controller = cq.Controller.linear { scale = 0, seed = 3 }, optimizer = cq.Optimizer.adam { rate = 0.02 },
    }
    for name, value in pairs(changes or {}) do fields[name] = value end
    return block_design.experiment(fields)
  end

  local function params_of(run, design, feedback, seed)
    return { design = block_design.variables(design, seed), controller = { feedback = feedback
      or run.params.controller.feedback } }
  end

  it("changes no bit as long as it gives nothing", function()
    local run, design = experiment()
    local alone = experiment { controller = false, observer = false }
    local p = block_design.variables(design)
    assert.equal(alone:evaluate { params = { design = p } }.loss, run:evaluate { params = params_of(run, design) }.loss)
  end)

  it("has the gradients of differences, for pulses and feedback", function()
    local run, design = experiment()
    local p = block_design.variables(design)
    local n = run.params.controller.feedback.w1
    local function loss(w1, sign)
      local all = { design = { density = p.density, layout = p.layout, sign = sign, magnitude = p.magnitude },
        controller = { feedback = { w1 = w1, b1 = run.params.controller.feedback.b1 } } }
      return run:loss(run:rollout(all))
    end
    local w1 = (cq.range(1, n.count):reshape(n:shape()) * 2.1):sin() * 0.5
    local inputs = { w1, p.sign:detach() }
    for _, one in ipairs(differences.gradients(loss, inputs)) do
      local expected = differences.along(loss, inputs, one.directions, 1e-5)
      assert(math.abs(expected) > 1e-6)
      assert.near(1, one.along / expected, 1e-5)
    end
  end)

  it("is trained by a stage of its own, with the body as it is", function()
    local run = experiment()
    local first
    run:optimize { plan = cq.Plan {
      name = "both", optimizer = cq.Optimizer.adam { rate = 0.02 },
      { name = "soft", iterations = 3, on_end = function(now)
        first = now.params.controller.feedback.w1:norm():item()
      end },
      { name = "feedback", iterations = 4, body = "extracted", train = { "controller" } },
    }, folder = folder }
    assert.equal(0, first)
    assert(run.params.controller.feedback.w1:norm():item() > 0)
    assert(run.best.loss <= run:evaluate { params = { design = run.best.params.design } }.loss)
  end)

  it("is not what a body gains without signals", function()
    local run, design = experiment()
    local passive = require "cq.experiment.passive"
    local w1 = run.params.controller.feedback.w1
    local strong = params_of(run, design, { w1 = w1 + 3, b1 = run.params.controller.feedback.b1 + 1 })
    assert.equal(passive.loss(run, params_of(run, design)):item(), passive.loss(run, strong):item())
  end)

  it("may be another in each scene", function()
    local run, design = experiment { controller = false, observer = false, scenes = { count = 2,
      each = function(k) return { controller = k == 2 and function() return cq.full({ 3 }, 0.5) end or nil } end } }
    local p = { design = block_design.variables(design) }
    local alone = experiment { controller = false, observer = false }
    assert.equal(alone:evaluate { params = p }.loss, run:scene(1):evaluate { params = p }.loss)
    assert(math.abs(run:scene(2):evaluate { params = p }.loss - run:scene(1):evaluate { params = p }.loss) > 1e-6)
  end)

  it("comes back from its folder, goes to C and goes on", function()
    local run = experiment()
    run:optimize { plan = cq.Plan { name = "both", optimizer = cq.Optimizer.adam { rate = 0.02 },
      { name = "soft", iterations = 3 },
      { name = "feedback", iterations = 3, body = "extracted" } }, folder = folder }
    local saved = cq.load(folder)
    local ends = saved:rollout { steps = 30 }
    local own = run:evaluate { params = run.best.params }
    local x = own.rollout.state:center(run.extracted.robot)[1]:item()
    assert.near(x, ends.state:center(saved.robot)[1]:item(), 1e-12)
    says(tostring(saved), "sum of feedback")
    saved.controller:export(folder .. "/gait.h")
    process.write(folder .. "/main.c", [[
#include "gait.h"
#include <stdio.h>
int main(void) {
  gait_input in = { { { { 300.0f, -200.0f } } }, { 0.004 } };
  gait_state state;
  float out[3];
  gait_start(&state);
  gait_step(&in, &state, out);
  printf("%.7f %.7f %.7f\n", (double)out[0], (double)out[1], (double)out[2]);
  return 0;
}
]])
    local pipe = io.popen(("cd %s && gcc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror main.c -o main -lm 2>&1 "
      .. "&& ./main"):format(folder))
    local said = pipe:read "*a"
    pipe:close()
    local sum = saved.controller
    local expected = sum.parts.pulses:act(nil, nil, 0.004, 5) + sum.parts.feedback:act(cq.tensor { 300, -200 })
    assert(expected:abs():max():item() > 1.001)           -- and is cut off
    expected = expected:clamp(-1, 1)
    local k = 0
    for word in said:gmatch "[-%d.]+" do
      k = k + 1
      assert.near(expected:get(k), tonumber(word), 1e-6)
    end
    assert(k == 3, said)
    saved.controller:export(folder .. "/gait.lua")
    local module = setfenv(assert(loadfile(folder .. "/gait.lua")), { math = math, ipairs = ipairs, pairs = pairs })()
    local state = module.start()
    local u = module.step({ feedback = { velocity = { 300, -200 } }, pulses = { time = 0.004 } }, state)
    for s = 1, 3 do assert.near(expected:get(s), u[s], 1e-12) end
    -- a warm start in the same experiment, and one with another feedback
    local again = experiment()
    again:load(folder)
    assert.near(run.best.params.controller.feedback.w1:get(1, 1), again.params.controller.feedback.w1:get(1, 1), 0)
    local other = experiment { controller = cq.Controller.mlp { hidden = { 4 } } }
    says(sentence(function() other:load(folder) end), "sum of feedback (linear", "sum of feedback (mlp")
  end)
end)
