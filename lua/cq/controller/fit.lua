-- fit: are the parameters of a controller those that it takes? In a sentence that names both shapes, and what they are.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

---A parameter that a controller takes.
---@class cq.controller.wanted
---@field name string
---@field sizes (integer|false)[]    false: any
---@field of string[]                what is counted along each dimension

local fit = {}

-- The shape that a parameter must have as text, such as "{observations, signals} = {4, 2}".
local function sizes_text(wanted)
  local out = {}
  for k, size in ipairs(wanted.sizes) do out[k] = size and tostring(size) or "n" end
  return ("{%s} = {%s}"):format(table.concat(wanted.of, ", "), table.concat(out, ", "))
end

-- Does a tensor have these sizes? false in the list stands for any size.
local function same(tensor, sizes)
  if tensor.rank ~= #sizes then return false end
  for k, size in ipairs(sizes) do
    if size and tensor:size(k) ~= size then return false end
  end
  return true
end

---Raises an error if parameters lack one of the list, have one that is not in it, or one of a wrong shape.
---@param what string         the controller, for errors
---@param params any
---@param list cq.controller.wanted[]
function fit.require(what, params, list)
  local known = {}
  for k, wanted in ipairs(list) do
    known[k], known[wanted.name] = wanted.name, true
    local value = params[wanted.name]
    if value == nil then
      local names = tables.names(params)
      is.fail("%s: the parameters lack %s, %s; %s", what, wanted.name, sizes_text(wanted),
        #names > 0 and "they are " .. table.concat(names, ", ") or "there are none")
    elseif not T.is_tensor(value) then
      is.fail("%s: %s must be a tensor %s, got %s", what, wanted.name, sizes_text(wanted), text.describe(value))
    elseif not same(value, wanted.sizes) then
      is.fail("%s: %s must be %s, got {%s}", what, wanted.name, sizes_text(wanted), table.concat(value:shape(), ", "))
    end
  end
  for _, name in ipairs(tables.names(params)) do
    if not known[name] then
      is.fail("%s has no parameter %s; its own are %s", what, text.describe(name), table.concat(known, ", "))
    end
  end
end

return fit
