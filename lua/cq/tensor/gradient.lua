-- gradient: from a function of parameters to its value and gradients in the shape of the parameters.
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local leaves = require "cq.tensor.leaves"

local fail = schema.fail

local gradient = {}

local warned = {}                       -- paths already warned of

-- Warns by tensor.warn of a gradient that is zero everywhere; once for each path, unless that returns false.
local function warn_zero(path)
  if warned[path] then return end
  local told = require("cq.tensor").warn(
    ("the gradient of %s is exactly zero everywhere: it reaches the objective without moving it"):format(path))
  warned[path] = told ~= false
end

-- A result of f, a number or a tensor of one element, as a number. Errors: a wrong value; not finite. what: its name,
-- for errors.
local function check_number(what, value)
  local number = value
  if type(value) ~= "number" then
    if not class.is_tensor(value) then
      fail("%s must be a tensor of one element, got %s", what, schema.describe(value))
    end
    if value.count ~= 1 then
      fail("%s must be a tensor of one element, got shape %s; use :sum() or :mean()", what,
        class.shape_text(value.dims))
    end
    number = value:item()
  end
  if number - number ~= 0 then fail("%s is %g, which is no finite number", what, number) end
  return number
end

-- A parameter in words: "parameter net.w1", or "the parameter" if it has no name.
local function title(leaf) return leaf.path == "parameter" and "the parameter" or "parameter " .. leaf.path end

-- Returns a loss as a number. Errors: a plain number, which remembers no parameter; a wrong value; not finite.
local function check_loss(loss, list)
  if type(loss) == "number" then
    fail("%s does not reach the objective: f returned the number %g, which remembers no parameter; return a tensor",
      title(list[1]), loss)
  end
  return check_number("the objective", loss)
end

-- Raises an error: the result `what` does not depend on this parameter. plain: the number that all of the result is, in
-- the place of a tensor; nil: it is none.
local function fail_unreached(leaf, what, plain)
  if plain then
    fail("%s does not reach %s: the number %g was returned, which remembers no parameter; return a tensor", title(leaf),
      what, plain)
  end
  fail("%s does not reach %s: nothing computed from it is part of the result; use it, or leave it out of "
    .. "the parameters", title(leaf), what)
end

-- Is the gradient of a parameter zero in all elements? Errors: one that is not finite. of: "NAME by ", which number's
-- gradient it is, for the error.
local function is_zero(leaf, of)
  local t, zero = leaf.tensor, true
  for i = 0, t.count - 1 do
    local g = t.adjoint[i]
    if g - g ~= 0 then
      fail("the gradient of %s%s is %g at element %d, which is no finite number", of, leaf.path, g, i + 1)
    end
    zero = zero and g == 0
  end
  return zero
end

-- The gradient of a parameter after the backward pass, a tensor in the memory of its adjoint. Warns if it is zero.
-- Errors: the objective does not depend on it; not finite.
local function gradient_of(leaf)
  local t = leaf.tensor
  if not t.adjoint then fail_unreached(leaf, "the objective") end
  if is_zero(leaf, "") and t.count > 0 then warn_zero(leaf.path) end
  return class.wrap(t.adjoint, t.count, t.rank, t.dims)
end

-- Calls f(t, whole) with each tensor in the nested tables of a value, and, whole, with that of each operation by whose
-- object, such as a rollout, the value may be read later: the object's class gives it by __recorded. seen: tables met.
local function each_readable(value, f, seen)
  if type(value) ~= "table" or seen[value] then return end
  seen[value] = true
  local meta = getmetatable(value)
  if class.is_tensor(value) then return f(value, false) end
  if type(meta) == "table" and meta.__recorded then return f(meta.__recorded(value), true) end
  for _, key in ipairs(meta == nil and leaves.sorted_keys(value) or {}) do each_readable(value[key], f, seen) end
end

