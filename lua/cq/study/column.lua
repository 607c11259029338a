-- column: names that a study's table can have beside its own: of parameters, objectives, results and reports.
local is = require "cq.base.schema"
local text = require "cq.base.text"

-- columns that the table has of its own
local own = { iteration = true, trial = true, point = true, replicate = true, seed = true, state = true, step = true,
  attempts = true, seconds = true, problem = true }

---Raises an error if a name cannot be a column of a study's table: no word, or a column that the table has already.
---@param name any
---@param what string       that has the name, for errors
---@param space? { name: string }[]     the study's parameters, which have columns
return function(name, what, space)
  if type(name) ~= "string" or name == "" or name:find "[,%c\"]" then
    is.fail("%s: a name is a word without commas, quotes and line ends, got %s", what, text.describe(name))
  end
  if own[name] then
    is.fail("%s: %s is a column that the study's table has of its own; take another name", what, name)
  end
  for _, entry in ipairs(space or {}) do
    if entry.name == name then is.fail("%s: %s is a parameter of the study; take another name", what, name) end
  end
end
