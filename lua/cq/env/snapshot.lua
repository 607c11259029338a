-- snapshot: where an environment stands, as data: how its running episodes began, and the actions since. Going on makes
-- these control steps again, so that the engine's state is the same to the last bit, and needs no file of its own.
local fields = require "cq.env.fields"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local random = require "cq.random"
local states = require "cq.state"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"
local shape_text = require("cq.tensor.class").shape_text

local snapshot = {}

-- The number of control steps of the longest running episode. length: control steps of each scene's episode so far.
local function longest(length)
  local out = 0
  for _, steps in ipairs(length) do out = math.max(out, steps) end
  return out
end

---Keeps the actions of a control step, for later snapshots.
---@param self cq.Env
---@param u cq.Tensor     {scenes, actions}
function snapshot.note(self, u) self.acted[#self.acted + 1] = u:detach() end

---Drops kept actions of control steps that are older than the longest running episode.
---@param self cq.Env
function snapshot.trim(self)
  local extra = #self.acted - longest(self.length)
  if extra <= 0 then return end
  local rest = {}
  for k = extra + 1, #self.acted do rest[#rest + 1] = self.acted[k] end
  self.acted = rest
end

---The data from which snapshot.restore continues: for each scene the state of its random numbers before its episode
---was drawn, and control steps and return of the episode so far; all actions since the longest episode began; the
---step, and the observation to check against. Tables and tensors, which cq.save writes.
---@param self cq.Env
---@return table
function snapshot.of(self)
  local before = {}
  for scene = 1, self.scenes do before[scene] = self.drawn_from[scene] end
  return { random = before, length = T.tensor(self.length), returned = T.tensor(self.returned),
    failures = self.failures, step = self.state.step, observation = self.observation:detach():copy(),
    actions = #self.acted > 0 and T.stack(self.acted, 1) or nil }
end

local saved_fields = {
  random = is.list(is.table()), length = is.tensor(), returned = is.tensor(), failures = is.integer { min = 0 },
  step = is.integer { min = 0 }, observation = is.tensor(), actions = is.tensor { optional = true },
}
local of_random = { seed = is.integer { min = 0 }, position = is.integer { min = 0 } }

-- Why tensors, steps or random numbers of a snapshot do not fit each other or the environment, in words; nil if they
-- do.
local function mismatch(self, saved)
  local scenes, signals = self.scenes, self.action_space.shape[1]
  local count = saved.actions and saved.actions.rank > 0 and saved.actions:size(1) or 0
  local shapes = { length = { scenes }, returned = { scenes }, actions = { count, scenes, signals },
    observation = { scenes, self.observation_space.shape[1] } }
  for _, name in ipairs(tables.names(shapes)) do
    local got = saved[name] and shape_text(saved[name]:shape())
    if got and got ~= shape_text(shapes[name]) then
      return ("%s must be %s, got %s"):format(name, shape_text(shapes[name]), got)
    end
  end
  local actions, length = saved.actions, saved.length
  if actions and not (actions:finite() and actions:abs():max():item() <= 1) then
    return "actions must lie within -1 and 1"
  end
  if not length:equal(length:floor():maximum(0)) or length:max():item() ~= count then
    return ("length must be of whole numbers, the greatest of them %d, the count of actions"):format(count)
  end
  if saved.step < count then
    return ("step must be at least %d, the count of actions, got %d"):format(count, saved.step)
  end
  for scene = 1, scenes do
    local problem = is.problem(of_random, saved.random[scene])
    if problem then return ("random of scene %d: %s"):format(scene, problem) end
  end
end

-- Raises an error if `saved` is no snapshot, or one of another environment.
local function check(self, saved)
  local problem = text.class_of(saved) and "it must be a table, got " .. text.describe(saved)
    or is.problem(saved_fields, saved)
  if not problem and saved.length.count ~= self.scenes then
    is.fail("env:restore: the snapshot has %s, this environment %d", text.count(saved.length.count, "scene"),
      self.scenes)
  end
  problem = problem or mismatch(self, saved)
  if problem then is.fail("env:restore: needs what env:snapshot() gave: %s", problem) end
end

-- Simulates the last `count` control steps again, with the actions of a snapshot: those since the longest running
-- episode began. Returns the state after them. A scene whose episode began later waits at its start.
local function repeat_steps(self, saved, count)
  local roll = self.world:rollout { steps = 0, batch = self.scenes, robot = self.bodies }
  roll.first = saved.step - count
  local state = states.new(roll, 0)
  for k = 1, count do
    local map, moves = {}, T.zeros { self.scenes, 1 }
    for scene = 1, self.scenes do
      local waits = count - self.length[scene]
      map[scene] = k > waits + 1 and scene or 0
      if k > waits then moves:set(1, scene, 1) end
    end
    local u = saved.actions[k] * moves
    local after = self.world:rollout { steps = 1, from = state, scenes = map, batch = self.scenes, robot = self.bodies,
      controller = function() return u end }
    state.roll:release()
    state = after.state
  end
  -- those that have not acted yet
  local map, any = {}, false
  for scene = 1, self.scenes do
    map[scene] = self.length[scene] > 0 and scene or 0
    any = any or map[scene] == 0
  end
  if not any or count == 0 then return state end
  local begun = self.world:rollout { steps = 0, from = state, scenes = map, batch = self.scenes, robot = self.bodies }
  state.roll:release()
  return begun.state
end

-- Are observations equal to the saved ones? On a GPU, to rounding: there the particles of scenes that began at
-- different steps are sorted at different times.
local function are_same(world, observation, saved)
  if observation:equal(saved) then return true end
  return world.device_kind == "cuda" and (observation - saved):abs():max():item() <= 1e-4 * saved:abs():max():item()
end

---Brings an environment to the point of a snapshot: draws its episodes again, and simulates their control steps again.
---Warns if the observation is not the saved one to the last bit; that of an observer that learns is the saved one.
---Errors: no snapshot; one of another number of scenes, observations or actions.
---@param self cq.Env
---@param saved table             of snapshot.of
---@param observe fun(self: cq.Env, state: cq.State): cq.Tensor
function snapshot.restore(self, saved, observe)
  check(self, saved)
  self.ready = false
  self.random, self.variants, self.goal_rows = {}, {}, {}
  self.length, self.returned = saved.length:totable(), saved.returned:totable()
  for scene = 1, self.scenes do
    self.random[scene] = random { seed = 0 }
    self.random[scene]:restore(saved.random[scene])
    fields.draw(self, scene)
  end
  fields.stack(self)
  self.acted = {}
  for k = 1, saved.actions and saved.actions:size(1) or 0 do self.acted[k] = saved.actions[k] end
  self.state = repeat_steps(self, saved, #self.acted)
  self.failures, self.ready = saved.failures, true
  -- an observer that learns may have learned since, and sees the next states by that
  if self.observer.restore then
    self.observation = saved.observation:copy()
    return
  end
  self.observation = observe(self, self.state)
  if not are_same(self.world, self.observation, saved.observation) then
    message.warn("env:restore: the scenes come to other observations than those that were saved: the script, the program or the machine is another; the environment goes on from these")
  end
end

return snapshot
