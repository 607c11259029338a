-- check: is a gradient right? Central differences at several step sizes along random
-- directions, and the same bits twice.
--
-- A direction d is random in each element, scaled to the size of its tensor. For a step h: central = (f(p+hd) -
-- f(p-hd)) / 2h, and the one-sided differences beside it. In a smooth place these approach each other as h shrinks; at
-- a kink (a contact that opens, the corner of a max) they stay apart, and then no gradient is wrong, there is none.
-- Small steps drown in the rounding of f, large ones in its curvature: a gradient is called wrong only where it differs
-- from a difference by more than that difference can be trusted.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local leaves = require "cq.tensor.leaves"
local gradient = require "cq.tensor.gradient"
local engine = require "cq.base.engine"
local C = engine.C

---@class cq.check_gradient.def
---@field steps? number[]      relative step sizes
---@field directions? integer  random directions through all parameters
---@field each? boolean        also one direction through each parameter alone, which tells which one is wrong
---@field brief? boolean       leaves out the smaller steps of a direction once one has shown that the gradient is right
---@field tolerance? number    largest relative error of a right gradient
---@field noise? number        relative rounding error of one evaluation of f, measured unless given
---@field seed? integer        of the directions

local options = schema.define("cq.check_gradient", {
  steps = schema.list(schema.number { above = 0 }, { min = 1, default = { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6 } }),
  directions = schema.integer { min = 1, max = 100000, default = 2 },
  each = schema.boolean { default = false },
  brief = schema.boolean { default = false },
  tolerance = schema.number { above = 0, default = 1e-6 },
  noise = schema.number { above = 0, optional = true },
  seed = schema.integer { min = 0, default = 0 },
})

---@class cq.GradientCheck
---@field ok boolean           every direction is right, and the evaluation repeatable
---@field repeatable boolean   value and gradients had the same bits twice
---@field loss number          the value of f
---@field noise number         rounding error of one evaluation of f
---@field error number         largest relative error, kinks left out
---@field altered string?      what was asked for and makes the gradient another than that of f: gradient of a rollout
---@field remark string?       what makes f jump nearby, where a rollout says so: contacts of implicit steps that fit no set
---@field directions { name: string, verdict: "right"|"wrong"|"altered"|"kink"|"rounding", analytic: number, error: number, rows: table[] }[]   of
---  each; altered: what would be wrong else
local Check = { __name = "cq.GradientCheck" }
Check.__index = Check

-- Raises an error after Ctrl-C. Called after each evaluation of f, since f may run no rollout that would stop, and the
-- error of one that does is taken for a step at which f fails.
local function require_uninterrupted()
  engine.require_uninterrupted "cq.check_gradient: interrupted before all directions were checked"
end

-- Have two arrays of `count` doubles the same bits?
local function same_bits(a, b, count) return ffi.string(a, count * 8) == ffi.string(b, count * 8) end

-- The size of a tensor's elements, which scales steps in a check of gradients: their root mean square, 1 where it is 0.
local function scale_of(t)
  local rms = t.count > 0 and t:norm():item() / math.sqrt(t.count) or 0
  return rms > 0 and rms or 1
end

-- A direction: for each leaf of the list a tensor of its shape with normal random numbers, scaled by the size of the
-- leaf's elements.
local function random_direction(list, random)
  local direction = {}
  for i, leaf in ipairs(list) do
    local d = class.like(leaf.tensor)
    C.cq_random_normal(random, d.count, 0, scale_of(leaf.tensor), d.pointer)
    direction[i] = d
  end
  return direction
end

-- The number f(p) at p + h d, along a direction d. The parameters get their bits back afterwards, also after an error,
-- which is raised again.
local function value_at(f, p, list, direction, h)
  local kept = {}
  for i, leaf in ipairs(list) do
    local t, d = leaf.tensor, direction[i]
    kept[i] = t:detach():copy()
    local x = t:data()
    for k = 0, t.count - 1 do x[k] = x[k] + h * d.pointer[k] end
  end
  local ok, value = pcall(tape.pause, f, p)
  for i, leaf in ipairs(list) do ffi.copy(leaf.tensor.pointer, kept[i].pointer, kept[i].count * 8) end
  if not ok then error(value, 0) end
  return type(value) == "number" and value or value:item()
end

-- The derivative along a direction by the gradient, their dot product. grads: by tensor.
local function analytic_of(list, grads, direction)
  local sum = 0
  for i, leaf in ipairs(list) do
    local g, d = grads[leaf.tensor].pointer, direction[i].pointer
    for k = 0, leaf.tensor.count - 1 do sum = sum + g[k] * d[k] end
  end
  return sum
end

local LEAST_NOISE = 1e-15        -- relative; some additions in double
local POINTS = 7

