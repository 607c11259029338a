-- stream: random numbers that are a function of the study's seed, a purpose and a number, so that any process draws the
-- same.
local ffi = require "ffi"
local C = require("cq.base.engine").C

local Stream = {}
Stream.__index = Stream

local purposes = { point = 1, permutation = 2, jitter = 3, tpe = 4, cma = 5 }
local PURPOSE, NUMBER = 2 ^ 48, 2 ^ 16       -- positions in the generator's stream: 65,536 blocks for each number

local stream = {}

---A stream of random numbers that depends on seed, purpose and number alone, so that every process draws the same.
---Errors: an unknown purpose.
---@param seed integer
---@param purpose string
---@param number integer      of the point or dimension, below 2^32
---@return table                the Stream
function stream.of(seed, purpose, number)
  local position = assert(purposes[purpose]) * PURPOSE + number * NUMBER
  return setmetatable({ generator = ffi.new("cq_random", seed, position), buffer = ffi.new "double[1]" }, Stream)
end

---The next number, uniform in [0, 1).
function Stream:uniform()
  C.cq_random_uniform(self.generator, 1, 0, 1, self.buffer)
  return self.buffer[0]
end

---The next number, standard normal.
function Stream:normal()
  C.cq_random_normal(self.generator, 1, 0, 1, self.buffer)
  return self.buffer[0]
end

---The numbers 1 to n in random order, as a list.
---@return integer[]
function Stream:permutation(n)
  local data, out = ffi.new("double[?]", n), {}
  C.cq_random_permutation(self.generator, n, data)
  for k = 1, n do out[k] = data[k - 1] end
  return out
end

return stream
