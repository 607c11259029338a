-- failure: the last states before a simulation failed, run again from the first of them (failure.bin of a run).
local host = require "cq.host"
local is = require "cq.base.schema"
local load = require("cq").load
local runs = require "cq.saved.run"
local T = require "cq.tensor"

local failure = {}

-- functions of time that were sampled at control steps begin later
local function later(data, steps)
  if type(data) ~= "table" or T.is_tensor(data) then return end
  for _, value in pairs(data) do
    if type(value) == "table" and T.is_tensor(value.samples) then
      value.samples = value.samples:slice(math.min(steps + 1, value.samples:size(1)), value.samples:size(1), 1):copy()
    end
    later(value, steps)
  end
end

---Has a folder what comes before a failure?
---@param folder string
---@return boolean
function failure.is_in(folder) return host.kind(folder .. "/" .. runs.failure_name) == "file" end

---A world, its robots as they were some control steps before the failure, and the signals since.
---Errors: a folder without a failure; a file that is damaged; a robot that only its script can make.
---@param folder string
---@return { world: cq.World, robots: cq.Robot[], signals: cq.Tensor, failure: cq.Failure, saved: cq.Saved }
function failure.load(folder)
  local path = folder .. "/" .. runs.failure_name
  if not failure.is_in(folder) then is.fail("cqlua replay: %s has no %s: its simulation did not fail", folder, runs.failure_name) end
  local saved = load(path)
  local found = type(saved.data) == "table" and saved.data.failure
  if type(found) ~= "table" or type(found.states) ~= "table" or not T.is_tensor(found.signals) then
    is.fail("cqlua replay: %s is damaged: it has no states", path)
  end
  later(saved.data.world, found.first)
  local world = require "cq.world"(saved.world)
  local robots, state = {}, found.states[1]
  for k, robot in ipairs(world.robots) do
    local own = {}
    for name, values in pairs(state) do
      own[name] = values:slice(robot.first + 1, robot.first + robot.particle_count, 1):copy()
    end
    robots[k] = robot:with(own)
  end
  return { world = world, robots = robots, signals = found.signals, failure = found, saved = saved }
end

---Runs on from the first saved state and calls tell at each control step; returns the error, nil where it does not
---fail.
---@param found table         of failure.load
---@param tell fun(step: integer, time: number, speed: number, least: number, most: number)   largest speed, least and largest J
---@return string? problem
function failure.run(found, tell)
  local world, first = found.world, found.failure.first
  local fine, problem = pcall(T.tape.pause, world.rollout, world, {
    robot = found.robots, steps = found.signals:size(1),
    controller = found.signals:size(2) > 0 and require "cq.controller".open_loop(found.signals) or nil,
    on_step = function(state)
      local jacobian = state:gather(nil, "jacobian")
      tell(first + state.step, first * world.control_dt + state.time, state:gather(nil, "speed"):max():item(),
        jacobian:min():item(), jacobian:max():item())
    end,
  })
  if fine then return nil end
  return (tostring(problem):gsub("^.-: (the simulation)", "%1"))
end

return failure
