-- flight: the flight recorder of a run. A rollout is the same each time, so nothing is kept while a run goes on: when
-- its simulation has failed for good, it runs once more with the same parameters, up to the failure, and the last
-- states before it go into failure.bin. cqlua replay goes on from there.
local message = require "cq.base.message"
local option = require "cq.option"
local saved_runs = require "cq.saved.run"
local text = require "cq.base.text"
local T = require "cq.tensor"

local flight = {}

local STATES = 8                     -- that are kept, fewer where they are large
local BYTES = 64 * 2 ^ 20            -- of all of them at most

---What came before a simulation failed.
---@class cq.Failure
---@field problem string         what was said
---@field first integer          control step after which the first of the states is
---@field states { position: cq.Tensor, velocity: cq.Tensor, affine: cq.Tensor, deformation: cq.Tensor }[]   of all
--- particles, after one control step each
---@field signals cq.Tensor      {states, signals} of the control steps after each of them; the last is the one that failed
---@field before? cq.Tensor      {first, signals} of those from the start to the first state; nil: that is the start

-- A copy of a state: { position, velocity, affine (C), deformation (F) }, tensors that the tape does not follow.
local function state_of(state)
  return { position = state:positions():detach():copy(), velocity = state:velocities():detach():copy(),
    affine = state:gather(nil, "affine"):detach():copy(), deformation = state:deformations():detach():copy() }
end

-- How many states are kept: as many as fit into BYTES, from 2 to STATES.
local function count_of(state)
  local dim = state.world.dim
  local bytes = state.world.particle_count * (2 * dim + 2 * dim * dim) * 8
  return math.max(2, math.min(STATES, math.floor(BYTES / bytes)))
end

-- Simulates again up to the failure: { problem: its sentence, first: control step of the first kept state, states: the
-- last ones (state_of), signals {steps, signals} of the control steps from there on, before {first, signals} those
-- until then or nil }; nil and why: it did not fail this time, before its first state, or without void particles of a
-- design, so that its states are not of all particles.
local function fly(experiment)
  local states, last, most = {}, nil, nil
  local fine, problem = pcall(T.tape.pause, experiment.rollout, experiment, experiment.params, {
    on_step = function(state)
      most = most or count_of(state)
      states[#states + 1], last = state_of(state), state
      if #states > most then table.remove(states, 1) end
    end,
  })
  if fine or not tostring(problem):find("the simulation failed at", 1, true) then
    return nil, "the simulation with the last parameters, without variants, does not fail again"
  end
  if not last then return nil, "the simulation fails before its first state" end
  if last.world.part_of then return nil, "void of the design had failed too, and is not in them" end
  local first = last.step - #states + 1
  -- The signals of control steps from `from` to `to`, a row each.
  local function signals(from, to)
    local rows = {}
    for k = from, to do rows[#rows + 1] = last.roll.keep:signals_at(k):detach():copy() end
    return T.stack(rows, 1)
  end
  return { problem = tostring(problem):gsub("^.-: (the simulation)", "%1"), first = first, states = states,
    signals = signals(first, last.step), before = first > 0 and signals(0, first - 1) or nil }
end

---When a simulation has failed: runs it again, of several scenes one after another until one fails, and saves its last
---states in the run's folder. Other errors are passed over, and an error in here never hides the first one.
---@param folder cq.Run
---@param experiment cq.Experiment
---@param problem any         that was raised
function flight.record(folder, experiment, problem)
  if option.program.follows or not tostring(problem):find("the simulation failed at", 1, true) then return end
  local fine, why = pcall(function()
    local scenes, reason = experiment.scenes and experiment.scenes.count or 1, nil
    for k = 1, scenes do
      local one = experiment.scenes and experiment:scene(k) or experiment
      local failure, none = fly(one)
      reason = none or reason
      if failure then
        saved_runs.write_failure(folder, T.leaves.snapshot(one.params), one, failure)
        message.note("the last %s before the failure are in %s; cqlua replay %s goes on from there",
          text.count(#failure.states, "state"), folder:path(saved_runs.failure_name), folder.folder)
        return
      end
    end
    message.note("the states before the failure are not kept: %s", reason)
  end)
  if not fine then message.note("the states before the failure could not be kept: %s", tostring(why)) end
end

return flight
