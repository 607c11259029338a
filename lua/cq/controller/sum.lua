-- sum: controllers whose signals are added up and cut off at -1 and 1: cq.Controller.sum, and a controller beside the
-- pulses of a design.
local is = require "cq.base.schema"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"

-- Calls f(name, part) for each part of a sum, always in the same order.
local function each_part(self, f)
  for _, name in ipairs(T.leaves.sorted_keys(self.parts)) do f(name, self.parts[name]) end
end

---Gives the class of sums its methods, and returns the function that makes a sum of parts.
---@param Sum table           the class, with the methods of cq.Controller
---@return fun(parts: table<string, cq.Controller>): cq.Controller
return function(Sum)
  local Controller = getmetatable(Sum).__index

  -- A controller that adds up the signals of its parts.
  local function sum_of(parts)
    local self = setmetatable({ parts = parts, blind = true }, Sum)
    each_part(self, function(_, part)
      self.blind = self.blind and part.blind == true and rawget(part, "act") == nil
    end)
    self:collect()
    return self
  end

  -- Before a rollout: checks each part, and collects the parameters that were made. Returns the sum of the parts that
  -- this rollout asks.
  function Sum:check_rollout(roll)
    Controller.check_rollout(self, roll)
    local asked = {}
    each_part(self, function(name, part) asked[name] = part:check_rollout(roll) or part end)
    self:collect()
    return setmetatable(tables.merged(self, { parts = asked, whole = self }), Sum)
  end

  -- Sets self.params, if it is nil, to the parts' parameters by their names, once all of them are made.
  function Sum:collect()
    if self.params then return end
    local params, made = {}, true
    each_part(self, function(name, part)
      params[name] = part.params
      made = made and (part.params or part.family == "custom")
    end)
    if made then self.params = params end
  end

  -- The initial memory of all parts, by name; nil where none remembers anything.
  function Sum:start()
    local hidden = {}
    each_part(self, function(name, part) hidden[name] = part.start and part:start() end)
    return next(hidden) and hidden or nil
  end

  -- The clipped sum of the parts' signals; hidden: one memory for each part.
  function Sum:act(observation, hidden, t, step)
    local sum, after = nil, {}
    each_part(self, function(name, part)
      local u
      u, after[name] = part:act(observation, hidden and hidden[name], t, step)
      u = T.as_tensor(u, ("the signals of %s"):format(name))
      sum = sum and sum + u or u
    end)
    local whole = self.whole or self
    whole:collect()                                       -- networks make their parameters when they are first asked
    return sum:clamp(-1, 1), next(after) and after or nil
  end

  -- The same sum with other parameters for the parts that are named; its own params are then those given alone.
  function Sum:with(params)
    self.require_params(params)
    local parts = tables.merged(self.parts)
    for _, name in ipairs(T.leaves.sorted_keys(params)) do
      if not parts[name] then
        is.fail("cq.Controller.sum has no part %s; they are %s", text.describe(name),
          table.concat(T.leaves.sorted_keys(parts), ", "))
      end
      parts[name] = parts[name]:with(params[name])
    end
    local out = setmetatable(tables.merged(self), Sum)
    out.parts, out.params = parts, self.params and tables.merged(self.params, params)
    out:collect()
    return out
  end

  ---@internal
  ---The same sum with one part replaced; its table of parameters stays that of this one.
  ---@param name string
  ---@param part cq.Controller
  ---@return cq.Controller
  function Sum:with_part(name, part)
    local out = sum_of(tables.merged(self.parts, { [name] = part }))
    out.params, out.signals, out.used = self.params, self.signals, self.used
    return out
  end

  return sum_of
end
