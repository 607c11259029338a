-- marks: marks beside the bodies: cables by their tension, goals, arrows, pinned parts.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local T = require "cq.tensor"

local C, check = engine.C, engine.check
local marks = {}

-- ---- goals ----------------------------------------------------------------------------------------------------------

---@class cq.Picture.goal.def
---@field at number[]          {dim} its place [length]
---@field radius? number       [length]
---@field colour? string       "#rrggbb"

local goal_spec = is.define("cq.Picture goal", {
  at = is.any(), radius = is.number { above = 0, optional = true }, colour = colour.checker { default = paint.goal },
})

-- A place, a list {dim}, from a user's list or tensor. what: its name, for errors. Errors: other numbers than dim, or
-- not finite.
local function place(value, dim, what)
  if T.is_tensor(value) then value = value:totable() end
  if type(value) ~= "table" or #value ~= dim then
    is.fail("cq.Picture: %s must be %d numbers, got %s", what, dim, text.describe(value))
  end
  for _, x in ipairs(value) do
    if type(x) ~= "number" or x - x ~= 0 then
      is.fail("cq.Picture: %s must be %d finite numbers, got %s", what, dim, text.describe(x))
    end
  end
  return value
end

---Goals of a frame, checked, as a list { at, radius, colour }; a given one may be a place alone.
---@param given table         a list
---@param scene cq.PictureScene
---@return table[]
function marks.checked_goals(given, scene)
  local out = {}
  for k, entry in ipairs(given) do
    local what = ("goals[%d]"):format(k)
    local plain = T.is_tensor(entry) or type(entry) == "table" and entry.at == nil and #entry > 0
    local def = plain and goal_spec { at = entry } or type(entry) == "table" and goal_spec(entry)
      or is.fail("cq.Picture: %s must be a place, or { at = place }, got %s", what, text.describe(entry))
    out[k] = { at = place(def.at, scene.dim, what), radius = def.radius or 0.09 * scene.reach, colour = def.colour }
  end
  return out
end

-- Draws each goal as a translucent disc with a rim, and a point in its middle. goals: of checked_goals; scale: pixels
-- of a unit of length.
function marks.flat_goals(canvas, goals, scale)
  for _, goal in ipairs(goals) do
    local x, y = goal.at[1], goal.at[2]
    canvas:disc(x, y, goal.radius, colour.number(goal.colour, 0.28))
    local rim = {}
    for k = 0, 48 do
      rim[k + 1] = { x + goal.radius * math.cos(k * math.pi / 24), y + goal.radius * math.sin(k * math.pi / 24) }
    end
    canvas:line(rim, 1.8, colour.number(goal.colour, 0.9))
    canvas:disc(x, y, math.min(2.4 / scale, 0.4 * goal.radius), goal.colour)
  end
end

-- Draws goals in space, of checked_goals, as translucent balls with a small one in the middle.
function marks.solid_goals(canvas, goals)
  for _, goal in ipairs(goals) do
    local centre = ffi.new("double[3]", goal.at)
    check(C.cq_picture_spheres(canvas.handle, 1, centre, ffi.new("double[1]", goal.radius),
      ffi.new("uint32_t[1]", colour.number(goal.colour, 0.34))))
    check(C.cq_picture_spheres(canvas.handle, 1, centre, ffi.new("double[1]", 0.16 * goal.radius),
      ffi.new("uint32_t[1]", colour.number(goal.colour))))
  end
end

-- Two unit vectors {3} perpendicular to the unit vector u and to each other.
local function across(u)
  local hint = math.abs(u[2]) < 0.9 and { 0, 1, 0 } or { 1, 0, 0 }
  local a = { u[2] * hint[3] - u[3] * hint[2], u[3] * hint[1] - u[1] * hint[3], u[1] * hint[2] - u[2] * hint[1] }
  local length = math.sqrt(a[1] ^ 2 + a[2] ^ 2 + a[3] ^ 2)
  for d = 1, 3 do a[d] = a[d] / length end
  return a, { u[2] * a[3] - u[3] * a[2], u[3] * a[1] - u[1] * a[3], u[1] * a[2] - u[2] * a[1] }
end

local RIM = 48             -- sides of the circle around a goal

---Draws the rims of the goals of a shaded scene of space, also of one that a body has come to and hides.
---@param canvas cq.Canvas
---@param goals table[]
---@param eye number[]      where the scene is seen from
function marks.goal_rims(canvas, goals, eye)
  for _, goal in ipairs(goals) do
    local u, length, points = {}, 0, ffi.new("double[?]", 3 * (RIM + 1))
    for d = 1, 3 do
      u[d] = eye[d] - goal.at[d]
      length = length + u[d] ^ 2
    end
    for d = 1, 3 do u[d] = u[d] / math.sqrt(length) end
    local a, b = across(u)
    for k = 0, RIM do
      local c, s = goal.radius * math.cos(2 * math.pi * k / RIM), goal.radius * math.sin(2 * math.pi * k / RIM)
      for d = 1, 3 do points[3 * k + d - 1] = goal.at[d] + c * a[d] + s * b[d] end
    end
    check(C.cq_picture_wire(canvas.handle, RIM + 1, points, 1.8, colour.number(goal.colour, 0.9), 0.7))
  end
