-- boundary: where a world is solid, and what happens to velocities there.
--
--   walls = cq.Boundary.box { kind = "friction", mu = 0.5 }
--   walls = { cq.Boundary.floor { at = 0.1 }, cq.Boundary.sphere { center = { 1, 0.2 }, radius = 0.1, kind = "slip" } }
--
-- Kinds: "sticky" takes the wall's velocity, with separable = true only while it presses, and is free to leave;
-- "slip" has no motion along the normal; "separate" is slip, but free to leave; "friction" is separate with
-- Coulomb's law and the coefficient mu.
--
-- A wall acts at the nodes of the grid that lie in the solid or on its surface. The place of a surface
-- between two nodes makes no difference, and a body comes to rest about one cell above the last node of the
-- solid: put surfaces on nodes.
--
-- A robot that starts within a wall is an error, unless the wall is there to hold it: clamp =
-- true, for "sticky" and "slip".
local ffi = require "ffi"
local is = require "cq.base.schema"
local made = require "cq.base.made"
local text = require "cq.base.text"
local vector = require "cq.base.vector"
local message = require "cq.base.message"

---@class cq.Boundary
---@field shape "half_space"|"box"|"sphere"|"height_field"   as the engine knows it
---@field kind "sticky"|"slip"|"separate"|"friction"         what happens to velocities
---@field mu number             Coulomb coefficient [-], 0 unless kind is "friction"
---@field separable boolean     of kind "sticky": holds what presses against it, and lets go
---@field clamp boolean         robots may start within
---@field velocity number[]?    of the surface [length/time]
---@field velocity_at? fun(time: number): any   the same, where it changes
---@field motion? fun(time: number): any        the way that it has made, where that is given
---@field name string?           that state:contact finds it by
---@field given table           what the constructor was given
---@field moves boolean         the solid region moves with its velocity; else it stays, as a conveyor does
local Boundary = { __name = "cq.Boundary" }
Boundary.__index = Boundary

-- The wall in one line: family, kind and options.
function Boundary:__tostring()
  local more = self.kind == "friction" and ", mu " .. text.number(self.mu) or ""
  return ("cq.Boundary.%s { %s%s%s%s }"):format(self.family, self.kind, more, self.separable and ", separable" or "",
    self.clamp and ", clamp" or "")
end

---@class cq.BoundaryModule
---@field mu_large number         from here on friction holds nearly all that presses, and what slides has a derivative as large
local boundary = { class = Boundary, mu_large = 100 }

---@internal
---Warns of a friction coefficient of mu_large or more: gradients are multiplied by numbers as large where anything
---slides.
---@param what string    the wall and its mu, for the warning
function boundary.warn_of_friction(what)
  message.warn("%s%s gives gradients as large where anything slides; a wall with kind = \"sticky\", separable = true holds what presses, without them",
    is.where(), what)
end

-- Makes the checker of a field that is a point or vector in two or three dimensions. options: { optional = true }.
local point = function(options) return is.vector { size = { 2, 3 }, optional = options and options.optional } end

-- Raises an error if a wall's kind does not go with its mu, separable or clamp; warns of a large mu.
local function check_kind(self, name)
  if self.kind == "friction" and not self.mu then
    is.fail("cq.Boundary.%s: a wall with friction needs its coefficient mu, for example mu = 0.5", name)
  elseif self.kind ~= "friction" and self.mu then
    is.fail("cq.Boundary.%s: mu is for kind \"friction\", the kind is \"%s\"", name, self.kind)
  elseif self.separable and self.kind ~= "sticky" then
    is.fail("cq.Boundary.%s: separable = true is for kind \"sticky\", the kind is \"%s\"%s", name, self.kind,
      self.kind == "slip" and "; slip that lets go is kind \"separate\"" or ", which lets go anyway")
  elseif self.clamp and (self.separable or self.kind ~= "sticky" and self.kind ~= "slip") then
    is.fail("cq.Boundary.%s: clamp = true is for a wall that holds what starts within, kind \"sticky\" or \"slip\"; %s lets go", name,
      self.separable and "one that is separable" or ("kind \"%s\""):format(self.kind))
  end
  if self.mu and self.mu >= boundary.mu_large then
    boundary.warn_of_friction(("cq.Boundary.%s: mu = %s"):format(name, text.number(self.mu)))
  end
end

