-- schema: the fields that a constructor's table may have, and errors that point at the user's line.
--
--   local is   = schema
--   local spec = schema.define("cq.Material", {
--     young          = is.number { above = 0, default = 10 },
--     poisson        = is.number { above = -1, below = 0.5, default = 0.3 },
--     kind           = is.one_of { "linear", "corotated", default = "linear" },
--     direction      = is.vector { size = { 2, 3 }, optional = true },
--     shape          = is.any_of { is.instance "cq.Shape", is.list(is.instance "cq.Shape") },
--   })
--   local def = spec(user_table)          -- a checked copy with defaults filled in
--
-- A field is required unless it has a default or `optional = true`. Every checker takes `default` and `optional`, and
-- `help` for an option of a command.
-- A class is known by the `__name` of its metatable ("cq.Robot"); a metatable's `__is = { ["cq.Shape"] = true }`
-- names the families that it belongs to as well.
local text = require "cq.base.text"
local tables = require "cq.base.tables"

local schema = {}

---Every definition by its name; a test holds the LuaCATS annotations equal to these.
---@type table<string, cq.Schema>
schema.registry = {}

---@internal
---@class cq.Checker
---@field label string                      what is allowed, for people: "a number above 0"
---@field cats string                       the LuaCATS type
---@field check fun(value: any): boolean, string?   fine or not; and where in the value when that helps
---@field default any
---@field optional boolean
---@field help string?                      what it is for, where a command takes it as an option, or the engine lists it
---@field listed boolean?                   is it a field of the engine's list, by which help tells its meaning and unit?

---@class cq.Schema
---@field name string
---@field fields table<string, cq.Checker>
---@field items cq.Checker?                 of positional entries

-- ---- errors at the user's line --------------------------------------------------------------------------------------

local library = debug.getinfo(1, "S").source:match "^(.*[/\\])base[/\\]" or "@"     -- "@<root>/lua/cq/"

