-- random: repeatable random tensors. The same seed gives the same numbers on every machine.
--
--   local random = cq.random { seed = 3 }           -- without a seed: the program's --seed, or 0
--   random:normal { 4, 8 }                           random:normal({ 4, 8 }, { mean = 1, deviation = 0.1 })
--   random:uniform({ 10, 2 }, { min = -1, max = 1 }) random:uniform() a number of rank 0
--   random:integers({ 5 }, { min = 1, max = 6 })     random:permutation(10)     random:choice(list, 3)
local method = require "cq.base.method"
local ffi = require "ffi"
local is = require "cq.base.schema"
local option = require "cq.option"
local tensor = require "cq.tensor"
local C = require("cq.base.engine").C

---A generator of random numbers, from cq.random.
---@class cq.Random
---@field generator ffi.cdata*    the engine's struct: seed and position
local Random = { __name = "cq.Random" }
Random.__index = Random

local whole = 2 ^ 53                     -- up to here numbers are whole

---@class cq.random.def
---@field seed? integer    default: the program's --seed, or 0

local definition = is.define("cq.random", { seed = is.integer { min = 0, max = whole, optional = true } })
---@class random.normal.def
---@field mean? number          of the numbers
---@field deviation? number     their standard deviation

---@class random.uniform.def
---@field min? number           included
---@field max? number           not included

---@class random.integers.def
---@field min? integer          included
---@field max integer           included

---@class random.choice.def
---@field replace? boolean      the same entry may be chosen again

local normal_options = is.define("random:normal", {
  mean = is.number { default = 0 }, deviation = is.number { min = 0, default = 1 },
})
local uniform_options = is.define("random:uniform",
  { min = is.number { default = 0 }, max = is.number { default = 1 } })
local integer_options = is.define("random:integers", {
  min = is.integer { min = -whole, max = whole, default = 1 }, max = is.integer { min = -whole, max = whole },
})
local choice_options = is.define("random:choice", { replace = is.boolean { default = false } })

---A tensor of normal numbers.
---@param shape? integer[]|integer  default {}: rank 0
---@param opts? random.normal.def
---@return cq.Tensor
function Random:normal(shape, opts)
  opts = normal_options(opts or {})
  local out = tensor.empty(shape or {})
  C.cq_random_normal(self.generator, out.count, opts.mean, opts.deviation, out:data())
  return out
end

-- A tensor of a shape with numbers drawn between opts.min and opts.max. draw: the engine's function; name: of the
-- method. Errors: min above max.
local function between(self, name, draw, shape, opts)
  if opts.min > opts.max then is.fail("random:%s: min %g is above max %g", name, opts.min, opts.max) end
  if opts.max - opts.min == math.huge then
    is.fail("random:%s: from %g to %g is farther than the largest number", name, opts.min, opts.max)
  end
  local out = tensor.empty(shape or {})
  draw(self.generator, out.count, opts.min, opts.max, out:data())
  return out
end

---A tensor of uniform numbers in [min, max).
---@param shape? integer[]|integer  default {}: rank 0
---@param opts? random.uniform.def
---@return cq.Tensor
function Random:uniform(shape, opts)
  return between(self, "uniform", C.cq_random_uniform, shape, uniform_options(opts or {}))
end

---A tensor of whole numbers from min to max, both included.
---@param shape integer[]|integer
---@param opts random.integers.def
---@return cq.Tensor
function Random:integers(shape, opts)
  return between(self, "integers", C.cq_random_integers, shape, integer_options(opts or {}))
end

---The numbers 1 to n in random order, as a tensor.
---@param n integer
---@return cq.Tensor  {n}
function Random:permutation(n)
  is.argument("random:permutation", "n", is.integer { min = 0 }, n)
  local out = tensor.empty { n }
  C.cq_random_permutation(self.generator, n, out:data())
  return out
end

-- The entries of a list, or rows of a tensor, by a list of their numbers.
local function pick(values, list)
  if tensor.is_tensor(values) then return values:gather(list) end
  local out = {}
  for i, at in ipairs(list) do out[i] = values[at] end
  return out
end

---Random entries of a list or tensor: one, or a list of `count`, none twice unless replace is true. Errors: an empty
---list; a count above its length without replace.
---@param values any[]|cq.Tensor     of a tensor: entries of its first dimension
---@param count? integer             none: one entry, and not a list of one
---@param opts? random.choice.def
---@return any
function Random:choice(values, count, opts)
  if type(values) ~= "table" then is.fail("random:choice: needs a list or a tensor, got %s", is.describe(values)) end
  opts = choice_options(opts or {})
  local n = tensor.is_tensor(values) and values:size(1) or #values
  if n == 0 then is.fail "random:choice: there is nothing to choose from" end
  if count == nil then return values[self:integers({}, { max = n }):item()] end
  is.argument("random:choice", "count", is.integer { min = 0 }, count)
  if not opts.replace and count > n then
    is.fail("random:choice: cannot choose %d of %d without replacement", count, n)
  end
  local order = opts.replace and self:integers({ count }, { max = n }) or self:permutation(n):slice(1, count)
  return pick(values, order:totable())
end

---Where the generator stands, to go on from there later: a plain table of numbers.
---@return { seed: number, position: number }
function Random:state()
  return { seed = tonumber(self.generator.seed), position = tonumber(self.generator.position) }
end

---Goes on from where a generator stood.
---@param state table     from random:state
function Random:restore(state)
  local at = is.integer { min = 0, max = whole }
  is.argument("random:restore", "state", is.table(), state)
  is.argument("random:restore", "seed", at, state.seed)
  is.argument("random:restore", "position", at, state.position)
  self.generator.seed, self.generator.position = state.seed, state.position
end

-- The generator in one line: seed and position.
function Random:__tostring()
  local state = self:state()
  return ("random numbers of seed %d, at position %d"):format(state.seed, state.position)
end

---A generator of random numbers. The same seed gives the same numbers on every machine.
---@class cq.RandomModule
---@overload fun(def?: cq.random.def): cq.Random
local random = { Random = Random }

method.guard(Random, "random")

return setmetatable(random, {
  -- cq.random: a generator; its seed is def's, else --seed, else 0.
  __call = function(_, def)
    def = definition(def or {})
    local seed = def.seed or option.program.seed or 0
    return setmetatable({ generator = ffi.new("cq_random", seed, 0) }, Random)
  end,
})
