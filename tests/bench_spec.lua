-- bench: what `cqlua bench` prints, and the scenes that it measures. No time is asserted.
local cq = require "cq"
local cases = require "cq.measure.cases"
local host = require "cq.host"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"
local json = require "tests.json"
local process = require "tests.process"
local cqlua = process.cqlua

local all = {
  "2d-1600", "2d-1600-substeps1", "2d-6400", "3d-8000", "3d-8000-grid64", "3d-8000-grid100", "3d-8000-corotated",
  "2d-6400-averaged", "3d-8000-averaged", "3d-8000-float64",
  "3d-64000", "3d-512000", "decay-2d-6400", "decay-3d-8000", "decay-3d-64000",
  "tl-2d-6400", "tl-2d-6400-jittered", "tl-3d-64000", "water-2d-8962", "water-2d-8962-tl", "biped", "env-64",
  "implicit-2d-6400", "implicit-2d-6400-rest", "implicit-3d-8000", "implicit-3d-8000-rest",
  "implicit-2d-6400-float64", "implicit-3d-8000-float64",
}

local function results(...)
  local result = cqlua { "bench", "--json", "--steps", "10", "--repeat", "1", ... }
  assert.same({ 0, "" }, { result.code, result.err })
  return json.lines(result.out)
end

local function names(list)
  local out = {}
  for k, entry in ipairs(list) do out[k] = entry.case or entry.name end
  return out
end