---Is this frame of the call stack, from debug.getinfo with "S", part of the library or of the C program?
function schema.is_library(info)
  return info.what == "C" or info.source:sub(1, #library) == library
end

---Position "file:line: " of the first frame that is the user's; "script: " or "" when there is none.
---@return string
function schema.where()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    if not schema.is_library(info) and info.currentline > 0 then
      return ("%s:%d: "):format(info.short_src, info.currentline)
    end
    level = level + 1
  end
  -- a tail call, return cq.World {...}, leaves no frame: then at least the script
  return schema.script and schema.script .. ": " or ""
end

local REMEMBERED = 256         -- at least so many of the last sentences are known
local raised, raised_before, raised_count = {}, {}, 0

---Remembers an error's sentence as one for the user, so that the program prints it without the library's stack frames,
---and returns it. At least the last 256 sentences are known, since cleaning up after an error may raise another.
---@param problem string
---@return string problem
function schema.remember(problem)
  if raised_count == REMEMBERED then raised, raised_before, raised_count = {}, raised, 0 end
  raised[problem], raised_count = true, raised_count + 1
  return problem
end

---Was this sentence raised by schema.fail, and not by Lua or by a user's function?
---@param problem any
---@return boolean
function schema.is_failure(problem) return raised[problem] or raised_before[problem] or false end

---The text of a caught error with more text behind it; if schema.is_failure knows the error, it knows the longer text
---too.
---@param problem string
---@param format string       of what is added
---@param ... any
---@return string
function schema.with_more(problem, format, ...)
  local longer = problem .. format:format(...)
  return schema.is_failure(problem) and schema.remember(longer) or longer
end

---Raises an error at the user's line: what was wrong, what was got, what is allowed.
---@param format string
---@param ... any            for string.format; none: format is taken as it is
function schema.fail(format, ...)
  local message = select("#", ...) > 0 and format:format(...) or format
  error(schema.remember(schema.where() .. message), 0)
end

schema.describe = text.describe
schema.suggest = text.suggest

-- ---- checkers -------------------------------------------------------------------------------------------------------

-- Makes a cq.Checker. label: what is allowed, for errors; cats: its LuaCATS type; check(value): is it allowed, and if
-- not, perhaps a text about the value for the error, and true where this stands in the place of the value.
local function checker(options, label, cats, check)
  return {
    label = label, cats = cats, check = check,
    default = options.default, optional = options.optional or options.default ~= nil, help = options.help,
  }
end

local ranges = { min = "at least %s", above = "above %s", max = "at most %s", below = "below %s" }
local range_order = { "min", "above", "max", "below" }
local number_options = { min = 1, above = 1, max = 1, below = 1, infinite = 1, default = 1, optional = 1, help = 1,
  unit = 1 }

-- A text such as " at least 0 and below 1" from the options min, above, max and below; empty without any.
local function range_label(options)
  local parts = {}
  for _, key in ipairs(range_order) do
    if options[key] then parts[#parts + 1] = ranges[key]:format(text.number(options[key])) end
  end
  return #parts > 0 and " " .. table.concat(parts, " and ") or ""
end

-- Raises an error if options have a name that is not a key of `known`: a mistake of the library itself. what: kind of
-- the checker.
local function known_options(options, known, what)
  for key in pairs(options) do
    if not known[key] and type(key) == "string" then error(("%s has no option %s"):format(what, key), 3) end
  end
end

-- Is a number within the range that a checker's options allow?
local function in_range(value, options)
  if value ~= value then return false end
  if not options.infinite and (value == math.huge or value == -math.huge) then return false end
  return (not options.min or value >= options.min) and (not options.max or value <= options.max)
     and (not options.above or value > options.above) and (not options.below or value < options.below)
end

-- Makes the function schema.number or schema.integer, which makes checkers of numbers in a range. what: the kind in
-- words; whole: only whole numbers?
local function number_of(what, whole)
  return function(options)
    options = options or {}
    known_options(options, number_options, what)
    local label = (options.infinite and "a number" or what) .. range_label(options)
      .. (options.unit and (" [%s]"):format(options.unit) or "")
    return checker(options, label, whole and "integer" or "number", function(value)
      if type(value) ~= "number" or not in_range(value, options) then return false end
      -- ten digits of 0.7 / 0.1 are 7
      return not whole or value % 1 == 0, text.exact(value), true
    end)
  end
end

---A finite number; options min, max, above, below, infinite, unit (for messages).
schema.number = number_of("a finite number", false)
---A whole number; options min, max, above, below.
schema.integer = number_of("a whole number", true)

-- Makes a function such as schema.boolean, which makes checkers of the Lua type `name`.
local function of_type(name, label)
  return function(options)
    return checker(options or {}, label, name == "table" and "table" or name,
      function(value) return type(value) == name end)
  end
end

schema.boolean = of_type("boolean", "true or false")
schema.table = of_type("table", "a table")

---A checker of strings that are not empty and have no NUL byte, at which a path would end.
function schema.string(options)
  return checker(options or {}, "a string", "string", function(value)
    if type(value) ~= "string" or #value == 0 then return false end
    local at = value:find("\0", 1, true)
    return not at, at and (" with a NUL byte at position %d"):format(at) or nil
  end)
end

---A checker that takes every value but nil.
function schema.any(options)
  return checker(options or {}, "a value", "any", function(value) return value ~= nil end)
end

---A checker of functions, or tables that can be called.
function schema.callable(options)
  return checker(options or {}, "a function", "function", text.is_callable)
end

---A checker that allows only the given values: is.one_of { "x", "y", default = "x" }.
function schema.one_of(options)
  local names, cats = {}, {}
  for i, value in ipairs(options) do
    names[i] = text.describe(value)
    cats[i] = type(value) == "string" and names[i] or tostring(value)
  end
  local label = (#names > 1 and "one of " or "") .. table.concat(names, ", ")
  return checker(options, label, table.concat(cats, "|"), function(value)
    for _, allowed in ipairs(options) do
      if value == allowed then return true end
    end
    return false, type(value) == "string" and text.suggestion(value, options) or nil
  end)
end

---A checker of lists of numbers. Options: size (one length, or a list of allowed lengths), integer, and those of
---schema.number for each number.
function schema.vector(options)
  options = options or {}
  local sizes = type(options.size) == "number" and { options.size } or options.size
  local element = {}
  for key, value in pairs(options) do
    if key ~= "size" and key ~= "integer" and key ~= "default" and key ~= "optional" then element[key] = value end
  end
  local of = (options.integer and schema.integer or schema.number)(element)
  local count = sizes and table.concat(sizes, " or ") .. " " or ""
  local plural = of.label:gsub("^a ", ""):gsub("number", "numbers")
  return checker(options, ("a list of %s%s"):format(count, plural), options.integer and "integer[]" or "number[]",
    function(value)
      if type(value) ~= "table" or getmetatable(value) then return false end
      if not text.is_list(value) or #value == 0 then return false end
      local size_fits = not sizes
      for _, size in ipairs(sizes or {}) do size_fits = size_fits or size == #value end
      if not size_fits then return false, ("a list of %d"):format(#value), true end
      for i, x in ipairs(value) do
        if not of.check(x) then return false, ("%s at position %d"):format(text.describe(x), i), true end
      end
      return true
    end)
end

---A checker of objects of a class, or of one of several: is.instance "cq.Robot", is.instance { "cq.Robot", "cq.Shape"
---}.
function schema.instance(options)
  local names = type(options) == "table" and options or { options }
  return checker(type(options) == "table" and options or {}, text.article(table.concat(names, " or ")),
    table.concat(names, "|"),
    function(value)
      for _, name in ipairs(names) do
        if text.is_instance(value, name) then return true end
      end
      return false
    end)
end

---A checker of tensors. options: default, optional.
function schema.tensor(options)
  local base = schema.instance { "cq.Tensor" }
  return checker(options or {}, "a tensor", "cq.Tensor", base.check)
end

---A checker of lists whose elements all pass a checker: is.list(is.string(), { min = 1 }).
function schema.list(of, options)
  options = options or {}
  local least = options.min or 0
  local label = ("a list of%s, each %s"):format(least > 0 and (" at least %d"):format(least) or "", of.label)
  if least == 0 then label = "a list, each entry " .. of.label end
  return checker(options, label, of.cats:find "|" and ("(%s)[]"):format(of.cats) or of.cats .. "[]", function(value)
    if type(value) ~= "table" or getmetatable(value) or not text.is_list(value) then return false end
    if #value < least then return false, ("a list of %d"):format(#value), true end
    for i, x in ipairs(value) do
      local fine, detail, replaces = of.check(x)
      if not fine then
        return false, ("%s at position %d"):format(replaces and detail or text.describe(x), i), true
      end
    end
    return true
  end)
end

---A checker of values that pass one of several checkers: is.any_of { is.number(), is.tensor() }.
function schema.any_of(options)
  local labels, cats = {}, {}
  for i, option in ipairs(options) do labels[i], cats[i] = option.label, option.cats end
  return checker(options, table.concat(labels, ", or "), table.concat(cats, "|"), function(value)
    local detail, replaces
    for _, option in ipairs(options) do
      local fine, why, instead = option.check(value)
      if fine then return true end
      if why then detail, replaces = why, instead end
    end
    return false, detail, replaces
  end)
end

-- ---- definitions ----------------------------------------------------------------------------------------------------

-- Raises the error of a field with a wrong value. detail: more about the value; replaces: detail stands instead of it.
local function refuse(name, field, kind, value, detail, replaces)
  local got = replaces and detail or text.describe(value)
  local hint = detail and not replaces and detail or ""
  schema.fail("%s: %s must be %s, got %s%s", name, field, kind.label, got, hint)
end

---Checks one value outside a definition, for positional arguments, and returns it. Errors: it is missing, or not of
---that kind.
---@param name string      of the function, "robot:at"
---@param argument string  its name, "offset"
---@param kind cq.Checker
---@param value any
---@return any value       or the default
function schema.argument(name, argument, kind, value)
  if value == nil then
    if kind.optional then return kind.default end
    schema.fail("%s: %s is missing, it must be %s", name, argument, kind.label)
  end
  local fine, detail, replaces = kind.check(value)
  if not fine then refuse(name, argument, kind, value, detail, replaces) end
  return value
end

---Raises an error if two vectors have different numbers of components.
---@param name string          of what they are given to
---@param first string         name of a
---@param a any[]
---@param second string        name of b
---@param b any[]
function schema.same_size(name, first, a, second, b)
  if #a == #b then return end
  schema.fail("%s: %s has %s and %s has %d", name, first, text.count(#a, "component"), second, #b)
end

---Why a table that was read from a file does not fit the fields, in words; nil if it fits. It may have further fields.
---@param fields table<string, cq.Checker>
---@param value any
---@return string?
function schema.problem(fields, value)
  if type(value) ~= "table" then return ("it must be a table, got %s"):format(text.describe(value)) end
  for _, name in ipairs(tables.names(fields)) do
    local kind, part = fields[name], value[name]
    local fine = part == nil and kind.optional or part ~= nil and kind.check(part)
    if not fine then return ("%s must be %s, got %s"):format(name, kind.label, text.describe(part)) end
  end
end

local Schema = {}
Schema.__index = Schema

-- fields that had another name once
local renamed = { final = "terminal", tracked = "markers", watch = "on_step", which = "params",
  newton = "newton_iterations", linear = "linear_iterations", gradient = "adjoint_tolerance", slide = "stick_velocity",
  volume_averaging = "pressure_smoothing", dilatation_averaging = "f_bar" }

---Raises an error if an entry of a list is nil and another one follows, which LuaJIT would leave out.
---@param list table         that may have named fields too
---@param what string        the constructor, for the error
function schema.require_whole(list, what)
  local last, k = 0, 1
  for key in pairs(list) do last = type(key) == "number" and math.max(last, key) or last end
  while list[k] ~= nil do k = k + 1 end
  if k <= last then schema.fail("%s: entry %d is nil, and entry %s follows", what, k, text.number(last)) end
end

---Raises an error if a table of a user that is read as a list is none: it has names, or a nil between its entries, and
---they would be left out.
---@param list table
---@param what string        whose it is, for the error
function schema.require_list(list, what)
  schema.require_whole(list, what)
  for key in pairs(list) do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
      schema.fail("%s: takes a list, whose entries have no names, got one with the name %s", what, text.describe(key))
    end
  end
end

-- A list as a copy, and lists in it too, so that what their owner does to them later has no effect; another value as it
-- is.
local function copied(value)
  if type(value) ~= "table" or getmetatable(value) or not text.is_list(value) then return value end
  local out = {}
  for k, entry in ipairs(value) do out[k] = copied(entry) end
  return out
end

-- Is this table the family of a constructor, as cq.Shape is of cq.Shape.box? A call with a colon gives it first.
local function is_family(given, name)
  local member = name:match "^cq%.%w+%.([%w_]+)$"
  return member ~= nil and type(given) == "table" and text.is_callable(rawget(given, member))
end

-- Checks a user's table: returns a copy with defaults, and with copies of its lists. Errors: no table; an unknown
-- field; a wrong or a missing value; a nil between positional entries.
function Schema:__call(given)
  if is_family(given, self.name) then
    schema.fail("%s: a constructor is called with a dot, %s { ... }, not with a colon", self.name, self.name)
  end
  if type(given) ~= "table" or text.class_of(given) then
    schema.fail("%s: takes one table of named fields, got %s", self.name, text.describe(given))
  end
  local out = {}
  if self.items then schema.require_whole(given, self.name) end
  for key, value in pairs(given) do
    local kind = self.fields[key]
    if type(key) == "number" and self.items then
      out[key] = schema.argument(self.name, ("entry %s"):format(text.number(key)), self.items, value)
    elseif not kind then
      self:unknown(key, given)
    else
      out[key] = copied(schema.argument(self.name, key, kind, value))
    end
  end
  for _, name in ipairs(self.names) do
    if out[name] == nil then out[name] = schema.argument(self.name, name, self.fields[name], nil) end
  end
  return out
end

---Raises the error of a field that the schema lacks: it names the field, its new name or a similar one, and the allowed
---fields.
function Schema:unknown(key, given)
  local value = given[key]
  local allowed = #self.names > 0 and "allowed are " .. table.concat(self.names, ", ") or "it takes none"
  if type(key) ~= "string" then
    schema.fail("%s: takes named fields, got %s at position %s; %s", self.name, text.describe(value), tostring(key),
      allowed)
  end
  local hint = self.hints and self.hints(key, given)
    or self.fields[renamed[key]] and ("it is %s now"):format(renamed[key])
  hint = hint and (" (%s)"):format(hint) or text.suggestion(key, self.names)
  schema.fail("%s: unknown field %s%s; %s", self.name, key, hint, allowed)
end

---A function that gives a hint about a field that was renamed, by its old name; nil for other names.
---@param names table<string, string>    the new name by the old one
---@return fun(key: string): string?
function schema.renamed(names)
  return function(key) return names[key] and ("its name is %s now"):format(names[key]) end
end

---Declares a constructor's table. Calling the result with the user's table gives a checked copy with defaults.
---@param name string                       as users write it: "cq.World"
---@param fields table<string, cq.Checker>
---@param items? cq.Checker                 of positional entries; none: they are errors
---@param hints? fun(key: string, given: table): string?   what is meant by a field that has another name elsewhere
---@return cq.Schema
function schema.define(name, fields, items, hints)
  local self = { name = name, fields = fields, items = items, hints = hints, names = tables.names(fields) }
  setmetatable(self, Schema)
  schema.registry[name] = self
  return self
end

return schema
