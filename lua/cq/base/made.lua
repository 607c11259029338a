-- made: objects that stay as they were made. Their fields are plain, so that nothing hinders a script that assigns to
-- one of them, though the engine has long been told; made.require finds such an assignment where the object is used
-- next.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local made = {}

-- by object { names, has, values, entries }. Values are weak: a record that kept its object alive would never be freed.
local kept = setmetatable({}, { __mode = "k" })
local weak = { __mode = "v" }

-- Is a value a plain list, whose entries count too?
local function is_list(value) return type(value) == "table" and getmetatable(value) == nil end

-- The names of what an object has, and of fields that it might have, a table by name.
local function names_of(object, fields)
  local out, has = {}, {}
  for _, all in ipairs { object, fields } do
    for name in pairs(all) do
      if not has[name] then out[#out + 1], has[name] = name, true end
    end
  end
  return out
end

---Remembers fields of an object and the entries of those that are lists; forgets what it remembered before.
---@param object table
---@param names? string[]     all that it has, and `fields`, unless given
---@param fields? table       by name, those that its constructor takes
---@return table object
function made.remember(object, names, fields)
  local record = { names = names or names_of(object, fields or {}), has = {}, values = setmetatable({}, weak),
    entries = {} }
  for k, name in ipairs(record.names) do
    local value = rawget(object, name)
    record.values[k], record.has[k] = value, value ~= nil
    if is_list(value) then
      record.entries[k] = setmetatable({}, weak)
      for i, entry in ipairs(value) do record.entries[k][i] = entry end
      record.entries[k].count = #value
    end
  end
  kept[object] = record
  return object
end

-- Has a list the entries that it had?
local function has_entries(list, entries)
  local same = #list == entries.count
  for i = 1, same and entries.count or 0 do same = same and list[i] == entries[i] end
  return same
end

---Raises an error if one of the fields that were remembered is another now.
---@param object table
---@param what string       the object as users write it: "cq.Robot"
---@param advice string     what to do, in which %s stands for the field, if it is there
function made.require(object, what, advice)
  local record = kept[object]
  if not record then return end
  -- Raises the error of a field that was assigned.
  local function refuse(name)
    is.fail("%s: %s was assigned %s after it was made, which has no effect; %s", what, name,
      text.describe(rawget(object, name)), (advice:gsub("%%s", name)))
  end
  for k, name in ipairs(record.names) do
    local value, entries = rawget(object, name), record.entries[k]
    local same = value == record.values[k] and (value ~= nil) == record.has[k]
    if not same or entries and not has_entries(value, entries) then refuse(name) end
  end
end

return made
