-- export: all frames of a rollout in files that other programs read. The rollout is run once more, for its states.
local continued = require "cq.rollout.continued"
local controllers = require "cq.controller"
local csv = require "cq.export.csv"
local export = require "cq.export"
local frame = require "cq.state.frame"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local place = require "cq.base.place"
local text = require "cq.base.text"
local T = require "cq.tensor"

local out = {}

---@class rollout.export.def
---@field format? "vtp"|"ply"|"npz"|"csv"|"obj"|"stl"|"glb"   by the ending of path unless given
---@field path? string          a file, or of many files their folder; frames.FORMAT unless given; a name without a slash is in the run's folder
---@field interval? integer     control steps between two frames; 1 unless given, and in a glb as many as make at most 32
---@field as? "particles"|"surface"   what a format holds that has both; particles unless given
---@field fields? string[]      of particles, as state:save takes them
---@field precision? "float32"|"float64"   of the numbers in binary files
---@field units? export.units.def   words for the units in the heads of CSV files, as { length = "mm", time = "s", mass = "kg" }
---@field thickness? number     of surfaces in 2D, which are as thick as a cell unless given [length]

---Adds the checkers of the fields of an export (format, path, interval, and those of a frame) to a table of checkers,
---which it returns.
---@param fields table<string, cq.Checker>
---@return table<string, cq.Checker>
function out.fields(fields)
  local names = export.names()
  names.optional = true
  fields.format = is.one_of(names)
  fields.path = is.string { optional = true }
  fields.interval = is.integer { min = 1, optional = true }
  return frame.fields(fields)
end

---Checks the fields that name the files, before anything runs: fills in def.path, def.written (the format, of
---cq.export) and def.as. Errors: neither format nor path; two formats; an ending that no format has; unknown units;
---fields or thickness of a file that has none.
---@param what string
---@param def rollout.export.def
function out.plan(what, def)
  frame.check_units(def)
  if not def.format and not def.path then
    is.fail("%s: give format, one of \"%s\", or a path that ends in one", what,
      table.concat(export.names(def.as), '", "'))
  end
  def.path = def.path or "frames." .. def.format
  if def.format and not def.path:match "%.%w+$" then def.path = def.path .. "." .. def.format end
  def.written, def.as = export.of(what, def.path, def.as)
  frame.check_effect(what, def, def.written.tabular and "table" or def.as)
  if def.format and def.written.name ~= def.format then
    is.fail("%s: format is \"%s\", and the path ends in .%s", what, def.format, def.written.name)
  end
end

-- ---- over time ------------------------------------------------------------------------------------------------------