end

-- ---- cables ---------------------------------------------------------------------------------------------------------

local WIDE = 3.2           -- [pixel]

-- The engine's number of the colour of segment k of a cable by its tension; a plain one where no tension is known.
-- path: { points, count, tension }.
local function cable_colour(scene, path, k)
  local tension = path.tension and path.tension[k]
  if not tension then return colour.number(paint.cable) end
  return scene.tension:colour_of(tension)
end

---Widens the scale of tensions to those of a frame's cables; returns whether any is known.
function marks.see_tensions(scene, cables)
  local told = false
  for _, path in ipairs(cables) do
    for _, tension in ipairs(path.tension or {}) do
      scene.tension:see_one(tension)
      told = true
    end
  end
  return told
end

-- Draws segment k of a cable's path, as a line in 2D or a wire in 3D. half: { width, colour, hidden: the opacity where
-- it is hidden }.
local function segment(canvas, path, k, dim, half)
  local p = ffi.new("double[?]", 2 * dim)
  ffi.copy(p, path.points + dim * (k - 1), 2 * dim * ffi.sizeof "double")
  if dim == 2 then
    check(C.cq_picture_polyline(canvas.handle, 2, p, half.width, half.colour))
  else
    check(C.cq_picture_wire(canvas.handle, 2, p, half.width, half.colour, half.hidden))
  end
end

---Draws cables over the bodies that they run through: a dark rim, and in it the colour of the tension.
function marks.cables(canvas, scene, cables)
  for _, path in ipairs(cables) do
    local fade = path.alpha or 1
    for k = 1, path.count - 1 do
      segment(canvas, path, k, scene.dim, { width = WIDE + 2, colour = colour.number(paint.cable, fade),
        hidden = 0.45 })
    end
    for k = 1, path.count - 1 do
      local tint = cable_colour(scene, path, k)
      segment(canvas, path, k, scene.dim, { width = WIDE, colour = tint - tint % 256 + math.floor(255 * fade),
        hidden = 0.6 })
    end
  end
end

-- ---- arrows ---------------------------------------------------------------------------------------------------------

---@class cq.Picture.arrows.def
---@field at cq.Tensor|number[][]       {k, dim} where they begin [length]
---@field vector cq.Tensor|number[][]   {k, dim}
---@field scale? number     [length] of an arrow for each unit of the vector; the longest seen is a third of the bodies unless given
---@field label? string     what they are, in the legend
---@field unit? string      of the vectors
---@field colour? string    "#rrggbb"

local arrow_spec = is.define("cq.Picture arrows", {
  at = is.any(), vector = is.any(), scale = is.number { above = 0, optional = true },
  label = is.string { optional = true },
  unit = is.string { optional = true }, colour = colour.checker { default = paint.arrow },
})

-- A tensor {k, dim} of a user's value for arrows. what: "at" or "vector". Errors: a wrong shape.
local function rows(value, dim, what)
  local tensor = T.as_tensor(value)
  if tensor.rank ~= 2 or tensor:size(2) ~= dim then
    is.fail("cq.Picture: arrows need %s {k, %d}, got a tensor {%s}", what, dim, table.concat(tensor:shape(), ", "))
  end
  return tensor
end

---Checks a user's arrows, and raises scene.longest_arrow, which scales the arrows of all frames, to the longest of
---them. Errors: wrong shapes.
---@return table def, cq.Tensor at, cq.Tensor vector     checked
function marks.see_arrows(given, scene)
  local def = arrow_spec(given)
  local at, vector = rows(def.at, scene.dim, "at"), rows(def.vector, scene.dim, "vector")
  if at:size(1) ~= vector:size(1) then
    is.fail("cq.Picture: arrows have %d places and %d vectors", at:size(1), vector:size(1))
  end
  local dim, longest, v = scene.dim, scene.longest_arrow or 0, vector:data()
  for k = 0, at:size(1) - 1 do
    local square = 0
    for i = 0, dim - 1 do square = square + v[k * dim + i] ^ 2 end
    if square < math.huge then longest = math.max(longest, math.sqrt(square)) end
  end
  scene.longest_arrow = longest
  return def, at, vector
end

---Arrows of a frame, checked: { at, vector {k, dim}, count, scale, longest, label, unit, colour }, with the scale that
---the scene's arrows have so far. nil: the picture has none.
function marks.arrows(given, scene)
  if not given then return nil end
  local def, at, vector = marks.see_arrows(given, scene)
  local longest = scene.longest_arrow
  local scale = def.scale or longest > 0 and 0.5 * scene.reach / longest or 1
  return { at = at, vector = vector, count = at:size(1), scale = scale, longest = longest, label = def.label,
    unit = def.unit, colour = def.colour }
