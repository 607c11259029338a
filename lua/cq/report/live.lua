-- live: the page of a run that goes on: its progress, the loss so far and the newest rollout; pause and stop.
--   cqlua --serve examples/biped.lua        prints the address; --serve 8080 chooses the port
--
-- The listener (engine/host/listen.c) is polled between control steps, and when a run records an iteration. When
-- somebody looks, a rollout of the training itself is filmed: the first at once, others as long as the page takes less
-- than SHARE of the time. Trainings of several scenes make a rollout for the page. The bits of a training are the same.
local C = require("cq.base.engine").C
local history = require "cq.picture.history"
local films = require "cq.report.film"
local host = require "cq.host"
local message = require "cq.base.message"
local pages = require "cq.report.page"
local rollouts = require "cq.rollout"
local Run = require "cq.run"
local script = require "cq.base.script"
local T = require "cq.tensor"

local listener = host.listener

local live = {}

local SHARE = 0.01                -- of the time, at most, that the page takes
local OFTEN, SELDOM = 0.1, 2      -- [s] between two events of progress, and of the whole history
local EVERY = 0.02                -- [s] between two polls
local WAIT = 200                  -- [ms] that a poll waits while the run is paused
local FRAMES = 60
local POINTS = 1000

-- one run at a time
local now = {}

-- 32 random hexadecimal digits, which the page's address must contain.
local function token()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Sends the state of the training (iteration, loss, `status` as its word) to the page, and notes how many pages listen.
local function tell(status)
  local run = now.run
  now.status, now.told = status, C.cq_clock()
  now.listeners = listener.send("state", pages.json {
    status = status, iteration = run and run.done, iterations = run and run.iterations, loss = now.loss,
    name = run and run.folder,
  })
end

