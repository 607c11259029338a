-- control: the part of a control step in Lua: observer, controller, force actuators, and the record of them for the
-- backward pass.
local ffi = require "ffi"
local is = require "cq.base.schema"
local capacity = require "cq.base.capacity"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local storage = require "cq.tensor.storage"
local tree = require "cq.rollout.tree"
local controllers = require "cq.controller"
local observers = require "cq.observer"

local C = require("cq.base.engine").C

local control = {}

local DOUBLE = ffi.sizeof "double"

---Has a tensor one number for each scene of a rollout's batch?
function control.is_by_scene(tensor, roll) return roll.batched and tensor.rank == 1 and tensor.count == roll.batch end

---Has a tensor one number, or one for each scene of a rollout's batch?
function control.is_scalar(tensor, roll) return tensor.count == 1 or control.is_by_scene(tensor, roll) end

-- Inserts the batch, if there is one, as the first dimension of a shape, in place; returns the shape.
local function by_scene(roll, shape)
  if roll.batched then table.insert(shape, 1, roll.batch) end
  return shape
end

-- Signals {signals} by which no actuator acts: 0, and -1 of muscles and cables that pull or shorten by (1 + u) / 2.
local function rest_signals(world)
  local out = T.zeros { world.actuator_count }
  for _, stress in ipairs(world.layout.stress.stresses) do
    if stress.shift ~= 0 then out:set(-stress.shift / stress.scale, stress.signal + 1) end
  end
  return out
end

---Takes observer and controller from the rollout's definition: sets observer, controller, forces and signal_count.
---Errors: a controller for robots without actuators; more signals than memory holds.
function control.prepare(self, def)
  self.observer = def.observer and observers.of(def.observer, "world:rollout") or nil
  self.controller = def.controller and controllers.of(def.controller, "world:rollout") or nil
  self.forces = self.world.layout.force.actuators
  self.signal_count = self.world.actuator_count
  capacity.require(self.steps * self.batch * self.signal_count, ("world:rollout: %s in %s of %s"):format(
    text.count(self.signal_count, "signal"), text.count(self.steps, "control step"), text.count(self.batch, "scene")))
  if self.controller and self.signal_count == 0 then
    is.fail("world:rollout: a controller is given, but the robots of the world have no actuators")
  end
  if self.controller and self.controller.check_rollout then
    self.controller = self.controller:check_rollout(self) or self.controller
  end
end

---The hidden state { observer, controller } before the first control step: memories from the rollout that is
---continued, or from the start methods; nil for one without memory.
function control.start(self)
  local memory = self.continues and self.continues.memory or {}
  local hidden = { observer = memory.observer, controller = memory.controller }
  self.at = nil
  if self.observer and self.observer.start and hidden.observer == nil then
    self.phase = "the start of the observer"
    hidden.observer = self.observer:start(self.world, self.batch)
  end
  if self.controller and self.controller.start and hidden.controller == nil then
    self.phase = "the start of the controller"
    hidden.controller = self.controller:start()
  end
  self.phase = nil
  return hidden
end

-- Must the observer see every state in order to learn from it, even if the controller needs no observation?
local function collects(observer)
  return observer ~= nil and observer.family == "autoencoder" and observer.collect > 0
end

---Are all signals known before the first control step, because nothing that drives the robots reads the state? Not if
---a user has replaced a controller's act.
function control.is_blind(self)
  if #self.forces > 0 or collects(self.observer) then return false end
  if self.controller then return self.controller.blind == true and rawget(self.controller, "act") == nil end
  return self.observer == nil
end

---Does observer or controller carry a memory to the next control step?
function control.carries(hidden) return hidden.observer ~= nil or hidden.controller ~= nil end

-- ---- signals --------------------------------------------------------------------------------------------------------

-- Returns a tensor of signals, or of observations (`noun`); raises an error with the first number that is not finite.
local function check_finite(values, noun)
  if values:finite() then return values end
  local data, at = values:data(), 0
  while data[at] - data[at] == 0 do at = at + 1 end
  noun = noun or "signal"
  local width = values.rank > 0 and values:size(-1) or 1
  is.fail("%s %d is %s; %ss must be finite", noun, at % width + 1, text.number(data[at]), noun)
end

---Raises the controller's error if the kept signals of control step i are not finite.
function control.require_finite(self, i)
  if i >= self.steps then return end
  self.at, self.phase = i, "the controller"
  check_finite(self.keep:signals_at(i))
  self.phase = nil
end

