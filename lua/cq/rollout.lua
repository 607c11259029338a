-- rollout: scenes through time, as one differentiable operation on the tape that records.
--
-- Forward, each control step: the observer sees the state, the controller answers with signals, force actuators with
-- forces, the engine makes its substeps, and running and record see the state after them. Nothing is recorded on the
-- way. Backward, from the last control step to the first: the engine restores the state, running and record of that
-- step run again on a tape of their own, the engine's adjoint makes the substeps backward, and observer and
-- controller run again to turn gradients of signals into gradients of weights. Memory is the engine's memo alone.
-- Where nobody in Lua sees the states between, all control steps are one call of the engine, forward and backward:
-- without observer, running, record and on_step, or with a network of cq.Controller that sees what one of cq.Observer
-- gives, which the engine evaluates by itself (engine_policy.lua). effort is a cost of the signals of all control
-- steps, asked once, and stops nothing.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local field = require "cq.base.field"
local fields = require "cq.rollout.fields"
local engine_policy = require "cq.rollout.engine_policy"
local memory = require "cq.rollout.memory"
local backward = require "cq.rollout.backward"
local assembly = require "cq.world.assembly"
local control = require "cq.rollout.control"
local continued = require "cq.rollout.continued"
local states = require "cq.state"
local contact = require "cq.rollout.contact"
local solver = require "cq.rollout.solver"
local gravity = require "cq.rollout.gravity"
local series = require "cq.rollout.series"
local wall_motion = require "cq.rollout.wall_motion"
local work = require "cq.rollout.work"
local tree = require "cq.rollout.tree"
local reverse = require "cq.rollout.adjoint"
local failures = require "cq.rollout.unstable"
local C, tape = engine.C, T.tape

---What world:rollout gives: the final state, and what was computed on the way, with gradients within a function of
---cq.value_and_grad. Its memory goes back to the world when it is collected, or at once with rollout:release().
---@class cq.Rollout
---@field state cq.State            the final one
---@field running cq.Tensor?        {steps} or {steps, batch}: what running gave after each control step
---@field record cq.Tensor?         {steps, ...} or {steps, batch, ...}
---@field effort cq.Tensor?         what effort gave: one number, or {batch}
---@field contact cq.Rollout.contact?       what walls and pins gave in each control step, where contact = true
---@field work cq.Tensor?           {steps, signals} or {steps, batch, signals}: what the actuators have done to the bodies in
---  each control step [energy], where work = true
---@field solver cq.SolverReport?         what implicit steps took, where the world makes them
---@field signals cq.Tensor         {steps, signals} or {steps, batch, signals}: what the controller gave, zeros without one; plain data
---@field steps integer             control steps
---@field batch integer             scenes
---@field world cq.World            that it ran in
local Rollout = { __name = "cq.Rollout", __recorded = function(roll) return roll.link or false end }
Rollout.__index = Rollout

-- set by a live page (report/live.lua): idle is called before each control step that Lua sees; watch(roll) returns an
-- on_step for a differentiable rollout that has none
local rollout = { class = Rollout, idle = false, watch = false }

-- The rollout in one line: "cq.Rollout { 10 control steps, 1 scene }".
function Rollout:__tostring()
  return ("cq.Rollout { %s, %s }"):format(text.count(self.steps, "control step"), text.count(self.batch, "scene"))
end

-- ---- the live state -------------------------------------------------------------------------------------------------

-- Makes control steps up to the state `step`, with the signals and forces in self.keep or by the engine's own network.
-- `step` may be a fraction where forces are evaluated at every engine step. Returns a cq_status.
local function make(self, step)
  local handle, keep = self.handle, self.keep
  local at = C.cq_rollout_at(handle)
  local count = self:engine_step(step) - at
  return self.engine_policy and self.engine_policy:forward(self, at, count)
    or C.cq_rollout_run(handle, count, keep:engine_signals(at, count), keep:engine_forces(at))
end

---The number of engine steps up to a control step `step`, which may be a fraction: `world.pieces` of them are one
---control step.
---@internal
function Rollout:engine_step(step) return math.floor(step * self.world.pieces + 0.5) end