-- While a gradient around this one is recorded: carries zeros back from what f gave beside its first result, so that
-- put_back finds what these read of the computation around, and clears the adjoints of the leaves in `list`.
local function look_back(record, list, results)
  if not tape.recording() then return end
  local made, outputs, zeros = record:results(), {}, {}
  each_readable({ unpack(results, 2, results.n) }, function(t, whole)
    for _, out in ipairs(not made[t] and {} or whole and made[t] or { t }) do
      outputs[#outputs + 1], zeros[#zeros + 1] = out, class.zeros(out)
    end
  end, {})
  if #outputs == 0 then return end
  record:backward(outputs, zeros, true)
  for _, leaf in ipairs(list) do leaf.tensor.adjoint = false end
end

-- Runs f(...) on a tape and returns its results, packed. Until it is done nobody can change the numbers of the leaves
-- in `list`, by another tensor in the same memory either.
local function recorded(record, list, f, ...)
  return tape.pack(tape.with(record, function(...)
    for _, leaf in ipairs(list) do tape.hold(leaf.tensor) end
    return f(...)
  end, ...))
end

-- Runs f(p, ...) on a tape and backward. Returns its value, the gradients in the shape of p, and the further results of
-- f.
local function evaluate(f, list, p, ...)
  local record = tape.new()
  local results = recorded(record, list, f, p, ...)
  local value = check_loss(results[1], list)
  look_back(record, list, results)
  record:backward(results[1])
  local grads = {}
  for _, leaf in ipairs(list) do grads[leaf.tensor] = gradient_of(leaf) end
  return value, leaves.map(p, function(t) return grads[t] end), unpack(results, 2, results.n)
end

-- ---- several numbers -----------------------------------------------------------------------------------------------

-- Checks the table of named numbers that the user's f gave; returns { name = number } and the names in a fixed order.
-- Errors: a wrong value, an empty table, a number that is not finite.
local function check_numbers(given, what)
  if type(given) ~= "table" or getmetatable(given) then
    fail("%s: f must give a table of named numbers, such as { objective = ..., height = ... }, got %s", what,
      schema.describe(given))
  end
  local values, names = {}, leaves.sorted_keys(given)
  for _, name in ipairs(names) do values[name] = check_number(schema.describe(name), given[name]) end
  if #names == 0 then fail("%s: f gave an empty table; it must give at least one named number", what) end
  return values, names
end

-- One backward pass, before which the parameters' adjoints are cleared: the gradients, in the shape of p, of the sum of
-- weight times number, zero where there are none. Notes in run.reached and run.moved which parameters have a gradient,
-- and one that is not zero. keep: is the tape kept?
local function pass(run, p, weights, keep)
  local outputs, seeds, of = {}, {}, ""
  for _, leaf in ipairs(run.list) do leaf.tensor.adjoint = false end
  for _, name in ipairs(run.names) do
    if weights[name] then
      of = #outputs > 0 and "their sum by " or schema.describe(name) .. " by "
      outputs[#outputs + 1], seeds[#seeds + 1] = run.numbers[name], weights[name]
    end
  end
  run.record:backward(outputs, seeds, keep)
  local grads = {}
  for _, leaf in ipairs(run.list) do
    local t = leaf.tensor
    if t.adjoint then
      run.reached[t] = true
      if not is_zero(leaf, of) then run.moved[t] = true end
    end
    grads[t] = t.adjoint and class.wrap(t.adjoint, t.count, t.rank, t.dims) or class.zeros(t)
  end
  return leaves.map(p, function(t) return grads[t] end)
end

-- A new table of numbers and tensors by name, all of them as tensors.
local function as_tensors(given)
  local out = {}
  for name, number in pairs(given) do out[name] = class.is_tensor(number) and number or class.scalar(number) end
  return out
end

-- For each tensor by its name: is it recorded, so that parameters may have a gradient by it?
local function reached_of(numbers)
  local out = {}
  for name, number in pairs(numbers) do out[name] = number.requires_grad end
  return out
end

---@internal
---What parameters must reach, in words: "the objective", or "any of a, b and c".
---@param names string[]
---@return string
function gradient.goal(names)
  return #names == 1 and names[1] == "objective" and "the objective" or "any of " .. table.concat(names, ", ")
end

-- Runs f(p, ...) on a tape. Returns the values of its numbers by name, a list of the gradients of the sums that `plan`,
-- as in gradient.passes, asks for, in the shape of p, and the further results of f.
local function evaluate_all(f, list, plan, what, p, ...)
  local run = { record = tape.new(), list = list, reached = {}, moved = {} }
  local results = recorded(run.record, list, f, p, ...)
  local values, names = check_numbers(results[1], what)
  run.numbers, run.names = as_tensors(results[1]), names
  look_back(run.record, list, results)
  local passes, grads = plan(values, names, reached_of(run.numbers)), {}
  for k, weights in ipairs(passes) do grads[k] = pass(run, p, weights, k < #passes) end
  if #passes == 0 then run.record:backward({}, {}) end
  local goal, plain = gradient.goal(names), values[names[1]]
  for _, name in ipairs(names) do
    local number = results[1][name]
    plain = (type(number) == "number" or rawget(number, "was_number")) and plain or nil
  end
  for _, leaf in ipairs(passes.whole and list or {}) do
    if not run.reached[leaf.tensor] then fail_unreached(leaf, goal, plain) end
    if not run.moved[leaf.tensor] and leaf.tensor.count > 0 then warn_zero(leaf.path) end
  end
  return values, grads, unpack(results, 2, results.n)
end

local locked = class.locked

-- What is put aside of a gradient around this one: the adjoints of its parameters, and of results where its backward
-- pass goes on, which are false until they are put back. nil where there is none around.
local function set_aside()
  if not tape.is_busy() then return nil end
  local adjoints = {}
  -- Some are met twice.
  local function keep(t)
    if adjoints[t] == nil then adjoints[t], t.adjoint = t.adjoint, false end
  end
  for t in pairs(locked) do keep(t) end
  tape.each_reversed(keep)
  local around = { adjoints = adjoints, touched = class.touched, was_reached = tape.is_outside_reached }
  class.touched, tape.is_outside_reached = {}, false
  return around
end

-- Is a tensor the result of a recording? Parameters want gradients too, and what was recorded before wants none.
local function is_result(t) return t.requires_grad and not t.trainable end

-- Puts back what set_aside has put aside. Returns whether the gradient by the leaves has been carried to any of it, or
-- to another result of the computation around, or is itself by some of these.
local function put_back(around, list)
  local is_reached, adjoints, own = tape.is_outside_reached, around.adjoints, {}
  for _, leaf in ipairs(list) do
    local t = leaf.tensor
    own[t] = true
    is_reached = is_reached or adjoints[t] ~= nil or is_result(t)
  end
  for _, t in ipairs(class.touched) do
    if t.adjoint and not own[t] and adjoints[t] == nil and is_result(t) then is_reached, t.adjoint = true, false end
  end
  for t, adjoint in pairs(adjoints) do
    is_reached = is_reached or t.adjoint ~= false
    t.adjoint = adjoint
  end
  class.touched, tape.is_outside_reached = around.touched, around.was_reached
  return is_reached
end

-- Calls f(...) with the tensors of the leaves in `list` made to want gradients, locked (class.locked) and without
-- adjoints, and restores all three afterwards, also after an error. Returns the results of f. Errors: while a gradient
-- around this one is recorded, f reads what that one is computed by, or `list` has it: the result would be a constant
-- to it.
local function isolated(list, f, ...)
  local around, before = set_aside(), {}
  for i, leaf in ipairs(list) do
    local t = leaf.tensor
    before[i] = { adjoint = t.adjoint, requires_grad = t.requires_grad, locked = locked[t] }
    t.adjoint, t.requires_grad, locked[t] = false, true, true
  end
  tape.depth = tape.depth + 1
  -- Puts the fields of the tensors back as they were before; passes on results or the error.
  local function restore(ok, ...)
    tape.depth = tape.depth - 1
    for i, leaf in ipairs(list) do
      local t = leaf.tensor
      t.adjoint, t.requires_grad, locked[t] = before[i].adjoint, before[i].requires_grad, before[i].locked
    end
    local is_reached = around and put_back(around, list)
    if not ok then error((...), 0) end
    if is_reached and tape.recording() then
      fail("a gradient that is computed within the function of another one would be a constant to it, and reads what that one is by: second derivatives are not computed; where a constant is meant, detach what it reads, as p:detach()")
    end
    return ...
  end
  return restore(pcall(tape.whole, f, ...))
end

---@internal
---As value_and_grad, for a part of an objective: the value, for each leaf of the list its adjoint (double {count}) or
---false if this part does not depend on it, and the further results of f.
---@param f fun(p: any, ...): cq.Tensor, ...
---@param list cq.Leaf[]
---@return number value, any[] adjoints, any ...
function gradient.part(f, list, p, ...)
  return isolated(list, function(...)
    local record = tape.new()
    local results = recorded(record, list, f, p, ...)
    local value, adjoints = check_number("the objective", results[1]), {}
    look_back(record, list, results)
    if class.is_tensor(results[1]) then record:backward(results[1]) end
    for k, leaf in ipairs(list) do
      adjoints[k] = leaf.tensor.adjoint
      if adjoints[k] then is_zero(leaf, "") end
    end
    return value, adjoints, unpack(results, 2, results.n)
  end, ...)
end

---@internal
---As gradient.part, for several named numbers of f, with one backward pass for each: their values by name, for each
---name in turn a list of the leaves' adjoints, and the further results of f.
---@param what string         for errors
---@param f fun(p: any, ...): table<string, cq.Tensor>, ...
---@param list cq.Leaf[]
---@param names string[]      of all that f gives
---@return table<string, number> values, any[][] adjoints, any ...
function gradient.parts(what, f, list, names, p, ...)
  return isolated(list, function(...)
    local run = { record = tape.new(), list = list, names = names, reached = {}, moved = {} }
    local results, adjoints = recorded(run.record, list, f, p, ...), {}
    local values = check_numbers(results[1], what)
    run.numbers = as_tensors(results[1])
    look_back(run.record, list, results)
    for k, name in ipairs(names) do
      pass(run, p, { [name] = 1 }, k < #names)
      adjoints[k] = {}
      for i, leaf in ipairs(list) do adjoints[k][i] = leaf.tensor.adjoint end
    end
    return values, adjoints, unpack(results, 2, results.n)
  end, ...)
end

---@internal
---The sum of weight times gradient, in the shape of the parameters.
---@param p any
---@param grads table<string, any>         by the name of the number
---@param weights table<string, number>
---@return any
function gradient.weighted_sum(p, grads, weights)
  local sum = {}
  for _, name in ipairs(leaves.sorted_keys(weights)) do
    local found, weight = leaves.pair(p, grads[name]), weights[name]
    for tensor, grad in pairs(found) do
      if class.is_tensor(grad) then sum[tensor] = sum[tensor] and sum[tensor] + grad * weight or grad * weight end
    end
  end
  return leaves.map(p, function(t) return sum[t] end)
end

---@internal
---Judges a parameter after the gradients of several parts of an objective (gradient.part) were added: raises an error
---if it reached none of them, and warns if their sum is zero.
---@param leaf cq.Leaf
---@param reached boolean    does any part depend on it?
---@param moved boolean    is its gradient not zero?
---@param goal string?        what it is to reach; the objective unless given
function gradient.judge(leaf, reached, moved, goal)
  if not reached then fail_unreached(leaf, goal or "the objective") end
  if not moved and leaf.tensor.count > 0 then warn_zero(leaf.path) end
end

---A function that gives the value of f and its gradient by the parameters.
---
---The first argument of f is a tensor or any nesting of plain tables. Trainable are the cq.param tensors in it, or all
---tensors if it has no param; gradients stand in a table of the same shape, where only trainables have an entry. f
---returns the objective (a tensor of one element) and whatever else, which is passed on behind the gradients as plain
---data. Errors: an objective that is no finite number; a parameter that does not reach it; a gradient that is no finite
---number. A gradient that is exactly zero everywhere calls tensor.warn once for each parameter's name.
---@param f fun(p: any, ...): cq.Tensor, ...   of the parameters, and of what else its callers give
---@return fun(p: any, ...): number, any, ...
function gradient.value_and_grad(f)
  schema.argument("cq.value_and_grad", "f", schema.callable(), f)
  return function(p, ...)
    local list = leaves.trainable(p, "cq.value_and_grad")
    return isolated(list, evaluate, f, list, p, ...)
  end
end

---@internal
---A function as that of values_and_grads, but with the gradients of weighted sums of its numbers. plan(values, names,
---reached) gives a list of weights by name; each entry is one backward pass, without the names that have no weight.
---With `whole = true` in the list every parameter must be reached by one of the passes. reached: by name, was the
---number recorded, so that parameters may have a gradient by it?
---@param what string         for errors
---@param f fun(p: any, ...): table<string, cq.Tensor>, ...
---@param plan fun(values: table<string, number>, names: string[], reached: table<string, boolean>): table[]
---@return fun(p: any, ...): table<string, number>, any[], ...
function gradient.passes(what, f, plan)
  return function(p, ...)
    local list = leaves.trainable(p, what)
    return isolated(list, evaluate_all, f, list, plan, what, p, ...)
  end
end

-- The default plan: one backward pass for each number alone; every parameter must be reached.
local function each(_, names)
  local out = { whole = true }
  for k, name in ipairs(names) do out[k] = { [name] = 1 } end
  return out
end

---A function that gives several numbers and the gradient of each: f runs once, and the backward pass once for each
---number. Rollouts are not run again for it.
---
---f returns a table of named numbers, tensors of one element each, and whatever else, which is passed on. A parameter
---that does not reach one of them has a zero gradient there. Numbers and gradients are the same bits as those of
---value_and_grad of each alone. Errors: a number that is not finite; a parameter that reaches none of them; a gradient
---that is no finite number. A gradient that is exactly zero everywhere in all of them calls tensor.warn once for each
---parameter's name.
---@param f fun(p: any, ...): table<string, cq.Tensor|number>, ...   of the parameters, as in value_and_grad
---@return fun(p: any, ...): table<string, number>, table<string, any>, ...   values and gradients by name
function gradient.values_and_grads(f)
  schema.argument("cq.values_and_grads", "f", schema.callable(), f)
  local run = gradient.passes("cq.values_and_grads", f, each)
  -- The results of a gradient function, with the list of gradients as a table by the names of the values.
  local function named(values, grads, ...)
    local by_name = {}
    for k, name in ipairs(leaves.sorted_keys(values)) do by_name[name] = grads[k] end
    return values, by_name, ...
  end
  return function(...) return named(run(...)) end
end

---Like value_and_grad, with the gradients first: grads, loss, ...
---@param f fun(p: any, ...): cq.Tensor, ...   of the parameters, and of what else its callers give
---@return fun(p: any, ...): any, number, ...
function gradient.grad(f)
  schema.argument("cq.grad", "f", schema.callable(), f)
  local both = gradient.value_and_grad(f)
  -- Gradients before the loss.
  local function swap(loss, grads, ...) return grads, loss, ... end
  return function(...) return swap(both(...)) end
end

return gradient
