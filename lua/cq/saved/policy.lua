-- policy: observers and controllers as data: kind, fields, and the names of the groups and signals that they expect.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local controllers = require "cq.controller"
local observers = require "cq.observer"
local plain = require "cq.saved.plain"
local selection = require "cq.robot.selection"
local tables = require "cq.base.tables"
local T = require "cq.tensor"

local policy = {}

local OF_GROUPS = { groups = true, group = true, center = true }      -- fields of observers that may name groups

-- The fields that the constructor of an observer or controller takes, as a table of plain data. name: of its schema;
-- but: a set of fields to leave out, or nil.
local function fields_of(object, name, but)
  local out = {}
  for _, key in ipairs(is.registry[name].names) do
    if not (but and but[key]) then out[key] = plain.copy(object[key]) end
  end
  return out
end

-- ---- observers ------------------------------------------------------------------------------------------------------

-- The groups or robots that an observer names, or lists of them, as data: { group = name, robot = number } or { robot =
-- number }, by the robot's number in the list `robots`; names and particle numbers are unchanged.
local function of_groups(value, robots)
  if text.is_instance(value, "cq.Group") then
    return { group = value.name, robot = selection.among(robots, value.robot) }
  end
  if text.is_instance(value, "cq.Robot") then return { robot = selection.among(robots, value) } end
  if T.is_tensor(value) then return value:detach() end
  if type(value) ~= "table" then return value end
  local out = {}
  for k, entry in ipairs(value) do out[k] = of_groups(entry, robots) end
  return out
end

-- The inverse of of_groups: groups and robots, or lists of them, from data; other values are unchanged.
local function to_groups(value, robots)
  if type(value) ~= "table" or T.is_tensor(value) then return value end
  if value.robot then
    local robot = robots[value.robot]
    return value.group and robot:group(value.group) or robot
  end
  local out = {}
  for k, entry in ipairs(value) do out[k] = to_groups(entry, robots) end
  return out
end

-- The record { kind = "own", where = "file:line" } for an observer or controller that the user wrote, since it cannot
-- be saved. method: "observe" or "act", whose definition `where` names.
local function own(object, method)
  local f = object.f or object.table and object.table[method] or object.own and object.own[method]
  return { kind = "own", where = plain.where(f or object[method]) }
end

---An observer as a table that can be saved, { kind, fields, groups, group }; { kind = "own", where } for one that the
---user wrote; nil for none.
---@param observer any          of cq.Observer, or as an experiment holds one of the user's
---@param robots cq.Robot[]     of the world
---@param trained? table<string, cq.Tensor>   weights of an autoencoder that is trained with the controller
---@return table?
function policy.observer_data(observer, robots, trained)
  if not observer then return nil end
  local family = rawget(observer, "family")
  if not family or rawget(observer, "observe") then return own(observer, "observe") end
  local out = { kind = family, fields = fields_of(observer, "cq.Observer." .. family, OF_GROUPS) }
  for name in pairs(OF_GROUPS) do
    if observer[name] then out[name] = of_groups(observer[name], robots) end
  end
  for name, value in pairs(trained or {}) do out.fields.weights[name] = value:detach() end
  return out
end

-- The constructor of a saved observer or controller, by data.kind in `families`. noun: "Observer" or "Controller";
-- what: the saved run, for errors. Errors: one that the script wrote itself, or that this program lacks.
local function family_of(families, noun, data, what)
  if data.kind == "own" then
    is.fail("%s: its %s is the script's own (%s); run:load reads this in that script", what, noun:lower(), data.where)
  end
  return rawget(families, data.kind) or is.fail("%s: this program has no cq.%s.%s", what, noun, data.kind)
end

---Creates the observer of a saved run. Errors: one that the script wrote itself; one that this program lacks; groups
---that the robots lack.
---@param data table            from policy.observer_data
---@param robots cq.Robot[]     that groups are of
---@param what string           whose it is, for errors
---@return cq.Observer
function policy.observer(data, robots, what)
  local observer = family_of(observers, "Observer", data, what)
  local fields = plain.copy(data.fields)
  for name in pairs(OF_GROUPS) do
    if data[name] ~= nil then fields[name] = to_groups(data[name], robots) end
  end
  return observer(fields)
end

-- ---- controllers ----------------------------------------------------------------------------------------------------

---A controller as a table that can be saved, { kind, signals, fields }, for pulses with u, their signals; { kind =
---"own", where, signals } for one that the user wrote; nil for none.
---@param controller cq.Controller?
---@param signals string[]      names of the signals that it gives
---@return table?
function policy.controller_data(controller, signals)
  if not controller then return nil end
  local family = controller.family
  -- a train of pulses is the signals that it gives
  if controller.loop then
    return { kind = "open_loop", signals = plain.copy(signals), fields = { hold = 1 },
      u = controller.loop.params.u:detach() }
  end
  if not rawget(controllers, family) or rawget(controller, "act") then
    return tables.merged(own(controller, "act"), { signals = plain.copy(signals) })
  end
  if family == "sum" then
    local parts = {}
    for name, part in pairs(controller.parts) do parts[name] = policy.controller_data(part, signals) end
    return { kind = family, signals = plain.copy(signals), fields = { parts = parts } }
  end
  local out = { kind = family, signals = plain.copy(signals) }
  out.fields = fields_of(controller, "cq.Controller." .. family, { init = true, u = true, signals = true })
  if out.fields.inputs then out.fields.signals = controller.signals end
  return out
end

---The data of a controller that is a sum, without its part of a design's pulses; nil for any other controller.
---@param data table?           from policy.controller_data
---@return table?
function policy.without_pulses(data)
  if not (data and data.kind == "sum") then return nil end
  local parts = tables.merged(data.fields.parts)
  parts.pulses = nil
  return { kind = "sum", signals = data.signals, fields = { parts = parts } }
end

---A controller as text, by the fields on which the shapes of its parameters depend.
---@param data table?           from policy.controller_data
---@return string
function policy.words(data)
  if not data then return "none" end
  return data.kind == "own" and "the script's own" or controllers.words(data.kind, data.fields)
end

---Creates the controller of a saved run with its parameters. Errors: one that the script wrote itself; one that this
---program lacks; parameters of other shapes.
---@param data table            from policy.controller_data
---@param params? table<string, cq.Tensor>   nil: of a design, which has none for the controller
---@param what string           whose it is, for errors
---@param control_dt number?     of the run [time], which signals of each control step ask for
---@return cq.Controller
function policy.controller(data, params, what, control_dt)
  local controller = family_of(controllers, "Controller", data, what)
  local out
  if data.kind == "sum" then
    local parts = {}
    for name, part in pairs(data.fields.parts) do
      parts[name] = policy.controller(part, params and params[name], what, control_dt)
    end
    out = controllers.sum(parts)
  elseif data.kind == "open_loop" then
    out = controllers.open_loop { u = data.u or params.u, hold = data.fields.hold }
    out.control_dt = control_dt
  else
    out = controller(plain.copy(data.fields)):with(params)
  end
  out.signal_names, out.of = data.signals, what
  return out
end

return policy