-- Checks the signals that a controller returned, and returns them as {signals} or {batch, signals}. Errors: another
-- shape; not finite. observation: what it was given, for errors.
local function check_signals(self, signals, observation)
  local k, batch, batched = self.signal_count, self.batch, self.batched
  local is_row = T.is_tensor(signals) and signals.rank == 1 and signals.count == k
  if is_row and not batched then return check_finite(signals) end
  if type(signals) ~= "number" and type(signals) ~= "table" then
    is.fail("the controller must give %d signal%s as a tensor, got %s", k, k == 1 and "" or "s", text.describe(signals))
  end
  signals = T.as_tensor(signals, "the controller's signals")
  local shape = signals:shape()
  if signals.rank == 0 and k == 1 then
    signals = signals:reshape { 1 }
  elseif signals.rank == 2 and not batched and shape[1] == 1 and shape[2] == k then
    signals = signals:reshape { k }
  elseif not (signals.rank == 1 and shape[1] == k
    or batched and signals.rank == 2 and shape[1] == batch and shape[2] == k) then
    is.fail("the controller must give signals of shape {%d}%s, one for each actuator signal, got {%s}%s", k,
      batched and (" or {%d, %d}"):format(batch, k) or "", table.concat(shape, ", "),
      observation and (" of observations {%s}"):format(table.concat(observation:shape(), ", ")) or "")
  end
  if batched and signals.rank == 1 then signals = signals:unsqueeze(1):expand { batch, k } end
  return check_finite(signals)
end

-- Does the user's method force(self, signals, positions, velocities) take velocities as well?
local function wants_velocity(f)
  if type(f) ~= "function" then return false end
  local info = debug.getinfo(f, "u")
  return info.isvararg or (info.nparams or 4) >= 4
end

-- Forces of one force actuator {k, dim} or {batch, k, dim} on its k particles. Errors: another shape; not finite.
-- force: an entry of layout.force.actuators.
local function force_of(force, signals, state)
  local own
  if force.signals > 0 then own = signals:slice(force.first + 1, force.first + force.signals, -1) end
  local x = state:gather(force.selection)
  local v = wants_velocity(force.actuator.force) and state:gather(force.selection, "velocity") or nil
  local f = force.actuator:force(own, x, v)
  if type(f) ~= "number" and type(f) ~= "table" then is.fail("force must give a tensor, got %s", text.describe(f)) end
  f = T.as_tensor(f, "force")
  local want, got = x:shape(), f:shape()
  local same = #want == #got
  for k, size in ipairs(want) do same = same and got[k] == size end
  if not same then
    is.fail("force must give a tensor {%s}, as its particles, got {%s}", table.concat(want, ", "),
      table.concat(got, ", "))
  end
  if not f:finite() then is.fail("force gave a number that is not finite") end
  return f
end

-- Raises an error for an observation {batch}: one number of each scene, which controllers would take for as many that
-- all scenes share.
local function require_rows(self, observation)
  local batch = self.batch
  if not (self.batched and batch > 1 and observation.rank == 1 and observation.count == batch) then return end
  is.fail("the observer must give {%d, numbers}, a row for each scene, got {%d}: give z:unsqueeze(2) for one number of each scene, z:unsqueeze(1):expand { %d, %d } for numbers that all scenes share",
    batch, batch, batch, batch)
end

---Asks observer and controller for the signals in a state, those of no effect without a controller; and their memories
---after it.
---Errors: numbers that are not finite, or of another shape.
---@return cq.Tensor signals         {signals} or {batch, signals}
---@return table hidden        for the next step
function control.answer(self, state, hidden)
  local after, controller = {}, self.controller
  local observation, signals
  if self.observer and (collects(self.observer) or not (controller and controller.blind)) then
    self.phase = "the observer"
    observation, after.observer = self.observer:observe(state, hidden.observer)
    check_finite(observation, "observation")
    require_rows(self, observation)
  end
  if controller then
    self.phase = "the controller"
    signals, after.controller = controller:act(observation, hidden.controller, state.time, state.step + 1)
    signals = check_signals(self, signals, observation)
  else
    self.rest = self.rest or rest_signals(self.world):expand(by_scene(self, { self.signal_count })):copy()
    signals = self.rest
  end
  self.phase = nil
  return signals, after
end

---The Lua part of one control step: signals, memories and forces in a state, on the tape if one records.
---@return cq.Tensor signals         {signals} or {batch, signals}
---@return table hidden        for the next step
---@return cq.Tensor[] forces  of each force actuator
function control.step(self, state, hidden)
  local signals, after = control.answer(self, state, hidden)
  return signals, after, control.forces(self, state, signals)