end

local HEAD, THIN = 0.3, 0.013         -- length of a head in that of the arrow; half a shaft in the longest arrow
local THINNEST = 0.8                  -- half a shaft [pixel]
local RIM_WIDE = 1.3                  -- around an arrow, which tells it from what is behind it [pixel]

---Draws the arrows of a scene of the plane, of marks.arrows; those of less than a fiftieth of the longest are left out.
---@param canvas cq.Canvas
---@param arrows table
---@param pixels_of_length number
function marks.flat_arrows(canvas, arrows, pixels_of_length)
  local x, v, tint = arrows.at:data(), arrows.vector:data(), colour.number(arrows.colour)
  local thick = math.max(THIN * arrows.longest * arrows.scale, THINNEST / pixels_of_length)
  for k = 0, arrows.count - 1 do
    local ax, ay, vx, vy = x[2 * k], x[2 * k + 1], v[2 * k] * arrows.scale, v[2 * k + 1] * arrows.scale
    local length = math.sqrt(vx * vx + vy * vy)
    if length > 0.02 * arrows.longest * arrows.scale and length < math.huge then
      local ux, uy, head = vx / length, vy / length, math.min(HEAD * length, 10 * thick)
      local bx, by, wide = ax + vx - head * ux, ay + vy - head * uy, 0.42 * head
      local outline = { { ax - thick * uy, ay + thick * ux }, { bx - thick * uy, by + thick * ux },
        { bx - wide * uy, by + wide * ux }, { ax + vx, ay + vy },
        { bx + wide * uy, by - wide * ux }, { bx + thick * uy, by - thick * ux },
        { ax + thick * uy, ay - thick * ux } }
      outline[#outline + 1] = outline[1]
      canvas:line(outline, 2 * RIM_WIDE, paint.arrow_rim)
      canvas:polygon(outline, tint)
    end
  end
end

local SIDES = 10

-- Appends the triangles of a truncated cone, { p, q, r, colour }, to a list. axis: { from, along: its direction, length
-- }; wide, narrow: radii at its ends.
local function cone(list, axis, wide, narrow, tint)
  local from, u, length = axis.from, axis.along, axis.length
  local a, b = across(u)
  -- Point k, of SIDES, on the circle with this radius around the axis, at a distance along it.
  local function rim(k, along, radius)
    local c, s, q = radius * math.cos(2 * math.pi * k / SIDES), radius * math.sin(2 * math.pi * k / SIDES), {}
    for d = 1, 3 do q[d] = from[d] + along * u[d] + c * a[d] + s * b[d] end
    return q
  end
  for k = 1, SIDES do
    local p, q, r, t = rim(k, 0, wide), rim(k + 1, 0, wide), rim(k + 1, length, narrow), rim(k, length, narrow)
    list[#list + 1] = { p, q, r, colour = tint }
    if narrow > 0 then list[#list + 1] = { p, r, t, colour = tint } end
    list[#list + 1] = { from, q, p, colour = tint }
  end
end

---Appends the triangles of arrows in space, of marks.arrows, to `list`; arrows of less than a fiftieth of the longest
---are left out.
function marks.solid_arrows(list, arrows)
  local x, v, tint = arrows.at:data(), arrows.vector:data(), colour.number(arrows.colour)
  local thick = THIN * arrows.longest * arrows.scale
  for k = 0, arrows.count - 1 do
    local from, u, length = {}, {}, 0
    for d = 1, 3 do
      from[d], u[d] = x[3 * k + d - 1], v[3 * k + d - 1] * arrows.scale
      length = length + u[d] ^ 2
    end
    length = math.sqrt(length)
    if length > 0.02 * arrows.longest * arrows.scale and length < math.huge then
      local head, neck = math.min(HEAD * length, 10 * thick), {}
      for d = 1, 3 do u[d] = u[d] / length end
      for d = 1, 3 do neck[d] = from[d] + (length - head) * u[d] end
      cone(list, { from = from, along = u, length = length - head }, thick, thick, tint)
      cone(list, { from = neck, along = u, length = head }, 0.4 * head, 0, tint)
    end
  end
end

local HIDDEN = 0.6                    -- how visible an arrow is within a body

---Draws those parts of arrows in space that lie within or behind bodies as pale lines.
function marks.hidden_arrows(canvas, arrows, pixels_of_length)
  local x, v = arrows.at:data(), arrows.vector:data()
  local width = math.max(1.5, 1.6 * THIN * arrows.longest * arrows.scale * pixels_of_length)
  for k = 0, arrows.count - 1 do
    local ends = ffi.new "double[6]"
    for d = 0, 2 do ends[d], ends[3 + d] = x[3 * k + d], x[3 * k + d] + v[3 * k + d] * arrows.scale end
    if arrows.longest > 0 then
      check(C.cq_picture_wire(canvas.handle, 2, ends, width, colour.number(arrows.colour), HIDDEN))
    end
  end
end

return marks
