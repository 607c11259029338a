-- pool: the engine's rollouts of a world, used again and again. Each holds a memo that may be large, so a rollout whose
-- owner is gone serves the next one of the same size.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local T = require "cq.tensor"
local C = engine.C

local Pool = {}
Pool.__index = Pool

local pool = {}

---An empty pool of the engine's rollouts of a world, which are made on demand and used again.
---@param world { handle: ffi.cdata* }     cq_world of the engine
---@return table                the Pool
function pool.new(world)
  return setmetatable({ world = world, entries = {} }, Pool)
end

-- An entry of this key whose owner is gone; nil: there is none.
local function free_entry(self, key)
  for _, entry in ipairs(self.entries) do
    if entry.key == key and entry.owner[1] == nil then return entry end
  end
end

-- Makes a new rollout of the engine and appends its entry { key, handle, owner, set } to the pool; where memory is
-- short, unused ones are freed first.
local function create(self, def, key)
  local raw = ffi.new "cq_rollout_def"
  C.cq_rollout_def_init(raw)
  raw.batch, raw.steps, raw.differentiable, raw.memory = def.batch, def.steps, def.differentiable and 1 or 0, def.memory
    or 0
  raw.contact = def.contact and 1 or 0
  local out = ffi.new "cq_rollout *[1]"
  local status = C.cq_rollout_create(self.world.handle, raw, out)
  if status == C.CQ_MEMORY and self:trim() then
    status = C.cq_rollout_create(self.world.handle, raw, out)
  end
  engine.check(status, "world:rollout")
  local entry = { key = key, handle = out[0], owner = setmetatable({}, { __mode = "v" }), set = {} }
  self.entries[#self.entries + 1] = entry
  return entry
end

-- unused ones that are kept: lengths that grow with the training would else pile up their memos
local SPARE_MAX = 2
local ROOM = 0.25           -- of the free memory, which memos may hold while another world is simulated

-- Frees unused rollouts, all but the `keep` most recent ones; returns whether any was freed.
local function shrink(self, keep)
  local kept, spare = {}, 0
  for k = #self.entries, 1, -1 do
    local entry = self.entries[k]
    local used = entry.owner[1] ~= nil
    if not used then spare = spare + 1 end
    if used or spare <= keep then table.insert(kept, 1, entry) else C.cq_rollout_destroy(entry.handle) end
  end
  local any = #kept < #self.entries
  self.entries = kept
  return any
end

---A rollout of the engine for this owner, until the owner is garbage or gives it back.
---@param owner table
---@param def { batch: integer, steps: integer, differentiable: boolean, memory: number?, contact: boolean? }
---@return table entry      { handle, set }: set holds the fields that an earlier owner has set
function Pool:acquire(owner, def)
  local key = ("%d %d %s %s %s"):format(def.batch, def.steps, tostring(def.differentiable), tostring(def.memory),
    tostring(def.contact or false))
  local entry = free_entry(self, key)
  if not entry and #self.entries > 0 then
    -- owners that nobody can reach any more hold their entries until they are collected
    collectgarbage()
    entry = free_entry(self, key)
  end
  if not entry then
    shrink(self, SPARE_MAX)
    entry = create(self, def, key)
  end
  entry.owner[1] = owner
  return entry
end

---Collects garbage and destroys the rollouts that nobody uses.
---@return boolean      was there one?
function Pool:trim()
  collectgarbage()
  return shrink(self, 0)
end

---Destroys the rollouts that nobody uses where all memos together are large beside what is free, for those of another
---world.
---@param free number         bytes of memory, of the world's device
function Pool:make_room(free)
  local plan, held = ffi.new "cq_plan", 0
  for _, entry in ipairs(self.entries) do
    C.cq_rollout_plan(entry.handle, plan)
    held = held + tonumber(plan.bytes)
  end
  if held > ROOM * free then self:trim() end
end

---Destroys all rollouts of the pool, as the world closes; their owners lose their handle.
function Pool:close()
  for _, entry in ipairs(self.entries) do
    C.cq_rollout_destroy(entry.handle)
    local owner = entry.owner[1]
    if owner then owner.handle = nil end
  end
  self.entries = {}
end

---Sets a field of an entry's rollout in the engine, and notes it in entry.set.
---@param entry table
---@param field integer           cq_field
---@param tensor cq.Tensor        {count} or {batch, count} elements
---@param per_scene boolean
function pool.set(entry, field, tensor, per_scene)
  engine.check(C.cq_rollout_set(entry.handle, field, T.as_tensor(tensor):data(), per_scene and 1 or 0), "world:rollout")
  entry.set[field] = true
end

return pool
