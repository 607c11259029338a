-- access: how a script reads the tables that a study gives to its function. A field that one of them lacks, as after a
-- slip in its name, is an error: nil would be taken for a parameter that was left out.
local globals = require "cq.base.globals"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

local access = {}

---An __index of objects with these methods. The library, and modules of several scripts, which may try what a table
---has, get nil for other names. Errors: a script that reads one; format gets it, a suggestion and the names of all
---fields.
---@param methods table<string, any>
---@param names string[]         of the fields that the objects themselves have
---@param format string          "the study has no parameter %s%s; it has %s"
---@return fun(object: table, key: any): any
function access.index(methods, names, format)
  return function(_, key)
    local method = methods[key]
    if method ~= nil or type(key) ~= "string" or not globals.is_script(debug.getinfo(2, "S")) then
      return method
    end
    is.fail(format, key, text.suggestion(key, names), text.join(names))
  end
end

---The table of parameters that a study's function is called with; for pairs, JSON and constructors a plain one.
---@param values table<string, any>     by name; it becomes that table
---@return table<string, any> values
function access.point(values)
  local format = "the study has no parameter %s%s; it has %s; rawget(point, name) is nil where there may be none"
  return setmetatable(values, { __index = access.index({}, tables.names(values), format), __metatable = false })
end

return access