end

---Forces of each force actuator in a state. begun: their forces at the beginning of the control step; with them only
---actuators that act on every engine step are called again.
---@param signals cq.Tensor
---@param begun? cq.Tensor[]
---@return cq.Tensor[]
function control.forces(self, state, signals, begun)
  local forces = {}
  for k, force in ipairs(self.forces) do
    self.phase = ("force actuator %d"):format(k)
    forces[k] = begun and force.per_control_step and begun[k] or force_of(force, signals, state)
  end
  self.phase = nil
  return forces
end

---The user's cost of all signals {steps, signals} or {steps, batch, signals}. Errors: the user's function returns no
---number, or not one for each scene.
---@return cq.Tensor           one number, or {batch}
function control.effort(self, signals)
  self.phase, self.at = "effort", nil
  local cost = self.effort_cost(signals)
  if type(cost) ~= "number" and not T.is_tensor(cost) then
    is.fail("effort must give one number, got %s", text.describe(cost))
  end
  cost = T.as_tensor(cost)
  if not control.is_scalar(cost, self) then
    is.fail("effort must give one number%s, got a tensor {%s}", self.batched
      and (", or {%d} for the scenes of the batch"):format(self.batch) or "",
      table.concat(cost:shape(), ", "))
  end
  self.phase = nil
  return cost
end

-- ---- what a run keeps for the backward pass -------------------------------------------------------------------------

---@class cq.Keep
local Keep = {}
Keep.__index = Keep

---A new store for one run of a rollout: the signals of all control steps and, if the run is differentiable, the forces
---and hidden states that the backward pass needs beside the engine's memo. Does not change the rollout.
---@param self cq.Rollout
---@param differentiable boolean
---@return cq.Keep
function control.keep(self, differentiable)
  local layout, signals = self.world.layout, self.steps * self.batch * self.signal_count
  local force_width = layout.force.count * self.world.dim
  capacity.require(signals, ("world:rollout: the signals of %d control steps"):format(self.steps))
  local out = {
    batch = self.batch, batched = self.batched,
    steps = self.steps, pieces = self.world.pieces, width = self.signal_count,
    shape = by_scene(self, { self.signal_count }),
    stresses = layout.stress.stresses,
    force_width = force_width, forces = self.forces, dim = self.world.dim, differentiable = differentiable, hidden = {},
    signals = storage.zeros(math.max(signals, 1)), engine_steps = 0,
    is_idle = self.controller == nil,         -- the engine has signals of no effect then, and nobody gave them
  }
  -- the engine's memo keeps the forces of all steps; forward only, one step's are enough
  if force_width > 0 then
    out.f = differentiable and C.cq_rollout_forces(self.handle) or ffi.new("double[?]", self.batch * force_width)
  end
  return setmetatable(out, Keep)
end

-- A tensor without gradient history.
local function plain(tensor) return tensor:detach() end

---Keeps the hidden state before control step i, without gradient history, if there is any and the run is
---differentiable.
function Keep:save_hidden(i, hidden)
  if self.differentiable and control.carries(hidden) then
    self.hidden[i] = tree.map(hidden, "the hidden state", plain)
  end
end

---Keeps the signals {signals} or {batch, signals} of control step i, and the list of forces at its beginning.
function Keep:save(i, signals, forces)
  local count = self.batch * self.width
  if count > 0 then ffi.copy(self.signals + i * count, signals:data(), count * DOUBLE) end
  self.forces_now = forces
  self:save_forces(i * self.pieces, forces)
end

-- Overwrites `total`, double {batch, force particles, dim}, by the sums over all actuators of `forces`, a list of
-- tensors, one for each actuator.
local function add_up(self, total, forces)
  ffi.fill(total, self.batch * self.force_width * DOUBLE)
  for k, force in ipairs(self.forces) do
    local f, at = forces[k]:data(), 0
    for b = 0, self.batch - 1 do
      for p = 0, force.count - 1 do
        local to = b * self.force_width + force.slots[p] * self.dim
        for d = 0, self.dim - 1 do
          total[to + d] = total[to + d] + f[at]
          at = at + 1
        end
      end
    end
  end
end

---Overwrites the kept forces on each particle at engine step `step` by the sums over all actuators. forces: a list of
---tensors, one for each actuator.
function Keep:save_forces(step, forces)
  if self.f then add_up(self, self:engine_forces(step), forces) end
end

