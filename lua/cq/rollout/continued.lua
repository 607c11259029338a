-- continued: rollouts that go on from a state of another one. The engine begins in that state, with all that it has
-- beside its fields, and passes its adjoint on, so that two rollouts are one, bit for bit. Lua passes on what observer
-- and controller remember.
local ffi = require "ffi"
local is = require "cq.base.schema"
local observers = require "cq.observer"
local text = require "cq.base.text"
local T = require "cq.tensor"
local tree = require "cq.rollout.tree"
local wall_motion = require "cq.rollout.wall_motion"
local engine = require "cq.base.engine"
local rollout_fields = require "cq.rollout.fields"
local tables = require "cq.base.tables"
local C = engine.C

local continued = {}

-- Raises an error if def.scenes does not fit: another count than the batch, or the number of a scene that the state
-- `from` does not have. def.scenes has, for each scene of the batch, the scene of `from` that it continues, from 1; 0
-- for one that begins with the robot's values.
local function check_scenes(from, def)
  if def.batch and def.batch ~= #def.scenes then
    is.fail("world:rollout: scenes has %s, the batch has %d", text.count(#def.scenes, "number"), def.batch)
  end
  for k, scene in ipairs(def.scenes) do
    if scene > from.batch then
      is.fail("world:rollout: scenes[%d] is %d; the state in from has %s", k, scene, text.count(from.batch, "scene"))
    end
  end
end

---Completes the definition of a rollout that continues a state: the batch and the robots that it leaves out are those
---of the state's rollout. From the state of one scene, state:scene(k), all scenes continue this one. Errors: a state of
---another world, of another batch, or not the final one of its rollout; `scenes` without `from`.
---@param world cq.World
---@param def table            of world:rollout
function continued.inherit(world, def)
  local from = def.from
  if not from then
    if def.scenes then is.fail "world:rollout: scenes says which scene of a state each scene goes on from; give it with from" end
    return
  end
  if from.world ~= world then
    is.fail("world:rollout: from must be a state of this world, got %s", from.world == world.at_rest
      and "one of its world:settle, which has no time to go on from; give robot = robot:with { position = state:positions(), deformation = state:deformations() }"
      or "one of another world")
  end
  from.roll:require_live(from.index, "world:rollout: from")
  if from.index ~= from.roll.steps then
    is.fail("world:rollout: from must be the final state of a rollout, got that of control step %d of %d", from.index,
      from.roll.steps)
  end
  if from.number then
    if def.scenes then
      is.fail "world:rollout: from is the state of one scene; give scenes with the state of all scenes, or leave it out"
    end
  elseif def.scenes then
    check_scenes(from, def)
    def.batch = #def.scenes
  elseif from.batched and def.batch == nil then
    def.batch = from.batch
  elseif (def.batch ~= nil) ~= from.batched or (def.batch or 1) ~= from.batch then
    is.fail("world:rollout: the batch has %d, the state in from has %s; leave out batch, or give scenes = a list of scenes of the state",
      def.batch, from.batched and text.count(from.batch, "scene") or "no batch")
  end
  if def.robot then return end
  def.robot = from.roll.again.robot
  if from.number then def.robot = rollout_fields.of_scene(world, def.robot, from.number) end
  if def.scenes then def.robot = rollout_fields.of_scenes(world, def.robot, def.scenes) end
end

-- The memory of the observer or controller (`name`) at the end of the rollout that is continued, if this rollout has
-- the same object. nil: another object, or no memory. Errors: a memory with a row for each scene where scenes are
-- chosen; an acceleration that would need the velocity before.
local function memory_of(self, def, name)
  local before, own = def.from.roll.carried, def[name]
  own = type(own) == "table" and rawget(own, "quiet_of") or own
  if own == nil or before[name] ~= own then return nil end
  if before.unseen == name then
    is.fail("world:rollout: from: the acceleration that the observer gives at the first control step needs the velocity before it, which the engine kept to itself; give both rollouts observer = function(state, hidden) return own:observe(state, hidden) end")
  end
  local memory = before.hidden[name]
  if memory ~= nil and (def.scenes or def.from.number) then
    is.fail("world:rollout: %s: the %s remembers the scenes of the state in their order; %s, or give another %s",
      def.scenes and "scenes" or "from", name,
      def.scenes and "leave out scenes" or "go on from the state of all scenes", name)
  end
  return memory
end

---Makes a rollout the continuation of def.from, before its first control step: sets self.continues and
---self.walls_before. Does nothing without def.from.
---@param self cq.Rollout
---@param def table            of world:rollout
function continued.prepare(self, def)
  local from = def.from
  if not from then return end
  local scenes = ffi.new("int32_t[?]", self.batch)
  for k = 0, self.batch - 1 do
    scenes[k] = from.number and from.number - 1 or def.scenes and def.scenes[k + 1] - 1 or k
  end
  -- A rollout without gradients does not keep those before it: a loop would pile them up.
  local passes = T.tape.recording() ~= nil and from.roll.link ~= nil
  self.walls_before = {}
  for k = 0, self.batch - 1 do self.walls_before[k] = scenes[k] >= 0 and wall_motion.way(from, scenes[k]) or nil end
  local whole = from.whole or from
  self.continues = { scenes = scenes, passes = passes, number = from.number,
    from = passes and { whole } or setmetatable({ whole }, { __mode = "v" }),
    memory = { observer = memory_of(self, def, "observer"), controller = memory_of(self, def, "controller") } }
end

-- The state from which a rollout continued. Errors: nobody holds the state any more, or its rollout has moved on.
local function source_of(self)
  local from = self.continues.from[1]
  if not from then
    is.fail "this rollout goes on from a state that nobody holds any more; keep that state to begin again from it"
  end
  from.roll:require_live(from.index, "world:rollout: from")
  return self.continues.number and from:scene(self.continues.number) or from
end

---Sets the engine to the first state of a rollout: that of its robots, or of the rollout that it continues.
---@param self cq.Rollout
---@return integer status     cq_status
function continued.begin(self)
  if not self.continues then return C.cq_rollout_begin(self.handle) end
  return C.cq_rollout_begin_from(self.handle, source_of(self).roll.handle, self.continues.scenes)
end

---A new definition by which a rollout can be simulated again for its states: without running, effort, record and work,
---which only cost time, and with an observer that collects nothing.
---@param self cq.Rollout
---@return table
function continued.again(self)
  local fields = tables.merged(self.again)
  if self.continues then fields.from = source_of(self) end
  fields.running, fields.effort, fields.record, fields.work = nil, nil, nil, nil
  fields.observer = observers.quiet(fields.observer)
  return fields
end

---Does the first state lie between two control steps, one of a rollout before and one of its own, so that its adjoint
---decays as between those of one rollout?
---@param self cq.Rollout
---@return boolean
function continued.is_between(self) return self.continues ~= nil and self.first > 0 and self.steps > 0 end

---Passes the adjoint of the first state, with the decay of a step, to the rollout that is continued, if that is
---differentiable. The robots' initial state then gets no gradient.
---@param self cq.Rollout
function continued.pass_adjoint(self)
  if not self.continues then return end
  local scenes, before = self.continues.scenes, self.continues.passes and source_of(self).roll
  if not (before and before:ready_adjoint()) then
    return engine.check(C.cq_rollout_pass_adjoint(self.handle, nil, scenes), "world:rollout")
  end
  if not self.is_exact and continued.is_between(self) then
    engine.check(C.cq_rollout_discount(self.handle), "world:rollout")
  end
  engine.check(C.cq_rollout_pass_adjoint(self.handle, before.handle, scenes), "world:rollout")
end

-- A copy of a hidden state (memories of observer and controller, nested tables) whose tensors carry no gradient.
local function detached(hidden)
  return tree.map(hidden, "the hidden state", function(tensor) return tensor:detach():copy() end)
end

---Makes a rollout without control steps independent of the rollout `before` that it continues: drops the reference,
---and copies memories and undeformed shapes without gradients.
---@param self cq.Rollout
---@param before cq.Rollout
function continued.forget(self, before)
  local carried = tables.merged(before.carried)
  carried.hidden = detached(carried.hidden)
  self.continues, self.started, self.carried = nil, self, carried
  for _, name in ipairs { "position", "deformation" } do
    local one = self.set[name]
    self.set[name] = one and { entry = one.entry, tensor = one.tensor:detach(), per_scene = one.per_scene }
  end
end

---What a rollout that continues this one takes over: { observer, controller, hidden: their memories at the end without
---gradients, unseen: "observer" if its last velocity is only known to the engine }.
---@param self cq.Rollout
---@param hidden table         after the last control step
---@param def table            of world:rollout
---@return table
function continued.carried(self, hidden, def)
  local policy = self.engine_policy
  return {
    observer = def.observer, controller = def.controller, unseen = policy and policy.def.change ~= nil and "observer",
    hidden = detached(hidden),
  }
end

return continued
