-- gradient: from a function of parameters to its value and gradients in the shape of the parameters.
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local leaves = require "cq.tensor.leaves"

local fail = schema.fail

local gradient = {}

local warned = {}                       -- paths already warned of

local function warn_zero(path)
  if warned[path] then return end
  local told = require("cq.tensor").warn(("the gradient of %s is exactly zero everywhere: it reaches the objective without moving it"):format(path))
  warned[path] = told ~= false
end

-- the number, or why there is none
local function check_loss(loss, list)
  if type(loss) == "number" then
    fail("parameter %s does not reach the objective: f returned the number %g, which remembers no parameter; return a tensor",
      list[1].path, loss)
  end
  if not class.is_tensor(loss) then fail("the objective must be a tensor of one element, got %s", schema.describe(loss)) end
  if loss.count ~= 1 then
    fail("the objective must be a tensor of one element, got shape %s; use :sum() or :mean()", class.shape_text(loss.dims))
  end
  local value = loss:item()
  if value - value ~= 0 then fail("the objective is %g, which is no finite number", value) end
  return value
end

local function gradient_of(leaf)
  local t = leaf.tensor
  local adjoint = t.adjoint
  if not adjoint then
    fail("parameter %s does not reach the objective: nothing computed from it is part of the result; use it, or leave it out of the parameters",
      leaf.path)
  end
  local zero = true
  for i = 0, t.count - 1 do
    local g = adjoint[i]
    if g - g ~= 0 then
      fail("the gradient of %s is %g at element %d, which is no finite number", leaf.path, g, i + 1)
    end
    zero = zero and g == 0
  end
  if zero and t.count > 0 then warn_zero(leaf.path) end
  return class.wrap(adjoint, t.count, t.rank, t.dims)
end

local function evaluate(f, list, p, ...)
  local record = tape.new()
  local results = { n = 0 }
  local function keep(...) results = { n = select("#", ...), ... } end
  keep(tape.with(record, f, p, ...))
  local value = check_loss(results[1], list)
  record:backward(results[1])
  local grads = {}
  for _, leaf in ipairs(list) do grads[leaf.tensor] = gradient_of(leaf) end
  return value, leaves.map(p, function(t) return grads[t] end), unpack(results, 2, results.n)
end

local held = class.held

-- the gradients of these tensors begin anew, and what others had collected there comes back
local function isolated(list, f, ...)
  local before = {}
  for i, leaf in ipairs(list) do
    local t = leaf.tensor
    before[i] = { adjoint = t.adjoint, requires_grad = t.requires_grad, held = held[t] }
    t.adjoint, t.requires_grad, held[t] = false, true, true
  end
  local function restore(ok, ...)
    for i, leaf in ipairs(list) do
      local t = leaf.tensor
      t.adjoint, t.requires_grad, held[t] = before[i].adjoint, before[i].requires_grad, before[i].held
    end
    if not ok then error((...), 0) end
    return ...
  end
  return restore(pcall(tape.whole, f, ...))
end

---A function that gives the value of f and its gradient by the parameters.
---
---The first argument of f is a tensor or any nesting of plain tables. Trainable are the cq.param tensors in it, or all tensors
---if it has no param; gradients stand in a table of the same shape, where only trainables have an entry. f returns the
---objective (a tensor of one element) and whatever else, which is passed on behind the gradients as plain data.
---Errors: an objective that is no finite number; a parameter that does not reach it; a gradient that is no finite number. A
---gradient that is exactly zero everywhere calls tensor.warn once for each parameter's name.
---@param f fun(p: any, ...): cq.Tensor, ...   of the parameters, and of what else its callers give
---@return fun(p: any, ...): number, any, ...
function gradient.value_and_grad(f)
  schema.argument("cq.value_and_grad", "f", schema.callable(), f)
  return function(p, ...)
    local list = leaves.trainable(p, "cq.value_and_grad")
    return isolated(list, evaluate, f, list, p, ...)
  end
end

---Like value_and_grad, with the gradients first: grads, loss, ...
---@param f fun(p: any, ...): cq.Tensor, ...   of the parameters, and of what else its callers give
---@return fun(p: any, ...): any, number, ...
function gradient.grad(f)
  schema.argument("cq.grad", "f", schema.callable(), f)
  local both = gradient.value_and_grad(f)
  local function swap(loss, grads, ...) return grads, loss, ... end
  return function(...) return swap(both(...)) end
end

return gradient
