-- definition: a study as its store has it. Commands that look at results go by it, and not by the script, which may
-- have been changed since the study began.
local samplers = require "cq.study.sampler"
local space = require "cq.study.space"
local Study = require("cq.study").class

local definition = {}

-- Is this a whole number from 1 on?
local function is_count(value) return type(value) == "number" and value >= 1 and value % 1 == 0 end

-- Is this a list of one named entry at least, all of which is_entry accepts?
local function is_list(value, is_entry)
  if type(value) ~= "table" or not value[1] then return false end
  for _, entry in ipairs(value) do
    if type(entry) ~= "table" or type(entry.name) ~= "string" or not is_entry(entry) then return false end
  end
  return true
end

-- Is this the stored description of a parameter?
local function is_parameter(entry)
  if entry.kind == "choice" then return type(entry.values) == "table" and #entry.values > 0 end
  local is_range = entry.kind == "uniform" or entry.kind == "log" or entry.kind == "integer"
  return is_range and type(entry.min) == "number" and type(entry.max) == "number"
end

-- the parts that every definition has, each with what it must be
local parts = {
  { "name", function(value) return type(value) == "string" end },
  { "trials", is_count }, { "repeats", is_count },
  { "seed", function(value) return type(value) == "number" end },
  { "sampler", function(value) return samplers[value] ~= nil end },
  { "space", function(value) return is_list(value, is_parameter) end },
  { "objectives", function(value)
    return is_list(value, function(entry) return entry.sign == 1 or entry.sign == -1 end)
  end },
}

---The name of a part that a stored definition lacks, or that is none; nil: it is whole.
---@param stored table<string, any>
---@return string?
function definition.flaw(stored)
  for _, part in ipairs(parts) do
    if stored[part[1]] == nil or not part[2](stored[part[1]]) then return part[1] end
  end
  for _, name in ipairs { "modules", "options" } do          -- studies of earlier programs have none
    if stored[name] ~= nil and type(stored[name]) ~= "table" then return name end
  end
end

---The study that a stored definition describes. It can draw points and look at results, and has no function to run; the
---values of its choices are the numbers and texts that were stored.
---@param stored table<string, any>     of Store:definition
---@return cq.Study
function definition.study(stored)
  local list = {}
  for d, entry in ipairs(stored.space) do list[d] = { name = entry.name, parameter = space.stored(entry) } end
  return setmetatable({ name = stored.name, seed = stored.seed, repeats = stored.repeats, points = stored.trials,
    sampler = stored.sampler, space = list, objectives = stored.objectives }, Study)
end

return definition
