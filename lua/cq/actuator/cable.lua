-- cable: paths of cables through a robot, and the engine's structs of them.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

---@class cq.Cable
---@field name string
---@field points { index: integer[]?, anchor: number[]? }[]   particles from 0 whose mean a point is, or its place in the world
---@field actuator cq.Actuator
---@field stress integer       its place among the robot's signals to the engine, from 1

local cable = {}

local GAP = 8             -- cells between neighbouring points, unless the cable says more

-- ---- paths ----------------------------------------------------------------------------------------------------------

-- Is value a list of dim finite numbers, the coordinates of a point?
local function is_place(value, dim)
  if type(value) ~= "table" or #value ~= dim then return false end
  for _, x in ipairs(value) do
    if type(x) ~= "number" or x - x ~= 0 then return false end
  end
  return true
end

-- The particle, from 0, nearest to a place in the robot's shape. Errors: a place outside of the body; what: names the
-- cable's point in it.
local function nearest(robot, place, what)
  local x, dim, best, least = robot.position:data(), robot.dim, 0, math.huge
  for p = 0, robot.particle_count - 1 do
    local square = 0
    for i = 1, dim do
      local way = x[p * dim + i - 1] - place[i]
      square = square + way * way
    end
    if square < least then best, least = p, square end
  end
  local size = robot.volume:get(best + 1) ^ (1 / dim)
  if math.sqrt(least) > 1.5 * size then
    is.fail("%s is %s, %s away from the nearest particle of %s; places are those of its shape, before robot:at, and a point fixed in the world is "
      .. "{ anchor = %s }", what, text.place(place), text.number(math.sqrt(least)), robot.name, text.place(place))
  end
  return best
end

-- Reads an entry of a cable's path as { index: its particles from 0 } or { anchor: a place in the world }. what: names
-- the point in errors. Errors: an entry that is neither.
local function point_of(robot, entry, what)
  if type(entry) == "table" and entry.anchor ~= nil and not getmetatable(entry) then
    if not is_place(entry.anchor, robot.dim) then
      is.fail("%s: anchor must be %d finite numbers, a place in the world, got %s", what, robot.dim,
        text.describe(entry.anchor))
    end
    return { anchor = entry.anchor }
  elseif is_place(entry, robot.dim) then
    return { index = { nearest(robot, entry, what) } }
  elseif type(entry) == "number" or type(entry) == "string" or text.is_instance(entry, "cq.Group") then
    local index, count = robot:select(type(entry) == "number" and { entry } or entry, what)
    if count == 0 then is.fail("%s: the group %s has no particles", what, text.describe(entry)) end
    local list = {}
    for k = 0, count - 1 do list[k + 1] = index[k] end
    return { index = list }
  end
  is.fail("%s must be a group name, a particle number, a place { %s } in the robot, or { anchor = a place in the world }, got %s", what,
    robot.dim == 2 and "x, y" or "x, y, z", text.describe(entry))
end

-- The place {dim} of a point of a cable at rest: its anchor, or the mean of its particles.
local function place_of(robot, point)
  if point.anchor then return point.anchor end
  local x, dim, out = robot.base.position:data(), robot.dim, {}
  for i = 1, dim do
    local sum = 0
    for _, p in ipairs(point.index) do sum = sum + x[p * dim + i - 1] end
    out[i] = sum / #point.index
  end
  return out
end

-- The distance of two points [length].
local function distance(a, b)
  local square = 0
  for i = 1, #a do square = square + (a[i] - b[i]) * (a[i] - b[i]) end
  return math.sqrt(square)
end

---Makes the cq.Cable of a cable actuator: finds the particles of each point of its path in the robot. Errors:
---neighbouring points at one place; a path of anchors alone.
---@param robot cq.Robot
---@param actuator cq.Actuator
---@param name string           of its signal
---@return cq.Cable
function cable.bind(robot, actuator, name)
  local out = { name = name, actuator = actuator, points = {} }
  local fixed = true
  for k, entry in ipairs(actuator.path) do
    out.points[k] = point_of(robot, entry, ("cq.Actuator.cable: point %d of \"%s\""):format(k, name))
    fixed = fixed and out.points[k].anchor ~= nil
    if k > 1 and distance(place_of(robot, out.points[k - 1]), place_of(robot, out.points[k])) == 0 then
      is.fail("cq.Actuator.cable: points %d and %d of \"%s\" are at the same place; a cable needs a length between its points", k - 1, k, name)
    end
  end
  if fixed then is.fail("cq.Actuator.cable: \"%s\" goes through no particle, all of its points are anchors", name) end
  return out
