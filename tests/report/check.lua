-- check: what the report and the live view promise, measured: make report-check. The machine should be idle; software
-- rendering takes all of its cores.
--   size and opening of a rollout of 29,791 particles and 120 frames, frames a second at 800 x 600
--   share of a training's time that its page takes, and whether its parameters have the same bits
package.path = "./?.lua;" .. package.path
local cq = require "cq"
local browser = require "tests.browser"
local host = require "cq.host"
local process = require "tests.process"

local SIZE, OPENING, RATE, SHARE = 3e6, 2, 20, 1        -- [byte], [s], [1/s], [%]
local TIMES = 5                                         -- that frames are counted; their median is told

if not browser.is_there then error("chromium is not installed: sh engine/host/setup.sh test", 0) end
local folder, missed = process.folder(), 0

local function tell(name, value, unit, bound, holds)
  print(("%-52s %10s %-6s %-18s %s"):format(name, value, unit, bound, holds and "" or "MISSED"))
  if not holds then missed = missed + 1 end
end

-- a block that bounces, slides and is driven
local function block()
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 0.31, 0.31, 0.31 }, spacing = 0.01 },
    material = cq.Material.neo_hookean { young = 2e4, poisson = 0.35, density = 1000 },
    actuators = cq.Actuator.isotropic { groups = { "block" }, max = 6e3 },
  }
  local world = cq.World {
    cells = { 96, 32, 32 }, dx = 0.02, gravity = { 1, -9.8, 0 }, dt = 0.02, substeps = 20,
    walls = cq.Boundary.box { kind = "friction", mu = 0.4, inset = 0.06 }, robot:at { 0.15, 0.1, 0.15 },
  }
  local step = 0
  return world:rollout { steps = 119, controller = function()
    step = step + 1
    return cq.tensor { math.sin(0.3 * step) }
  end }
end

-- frames a second of a page that plays for some seconds
local PLAY = [[new Promise((resolve) => {
  view.particles = %s;
  play(true);
  const begun = performance.now();
  let frames = 0;
  requestAnimationFrame(function next() {
    frames++;
    const time = performance.now() - begun;
    if (time < 4000) return requestAnimationFrame(next);
    play(false);
    resolve(1000 * frames / time);
  });
})]]

local function check_page()
  local path = block():report(folder .. "/block.html")
  local size, window = #process.read(path), browser.open(800, 600)
  window:visit(path)
  local state = window:state()
  tell("29,791 particles x 120 frames", ("%.2f"):format(size / 1e6), "MB", "at most 3 MB", size <= SIZE)
  tell("from the address to the first picture", ("%.2f"):format(state.opened / 1e3), "s", "at most 2 s",
    state.opened <= 1e3 * OPENING)
  for _, mode in ipairs { { "false", "surface" }, { "true", "particles" } } do
    local rates = {}
    for k = 1, TIMES do rates[k] = window:value(PLAY:format(mode[1])) end
    table.sort(rates)
    local rate = rates[(TIMES + 1) / 2]
    tell(("%s at 800 x 600, software rendering"):format(mode[2]), ("%.0f"):format(rate), "1/s", "at least 20 (surface)",
      mode[2] ~= "surface" or rate >= RATE)
  end
  local script = window:value [[(() => { const begun = performance.now();
    for (let k = 0; k < 100; k++) view.load(1.19 * k, -1);
    return (performance.now() - begun) / 100; })()]]
  tell("of a frame, what JavaScript computes", ("%.1f"):format(script), "ms", "", true)
  tell("requests, errors", ("%d, %d"):format(#window.asked - 1, #window.problems + #state.errors), "", "none",
    #window.asked == 1 and #window.problems + #state.errors == 0)
  window:close()
end

-- a training with a page that somebody looks at, or without one; seconds of all cores
local function train(name, words)
  local run = ("bash -c 'TIMEFORMAT=\"%%U %%S\"; time %s %s examples/biped.lua --iterations 30 --render no --out %s/%s "
    .. "> %s/%s.out 2> %s/%s.err' 2> %s/%s.time; touch %s/%s.done"):format(host.executable, words, folder, name, folder,
    name, folder, name, folder, name, folder, name)
  os.execute("{ " .. run .. "; } &")
  local window
  while not process.read(("%s/%s.done"):format(folder, name)) do
    local address = (process.read(("%s/%s.err"):format(folder, name)) or ""):match "http://%S+"
    if address and not window then
      window = browser.open()
      window:visit(address)
    end
    os.execute "sleep 0.2"
  end
  if window then window:close() end
  local user, system = process.read(("%s/%s.time"):format(folder, name)):match "([%d.]+) ([%d.]+)"
  return tonumber(user) + tonumber(system)
end

local function check_live()
  local alone, shown = train("alone", ""), train("shown", "--serve")
  local told = process.read(folder .. "/shown.err")
  local share = told:match "the page took ([%d.e-]+) %%"
  tell("share of a training that its page takes", share, "%", "at most 1 %", tonumber(share) <= SHARE)
  tell("CPU time of the training, alone and shown", ("%.1f %.1f"):format(alone, shown), "s", "", true)
  local same = process.read(folder .. "/alone/params.bin") == process.read(folder .. "/shown/params.bin")
  tell("bits of the parameters", same and "equal" or "differ", "", "equal", same)
end

check_page()
check_live()
process.remove(folder)
if missed > 0 then os.exit(1) end
