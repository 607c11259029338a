-- live: the page of a run that goes on: who may see it, what it is told, what it may ask for, and that the run computes
-- the same.
local browser = require "tests.browser"
local http = require "tests.http"
local host = require "cq.host"
local image = require "cq.base.image"
local json = require "cq.base.json"
local process = require "tests.process"
local scratch = require "tests.scratch"

local SCRIPT = [[
  local cq = require "cq"
  local robot = cq.Robot { shape = cq.Shape.box { name = "b", size = { 0.2, 0.2 }, spacing = 0.02 },
    material = cq.Material.neo_hookean { young = 100, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.isotropic { groups = { "b" }, max = 10 } }
  local world = cq.World { cells = { 40, 20 }, dx = 0.05, gravity = { 0, -1 }, dt = 0.01, substeps = 20,
    walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.5, 0.2 } }
  local run = cq.Experiment { world = world, steps = 20,
    controller = cq.Controller.open_loop(cq.full({ 20, 1 }, 0.1)),
    objective = function(state) return state:center(robot)[2] end, optimizer = cq.Optimizer.adam { rate = 0.1 } }
  local iterations = cq.option("iterations", 1e6)
  local stages = cq.option("stages", false) and cq.Plan { { name = "first", iterations = 3 },
    { name = "then", iterations = iterations } }
  run:optimize { plan = stages or nil, iterations = not stages and iterations or nil }
]]

-- cqlua --serve in the background; ended by its own Ctrl-C, or as the test asks it to
local function start(folder, words)
  local script = process.write(folder .. "/s.lua", SCRIPT)
  local command = "{ timeout -s INT 300 '%s' --serve '%s' --out %s/run %s > %s/out 2> %s/err < /dev/null; "
    .. "echo $? > %s/code; } &"
  os.execute(command:format(host.executable, script, folder, words or "", folder, folder, folder))
  for _ = 1, 600 do
    local port, token = (process.read(folder .. "/err") or ""):match "http://127.0.0.1:(%d+)/%?token=(%x+)"
    if port then return tonumber(port), token end
    os.execute "sleep 0.05"
  end
  error("it has told no address: " .. tostring(process.read(folder .. "/err")))
end

local function code_of(folder)
  for _ = 1, 1200 do
    local code = tonumber(process.read(folder .. "/code") or "")
    if code then return code end
    os.execute "sleep 0.05"
  end
  error "it has not ended"
end