-- The control step that the engine is at, from 0.
local function control_step_of(self) return math.floor(C.cq_rollout_at(self.handle) / self.world.pieces) end

-- Raises an error that explains a failed call of the engine, with the control step; does nothing for CQ_OK. status:
-- cq_status.
local function check(self, status)
  if status == C.CQ_OK then return end
  self.at, self.phase = control_step_of(self), nil
  failures.raise(self, status)
end

---Raises an error unless the engine is at this control step, so that its state can be read. After a backward pass the
---engine is at the start: for the final state it is then brought to the end again.
---@internal
---@param step integer    control step of the state
---@param what string     the function that reads it, for the message
function Rollout:require_live(step, what)
  if not self.handle then is.fail("%s: this rollout was released, or its world closed", what) end
  local at = C.cq_rollout_at(self.handle)
  if at == self:engine_step(step) then return end
  if step == self.steps and self.finished and not self.back then
    self.adjoint_begun = false
    local status = C.cq_rollout_return(self.handle)
    -- a backward pass that failed has left no state to return from
    if status == C.CQ_INVALID then status = continued.begin(self) end
    local short = status == C.CQ_OK and C.cq_rollout_at(self.handle) < self:engine_step(step)
    return check(self, short and make(self, step) or status)
  end
  is.fail("%s: this state is of control step %d and the rollout is at %d; read it inside the function that was given it, or use record", what,
    step, control_step_of(self))
end

---@internal
---Called before anything is added to the adjoint of one of the rollout's states: begins its backward pass, unless that
---has begun. Returns false where nothing may be added: the gradient is one within that of the rollout.
---Errors: the rollout still runs.
---@return boolean
function Rollout:ready_adjoint()
  if not (self.finished or self.back) then
    is.fail("world:rollout: no gradient of a state can be taken inside the rollout's own functions")
  elseif self.depth < tape.depth then
    tape.is_outside_reached = true
    return false
  elseif not self.back then
    self:begin_adjoint()
    self.link:accumulate(0)            -- it must be reversed even if only its final state was used
  end
  return true
end

---The adjoint of a readout of the state that the engine is at: adds the gradient by the readout's values.
---@internal
---@param def ffi.cdata*       cq_readout
---@param grad ffi.cdata*      double*
function Rollout:read_adjoint(def, grad)
  if not self:ready_adjoint() then return end
  engine.check(C.cq_rollout_read_adjoint(self.handle, def, grad), "world:rollout")
end

---Prepares the engine for a backward pass, once: says which gradients it is to compute.
---@internal
function Rollout:begin_adjoint()
  self:require_live(self.steps, "world:rollout")
  if self.adjoint_begun then return end
  C.cq_rollout_want(self.handle, fields.wanted(self.set) + series.wanted("wall_velocity", self.wall_motion)
    + series.wanted("gravity", self.gravity))
  engine.check(C.cq_rollout_begin_adjoint(self.handle), "world:rollout")
  self.adjoint_begun = true
end

---The norm of the derivative of the objective by the state after each control step, in the last backward pass: over
---positions, velocities, C, F and plastic state of all particles together, each in its unit. If it grows towards the
---start, early actions count for more, or act through chaotic motion.
---Errors: without a backward pass, and after release.
---@return cq.Tensor     {steps}, or {steps, batch}
function Rollout:adjoint_norms()
  if not self.handle then is.fail "rollout:adjoint_norms: this rollout was released, or its world closed" end
  if not self.reversed then is.fail "rollout:adjoint_norms: no backward pass has gone through this rollout" end
  return backward.norms(self)
end

---Gives the memory of the rollout back to the world now, instead of when it is collected as garbage. Afterwards the
---rollout's states cannot be read, and no gradients taken. Errors: from within the rollout's own functions.
function Rollout:release()
  if self.back or self.inside then is.fail("rollout:release: cannot be called from inside the rollout's own functions") end
  if self.entry then self.entry.owner[1] = nil end
  self.handle, self.entry = nil, nil
end

-- Is a rollout, nil: none, an operation on a tape that has not been reversed yet?
local function is_recorded(roll) return roll and roll.link ~= nil and roll.link.requires_grad end

