-- uncertainty: error bars of an estimate from noisy measurements, by Gauss and Newton's matrix J^T J of the residuals.
--
--   local function residuals(p) return simulated(p) - measured end
--   lbfgs:solve(params, function(p) return residuals(p):square():mean() end)
--   local estimate = cq.uncertainty(residuals, params, { noise = 1e-3 })
--   print(estimate)                          -- young  79.93 +- 0.21 ...
--   print(estimate.deviation.young)
--
-- Near a least sum of squares the residuals are r + J dp. Noise e of the measurements moves the estimate by
-- (J^T J)^-1 J^T e. Independent noise of one standard deviation s has the covariance s^2 (J^T J)^-1 therefore; that of
-- residuals with deviations of their own is the same of J and r divided by these (Bard, Nonlinear Parameter Estimation,
-- 1974, 7-5).
local engine = require "cq.base.engine"
local is = require "cq.base.schema"
local method = require "cq.base.method"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local gradient = require "cq.tensor.gradient"
local symmetric = require "cq.tensor.symmetric"

---@class cq.Uncertainty
---@field deviation any              standard deviations, tensors in the shape of the parameters
---@field covariance cq.Tensor       {n, n} of all numbers of the parameters, in the order of `names`
---@field correlation cq.Tensor      {n, n}
---@field names string[]             of the numbers, as "young" or "lengths[2]"
---@field values number[]            the estimate
---@field noise number|cq.Tensor     standard deviation of a measurement, as given or as found in the residuals
---@field chi_square number?         reduced: the sum of (r / noise)^2 over residuals less parameters, 1 where noise explains the residuals; nil where the noise was found in these
---@field is_found boolean           was the noise found in the residuals?
---@field measurements integer       residuals that count: those with finite noise
---@field at_bound string[]           names of parameters at a bound, of those on which it depends: deviations do not hold; empty for none
local Uncertainty = { __name = "cq.Uncertainty" }
Uncertainty.__index = Uncertainty

local INDISTINCT = 0.99             -- a correlation of two parameters that is told
local AT_BOUND = 0.01               -- a parameter this near to a bound, in its deviations, is at the bound
local NAMED = 8                     -- of many parameters at bounds so many are named
local SINGULAR = 1e-13              -- least eigenvalue of J^T J with columns of length 1, for each parameter

-- An estimate as text, "value +- deviation".
local function format(value, deviation) return ("%.6g +- %.2g"):format(value, deviation) end

-- A sentence on the parameters at bounds.
local function bound_text(names)
  local words = { unpack(names, 1, NAMED) }
  if #names > NAMED then words[NAMED] = ("%d more"):format(#names - NAMED + 1) end
  local one = #names == 1
  return ("%s %s: the deviations do not hold there; widen the %s, or take %s out of the parameters"):format(
    text.join(words), one and "is at its bound" or "are at their bounds", one and "bound" or "bounds",
    one and names[1] or "them")
end

