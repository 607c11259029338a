-- field: one named value as the reference tells it: from its annotation, and from the checker of the schema, which
-- knows what is allowed, what is needed and what holds unless it is given.
local text = require "cq.base.text"
local types = require "cq.reference.type"

---@class cq.reference.Field
---@field name string
---@field allowed string            type and bounds, for people
---@field optional boolean
---@field default string?
---@field text string

local field = {}

-- what a checker says no more of than that something is there
local vague = { ["a value"] = true, ["a table"] = true, ["a function"] = true }

-- The values that a field may have, as text: by its schema's checker, or its annotated type where the checker allows
-- anything.
local function allowed_of(item, checker)
  local annotated = item and types.shown(item.type)
  if not checker then return annotated end
  for part in (checker.label .. ", or "):gmatch "(.-), or " do
    local open = vague[part] or part:find "each .*a value$" or part:find "each entry a table$"
    if open then return annotated or checker.label end
  end
  return checker.label
end

-- A default value as text. nil: it has none.
local function default_text(value)
  if value == nil then return nil end
  if type(value) == "table" then
    local parts = {}
    for k, part in ipairs(value) do parts[k] = default_text(part) end
    return #parts > 0 and "{ " .. table.concat(parts, ", ") .. " }" or "{}"
  end
  if type(value) == "string" then return '"' .. value .. '"' end
  return type(value) == "number" and text.number(value) or tostring(value)
end

-- The description of a field, "" without any: of the engine's list of fields, with its unit, and of its annotation.
local function text_of(item, checker)
  local said, listed = item and item.text or "", checker and checker.help or ""
  if said == "" then return listed end
  if not (checker and checker.listed) then return said end
  return listed .. "; " .. said
end

---One field of a table for the reference, from its annotation and the schema's checker, which knows its default. A
---field is optional if either says so.
---@param item cq.reference.Item?     its annotation
---@param name string
---@param checker? cq.Checker           of the schema
---@return cq.reference.Field
function field.of(item, name, checker)
  local optional = item and item.optional or false
  if checker and checker.optional then optional = true end
  return {
    name = name, allowed = allowed_of(item, checker), optional = optional,
    default = checker and default_text(checker.default), text = text_of(item, checker),
  }
end

---All named fields of a table for the reference that annotations or the schema know.
---@param items cq.reference.Item[]
---@param definition cq.Schema?
---@return cq.reference.Field[]
function field.joined(items, definition)
  local fields, seen = {}, {}
  for _, item in ipairs(items) do
    if not item.name:find "^%[" then
      seen[item.name] = true
      fields[#fields + 1] = field.of(item, item.name, definition and definition.fields[item.name])
    end
  end
  for _, name in ipairs(definition and definition.names or {}) do
    if not seen[name] then fields[#fields + 1] = field.of(nil, name, definition.fields[name]) end
  end
  return fields
end

---The options of a command, as they are typed.
---@param options table<string, cq.Checker>
---@return cq.reference.Field[]
function field.of_options(options)
  local names, fields = {}, {}
  for name in pairs(options) do names[#names + 1] = name end
  table.sort(names)
  for k, name in ipairs(names) do
    local item = { name = name, type = "any", optional = true, text = options[name].help or "" }
    fields[k] = field.of(item, "--" .. name, options[name])
    fields[k].optional = true
  end
  return fields
end

return field
