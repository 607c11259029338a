-- initial: first values of a controller's parameters: drawn by its seed, or the user's own.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local initial = {
  seed = is.integer { min = 0, optional = true },        -- the program's --seed, or 0
  init = is.table { optional = true },                   -- first values by name; others are drawn
}

---A new source of random numbers for first weights, by the controller's seed.
---@param self cq.Controller
---@return cq.Random
function initial.generator(self) return require("cq.random") { seed = self.seed } end

-- A user's initial value, a number, lists or a tensor, as a cq.param; keeps its bounds. Errors: not of this shape.
local function own_value(value, shape, what)
  if type(value) == "number" then return T.param(T.full(shape, value)) end
  if type(value) ~= "table" then
    is.fail("%s must be a number, lists of them or a tensor, got %s", what, text.describe(value))
  end
  local tensor = T.as_tensor(value, what)
  local got, wanted = table.concat(tensor:shape(), ", "), table.concat(shape, ", ")
  if got ~= wanted then is.fail("%s must have the shape {%s}, got {%s}", what, wanted, got) end
  return T.param(tensor, tensor.bounds)
end

---Drawn parameters, with the user's `init` in place of those that it names; warns as controller:with does. Errors: a
---name or a shape that the controller lacks.
---@param self cq.Controller
---@param params table<string, cq.Tensor>    changed in place
---@return table<string, cq.Tensor> params
function initial.with_own(self, params)
  self:tell_origin(self.init or {})
  local what, names = ("cq.Controller.%s: init"):format(self.family), T.leaves.sorted_keys(params)
  for name, value in pairs(self.init or {}) do
    if not params[name] then
      is.fail("%s has no parameter %s%s; they are %s", what, text.describe(name),
        type(name) == "string" and text.suggestion(name, names) or "", table.concat(names, ", "))
    end
    params[name] = own_value(value, params[name]:shape(), ("%s.%s"):format(what, name))
  end
  return params
end

return initial