-- Raises an error if a wall's velocity, motion and moves contradict each other.
local function check_motion(self, name)
  if self.motion and self.velocity then is.fail("cq.Boundary.%s: give either velocity or motion, not both", name) end
  if self.motion and self.moves == false then
    is.fail("cq.Boundary.%s: moves = false is for a surface that slides over a wall that stays; motion moves the wall",
      name)
  end
  if self.moves and not (self.velocity or self.motion) then
    is.fail("cq.Boundary.%s: a wall that moves needs a velocity", name)
  end
end

---What every wall takes beside its own fields.
---@class cq.Boundary.wall.def
---@field kind? "sticky"|"slip"|"separate"|"friction"   friction where mu is given, else sticky
---@field mu? number            Coulomb's coefficient of friction [-]; for kind "friction", which needs it
---@field velocity? number[]|fun(time: number): any   {dim} of the surface; 0 unless given. A function of time is asked at the start of
---  each control step, and holds over it [length/time]
---@field motion? fun(time: number): any   {dim} the way that the wall has made since time 0; in the place of velocity [length]
---@field separable? boolean  for kind "sticky": holds what presses against it, and lets go
---@field clamp? boolean      robots may start within, to be held; for kind "sticky" and "slip"
---@field name? string           that state:contact finds it by
---@field moves? boolean        the solid moves with its velocity, as it does where one is given; false: it stays, as a conveyor does

-- Makes the constructor of a family of walls, such as "box". fields: checkers of the family's own fields, to which
-- those of every wall are added; finish(wall, name) checks these fields and sets the wall's shape for the engine.
local function family(name, fields, finish)
  fields.kind = is.one_of { "sticky", "slip", "separate", "friction", optional = true }
  fields.mu = is.number { min = 0, optional = true }
  fields.velocity = is.any_of { point(), is.callable(), optional = true }
  fields.motion = is.callable { optional = true }
  fields.moves = is.boolean { optional = true }
  fields.name = is.string { optional = true }
  fields.separable = is.boolean { default = false }
  fields.clamp = is.boolean { default = false }
  local spec = is.define("cq.Boundary." .. name, fields)
  return function(given)
    local self = spec(given == nil and {} or given)
    self.family, self.given = name, {}
    for key, value in pairs(given or {}) do self.given[key] = value end
    self.kind = self.kind or (self.mu and "friction" or "sticky")
    check_kind(self, name)
    check_motion(self, name)
    self.mu = self.mu or 0
    if self.moves == nil then self.moves = self.velocity ~= nil or self.motion ~= nil end
    if text.is_callable(self.velocity) then self.velocity_at, self.velocity = self.velocity, nil end
    finish(self, name)
    return made.remember(setmetatable(self, Boundary), nil, fields)
  end
end