---The adjoint of save_forces: gradients of each actuator's forces {count, dim} or {batch, count, dim}, from the
---engine's gradient, double {batch, force particles, dim}.
---@return cq.Tensor[]
function Keep:spread_forces(grad)
  local out = {}
  for k, force in ipairs(self.forces) do
    out[k] = T.empty(by_scene(self, { force.count, self.dim }))
    local g, at = out[k]:data(), 0
    for b = 0, self.batch - 1 do
      for p = 0, force.count - 1 do
        local from = b * self.force_width + force.slots[p] * self.dim
        for d = 0, self.dim - 1 do
          g[at] = grad[from + d]
          at = at + 1
        end
      end
    end
  end
  return out
end

---The signals of the engine's stress actuators, with their scale and shift: double {count, batch, stresses} at `count`
---engine steps from `step` on, in a buffer that the next call overwrites.
function Keep:engine_signals(step, count)
  local stresses, rows = self.stresses, count * self.batch
  if self.engine_steps < count then
    self.engine_buffer, self.engine_steps = ffi.new("double[?]", math.max(rows * #stresses, 1)), count
  end
  local out, at = self.engine_buffer, 0
  for k = 0, rows - 1 do
    local control_step, row = math.floor((step + math.floor(k / self.batch)) / self.pieces), k % self.batch
    local signals = self.signals + control_step * self.batch * self.width
    for a = 1, #stresses do
      local stress = stresses[a]
      out[at] = stress.scale * signals[row * self.width + stress.signal] + stress.shift
      at = at + 1
    end
  end
  return out
end

---The adjoint of engine_signals at one control step: adds the engine's gradient, double {batch, stresses}, to the
---gradient of the controller's signals, double {batch, signals}, in place.
function Keep:add_signals(grad, engine_grad)
  local count = #self.stresses
  for b = 0, self.batch - 1 do
    for a = 1, count do
      local stress = self.stresses[a]
      local to = b * self.width + stress.signal
      grad[to] = grad[to] + stress.scale * engine_grad[b * count + a - 1]
    end
  end
end

---Pointer to the forces, double {batch, force particles, dim}, at an engine step; nil without force actuators. If the
---run is not differentiable, all steps share one buffer.
function Keep:engine_forces(step)
  if not self.f then return nil end
  return self.f + (self.differentiable and step or 0) * self.batch * self.force_width
end

-- Are `count` numbers, double, the same?
local function are_same(a, b, count)
  for k = 0, count - 1 do
    if a[k] ~= b[k] and (a[k] == a[k] or b[k] == b[k]) then return false end
  end
  return true
end

---Are these, a tensor, the signals of control step i, number for number?
function Keep:are_signals(i, signals)
  return are_same(signals:data(), self.signals + i * signals.count, signals.count)
end

---Do these forces, a list of tensors, one for each actuator, add up to those kept at the beginning of control step i?
function Keep:are_forces(i, forces)
  if not self.f then return true end
  local count = self.batch * self.force_width
  self.other_forces = self.other_forces or ffi.new("double[?]", count)
  add_up(self, self.other_forces, forces)
  return are_same(self.other_forces, self:engine_forces(i * self.pieces), count)
end

---Is this the kept memory of "observer" or "controller" before control step i?
---@param i integer
---@param who "observer"|"controller"
---@param memory any
---@return boolean
function Keep:is_memory(i, who, memory)
  local kept = self.hidden[i] and self.hidden[i][who]
  local new, old = tree.flatten(memory, "the hidden state"), tree.flatten(kept, "the hidden state")
  local same = #new == #old
  for k = 1, same and #new or 0 do
    same = same and new[k].count == old[k].count and are_same(new[k]:data(), old[k]:data(), new[k].count)
  end
  return same
end

---The row of control step i of double {steps, batch, signals} as a new tensor {signals} or {batch, signals}.
function Keep:row(all, i)
  local out = class.make(self.shape)
  if out.count > 0 then ffi.copy(out:data(), all + i * out.count, out.count * DOUBLE) end
  return out
end

---The signals that the controller gave in control step i, zeros without one, as a new tensor {signals} or {batch,
---signals}.
function Keep:signals_at(i)
  if self.is_idle then return T.zeros(self.shape) end
  return self:row(self.signals, i)
end

---Those of all control steps, {steps, signals} or {steps, batch, signals}.
function Keep:all_signals()
  if self.is_idle then return T.zeros { self.steps, unpack(self.shape) } end
  local out = T.empty { self.steps, unpack(self.shape) }
  if out.count > 0 then ffi.copy(out:data(), self.signals, out.count * DOUBLE) end
  return out
end

return control
