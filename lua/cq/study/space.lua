-- space: the parameters of a study. Each maps a coordinate u in [0, 1) to a number, and the number to the value that
-- run is called with.
--
--   space = {
--     young = cq.Space.log(1e2, 1e5), damping = cq.Space.uniform(0, 2), layers = cq.Space.integer(1, 4),
--     net = cq.Space.choice { "mlp", "sines" },
--   }
--
-- Samplers draw, and stores keep, a number for each parameter: the value itself, or the index of a choice.
local is = require "cq.base.schema"
local text = require "cq.base.text"

---A parameter of a study, from cq.Space.
---@class cq.Parameter
---@field kind "uniform"|"log"|"integer"|"choice"     log: drawn by its logarithm
---@field min number?           of a range
---@field max number?           of a range
---@field values any[]?         of a choice
---@field taken table<string, true>?    of a choice: the texts of its values that are no strings
local Parameter = { __name = "cq.Parameter" }
Parameter.__index = Parameter

-- The two ends of the range that a parameter is drawn from, of a logarithmic one as logarithms. An integer's range is
-- wider by a half on each side, so that its end values are as likely as the others.
local function ends(self)
  local pad = self.kind == "integer" and 0.5 or 0
  local low, high = self.min - pad, self.max + pad
  if self.kind == "log" then return math.log(low), math.log(high) end
  return low, high
end

