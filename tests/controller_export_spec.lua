-- controller_export: controllers as C99 and as plain Lua: what a strict compiler says of them, that they answer as the
-- controllers do, how large they are, and that a robot which they drive goes the same way.
local ffi = require "ffi"
local cq = require "cq"
local message = require "cq.base.message"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scene = require "tests.scene"

local sentence, says = mistake.of, mistake.says
local folder

setup(function() folder = process.folder() end)
teardown(function() process.remove(folder) end)

local robot = scene.robot()
local world = scene.world(robot)
local signals = 2

-- a controller after its first rollout; its parameters are moved away from those that are drawn
local function used(controller, observer)
  world:rollout { steps = 3, controller = controller, observer = observer }
  local random = cq.random { seed = 5 }
  local params = {}
  for name, value in pairs(controller.params) do
    params[name] = cq.param(value + random:normal(value:shape(), { deviation = 0.05 }), value.bounds)
  end
  return controller:with(params)
end

local function centroid(fields)
  fields.groups = { "foot", { "foot", "trunk" } }
  return cq.Observer.centroid(fields)
end

local cases = {
  mlp = { function() return cq.Controller.mlp { hidden = { 64, 64 } } end,
    centroid { position = true, velocity = true } },
  soft = { function() return cq.Controller.mlp { hidden = { 16, 9, 12 }, activation = "softplus" } end,
    centroid { velocity = true, acceleration = true }, centroid { velocity = true } },
  sigmoid = { function() return cq.Controller.mlp { hidden = { 12 }, activation = "sigmoid" } end,
    centroid { acceleration = true }, centroid { velocity = true } },
  learned = { function()
    return cq.Controller.mlp { hidden = { 9, 8 }, activation = "elu", output = "clip",
      mean = { 0.1, -0.2, 0, 3, 0, 0, 0, 0 }, deviation = { 0.5, 0.01, 2, 1, 1, 1, 1, 1e-9 } }
  end, centroid { velocity = true } },
  rhythm = { function() return cq.Controller.linear {} end,
    centroid { acceleration = true, clock = { 3, 5 }, clock_amplitude = 2 },
    centroid { velocity = true, clock = { 3, 5 }, clock_amplitude = 2 } },
  small = { function() return cq.Controller.linear {} end, cq.Observer.kmeans { clusters = 3, velocity = true } },
  hyper = { function() return cq.Controller.mlp { hidden = { 8 }, activation = "tanh" } end,
    cq.Observer.particles { group = "foot", velocity = true } },
  own = { function() return cq.Controller.linear {} end, function(state) return state:center "foot" end },
  waves = { function() return cq.Controller.sines { count = 4, frequency = { 2, 7.5 } } end },
  given = { function()
    return cq.Controller.open_loop { steps = 60, hold = 4, init = cq.random({ seed = 2 }):normal { 15, 2 } * 0.3 }
  end },
}
local names = {}
for name in pairs(cases) do names[#names + 1] = name end
table.sort(names)

local function shell(command)
  local pipe = io.popen(command .. " 2>&1; echo $?")
  local said = pipe:read "*a"
  pipe:close()
  return said:gsub("%d+\n$", ""), tonumber(said:match "(%d+)\n$")
end

local controllers = {}
local function controller_of(name)
  local make, observer = cases[name][1], cases[name][2]
  controllers[name] = controllers[name] or used(make(), observer)
  return controllers[name], observer
end

-- arrays in the struct of the input, which are what sensors give one after the other
local function fields_of(header)
  local list, total = {}, 0
  for name, shape in header:match("typedef struct %w+_input {(.-)}"):gmatch "\n  %w+ (%w+)([%[%d%]]*);" do
    local count = 1
    for size in shape:gmatch "%d+" do count = count * tonumber(size) end
    list[#list + 1] = { name = name, count = count }
    total = total + count
  end
  return list, total
end

-- a compiled controller: start(), and step(numbers, time), which gives its signals
local function compiled(name, flags)
  local controller = controller_of(name)
  local path = ("%s/%s.h"):format(folder, name)
  controller:export(path)
  local header = process.read(path)
  local list, count = fields_of(header)
  local is_time = list[1].name == "time"
  process.write(("%s/%s.c"):format(folder, name), ([[
#include "NAME.h"
#include <string.h>
static NAME_state kept;
void NAME_begin(void);
void NAME_go(const float *x, double time, float *out);
void NAME_begin(void) { NAME_start(&kept); }
void NAME_go(const float *x, double time, float *out) {
  NAME_input input;
  SET
  NAME_step(&input, &kept, out);
}
]]):gsub("NAME", name):gsub("SET", is_time and "input.time = time; (void)x;"
    or "(void)time; memcpy(&input, x, sizeof input);"))
  local said, code = shell(("cd %s && gcc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror %s -shared -fPIC %s.c -o %s.so -lm")
    :format(folder, flags or "-O2", name, name))
  assert.equal("", said)
  assert.equal(0, code)
  ffi.cdef(("void %s_begin(void); void %s_go(const float *x, double time, float *out);"):format(name, name))
  local library = ffi.load(("%s/%s.so"):format(folder, name))
  local x, out = ffi.new("float[?]", count), ffi.new("float[?]", signals)
  return {
    list = list, count = count, start = library[name .. "_begin"],
    step = function(values, time)
      for k = 1, values and #values or 0 do x[k - 1] = values[k] end
      library[name .. "_go"](x, time or 0, out)
      return out
    end,
  }
end

describe("an exported controller", function()
  it("is C99 without a warning, and runs clean of undefined behaviour", function()
    for _, name in ipairs(names) do
      controller_of(name):export(("%s/%s.h"):format(folder, name))
      process.write(folder .. "/main.c", ([[
#include "NAME.h"
#include <stdio.h>
#include <string.h>
int main(void) {
  NAME_input input;
  NAME_state state;
  float out[2], sum = 0.0f;
  memset(&input, 0, sizeof input);
  NAME_start(&state);
  for (int i = 0; i < 100; i++) {
    IN
    NAME_step(&input, &state, out);
    sum += out[0] * out[0] + out[1] * out[1];
  }
  printf("%d\n", sum == sum && sum < 200.0f);
  return 0;
}
]]):gsub("NAME", name):gsub("IN\n", process.read(("%s/%s.h"):format(folder, name)):find("double time", 1, true)
        and "input.time = i * 1e4;\n" or "memset(&input, 0, sizeof input);\n"))
      local flags = "-std=c99 -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize-recover"
      local said, code = shell(("cd %s && gcc %s main.c -o main -lm && ./main"):format(folder, flags))
      assert.equal("1\n", said, name)
      assert.equal(0, code)
    end
  end)

  it("agrees with the one in Lua for 100,000 random inputs", function()
    local random = cq.random { seed = 9 }
    for _, name in ipairs { "mlp", "small", "hyper", "own" } do
      local controller, found = controller_of(name), compiled(name)
      local count, worst = name == "mlp" and 100000 or 20000, 0
      local x = random:normal({ count, found.count }, { deviation = 1.5 })
      -- what the program is given is of single precision
      local single, data = ffi.new "float[1]", x:data()
      for k = 0, x.count - 1 do
        single[0] = data[k]
        data[k] = single[0]
      end
      local expected = controller:act(x)
      local row, want = {}, expected:data()
      for i = 0, count - 1 do
        for k = 1, found.count do row[k] = data[i * found.count + k - 1] end
        local out = found.step(row)
        for s = 0, signals - 1 do worst = math.max(worst, math.abs(out[s] - want[i * signals + s])) end
      end
      assert(worst < 1e-6, ("%s: %.3g"):format(name, worst))
    end
  end)

  it("is its weights and less than 2 KiB", function()
    for _, name in ipairs(names) do
      local controller, weights = controller_of(name), 0
      for _, value in pairs(controller.params) do weights = weights + 4 * value.count end
      compiled(name, "-Os")
      local said = shell(("cd %s && gcc -std=c99 -Os -c %s.c -o one.o && size one.o | tail -n 1"):format(folder, name))
      local text, data = said:match "(%d+)%s+(%d+)"
      assert(text + data < weights + 2048, ("%s: %d bytes, weights %d"):format(name, text + data, weights))
    end
  end)

  it("drives a robot the same way, in C and in Lua", function()
    for _, name in ipairs(names) do
      local controller, observer = controller_of(name)
      local function go(policy, seen)
        return world:rollout { steps = 60, controller = policy, observer = seen,
          record = function(state) return state:center(robot) end }.record
      end
      local expected, found, path = go(controller, observer), compiled(name), ("%s/%s.lua"):format(folder, name)
      local sensors = cases[name][3] or observer
      controller:export(path)
      -- it sees nothing of this program
      local module, state = setfenv(assert(loadfile(path)), { math = math, ipairs = ipairs })(), nil
      assert.same(robot.signals, module.signals)
      local in_c = go(function(seen, _, time)
        if time == 0 then found.start() end
        local out = found.step(seen and seen:totable(), time)
        return cq.tensor { out[0], out[1] }
      end, sensors)
      local in_lua = go(function(seen, _, time)
        state = time == 0 and module.start() or state
        local values, input, at = seen and seen:totable(), { time = time }, 0
        for _, entry in ipairs(found.list) do
          if entry.name ~= "time" then
            input[entry.name] = { unpack(values, at + 1, at + entry.count) }
            at = at + entry.count
          end
        end
        return cq.tensor(module.step(input, state))
      end, sensors)
      local moved = (expected[60] - expected[1]):abs():max():item()
      assert(moved > 1e-3, name .. " does not move")
      for what, got in pairs { C = in_c, Lua = in_lua } do
        local worst = (got - expected):abs():max():item()
        assert(worst < (what == "C" and 1e-5 or 1e-9), ("%s in %s: %.3g"):format(name, what, worst))
      end
    end
  end)

  it("compiles with groups and actuators of any name", function()
    local called = { "left\\", "right??/", "/* up \\ " }
    local groups, drives = {}, {}
    for k, name in ipairs(called) do
      groups[name] = function(x) return x < 0.04 * k end
      drives[k] = cq.Actuator.pressure { groups = { name }, axis = "x", max = 1 }
    end
    local body = cq.Robot { shape = cq.Shape.box { size = { 0.12, 0.08 }, spacing = 0.02 }, groups = groups,
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 }, actuators = drives }
    local mlp = cq.Controller.mlp { hidden = { 2 } }
    cq.World { cells = { 10, 10 }, dx = 0.04, dt = 1e-3, body:at { 0.1, 0.1 } }:rollout { steps = 1, controller = mlp,
      observer = cq.Observer.centroid { groups = called } }
    mlp:export(folder .. "/names.h")
    process.write(folder .. "/names.c", [[
#include "names.h"
void go(const names_input *input, names_state *state, float out[3]);
void go(const names_input *input, names_state *state, float out[3]) { names_step(input, state, out); }
]])
    assert.same({ "", 0 }, { shell(("cd %s && gcc -std=c99 -Wall -Wextra -Werror -c names.c"):format(folder)) })
  end)

  it("warns where a training has gone past its best weights, which the run has", function()
    local run = cq.Experiment { world = world, steps = 4, observer = cq.Observer.centroid { groups = { "foot" } },
      controller = cq.Controller.linear { seed = 3 }, optimizer = cq.Optimizer.adam { rate = 5 },
      objective = function(state) return (state:center("foot")[1] - 0.5):square() end }
    local said, own = {}, message.warn
    function message.warn(format, ...) said[#said + 1] = format:format(...) end
    run:optimize { iterations = 2, folder = folder .. "/past" }
    run.controller:export(folder .. "/past.h")
    run.controller:with(run.best.params.controller):export(folder .. "/best.h")
    cq.load(folder .. "/past").controller:export(folder .. "/loaded.h")
    message.warn = own
    assert.same({ folder .. "/past.h has the weights after the last update; those of the best loss: "
      .. "run.controller:with(run.best.params.controller):export" }, said)
    assert.is_true(process.read(folder .. "/past.h") ~= process.read(folder .. "/best.h"))
  end)

  it("may be a sum within a sum", function()
    local function sines(seed) return cq.Controller.sines { frequency = 3, seed = seed, deviation = 1 } end
    local sum = cq.Controller.sum { slow = sines(1), both = cq.Controller.sum { a = sines(2),
      b = cq.Controller.open_loop { steps = 8, hold = 4, init = { { 0.5, -0.5 }, { 0.25, 0.9 } } } } }
    world:rollout { steps = 1, controller = sum }
    sum:export(folder .. "/nested.h")
    sum:export(folder .. "/nested.lua")
    process.write(folder .. "/nested.c", [[
#include "nested.h"
void go(double time, float *out);
void go(double time, float *out) {
  nested_state state;
  nested_input input;
  nested_start(&state);
  input.slow.time = input.both.a.time = input.both.b.time = time;
  nested_step(&input, &state, out);
}
]])
    assert.same({ "", 0 }, { shell(("cd %s && gcc -std=c99 -Wall -Wextra -Werror -shared -fPIC nested.c -o nested.so -lm")
      :format(folder)) })
    ffi.cdef "void go(double time, float *out);"
    local library, out, module = ffi.load(folder .. "/nested.so"), ffi.new "float[2]", dofile(folder .. "/nested.lua")
    for step = 1, 6 do
      local time = (step - 1) * world.control_dt
      local u = sum:act(nil, sum:start(), time, step)
      library.go(time, out)
      local by_lua = module.step({ slow = { time = time }, both = { a = { time = time }, b = { time = time } } },
        module.start())
      for k = 1, 2 do
        assert.near(u:get(k), out[k - 1], 1e-5)
        assert.near(u:get(k), by_lua[k], 1e-9)
      end
    end
  end)

  it("refuses options that would have no effect", function()
    local mlp, waves, given = controller_of "mlp", controller_of "waves", controller_of "given"
    says(sentence(mlp.export, mlp, folder .. "/a.h", { interpolation = "linear" }),
      "interpolation is of the signals of an open loop, and the controller has none")
    for _, controller in ipairs { waves, given } do
      says(sentence(controller.export, controller, folder .. "/a.h", { observer = function() end }),
        "the controller follows the time and takes no observations; leave observer out")
    end
    local sum = cq.Controller.sum { a = waves, b = cq.Controller.sum { c = given, d = cq.Controller.linear {} } }
    world:rollout { steps = 1, controller = sum, observer = function(state) return state:center "foot" end }
    sum:export(folder .. "/sum.lua", { interpolation = "linear", observer = cq.Observer.centroid { groups = "foot" } })
  end)

  it("says what cannot be exported", function()
    local function of(...) return sentence(...) end
    local new = cq.Controller.mlp {}
    says(of(new.export, new, folder .. "/a.h"), "was not used in a rollout yet, so that its observations are not known")
    says(of(new.export, new, folder .. "/a.py"), "path must end in .h (C99) or .lua, got")
    local mlp = controller_of "mlp"
    says(of(mlp.export, mlp, folder .. "/2-legs.h"), "name must be a word of letters, digits and _, got \"2-legs\"")
    says(of(mlp.export, mlp, folder .. "/no/a.h"), "there is no folder")
    local custom = require("cq.controller").of(function() return cq.zeros { 2 } end, "test")
    says(of(custom.export, custom, folder .. "/a.h"),
      "is the script's own; mlp, linear, sines, open_loop and sums of these can be exported")
  end)
end)
