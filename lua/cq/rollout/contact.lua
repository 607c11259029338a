-- contact: impulses of walls and pins in each control step of a rollout, as its tensors and as state:contact. The
-- engine gives a row of numbers for each wall, then one for each group of pins: impulse {dim}, normal, tangential
-- {dim}, normal times place {dim}.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local engine = require "cq.base.engine"
local selection = require "cq.robot.selection"
local C, tape = engine.C, T.tape

local DOUBLE = ffi.sizeof "double"

---What walls and pins give to bodies in each control step, of world:rollout { contact = true }: impulses [mass
---length/time]. Divided by the control step they are mean forces. With a batch the scene is the second dimension.
---@class cq.Rollout.contact
---@field impulse cq.Tensor?     {steps, walls, dim} of each wall; nil in a world without walls
---@field normal cq.Tensor?      {steps, walls} the part along the normals of the wall: above 0 where it pushes
---@field tangential cq.Tensor?  {steps, walls, dim} the rest: friction, and what a sticky wall holds
---@field center cq.Tensor?      {steps, walls, dim} centre of pressure [length]; 0 where normal is
---@field pins cq.Tensor?        {steps, dim} impulse of all pins together; nil in a world without pins
---@field pin_groups cq.Tensor?  {steps, groups, dim} of each pinned group, in the order of robots and their pins; what
---  is pinned by number is one group of its robot. A node that two groups touch is of the first

local contact = {}

-- The number of values in one row of contact: of one wall or one group of pins.
local function width_of(world) return C.cq_contact_width(world.dim) end

-- Names the values of walls in the engine's rows {..., width}: { impulse {..., dim}, normal {...}, tangential {...,
-- dim}, center {..., dim} of pressure, 0 where normal is 0 }.
local function parts(rows, dim)
  local normal = rows:slice(dim + 1, dim + 1, -1):squeeze(-1)
  local moment, none = rows:slice(2 * dim + 2, 3 * dim + 1, -1), normal:equals(0)
  return {
    impulse = rows:slice(1, dim, -1), normal = normal, tangential = rows:slice(dim + 2, 2 * dim + 1, -1),
    center = moment * none:select(0, 1 / none:select(1, normal)):unsqueeze(-1),
  }
end

---Raises an error if the world has neither walls nor pins, so that there is no contact to read.
---@param world cq.World
function contact.check(world)
  if #world.walls == 0 and world.layout.pin_count == 0 then
    is.fail("world:rollout: contact = true, but the world has no walls and no robot has pins")
  end
end

-- The number of the engine's rows for a world: one for each wall, then one for each group of pins, at least one.
local function rows_of(world) return #world.walls + math.max(1, #world.layout.pin_groups) end

-- The number of contact values of one control step, in all rows of all scenes.
local function step_size(roll) return roll.batch * rows_of(roll.world) * width_of(roll.world) end

-- Writes the engine's contact rows of `count` control steps, from `first` on, to out, double {count, batch, rows,
-- width}. If a control step is several engine steps (world.pieces), their rows are summed.
local function sum_pieces(roll, first, count, out)
  local size, pieces = step_size(roll), roll.world.pieces
  local from = C.cq_rollout_contact(roll.handle) + first * pieces * size
  ffi.fill(out, count * size * DOUBLE)
  for i = 0, count - 1 do
    for k = 0, pieces - 1 do
      for j = 0, size - 1 do out[i * size + j] = out[i * size + j] + from[(i * pieces + k) * size + j] end
    end
  end
end

-- Adjoint of sum_pieces: adds the gradient of each sum, double {count, batch, rows, width}, to all its engine steps.
local function add_pieces(roll, first, count, grad)
  local size, pieces = step_size(roll), roll.world.pieces
  local all = ffi.new("double[?]", count * pieces * size)
  for row = 0, count * pieces - 1 do
    ffi.copy(all + row * size, grad + math.floor(row / pieces) * size, size * DOUBLE)
  end
  engine.check(C.cq_rollout_contact_adjoint(roll.handle, first * pieces, count * pieces, all), "world:rollout")
end

---All contact values of a rollout {steps, batch, rows, width}, without the batch if there is none.
---@param roll cq.Rollout
---@return cq.Tensor
function contact.rows(roll)
  local shape = { roll.steps, roll.batch, rows_of(roll.world), width_of(roll.world) }
  if not roll.batched then table.remove(shape, 2) end
  local out = T.empty(shape)
  sum_pieces(roll, 0, roll.steps, out:data())
  return out
end

---Impulses of each wall and each group of pinned particles, from all contact rows; fields are nil where the world has
---no walls or no pins.
---@param rows cq.Tensor     of contact.rows
---@param world cq.World
---@return cq.Rollout.contact
function contact.of(rows, world)
  local walls = #world.walls
  local out = walls > 0 and parts(rows:slice(1, walls, -2), world.dim) or {}
  if world.layout.pin_count > 0 then
    out.pin_groups = rows:slice(walls + 1, rows_of(world), -2):slice(1, world.dim, -1)
    out.pins = out.pin_groups:sum(-2)
  end
  return out
