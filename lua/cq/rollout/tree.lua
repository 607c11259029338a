-- tree: tensors in nested tables, as one list and back. What users carry from step to step may be
-- a tensor, or tables of them.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local tree = {}

-- A list of the keys of a table in a fixed order: numbers first.
local function sorted_keys(value)
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
  end)
  return keys
end

---The tensors in a value, in a fixed order. Numbers become tensors of rank 0. Errors: a value of another kind.
---@param value any
---@param what string            for errors
---@param out? cq.Tensor[]       appended to
---@return cq.Tensor[]
function tree.flatten(value, what, out)
  out = out or {}
  if value == nil then return out end
  if type(value) == "number" or T.is_tensor(value) then
    out[#out + 1] = T.as_tensor(value)
  elseif type(value) == "table" and not getmetatable(value) then
    for _, key in ipairs(sorted_keys(value)) do tree.flatten(value[key], what, out) end
  else
    is.fail("%s must be tensors, numbers, or tables of them, got %s", what, text.describe(value))
  end
  return out
end

---A copy of nested tables in which tensors of a list take the places of its tensors and numbers, in the order of
---flatten.
---@param value any
---@param tensors cq.Tensor[]
---@return any
function tree.rebuild(value, tensors)
  local next_one = 0
  -- A copy of one part, in which the next tensors of the list take the places of its numbers and tensors.
  local function build(part)
    if part == nil then return nil end
    if type(part) == "number" or T.is_tensor(part) then
      next_one = next_one + 1
      return tensors[next_one]
    end
    local out = {}
    for _, key in ipairs(sorted_keys(part)) do out[key] = build(part[key]) end
    return out
  end
  return build(value)
end

---A copy of nested tables in which f(tensor) replaces each tensor, or number as a tensor of rank 0.
---@return any
function tree.map(value, what, f)
  local tensors = tree.flatten(value, what)
  for k, tensor in ipairs(tensors) do tensors[k] = f(tensor) end
  return tree.rebuild(value, tensors)
end

return tree
