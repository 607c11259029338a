-- parts: an optimizer for each part of the parameters, where one rule, or one clip over all gradients
-- together, does not suit them all.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local method = require "cq.base.method"
local leaves = require "cq.tensor.leaves"

local parts = {}

-- A sorted list of the names of the parts of the parameters that hold tensors. Errors: a part without an optimizer
-- here; an optimizer without a part.
local function names_of(self, params)
  if type(params) ~= "table" or getmetatable(params) then
    is.fail("optimizer:update: an optimizer of parts takes a table of parts, got %s", text.describe(params))
  end
  local names = {}
  for _, name in ipairs(leaves.sorted_keys(params)) do
    if #leaves.list(params[name]) > 0 then
      if not self.parts[name] then
        is.fail("optimizer:update: there is no optimizer for the parameters \"%s\"; those with one are %s",
          tostring(name),
          table.concat(leaves.sorted_keys(self.parts), ", "))
      end
      names[#names + 1] = name
    end
  end
  for name in pairs(self.parts) do
    if params[name] == nil then
      is.fail("optimizer:update: the part \"%s\" has an optimizer, but no parameters; there are %s", tostring(name),
        table.concat(names, ", "))
    end
  end
  return names
end

---The class of optimizers of parts, made once from the class of all optimizers.
---@param Optimizer table      the class
---@param prepare function     (optimizer, params, grads, part): the step of an optimizer, or an error
---@param step function        (optimizer, found): makes it
---@return table methods
function parts.methods(Optimizer, prepare, step)
  local Parts = setmetatable({ __name = Optimizer.__name }, { __index = Optimizer })
  Parts.__index = Parts

  -- The steps of all parts, by name, or an error; nothing is changed. prefix: before their names, for errors.
  local function prepare_all(self, params, grads, prefix)
    local found = {}
    for _, name in ipairs(names_of(self, params)) do
      local part, path = self.parts[name], prefix .. tostring(name)
      found[name] = part.parts and prepare_all(part, params[name], grads[name], path .. ".")
        or prepare(part, params[name], grads[name], path)
    end
    return found
  end

  -- Makes the steps of all parts. found: from prepare_all.
  local function step_all(self, found)
    local square = 0
    for _, name in ipairs(leaves.sorted_keys(found)) do
      local part = self.parts[name]
      local make = part.parts and step_all or step
      make(part, found[name])
      square = square + part.norm * part.norm
    end
    self.iteration, self.norm = self.iteration + 1, math.sqrt(square)
  end

  -- One step of each part's optimizer, in place, or an error before any; self.norm becomes that of all gradients.
  function Parts:update(params, grads) step_all(self, prepare_all(self, params, grads, "")) end

  -- The state of all parts' optimizers, for cq.save: { kind, iteration, parts }.
  function Parts:state()
    local out = { kind = self.kind, iteration = self.iteration, parts = {} }
    for name, part in pairs(self.parts) do out.parts[name] = part:state() end
    return out
  end

  -- Restores a state of Parts:state. Errors: no such state; a part that it lacks.
  function Parts:restore(state)
    if type(state) ~= "table" or type(state.parts) ~= "table" then
      is.fail("optimizer:restore: needs a state of an optimizer of parts, got %s", text.describe(state))
    end
    for name, part in pairs(self.parts) do
      if state.parts[name] == nil then is.fail("optimizer:restore: the state has no part \"%s\"", tostring(name)) end
      part:restore(state.parts[name])
    end
    self.iteration = state.iteration
  end

  -- Restarts the optimizer of each part.
  function Parts:restart()
    self.iteration = 0
    for _, part in pairs(self.parts) do part:restart() end
  end

  -- The optimizers in one line: the kind of each part's.
  function Parts:__tostring()
    local list = {}
    for k, name in ipairs(leaves.sorted_keys(self.parts)) do
      list[k] = ("%s = %s"):format(name, self.parts[name].kind)
    end
    return ("cq.Optimizer.parts { %s }"):format(table.concat(list, ", "))
  end

  method.guard(Parts, "optimizer")
  return Parts
end

return parts