end

-- The row of a pinned group among the contact rows, from 0; nil: no group has this name. which: a cq.Group or a name.
-- Errors: several robots have the name.
local function find_group(world, which)
  local name, robot, found = which, nil, nil
  if text.is_instance(which, "cq.Group") then
    name, robot = which.name, selection.robot(world, which.robot, "state:contact")
  end
  for k, group in ipairs(world.layout.pin_groups) do
    if group.name and group.name == name and (not robot or group.robot == robot) then
      if found then
        is.fail("state:contact: several robots have a pinned group \"%s\"; use world.robots[i]:group(\"%s\")", name,
          name)
      end
      found = #world.walls + k - 1
    end
  end
  return found
end

-- Raises the error for a wall or pinned group that the world does not have, with the names that it has.
local function missing(world, which)
  local walls, names, groups = world.walls, {}, {}
  for _, wall in ipairs(walls) do
    if wall.name then names[#names + 1] = ("%q"):format(wall.name) end
  end
  for _, group in ipairs(world.layout.pin_groups) do
    if group.name then groups[#groups + 1] = ("%q"):format(group.name) end
  end
  if #walls == 0 and #world.layout.pin_groups > 0 then
    is.fail("state:contact: this world has no walls, only pins; ask for \"pins\"%s",
      #groups > 0 and " or a pinned group, of which there are " .. text.join(groups) or "")
  end
  local by_name = #names > 0 and " or its name, of which there are " .. text.join(names) or ""
  local by_group = #groups > 0 and ", a pinned group, of which there are " .. text.join(groups) or ""
  is.fail("state:contact: needs a wall, by its number from 1 to %d%s%s, or \"pins\", got %s", #walls, by_name,
    by_group, text.describe(which))
end

-- The first and the last contact row, from 0, of a wall or a pinned group, or of all pins ("pins"). Errors: no such
-- wall or pins.
local function find(world, which)
  local walls = world.walls
  if which == "pins" then
    if world.layout.pin_count > 0 then return #walls, rows_of(world) - 1 end
    is.fail("state:contact: no robot of this world has pins")
  end
  if type(which) == "number" and which % 1 == 0 and which >= 1 and which <= #walls then return which - 1, which - 1 end
  for k, wall in ipairs(walls) do
    if which == wall or which ~= nil and (which == wall.name or which == wall.stands_for) then
      if which ~= wall and find_group(world, which) then
        is.fail("state:contact: %s is a wall and a pinned group; give world.walls[%d] or the group", text.describe(which), k)
      end
      return k - 1, k - 1
    end
  end
  local row = find_group(world, which) or missing(world, which)
  return row, row
end

-- The adjoint of contact.read: adds the gradient of its rows to the rollout.
local function read_back(node, gradient)
  local roll, at = node.a, node.extra
  if not roll:ready_adjoint() then return end
  local width, rows = width_of(roll.world), rows_of(roll.world)
  local grad, size = ffi.new("double[?]", step_size(roll)), at.count * width
  for b = 0, roll.batch - 1 do ffi.copy(grad + (b * rows + at.row) * width, gradient + b * size, size * DOUBLE) end
  add_pieces(roll, at.step, 1, grad)
end

---The impulse that a wall or pins gave in the control step before a state, with its normal and tangential parts and
---its center; for state:contact. Errors: the rollout was made without contact = true; the first state, before which no
---step was made; no such wall.
---@param state cq.State
---@param which any
function contact.read(state, which)
  if state.whole then
    local out = {}
    for name, all in pairs(contact.read(state.whole, which)) do out[name] = all[state.number] end
    return out
  end
  local roll, world, what = state.roll, state.world, "state:contact"
  local no_step = "%s: no control step was made before the first state"
  if roll.steps == 0 then is.fail(no_step, what) end
  if not roll.contact_asked then is.fail("%s: nobody asked for it; give world:rollout, or world:settle, contact = true", what) end
  local first, last = find(world, which)
  if state.index == 0 then is.fail(no_step, what) end
  roll:require_live(state.index, what)
  local width, rows, count = width_of(world), rows_of(world), last - first + 1
  local out = class.make(state.batched and { state.batch, count, width } or { count, width })
  local all = ffi.new("double[?]", step_size(roll))
  sum_pieces(roll, state.index - 1, 1, all)
  for b = 0, state.batch - 1 do
    ffi.copy(out:data() + b * count * width, all + (b * rows + first) * width, count * width * DOUBLE)
  end
  if roll.differentiable and tape.recording() then
    tape.push(read_back, out, roll, nil, { step = state.index - 1, row = first, count = count })
  end
  if first >= #world.walls then return { impulse = out:slice(1, world.dim, -1):sum(-2) } end
  return parts(out:squeeze(-2), world.dim)
end

---Adds the gradient of all rows of contact to the adjoint of the rollout. gradient: of the shape of contact.rows.
---@param roll cq.Rollout
---@param gradient cq.Tensor
function contact.add_all(roll, gradient)
  add_pieces(roll, 0, roll.steps, gradient:data())
end

return contact