---The initial state, with gradients as the final state has them; readable at any time. In a batch, of every scene.
---@return cq.State
function Rollout:start()
  -- one that was made on no tape, or on one that is gone, has no gradients
  if not self.started or tape.recording() and is_recorded(self) and not is_recorded(self.started) then
    if self.continues then self.beginning.from = continued.again(self).from end
    self.started = rollout.run(self.world, self.beginning)
    self.beginning.from = nil
  end
  return self.started.state
end

---@internal
---One scene of a batch as a rollout of its own, for functions of one scene.
---@param k integer        from 1
---@return cq.Rollout
function Rollout:scene(k) return require "cq.rollout.scene"(self, k) end

---Runs once more and draws it, as run:render does: a film, or a picture of the last state or of several moments. The
---controller and the observer have the parameters that they have now.
---@param path string        ends in .mp4, .mkv, .webm, .gif or .png; a name without a slash is in the run's folder
---@param options? rollout.render.def
---@return string? path      nil where nothing is drawn: with --render no, in cqlua check, on all ranks but the first
function Rollout:render(path, options) return Rollout._film(self, path, options) end

---Runs once more and writes all frames for other programs: { format = "vtp" } particles for ParaView, a file for each
---state with a list of them (frames.pvd); "ply", "obj" and "stl" a file each in a folder; "npz" one archive of arrays
---{frames, n, ...} with signals and wall forces; "csv" centres and velocities of groups, signals and wall forces, a row
---after each control step; "glb" one file of surfaces that move. A name without a slash is in the run's folder.
---Errors: those of state:save; a batch; too many frames for a glb.
---@param options rollout.export.def
---@return string path      of the file, of the list of files, or of their folder
function Rollout:export(options) return require("cq.rollout.export").rollout(self, options) end

---Runs once more and writes one HTML file that opens from disk, as run:report does. The controller and the observer
---have the parameters that they have now.
---@param path string        ends in .html; a name without a slash is in the run's folder
---@param options? rollout.report.def
---@return string? path      nil where none is written: with --render no, in cqlua check, on all ranks but the first
function Rollout:report(path, options) return Rollout._report(self, path, options) end

-- ---- forward --------------------------------------------------------------------------------------------------------

-- A shape, as "3, 2", in words: "{3, 2}", or "one number".
local function shape_told(dims) return dims == "" and "one number" or "{" .. dims .. "}" end

-- Raises an error about a result of running or record whose shape differs from that of earlier steps. dims, before: the
-- two shapes, joined by commas.
local function refuse_shape(self, name, dims, before)
  local by_scene = tostring(self.batch)
  local mixed = self.batched and (dims == "" and before == by_scene or dims == by_scene and before == "")
  is.fail("%s must give the same shape at every step, got %s after %s%s", name, shape_told(dims), shape_told(before),
    mixed and ("; what it reads of the state has a number for each scene of the batch: give {%s} at every step, as cq.zeros { %s } in the place of 0")
      :format(by_scene, by_scene) or "")
end

-- Copies the value of running or record, or the row of work, at step i into self.outputs[name], { tensor {steps, ...},
-- count: numbers of a step, dims: the shape of a step }. scalar: it must be one number, or one for each scene. Errors:
-- nil; another shape than before.
local function store(self, name, i, value, scalar)
  if value == nil then is.fail("%s gave nothing; it must give %s", name, scalar and "one number" or "a tensor") end
  if type(value) ~= "number" and type(value) ~= "table" then
    is.fail("%s must give %s, got %s", name, scalar and "one number" or "a tensor", text.describe(value))
  end
  local tensor = T.as_tensor(value, name)
  local shape = tensor:shape()
  if scalar and not control.is_scalar(tensor, self) then
    is.fail("%s must give one number%s, got a tensor {%s}%s", name, self.batched
      and (", or {%d} for the scenes of the batch"):format(self.batch) or "",
      table.concat(shape, ", "),
      self.batched and "; in a batch what is read of a state has the scenes as its first dimension" or "")
  end
  if scalar and not control.is_by_scene(tensor, self) then shape = {} end
  local all, dims = self.outputs[name], table.concat(shape, ", ")
  if not all then
    table.insert(shape, 1, self.steps)
    all = { tensor = T.empty(shape), count = tensor.count, dims = dims }
    self.outputs[name] = all
  end
  -- without a batch one number, alone or as {1}, is one number
  if dims ~= all.dims and (self.batched or tensor.count > 1 or all.count > 1) then
    refuse_shape(self, name, dims, all.dims)
  end
  ffi.copy(all.tensor:data() + i * all.count, tensor:data(), all.count * ffi.sizeof "double")
