-- check: is a gradient right? Central differences at several step sizes along random directions, and the same bits twice.
--
-- A direction d is random in each element, scaled to the size of its tensor. For a step h: central = (f(p+hd) - f(p-hd)) / 2h,
-- and the one-sided differences beside it. In a smooth place these approach each other as h shrinks; at a kink (a contact that
-- opens, the corner of a max) they stay apart, and then no gradient is wrong, there is none.
local ffi = require "ffi"
local schema = require "cq.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local leaves = require "cq.tensor.leaves"
local gradient = require "cq.tensor.gradient"
local C = require("cq.engine").C

---@class cq.check_gradient.def
---@field steps? number[]      relative step sizes
---@field directions? integer  random directions through all parameters, default 2
---@field each? boolean        also one direction through each parameter alone, which tells which one is wrong
---@field tolerance? number    largest relative error of a right gradient, default 1e-6
---@field noise? number        relative rounding error of one evaluation of f, default 1e-15; about 1e-6 for float32 worlds
---@field seed? integer        of the directions, default 0

local options = schema.define("cq.check_gradient", {
  steps = schema.list(schema.number { above = 0 }, { min = 1, default = { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6 } }),
  directions = schema.integer { min = 1, default = 2 },
  each = schema.boolean { default = false },
  tolerance = schema.number { above = 0, default = 1e-6 },
  noise = schema.number { above = 0, default = 1e-15 },
  seed = schema.integer { min = 0, default = 0 },
})

---@class cq.GradientCheck
---@field ok boolean           every direction is right, and the evaluation repeatable
---@field repeatable boolean   value and gradients had the same bits twice
---@field loss number
---@field error number         largest relative error, kinks left out
---@field directions { name: string, verdict: "right"|"wrong"|"kink", analytic: number, error: number, rows: table[] }[]
local Check = { __name = "cq.GradientCheck" }
Check.__index = Check

local function same_bits(a, b, count) return ffi.string(a, count * 8) == ffi.string(b, count * 8) end

-- root mean square, 1 for zeros: how large a step a tensor takes
local function scale_of(t)
  local rms = t.count > 0 and t:norm():item() / math.sqrt(t.count) or 0
  return rms > 0 and rms or 1
end

local function random_direction(list, random)
  local direction = {}
  for i, leaf in ipairs(list) do
    local d = class.like(leaf.tensor)
    C.cq_random_normal(random, d.count, 0, scale_of(leaf.tensor), d.pointer)
    direction[i] = d
  end
  return direction
end

-- f at p + h d; the parameters come back to the bit, also after an error
local function value_at(f, p, list, direction, h)
  local kept = {}
  for i, leaf in ipairs(list) do
    local t, d = leaf.tensor, direction[i]
    kept[i] = t:detach():copy()
    for k = 0, t.count - 1 do t.pointer[k] = t.pointer[k] + h * d.pointer[k] end
  end
  local ok, value = pcall(tape.pause, f, p)
  for i, leaf in ipairs(list) do ffi.copy(leaf.tensor.pointer, kept[i].pointer, kept[i].count * 8) end
  if not ok then error(value, 0) end
  return type(value) == "number" and value or value:item()
end

local function analytic_of(list, grads, direction)
  local sum = 0
  for i, leaf in ipairs(list) do
    local g, d = grads[leaf.tensor].pointer, direction[i].pointer
    for k = 0, leaf.tensor.count - 1 do sum = sum + g[k] * d[k] end
  end
  return sum
end

-- One-sided differences at a smooth place: gap = h f''. A kink: the gap keeps its size while h shrinks. Gaps that rounding
-- explains say nothing.
local function is_kink(rows, loss, noise)
  local last
  for i = #rows, 1, -1 do
    local row = rows[i]
    local floor = 20 * noise * math.max(math.abs(loss), 1e-300) / row.step
    if row.gap > floor and row.gap > 1e-7 * (math.abs(row.forward) + math.abs(row.backward)) then
      if last then return last.gap > row.gap * (last.step / row.step) ^ 0.5 end
      last = row
    end
  end
  return false
end

local function check_direction(f, p, list, grads, direction, loss, opts, name)
  local analytic = analytic_of(list, grads, direction)
  local rows, best = {}, math.huge
  for i, h in ipairs(opts.steps) do
    local plus, minus = value_at(f, p, list, direction, h), value_at(f, p, list, direction, -h)
    local row = { step = h, central = (plus - minus) / (2 * h), forward = (plus - loss) / h, backward = (loss - minus) / h }
    local size = math.max(math.abs(analytic), math.abs(row.central))
    row.gap = math.abs(row.forward - row.backward)
    row.error = size > 0 and math.abs(row.central - analytic) / size or 0
    rows[i], best = row, math.min(best, row.error)
  end
  local verdict = best <= opts.tolerance and "right" or is_kink(rows, loss, opts.noise) and "kink" or "wrong"
  return { name = name, verdict = verdict, analytic = analytic, error = best, rows = rows }
end

---Compares the gradient of f with differences of f.
---@param f fun(p: any): cq.Tensor
---@param p any                      as for cq.value_and_grad; unchanged afterwards
---@param opts? cq.check_gradient.def
---@return cq.GradientCheck          prints as a table
local function check_gradient(f, p, opts)
  schema.argument("cq.check_gradient", "f", schema.callable(), f)
  opts = options(opts or {})
  table.sort(opts.steps, function(a, b) return a > b end)
  local list = leaves.trainable(p, "cq.check_gradient")
  local step = gradient.value_and_grad(f)
  local loss, grads_tree = step(p)
  local again, grads_again = step(p)
  local grads, second = leaves.pair(p, grads_tree), leaves.pair(p, grads_again)
  local self = setmetatable({ loss = loss, repeatable = loss == again, error = 0, directions = {} }, Check)
  for _, leaf in ipairs(list) do
    local t = leaf.tensor
    self.repeatable = self.repeatable and same_bits(grads[t].pointer, second[t].pointer, t.count)
  end

  local random = ffi.new("cq_random", opts.seed, 0)
  local function add(part, name)
    local result = check_direction(f, p, part, grads, random_direction(part, random), loss, opts, name)
    self.directions[#self.directions + 1] = result
    if result.verdict ~= "kink" then self.error = math.max(self.error, result.error) end
  end
  for i = 1, opts.directions do add(list, ("all %d"):format(i)) end
  if opts.each then
    for _, leaf in ipairs(list) do add({ leaf }, leaf.path) end
  end
  self.ok = self.repeatable
  for _, direction in ipairs(self.directions) do self.ok = self.ok and direction.verdict == "right" end
  return self
end

local meaning = {
  right = "right",
  wrong = "WRONG: the differences agree with each other and not with the gradient",
  kink = "kink: the differences from the two sides disagree, the objective has a corner here",
}

function Check:__tostring()
  local out = { ("objective %.10g, %s"):format(self.loss, self.repeatable and "repeatable to the bit" or "NOT REPEATABLE") }
  for _, direction in ipairs(self.directions) do
    out[#out + 1] = ("%s: gradient %.10g, relative error %.1e, %s"):format(direction.name, direction.analytic, direction.error,
      meaning[direction.verdict])
    out[#out + 1] = ("  %8s  %17s  %17s  %17s  %8s"):format("step", "central", "forward", "backward", "error")
    for _, row in ipairs(direction.rows) do
      out[#out + 1] = ("  %8.1e  %17.10g  %17.10g  %17.10g  %8.1e"):format(row.step, row.central, row.forward, row.backward, row.error)
    end
  end
  return table.concat(out, "\n")
end

return check_gradient
