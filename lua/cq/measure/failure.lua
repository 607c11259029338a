-- failure: the last states before a simulation failed, run again from the first of them (failure.bin of a run).
local host = require "cq.host"
local is = require "cq.base.schema"
local load = require("cq").load
local runs = require "cq.saved.run"
local text = require "cq.base.text"
local T = require "cq.tensor"

local failure = {}

-- Cuts the samples of functions of time within a saved world, nested tables, in place, so that they begin `steps`
-- control steps later.
local function later(data, steps)
  if type(data) ~= "table" or T.is_tensor(data) then return end
  for _, value in pairs(data) do
    if type(value) == "table" and T.is_tensor(value.samples) then
      value.samples = value.samples:slice(math.min(steps + 1, value.samples:size(1)), value.samples:size(1), 1):copy()
    end
    later(value, steps)
  end
end

-- A controller that replays recorded signals {steps, signals}; nil if the world has no signals.
local function replay(signals)
  return signals:size(2) > 0 and require "cq.controller".open_loop(signals) or nil
end

-- Runs all control steps from the start of a failed simulation to its first saved state, and returns the cq.State
-- there, since positions and velocities alone do not hold all of it: nodes of total Lagrangian steps, plastic strains,
-- walls that move. nil if that state is the start, on a GPU, or if this version of the program arrives at another
-- state. found: the record, failure.bin.
local function state_from_start(world, found)
  if not T.is_tensor(found.before) or world.device_kind ~= "cpu" then return nil end
  local fine, roll = pcall(T.tape.pause, world.rollout, world,
    { steps = found.first, controller = replay(found.before) })
  if fine and roll.state:positions():close(found.states[1].position, 1e-9, 1e-9 * world.dx) then return roll.state end
end

-- A list of the world's robots with a saved state: `state` has tensors {n, ...} of all particles by the names position,
-- velocity, affine and deformation.
local function robots_of(world, state)
  local robots = {}
  for k, robot in ipairs(world.robots) do
    local own = {}
    for name, values in pairs(state) do
      own[name] = values:slice(robot.first + 1, robot.first + robot.particle_count, 1):copy()
    end
    robots[k] = robot:with(own)
  end
  return robots
end

---Has a run's folder the record of a failed simulation (failure.bin)?
---@param folder string
---@return boolean
function failure.is_in(folder) return host.kind(folder .. "/" .. runs.failure_name) == "file" end

---Loads the world of a run's failed simulation, its first saved state, some control steps before the failure (from, or
---else robots), and the signals since. Errors: a folder without a failure; a file that is damaged; a robot that only
---its script can make.
---@param folder string
---@return { world: cq.World, from: cq.State?, robots: cq.Robot[]?, signals: cq.Tensor, failure: cq.Failure, saved: cq.Saved }
function failure.load(folder)
  local path = folder .. "/" .. runs.failure_name
  if not failure.is_in(folder) then
    is.fail("cqlua replay: %s has no %s: no states before a failed simulation are kept there; cqlua report %s shows the run",
      folder, runs.failure_name, text.quoted(folder))
  end
  local saved = load(path)
  local found = type(saved.data) == "table" and saved.data.failure
  if type(found) ~= "table" or type(found.states) ~= "table" or not T.is_tensor(found.signals) then
    is.fail("cqlua replay: %s is damaged: it has no states", path)
  end
  local out = { world = require "cq.world"(saved.world), signals = found.signals, failure = found, saved = saved }
  out.from = state_from_start(out.world, found)
  if not out.from then
    later(saved.data.world, found.first)
    out.world = require "cq.world"(saved.world)
    out.robots = robots_of(out.world, found.states[1])
  end
  return out
end

---A rollout of the first `steps` control steps after the first saved state.
---@param found table         of failure.load
---@param steps integer
---@param on_step? fun(state: cq.State)
---@return cq.Rollout
function failure.rollout(found, steps, on_step)
  -- what goes on from a state counts control steps from the start on
  local signals = found.from and T.concat({ found.failure.before, found.signals }, 1) or found.signals
  return T.tape.pause(found.world.rollout, found.world, { from = found.from, robot = found.robots, steps = steps,
    controller = replay(signals), on_step = on_step })
end

---Runs on from the first saved state and calls tell at each control step; returns the error's text, with control steps
---counted from the start of the run; nil where it does not fail.
---@param found table         of failure.load
---@param tell fun(step: integer, time: number, speed: number, least: number, most: number)   largest speed, least and largest J
---@return string? problem
function failure.run(found, tell)
  local world, first = found.world, found.from and 0 or found.failure.first
  local fine, problem = pcall(failure.rollout, found, found.signals:size(1), function(state)
    local jacobian = state:gather(nil, "jacobian")
    tell(first + state.step, first * world.control_dt + state.time, state:gather(nil, "speed"):max():item(),
      jacobian:min():item(), jacobian:max():item())
  end)
  if fine then return nil end
  problem = tostring(problem):gsub("^.-: (the simulation)", "%1")
  problem = problem:gsub("control step (%d+)", function(step)
    return "control step " .. tonumber(step) + found.failure.first
  end, 1)
  if found.from then return problem end
  return (problem:gsub("%(time ([^,%)]+)", function(time)
    return ("(time %.4g"):format(tonumber(time) + first * world.control_dt)
  end, 1))
end

return failure