-- A list { name, which } of the bodies whose centre and velocity an export of a table has: each robot, its groups by
-- shapes if it has several, and its other groups.
local function followed(world)
  local list = {}
  for _, robot in ipairs(world.robots) do
    local front = #world.robots > 1 and frame.robot_name(world, robot) or "body"
    list[#list + 1] = { name = front, which = robot }
    for _, name in ipairs(#robot.groups > 1 and robot.group_names or frame.own_groups(robot)) do
      list[#list + 1] = { name = #world.robots > 1 and front .. " " .. name or name, which = robot:group(name) }
    end
  end
  return list
end

local readouts = { { method = "center", unit = "length", ending = "" }, { method = "velocity", unit = "length/time",
  ending = "velocity_" } }

-- The columns of a table of time, centres and velocities: a list of { name, unit, values }, with empty values; and a
-- function add(state) that appends a row to them.
local function trajectory(world)
  local list, readers = { { name = "time", unit = "time", values = {} } }, {}
  for _, one in ipairs(followed(world)) do
    for _, kind in ipairs(readouts) do
      local first = #list
      for d, axis in ipairs { "x", "y", world.dim == 3 and "z" or nil } do
        list[first + d] = { name = ("%s %s%s"):format(one.name, kind.ending, axis), unit = kind.unit, values = {} }
      end
      readers[#readers + 1] = function(state, row)
        local value = state[kind.method](state, one.which)
        for d = 1, world.dim do list[first + d].values[row] = value:get(d) end
      end
    end
  end
  return list, function(state)
    local row = #list[1].values + 1
    list[1].values[row] = state.time
    for _, reader in ipairs(readers) do reader(state, row) end
  end
end

-- Signals and wall forces of a finished rollout: { control_dt, signals {steps, signals}, signal_names, force {steps,
-- walls, dim} or nil, wall_names }.
local function series_of(roll)
  local world = roll.world
  local found = { control_dt = world.control_dt, signals = roll.signals, signal_names = controllers.signals_of(world),
    wall_names = {} }
  if roll.contact and roll.contact.impulse then
    found.force = roll.contact.impulse / world.control_dt
    for k, wall in ipairs(world.walls) do found.wall_names[k] = wall.name or "wall " .. k end
  end
  return found
end

-- Appends columns of signals and wall forces to `list`. series: what series_of returns, by control step; interval:
-- control steps between rows.
local function add_series(list, series, interval, dim)
  local taken, rows = {}, #list[1].values
  for _, column in ipairs(list) do taken[column.name] = true end
  -- Adds a column with values value(control step); a name that is taken gets a number.
  local function add(name, unit, value)
    local own, count = name, 1
    while taken[own] do
      count = count + 1
      own = ("%s %d"):format(name, count)
    end
    taken[own] = true
    local values = {}
    for row = 1, rows do values[row] = value(row * interval) end
    list[#list + 1] = { name = own, unit = unit, values = values }
  end
  for s, name in ipairs(series.signal_names) do
    add("signal " .. name, "1", function(step) return series.signals:get(step, s) end)
  end
  for w, name in ipairs(series.wall_names) do
    for d, axis in ipairs { "x", "y", dim == 3 and "z" or nil } do
      add(("%s force_%s"):format(name, axis), "force", function(step)
        return series.force:get(step, w, d)
      end)
    end
  end
end

-- ---- writing --------------------------------------------------------------------------------------------------------

-- Simulates, and writes all frames but the start as rows of one table. Returns the path and the number of rows.
-- simulate(on_step): runs the rollout.
local function export_table(what, def, simulate, world)
  local list, read = trajectory(world)
  local roll = simulate(function(state)
    if state.index > 0 and state.index % def.interval == 0 then read(state) end
  end)
  add_series(list, series_of(roll), def.interval, world.dim)
  export.write(what, def.path, csv.trajectory(list, def.units))
  return def.path, #list[1].values
end

-- A function of a state that returns a frame for a file, of particles or surfaces as def.as says. Surfaces are
-- triangulated at the first state.
local function reader_of(what, def)
  if def.as == "particles" then return function(state) return frame.particles(state, def) end end
  local skins
  return function(state)
    skins = skins or frame.skins(state, def, what)
    return frame.surface(state, skins, def)
  end
end

-- Simulates, and writes a file for each frame, or one file of all if the format can hold moving bodies. Returns the
-- path, of the file or of the list of files, and the number of frames.
local function export_frames(what, def, simulate)
  local format, frames, count = def.written, {}, 0
  local read = reader_of(what, def)
  local files = not format.moving and export.series(what, def.path, format)
  local roll = simulate(function(state)
    state.roll.phase = nil           -- what fails here is no on_step of the user's
    if state.index % def.interval ~= 0 then return end
    local one = read(state)
    count = count + 1
    if files then files:add(format[def.as](one), one.time) else frames[count] = one end
  end)
  if files then return files:close(), count end
  export.write(what, def.path, format.moving(frames, series_of(roll)))
  return def.path, count
end

---Simulates, writes all frames, and prints the path. Sets def.interval, if it is not given. Errors: more frames than
---the format takes; an interval longer than the rollout.
---@param what string
---@param def rollout.export.def     planned
---@param world cq.World
---@param steps integer
---@param simulate fun(on_step: function): cq.Rollout
---@return string path               of the file, of the list of files, or of their folder
function out.frames(what, def, world, steps, simulate)
  local format = def.written
  def.interval = def.interval or format.most and math.max(1, math.ceil(steps / (format.most - 1))) or 1
  local made = math.floor(steps / def.interval) + 1
  if format.most and made > format.most then
    is.fail("%s: %d frames are more than the %d that a .%s takes; interval = %d makes fewer", what, made, format.most,
      format.name, math.ceil(steps / (format.most - 1)))
  elseif format.tabular and steps == 0 then
    is.fail("%s: the rollout makes no control step, and a .%s has a row after each", what, format.name)
  elseif def.interval > steps and steps > 0 then
    is.fail("%s: interval is %d control steps, and the rollout makes %d", what, def.interval, steps)
  end
  local path, count = (format.tabular and export_table or export_frames)(what, def, simulate, world)
  if not place.is_left_out() then
    message.note("%s, %s", path, text.count(count, format.tabular and "row" or "frame"))
  end
  return path
end

---Will an export hold forces of walls: does its format have them, and the world walls?
---@param def rollout.export.def
---@param world cq.World
---@return boolean
function out.has_forces(def, world)
  return #world.walls > 0 and (def.written.tabular or def.written.moving ~= nil and def.written.particles ~= nil)
end

-- ---- rollout:export -------------------------------------------------------------------------------------------------

local spec = is.define("rollout:export", out.fields {})

---rollout:export: simulates the rollout again and writes its frames, a file for each or one of all, as the format has
---it.
---Errors: a batch; an unknown format or quantity; a path that cannot be written.
---@param roll cq.Rollout
---@param options rollout.export.def
---@return string path
function out.rollout(roll, options)
  local what, def = "rollout:export", spec(options)
  out.plan(what, def)
  def.path = place.of(def.path)
  if roll.batched then is.fail("%s: a batch of %d scenes is not exported; run one of them alone", what, roll.batch) end
  local fields = continued.again(roll)
  fields.contact = fields.contact or out.has_forces(def, roll.world)
  return out.frames(what, def, roll.world, roll.steps, function(on_step)
    fields.on_step = on_step
    return T.tape.pause(roll.world.rollout, roll.world, fields)
  end)
end

return out
