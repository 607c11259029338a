-- capacity: sizes that no memory holds are told by the constructor that is given them, before anything is allocated.
local cq = require "cq"
local process = require "tests.process"
local scene = require "tests.scene"
local fails = require("tests.sentence").fails

local function peak() return tonumber(io.open("/proc/self/status"):read("*a"):match "VmHWM:%s+(%d+)") / 1024 end

describe("a size that does not fit into memory", function()
  it("is an error of the constructor, and takes none", function()
    local before = peak()
    local function mlp(hidden, more)
      local def = { hidden = hidden }
      for key, value in pairs(more or {}) do def[key] = value end
      local made = cq.Controller.mlp(def)
      return made
    end
    local fits = "would take .* at least, and .* of memory are free"
    fails("cq.Controller.mlp: hidden = { 1000000000000 } would take", mlp, { 1e12 })
    fails("cq.Controller.mlp: hidden = { 10000000, 10000000 } would take 728 TiB at least, and", mlp, { 1e7, 1e7 })
    fails("would take 29.1 TiB", mlp, { 1e12 }, { inputs = 2, signals = 1 })
    local signals = "count must be a whole number at least 1 and at most 65536"
    fails(signals, cq.Controller.sines, { count = 1e12 })
    fails(signals, cq.Actuator.isotropic, { count = 1e9 })
    fails("cq.Controller.open_loop: steps = 1000000000000 would take", cq.Controller.open_loop, { steps = 1e12 })
    fails("cq.tensor: a tensor of this size would take 7.28 TiB at least", cq.zeros, { 1e6, 1e6 })
    fails("count must be a whole number at least 1 and at most 100000", cq.Shape.box { size = { 1, 1 },
      spacing = 0.1 }.repeated, cq.Shape.box { size = { 1, 1 }, spacing = 0.1 }, { count = 1e9, step = { 1, 0 } })
    fails("links must be a whole number at least 1 and at most 1000", cq.Creature.arm, { links = 1e9 })
    local world = scene.world(scene.robot())
    local _, problem = pcall(world.rollout, world, { steps = 2 ^ 31 - 1, batch = 65536 })
    assert.matches(fits, problem)
    assert.is_true(peak() - before < 100)
  end)

  it("is planned for within the limits of the process", function()
    if process.sanitized() then return pending "AddressSanitizer reserves more than any limit allows" end
    local code = [[
      local cq = require "cq"
      local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2, 0.2 }, spacing = 0.01 },
        material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1000 } }
      local world = cq.World { cells = { 30, 30, 30 }, dx = 0.02, dt = 1e-3, substeps = 10, robot:at { 0.2, 0.2, 0.2 } }
      local _, slope = cq.value_and_grad(function(v)
        return world:rollout({ steps = 60, robot = robot:with { velocity = v } }).state:center(robot)[2]
      end)(cq.param { 0, 0, 0 })
      print(slope)]]
    local free = process.cqlua { "--threads", "1", "-e", code }
    for _, kind in ipairs { "v", "d" } do
      local result = process.cqlua({ "--threads", "1", "-e", code },
        { before = ("export OPENBLAS_NUM_THREADS=1; ulimit -%s 500000;"):format(kind) })
      assert.equal(0, result.code, result.err)
      assert.equal(free.out, result.out)
    end
  end)

  it("is none where it fits", function()
    assert.equal(10000, cq.range(1, 10000).count)
    assert.is_truthy(cq.Controller.mlp { hidden = { 1000, 1000 }, inputs = 3, signals = 2 })
  end)
end)
