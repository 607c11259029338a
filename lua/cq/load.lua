-- load: reads saved files: tables of tensors, and the folder of a run.
--
--   local params = cq.load "weights.bin"                    -- a table, as cq.save wrote it
--   local saved = cq.load "runs/walk"                       -- a run, without the script that made it
--   local world = cq.World { cells = { 200, 50 }, dx = 0.01, dt = 1e-3, substeps = 10, saved.robot:at { 0.5, 0.1 } }
--   world:rollout { steps = 500, controller = saved.controller, observer = saved.observer }
local host = require "cq.host"
local is = require "cq.base.schema"
local manifests = require "cq.run.manifest"
local text = require "cq.base.text"
local method = require "cq.base.method"
local T = require "cq.tensor"
local controllers = require "cq.controller"
local migrate = require "cq.saved.migrate"
local policy = require "cq.saved.policy"
local robots = require "cq.saved.robot"
local runs = require "cq.saved.run"
local worlds = require "cq.saved.world"

---What a run has left, from cq.load. What is made of it, is made when it is first asked for.
---@class cq.Saved
---@field parameters table          of the least loss, cq.param each, in the shape of the experiment's params
---@field result { loss: number, iteration: integer, feasible: boolean?, values: table<string, number>? }   of these
---@field manifest table            manifest.json of the run, or who made the file: program, command, script, sources
---@field path string               of the file
---@field steps integer             control steps of a rollout
---@field duration number           of a rollout [time]
---@field controller cq.Controller?   with its parameters; refuses robots of other signals
---@field observer cq.Observer?     of the groups of its robots, or of those of their names in another world
---@field robot cq.Robot            that was trained, with the values of the best, at the origin of its shape
---@field robots cq.Robot[]         all of the world, where they stood
---@field world table               what cq.World takes, with the robots
---@field design table?             density {n}, shares {signals + 1, n}, amplitudes {pulses, signals} and signals {steps, signals} of a
---  cq.Topology
local Saved = { __name = "cq.Saved" }

-- ---- what is made when it is asked for ------------------------------------------------------------------------------

local made = {}

-- Raises an error if a file has parameters alone, without a world.
local function require_world(self)
  if not self.data.world then
    is.fail("%s has parameters alone; it was made by %s", self.path,
      self.data.version == 0 and "a program that kept no more" or "an optimizer without an experiment, or a learner "
      .. "without cq.Env")
  end
end

-- A list of the robots of a saved file's world, in the world's coordinates.
function made.robots(self)
  require_world(self)
  local out = {}
  for k, data in ipairs(self.data.robots) do out[k] = robots.make(data, self.path) end
  return out
end

-- The first robot of a saved file, moved back to its place before robot:at.
function made.robot(self)
  local robot, back = self.robots[self.data.robots.first], {}
  for d, offset in ipairs(robot.offset) do back[d] = -offset end
  return robot:at(back)
end

-- The fields for cq.World that a saved file has, with its robots.
function made.world(self)
  require_world(self)
  local out = worlds.fields(self.data.world, self.robots)
  for k, robot in ipairs(self.robots) do out[k] = robot end
  return out
end

-- The observer of a saved file, which has its trained weights; nil: the file has none.
function made.observer(self)
  require_world(self)
  local data = self.data.observer
  if data and data.kind == "own" and runs.is_learned(self.data) then
    is.fail("%s: its observer is the script's own (%s); give saved:rollout { observer = f }, a function of the state that "
      .. "gives the same numbers", self.path, data.where)
  end
  return data and policy.observer(data, self.robots, self.path)
end

-- The controller of a saved file with its trained parameters; nil: the file has none.
function made.controller(self)
  if not self.data.controller then return require_world(self) end
  local given = self.data.world
  local out = policy.controller(self.data.controller, self.parameters.controller, self.path, given and given.fields.dt)
  if not given then return out end         -- of a learner on an environment of the script's own
  -- The world and the observer that the controller was used with, made when they are asked for.
  function out.used()
    self.made_world = self.made_world or require "cq.world"(self.world)
    local own = self.data.observer and self.data.observer.kind == "own"
    return { world = self.made_world, observer = own and { family = "own" } or self.observer }
  end
  return out
end

-- Makes a part of a saved run on first use and returns it. Errors: a damaged file, as one sentence.
local function make(self, key)
  local fine, value = pcall(made[key], self)
  if fine then return value end
  if is.is_failure(value) and value:find(self.path, 1, true) then error(value, 0) end
  local why = is.is_failure(value) and ": " .. value:gsub("^[^:]*:%d+: ", "") or " of what it has"
  is.fail("%s is damaged: its %s cannot be made%s", self.path, key, why)
end

-- A method or field, or a part of the file that is made on first use: robots, robot, world, observer or controller.
function Saved:__index(key)
  if Saved[key] ~= nil then return Saved[key] end
  if made[key] then
    local value = make(self, key)
    rawset(self, key, value)
    return value
  end
end

-- ---- using it -------------------------------------------------------------------------------------------------------

---@class saved.rollout.def : world.rollout.def
---@field steps? integer               control steps; those of the run unless given. With none the final state is the start

