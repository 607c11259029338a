-- memory: amounts of it as people write them, "2 GiB", and what a rollout plans to take.
local ffi = require "ffi"
local capacity = require "cq.base.capacity"
local engine = require "cq.base.engine"
local is = require "cq.base.schema"
local option = require "cq.option"
local text = require "cq.base.text"

local memory = {}

local units = { B = 1, KB = 1e3, MB = 1e6, GB = 1e9, TB = 1e12, KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, TiB = 2 ^ 40 }

---The number of bytes in "2 GiB", "500 MB" or a number of bytes. Errors: no such amount.
---@param amount string|number
---@param what string     for errors
---@return number
function memory.bytes(amount, what)
  if type(amount) == "number" and amount > 0 and amount < math.huge then return math.floor(amount) end
  if type(amount) == "string" then
    local number, unit = amount:match "^%s*([%d.]+)%s*(%a+)%s*$"
    number = tonumber(number)
    if number and number > 0 and units[unit] then return math.floor(number * units[unit]) end
  end
  is.fail("%s must be an amount such as \"2 GiB\" or \"500 MB\", or a number of bytes above 0, got %s", what,
    text.describe(amount))
end

---Bytes of memory that are free for rollouts of a world: of its GPU, or of the machine.
---@param world cq.World
---@return number
function memory.free(world)
  if world.device_kind ~= "cuda" then return tonumber(engine.C.cq_memory_available()) end
  local gpu = ffi.new "cq_gpu"
  engine.check(engine.C.cq_gpu_find(0, gpu))
  return tonumber(gpu.memory_available)
end

---The steps that the engine counts in a rollout, one at least: control steps, or all engine steps where forces act at
---each. Errors: too many.
---@param world cq.World
---@param steps integer   control steps
---@param what string     for errors
---@return integer
function memory.pieces(world, steps, what)
  local count = math.max(steps, 1) * world.pieces
  if count <= 2 ^ 31 - 1 then return count end
  is.fail("%s: %d control steps of %d engine steps, at each of which forces act, are more than 2147483647", what, steps,
    world.pieces)
end

---The memory budget of a rollout in bytes: `amount` if it is given; else this process's share (--share) of three
---quarters of the free memory, on CUDA of the GPU's; nil without other processes: the engine decides.
---@param amount string|number|nil
---@param what string     for errors
---@param world cq.World
---@return number?
function memory.budget(amount, what, world)
  if amount then return memory.bytes(amount, what) end
  local share = option.program.share
  if not share or share < 2 then return nil end
  return math.floor(memory.free(world) / 4 * 3 / share)
end

---How the engine's rollout, which has begun, uses memory: records of control steps, checkpoints, recomputation, and a
---text for people.
---@param handle ffi.cdata*      cq_rollout
---@return { bytes: number, record_bytes: number, slice_bytes: number, records: integer, checkpoints: integer, recompute: number, text: string }
function memory.plan(handle)
  local raw = ffi.new "cq_plan"
  engine.C.cq_rollout_plan(handle, raw)
  local out = { records = raw.records, checkpoints = raw.checkpoints, recompute = raw.recompute }
  for _, name in ipairs { "bytes", "record_bytes", "slice_bytes" } do out[name] = tonumber(raw[name]) end
  out.text = ("memory %s, %s"):format(capacity.text(out.bytes), out.recompute <= 1 and "every control step kept"
    or ("%s, control steps made %.2f times"):format(text.count(out.checkpoints, "checkpoint"), out.recompute))
  return out
end

return memory