-- The estimates with their deviations, a line each, then pairs of parameters that are hardly told apart, parameters at
-- bounds, and the noise.
function Uncertainty:__tostring()
  local out, width, n = {}, 0, #self.names
  for _, name in ipairs(self.names) do width = math.max(width, #name) end
  for k, name in ipairs(self.names) do
    out[k] = ("%-" .. width .. "s  %s"):format(name, format(self.values[k], math.sqrt(self.covariance:get(k, k))))
  end
  for i = 1, n do
    for j = i + 1, n do
      local correlation = self.correlation:get(i, j)
      if math.abs(correlation) > INDISTINCT then
        out[#out + 1] = ("%s and %s are hardly told apart: their correlation is %.4f"):format(self.names[i],
          self.names[j], correlation)
      end
    end
  end
  if #self.at_bound > 0 then out[#out + 1] = bound_text(self.at_bound) end
  out[#out + 1] = ("one standard deviation, by %s with %s%s"):format(text.count(self.measurements, "residual"),
    class.is_tensor(self.noise) and "noise of their own" or ("noise %.3g"):format(self.noise),
    self.chi_square and ("; reduced chi-square %.2f"):format(self.chi_square)
    or self.is_found and ", found in them" or "")
  return table.concat(out, "\n")
end

-- The fields that cq.save writes.
function Uncertainty:__saved()
  local out = {}
  for _, name in ipairs { "names", "values", "deviation", "covariance", "correlation", "noise", "chi_square",
    "measurements", "is_found", "at_bound" } do
    out[name] = self[name]
  end
  return out
end

-- ---- numbers of parameters ------------------------------------------------------------------------------------------

-- A list of every number of the parameters: { name, tensor, at }, at: the element from 0. list: of leaves.
local function numbers_of(list)
  local out = {}
  for _, leaf in ipairs(list) do
    local path = leaf.path
    for k = 0, leaf.tensor.count - 1 do
      local name = leaf.tensor.rank == 0 and path or ("%s[%d]"):format(path, k + 1)
      out[#out + 1] = { name = name, tensor = leaf.tensor, at = k }
    end
  end
  return out
end

-- The scale of a difference step at a number x of tensor t: |x|, or the root mean square of t where that is larger.
-- Where all of t is zero it is the distance between the bounds, or 1.
local function scale_of(t, x)
  local norm = t.count > 0 and t:detach():norm():item() / math.sqrt(t.count) or 0
  local scale, bounds = math.max(math.abs(x), norm), t.bounds or {}
  if scale > 0 then return scale end
  return bounds.min and bounds.max and bounds.max > bounds.min and bounds.max - bounds.min or 1
end

-- The step of a difference by one number of numbers_of, towards the side where its bounds leave room; where both are
-- nearer than the step, up to the farther one. Errors: no room.
local function step_of(number, relative)
  local t, bounds = number.tensor, number.tensor.bounds or {}
  local x = t.pointer[number.at]
  local h, up, down = relative * scale_of(t, x), (bounds.max or math.huge) - x, x - (bounds.min or -math.huge)
  if up >= h then return h end
  if down >= h then return -h end
  if math.max(up, down) <= 0 then
    is.fail("cq.uncertainty: %s has no room between its bounds, %s and %s; leave it out of the parameters", number.name,
      text.number(bounds.min), text.number(bounds.max))
  end
  return up >= down and up or -down
end

-- ---- residuals ------------------------------------------------------------------------------------------------------

-- Returns residuals r. Errors: no tensor; not finite; with rows, a wrong first size. rows: sets of parameters in a
-- batch, each with residuals of its own; nil without a batch.
local function check_residuals(r, rows)
  if not class.is_tensor(r) then
    is.fail("cq.uncertainty: residuals must give a tensor, a number for each measurement, got %s", text.describe(r))
  end
  if rows and (r.rank == 0 or r:size(1) ~= rows) then
    is.fail("cq.uncertainty: with batch the residuals must be {%d, ...}, a row for each set of parameters, got %s",
      rows, class.shape_text(r:shape()))
  end
  for k = 0, r.count - 1 do
    local value = class.number(r.pointer, k)
    if value - value ~= 0 then
      is.fail("cq.uncertainty: residual %d is %s; all must be finite", k + 1, text.number(value))
    end
  end
  return r
end

-- Raises an error after Ctrl-C. Called between evaluations of the residuals, which may run no rollout that would stop.
local function require_uninterrupted()
  engine.require_uninterrupted "cq.uncertainty: interrupted before all slopes of the residuals were found"
end

-- Residuals f(p) at the estimate, and a list of the columns of J, {N} each, by forward differences; parameters are
-- restored. Errors: the number of residuals changes.
local function by_differences(f, p, numbers, relative)
  local first, columns = check_residuals(T.tape.pause(f, p)):detach():copy(), {}
  for k, number in ipairs(numbers) do
    require_uninterrupted()
    local t, h = number.tensor, step_of(number, relative)
    local kept = t.pointer[number.at]
    t.pointer[number.at] = kept + h
    local fine, moved = pcall(T.tape.pause, f, p)
    t.pointer[number.at] = kept
    if not fine then error(moved, 0) end
    if check_residuals(moved).count ~= first.count then
      is.fail("cq.uncertainty: there were %s, and %d with another %s; their number must not follow the parameters",
        text.count(first.count, "residual"), moved.count, number.name)
    end
    columns[k] = ((moved - first) / h):detach():flatten()
  end
  return first, columns
end

-- Residuals {N} at the estimate and a list of the columns of J, {N} each, by differences, from one call of f with a
-- batch: the estimate, and a row of parameters for each column.
local function in_a_batch(f, p, list, numbers, relative)
  local rows, stacked, steps = #numbers + 1, {}, {}
  for _, leaf in ipairs(list) do
    local t = leaf.tensor
    local shape = t:shape()
    table.insert(shape, 1, rows)
    stacked[t] = t:detach():unsqueeze(1):expand(shape):copy()
  end
  for k, number in ipairs(numbers) do
    local t = number.tensor
    steps[k] = step_of(number, relative)
    local at = k * t.count + number.at
    stacked[t].pointer[at] = stacked[t].pointer[at] + steps[k]
  end
  local all = T.tape.pause(f, T.leaves.copy(p, function(t) return stacked[t] or t end))
  check_residuals(all, rows)
  all = all:detach():reshape { rows, -1 }
  local columns = {}
  for k = 1, #numbers do columns[k] = (all[k + 1] - all[1]) / steps[k] end
  return all[1], columns
end

-- Residuals {N} at the estimate and a list of the columns of J, {N} each, by a backward pass for each residual.
local function by_adjoints(f, p, numbers)
  local first
  local _, rows = T.values_and_grads(function(q)
    first = check_residuals(f(q)):flatten()
    local out = {}
    for k = 1, first.count do out[k] = first[k] end
    return out
  end)(p)
  local columns, found = {}, {}
  for k, row in ipairs(rows) do found[k] = T.leaves.pair(p, row) end
  for j, number in ipairs(numbers) do
    local column = T.zeros { #rows }
    for k = 1, #rows do column:set(found[k][number.tensor].pointer[number.at], k) end
    columns[j] = column
  end
  return first:detach(), columns
end

-- ---- covariance -----------------------------------------------------------------------------------------------------

-- Residuals and the columns of J, divided by the noise of each measurement, unchanged for nil; and the number of
-- residuals that count, those of finite noise. Errors: another number of values than residuals; not above 0.
local function weighted(noise, first, columns)
  if noise == nil then return first, columns, first.count end
  local count = first.count
  if class.is_tensor(noise) then
    if noise.count ~= 1 and noise.count ~= first.count then
      is.fail("cq.uncertainty: noise must be one number or one for each of the %s, got %s",
        text.count(first.count, "residual"), class.shape_text(noise:shape()))
    end
    if not (noise:min():item() > 0) then
      is.fail("cq.uncertainty: noise must be above 0, got %s", text.number(noise:min():item()))
    end
    noise = noise:flatten():expand { first.count }
    count = noise:less(math.huge):sum():item()
  end
  local out = {}
  for k, column in ipairs(columns) do out[k] = column / noise end
  return first / noise, out, count
end

-- The inverse {n, n} of J^T J. Columns are taken with length 1, so that units of parameters do not matter. Errors: a
-- parameter that residuals do not depend on; parameters that they cannot tell apart.
local function inverse(columns, names)
  local n, lengths, a = #columns, {}, {}
  for k, column in ipairs(columns) do
    lengths[k] = column:norm():item()
    if lengths[k] == 0 then
      is.fail("cq.uncertainty: the residuals do not change with %s; leave it out, or measure what follows it", names[k])
    end
  end
  for i = 1, n do
    a[i] = {}
    for j = 1, n do
      a[i][j] = j < i and a[j][i] or (columns[i] * columns[j]):sum():item() / (lengths[i] * lengths[j])
    end
  end
  local values, vectors = symmetric.eigen(a)
  for k = 1, n do
    if values[k] < n * SINGULAR then
      local part = {}
      for i = 1, n do
        if math.abs(vectors[i][k]) > 0.1 then part[#part + 1] = names[i] end
      end
      is.fail("cq.uncertainty: the residuals do not tell %s apart; fix one of them, or measure more", text.join(part))
    end
  end
  local out = T.zeros { n, n }
  for i = 1, n do
    for j = 1, n do
      local sum = 0
      for k = 1, n do sum = sum + vectors[i][k] * vectors[j][k] / values[k] end
      out:set(sum / (lengths[i] * lengths[j]), i, j)
    end
  end
  return out
end

-- The names of an estimate's numbers that are at a bound.
local function names_at_bounds(self, numbers)
  local out = {}
  for i, number in ipairs(numbers) do
    local bounds, x = number.tensor.bounds or {}, self.values[i]
    local near = AT_BOUND * math.sqrt(self.covariance:get(i, i))
    if bounds.min and x - bounds.min <= near or bounds.max and bounds.max - x <= near then
      out[#out + 1] = number.name
    end
  end
  return out
end

-- A cq.Uncertainty from the covariance {n, n} of an estimate's numbers: names, values, deviations in the shape of the
-- parameters, correlations.
local function make(params, numbers, covariance)
  local n = #numbers
  local self = { names = {}, values = {}, covariance = covariance, correlation = T.zeros { n, n } }
  local deviations = {}
  for i, number in ipairs(numbers) do
    local t = number.tensor
    self.names[i], self.values[i] = number.name, t.pointer[number.at]
    deviations[t] = deviations[t] or T.zeros(t:shape())
    deviations[t].pointer[number.at] = math.sqrt(covariance:get(i, i))
    for j = 1, n do
      local scale = math.sqrt(covariance:get(i, i) * covariance:get(j, j))
      self.correlation:set(scale > 0 and covariance:get(i, j) / scale or i == j and 1 or 0, i, j)
    end
  end
  self.deviation = T.leaves.map(params, function(t) return deviations[t] end)
  self.at_bound = names_at_bounds(self, numbers)
  return setmetatable(self, Uncertainty)
end

-- A plan of gradient.passes: a backward pass for each number alone.
local function each_alone(_, names)
  local out = {}
  for k, name in ipairs(names) do out[k] = { [name] = 1 } end
  return out
end

---The uncertainty of numbers that follow from the parameters, as young = 15 * p.young where the factor of a guess was
---found: to first order, their covariance is G C G^T, with their gradients G and the covariance C of the parameters. A
---number need not depend on all parameters.
---@param f fun(p: any): table<string, cq.Tensor>     named numbers, tensors of one element each
---@return cq.Uncertainty
function Uncertainty:propagate(f)
  is.argument("uncertainty:propagate", "f", is.callable(), f)
  local values, grads = gradient.passes("uncertainty:propagate", f, each_alone)(self.params)
  local rows, numbers, derived, n = {}, {}, {}, #self.names
  for i, name in ipairs(T.leaves.sorted_keys(values)) do
    derived[name] = T.tensor(values[name])
    numbers[i] = { name = tostring(name), tensor = derived[name], at = 0 }
    local found, row = T.leaves.pair(self.params, grads[i]), {}
    for k, number in ipairs(self.numbers) do row[k] = found[number.tensor].pointer[number.at] end
    rows[#rows + 1] = T.tensor(row):reshape { 1, n }
  end
  local g = T.concat(rows, 1)
  local out = make(derived, numbers, g:matmul(self.covariance):matmul(g:transpose()))
  out.params, out.numbers = derived, numbers
  out.noise, out.chi_square, out.measurements = self.noise, self.chi_square, self.measurements
  out.is_found, out.at_bound = self.is_found, {}
  for _, name in ipairs(self.at_bound) do
    for k, number in ipairs(self.numbers) do
      if number.name == name and g:slice(k, k, 2):abs():max():item() > 0 then out.at_bound[#out.at_bound + 1] = name end
    end
  end
  return out
end

local options = is.define("cq.uncertainty", {
  noise = is.any_of { is.number { above = 0 }, is.tensor(), optional = true },
  batch = is.boolean { default = false }, step = is.number { above = 0, max = 0.1, default = 1e-3 },
  method = is.one_of { "differences", "adjoints", default = "differences" },
})

---@class cq.uncertainty.def
---@field noise? number|cq.Tensor   standard deviation of a measurement, in the unit of the residuals; a tensor as the residuals: of each, math.huge for one that does not count, such as a marker that was hidden. Unless given it is that which the residuals have at the estimate
---@field batch? boolean            residuals is called once, with tensors {rows, ...} in the place of the trainable ones {...}, and gives {rows, ...}: a rollout then has a scene for each row
---@field step? number              of forward differences, relative to each parameter, or to the root mean square of its tensor
---  where that is more; where all are 0 to the width of its bounds, or 1. Give a parameter of another size a factor, as
---  young = 1e5 * p.young
---@field method? "differences"|"adjoints"   of the slopes of residuals: one evaluation for each number of the parameters, or one backward pass for each residual, which has no error of a step. As there are never fewer residuals than numbers, differences are the cheaper ones

---Standard deviations and correlations of parameters that were found by least squares, caused by noise in the
---measurements. They hold if the noise is independent, the parameters are at the least sum of squares, none is at a
---bound, and the residuals are nearly linear over a few deviations. Parameters at a bound are printed, and listed in
---at_bound. A reduced chi-square far above 1 says that the simulation cannot fit the measurements: the error of the
---estimate is then larger than its deviation. Errors: residuals that are not finite; fewer residuals than parameters,
---or as many where noise is not given; a parameter that the residuals do not depend on; parameters that they cannot
---tell apart.
---
---A residual that a mask makes 0 still counts as a measurement, and makes the deviations too small where noise is not
---given. Leave it out of the residuals, as r:flatten():gather(seen) with a list of indices does, or give it infinite
---noise.
---@param residuals fun(p: any): cq.Tensor   simulated minus measured, of any shape
---@param params any                         as for cq.value_and_grad, at the estimate; unchanged
---@param opts? cq.uncertainty.def
---@return cq.Uncertainty                    prints the estimate with its deviations
local function uncertainty(_, residuals, params, opts)
  is.argument("cq.uncertainty", "residuals", is.callable(), residuals)
  local def = options(opts or {})
  if def.batch and def.method == "adjoints" then
    is.fail "cq.uncertainty: batch is for differences, which are rows of one call; adjoints take parameters as they are"
  end
  local p = T.leaves.snapshot(params)
  local list = T.leaves.trainable(p, "cq.uncertainty")
  local numbers, names = numbers_of(list), {}
  for k, number in ipairs(numbers) do names[k] = number.name end
  local first, columns
  if def.method == "adjoints" then first, columns = by_adjoints(residuals, p, numbers)
  elseif def.batch then first, columns = in_a_batch(residuals, p, list, numbers, def.step)
  else first, columns = by_differences(residuals, p, numbers, def.step) end
  first = first:flatten()
  local count
  first, columns, count = weighted(def.noise, first, columns)
  local free = count - #numbers
  if free < 0 or free == 0 and not def.noise then
    is.fail("cq.uncertainty: got %s for %s; %s", text.count(count, "residual"),
      text.count(#numbers, "parameter"), free == 0 and "give noise, which they leave none of" or "measure more")
  end
  local square, covariance = first:square():sum():item() / free, inverse(columns, names)
  local self = make(p, numbers, def.noise and covariance or covariance * square)
  self.noise, self.chi_square = def.noise or math.sqrt(square), def.noise and free > 0 and square or nil
  self.measurements, self.params, self.numbers, self.is_found = count, p, numbers, def.noise == nil
  return self
end

method.guard(Uncertainty, "uncertainty")

return setmetatable({ class = Uncertainty }, { __call = uncertainty })