-- The rounding noise in POINTS values at equal steps: the largest that differences of third and higher order show,
-- where a smooth f leaves nothing else. `values` is overwritten.
local function noise_in(values)
  local largest, weight = 0, 1
  for order = 1, POINTS - 2 do
    for i = 1, POINTS - order do values[i] = values[i + 1] - values[i] end
    weight = weight * order / (4 * order - 2)              -- (k!)^2 / (2k)!
    local sum = 0
    for i = 1, POINTS - order do sum = sum + values[i] ^ 2 end
    if order >= 3 then largest = math.max(largest, math.sqrt(weight * sum / (POINTS - order))) end
  end
  return largest
end

-- The absolute rounding error of f at p, whose value there is `loss`: More and Wild, Estimating computational noise,
-- SIAM J. Sci. Comput. 33 (2011). Points lie on one side of p, so that a kink at p has no effect; steps grow from 1e-6
-- to 1e-2 until most values differ, or f fails. Errors: f fails with the smallest step.
local function noise_of(f, p, list, direction, loss)
  local h, values = 1e-6
  repeat
    local distinct, seen, before = 1, { [loss] = true }, values
    values = { loss }
    for i = 2, POINTS do
      local fine, value = pcall(value_at, f, p, list, direction, (i - 1) * h)
      require_uninterrupted()
      if not fine then
        if not before then error(value, 0) end
        return noise_in(before)
      end
      if not seen[value] then distinct, seen[value] = distinct + 1, true end
      values[i] = value
    end
    h = h * 10
  until distinct > POINTS / 2 or h > 1e-2
  return noise_in(values)
end

-- Is there a kink at p? One-sided differences of a smooth f have a gap h f''; at a kink the gap stays while h shrinks.
-- The two smallest steps whose gap is beyond rounding are compared; without two there is none.
local function is_kink(rows, noise)
  local last
  for i = #rows, 1, -1 do
    local row = rows[i]
    if row.gap > 20 * noise / row.step and row.gap > 1e-7 * (math.abs(row.forward) + math.abs(row.backward)) then
      if last then
        local ratio = (row.step / last.step) ^ 0.5
        return last.gap > row.gap / ratio and last.gap < row.gap * ratio
      end
      last = row
    end
  end
  return false
end