---The rollout that was trained, of several scenes the first, in its own world, which the first call makes. Its steps,
---observer, controller and weight hold unless fields, those of world:rollout, say others. Errors: an observer or a
---controller that the script wrote itself, unless fields have one; a learner's policy that takes goals, without an
---observer that appends them.
---@param fields? saved.rollout.def
---@return cq.Rollout
function Saved:rollout(fields)
  local given = is.argument("saved:rollout", "fields", is.table { optional = true }, fields) or {}
  local all = { steps = self.steps, weight = self.data.weight }
  for name, value in pairs(given) do all[name] = value end
  -- the saved ones are made where no others are given, for the script's own cannot be
  for _, name in ipairs { "observer", "controller" } do
    if given[name] == nil then all[name] = self[name] end
  end
  local goals = self.data.goals or 0
  if goals > 0 and all.controller == rawget(self, "controller") and all.observer == rawget(self, "observer") then
    is.fail("saved:rollout: the policy of %s takes the goal of its scene, %s, behind the observation; give "
      .. "observer = a function of the state that appends the goal", self.path, text.count(goals, "number"))
  end
  self.made_world = self.made_world or require "cq.world"(self.world)
  return self.made_world:rollout(all)
end

---A list of the names of the groups of all robots.
---@internal
---@return string[]
function Saved:groups()
  local out = {}
  for _, robot in ipairs(self.data.robots or {}) do
    for _, entry in ipairs(robot.indices) do out[#out + 1] = entry.name end
  end
  return out
end

-- The file in one line: path, loss and controller.
function Saved:__tostring()
  local loss = self.result and (": loss %.6g at iteration %d"):format(self.result.loss, self.result.iteration) or ""
  return ("cq.Saved { %s%s%s }"):format(self.path, loss, self.words and "; controller " .. self.words or "")
end

-- ---- reading --------------------------------------------------------------------------------------------------------

local file_fields = {
  format = is.one_of { runs.format }, version = is.integer { min = 0 }, parameters = is.table(),
  result = is.table { optional = true }, origin = is.table { optional = true }, goals = is.integer { optional = true },
  world = is.table { optional = true }, robots = is.table { optional = true }, stage = is.table { optional = true },
  controller = is.table { optional = true },
}

local controller_fields = {
  kind = is.string(), fields = is.table(), signals = is.list(is.string(), { optional = true }),
}

-- Raises an error if a file is of another format, of a version that this program does not read, or lacks a field.
local function check(data, path)
  if type(data.version) == "number" and data.version > runs.version then
    is.fail("cq.load: %s has version %d, this program (%s) reads up to version %d; take a newer program", path,
      data.version, host.version, runs.version)
  end
  local problem = is.problem(file_fields, data)
    or data.controller and data.controller.kind ~= "own" and is.problem(controller_fields, data.controller)
  local result = data.result
  if not problem and result and not (type(result.loss) == "number" and type(result.iteration) == "number") then
    problem = "result has no loss or no iteration"
  end
  if problem then is.fail("cq.load: %s is damaged: %s", path, problem) end
end

-- Sets in a cq.Saved the duration of the run [time] and its controller in words, and marks its parameters with these.
local function describe(self, data)
  local controller = data.controller
  self.duration = data.world and data.steps * data.world.fields.dt
  if not controller then return end
  local words = policy.words(controller)
  self.words = words .. (controller.signals and ", of " .. text.count(#controller.signals, "signal") or "")
  local parts = controller.kind == "sum" and controller.fields.parts or { controller }
  for name, part in pairs(parts) do
    local params = data.parameters.controller
    if part ~= controller then params = params and params[name] end
    if params then controllers.mark(params, policy.words(part), self.path) end
  end
end

-- A file's contents as a cq.Saved, brought to the present version. Errors: damaged; of a newer version.
local function saved_of(data, path, folder)
  check(data, path)
  local fine = pcall(migrate.to, data, runs.version)
  if not fine then is.fail("cq.load: %s of version %d is damaged: it lacks what that version has", path, data.version) end
  local self = setmetatable({ data = data, path = path, result = data.result, parameters = data.parameters,
    manifest = folder and manifests.of(folder) or data.origin or {}, steps = data.steps, design = data.design }, Saved)
  if not pcall(describe, self, data) then
    is.fail("cq.load: %s is damaged: its controller or world is none", path)
  end
  return self
end

-- The cq.Saved of a run's folder, also of a run before there was saved.bin. Errors: no result.
local function of_folder(folder)
  local path = folder .. "/" .. runs.name
  if host.kind(path) then return saved_of(T.load(path), path, folder) end
  -- runs of programs before there was saved.bin
  local best = folder .. "/best.bin"
  if host.kind(best) then
    return saved_of({ format = runs.format, version = 0, parameters = T.load(best) }, best, folder)
  end
  local manifest = manifests.of(folder)
  if manifest and not manifest.status and host.kind(folder .. "/optimizer.bin") then
    is.fail("cq.load: the folder %s has no result yet: its run has not ended, or was killed; the command of the run with "
      .. "--resume goes on with it", folder)
  end
  is.fail("cq.load: the folder %s is none of a run with a best result: it lacks %s; %s", folder, runs.name,
    manifests.contents(folder))
end

---Reads what was saved: of a file of cq.save the table, params again with their bounds; of NumPy's .npy a tensor; of
---the folder of a run, or of its saved.bin, a cq.Saved, which has its controller, observer, parameters, design, robot
---and world without the script that made them. A controller or an observer that the script wrote itself is an error
---where it is asked for: run:load reads these in their script.
---Errors: no such file; a file that is damaged, cut short or of a newer program; a folder without a result.
---@param path string
---@return table|cq.Tensor|cq.Saved
local function load(_, path)
  is.argument("cq.load", "path", is.string(), path)
  path = path:gsub("(.)/+$", "%1")
  if host.kind(path) == "folder" then return of_folder(path) end
  local data = T.load(path)
  if T.is_tensor(data) or data.format ~= runs.format then return data end
  return saved_of(data, path, path:match "^(.*)/[^/]*$")
end

method.guard(Saved, "saved", { "rollout", "groups" })

return setmetatable({ class = Saved }, { __call = load })
