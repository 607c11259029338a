-- state: a scene at one control step, as observers, objectives and records see it. Nothing is copied until it is asked for,
-- and what is asked for is differentiable.
--
--   state:center "trunk"            {dim}          mass-weighted mean position of a group
--   state:center { "left", "right" }  {2, dim}     a row for each
--   state:center(robot)             {dim}          of the whole robot
--   state:gather "tracked"          {particles, dim}
-- In a batch every result has the scene as its first dimension.
local ffi = require "ffi"
local is = require "cq.schema"
local text = require "cq.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local engine = require "cq.engine"
local surface = require "cq.surface"
local C, tape = engine.C, T.tape

---@class cq.State
---@field step integer      control steps made since the start
---@field time number       since the start [time]
---@field batch integer     scenes
---@field world cq.World    that it is a state of
local State = { __name = "cq.State" }
State.__index = State

local state = { class = State }

local fields = {
  position = { ids = { C.CQ_FIELD_POSITION }, rank = 1 }, velocity = { ids = { C.CQ_FIELD_VELOCITY }, rank = 1 },
  affine = { ids = { C.CQ_FIELD_AFFINE }, rank = 2 }, deformation = { ids = { C.CQ_FIELD_DEFORMATION }, rank = 2 },
  motion = { ids = { C.CQ_FIELD_POSITION, C.CQ_FIELD_VELOCITY }, rank = 1 },
}
local field_kind = is.one_of { "position", "velocity", "affine", "deformation", default = "position" }
local weight_kind = is.one_of { "mass", "particle", default = "mass" }

---A view of what a rollout's live state is now.
---@param roll table
---@param step integer
---@return cq.State
function state.new(roll, step)
  return setmetatable({ roll = roll, step = step, time = step * roll.world.control_dt, batch = roll.batch, world = roll.world }, State)
end

function State:__tostring() return ("cq.State { step %d, time %s }"):format(self.step, text.number(self.time)) end

-- ---- readouts -------------------------------------------------------------------------------------------------------

-- mean_row, gather_row: as one row of numbers for each scene
local kinds = {
  mean = C.CQ_READOUT_MEAN, mean_row = C.CQ_READOUT_MEAN, moment = C.CQ_READOUT_SECOND_MOMENT, gather = C.CQ_READOUT_GATHER,
  gather_row = C.CQ_READOUT_GATHER,
}