-- Does a difference that can be trusted contradict the gradient? With too large a step it is far from that of the next
-- larger step, with too small a step from that of the next smaller one, and at a kink its two sides differ, at the next
-- smaller step where curvature makes up for that: so it is off by no more than these. The smallest step has no smaller
-- one and is no witness, unless it is alone; nor is one too small to change f. If none changes f, the gradient is
-- wrong if it says that the largest one does.
local function is_wrong(rows, analytic, noise)
  local moved = {}
  for _, row in ipairs(rows) do
    if row.forward ~= 0 or row.backward ~= 0 then moved[#moved + 1] = row end
  end
  if #moved == 0 then return math.abs(analytic) * rows[1].step > 5 * noise end
  local best, doubt = nil, math.huge
  for i = 1, math.max(1, #moved - 1) do
    local row, larger, smaller = moved[i], moved[i - 1], moved[i + 1]
    local off = math.max(row.gap, 5 * noise / row.step)
    if larger then off = math.max(off, math.abs(row.central - larger.central)) end
    if smaller then off = math.max(off, smaller.gap, math.abs(row.central - smaller.central)) end
    if off < doubt then best, doubt = row, off end
  end
  return math.abs(best.central - analytic) > 3 * doubt
end

-- The verdict on a gradient along one direction: "right", "wrong", "altered", "kink" or "rounding". best: the least
-- relative error of the rows.
local function verdict_of(rows, analytic, best, check, tolerance)
  if best <= tolerance then return "right" end
  if is_wrong(rows, analytic, check.noise) then return check.altered and "altered" or "wrong" end
  return is_kink(rows, check.noise) and "kink" or "rounding"
end

-- The values of f at h and -h along a direction, by value(h); nil if it fails, as beyond a bound of a parameter, where
-- a smaller step may succeed. is_last: no step is left, and its error is raised.
local function ends_of(value, h, is_last)
  local fine, plus = pcall(value, h)
  require_uninterrupted()
  local fine_too, minus = pcall(value, -h)
  require_uninterrupted()
  if fine and fine_too then return plus, minus end
  if is_last then error(fine and minus or plus, 0) end
end

-- A row { step, central, forward, backward, gap, error } for each step at which f can be computed, and the least
-- relative error of them. No more rows follow once an error is at most `enough`. Errors: f fails at all steps.
local function rows_of(value, loss, analytic, steps, enough)
  local rows, best = {}, math.huge
  for i, h in ipairs(steps) do
    if best <= enough then break end
    local plus, minus = ends_of(value, h, i == #steps and #rows == 0)
    if plus then
      local row = { step = h, central = (plus - minus) / (2 * h), forward = (plus - loss) / h,
        backward = (loss - minus) / h }
      local size = math.max(math.abs(analytic), math.abs(row.central))
      row.gap = math.abs(row.forward - row.backward)
      row.error = size > 0 and math.abs(row.central - analytic) / size or 0
      rows[#rows + 1], best = row, math.min(best, row.error)
    end
  end
  return rows, best
end

-- Compares the gradient along one direction with differences: { verdict, analytic, error, rows }. value(h): f at a
-- distance h along the direction.
local function check_direction(value, list, grads, direction, check, opts)
  local analytic = analytic_of(list, grads, direction)
  local rows, best = rows_of(value, check.loss, analytic, opts.steps, opts.brief and opts.tolerance or -1)
  return { verdict = verdict_of(rows, analytic, best, check, opts.tolerance), analytic = analytic, error = best,
    rows = rows }
end

---Compares the gradient of f with differences of f. Steps at which f fails, as large ones beyond a bound that a
---parameter stands at, are left out, unless it fails at all of them. Errors: Ctrl-C.
---@param f fun(p: any): cq.Tensor  as for cq.value_and_grad
---@param p any                      as for cq.value_and_grad; unchanged afterwards
---@param opts? cq.check_gradient.def
---@return cq.GradientCheck          prints as a table
local function check_gradient(f, p, opts)
  schema.argument("cq.check_gradient", "f", schema.callable(), f)
  opts = options(opts or {})
  table.sort(opts.steps, function(a, b) return a > b end)
  local list = leaves.trainable(p, "cq.check_gradient")
  local step = gradient.value_and_grad(f)
  tape.altered, tape.remark = nil, nil
  local loss, grads_tree = step(p)
  require_uninterrupted()
  local again, grads_again = step(p)
  require_uninterrupted()
  local grads, second = leaves.pair(p, grads_tree), leaves.pair(p, grads_again)
  local noise = opts.noise and opts.noise * math.abs(loss)
  local self = setmetatable({ loss = loss, noise = noise, repeatable = loss == again, error = 0, directions = {},
    altered = tape.altered }, Check)
  for _, leaf in ipairs(list) do
    local t = leaf.tensor
    self.repeatable = self.repeatable and same_bits(grads[t].pointer, second[t].pointer, t.count)
  end

  local random = ffi.new("cq_random", opts.seed, 0)
  -- Checks the gradient along a random direction of the leaves in `part`, and adds the result, with this name, to self;
  -- the first call measures self.noise unless it is given.
  local function add(part, name)
    local direction = random_direction(part, random)
    self.noise = self.noise or math.max(LEAST_NOISE * math.abs(loss), noise_of(f, p, part, direction, loss))
    -- The value of f at a distance h along the direction.
    local function value(h) return value_at(f, p, part, direction, h) end
    local result = check_direction(value, part, grads, direction, self, opts)
    result.name = name
    self.directions[#self.directions + 1] = result
    if result.verdict ~= "kink" then self.error = math.max(self.error, result.error) end
  end
  for i = 1, opts.directions do add(list, ("all %d"):format(i)) end
  if opts.each then
    for _, leaf in ipairs(list) do add({ leaf }, leaf.path) end
  end
  self.ok, self.remark = self.repeatable, tape.remark
  for _, direction in ipairs(self.directions) do self.ok = self.ok and direction.verdict == "right" end
  return self
end

-- to be formatted with what alters the gradient
local meaning = {
  altered = "altered: with %s the gradient is not that of the objective; check it without",
  right = "right",
  wrong = "WRONG: the differences agree with each other and not with the gradient",
  kink = "kink: the differences from the two sides disagree, the objective has a corner here",
  rounding = "rounding: the gradient is within what the differences leave open, by rounding, curvature or the "
    .. "tolerance of implicit steps",
}

-- The check in lines: the objective and its noise, and for each direction the verdict and a table of its steps.
function Check:__tostring()
  -- more than double leaves: there is a float32 somewhere
  local advice = self.noise > 1e-11 * math.abs(self.loss) and "; run with --precision float64 to see more" or ""
  local out = { ("objective %.10g, rounding %.1e, %s"):format(self.loss, self.noise, self.repeatable
    and "repeatable to the bit" or "NOT REPEATABLE") }
  if self.remark then out[#out + 1] = self.remark .. ": the objective may jump nearby (roll.solver.unsettled)" end
  for _, direction in ipairs(self.directions) do
    out[#out + 1] = ("%s: gradient %.10g, relative error %.1e, %s"):format(direction.name, direction.analytic,
      direction.error,
      meaning[direction.verdict]:format(self.altered) .. (direction.verdict == "rounding" and advice or ""))
    out[#out + 1] = ("  %8s  %17s  %17s  %17s  %8s"):format("step", "central", "forward", "backward", "error")
    for _, row in ipairs(direction.rows) do
      out[#out + 1] = ("  %8.1e  %17.10g  %17.10g  %17.10g  %8.1e"):format(row.step, row.central, row.forward,
        row.backward, row.error)
    end
  end
  return table.concat(out, "\n")
end

return check_gradient
