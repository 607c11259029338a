-- seeds: independent starts in processes: what each gives is kept, the best told, and what is done not done again.
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- a script of the user's, run with a few words
local function run(text, ...)
  local path = process.write(folder .. ".lua", text)
  local result = process.cqlua { path, "--out", folder, ... }
  os.remove(path)
  return result
end

local squares = [[
  local cq = require "cq"
  local found = cq.seeds { count = cq.option("seeds", 3), run = function(seed, folder)
    local value = (seed - 2.2) ^ 2 + cq.option("more", 0)
    local file = io.open(folder .. "/seen", "a")
    file:write "x"
    file:close()
    print("seed", seed, cq.option("seed", 0), cq.option("out", ""))
    if seed == cq.option("broken", 0) then error "this seed is broken" end
    return { loss = value, twice = 2 * value }
  end }
  print(found)
  print("best", found.best.seed, found.best.folder, found.median, #found.rows, #found.failed)
]]

describe("cq.seeds", function()
  it("keeps what each seed gave, and tells the median and the best", function()
    local result = run(squares)
    assert(result.code == 0, result.err)
    assert.is_truthy(result.out:find("best\t2\t" .. folder .. "/seed-2\t0.64\t3\t0", 1, true), result.out)
    assert.is_truthy(result.out:find("median loss 0.64, best 0.04 of seed 2", 1, true))
    local rows = process.read(folder .. "/seeds.csv")
    assert.is_truthy(rows:find "^seed,loss,twice,seconds\n1,1.44[%d]*,2.88", rows)
    -- in a process of its own each is alone, and its seed is that of the program
    assert.is_truthy(process.read(folder .. "/seed-3/output.txt"):find("seed\t3\t3\t" .. folder .. "/seed-3", 1, true))
    assert.is_nil(result.out:find("seed\t", 1, true))
  end)

  it("goes on with what is not done", function()
    assert.equal(0, run(squares, "--broken", "2").code)
    assert.is_nil(process.read(folder .. "/seed-2/seed.json"))
    local result = run(squares, "--broken", "2", "--resume", "--seeds", "4")
    assert.is_truthy(result.err:find("seed 2 came to no result", 1, true), result.err)
    assert.is_truthy(process.read(folder .. "/seed-2/output.txt"):find("this seed is broken", 1, true))
    local function seen(seed) return #process.read(("%s/seed-%d/seen"):format(folder, seed)) end     -- how often it ran
    assert.same({ 1, 2, 1, 1 }, { seen(1), seen(2), seen(3), seen(4) })
    assert.is_truthy(result.out:find("seed 2: failed", 1, true))
    -- with other options nothing is done
    run(squares, "--more", "1", "--resume")
    assert.same({ 2, 3, 2, 1 }, { seen(1), seen(2), seen(3), seen(4) })
  end)

  it("moves what the same command left before away, and has a folder for itself", function()
    run(squares)
    local result = run(squares, "--more", "1")
    local said = ("the earlier run in %s is now in %s-earlier-1"):format(folder, folder)
    assert.is_truthy(result.err:find(said, 1, true), result.err)
    assert.is_truthy(process.read(folder .. "-earlier-1/seeds.csv"):find("\n1,1.44", 1, true))
    assert.is_truthy(process.read(folder .. "/seeds.csv"):find("\n1,2.44", 1, true))
    assert.is_truthy(process.read(folder .. "-earlier-1/seed-2/output.txt"))
    -- another one meanwhile
    local host = require "cq.host"
    local lock = host.lock(folder)
    local refused = run(squares, "--resume")
    host.unlock(lock)
    assert.equal(1, refused.code)
    assert.is_truthy(refused.err:find("another run is at work in the folder " .. folder, 1, true), refused.err)
  end)

  it("takes a seed that gives nan for a failed one", function()
    local text = [[local found = require("cq").seeds { count = 3, run = function(seed)
      return { loss = seed == 2 and 0 / 0 or seed == 3 and 1 / 0 or 0.5 }
    end }
    print(#found.rows, #found.failed, found.best.seed)]]
    local result = run(text)
    assert.same({ 0, "1\t2\t1\n" }, { result.code, result.out }, result.err)
    assert.is_truthy(process.read(folder .. "/seed-2/output.txt"):find(
      "cq.seeds: run returned nan for loss, which must be a finite number", 1, true))
    assert.is_truthy(result.err:find("seed 3 came to no result; ", 1, true), result.err)
  end)

  it("warns of seeds that change nothing", function()
    local same = run('print(require "cq".seeds { count = 2, run = function() return 0.25 end })')
    assert.is_truthy(same.err:find("all seeds gave the same loss, 0.25: nothing in the script is drawn by --seed", 1,
      true), same.err)
    assert.is_nil(run(squares, "--seeds", "2").err:find("all seeds", 1, true))
  end)

  it("runs one seed here, and several from --seed on", function()
    local one = run(squares, "--seeds", "1", "--seed", "7")
    assert.is_truthy(one.out:find("seed\t7\t7\t" .. folder, 1, true), one.out)
    assert.is_truthy(process.read(folder .. "/seen"))
    local two = run(squares, "--seeds", "2", "--seed", "7")
    assert.is_truthy(two.out:find("best\t7", 1, true), two.out)
    assert.is_truthy(process.read(folder .. "/seed-8/seed.json"))
  end)

  it("says what is wrong", function()
    local function fails(text, part)
      local result = run(text)
      assert.equal(1, result.code)
      assert.is_truthy(result.err:find(part, 1, true), result.err)
    end
    fails([[require("cq").seeds { count = 1, run = function() return { task = 1 } end }]],
      "run must return a table with the number loss, got nil")
    fails([[require("cq").seeds { count = 1, run = function() return { loss = 1, seed = 2 } end }]],
      "but no seed, folder and seconds")
    fails([[require("cq").seeds { count = 2, run = function() error "no" end }]], "no seed came to its end; " .. folder
      .. "/seed-1/output.txt says why")
    fails([[for _ = 1, 2 do require("cq").seeds { count = 2, run = function() return 1 end } end]], "calls it once")
    local typed = run(squares, "--sedes", "2")
    assert.is_truthy(typed.err:find("never asked for --sedes (did you mean seeds?)", 1, true), typed.err)
  end)
end)
