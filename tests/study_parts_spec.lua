-- study_parts: samplers, pruners, the store and what else cqlua study is made of.
local cq = require "cq"
local children = require "cq.study.process"
local Cma = require "cq.study.cma"
local host = require "cq.host"
local filesystem = require "cq.study.filesystem"
local importance = require "cq.study.importance"
local json = require "cq.base.json"
local memory = require "cq.rollout.memory"
local option = require "cq.option"
local parts = require "cq.study.space"
local process = require "tests.process"
local runners = require "cq.study.runner"
local sobol = require "cq.study.sobol"
local sqlite = require "cq.study.sqlite"
local stores = require "cq.study.store"
local stream = require "cq.study.stream"
local tpe = require "cq.study.tpe"

require("cq.study").class.under_command = true

local fails = require("tests.sentence").fails

local function study(more)
  local fields = { name = "a", seed = 3, run = function() return 0 end }
  for name, value in pairs(more) do fields[name] = value end
  return cq.Study(fields)
end

describe("a space", function()
  it("maps coordinates to values and back", function()
    for _, parameter in ipairs { cq.Space.uniform(-2, 5), cq.Space.log(1e-3, 1e4), cq.Space.integer(1, 9),
      cq.Space.choice { "a", "b", "c" } } do
      for k = 0, 63 do
        local x = parameter:at(k / 64)
        assert.near(x, parameter:at(parameter:unit(x)), 1e-9 * math.abs(x))
      end
    end
    assert.near(1, cq.Space.log(1e-2, 1e2):at(0.5), 1e-12)
    local counts = {}
    for k = 0, 999 do
      local x = cq.Space.integer(3, 6):at((k + 0.5) / 1000)
      counts[x] = (counts[x] or 0) + 1
    end
    assert.same({ [3] = 250, [4] = 250, [5] = 250, [6] = 250 }, counts)
    assert.is_true(cq.Space.choice { true, false }:value(1))
  end)
end)

