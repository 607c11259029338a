-- plain: values as a file of tensors can hold them: numbers, strings, booleans, tensors, and tables of these.
local ffi = require "ffi"
local T = require "cq.tensor"

local plain = {}

local simple = { number = true, string = true, boolean = true }

---A copy of a value that a file of tensors can hold: tables without functions and objects, tensors without gradients.
---nil for a function or an object.
---@param value any
---@return any
function plain.copy(value)
  if simple[type(value)] then return value end
  if T.is_tensor(value) then return value:detach() end
  if type(value) ~= "table" or getmetatable(value) then return nil end
  local out = {}
  for key, entry in pairs(value) do out[key] = plain.copy(entry) end
  return out
end

---A new table with the fields of an object, each copied by plain.copy.
---@param object table
---@return table
function plain.fields(object)
  local out = {}
  for key, value in pairs(object) do out[key] = plain.copy(value) end
  return out
end

---Indices that count from 0, as a tensor of numbers from 1. For files.
---@param index ffi.cdata*|integer[]     int32_t[count], or a list
---@param count? integer        nil: it is a list
---@return cq.Tensor
function plain.numbers(index, count)
  local first = count and 0 or 1
  local out = T.empty { count or #index }
  local data = out:data()
  for k = 0, out.count - 1 do data[k] = index[k + first] + 1 end
  return out
end

---The inverse of plain.numbers: an int32_t array of indices from 0.
---@param numbers cq.Tensor
---@return ffi.cdata* index
---@return integer count
function plain.index(numbers)
  local index, data = ffi.new("int32_t[?]", math.max(numbers.count, 1)), numbers:data()
  for k = 0, numbers.count - 1 do index[k] = data[k] - 1 end
  return index, numbers.count
end

---The inverse of plain.numbers: a list of indices from 0.
---@param numbers cq.Tensor
---@return integer[]
function plain.list(numbers)
  local out, data = {}, numbers:data()
  for k = 1, numbers.count do out[k] = data[k - 1] - 1 end
  return out
end

---Where a user's function is defined, "scenes/eyes.lua:12"; "the script" for another value.
---@param f function?
---@return string
function plain.where(f)
  local info = type(f) == "function" and debug.getinfo(f, "S")
  return info and ("%s:%d"):format(info.short_src, info.linedefined) or "the script"
end

return plain
