-- readout: readouts of particles as the engine's structs, made once for each selection: for states, and for observers
-- whose policy runs in the engine.
local ffi = require "ffi"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"
local C = engine.C

local readout = {}

---What can be read of particles: fields of the state, and what follows from them and from the materials.
---@alias cq.Quantity
---| "position" | "velocity" | "affine" | "deformation" | "piola" | "cauchy" | "von_mises" | "energy_density" |
---"jacobian" | "speed" | "kinetic_energy" | "angular_momentum"

---What the engine lists of a quantity.
---@class cq.QuantityInfo
---@field name string
---@field unit string
---@field meaning string
---@field rank integer     0 a number, 1 {dim}, 2 {dim, dim}, 3 axial: a number in 2D, {3} in 3D
---@field ids integer[]    of the engine

---@type cq.QuantityInfo[]
readout.quantities = {}

-- what can be read, as the engine lists it: fields of the state, and what follows from them
local fields, names = { motion = { ids = { C.CQ_FIELD_POSITION, C.CQ_FIELD_VELOCITY }, rank = 1 } }, {}
for id = 0, C.CQ_QUANTITY_COUNT - 1 do
  local info = C.cq_quantity_describe(id)
  local name = ffi.string(info.name)
  -- of fields of the state the list of fields says what a script gives: the initial value
  local meaning = ffi.string(info.meaning):gsub("^initial ", ""):gsub(", times the identity$", "")
  names[id + 1] = name
  fields[name] = { name = name, ids = { id }, rank = info.rank, unit = ffi.string(info.unit), meaning = meaning }
  readout.quantities[id + 1] = fields[name]
end

---A checker of the name of a quantity, with this default.
---@param default string
function readout.named(default)
  local list = { default = default }
  for k, name in ipairs(names) do list[k] = name end
  return is.one_of(list)
end

---The engine's entry of a quantity: name, unit, meaning and rank; nil for another name.
---@param name any
---@return cq.QuantityInfo?
function readout.quantity(name) return name ~= "motion" and fields[name] or nil end

---Is a quantity one number for each particle, in 2D and 3D?
---@param info cq.QuantityInfo
---@return boolean
function readout.is_number(info) return info.rank == 0 end

local weights = { mass = C.CQ_WEIGHT_MASS, particle = C.CQ_WEIGHT_PARTICLE, volume = C.CQ_WEIGHT_VOLUME }

-- mean_row, gather_row: as one row of numbers for each scene
local kinds = {
  mean = C.CQ_READOUT_MEAN, mean_row = C.CQ_READOUT_MEAN, moment = C.CQ_READOUT_SECOND_MOMENT,
  gather = C.CQ_READOUT_GATHER,
  gather_row = C.CQ_READOUT_GATHER, sum = C.CQ_READOUT_SUM,
}

-- The dimensions of one particle's value of a quantity, as a list. rank 0: {}, 1: {dim}, 2: {dim, dim}, 3: an axial
-- vector, {} in 2D and {3} in 3D.
local function dims_of(world, rank)
  if rank == 3 then return world.dim == 3 and { 3 } or {} end
  local dims = {}
  for k = 1, rank do dims[k] = world.dim end
  return dims
end

-- The dimensions of a readout's result for one scene, as a list.
local function shape_of(world, kind, field, selection)
  local shape = {}
  if kind == "mean_row" then return { selection.count * #field.ids * world.dim ^ field.rank } end
  if kind == "gather_row" then return { selection.total * #field.ids * world.dim ^ field.rank } end
  if kind == "gather" then shape[1] = selection.total
  elseif not selection.single then shape[1] = selection.count end
  for _ = 1, kind == "moment" and 2 or 1 do
    for _, size in ipairs(dims_of(world, field.rank)) do shape[#shape + 1] = size end
  end
  return shape
end

-- A readout of a field of a selection: { def = the engine's cq_readout, selection, shapes = dimensions of the result by
-- the size of the batch, 0 for none }.
local function make(world, kind, field, weight, selection)
  local def = ffi.new "cq_readout"
  C.cq_readout_init(def)
  def.kind, def.fields = kinds[kind], 0
  for _, id in ipairs(fields[field].ids) do def.fields = def.fields + 2 ^ id end
  def.weighting = weights[weight]
  def.group_count, def.group_start, def.particles = selection.count, selection.start, selection.particles
  return { def = def, selection = selection, shapes = { [0] = shape_of(world, kind, fields[field], selection) } }
end

---The dimensions of a readout's result in a batch of this size, its first dimension; they are kept in found.shapes.
---@return integer[]
function readout.batched(found, batch)
  local shape = { batch }
  for i, size in ipairs(found.shapes[0]) do shape[i + 1] = size end
  found.shapes[batch] = shape
  return shape
end

---The readout of a selection of particles: the engine's struct, and the dimensions of its result; made once for each
---selection, kind, field and weight. As in State's `read`.
---@return { def: ffi.cdata*, shapes: table<integer, integer[]> }
function readout.find(world, kind, field, weight, selection)
  local key = kind .. field .. weight
  local found = selection.readouts[key]
  if not found then
    found = make(world, kind, field, weight, selection)
    selection.readouts[key] = found
  end
  return found
end

---The readout whose result is one row of numbers for each scene: means of groups, or the values of their particles.
---@param kind "mean"|"gather"
---@param field "position"|"velocity"|"motion"
---@param weight? "mass"|"particle"|"volume"
function readout.row(world, kind, field, selection, weight)
  return readout.find(world, kind .. "_row", field, weight or "mass", selection)
end

return readout