-- A vector divided by its length, as a new list. Errors: a length of 0; what: its name.
local function unit(v, what)
  local square, scale = vector.square(v, #v)
  if scale == 0 then is.fail("%s must have a direction, got the zero vector", what) end
  local length, out = math.sqrt(square), {}
  for i, x in ipairs(v) do out[i] = x / scale / length end
  return out
end

-- Raises an error if a wall's lower corner is not below its upper one along every axis.
local function ordered(self, name)
  if not (self.lower and self.upper) then return end
  is.same_size("cq.Boundary." .. name, "lower", self.lower, "upper", self.upper)
  for i, low in ipairs(self.lower) do
    if low >= self.upper[i] then
      is.fail("cq.Boundary.%s: upper must be above lower on every axis, got %s and %s on axis %d", name,
        text.number(low), text.number(self.upper[i]), i)
    end
  end
end

---@class cq.Boundary.box.def : cq.Boundary.wall.def
---@field inset? number       of its sides from the edge of the world, 3 cells unless given [length]; or lower and upper
---@field lower? number[]     {dim} its lower corner [length]
---@field upper? number[]     {dim} its upper corner [length]

---A room: solid outside. Its sides stand `inset` inside the edge of the world, or at lower and upper.
---@param fields? cq.Boundary.box.def
---@return cq.Boundary
boundary.box = family("box", {
  inset = is.number { above = 0, optional = true }, lower = point { optional = true },
  upper = point { optional = true },
}, function(self, name)
  self.shape, self.hollow = "box", true
  if self.inset and (self.lower or self.upper) then
    is.fail("cq.Boundary.box: give either inset or lower and upper, not both")
  elseif (self.lower == nil) ~= (self.upper == nil) then
    is.fail("cq.Boundary.box: lower and upper go together, %s is missing", self.lower and "upper" or "lower")
  end
  ordered(self, name)
end)

---@class cq.Boundary.obstacle.def : cq.Boundary.wall.def
---@field lower number[]      {dim} its lower corner [length]
---@field upper number[]      {dim} its upper corner, above lower on every axis [length]

---A solid box in the way.
---@param fields cq.Boundary.obstacle.def
---@return cq.Boundary
boundary.obstacle = family("obstacle", { lower = point(), upper = point() }, function(self, name)
  self.shape, self.hollow = "box", false
  ordered(self, name)
end)

---@class cq.Boundary.floor.def : cq.Boundary.wall.def
---@field at number              place of the surface on the axis; between two nodes it acts as on the lower one [length]
---@field axis? "x"|"y"|"z"      that it is level to

---Level ground: solid below `at` on the axis.
---@param fields cq.Boundary.floor.def
---@return cq.Boundary
boundary.floor = family("floor", { at = is.number(), axis = is.one_of { "x", "y", "z", default = "y" } }, function(self)
  self.shape = "half_space"
  self.axis = ({ x = 1, y = 2, z = 3 })[self.axis]
end)

---@class cq.Boundary.half_plane.def : cq.Boundary.wall.def
---@field point number[]      {dim} on the surface [length]
---@field normal number[]     {dim} out of the solid; it need not have unit length

---Solid behind a plane: where (x - point) . normal < 0.
---@param fields cq.Boundary.half_plane.def
---@return cq.Boundary
boundary.half_plane = family("half_plane", { point = point(), normal = point() }, function(self, name)
  self.shape = "half_space"
  is.same_size("cq.Boundary." .. name, "point", self.point, "normal", self.normal)
  self.normal = unit(self.normal, "cq.Boundary.half_plane: normal")
end)

---@class cq.Boundary.slope.def : cq.Boundary.wall.def
---@field point number[]      {dim} on the surface [length]
---@field angle number        by which it rises along x [radian]

---A slope, solid below.
---@param fields cq.Boundary.slope.def
---@return cq.Boundary
boundary.slope = family("slope", { point = point(), angle = is.number { above = -math.pi / 2, below = math.pi / 2 } },
  function(self)
  self.shape = "half_space"
  self.normal = { -math.sin(self.angle), math.cos(self.angle), #self.point == 3 and 0 or nil }
end)

---@class cq.Boundary.sphere.def : cq.Boundary.wall.def
---@field center number[]     {dim} [length]
---@field radius number       [length]
---@field hollow? boolean     solid outside

---A ball in the way, or a round room if `hollow`.
---@param fields cq.Boundary.sphere.def
---@return cq.Boundary
boundary.sphere = family("sphere", {
  center = point(), radius = is.number { above = 0 }, hollow = is.boolean { default = false },
}, function(self)
  self.shape, self.point = "sphere", self.center
end)

-- Heights of a height field as one row-major list, and the number of samples along each axis. Errors: too few samples,
-- rows of different lengths, heights that are not finite.
local function samples(self, name)
  local heights = self.heights
  if text.is_instance(heights, "cq.Tensor") then heights = heights:totable() end
  if type(heights) ~= "table" or #heights < 2 then
    is.fail("cq.Boundary.%s: heights must be a list of at least 2 numbers (2D), or of at least 2 such rows (3D), got %s", name, text.describe(self.heights))
  end
  local columns = type(heights[1]) == "table" and #heights[1] or nil
  local flat = {}
  for i, row in ipairs(heights) do
    if columns and (type(row) ~= "table" or #row ~= columns or columns < 2) then
      is.fail("cq.Boundary.%s: every row of heights must have the same number of samples, at least 2; row %d is %s",
        name, i, text.describe(row))
    end
    for j, h in ipairs(columns and row or { row }) do
      if type(h) ~= "number" or h ~= h or math.abs(h) == math.huge then
        is.fail("cq.Boundary.%s: heights must be finite numbers, got %s at sample %d%s", name, text.describe(h), i,
          columns and ", " .. j or "")
      end
      flat[#flat + 1] = h
    end
  end
  return flat, { #heights, columns or 1 }
end

---@class cq.Boundary.height_field.def : cq.Boundary.wall.def
---@field heights number[]|number[][]|cq.Tensor   {x} in 2D, {x, z} in 3D, at least 2 along each axis [length]
---@field spacing number|number[]     of the samples along x (and z) [length]
---@field origin? number|number[]     of the first sample, on x (and z) [length]

---Terrain: solid below heights over x (2D, a list) or over x and z (3D, a list of rows), linear between samples. Beyond
---them it goes on with the height of the nearest one.
---@type fun(fields: cq.Boundary.height_field.def): cq.Boundary
boundary.height_field = family("height_field", {
  heights = is.any(),
  spacing = is.any_of { is.number { above = 0 }, is.vector { size = 2, above = 0 } },
  origin = is.any_of { is.number(), is.vector { size = 2 }, default = 0 },
}, function(self, name)
  self.shape = "height_field"
  self.flat, self.count = samples(self, name)
  self.spacing = type(self.spacing) == "number" and { self.spacing, self.spacing } or self.spacing
  self.origin = type(self.origin) == "number" and { self.origin, self.origin } or self.origin
end)

---The dimension that a wall asks for, and the field that says so; nil when it suits both dimensions. Errors: fields of
---different dimensions.
---@internal
---@return integer?, string?     and the field that says so
function Boundary:dim()
  local dim, by
  -- Notes that a field asks for a dimension.
  local function ask(own, field)
    if dim and own ~= dim then
      is.fail("cq.Boundary.%s: it is %dD by its %s, and %dD by its %s", self.family, dim, by, own, field)
    end
    dim, by = own, by or field
  end
  for _, field in ipairs { "point", "lower" } do
    if self[field] then ask(#self[field], field) end
  end
  if self.count then ask(self.count[2] > 1 and 3 or 2, "heights") end
  if self.axis == 3 then ask(3, "axis") end
  if self.velocity then ask(#self.velocity, "velocity") end
  return dim, by
end

local shapes = {
  half_space = "CQ_WALL_HALF_SPACE", box = "CQ_WALL_BOX", sphere = "CQ_WALL_SPHERE",
  height_field = "CQ_WALL_HEIGHT_FIELD",
}
local kinds = {
  sticky = "CQ_CONTACT_STICKY", slip = "CQ_CONTACT_SLIP", separate = "CQ_CONTACT_SEPARATE",
  friction = "CQ_CONTACT_FRICTION",
  separable = "CQ_CONTACT_HOLD",
}

-- Copies a list of numbers, nil for none, into a C array.
local function fill(out, values)
  for i, x in ipairs(values or {}) do out[i - 1] = x end
end

---Has the wall a node of the world's grid in its solid, so that it acts? A thin obstacle or a small ball may have none.
---@internal
---@param domain { dim: integer, dx: number }
---@return boolean
function Boundary:holds_node(domain)
  if self.hollow or self.shape ~= "box" and self.shape ~= "sphere" then return true end
  local square, inside, slack = 0, true, 1e-6
  for d = 1, domain.dim do
    if self.shape == "box" then
      inside = inside and math.floor(self.upper[d] / domain.dx + slack) >= math.ceil(self.lower[d] / domain.dx - slack)
    else
      local at = self.center[d] / domain.dx
      local off = at - math.floor(at + 0.5)
      square = square + off * off
    end
  end
  if self.shape == "box" then return inside end
  return math.sqrt(square) <= self.radius / domain.dx + slack
end

---Raises an error if a field of the wall was assigned after it was made.
---@internal
function Boundary:require_unchanged()
  made.require(self, "cq.Boundary." .. self.family, "give it to the constructor")
end

---Writes the wall into the engine's struct.
---@internal
---@param wall ffi.cdata*      cq_wall *, initialised
---@param domain { dim: integer, dx: number, size: number[] }
---@param C ffi.namespace*
---@return ffi.cdata*?         memory that must live as long as the struct
function Boundary:write(wall, domain, C)
  wall.shape, wall.kind = C[shapes[self.shape]], C[kinds[self.separable and "separable" or self.kind]]
  wall.friction = self.mu
  wall.moves, wall.hollow = self.moves and 1 or 0, self.hollow and 1 or 0
  fill(wall.velocity, self.velocity)
  fill(wall.point, self.point)
  fill(wall.normal, self.normal)
  wall.radius = self.radius or 0
  if self.family == "floor" then
    wall.point[self.axis - 1] = self.at
    for i = 1, 3 do wall.normal[i - 1] = i == self.axis and 1 or 0 end
  elseif self.shape == "box" then
    local inset = self.inset or 3 * domain.dx
    for i = 1, domain.dim do
      wall.lower[i - 1] = self.lower and self.lower[i] or inset
      wall.upper[i - 1] = self.upper and self.upper[i] or domain.size[i] - inset
    end
  elseif self.shape == "height_field" then
    local height = ffi.new("double[?]", #self.flat, self.flat)
    wall.height = height
    fill(wall.height_count, self.count)
    fill(wall.height_origin, self.origin)
    fill(wall.height_spacing, self.spacing)
    return height
  end
end

-- ---- where it is solid, to find robots that start inside ------------------------------------------------------------

-- The height of a terrain, a cq_wall, at a point x (in 3D also z), linear between its samples and constant beyond its
-- ends.
local function height_at(wall, dim, x, z)
  -- Linear interpolation in a height field: the index of the column below a coordinate, the weight of the next column,
  -- and its index.
  local function place(value, axis, count)
    local s = (value - wall.height_origin[axis]) / wall.height_spacing[axis]
    s = math.max(0, math.min(s, count - 1))
    local index = math.min(math.floor(s), math.max(count - 2, 0))
    return index, s - index, math.min(index + 1, count - 1)
  end
  local columns = dim == 3 and wall.height_count[1] or 1
  local i, a, i1 = place(x, 0, wall.height_count[0])
  local k, b, k1 = 0, 0, 0
  if dim == 3 then k, b, k1 = place(z, 1, columns) end
  local h = wall.height
  return (1 - a) * ((1 - b) * h[i * columns + k] + b * h[i * columns + k1])
    + a * ((1 - b) * h[i1 * columns + k] + b * h[i1 * columns + k1])
end

local inside = {
  -- Is the point double x[dim] in the solid of a half-space? wall: cq_wall.
  half_space = function(wall, dim, x)
    local distance = 0
    for i = 0, dim - 1 do distance = distance + (x[i] - wall.point[i]) * wall.normal[i] end
    return distance < 0
  end,
  -- Is the point double x[dim] in the solid of a box, or outside of a hollow one? wall: cq_wall.
  box = function(wall, dim, x)
    for i = 0, dim - 1 do
      if x[i] < wall.lower[i] or x[i] > wall.upper[i] then return wall.hollow == 1 end
    end
    return wall.hollow == 0
  end,
  -- Is the point double x[dim] in the solid of a ball, or outside of a hollow one? wall: cq_wall.
  sphere = function(wall, dim, x)
    local square = 0
    for i = 0, dim - 1 do
      local way = x[i] - wall.point[i]
      square = square + way * way
    end
    return (square < wall.radius * wall.radius) == (wall.hollow == 0)
  end,
  -- Is the point double x[dim] below a terrain? wall: cq_wall.
  height_field = function(wall, dim, x)
    return x[1] < height_at(wall, dim, x[0], dim == 3 and x[2] or 0)
  end,
}

---The index, from 0, of the first of the points that lies in the wall's solid; nil when none does. The world asks it
---for robots that start within a wall.
---@internal
---@param wall ffi.cdata*      the struct that write filled
---@param dim integer
---@param points ffi.cdata*    double[count * dim]
---@param count integer
---@param excused? fun(p: integer): boolean    of a point in the solid: may it be there?
---@return integer?
function Boundary:first_inside(wall, dim, points, count, excused)
  local test = inside[self.shape]
  for p = 0, count - 1 do
    if test(wall, dim, points + p * dim) and not (excused and excused(p)) then return p end
  end
end

---Do a point and its neighbours at distance `reach` along the axes and their diagonals all lie in the wall's solid?
---@internal
---@param wall ffi.cdata*      the struct that write filled
---@param dim integer
---@param x ffi.cdata*         double[dim]
---@param reach number         [length]
---@return boolean
function Boundary:surrounds(wall, dim, x, reach)
  local test, probe = inside[self.shape], ffi.new "double[3]"
  for k = 0, 3 ^ dim - 1 do
    for i = 0, dim - 1 do probe[i] = x[i] + (math.floor(k / 3 ^ i) % 3 - 1) * reach end
    if not test(wall, dim, probe) then return false end
  end
  return true
end

return boundary