describe("the page of a run that goes on", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  it("is seen and commanded by who knows its token, and by no other site", function()
    local port, token = start(folder)
    local page = http.ask(port, "GET /?token=" .. token)
    assert.matches("^HTTP/1.1 200 OK", page)
    assert.matches('"live": {"token": "' .. token, page)
    local refused = {
      { "GET /" }, { "GET /?token=" .. token:reverse() }, { "GET /?token=" .. token:sub(1, -2) },
      { "GET /?token=" .. token, { Host = "evil.example:" .. port } },
      { "GET /events?token=" .. token, { Origin = "http://evil.example" } },
      { "POST /stop?token=" .. token, { Origin = "http://evil.example" } },
      { "POST /stop?token=" .. token, { Origin = "null" } },
      { "POST /stop" },
    }
    for _, case in ipairs(refused) do
      assert.matches("^HTTP/1.1 403", http.ask(port, case[1], case[2]), case[1])
    end
    assert.matches("^HTTP/1.1 405", http.ask(port, "PUT /?token=" .. token))
    assert.matches("^HTTP/1.1 404", http.ask(port, "GET /passwd?token=" .. token))
    assert.matches("^HTTP/1.1 431", http.ask(port, "GET /?token=" .. token, { Long = ("x"):rep(9000) }))
    -- none of these has stopped it
    assert.is_nil(process.read(folder .. "/code"))
    local own = { Origin = "http://127.0.0.1:" .. port }
    assert.matches("^HTTP/1.1 204", http.ask(port, "POST /stop?token=" .. token, own))
    assert.equal(130, code_of(folder))
  end)

  it("is told progress, losses and the newest rollout; a pause holds the run", function()
    local port, token = start(folder)
    local told = http.ask(port, "GET /events?token=" .. token, nil, '"texts": [')
    assert.matches("event: state\ndata: ", told)
    local state = json.decode(told:match "event: state\ndata: ([^\n]*)\n")
    assert.equal(1e6, state.iterations)
    assert.equal("running", state.status)
    assert.matches('event: film\ndata: {"film": {', told)
    http.ask(port, "POST /pause?token=" .. token)
    told = http.ask(port, "GET /events?token=" .. token, nil, '"status": "paused"')
    assert.matches('"status": "paused"', told)
    local lines = select(2, process.read(folder .. "/run/history.csv"):gsub("\n", ""))
    os.execute "sleep 0.5"
    assert.equal(lines, select(2, process.read(folder .. "/run/history.csv"):gsub("\n", "")))
    http.ask(port, "POST /pause?token=" .. token)
    told = http.ask(port, "GET /events?token=" .. token, nil, '"status": "running"')
    assert.matches('"status": "running"', told)
    http.ask(port, "POST /stop?token=" .. token)
    assert.equal(130, code_of(folder))
    assert.is_true(select(2, process.read(folder .. "/run/history.csv"):gsub("\n", "")) > lines)
  end)

  it("is told losses with a gap between the stages of a plan", function()
    local port, token = start(folder, "--stages --iterations 40")
    local told = http.ask(port, "GET /events?token=" .. token)
    assert.matches('"x": %[1, 2, 3, 4, 4, 5, ', told)
    assert.matches('"y": %[[^,]+, [^,]+, [^,]+, null, ', told)
    assert.equal(0, code_of(folder))
  end)

  it("shows the newest body in a browser, which pauses and stops it", function()
    if not browser.is_there then return pending "chromium is not installed: the page was not opened" end
    local port, token = start(folder)
    local window = browser.open()
    local fine, problem = pcall(function()
      window:send("Page.addScriptToEvaluateOnNewDocument", { source = [[{
        const add = EventSource.prototype.addEventListener;
        EventSource.prototype.addEventListener = function (name, act) {
          add.call(this, name, name !== "film" ? act : (event) => {
            window.filmEvent = { act, told: JSON.parse(event.data) };
            act(event);
          });
        };
      }]] })
      window:visit(("http://127.0.0.1:%d/?token=%s"):format(port, token))
      window:await("film && film.frames && curves.length > 1")
      window:value "play(false)"
      window:shoot(folder .. "/a.png")
      local picture, sandy = image.read(folder .. "/a.png"), 0
      for k = 0, picture.width * picture.height - 1 do
        local p = picture.pixels + 4 * k
        -- the first colour of groups, with a little red or blue of its signal
        if p[0] > p[2] + 40 and p[1] > p[2] + 10 then sandy = sandy + 1 end
      end
      assert.is_true(sandy > 300, ("%d pixels of the body"):format(sandy))
      assert.same({}, window:state().errors)
      assert.matches("^iteration %d+$", window:state().run)
      -- three films at once, each slowly read: the first and the last are shown, one after the other
      window:value [[const quick = bytesOf; bytesOf = async (...words) => {
          await new Promise((done) => setTimeout(done, 100));
          return quick(...words);
        };
        for (const k of [1e7, 2e7, 3e7]) filmEvent.act({ data: JSON.stringify({ ...filmEvent.told, iteration: k }) })]]
      window:await "film && data.runs[0].name === 'iteration 10000000'"
      window:await "film && data.runs[0].name === 'iteration 30000000'"
      assert.same({}, window:state().errors)
      window:value "document.querySelector('[data-command=pause]').click()"
      window:await "shown.status === 'paused'"
      window:value "document.querySelector('[data-command=pause]').click()"
      window:await "shown.status === 'running'"
      window:value "document.querySelector('[data-command=stop]').click()"
      window:await "shown.status === 'stopped'"
    end)
    window:close()
    if not fine then error(problem, 0) end
    assert.equal(130, code_of(folder))
  end)

  it("is served by the first of ranks alone", function()
    local script = process.write(folder .. "/s.lua", "print 'done'")
    for _, rank in ipairs { 0, 1 } do
      local told = process.cqlua({ "--serve", script }, { before = ("OMPI_COMM_WORLD_RANK=%d"):format(rank) })
      assert.equal(0, told.code, told.err)
      assert.equal(rank == 0, told.err:find("http://127.0.0.1", 1, true) ~= nil)
    end
  end)

  it("changes no bit of what is computed", function()
    local port, token = start(folder, "--iterations 40")
    http.ask(port, "GET /events?token=" .. token, nil, '"texts": [')
    assert.equal(0, code_of(folder))
    local alone = process.cqlua { folder .. "/s.lua", "--out", folder .. "/alone", "--iterations", "40" }
    assert.equal(0, alone.code, alone.err)
    local bytes = process.read(folder .. "/alone/params.bin")
    assert.is_true(#bytes > 100)
    assert.is_true(bytes == process.read(folder .. "/run/params.bin"))
  end)

  it("refuses a port that is taken", function()
    local port, token = start(folder)
    local told = process.cqlua { "--serve", tostring(port), folder .. "/s.lua", "--out", folder .. "/two" }
    assert.equal(2, told.code)
    assert.matches("%-%-serve " .. port .. ": the port cannot be listened at: Address already in use; choose another",
      told.err)
    http.ask(port, "POST /stop?token=" .. token)
    code_of(folder)
  end)

  it("is of a script alone", function()
    local told = process.cqlua { "--serve", "info" }
    assert.equal(2, told.code)
    assert.matches("%-%-serve shows the training of a script", told.err)
  end)
end)