describe("bench", function()
  it("prints a JSON object a line, with all keys, for every case", function()
    local found = results("--case", process.sanitized() and "2d*" or "?d*")
    if not process.sanitized() then assert.equal(12, #found) end
    for _, entry in ipairs(found) do
      for _, key in ipairs { "threads", "dim", "particles", "forward_mps", "backward_mps", "steps", "repeats" } do
        assert(type(entry[key]) == "number" and entry[key] > 0, entry.case .. " has no " .. key)
      end
      assert.equal("cpu", entry.device)
      assert.equal(entry.case:find "float64" and "float64" or "float32", entry.precision)
      assert.equal(entry.case:find "corotated" and "corotated" or "neo_hookean", entry.law)
      assert.equal(tonumber(entry.case:match "^%dd%-(%d+)"), entry.particles)
      assert(entry.forward_best_mps >= entry.forward_mps and entry.backward_best_mps >= entry.backward_mps)
      for _, phase in ipairs(kernel.phases()) do assert.equal("number", type(entry.phase_ns[phase])) end
      for _, phase in ipairs { "p2g", "grid", "g2p", "g2p_adj", "grid_adj", "p2g_adj" } do
        assert(entry.phase_ns[phase] > 0, phase)
      end
    end
  end)

  it("measures a block in water on both sorts of grids", function()
    for _, entry in ipairs(results("--case", "water-*")) do
      assert.same({ 8962, "fluid and neo_hookean", "cpu" }, { entry.particles, entry.law, entry.device })
      assert(entry.forward_mps > 0 and entry.backward_mps > 0)
    end
  end)

  it("tells the share of a whole program", function()
    local share = results("--case", "biped")[1].share
    assert.near(1, share.steps + share.readouts + share.lua, 1e-12)
    assert(share.steps > 0 and share.readouts > 0 and share.lua > 0)
    share = results("--case", "env-64")[1].share
    assert.near(1, share.steps + share.readouts + share.lua, 1e-12)
    assert(share.of_rollout > 0 and share.readouts > 0 and share.lua > 0)
  end)

  it("tells what the parts of implicit steps cost", function()
    for _, name in ipairs { "implicit-2d-6400-rest", "implicit-3d-8000", "implicit-2d-6400-float64" } do
      local result = cqlua { "bench", "--json", "--case", name, "--steps", "1", "--repeat", "1" }
      assert.same({ 0, "" }, { result.code, result.err })
      local entry = json.lines(result.out)[1]
      assert.same({ name, name:match "float64" or "float32", 1 }, { entry.case, entry.precision, entry.steps })
      for _, key in ipairs {
        "hessian_product", "tensors", "assembly", "backward_ratio", "speedup", "newton", "products",
      } do
        assert(entry[key] > 0, key)
      end
      for _, phase in ipairs { "p2g", "stress", "tensors", "assembly", "product", "solve", "g2p", "p2g_adj" } do
        assert(entry.phase_ns[phase] > 0, phase)
      end
      -- of a step: its products forward and backward, and the one of the adjoint's solution
      local product = entry.phase_ns.product / (entry.products + entry.products_backward + 1)
      assert.near(1, product * entry.particles * 1e-9 / entry.explicit / entry.hessian_product, 1e-9)
      for _, part in ipairs { "tensors", "assembly" } do      -- forward has more
        assert(entry[part] * entry.explicit < entry.phase_ns[part] * entry.particles * 1e-9, part)
      end
    end
  end)

  it("takes threads, precision and repetitions", function()
    local entry = results("--case", "2d-1600", "--threads", "1", "--precision", "float64", "--repeat", "2")[1]
    assert.same({ 1, "float64", 2, 10 }, { entry.threads, entry.precision, entry.repeats, entry.steps })
  end)

  it("measures a case once when a precision is given for all", function()
    local found = results("--case", "3d-8000*", "--precision", "float64", "--threads", "1")
    assert.same({ "3d-8000", "3d-8000-grid64", "3d-8000-grid100", "3d-8000-corotated", "3d-8000-averaged" },
      names(found))
  end)

  it("refuses a number of steps that it would round", function()
    for case, unit in pairs { ["2d-6400"] = 10, biped = 10, ["2d-1600-*"] = 0 } do
      local result = cqlua { "bench", "--json", "--case", case, "--steps", "5", "--repeat", "1" }
      assert.equal(unit == 0 and 0 or 2, result.code)
      local told = unit > 0 and ("--steps must be a multiple of 10, the engine steps of a control step of %s, got 5")
        :format(case) or ""
      assert(result.err:find(told, 1, true), result.err)
    end
  end)

  it("prints a table with phases and the figures of ChainQueen", function()
    local result = cqlua { "bench", "--case", "2d-6400", "--steps", "10", "--repeat", "1" }
    assert.equal(0, result.code)
    for _, part in ipairs { machine.facts().processor, machine.facts().date, "0.100 + 0.140", "p2g_adj", "2d-6400" } do
      assert(result.out:find(part, 1, true), part .. " is not in:\n" .. result.out)
    end
  end)

  it("keeps its table in a file", function()
    local folder = process.folder()
    results("--case", "2d-6400", "--threads", "1", "--csv", folder .. "/a.csv")
    local head, row, rest = process.read(folder .. "/a.csv"):match "^([^\n]+)\n([^\n]+)\n(.*)$"
    assert.equal("", rest)
    assert(head:find("case,device,threads,dim,particles,precision,forward_mps,backward_mps,", 1, true))
    assert(row:find('"2d-6400","cpu",1,2,6400,"float32",', 1, true) and row:find(machine.facts().date, 1, true))
    -- the text of the engine holds commas
    assert.equal(select(2, head:gsub(",", "")), select(2, row:gsub('"[^"]*"', ""):gsub(",", "")))
    process.remove(folder)
    local result = cqlua { "bench", "--case", "2d-6400", "--steps", "10", "--repeat", "1", "--csv", "/nowhere/a.csv" }
    assert.equal(2, result.code)
    assert(result.err:find("--csv cannot write /nowhere/a.csv: there is no folder /nowhere", 1, true), result.err)
    assert.is_nil(result.out:find("2d-6400", 1, true))      -- before any work
  end)

  it("refuses a case that is not there, with a suggestion", function()
    local result = cqlua { "bench", "--case", "3d-80000" }
    assert.equal(2, result.code)
    local sentence = "bench has no case 3d-80000 (did you mean 3d-8000?); its cases are " .. table.concat(all, ", ")
    assert(result.err:find(sentence, 1, true), result.err)
    assert.equal("", result.out)
    assert.equal(2, cqlua({ "bench", "--repeat", "0" }).code)
  end)
end)

describe("cases", function()
  local some = { { name = "a" }, { name = "ab" }, { name = "b-1" }, { name = "b.1" } }

  it("are chosen by name, by a part, or by a pattern", function()
    assert.same({ "a" }, names(cases.choose(some, "a", "test")))
    assert.same({ "ab", "b-1", "b.1" }, names(cases.choose(some, "b", "test")))
    assert.same({ "b-1", "b.1" }, names(cases.choose(some, "b?1", "test")))
    assert.same({ "b-1" }, names(cases.choose(some, "*-*", "test")))
    assert.same({ "ab" }, names(cases.choose(some, "*b", "test")))
    assert.same(some, cases.choose(some, nil, "test"))
  end)

  it("that match nothing are wrong use", function()
    for _, wanted in ipairs { "[", "%", "fallin", "(" } do
      local fine, problem = pcall(cases.choose, { { name = "falling" } }, wanted, "test")
      assert(fine == (wanted == "fallin"))
      if not fine then assert.equal(("test has no case %s; its cases are falling"):format(wanted), problem.misuse) end
    end
  end)
end)

describe("machine", function()
  it("says of the system what a reader of figures needs, and no more", function()
    local facts = machine.facts()
    assert.matches("^%a+ [%d.]+$", facts.system)
    assert.matches("^%a+ [%d.]+$", facts.compiler)
  end)

  it("gives medians and least values", function()
    assert.equal(3, machine.median { 5, 1, 3 })
    assert.equal(2.5, machine.median { 4, 1, 2, 3 })
    assert.equal(1, machine.least { 5, 1, 3 })
  end)
end)

describe("the kernels' timing", function()
  it("makes as many steps as memory keeps, and none again", function()
    local scene = require "scenes.falling_block" { dim = 2, side = 40, cells = { 100, 100 } }
    local world = cq.World(scene.world)
    local function steps(memory)
      local timing = kernel.time(world, { velocity = scene.velocity, steps = 100, repeats = 2, memory = memory })
      assert.equal(2, #timing.forward)
      assert.equal(2, #timing.backward)
      return timing.steps
    end
    local few = steps(3e6)
    assert(few > 5 and few < 50, few .. " steps")
    assert.equal(100, steps(1e9))
    world:close()
  end)
end)

describe("the falling block", function()
  for _, dim in ipairs { 2, 3 } do
    it(("meets the floor within the steps that are measured, in %dD"):format(dim), function()
      local scene = require "scenes.falling_block" { dim = dim, side = 8, cells = dim == 2 and { 32, 32 }
        or { 32, 32, 32 } }
      scene.world.precision = "float64"
      local world = cq.World(scene.world)
      local body = scene.robot:with { velocity = scene.velocity }
      local function along(steps) return world:rollout { robot = body, steps = steps }.state:velocity(world.robot) end
      local free, held = along(1), along(60)
      assert.near(-0.8, free[2]:item(), 0.02)
      assert(held[2]:item() > -0.7, "the floor does not stop it")
      assert(held[1]:item() < 0.29, "the floor does not rub")
      world:close()
    end)
  end

  it("leaves out a peer that cannot be installed, in a sentence", function()
    if os.execute "python3 -c 'import venv, ensurepip' 2>/dev/null" ~= 0 then return end
    local folder = process.folder()
    local pipe = io.popen(("PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_RETRIES=0 python3 tests/bench/peers/others.py"
      .. " --cqlua %s --peers newton --folder %s/peers --out %s/a.csv 2>&1"):format(host.executable, folder, folder))
    local text = pipe:read "*a"
    pipe:close()
    process.remove(folder)
    assert(text:find "newton is left out: it could not be installed: [^\n]+\nothers.py: no peer was measured\n", text)
  end)
end)
