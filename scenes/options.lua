-- options: the options of a scene. Scenes read them by name, so that a slip would be the default.
--
--   local given = require "scenes.options"("scenes.biped", options, { "count", "spacing" })
local text = require "cq.base.text"

---The options that a scene is given; a new table without any. Errors, at the line that asks for the scene: no table; a
---name that the scene does not have.
---@param what string
---@param given any
---@param names string[]
---@return table
return function(what, given, names)
  if given == nil then return {} end
  if type(given) ~= "table" then
    error(("%s: options must be a table, got %s"):format(what, text.describe(given)), 3)
  end
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  for name in pairs(given) do
    if not known[name] then
      error(("%s: unknown option %s%s; allowed are %s"):format(what, tostring(name), text.suggestion(name, names),
        table.concat(names, ", ")), 3)
    end
  end
  return given
end