end

-- Calls the user's on_step with a state and the signals that led to it; signals: nil at the start.
local function show(self, state, signals)
  if not self.on_step then return end
  self.phase, self.at = "on_step", signals and self.at or "start"
  self.on_step(state, signals)
end

-- Calls running, record and on_step with the state after control step i, from 0, and the signals of that step, and
-- stores their results and the row of work.
local function after_step(self, i)
  if not (self.running_cost or self.recorder or self.on_step or self.work_asked) then return end
  local state, signals = states.new(self, i + 1), self.keep:signals_at(i)
  self.at = i
  if self.running_cost then
    self.phase = "running"
    store(self, "running", i, self.running_cost(state, signals), true)
  end
  if self.recorder then
    self.phase = "record"
    store(self, "record", i, self.recorder(state, signals), false)
  end
  self.phase = nil
  if self.work_asked then store(self, "work_rows", i, work.row(state, signals), false) end
  show(self, state, signals)
  self.phase = nil
end

-- Makes control steps up to state `to`, and raises the error of a failed step.
local function conclude(self, to)
  local status = make(self, to)
  if status == C.CQ_INVALID then control.require_finite(self, control_step_of(self)) end
  check(self, status)
end

-- Computes signals and forces of the control steps from `from` to `to` - 1 in Lua, before the engine makes these steps;
-- only one step if a function reads its state. Returns the hidden state (memories of observer and controller) after
-- them.
local function prepare_steps(self, from, to, hidden)
  local keep = self.keep
  for i = from, to - 1 do
    local signals, forces
    self.at = i
    keep:save_hidden(i, hidden)
    signals, hidden, forces = control.step(self, states.new(self, i), hidden)
    keep:save(i, signals, forces)
  end
  return hidden
end

-- For forces that are evaluated at every engine step: makes the engine steps of control step `to` - 1 but the last, and
-- evaluates the forces after each.
local function between(self, to)
  local pieces, keep = self.world.pieces, self.keep
  if pieces == 1 then return end
  local signals, forces = keep:signals_at(to - 1), keep.forces_now
  self.at = to - 1
  for k = 1, pieces - 1 do
    local step = to - 1 + k / pieces
    check(self, make(self, step))
    forces = control.forces(self, states.new(self, step), signals, forces)
    keep:save_forces(self:engine_step(step), forces)
  end
end

-- Makes the control steps from state `from` to state `to`, with the user's functions before and after; raises the error
-- of an earlier step that failed. Returns the hidden state after them. Calls rollout.idle first, if there is one.
local function advance(self, from, to, hidden)
  local fine, after, phase = true, hidden, nil
  if rollout.idle then rollout.idle() end
  if not self.engine_policy then
    fine, after = xpcall(prepare_steps, tape.explain, self, from, to, hidden)
    if not fine then phase, to, self.phase = self.phase, self.at, nil end
  end
  if fine and to > from then between(self, to) end
  conclude(self, to)
  if not fine then
    self.phase, self.at = phase, to
    error(after, 0)
  end
  if self.stops then after_step(self, to - 1) end
  return after
end

-- Simulates all control steps: observer, controller, engine, running cost. Sets finished, hidden, solver and the
-- outputs effort and contact_rows.
local function forward(self)
  self.phase = nil
  local begun = continued.begin(self)
  if begun == C.CQ_UNSTABLE then failures.raise(self, begun) end
  engine.check(begun, "world:rollout", assembly.naming(self.world.layout))
  local hidden, i = control.start(self), 0
  show(self, states.new(self, 0), nil)
  while i < self.steps do
    local to = self.stops and i + 1 or self.steps
    hidden = advance(self, i, to, hidden)
    i = to
  end
  self.phase, self.finished, self.hidden = nil, true, hidden
  self.keep:save_hidden(self.steps, hidden)
  if self.contact_asked then self.outputs.contact_rows = contact.rows(self) end
  self.solver = solver.of(self)
  if self.effort_cost then self.outputs.effort = control.effort(self, self.keep:all_signals()):detach():copy() end
