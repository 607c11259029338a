-- predicate: what a user's function says that answers yes or no, such as where a group is, or whether a stage is over.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local predicate = {}

-- behind the error of a number, since each is true in Lua
local OF_NUMBERS = "; in Lua every number is true, also 0: compare it, as in value < 0"

---What a user's predicate gave, as true or false; nil is false. Errors: anything else, as a number, which Lua takes for
---true.
---@param result any
---@param what string        for the error: who gives it
---@param where? string      for the error: of which point, as " at (0.1, 0.2)"
---@return boolean
function predicate.read(result, what, where)
  if result == nil or type(result) == "boolean" then return result == true end
  is.fail("%s must give true or false, got %s%s%s", what, text.describe(result), where or "",
    type(result) == "number" and OF_NUMBERS or "")
end

---A user's function of coordinates as one that gives true or false. Errors, which name the point: those of the
---function; it gives anything but true, false or nil.
---@param what string        for errors: where the function was given
---@param f fun(x: number, y: number, z: number?): boolean?
---@return fun(x: number, y: number, z: number?): boolean
function predicate.of_place(what, f)
  return function(x, y, z)
    local fine, result = pcall(f, x, y, z)
    if fine and type(result) == "boolean" then return result end
    local point = z and ("(%g, %g, %g)"):format(x, y, z) or ("(%g, %g)"):format(x, y)
    if fine then return predicate.read(result, what .. ": the function", " at " .. point) end
    is.fail("%s: the function failed at %s: %s", what, point, tostring(result))
  end
end

return predicate
