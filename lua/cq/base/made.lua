-- made: objects that stay as they were made. Their fields are plain, so that nothing hinders a script that assigns to
-- one of them, though the engine has long been told; made.require finds such an assignment where the object is used
-- next.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local made = {}

-- by object { names, values, entries: of values that are lists, has: a set of the names where all are remembered }
local kept = setmetatable({}, { __mode = "k" })

-- Is a value a plain list, whose entries count too?
local function is_list(value) return type(value) == "table" and getmetatable(value) == nil end

---Remembers fields of an object and the entries of those that are lists; forgets what it remembered before.
---@param object table
---@param names? string[]     all that it has unless given
---@return table object
function made.remember(object, names)
  local record = { names = names or {}, values = {}, entries = {} }
  if not names then
    record.has = {}
    for name in pairs(object) do record.names[#record.names + 1], record.has[name] = name, true end
  end
  for k, name in ipairs(record.names) do
    local value = rawget(object, name)
    record.values[k] = value
    if is_list(value) then
      record.entries[k] = {}
      for i, entry in ipairs(value) do record.entries[k][i] = entry end
    end
  end
  kept[object] = record
  return object
end

-- Has a list the entries that it had?
local function has_entries(list, entries)
  local same = #list == #entries
  for i = 1, same and #entries or 0 do same = same and list[i] == entries[i] end
  return same
end

---Raises an error if one of the fields that were remembered is another now, or, where all were, a new one is there.
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
    if value ~= record.values[k] or entries and not has_entries(value, entries) then refuse(name) end
  end
  for name in pairs(record.has and object or {}) do
    if not record.has[name] then refuse(tostring(name)) end
  end
end

return made
