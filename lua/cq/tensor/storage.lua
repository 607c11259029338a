-- storage: memory of tensors. Small ones lie in Lua's own heap, which is fastest; others are blocks of
-- the engine, which Lua's collector knows only as a pointer: so the collector is called when the bytes
-- behind such pointers have grown.
local ffi = require "ffi"
local capacity = require "cq.base.capacity"
local engine = require "cq.base.engine"
local C = engine.C

local storage = {}

local small = 64                                  -- elements; up to this in Lua's heap
local least_limit = 64 * 2^20                     -- bytes; below this the collector is left alone
local outstanding, limit = 0, least_limit         -- bytes of blocks not yet freed; where the collector is called
local heap = ffi.typeof "double[?]"
local gc, free = ffi.gc, C.cq_tensor_free

-- The bytes that the engine reserves for a block of `count` doubles: a power of two.
local function charged(count)
  local bytes = 1024
  while bytes < count * 8 do bytes = bytes * 2 end
  return bytes
end

-- one finalizer for each power of two, so that it knows how much is given back
local finalizers = {}
-- The function that frees a block of this many bytes when Lua collects it, made once for each size.
local function finalizer_of(bytes)
  local finalize = finalizers[bytes]
  if not finalize then
    -- Frees a block, and counts its bytes as given back.
    finalize = function(pointer)
      outstanding = outstanding - bytes
      free(pointer)
    end
    finalizers[bytes] = finalize
  end
  return finalize
end

-- Runs Lua's garbage collector, and lets it run again when the bytes of blocks that are still in use have doubled.
local function collect()
  collectgarbage()
  limit = math.max(least_limit, 2 * outstanding)
end

-- A new block of `count` doubles in the engine's memory, freed when Lua collects it. Errors: no memory is left.
local function block(count, zeroed)
  capacity.require(count, "cq.tensor: a tensor of this size")
  local bytes = charged(count)
  if outstanding + bytes > limit then collect() end
  local pointer = C.cq_tensor_alloc(count, zeroed and 1 or 0)
  if pointer == nil then
    collect()
    pointer = C.cq_tensor_alloc(count, zeroed and 1 or 0)
    if pointer == nil then engine.check(C.CQ_MEMORY, "cq.tensor") end
  end
  outstanding = outstanding + bytes
  return gc(pointer, finalizer_of(bytes))
end

---New memory for `count` numbers of float64, all zero.
---@param count integer
---@return ffi.cdata*  zeros, freed when unreachable
function storage.zeros(count)
  if count <= small then return heap(count) end
  return block(count, true)
end

---New memory for `count` numbers of float64, with any values in it.
---@param count integer
---@return ffi.cdata*  anything, freed when unreachable
function storage.empty(count)
  if count <= small then return heap(count) end
  return block(count, false)
end

---Frees a block at once, without waiting for Lua's collector. No reference to it may be left. Small blocks stay for the
---collector.
---@param pointer ffi.cdata*
---@param count integer
function storage.release(pointer, count)
  if count <= small then return end
  gc(pointer, nil)
  outstanding = outstanding - charged(count)
  free(pointer)
end

---The bytes of all blocks in use outside of Lua's heap.
---@return integer
function storage.bytes() return outstanding end

return storage
