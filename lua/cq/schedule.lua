-- schedule: a value that changes over the iterations of a stage of a plan, for its options.
--
--   options = { rate = cq.Schedule.linear { from = 0.01, to = 0.001 },
--     gravity = cq.Schedule.linear { from = { 0, 0 }, to = { 0, -9.8 }, finish = 0.5 },
--     sharpness = cq.Schedule.steps { values = { 4, 8, 16 } } }
local is = require "cq.base.schema"
local text = require "cq.base.text"
local method = require "cq.base.method"

---A value by the iteration of a stage, from cq.Schedule.
---@class cq.Schedule
---@field kind "linear"|"exponential"|"cosine"|"steps"
local Schedule = { __name = "cq.Schedule" }
Schedule.__index = Schedule

---@class cq.ScheduleModule
local schedule = { class = Schedule }

-- ---- how it goes from one end, t = 0, to the other, t = 1 -----------------------------------------------------------

local between = {
  -- From one number to another by equal differences; t: 0 to 1.
  linear = function(from, to, t) return from + (to - from) * t end,
  -- From one number to another by equal factors; t: 0 to 1.
  exponential = function(from, to, t) return from * (to / from) ^ t end,
  -- From one number to another by half a period of a cosine; t: 0 to 1.
  cosine = function(from, to, t) return to + (from - to) * 0.5 * (1 + math.cos(math.pi * t)) end,
}

---The value at an iteration of a stage, a number or a list as the schedule's ends are.
---@param i integer         from 1
---@param count integer     iterations of the stage
---@return number|number[]
function Schedule:at(i, count)
  is.argument("schedule:at", "i", is.integer(), i)
  is.argument("schedule:at", "count", is.integer(), count)
  if self.kind == "steps" then
    local k = math.floor((i - 1) / math.max(1, count) * #self.values) + 1
    return self.values[math.max(1, math.min(k, #self.values))]
  end
  local t = count > 1 and (i - 1) / (count - 1) or 0
  t = math.max(0, math.min(1, (t - self.begin) / (self.finish - self.begin)))
  local f = between[self.kind]
  if type(self.from) == "number" then return f(self.from, self.to, t) end
  local out = {}
  for k, from in ipairs(self.from) do out[k] = f(from, self.to[k], t) end
  return out
end

-- The schedule in one line: "in steps 1, 2", or "0.1 to 0.01 (linear from 0.2 to 1 of the stage)".
function Schedule:__tostring()
  if self.kind == "steps" then
    local list = {}
    for k, value in ipairs(self.values) do list[k] = text.numbers(value) end
    return "in steps " .. table.concat(list, ", ")
  end
  local part = ""
  if self.begin > 0 or self.finish < 1 then
    part = (" from %s to %s of the stage"):format(text.number(self.begin), text.number(self.finish))
  end
  return ("%s to %s (%s%s)"):format(text.numbers(self.from), text.numbers(self.to), self.kind, part)
end

-- ---- constructors ---------------------------------------------------------------------------------------------------

-- A checker of a number or a list of numbers; options: { optional }, or nil.
local value = function(options)
  return is.any_of { is.number(), is.list(is.number(), { min = 1 }), optional = options and options.optional }
end

-- Makes the constructor of the schedule `kind` ("linear", "exponential", "cosine"), which goes from one value to
-- another between two shares of the iterations.
local function ends(kind)
  local name = "cq.Schedule." .. kind
  local spec = is.define(name, { from = value(), to = value(), begin = is.number { min = 0, below = 1, default = 0 },
    finish = is.number { above = 0, max = 1, default = 1 } })
  return function(fields)
    local self = spec(fields)
    local a, b = self.from, self.to
    if type(a) ~= type(b) or type(a) == "table" and #a ~= #b then
      is.fail("%s: from and to must both be numbers, or lists of as many, got %s and %s", name, text.numbers(a), text.numbers(b))
    end
    if self.begin >= self.finish then
      is.fail("%s: begin must be before finish, got %s and %s", name, text.number(self.begin), text.number(self.finish))
    end
    for k, from in ipairs(kind == "exponential" and (type(a) == "table" and a or { a }) or {}) do
      local to = type(b) == "table" and b[k] or b
      if from == 0 or to == 0 or (from < 0) ~= (to < 0) then
        is.fail("%s: from and to must be of one sign and not 0, got %s and %s", name, text.number(from),
          text.number(to))
      end
    end
    self.kind = kind
    return setmetatable(self, Schedule)
  end
end

---@class cq.Schedule.linear.def
---@field from number|number[]     at the first iteration
---@field to number|number[]       at the last one
---@field begin? number            share of the stage before which it stays at from; 0
---@field finish? number           share of the stage after which it stays at to; 1

---Equal differences from one iteration to the next.
---@type fun(fields: cq.Schedule.linear.def): cq.Schedule
schedule.linear = ends "linear"

---@class cq.Schedule.exponential.def
---@field from number|number[]     at the first iteration; not 0
---@field to number|number[]       at the last one; of the same sign
---@field begin? number            share of the stage before which it stays at from; 0
---@field finish? number           share of the stage after which it stays at to; 1

---Equal factors from one iteration to the next.
---@type fun(fields: cq.Schedule.exponential.def): cq.Schedule
schedule.exponential = ends "exponential"

---@class cq.Schedule.cosine.def
---@field from number|number[]     at the first iteration
---@field to number|number[]       at the last one
---@field begin? number            share of the stage before which it stays at from; 0
---@field finish? number           share of the stage after which it stays at to; 1

---Half a period of a cosine: slow at both ends.
---@type fun(fields: cq.Schedule.cosine.def): cq.Schedule
schedule.cosine = ends "cosine"

---@class cq.Schedule.steps.def
---@field values (number|number[])[]     one after the other, each for an equal part of the stage

local steps_spec = is.define("cq.Schedule.steps", { values = is.list(value(), { min = 1 }) })

---Constant values, each for an equal part of the stage.
---@param fields cq.Schedule.steps.def
---@return cq.Schedule
function schedule.steps(fields)
  local self = steps_spec(fields)
  self.kind = "steps"
  return setmetatable(self, Schedule)
end

method.guard(Schedule, "schedule")

return schedule