describe("a list of values", function()
  it("is known by all digits of its numbers and by the content of its tables", function()
    local values = { 12345678901, 0.12345678901234, { 8, 16 }, { 8, { 16, 2 } }, { rate = 0.1, hidden = { 4, 2 } },
      "a" }
    local parameter = cq.Space.choice(values)
    assert.same({ "12345678901", "0.12345678901234", "8 16", "8 {16 2}", "hidden = {4 2}, rate = 0.1", "a" },
      parameter:description().values)
    assert.same({ "12345678901", "0.123456789" }, { parameter:label(1), parameter:label(2) })
    assert.same({ 12345678901, 0.12345678901234, "8 16" }, { parameter:exact(1), parameter:exact(2),
      parameter:exact(3) })
    local function net(hidden) return study { grid = { net = { { hidden = hidden } } } } end
    assert.same({ 'space or grid was [{"kind": "choice", "name": "net", "numeric": false, "values": ["hidden = 2"]}] and is '
      .. '[{"kind": "choice", "name": "net", "numeric": false, "values": ["hidden = 77"]}]' },
      net(77):changes(net(2):definition()))
    assert.same({}, net(2):changes(net(2):definition()))
  end)

  it("has a text of its own for each value, and no table that contains itself", function()
    local values = { { 1, 2 }, "1 2", 3, "3", { "a b" }, { "a", "b" }, { "3" }, { true }, { "true" }, "true" }
    local parameter = cq.Space.choice(values)
    local texts = parameter:description().values
    assert.same({ "1 2", '"1 2"', "3", '"3"', '"a b"', "a b", '"3"' }, { unpack(texts, 1, 7) })
    assert.same({ '"1 2"', '"1 2"' }, { parameter:label(2), parameter:exact(2) })
    local stored = parts.stored { kind = "choice", values = texts }
    for i = 1, #texts do assert.equal(parameter:exact(i), type(values[i]) == "number" and 3 or stored:exact(i)) end
    local own = { 1 }
    own.inner = { own }
    fails("value 2 is a table that contains itself", cq.Space.choice, { 1, own })
    fails("value 1 is a table that contains itself", function() study { grid = { x = { own } } } end)
    local shared = { 1 }
    assert.equal("{1} {1}", cq.Space.choice { { shared, shared } }:exact(1))
  end)

  it("is known as earlier programs have stored it, also if it is longer now", function()
    local values = { { hidden = 4 }, { 8, { 16, 2 } }, 0.12345678901234, "a" }
    local stored = study { grid = { net = values } }:definition()
    stored.space[1].values = { "a table", "8 16 2", "0.123456789", "a" }
    assert.same({}, study { grid = { net = values } }:changes(stored))
    values[3] = 0.2
    assert.equal(1, #study { grid = { net = values } }:changes(stored))
    values[3], values[5] = 0.12345678901234, "b"
    assert.same({}, study { grid = { net = values } }:changes(stored))
  end)
end)

describe("a sampler", function()
  it("sobol has the digits of Joe and Kuo's numbers", function()
    -- the first points of dimensions 1, 2 and 3, as Bratley and Fox print them in binary order
    local first = { { 0, 0, 0 }, { 0.5, 0.5, 0.5 }, { 0.25, 0.75, 0.75 }, { 0.75, 0.25, 0.25 }, { 0.125, 0.625, 0.375 },
      { 0.625, 0.125, 0.875 }, { 0.375, 0.375, 0.625 }, { 0.875, 0.875, 0.125 } }
    for k, point in ipairs(first) do
      for d = 1, 3 do assert.equal(point[d], sobol.digits(k - 1, d) % 2 ^ 32 / 2 ^ 32) end
    end
    -- of others the point 3001, as scipy.stats.qmc.Sobol has it (scipy 1.17, unscrambled, 32 bits, by its Gray code)
    local later = { [1] = 2647654400, [5] = 217055232, [11] = 3163553792, [21] = 412090368, [37] = 1716518912,
      [52] = 3148873728, [64] = 1953497088 }
    for d, digits in pairs(later) do assert.equal(digits, sobol.digits(3001, d) % 2 ^ 32) end
  end)

  it("sobol fills every slice once, in every dimension, and changes with the seed", function()
    for d = 1, sobol.dimensions do
      local seen, other = {}, 0
      for k = 0, 127 do
        local x = sobol.coordinate(5, k, d)
        local slice = math.floor(x * 128)
        assert.is_nil(seen[slice])
        seen[slice] = true
        if sobol.coordinate(6, k, d) ~= x then other = other + 1 end
      end
      assert(other > 120)
    end
    -- in the first two dimensions also every box of 2^-j by 2^(j-7)
    for j = 1, 6 do
      local seen = {}
      for k = 0, 127 do
        local box = math.floor(sobol.coordinate(5, k, 1) * 2 ^ j) .. ","
          .. math.floor(sobol.coordinate(5, k, 2) * 2 ^ (7 - j))
        assert.is_nil(seen[box])
        seen[box] = true
      end
    end
  end)

  it("latin_hypercube has one point in every slice of every parameter", function()
    local made = study { sampler = "latin_hypercube", trials = 20, space = { x = cq.Space.uniform(0, 20),
      y = cq.Space.uniform(0, 20) } }
    for _, name in ipairs { "x", "y" } do
      local seen = {}
      for k = 1, 20 do seen[math.floor(made:draw(k)[name])] = true end
      local count = 0
      for _ in pairs(seen) do count = count + 1 end
      assert.equal(20, count)
    end
  end)

  it("grid has every combination once", function()
    local made, seen = study { grid = { a = { 1, 2 }, b = cq.range(1, 3), c = { "x", "y" } } }, {}
    assert.equal(12, made:count())
    for k = 1, 12 do
      local point = made:point(made:draw(k))
      local key = point.a .. point.b .. point.c
      assert.is_nil(seen[key])
      seen[key] = true
    end
    assert.equal("x", made:point(made:draw(1)).c)
    assert.equal("y", made:point(made:draw(2)).c)
  end)

  it("tpe finds a valley, a choice and a front better than chance does", function()
    local space = { cq.Space.uniform(0, 1), cq.Space.uniform(0, 1), cq.Space.choice { "a", "b", "c" } }
    local function value(x) return (x[1] - 0.3) ^ 2 + (x[2] - x[1]) ^ 2 + (math.floor(3 * x[3]) == 2 and 0 or 0.2) end
    local wins = 0
    for seed = 1, 5 do
      local finished, best, chance = {}, math.huge, math.huge
      for k = 1, 80 do
        local x = tpe.next(space, finished, {}, stream.of(seed, "tpe", k))
        local random = stream.of(seed, "point", k)
        best, chance = math.min(best, value(x)), math.min(chance, value { random:uniform(), random:uniform(),
          random:uniform() })
        finished[k] = { number = k, state = k % 7 == 0 and "failed" or k % 5 == 0 and "pruned" or "done", step = k % 3,
          value = k, x = x,
          values = { value(x) } }
      end
      if best < 0.5 * chance then wins = wins + 1 end
    end
    assert(wins >= 4, wins)
    local ranks = tpe.fronts { { values = { 1, 2 } }, { values = { 2, 1 } }, { values = { 2, 2 } },
      { values = { 3, 3 } } }
    local counts = {}
    for _, rank in pairs(ranks) do counts[rank] = (counts[rank] or 0) + 1 end
    assert.same({ 2, 1, 1 }, counts)
    local finished = {}
    for k = 1, 30 do
      local x = tpe.next(space, finished, {}, stream.of(1, "tpe", k))
      finished[k] = { number = k, state = "done", x = x, values = { x[1], 1 - x[1] + x[2] } }
    end
    local low = 0
    for k = 16, 30 do low = low + finished[k].x[2] / 15 end
    assert(low < 0.4, low)
  end)

  it("cma_es comes to the end of a bent valley", function()
    local strategy, best = Cma.new(3), math.huge
    for generation = 1, 220 do
      local points, values = {}, {}
      for i = 1, strategy.size do
        local x = strategy:ask(stream.of(2, "cma", generation * 100 + i))
        local sum = 0
        for d = 1, 2 do
          local a, b = 4 * x[d] - 2, 4 * x[d + 1] - 2
          sum = sum + 100 * (b - a * a) ^ 2 + (1 - a) ^ 2
        end
        points[i], values[i], best = x, sum, math.min(best, sum)
      end
      strategy:tell(points, values)
    end
    assert(best < 1e-6, best)
  end)
end)

describe("a pruner", function()
  it("asha keeps the best share at its rungs", function()
    local pruner = cq.Pruner.asha { step = 10, reduction = 3 }
    local rungs = {}
    for step = 1, 300 do
      if pruner:is_rung(step) then rungs[#rungs + 1] = step end
    end
    assert.same({ 10, 30, 90, 270 }, rungs)
    assert.is_false(pruner:ends(5, {}))
    assert.is_true(pruner:ends(5, { 4 }))
    assert.is_false(pruner:ends(5, { 4, 6, 7, 8, 9 }))
    assert.is_true(pruner:ends(5, { 4, 3, 7, 8, 9 }))
    assert.is_true(pruner:ends(0 / 0, {}))
  end)

  it("median ends what is worse than half, once there are enough", function()
    local pruner = cq.Pruner.median { warmup = 4, trials = 3, every = 2 }
    assert.is_false(pruner:is_rung(3))
    assert.is_false(pruner:is_rung(5))
    assert.is_true(pruner:is_rung(6))
    assert.is_false(pruner:ends(9, { 1, 2 }))
    assert.is_true(pruner:ends(9, { 1, 2, 10 }))
    assert.is_false(pruner:ends(2, { 1, 2, 10, 11 }))
  end)
end)

describe("a store", function()
  local folder
  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  local function open(def)
    local store = stores.open(folder .. "/study.sqlite", def or { create = true })
    store:fill(3)
    return store
  end

  it("has in its file what ended before a heartbeat, as after a power cut", function()
    local store = open()
    local claimed = store:claim("here/1/1", 3, 100)
    store:finish(claimed, "here/1/1", { state = "done", result = { loss = 1 }, value = 1 }, 101)
    -- without the log beside it, which need not have reached the disk
    local function of_file()
      local copy = process.write(folder .. "/copy.sqlite", process.read(store.path))
      local base = sqlite.open(copy, { read_only = true })
      local count = base:has_table "trial" and base:value "SELECT count(*) FROM trial WHERE state = 'done'" or 0
      base:close()
      return count
    end
    assert.equal(0, of_file())
    store:beat("here/1/1", 102)
    assert.equal(1, of_file())
  end)

  it("drops the result of a worker that was taken for lost", function()
    local store = open()
    local late = store:claim("here/1/1", 3, 100)
    assert.equal(1, late.number)
    assert.equal(0, store:reap(2, 100 + stores.LOST - 1, function() return false end))
    assert.equal(1, store:reap(2, 100 + stores.LOST + 1, function() return false end))
    local again = store:claim("here/2/2", 3, 200)
    assert.equal(1, again.number)
    assert.equal(2, again.attempts)
    store:report(late, "here/1/1", { { "loss", 1, 5 } })
    assert.same({}, store:compare(late, "here/1/1", 1, 5))
    assert.is_false(store:has_compared())
    assert.same({}, store:compare(again, "here/2/2", 1, 5))
    assert.is_true(store:has_compared())
    assert.is_false(store:finish(late, "here/1/1", { state = "done", result = { loss = 1 }, value = 1 }, 201))
    assert.is_true(store:finish(again, "here/2/2", { state = "done", result = { loss = 2 }, value = 2 }, 202))
    assert.equal(2, store:trial(1).result.loss)
    assert.is_nil(store:curves(1).loss)
    store:beat("here/1/1", 300)
    store:close()
  end)

  it("lets a trial whose worker ended wait again, until it was tried too often", function()
    local store = open()
    for attempt = 1, 3 do
      local claimed = store:claim("gone", 1, 100)
      assert.equal(attempt, claimed.attempts)
      assert.equal(1, store:reap(2, 101, function(worker) return worker == "gone" end))
    end
    assert.is_nil(store:claim("gone", 1, 100))
    local row = store:trial(1)
    assert.equal("lost", row.state)
    assert.equal("its worker was ended", row.problem)
    assert.equal(1, store:retry { "lost" })
    assert.equal(1, store:claim("new", 1, 100).attempts)
    store:close()
  end)

  it("of a study that nobody runs is read where no file can be made beside it", function()
    local place = folder .. "/50%?#"
    assert(host.make_folder(place))
    local store = stores.open(place .. "/study.sqlite", { create = true })
    store:fill(3)
    store:close()
    os.execute(("ln -s /nowhere/at/all '%s/study.sqlite-shm'"):format(place))   -- which SQLite would make for locks
    store = stores.open(place .. "/study.sqlite", { read_only = true })
    assert.equal(3, store:counts().waiting)
    store:close()
    fails("it cannot be opened", stores.open, place .. "/study.sqlite")
  end)

  it("says that it is locked when another program holds it", function()
    local store = open()
    local other = sqlite.open(store.path, { patience = 0.05 })
    store.base:run "BEGIN IMMEDIATE"
    fails("it was locked by another program", other.run, other, "UPDATE trial SET state = 'done'")
    store.base:run "ROLLBACK"
    other:close()
    store:close()
  end)
end)

describe("a worker of a server that failed and forgot its last second", function()
  local start, poll, quiet, folder, store
  before_each(function()
    folder = process.folder()
    store = stores.open(folder .. "/study.sqlite", { create = true })
    store:fill(2)
    quiet, option.program.quiet = option.program.quiet, true
    start, poll = children.start, children.poll
  end)
  after_each(function()
    children.start, children.poll, option.program.quiet = start, poll, quiet
    store:close()
    process.remove(folder)
  end)

  -- Has a worker run the study's two trials in a child that is none. answer(n, job) returns what the child says after
  -- its n-th job, a list of messages, each read by itself. Returns the numbers of the trials that it was given, and
  -- their points. more: fields of the study.
  local function work(answer, more)
    local numbers, points, said, reads = {}, {}, {}, 0
    local child = { signal = function() end, wait = function() return 0 end }
    function child.send(_, line)
      local job = json.decode(line)
      numbers[#numbers + 1], points[#points + 1] = job.number, job.point.x
      for _, message in ipairs(answer(#numbers, job)) do said[#said + 1] = message end
    end
    function child.dismiss() said = { "closed" } end
    function child.receive()
      local message = table.remove(said, 1)
      return { message ~= "closed" and message or nil }, message == "closed"
    end
    children.start = function() return child end
    children.poll = function(list)
      reads = reads + 1
      assert.is_true(reads < 100)
      return list[1] and said[1] and { child } or {}
    end
    local def = { trials = 2, space = { x = cq.Space.uniform(0, 1) } }
    for name, value in pairs(more or {}) do def[name] = value end
    local worker = runners.new { study = study(def), store = store, folder = folder, jobs = 1, words = {}, threads = 1,
      options = {}, command = function() return "" end, fingerprint = function() return "" end }
    assert.equal("finished", worker:run())
    return numbers, points
  end
  local function done(loss) return ('done\t{"loss": %.17g}'):format(loss) end
  local function ended(job) return ("ended\t%d\t0\t0"):format(job.job) end

  -- the trial waits again, and the same child may get it before the worker has read the end of the first process
  it("takes the end of an earlier attempt for no end of the trial that runs", function()
    local finish, forgets = store.finish, true
    function store:finish(claimed, worker, result, now)
      if not forgets then return finish(self, claimed, worker, result, now) end
      forgets = false
      return self:give_back(claimed.number, claimed.attempts, worker)
    end
    assert.same({ 1, 1, 2 }, work(function(n, job) return { done(n), ended(job) } end))
    assert.same({ 2, 3 }, { store:trial(1).result.loss, store:trial(2).result.loss })
  end)

  it("keeps a trial whose claim was forgotten", function()
    assert.same({ 1, 2 }, work(function(n, job)
      if n == 1 then
        local row = store:trial(1)
        store:give_back(1, row.attempts, row.worker)
        store.base.reconnects = store.base.reconnects + 1
      end
      return { "report\tloss\t1\t5", done(n), ended(job) }
    end))
    assert.same({ 1, 2 }, { store:trial(1).result.loss, store:trial(2).result.loss })
    assert.same({ 1, 1 }, { store:trial(1).attempts, store:trial(2).attempts })
  end)

  it("draws points by the results that it has, and not by those that were forgotten", function()
    local adapting, done_again = { trials = 8, sampler = "cma_es" }, false
    store:fill(8)
    local _, undisturbed = work(function(_, job) return { done(job.point.x), ended(job) } end, adapting)
    store:close()
    store = stores.open(folder .. "/again.sqlite", { create = true })
    store:fill(8)
    local numbers, points = work(function(n, job)
      if n == 4 then
        store.base:run "UPDATE trial SET state = 'waiting', attempts = 0, worker = NULL, serial = NULL WHERE number = 3"
        store.base.reconnects, done_again = store.base.reconnects + 1, true
      end
      return { done(job.number == 3 and not done_again and -9 or job.point.x), ended(job) }
    end, adapting)
    assert.same({ 1, 2, 3, 4, 3, 5, 6, 7, 8 }, numbers)
    table.remove(points, 5)
    assert.same(undisturbed, points)
  end)
end)

describe("a study's surroundings", function()
  it("refuse file systems over a network", function()
    assert(filesystem.type "/proc" == 0x9fa0)
    filesystem.check("/tmp")
    for type, name in pairs { [0x6969] = "NFS", [0x0bd00bd0] = "Lustre", [0x47504653] = "GPFS" } do
      fails("is on " .. name .. ", where SQLite's locks do not work", filesystem.check, "/tmp", type)
    end
  end)

  it("share the memory among processes", function()
    local world = { device_kind = "cpu" }
    assert.equal(2 ^ 20, memory.budget("1 MiB", "a", world))
    assert.is_nil(memory.budget(nil, "a", world))
    option.program.share = 2
    local half = memory.budget(nil, "a", world)
    option.program.share = 8
    local eighth = memory.budget(nil, "a", world)
    option.program.share = nil
    assert(eighth > 0.15 * half and eighth < 0.4 * half, half .. " " .. eighth)
  end)

  it("measure how much a parameter explains", function()
    local space = { { name = "a", parameter = cq.Space.uniform(0, 1) },
      { name = "b", parameter = cq.Space.choice { 1, 2, 3 } },
      { name = "c", parameter = cq.Space.uniform(0, 1) } }
    local points = {}
    for k = 1, 200 do
      local random = stream.of(1, "point", k)
      local point = { a = random:uniform(), b = math.floor(3 * random:uniform()) + 1, c = random:uniform() }
      points[k] = { point = point, value = math.exp(4 * point.a + (point.b == 2 and 1 or 0)) }
    end
    local share = importance.of(space, points)
    assert(share[1] > 0.7 and share[2] > 0.03 and share[2] < 0.3 and share[3] < 0.05, table.concat(share, " "))
    assert.is_nil(importance.of(space, { points[1] }))
  end)

  it("read JSON that they wrote", function()
    local value = { a = 1e-300, b = { 1, 2, "x\n\"\\\1" }, c = { d = true, e = false }, f = -0.1, g = "ä" }
    assert.same(value, json.decode(json.encode(value)))
    assert.same({}, json.decode "{}")
    for _, broken in ipairs { "{", "[1,]", "{\"a\" 1}", "nul", "1 2",
      "\"a" } do assert.is_false((pcall(json.decode, broken))) end
  end)
end)