end

-- The length of a cable's path at rest [length]: the sum of the distances between its points.
local function span(robot, one)
  local sum = 0
  for k = 2, #one.points do sum = sum + distance(place_of(robot, one.points[k - 1]), place_of(robot, one.points[k])) end
  return sum
end

---Sets cable_stiffness, cable_length (rest length) and cable_friction of robot.base, tensors {cables}. A cable without
---a rest_length of its own gets the length of its path through the robot's particles as they are now.
---@param robot cq.Robot
function cable.measure(robot)
  local stiffness, length, friction = {}, {}, {}
  for k, one in ipairs(robot.cables) do
    local def = one.actuator
    stiffness[k], length[k], friction[k] = def.stiffness, def.rest_length or span(robot, one), def.friction
  end
  if #robot.cables == 0 then return end
  local base = robot.base
  base.cable_stiffness, base.cable_length, base.cable_friction = T.tensor(stiffness), T.tensor(length),
    T.tensor(friction)
end

-- The length of a cable's path if the robot's particles are at `position` {n, dim}: a tensor of rank 0, by tensor
-- operations, so that gradients go through it.
local function span_at(one, position)
  local places, dim = {}, position:size(2)
  for k, point in ipairs(one.points) do
    local numbers = {}
    for i, p in ipairs(point.index or {}) do numbers[i] = p + 1 end
    places[k] = point.anchor and T.tensor(point.anchor) or position:gather(numbers, 1):mean(1)
  end
  local path = T.stack(places):reshape { #places, dim }
  return (path:slice(2, #places) - path:slice(1, #places - 1)):square():sum(-1):sqrt():sum()
end

---Rest lengths of all cables of a robot if its particles are at `position`: the rest_length that the user gave, else
---the length of the path.
---@param robot cq.Robot
---@param position cq.Tensor      {n, dim}
---@return cq.Tensor              {cables}
function cable.lengths(robot, position)
  local out = {}
  for k, one in ipairs(robot.cables) do
    out[k] = one.actuator.rest_length and T.tensor(one.actuator.rest_length) or span_at(one, position)
  end
  return T.stack(out)
end

-- ---- the engine -----------------------------------------------------------------------------------------------------

-- Raises an error if neighbouring points of a cable, neither an anchor, are far apart at rest: it is straight between
-- them, and would cut across the body.
local function check_gaps(robot, one, dx)
  local gap = one.actuator.gap or GAP * dx
  for k = 2, #one.points do
    local a, b = one.points[k - 1], one.points[k]
    local far = not (a.anchor or b.anchor) and distance(place_of(robot, a), place_of(robot, b)) or 0
    if far > gap * (1 + 1e-9) then
      is.fail("cq.World: points %d and %d of the cable \"%s\" are %s apart, more than %s%s; a cable is straight between its points: route it through "
        .. "points in between, or give it gap = %s if it is to be a free string", k - 1, k, one.name, text.number(far),
        text.number(gap),
        one.actuator.gap and "" or (" (%d cells)"):format(GAP), text.number(far))
    end
  end
end

-- The number of pairs (point, particle) of a cable: a point is the mean of its particles, and an anchor has none.
local function count_pairs(one)
  local pairs_count = 0
  for _, point in ipairs(one.points) do pairs_count = pairs_count + (point.index and #point.index or 0) end
  return pairs_count
end

-- Writes one cable into the engine's struct `raw`. actuator: its index among the world's stress actuators, from 0.
-- keep: a list that gets the arrays to which the struct points, so that they are not collected.
local function fill(raw, robot, one, actuator, keep)
  local points, dim = #one.points, robot.dim
  local arrays = {
    start = ffi.new("int64_t[?]", points + 1), particle = ffi.new("int32_t[?]", math.max(count_pairs(one), 1)),
    weight = ffi.new("double[?]", math.max(count_pairs(one), 1)), anchor = ffi.new("double[?]", points * dim),
  }
  local at = 0
  for k, point in ipairs(one.points) do
    for _, p in ipairs(point.index or {}) do
      arrays.particle[at], arrays.weight[at], at = robot.first + p, 1 / #point.index, at + 1
    end
    for i = 1, point.anchor and dim or 0 do arrays.anchor[(k - 1) * dim + i - 1] = point.anchor[i] end
    arrays.start[k] = at
  end
  keep[#keep + 1] = arrays
  raw.actuator, raw.point_count, raw.offset, raw.slope = actuator, points, one.actuator.offset, one.actuator.slope
  raw.point_start, raw.particle, raw.weight, raw.anchor = arrays.start, arrays.particle, arrays.weight, arrays.anchor
end

---Writes the cables of all robots into the engine's def. The layout lists them and holds the arrays to which def
---points: it must live as long as def. Errors: points of a cable that are far apart.
---@param def ffi.cdata*          cq_world_def
---@param robots cq.Robot[]
---@param dx number
---@return { list: { robot: cq.Robot, cable: cq.Cable }[], structs: ffi.cdata*, keep: table } layout
function cable.fill(def, robots, dx)
  local layout, first = { list = {}, keep = {} }, 0
  for _, robot in ipairs(robots) do
    for _, one in ipairs(robot.cables) do
      check_gaps(robot, one, dx)
      layout.list[#layout.list + 1] = { robot = robot, cable = one, actuator = first + one.stress - 1 }
    end
    first = first + #robot.stresses
  end
  layout.structs = ffi.new("cq_cable[?]", math.max(#layout.list, 1))
  for k, entry in ipairs(layout.list) do
    fill(layout.structs[k - 1], entry.robot, entry.cable, entry.actuator, layout.keep)
  end
  def.cable_count, def.cables = #layout.list, layout.structs
  return layout
end

-- (E60), (E62) The tension of each segment of a cable, a list: that of a spring at the first point, less by friction at
-- every turn. path: { count, points: double[count dim] }; values: { stiffness, length, friction }; u: the signal, at
-- which the free length is length (offset + slope u).
local function tensions(path, dim, values, offset, slope, u)
  local x, directions, total = path.points, {}, 0
  for s = 1, path.count - 1 do
    local e, square = {}, 0
    for i = 0, dim - 1 do
      e[i] = x[s * dim + i] - x[(s - 1) * dim + i]
      square = square + e[i] * e[i]
    end
    local length = math.sqrt(square)
    for i = 0, dim - 1 do e[i] = length > 0 and e[i] / length or 0 end
    directions[s], total = e, total + length
  end
  local tension, out = values.stiffness * math.max(0, total - math.max(0, values.length * (offset + slope * u))), {}
  for s, e in ipairs(directions) do
    if s > 1 then
      local cosine = 0
      for i = 0, dim - 1 do cosine = cosine + e[i] * directions[s - 1][i] end
      tension = tension * math.exp(-values.friction * math.acos(math.max(-1, math.min(1, cosine))))
    end
    out[s] = tension
  end
  return out
end

---Where the cables of a world run in a state, for pictures: the points of each {count * dim}, row by row, and the
---tension of each of its segments if the signals are given.
---@param world cq.World
---@param position ffi.cdata*     double {n, dim}
---@param told? { signals: ffi.cdata*, value: fun(name: string): cq.Tensor }   of the control step: signals, and
---  value of cable_stiffness, cable_length, cable_friction: {cables}
---@return { count: integer, points: ffi.cdata*, tension: number[]? }[]
function cable.paths(world, position, told)
  local out, dim = {}, world.dim
  for c, entry in ipairs(world.layout.cable.list) do
    local points, actuator = entry.cable.points, entry.cable.actuator
    local path = { count = #points, points = ffi.new("double[?]", #points * dim) }
    for k, point in ipairs(points) do
      for i = 0, dim - 1 do
        local sum = point.anchor and point.anchor[i + 1] or 0
        for _, p in ipairs(point.index or {}) do
          sum = sum + position[(entry.robot.first + p) * dim + i] / #point.index
        end
        path.points[(k - 1) * dim + i] = sum
      end
    end
    if told then
      local values, stress = {}, world.layout.stress.stresses[entry.actuator + 1]
      for _, name in ipairs { "stiffness", "length", "friction" } do
        values[name] = told.value("cable_" .. name):data()[c - 1]
      end
      path.tension = tensions(path, dim, values, actuator.offset, actuator.slope,
        stress.shift + stress.scale * told.signals[stress.signal])
    end
    out[c] = path
  end
  return out
end

return cable
