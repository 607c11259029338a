-- method: a method that is called with a dot says so.
--
-- run.render "gait.mp4" makes a path of what should be the run. At the end of the file that defines a class of the
-- user's objects, method.guard(Class, word) makes all of its public methods ask for an object of it first.
local schema = require "cq.base.schema"
local text = require "cq.base.text"

local method = {}

-- A function that calls the method f of a class, but raises an error if it was called with a dot in place of a colon.
-- word: an object of the class as users write it, such as run; name: of the method.
local function guarded(class, word, name, f)
  return function(self, ...)
    if not text.is_instance(self, class.__name) then
      schema.fail("%s:%s: a method is called with a colon, %s:%s(...), not with a dot", word, name, word, name)
    end
    return f(self, ...)
  end
end

---Wraps methods of a class in place, so that a call with a dot instead of a colon is an error that says so.
---@param class table      with a __name
---@param word string      an object of the class as users write it: "run" in run:render
---@param names? string[]  of its methods; all of its functions but metamethods unless given
function method.guard(class, word, names)
  if not names then
    names = {}
    for name, f in pairs(class) do
      if type(f) == "function" and name:sub(1, 2) ~= "__" then names[#names + 1] = name end
    end
  end
  for _, name in ipairs(names) do class[name] = guarded(class, word, name, class[name]) end
end

---Gives a class methods under their former names, each of which is an error that tells the present name.
---@param class table
---@param word string
---@param names table<string, string>    the new name by the old one
function method.renamed(class, word, names)
  for old, new in pairs(names) do
    -- Raises an error with the present name of the method.
    class[old] = function() schema.fail("%s:%s: its name is %s:%s now", word, old, word, new) end
  end
end

return method
