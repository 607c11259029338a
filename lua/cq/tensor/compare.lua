-- compare: equality of tensors, and how they print.
local class = require "cq.tensor.class"

local Tensor, meta, number = class.methods, class.meta, class.number

---Same shape and the same numbers, bit for bit but for the sign of zero; nan equals nan.
---@param other cq.Tensor
---@return boolean
function Tensor:equal(other)
  class.check_tensor(self, "equal")
  if not class.is_tensor(other) or not class.same_dims(self.dims, other.dims) then return false end
  local a, b = self.pointer, other.pointer
  for i = 0, self.count - 1 do
    local x, y = number(a, i), number(b, i)
    if x ~= y and (x == x or y == y) then return false end
  end
  return true
end

---Same shape, and |a - b| <= absolute + relative * max(|a|, |b|) for each element.
---@param other cq.Tensor
---@param relative number?  default 1e-9
---@param absolute number?  default 0
---@return boolean
function Tensor:close(other, relative, absolute)
  class.check_tensor(self, "close")
  class.check_tensor(other, "close")
  if not class.same_dims(self.dims, other.dims) then return false end
  relative, absolute = relative or 1e-9, absolute or 0
  local a, b = self.pointer, other.pointer
  for i = 0, self.count - 1 do
    local x, y = number(a, i), number(b, i)
    if x ~= y and not (math.abs(x - y) <= absolute + relative * math.max(math.abs(x), math.abs(y))) then
      return false end
  end
  return true
end

---Is there no nan and no infinity?
---@return boolean
function Tensor:finite()
  class.check_tensor(self, "finite")
  local a = self.pointer
  for i = 0, self.count - 1 do
    local x = number(a, i)
    if x - x ~= 0 then return false end
  end
  return true
end

local shown = 6                         -- entries of a dimension; more are elided in the middle

-- A part of a tensor as nested lists in text, from dimension `depth` on: the `stride` elements from `offset` on. Long
-- lists are elided.
local function text_of(t, depth, offset, stride)
  if depth > t.rank then return ("%.6g"):format(number(t.pointer, offset)) end
  local size, parts = t.dims[depth], {}
  local inner = size > 0 and stride / size or 0
  for i = 1, size do
    if size <= shown or i <= shown / 2 or i > size - shown / 2 then
      parts[#parts + 1] = text_of(t, depth + 1, offset + (i - 1) * inner, inner)
    elseif parts[#parts] ~= "..." then
      parts[#parts + 1] = "..."
    end
  end
  local last = depth == t.rank
  return "{" .. table.concat(parts, last and ", " or ",\n" .. (" "):rep(depth)) .. "}"
end

---The tensor as text: a number for rank 0, nested lists for others, long ones elided.
function meta.__tostring(t) return text_of(t, 1, 0, t.count) end

-- a .. b: the texts of both, joined.
function meta.__concat(a, b) return tostring(a) .. tostring(b) end

-- #t, the size of the first dimension; LuaJIT asks it only if it is built for Lua 5.2.
function meta.__len(t) return t:size(1) end
