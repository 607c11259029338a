-- work: work of the actuators in each control step of a rollout, for each signal [energy]. A signal is held over a
-- control step, so that the work follows from the states before and after it:
--
--   a stress a S in the material frame   -V a S : (E' - E), E = (F^T F - 1) / 2 of each particle
--   a pressure p in a closed cavity      p (V' - V), V its volume
--   a cable of free length r             k/2 <L - r>^2 - k/2 <L' - r>^2, what its spring gives   (E67)
--
-- A stress is within the body, and gives where the body follows it: one that pulls, where the body contracts. After
-- each control step a row is kept: the displacement of each engine signal (the sum of -V S : E, V or L) and the
-- engine's signal itself. So the rows have adjoints as a record has.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local surface = require "cq.actuator.surface"

local work = {}

-- ---- what can be told -----------------------------------------------------------------------------------------------

-- The tensor of a field of particles, actuation entries or cables in a rollout: as set for it, else the world's own.
local function value(roll, name)
  local set = roll.set[name]
  return set and set.tensor or roll.world.layout.base[name]
end

---Raises an error if the work of an actuator does not follow from the states at both ends of a control step (forces of
---the user's, open surfaces, cables with friction), or if no actuator has a signal.
---@param roll cq.Rollout
function work.check(roll)
  local what, layout = "world:rollout: work = true", roll.world.layout
  if layout.signal_count == 0 then is.fail("%s, but the robots of the world have no actuators with a signal", what) end
  if #layout.force.actuators > 0 then
    is.fail("%s is of actuators of cq.Actuator; the work of a force of your own is its product with the way that it makes: record it", what)
  end
  for _, entry in ipairs(layout.surface.list) do
    if not entry.surface.chamber then
      is.fail("%s: the surface \"%s\" under pressure is open, and has no volume that would tell its work", what,
        entry.surface.name)
    end
  end
  local friction = #layout.cable.list > 0 and value(roll, "cable_friction")
  if friction and friction:max():item() > 0 then
    is.fail("%s: a cable has a friction of %s, which takes a part of what its spring gives", what,
      text.number(friction:max():item()))
  end
end

-- ---- displacements --------------------------------------------------------------------------------------------------

-- Component k, from 1, of the last dimension of a tensor, which loses that dimension.
local function at(t, k) return t:slice(k, k, -1):squeeze(-1) end

-- The actuation entries (particles of stress actuators) of a world, made once: { slot {entries}: index of its particle
-- in numbers, first, last: entries of each actuator, terms: for each i <= j { i, j, factor {entries}: coefficient of
-- C_ij in -S : C / 2 }, numbers: particles from 1, selection: of these }.
local function entries_of(world)
  local layout = world.layout
  if layout.work_entries then return layout.work_entries end
  local out, arrays, dim = { first = {}, last = {}, slot = {}, terms = {} }, layout.arrays, world.dim
  local numbers, of = {}, {}
  for e = 1, layout.stress.entry_count do
    local p, a = arrays.particle[e - 1] + 1, arrays.actuator[e - 1] + 1
    if not of[p] then numbers[#numbers + 1], of[p] = p, #numbers + 1 end
    out.slot[e], out.first[a], out.last[a] = of[p], out.first[a] or e, e
  end
  for i = 1, dim do
    for j = i, dim do
      local list = {}
      for e = 1, layout.stress.entry_count do
        local s = arrays.direction + arrays.actuator[e - 1] * dim * dim
        local both = s[(i - 1) * dim + j - 1] + s[(j - 1) * dim + i - 1]
        list[e] = (i == j and -0.25 or -0.5) * both
      end
      out.terms[#out.terms + 1] = { i = i, j = j, factor = T.tensor(list) }
    end
  end
  out.numbers, out.selection = numbers, world:remember_selection(numbers)
  layout.work_entries = out
  return out
end

-- For each actuation entry -V w S : E in a state, {entries} or {batch, entries}: volume, weight, stress direction S and
-- Green strain E of its particle.
local function of_entries(state)
  local world, dim = state.world, state.world.dim
  local plan, sum = entries_of(world), nil
  local f = state:gather(plan.selection, "deformation")
  local shape = f:shape()
  shape[#shape] = nil
  shape[#shape] = dim * dim
  f = f:reshape(shape)
  for _, term in ipairs(plan.terms) do
    local c
    for k = 0, dim - 1 do
      local product = at(f, k * dim + term.i) * at(f, k * dim + term.j)
      c = c and c + product or product
    end
    local part = (term.i == term.j and c - 1 or c):gather(plan.slot, -1) * term.factor
    sum = sum and sum + part or part
  end
  local volume = value(state.roll, "volume"):gather(plan.numbers, -1):gather(plan.slot, -1)
  return sum * volume * value(state.roll, "actuation_weight")
end

-- The length of a cable's path in a state, a tensor of rank 0, or {batch}; nil for a path of one point. x: positions
-- {n, dim} or {batch, n, dim}; entry: { cable, robot }.
local function length_of(x, entry)
  local length, before
  for _, point in ipairs(entry.cable.points) do
    local numbers = {}
    for k, p in ipairs(point.index or {}) do numbers[k] = entry.robot.first + p + 1 end
    local here = point.anchor and T.tensor(point.anchor) or x:gather(numbers, -2):mean(-2)
    if before then
      local part = (here - before):square():sum(-1):sqrt()
      length = length and length + part or part
    end
    before = here
  end
  return length
end

-- The displacement that works against each signal of the engine in a state, {n} or {batch, n}, in the unit of its
-- actuator: strain times volume, length of a cable, volume of a chamber.
local function displacements(state)
  local layout, out = state.world.layout, {}
  local sums = layout.stress.entry_count > 0 and of_entries(state)
  local plan = sums and entries_of(state.world)
  for a in pairs(sums and plan.first or {}) do out[a] = sums:slice(plan.first[a], plan.last[a], -1):sum(-1) end
  local x = #layout.cable.list > 0 and state:positions()
  for _, entry in ipairs(layout.cable.list) do out[entry.actuator + 1] = length_of(x, entry) end
  for _, entry in ipairs(layout.surface.list) do out[entry.actuator + 1] = surface.volume_of(state, entry) end
  local shape = state.batched and { state.batch } or {}
  for a = 1, #layout.stress.stresses do out[a] = (out[a] or T.zeros(shape)):expand(shape):unsqueeze(-1) end
  return T.concat(out, -1)
end

-- ---- rows -----------------------------------------------------------------------------------------------------------

---The row that is kept after a control step, from which work.of computes the work: the displacements, then the
---engine's signals. n: number of the engine's signals.
---@param state cq.State
---@param signals cq.Tensor  {signals} or {batch, signals}
---@return cq.Tensor      {2 n} or {batch, 2 n}
function work.row(state, signals)
  local engine_signals = {}
  for a, stress in ipairs(state.world.layout.stress.stresses) do
    engine_signals[a] = signals:slice(stress.signal + 1, stress.signal + 1, -1) * stress.scale + stress.shift
  end
  return T.concat({ displacements(state), T.concat(engine_signals, -1) }, -1)
end

-- The energy of a cable's spring, a tensor {steps} or {steps, batch}, at these lengths and engine signals. c: number of
-- the cable in the world; entry: { cable }.
local function spring(roll, c, entry, length, engine_signal)
  local actuator = entry.cable.actuator
  -- The value of a field of cables in this rollout for cable c.
  local function of_cable(name) return value(roll, name):slice(c, c, -1) end
  local free = (of_cable "cable_length" * (engine_signal * actuator.slope + actuator.offset)):relu()
  return of_cable "cable_stiffness" * (length - free):relu():square() * 0.5
end

---The work of each signal in each control step [energy], from all rows of work.row.
---@param roll cq.Rollout
---@param rows cq.Tensor     {steps, 2 n} or {steps, batch, 2 n}
---@return cq.Tensor         {steps, signals} or {steps, batch, signals}
function work.of(roll, rows)
  local layout, steps = roll.world.layout, roll.steps
  local count, cable_of, by_signal = #layout.stress.stresses, {}, {}
  for c, entry in ipairs(layout.cable.list) do cable_of[entry.actuator + 1] = { c = c, entry = entry } end
  local after, start = rows:slice(1, count, -1), displacements(roll:start()):unsqueeze(1)
  local before = steps > 1 and T.concat({ start, after:slice(1, steps - 1, 1) }, 1) or start
  for a, stress in ipairs(layout.stress.stresses) do
    local engine_signal = rows:slice(count + a, count + a, -1)
    local from, to, cable = before:slice(a, a, -1), after:slice(a, a, -1), cable_of[a]
    local done = cable and spring(roll, cable.c, cable.entry, from, engine_signal)
      - spring(roll, cable.c, cable.entry, to, engine_signal) or engine_signal * (to - from)
    local signal = stress.signal + 1
    by_signal[signal] = by_signal[signal] and by_signal[signal] + done or done
  end
  return T.concat(by_signal, -1)
end

return work