---@internal
---The number of this parameter at a coordinate u in [0, 1); of a choice the index of its value, from 1.
---@param u number      in [0, 1)
---@return number
function Parameter:at(u)
  if self.kind == "choice" then return math.min(math.floor(u * #self.values), #self.values - 1) + 1 end
  local low, high = ends(self)
  local x = low + u * (high - low)
  if self.kind == "log" then x = math.exp(x) end
  if self.kind == "integer" then x = math.floor(x + 0.5) end
  return math.max(self.min, math.min(self.max, x))
end

---@internal
---The coordinate of a number x of the parameter, in [0, 1): of an integer or a choice, the middle of its share.
---@param x number
---@return number
function Parameter:unit(x)
  if self.kind == "choice" then return (x - 0.5) / #self.values end
  local low, high = ends(self)
  return ((self.kind == "log" and math.log(x) or x) - low) / (high - low)
end

---@internal
---The value with which run is called, from the number x: the number itself, or the value of a choice with that index.
function Parameter:value(x)
  if self.kind == "choice" then return self.values[x] end
  return x
end

local word               -- value -> text

-- Is a string within a table clear as it stands: no number or other value, and without spaces and signs?
local function is_clear(part)
  return part:match "^[%w_./-]+$" and not tonumber(part) and part ~= "true" and part ~= "false"
end

-- A table without a class as text: the words of a list, or the fields in the alphabetic order of their names.
local function content(value)
  -- An entry; of a table within this one in braces, of a string that is not clear in quotes.
  local function entry(part)
    if type(part) == "string" then return is_clear(part) and part or ('"%s"'):format(part) end
    return type(part) == "table" and not getmetatable(part) and "{" .. content(part) .. "}" or word(part)
  end
  local parts = {}
  if text.is_list(value) then
    for k, part in ipairs(value) do parts[k] = entry(part) end
    return table.concat(parts, " ")
  end
  for name, part in pairs(value) do parts[#parts + 1] = ("%s = %s"):format(tostring(name), entry(part)) end
  table.sort(parts)
  return table.concat(parts, ", ")
end

-- A value of a choice as text, by which it is stored and known from other values.
function word(value)
  if type(value) == "number" then return text.exact(value) end
  local meta = type(value) == "table" and getmetatable(value)
  if type(value) == "table" and not meta then return next(value) == nil and "{}" or content(value) end
  if type(value) == "string" or type(value) == "boolean" or type(meta) == "table"
    and meta.__tostring then return tostring(value) end
  return text.describe(value)      -- an address would be another one in every process
end

-- The text of value i of a choice, by which it is known from the other ones: a string stands in quotes where another
-- value, such as a list, has the same text.
local function text_of(self, i)
  local value = self.values[i]
  if type(value) ~= "string" then return word(value) end
  if not self.taken then
    self.taken = {}
    for _, other in ipairs(self.values) do
      if type(other) ~= "string" then self.taken[word(other)] = true end
    end
  end
  return self.taken[value] and ('"%s"'):format(value) or value
end

-- A value of a choice as text as earlier programs have stored it: numbers with ten digits, lists within a list without
-- braces, tables with fields without their content.
local function former_word(value)
  if type(value) == "number" then return text.number(value) end
  if type(value) ~= "table" or getmetatable(value) then return word(value) end
  if not text.is_list(value) then return text.describe(value) end
  local parts = {}
  for k, part in ipairs(value) do parts[k] = former_word(part) end
  return table.concat(parts, " ")
end

---@internal
---The number x of this parameter as text for people, a fraction with up to ten digits; of a choice its value, where an
---empty one is a pair of quotes.
---@return string
function Parameter:label(x)
  if self.kind ~= "choice" then return ("%.4g"):format(x) end
  local value = self.values[x]
  local said = type(value) == "number" and value % 1 ~= 0 and text.number(value) or text_of(self, x)
  return said == "" and '""' or said
end

---@internal
---The number x of this parameter, or the value of a choice, with all digits; values that are no numbers as texts.
---@return number|string
function Parameter:exact(x)
  if self.kind ~= "choice" then return x end
  return type(self.values[x]) == "number" and self.values[x] or text_of(self, x)
end

---@internal
---Is x a number that the parameter can have?
---@return boolean
function Parameter:holds(x)
  if type(x) ~= "number" then return false end
  if self.kind == "choice" then return self.values[x] ~= nil end
  return x >= self.min and x <= self.max
end

---@internal
---The value of the parameter for a number x as JSON can hold it; functions and other objects as texts.
---@return number|string|boolean|table
function Parameter:plain(x)
  if self.kind ~= "choice" then return x end
  local value = self.values[x]
  -- Is a value data: no function, no object?
  local function is_plain(v)
    if type(v) ~= "table" then return type(v) ~= "function" and type(v) ~= "userdata" and type(v) ~= "cdata" end
    if getmetatable(v) then return false end
    for key, one in pairs(v) do
      if type(key) ~= "string" and type(key) ~= "number" or not is_plain(one) then return false end
    end
    return true
  end
  return is_plain(value) and value or value ~= false and word(value)
end

---@internal
---Can a plot show the parameter's values as numbers? True for ranges, and for choices of numbers.
---@return boolean
function Parameter:is_numeric()
  if self.kind ~= "choice" then return true end
  for _, value in ipairs(self.values) do
    if type(value) ~= "number" or value - value ~= 0 then return false end
  end
  return true
end

---@internal
---The parameter's definition as stored, to detect changes, and for tables made without the script.
---@param former? boolean      as earlier programs have stored it
---@return table
function Parameter:description(former)
  local out = { kind = self.kind, min = self.min, max = self.max }
  if self.values then
    out.numeric, out.values = self:is_numeric(), {}
    for i, value in ipairs(self.values) do
      out.values[i] = out.numeric and value or former and former_word(value) or text_of(self, i)
    end
  end
  return out
end

-- The parameter in one line: its choices, or its range.
function Parameter:__tostring()
  if self.kind == "choice" then return ("one of %s"):format(table.concat(self:description().values, ", ")) end
  local kinds = { integer = ", whole", log = ", logarithmic" }
  return ("%s to %s%s"):format(text.number(self.min), text.number(self.max), kinds[self.kind] or "")
end

---@class cq.SpaceModule
local space = { class = Parameter }

-- A parameter that takes numbers between min and max. name: of its constructor, for errors. Errors: min not below max,
-- or too far from it; a logarithmic one that does not lie above 0.
local function range(name, kind, min, max)
  is.argument(name, "min", is.number(), min)
  is.argument(name, "max", is.number(), max)
  if not (min < max) then is.fail("%s: min must be below max, got %s and %s", name, text.number(min),
    text.number(max)) end
  if kind ~= "log" and max - min == math.huge then
    is.fail("%s: %s and %s are too far apart: no number holds their distance", name, text.number(min), text.number(max))
  end
  if kind == "log" and min <= 0 then
    is.fail("%s: a logarithmic range lies above 0, got %s to %s", name, text.number(min), text.number(max))
  end
  return setmetatable({ kind = kind, min = min, max = max }, Parameter)
end

---A parameter that is a number between min and max, all equally likely.
---@param min number
---@param max number
---@return cq.Parameter
function space.uniform(min, max) return range("cq.Space.uniform", "uniform", min, max) end

---A parameter that is a number between min and max by its logarithm: each power of ten is as likely as any other.
---Whole numbers on such a scale are a choice: cq.Space.choice { 1, 2, 4, 8 }.
---@param min number      above 0
---@param max number
---@return cq.Parameter
function space.log(min, max) return range("cq.Space.log", "log", min, max) end

---A parameter that is a whole number from min to max, both included, all equally likely.
---@param min integer
---@param max integer
---@return cq.Parameter
function space.integer(min, max)
  is.argument("cq.Space.integer", "min", is.integer(), min)
  is.argument("cq.Space.integer", "max", is.integer(), max)
  return range("cq.Space.integer", "integer", min, max)
end

-- Does a table without a class contain itself, also within other tables? outer: the tables that contain it.
local function is_circular(value, outer)
  if type(value) ~= "table" or getmetatable(value) then return false end
  if outer[value] then return true end
  outer[value] = true
  for _, part in pairs(value) do
    if is_circular(part, outer) then return true end
  end
  outer[value] = nil
  return false
end

---A parameter that is one of a list of values. A list of numbers has an order that plots show. Errors: no list, or an
---empty one; a table that contains itself.
---@param values any[]     at least one: numbers, strings, true and false, tables, functions
---@return cq.Parameter
function space.choice(values)
  if type(values) ~= "table" or getmetatable(values) or not text.is_list(values) or #values == 0 then
    is.fail("cq.Space.choice: takes a list of at least one value, got %s", text.describe(values))
  end
  for i, value in ipairs(values) do
    if is_circular(value, {}) then is.fail("cq.Space.choice: value %d is a table that contains itself", i) end
  end
  return setmetatable({ kind = "choice", values = table.move(values, 1, #values, 1, {}) }, Parameter)
end

---@internal
---A parameter of a grid, from the user's list, or tensor of rank 1. Errors: no list, or an empty one.
---@param name string
---@param given any
---@return cq.Parameter
function space.listed(name, given)
  if text.is_instance(given, "cq.Tensor") and given.rank == 1 then given = given:totable() end
  if type(given) ~= "table" or getmetatable(given) or not text.is_list(given) or #given == 0 then
    is.fail("cq.Study: grid.%s must be a list of values or a tensor of rank 1, got %s", name, text.describe(given))
  end
  return space.choice(given)
end

---@internal
---A parameter from its stored description.
---@param entry table
---@return cq.Parameter
function space.stored(entry)
  return setmetatable({ kind = entry.kind, min = entry.min, max = entry.max, values = entry.values }, Parameter)
end

return space