end

-- The place of an error in the rollout as text, ", control step 3 of 5" or ", at the start"; empty elsewhere.
local function when(self)
  if self.at == "start" then return ", at the start" end
  return self.at and (", control step %d of %d"):format(self.at + 1, self.steps) or ""
end

---Calls f(self, ...) and returns what it returns; an error message gets the name of the user's function in which it
---was raised (self.phase) and the control step.
---@return any ...
function rollout.guarded(self, f, ...)
  -- Returns the results of f, or raises its error, with the user's function and the control step added.
  local function finish(ok, ...)
    if ok then return ... end
    local problem = ...
    if self.phase and type(problem) == "string" then
      problem = is.with_more(problem, " (in %s%s)", self.phase, when(self))
      self.phase = nil
    end
    error(problem, 0)
  end
  return finish(xpcall(f, tape.explain, self, ...))
end

-- ---- the operation --------------------------------------------------------------------------------------------------

local kinds = {
  from = is.instance { "cq.State", optional = true },
  scenes = is.vector { integer = true, min = 0, optional = true },
  robot = is.any_of { is.instance "cq.Robot", is.list(is.instance "cq.Robot", { min = 1 }), optional = true },
  steps = is.integer { min = 0, max = 2 ^ 31 - 1 },
  batch = is.integer { min = 1, max = C.CQ_BATCH_MAX, optional = true },
  controller = is.any { optional = true },
  observer = is.any { optional = true },
  running = is.callable { optional = true },
  effort = is.callable { optional = true },
  record = is.callable { optional = true },
  contact = is.boolean { default = false },
  work = is.boolean { default = false },
  weight = is.one_of { "mass", "particle", "volume", default = "mass" },
  on_step = is.callable { optional = true },
  memory = is.any { optional = true },
  gradient = is.table { optional = true },
}
for _, entry in ipairs(field.of_world) do kinds[entry.name] = field.listed(is.any(), entry, true) end
local spec = is.define("world:rollout", kinds)