-- Sends the losses so far to the page.
local function tell_history()
  now.history_told = C.cq_clock()
  local x, y = history.column(now.losses, "loss", math.max(1, math.ceil(#now.losses / POINTS)))
  listener.send("history", pages.json { title = "loss", x_label = "iteration", x = x,
    series = { { name = "loss", y = y } } })
end

-- Adds the time since `began` [s] to the time spent on the page.
local function charge(began) now.spent = now.spent + C.cq_clock() - began end

-- Executes a command of the page, "stop" or "pause"; a pause waits here until the next command.
local function obey(command)
  if command == "stop" then
    C.cq_interrupt(1)
    tell "stopping"
  elseif command == "pause" then
    tell "paused"
    local answer
    repeat answer = listener.poll(WAIT) until answer == "pause" or answer == "stop" or C.cq_interrupted() ~= 0
    tell "running"
    if answer == "stop" then obey "stop" end
  end
end

-- Answers a waiting request of the page and executes its command; at most every EVERY seconds. Rollouts call this
-- between control steps.
local function idle()
  local time = C.cq_clock()
  if time - now.polled < EVERY then return end
  now.polled = time
  local command = listener.poll(0)
  charge(time)
  if command then obey(command) end
end

-- A film for a rollout of `steps` control steps.
local function new_film(steps)
  return films.new({ frames = FRAMES, colour = { "signal" }, particles = "auto" }, steps)
end

-- Called when a rollout of the training begins: returns an on_step that films it into now.filmed, if a film is wanted
-- and the rollout is of one scene; else nil.
local function watch(roll)
  if not now.wanted or roll.batched then return nil end
  local film = new_film(roll.steps)
  now.wanted, now.filmed = false, { film = film, roll = roll, took = 0 }
  return function(state, u)
    local began, filmed = C.cq_clock(), now.filmed
    local fine, problem = pcall(film.see, film, state, u)
    if not fine then filmed.problem = problem end
    filmed.took = filmed.took + C.cq_clock() - began
  end
end

-- Simulates the present parameters once more for the page, if no rollout of the training could be filmed: { film, roll,
-- took: 0 }.
local function make(experiment)
  local film = new_film(experiment.steps)
  local roll = T.tape.pause(function()
    return experiment:rollout(experiment.params, { on_step = function(state, u) film:see(state, u) end })
  end)
  return { film = film, roll = roll, took = 0 }
end

-- Sends a film to the page. filmed: { film, roll, problem }. Errors: filmed.problem, met while filming.
local function send(filmed)
  if filmed.problem then error(filmed.problem, 0) end
  local texts = {}
  local data = filmed.film:finish(filmed.roll, function(content)
    texts[#texts + 1] = content
    return #texts
  end)
  listener.send("film", pages.json { film = data, texts = texts, iteration = now.run.done })
end

-- Sends the latest film to the page, or asks for a new one, within the share of time allowed for it. Rollouts of
-- several scenes are not filmed, so one is simulated for the page; before the first, its cost is taken as one
-- iteration.
local function show(experiment)
  local began, filmed = C.cq_clock(), now.filmed
  if filmed and not filmed.roll.finished then filmed = nil end           -- it has failed
  local lasts = began - (now.shown or now.began)
  now.shown = began
  -- May `more` seconds be spent on films, as a share of the run's time so far?
  local function affordable(more) return now.spent + more <= SHARE * (began - now.began) end
  if not filmed then
    if now.listeners == 0 or not experiment or now.film_time and not affordable(now.film_time) then return end
    if not now.wanted then
      now.wanted = true
      return
    elseif not affordable(now.film_time or lasts) then return end
  end
  now.wanted, now.filmed = false, nil
  local fine, problem = pcall(function() send(filmed or make(experiment)) end)
  now.film_time = C.cq_clock() - began + (filmed and filmed.took or 0)
  now.spent = now.spent + now.film_time
  if fine then return end
  if not now.warned then message.warn("the page shows no rollout: %s", tostring(problem)) end
  now.warned = true
end

-- Called after each iteration: sends the page its loss, answers requests and sends a film. row: of the history.
local function on_record(run, row)
  local time = C.cq_clock()
  if now.run ~= run then now.run, now.losses = run, {} end
  now.loss = row.loss
  if type(row.loss) == "number" and row.loss - row.loss == 0 then
    now.losses[#now.losses + 1] = { iteration = row.iteration, loss = row.loss, stage = row.stage, start = row.start }
  end
  if time - now.told > OFTEN then tell "running" end
  if time - now.history_told > SELDOM then tell_history() end
  charge(time)
  now.polled = 0
  idle()
  show(run.shown)
end

---Opens the page's listener and prints its address. Errors: a port that is taken, or that only root may open.
---@param port integer        0: any that is free
---@param path string         of the script
function live.start(port, path)
  local secret = token()
  local page = pages.new(path:match "[^/]*$")
  page.data.live = { token = secret }
  local got, problem = listener.open(port, secret, page:html())
  if not got then
    script.misuse("--serve %d: the port cannot be listened at: %s; choose another, or --serve without a number", port,
      problem)
  end
  local time = C.cq_clock()
  now = { polled = 0, told = 0, history_told = 0, began = time, spent = 0, losses = {}, listeners = 0 }
  io.stderr:write(("look at http://127.0.0.1:%d/?token=%s\n"):format(got, secret))
  Run.on_record, rollouts.idle, rollouts.watch = on_record, idle, watch
end

---Tells the page that the script has ended, and closes the listener. Prints the share of time that the page took.
---@param finished boolean
function live.finish(finished)
  Run.on_record, rollouts.idle, rollouts.watch = false, false, false
  message.note("the page took %.2g %% of the time", 100 * now.spent / (C.cq_clock() - now.began))
  if #now.losses > 0 then tell_history() end
  tell(C.cq_interrupted() ~= 0 and "stopped" or finished and "finished" or "failed")
  -- what is still to be sent
  for _ = 1, 5 do listener.poll(20) end
  listener.close()
end

return live
