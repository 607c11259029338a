-- replay: trained robots that come with the program: what each does beside what it is claimed to do, and a film.
--   cqlua replay                      what there is
--   cqlua replay biped                runs it again, prints its figure, and draws runs/replay/biped.mp4
--   cqlua replay runs/walk            a run that failed: its last states before, run again, and runs/walk/failure.mp4
--   cqlua replay NAME --keep DIR      puts the best of a run's folder into zoo/NAME.bin, an entry of zoo/index.lua
-- The exit code is 1 where a figure is not the claimed one.
local host = require "cq.host"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"

local TOLERANCE = 0.2          -- share of the claimed figure

-- Prints the zoo's robots in columns.
local function list(zoo)
  for _, entry in ipairs(zoo.entries()) do
    print(("%-12s %s; cqlua %s"):format(entry.name, entry.says:format(entry.claimed), entry.made))
  end
end

-- Runs a robot of the zoo and prints its figure beside the claimed one. Returns whether they agree, which chaotic gaits
-- on other machines do not, and the saved run, a cq.Saved.
local function replay(zoo, entry)
  local figure, saved = zoo.measure(entry)
  local claimed = entry.says:match("%%[%d.]*f"):format(entry.claimed)
  print(("%s: %s; claimed %s (cqlua %s)"):format(entry.name, entry.says:format(figure), claimed, entry.made))
  return math.abs(figure - entry.claimed) <= TOLERANCE * math.abs(entry.claimed), saved
end

-- Renders a trained robot of the zoo as a video in the folder of --out, else runs/replay.
local function film(entry, saved)
  local folder = option.program.out or "runs/replay"
  require("cq.run.folder").make(folder)
  saved.made_world:render(("%s/%s.mp4"):format(folder, entry.name), {
    steps = saved.steps, controller = saved.controller, observer = saved.observer,
  })
end

-- Renders the last control steps before a failed simulation, which its run has saved, as failure.mp4 of two seconds in
-- the run's folder.
local function film_of_failure(folder, found)
  local steps = #found.failure.states - 1
  if steps < 1 then return end
  require("cq.measure.failure").rollout(found, steps):render(folder .. "/failure.mp4", { colour = "speed",
    speed = steps * found.world.control_dt / 2 })
end

-- Runs the recorded end of a failed simulation again, and prints it step by step.
local function replay_failure(folder, options)
  local failures = require "cq.measure.failure"
  local found = failures.load(folder)
  print(("%s failed: %s"):format(folder, found.failure.problem))
  print "control step      time   max speed     min J     max J"
  local problem = failures.run(found, function(step, time, speed, least, most)
    print(("%12d  %8.4g  %10.4g  %8.4g  %8.4g"):format(step, time, speed, least, most))
  end)
  print(problem and "again: " .. problem
    or "it does not fail again from these states: the failure hangs on the last bits")
  if options.render ~= "no" then film_of_failure(folder, found) end
end

return {
  summary = "trained robots that come with the program, or a run's failure, run again and filmed",
  arguments = "[NAME|RUN]",
  options = {
    keep = is.string { optional = true, help = "a run's folder, whose best takes the place of NAME" },
    render = is.one_of { "yes", "no", default = "yes", help = "no: without the film" },
  },
  -- The subcommand: lists the zoo, keeps a robot in it, or replays a robot or a failure. Returns the exit code; nil: 0.
  run = function(options, words)
    local zoo, name = require "cq.zoo", words[1]
    if #words > 1 then scripts.misuse("replay takes one name, got %s", table.concat(words, " ")) end
    if options.keep and not name then scripts.misuse "replay --keep needs the name that it is to have" end
    if options.keep then
      local path, bytes = zoo.keep(name, options.keep)
      return print(("%s: %d kB, from %s"):format(path, math.ceil(bytes / 1000), options.keep))
    elseif not name then
      return list(zoo)
    end
    if host.kind(name) == "folder" then return replay_failure(name:gsub("(.)/+$", "%1"), options) end
    local entry = zoo.entry(name)
    local as_claimed, saved = replay(zoo, entry)
    if options.render ~= "no" then film(entry, saved) end
    if as_claimed then return end
    message.warn("%s: not what is claimed, by more than %d %%", name, 100 * TOLERANCE)
    return 1
  end,
}