---Adds the checkers of fields of world:rollout (robot, controller, observer, contact, and the world's) to a table of
---checkers, which it returns. For functions that run rollouts.
---@internal
---@param others table<string, cq.Checker>
---@return table<string, cq.Checker>
function rollout.fields(others)
  for _, name in ipairs { "robot", "controller", "observer", "contact" } do others[name] = kinds[name] end
  for _, entry in ipairs(field.of_world) do others[entry.name] = kinds[entry.name] end
  return others
end

-- A rollout before its first step: takes the definition of world:rollout, and an engine rollout from the world's pool.
-- on: the tape that records it, nil: none. Errors: values that do not fit the world or make its steps unstable.
local function new(world, def, on)
  local self = setmetatable({
    world = world, steps = def.steps, batch = def.batch or 1, batched = def.batch ~= nil, outputs = {},
    running_cost = def.running, effort_cost = def.effort, recorder = def.record, on_step = def.on_step,
    adjoint_begun = false, first = def.from and def.from.step or 0,
    contact_asked = def.contact, work_asked = def.work and def.steps > 0, weight = def.weight,
  }, Rollout)
  continued.prepare(self, def)
  control.prepare(self, def)
  self.engine_policy = engine_policy.of(self)
  -- do observer, controller or actuators see the states between in Lua, or anybody else?
  self.sees = not (self.engine_policy or control.is_blind(self))
  if on and rollout.watch and not self.on_step then self.on_step = rollout.watch(self) end
  self.stops = self.sees or def.running ~= nil or def.record ~= nil or self.on_step ~= nil or self.work_asked
  self.wall_motion, self.gravity = wall_motion.take_series(world, def), gravity.collect(world, def)
  self.bodies = fields.bodies(world, def.robot)
  self.set = fields.collect(world, def, self.bodies)
  if def.from then
    fields.keep_shapes(world, self.set, def.from.roll.set, def.scenes, def.from.number)
  end
  self.beginning = { robot = def.robot, batch = def.batch, steps = 0, weight = def.weight, scenes = def.scenes,
    gravity = self.gravity and gravity.of_step(self.gravity, 1) or def.gravity,
    wall_velocity = not self.wall_motion and def.wall_velocity or nil }
  if def.contact then contact.check(world) end
  if def.work then work.check(self) end
  self.pool = def.from and def.from.roll.pool or world:pool_at(self.set.position)
  self.entry = self.pool:acquire(self, {
    batch = self.batch, steps = memory.pieces(world, def.steps, "world:rollout"), differentiable = on ~= nil,
    contact = def.contact, memory = memory.budget(def.memory, "world:rollout: memory", world),
  })
  self.handle, self.differentiable, self.depth = self.entry.handle, on ~= nil, tape.depth
  fields.apply(world, self.entry, self.set)
  backward.apply(self, def.gradient)
  series.apply(self.entry, "wall_velocity", self.wall_motion)
  series.apply(self.entry, "gravity", self.gravity)
  self.keep = control.keep(self, on ~= nil)
  return self
end

-- Runs f(self), which calls the user's functions, on no tape and while no other rollout of the same world can begin;
-- after an error the rollout is released.
local function guarded_inside(self, f)
  local within = self.world.within
  self.inside = within:enter()
  local ok, problem = pcall(tape.pause, rollout.guarded, self, f)
  self.inside = within:leave(self.inside)
  if ok then return end
  self:release()
  error(problem, 0)
end

---@class world.rollout.def
---@field steps integer               control steps; with none the final state is the start
---@field from? cq.State               goes on from this state, the final one of a rollout, and not from the start: with the batch of
---  the state and the robots of its rollout unless given, its time and steps, and what the same observer and controller
---  remember. Places, velocities and deformations are those of the state, whatever a robot that is given says of them.
---  Within a function of cq.value_and_grad gradients go on to the rollout before, unless the state is detached
---  (state:detach)
---@field scenes? integer[]            for each scene of the batch the scene of the state in from that it goes on from, with the
---  constants of that scene unless robot is given; 0: it begins as its robot says
---@field robot? cq.Robot|cq.Robot[]  variants of the world's robots, from robot:with
---@field batch? integer              independent scenes, a dimension of every result, also with a batch of 1; none without it
---@field controller? any             of cq.Controller, or the user's own; without one no actuator acts
---@field observer? any               of cq.Observer, or the user's own
---@field running? fun(state: cq.State, signals: cq.Tensor): cq.Tensor|number   a cost after each control step; the engine stops for it
---@field effort? fun(signals: cq.Tensor): cq.Tensor|number   a cost of all signals {steps, signals} or {steps, batch, signals}; one number, or
---  {batch}. It stops nothing, so that it is the quickest way to punish signals and their changes
---@field record? fun(state: cq.State, signals: cq.Tensor): cq.Tensor             what is kept after each control step
---@field contact? boolean             read what walls and pins give in each control step, for rollout.contact and state:contact
---@field work? boolean                tell what the actuators do in each control step, for rollout.work: not of forces of your own,
---  of open surfaces or of cables with friction; the engine stops for it
---@field weight? "mass"|"particle"|"volume"   what means of states weigh by unless they say it, in all functions of your own
---@field on_step? fun(state: cq.State, signals: cq.Tensor?)   for looking on: at the start (signals nil), and after each control step
---@field memory? string|number       for what the backward pass needs, as "2 GiB"; three quarters of what is free unless given
---@field gradient? world.rollout.gradient.def   what the backward pass does to the adjoint of the state on its way through time:
---  decay, window and clip. Exact unless given
---@field gravity? any                {dim}, instead of the world's; this and the following also with the batch before it. For each
---  control step {steps, dim}, or a function of the time that a control step begins at
---@field damping? any                one number, instead of the world's
---@field friction? any               one number, or {walls}
---@field wall_velocity? any          {dim}, or {walls, dim}; for each control step {steps, walls, dim}, with the batch before it if
---  it differs between scenes, or a function of the time that a control step begins at,
---  which gives {dim} or {walls, dim}

---Simulates scenes for a number of control steps. While a tape records, it is one operation on it; without a tape,
---nothing is kept for gradients.
---
---The observer sees the state before each control step; running and record see the state after it. With a batch,
---readouts of a state begin with the scene, and record, running, contact, work and signals are {steps, batch, ...}.
---Errors: fields that are unknown or do not fit the world; a rollout inside one; a simulation that becomes unstable.
---@param world cq.World
---@param given world.rollout.def
---@return cq.Rollout
function rollout.run(world, given)
  if world.within:is_inside() then is.fail("world:rollout: cannot be called from inside a rollout's own functions") end
  local def, on = spec(given), tape.recording()
  continued.inherit(world, def)
  local again = {}
  for name, value in pairs(def) do
    if name ~= "from" then again[name] = value end
  end
  local self = new(world, def, on)
  self.again = again
  guarded_inside(self, forward)
  self.running = self.outputs.running and self.outputs.running.tensor
  self.record = self.outputs.record and self.outputs.record.tensor
  if self.record then rawset(self.record, "period", world.control_dt) end
  if self.running then rawset(self.running, "period", world.control_dt) end
  self.effort, self.contact_rows = self.outputs.effort, self.outputs.contact_rows
  self.work_rows = self.outputs.work_rows and self.outputs.work_rows.tensor
  self.signals = self.keep:all_signals()
  self.state = states.new(self, self.steps)
  self.carried = continued.carried(self, self.hidden, def)
  if on then
    self.link = T.zeros {}
    local outputs, names = { self.link }, { "running", "record", "effort", "contact_rows", "work_rows" }
    for _, name in ipairs(names) do outputs[#outputs + 1] = self[name] end
    local carried = tree.flatten(self.carried.hidden, "the hidden state")
    for _, tensor in ipairs(carried) do outputs[#outputs + 1] = tensor end
    tape.custom { name = "rollout", outputs = outputs, altered = self.altered, backward = function(_, ...)
      local grads, at = {}, 0
      for _, name in ipairs(names) do
        if self[name] then
          at = at + 1
          grads[name] = select(at, ...)
        end
      end
      grads.hidden = {}
      for k = 1, #carried do grads.hidden[k] = select(at + k, ...) or false end
      local inside = world.within:enter()
      local fine, why = pcall(rollout.guarded, self, reverse, grads)
      world.within:leave(inside)
      self.back, self.adjoint_begun = nil, false
      if not fine then error(why, 0) end
    end }
  end
  if def.contact then self.contact = contact.of(self.contact_rows, world) end
  if self.work_rows then self.work = work.of(self, self.work_rows) end
  return self
end

---A copy of a state that does not keep its rollout in memory. For state:detach. Errors: the state of one scene, whose
---observer or controller remembers all scenes of the batch.
---@internal
---@param state cq.State
---@param pull cq.Tensor       gravity in the control step that led to it
---@return cq.State
function rollout.copy(state, pull)
  local before, walls = state.roll, state.roll.set.wall_velocity
  local velocity = walls and walls.tensor
  if velocity and state.number then velocity = walls.per_scene and velocity[state.number] or velocity
  elseif velocity and state.batched and not walls.per_scene then
    velocity = velocity:unsqueeze(1):expand { state.batch, unpack(velocity:shape()) }
  end
  if state.number and control.carries(before.carried.hidden) then
    is.fail("state:detach: the rollout's observer or controller remembers all of its scenes; detach the state of all")
  end
  local roll = rollout.run(state.world, { from = state, steps = 0, weight = before.weight, gravity = pull,
    wall_velocity = velocity })
  continued.forget(roll, before)
  return roll.state
end

-- Calls observer and controller with the first state.
local function ask_once(self) control.answer(self, states.new(self, 0), control.start(self)) end

---@internal
---Calls observer and controller once with the initial state, so that the controller learns its sizes; makes no
---control step.
---@param world cq.World
---@param def { controller: any, observer: any, robot: cq.Robot? }
function rollout.ask(world, def)
  local roll = tape.pause(rollout.run, world, { steps = 0, controller = def.controller, observer = def.observer,
    robot = def.robot })
  guarded_inside(roll, ask_once)
  roll:release()
end

return rollout