-- dimensions of a scene's part
local function shape_of(world, kind, field, selection)
  local shape = {}
  if kind == "mean_row" then return { selection.count * #field.ids * world.dim ^ field.rank } end
  if kind == "gather_row" then return { selection.total * #field.ids * world.dim ^ field.rank } end
  if kind == "gather" then shape[1] = selection.total
  elseif not selection.single then shape[1] = selection.count end
  for _ = 1, field.rank * (kind == "moment" and 2 or 1) do shape[#shape + 1] = world.dim end
  return shape
end

-- the engine's struct for a selection, made once for each world
local function make(world, kind, field, weight, selection)
  local def = ffi.new "cq_readout"
  C.cq_readout_init(def)
  def.kind, def.fields = kinds[kind], 0
  for _, id in ipairs(fields[field].ids) do def.fields = def.fields + 2 ^ id end
  def.weighting = weight == "mass" and C.CQ_WEIGHT_MASS or C.CQ_WEIGHT_PARTICLE
  def.group_count, def.group_start, def.particles = selection.count, selection.start, selection.particles
  return { def = def, selection = selection, shapes = { shape_of(world, kind, fields[field], selection) } }
end

-- with the batch as its first dimension, if there is one
local function batched(readout, batch)
  local shape = { batch }
  for i, size in ipairs(readout.shapes[1]) do shape[i + 1] = size end
  readout.shapes[batch] = shape
  return shape
end

-- made once for each selection
local function find(world, kind, field, weight, selection)
  local key = kind .. field .. weight
  local readout = selection.readouts[key]
  if not readout then
    readout = make(world, kind, field, weight, selection)
    selection.readouts[key] = readout
  end
  return readout
end

---The readout of a row of numbers for each scene: mass-weighted means of groups, or what their particles have.
---@param kind "mean"|"gather"
---@param field "position"|"velocity"|"motion"
function state.row(world, kind, field, selection) return find(world, kind .. "_row", field, "mass", selection) end

local function read_back(node, gradient) node.a:read_adjoint(node.extra, gradient) end

local function read(self, kind, field, weight, which, what)
  local roll = self.roll
  roll:require_live(self.step, what)
  local readout = find(self.world, kind, field, weight, self.world:selection(which, what))
  local out = class.make(readout.shapes[self.batch] or batched(readout, self.batch))
  engine.check(C.cq_rollout_read(roll.handle, readout.def, out.pointer), what)
  return tape.recording() and tape.push(read_back, out, roll, nil, readout.def) or out
end

-- ---- what users call ------------------------------------------------------------------------------------------------

---Mean position of a group, a row for each of a list of groups, or of a robot [length].
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@param options? { weight?: "mass"|"particle" }
---@return cq.Tensor     {dim} or {groups, dim}
function State:center(which, options)
  local weight = is.argument("state:center", "weight", weight_kind, options and options.weight)
  return read(self, "mean", "position", weight, which, "state:center")
end

---Mean velocity, mass-weighted unless weight = "particle" [length/time].
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@param options? { weight?: "mass"|"particle" }
---@return cq.Tensor     {dim} or {groups, dim}
function State:velocity(which, options)
  local weight = is.argument("state:velocity", "weight", weight_kind, options and options.weight)
  return read(self, "mean", "velocity", weight, which, "state:velocity")
end

---Mean positions and velocities of groups as one row of numbers, as observers want them: all positions, then all velocities.
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@return cq.Tensor     {groups * dim * 2}
function State:motion(which) return read(self, "mean_row", "motion", "mass", which, "state:motion") end

---Mean of any field over a group.
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@param field "position"|"velocity"|"affine"|"deformation"
---@param options? { weight?: "mass"|"particle" }
---@return cq.Tensor     {dim} or {dim, dim}, with a row for each group of a list
function State:mean(which, field, options)
  field = is.argument("state:mean", "field", field_kind, field)
  local weight = is.argument("state:mean", "weight", weight_kind, options and options.weight)
  return read(self, "mean", field, weight, which, "state:mean")
end

---A field of the particles of a group, or of several joined.
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@param field? "position"|"velocity"|"affine"|"deformation"
---@return cq.Tensor     {particles, dim} or {particles, dim, dim}
function State:gather(which, field)
  field = is.argument("state:gather", "field", field_kind, field)
  return read(self, "gather", field, "mass", which, "state:gather")
end

---Second moment of position or velocity, the weighted mean of q q^T about the group's centre (or "origin").
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@param options? { field?: "position"|"velocity", about?: "center"|"origin", weight?: "mass"|"particle" }
---@return cq.Tensor     {dim, dim}, with a row for each group of a list
function State:moment(which, options)
  options = options or {}
  local what = "state:moment"
  local field = is.argument(what, "field", is.one_of { "position", "velocity", default = "position" }, options.field)
  local about = is.argument(what, "about", is.one_of { "center", "origin", default = "center" }, options.about)
  local weight = is.argument(what, "weight", weight_kind, options.weight)
  local moment = read(self, "moment", field, weight, which, what)
  if about == "origin" then return moment end
  local mean = read(self, "mean", field, weight, which, what)
  return moment - mean:unsqueeze(-1) * mean:unsqueeze(-2)
end

---Mass-weighted mean of |v|^2 over a group [length^2/time^2].
---@param which string|string[]|integer[]|cq.Group|cq.Robot
---@return cq.Tensor     one number, with a row for each group of a list
function State:mean_square_velocity(which)
  local moment = read(self, "moment", "velocity", "mass", which, "state:mean_square_velocity")
  return (moment * T.eye(self.world.dim)):sum { -2, -1 }
end

---Positions of all particles of the world {n, dim} [length].
---@return cq.Tensor
function State:positions() return read(self, "gather", "position", "mass", nil, "state:positions") end

---Volume of the closed cavity that a cq.Actuator.follower_pressure blows up, area in 2D [length^dim].
---Errors: an open surface.
---@param which cq.Actuator|string     the actuator, or the name of its signal
---@return cq.Tensor     one number
function State:cavity_volume(which) return surface.volume(self, which) end

---Velocities of all particles {n, dim} [length/time].
---@return cq.Tensor
function State:velocities() return read(self, "gather", "velocity", "mass", nil, "state:velocities") end

---Deformation gradients F of all particles {n, dim, dim}.
---@return cq.Tensor
function State:deformations() return read(self, "gather", "deformation", "mass", nil, "state:deformations") end

return state
