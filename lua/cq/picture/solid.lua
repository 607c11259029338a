-- solid: scenes of space. y is up.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"
local cameras = require "cq.picture.camera"
local marks = require "cq.picture.marks"
local walls = require "cq.picture.wall"

local C, check = engine.C, engine.check
local solid = {}

local SKY, GROUND, LINE, OBSTACLE = { "#c9d6e2", "#f1f4f6" }, "#dde2e7", "#57687a", "#8d99a6"

-- Sets the engine's camera, from where the scene is seen, and its sun, and scene.pixels_of_length; returns the place
-- {3} of the eye.
local function look(canvas, scene, now)
  local cam = ffi.new "cq_camera"
  C.cq_camera_init(cam)
  local eye, target, field, up = cameras.now(scene, now)
  local lower, upper, middle, radius = now.box.lower, now.box.upper, {}, 0
  if not scene.fit then      -- shadows around the bodies alone
    lower, upper = {}, {}
    for d = 1, 3 do
      lower[d], upper[d] = now.camera_centre[d] - 1.2 * scene.reach, now.camera_centre[d] + 1.2 * scene.reach
    end
  end
  for d = 1, 3 do
    middle[d] = (lower[d] + upper[d]) / 2
    radius = radius + (upper[d] - lower[d]) ^ 2 / 4
  end
  cam.eye, cam.target, cam.field_of_view, cam.up = eye, target, field, up
  cam.light = { -0.5, 1, 0.62 }
  cam.focus, cam.focus_radius = middle, math.max(1.05 * math.sqrt(radius), 1e-6)
  check(C.cq_picture_camera(canvas.handle, cam))
  local distance = 0
  for d = 1, 3 do distance = distance + (eye[d] - target[d]) ^ 2 end
  scene.pixels_of_length = scene.height / (2 * math.tan(field / 2) * math.sqrt(distance))
  return eye
end

-- Draws a plane, or the part within `extent` of its point, with the lines of the grid's cells.
local function plane(canvas, point, normal, cell, extent)
  local p = ffi.new "cq_plane"
  C.cq_plane_init(p)
  p.point, p.normal, p.cell = point, normal, cell
  p.rgba, p.line = colour.number(GROUND), colour.number(LINE)
  if extent then p.lower, p.upper = { -extent, -extent }, { extent, extent } end
  check(C.cq_picture_plane(canvas.handle, p))
end

local faces = { { 1, 2, 4, 3 }, { 5, 6, 8, 7 }, { 1, 2, 6, 5 }, { 3, 4, 8, 7 }, { 1, 3, 7, 5 }, { 2, 4, 8, 6 } }

-- Draws a list of triangles { p, q, r, colour = }: three corners {3} each.
local function triangles(canvas, list)
  local n = #list
  if n == 0 then return end
  local corner, rgba = ffi.new("double[?]", 9 * n), ffi.new("uint32_t[?]", n)
  for i, t in ipairs(list) do
    for j = 1, 3 do
      for d = 1, 3 do corner[9 * (i - 1) + 3 * (j - 1) + d - 1] = t[j][d] end
    end
    rgba[i - 1] = t.colour
  end
  check(C.cq_picture_triangles(canvas.handle, n, corner, rgba))
end

local draw = {}

-- Draws a piece of a wall near the bodies, as a translucent sheet, where the camera looks through the wall from
-- behind. w: the half-space.
local function sheet(canvas, now, w)
  local n, lower, upper = w.normal, now.box.lower, now.box.upper
  local hint = math.abs(n[2]) < 0.9 and { 0, 1, 0 } or { 1, 0, 0 }
  local along, a, b, half, middle = 0, {}, {}, 0, {}
  for d = 1, 3 do along = along + hint[d] * n[d] end
  local length = 0
  for d = 1, 3 do
    a[d] = hint[d] - along * n[d]
    length = length + a[d] ^ 2
    half = math.max(half, 0.62 * (upper[d] - lower[d]))
  end
  for d = 1, 3 do a[d] = a[d] / math.sqrt(length) end
  for d = 1, 3 do
    local i, j = d % 3 + 1, (d + 1) % 3 + 1
    b[d] = n[i] * a[j] - n[j] * a[i]
  end
  local off = 0
  for d = 1, 3 do off = off + ((lower[d] + upper[d]) / 2 - w.point[d]) * n[d] end
  for d = 1, 3 do middle[d] = (lower[d] + upper[d]) / 2 - off * n[d] end
  -- corner of the sheet at p, q = -1 or 1, `deep` behind its front [length]
  local function corner(p, q, deep)
    local out = {}
    for d = 1, 3 do out[d] = middle[d] + half * (p * a[d] + q * b[d]) - deep * n[d] end
    return out
  end
  local list, tint, ring = {}, colour.number(OBSTACLE, 0.4), { { -1, -1 }, { 1, -1 }, { 1, 1 }, { -1, 1 } }
  for k, p in ipairs(ring) do
    local q = ring[k % 4 + 1]
    local e, f, g, h = corner(p[1], p[2], 0), corner(q[1], q[2], 0), corner(q[1], q[2], 0.05 * half),
      corner(p[1], p[2], 0.05 * half)
    list[#list + 1] = { e, f, g, colour = tint }
    list[#list + 1] = { e, g, h, colour = tint }
  end
  list[#list + 1] = { corner(-1, -1, 0), corner(1, -1, 0), corner(1, 1, 0), colour = tint }
  list[#list + 1] = { corner(-1, -1, 0), corner(1, 1, 0), corner(-1, 1, 0), colour = tint }
  triangles(canvas, list)
end

-- Draws a half-space: its plane with a grid of lines, or near the bodies a translucent sheet where it is seen from
-- behind. eye: where the scene is seen from.
function draw.half_space(canvas, scene, w, now, eye)
  local before = 0
  for d = 1, 3 do before = before + (eye[d] - w.point[d]) * w.normal[d] end
  if before < 0 then return sheet(canvas, now, w) end
  plane(canvas, w.point, w.normal, scene.cell, w.normal[2] < 0.999 and 2 * scene.domain[1] or nil)
end

-- Draws a box; of a hollow one, which is a room, only the floor.
function draw.box(canvas, scene, w)
  if w.hollow then      -- of a room, the floor is seen
    return plane(canvas, { w.lower[1], w.lower[2], w.lower[3] }, { 0, 1, 0 }, scene.cell)
  end
  local corners, list, tint = {}, {}, colour.number(OBSTACLE)
  for k = 0, 7 do
    corners[k + 1] = {
      k % 2 == 0 and w.lower[1] or w.upper[1], math.floor(k / 2) % 2 == 0 and w.lower[2] or w.upper[2], k < 4
        and w.lower[3] or w.upper[3],
    }
  end
  for _, f in ipairs(faces) do
    list[#list + 1] = { corners[f[1]], corners[f[2]], corners[f[3]], colour = tint }
    list[#list + 1] = { corners[f[1]], corners[f[3]], corners[f[4]], colour = tint }
  end
  triangles(canvas, list)
end

-- Draws a sphere; a hollow one is not drawn, since it would hide what is in it.
function draw.sphere(canvas, _, w)
  if w.hollow then return end      -- seen from inside there would be nothing else
  check(C.cq_picture_spheres(canvas.handle, 1, ffi.new("double[3]", w.point), ffi.new("double[1]", w.radius),
    ffi.new("uint32_t[1]", colour.number(OBSTACLE))))
end

-- Draws a height field as chequered triangles.
function draw.height_field(canvas, scene, w)
  local list, columns = {}, w.count[2]
  local tints = { [0] = colour.number(GROUND), colour.number "#d3d9df" }
  -- Where grid point (i, k) of a height field is.
  local function at(i, k)
    local depth = columns > 1 and w.origin[2] + k * w.spacing[2] or k * scene.domain[3]
    return { w.origin[1] + i * w.spacing[1], w.heights[i * columns + (columns > 1 and k or 0) + 1], depth }
  end
  for i = 0, w.count[1] - 2 do
    for k = 0, math.max(columns, 2) - 2 do
      local a, b, c, d = at(i, k), at(i + 1, k), at(i + 1, k + 1), at(i, k + 1)
      local tint = tints[(i + k) % 2]
      list[#list + 1] = { a, b, c, colour = tint }
      list[#list + 1] = { a, c, d, colour = tint }
    end
  end
  triangles(canvas, list)
end

-- Appends a ribbon on the ground between two points {x, z} to a list, as two triangles. on_ground(x, z) gives a place;
-- half: half of its width.
local function ribbon(list, on_ground, a, b, half, tint)
  local dx, dz = b[1] - a[1], b[2] - a[2]
  local length = math.sqrt(dx * dx + dz * dz)
  if length == 0 then return end
  local ox, oz = -dz / length * half, dx / length * half
  local p, q = on_ground(a[1] + ox, a[2] + oz), on_ground(a[1] - ox, a[2] - oz)
  local r, t = on_ground(b[1] + ox, b[2] + oz), on_ground(b[1] - ox, b[2] - oz)
  list[#list + 1] = { p, q, r, colour = tint }
  list[#list + 1] = { q, t, r, colour = tint }
end

-- Draws the marks that lie flat on the ground: the trail of the centre, and the ticks of the ruler.
local function markings(canvas, scene, now, ticks)
  local list, tint = {}, colour.number(paint.trail)
  -- A place on the ground, a little above it so that it is seen.
  local function on_ground(x, z)
    return { x, walls.height(now.walls, x, z, now.ground) + 2e-3 * scene.reach, z }
  end
  for i = 2, #now.trail do
    local a, b = now.trail[i - 1], now.trail[i]
    ribbon(list, on_ground, { a[1], a[3] }, { b[1], b[3] }, 0.012 * scene.reach, tint)
  end
  tint = colour.number "#5b6875"
  for _, tick in ipairs(ticks) do
    ribbon(list, on_ground, { tick.x, tick.z - 0.14 * scene.reach }, { tick.x, tick.z }, 0.008 * scene.reach, tint)
  end
  triangles(canvas, list)
end

---Draws a scene of space as it is now, and sets scene.pixels_of_length.
---@param canvas cq.Canvas
---@param scene cq.PictureScene
---@param now table      poses, walls, ground, centre, and what is shown beside bodies
function solid.draw(canvas, scene, now)
  canvas:clear(SKY)
  local eye = look(canvas, scene, now)
  for _, pose in ipairs(now.poses) do scene:draw_bodies(canvas, pose, 0) end
  local floor = false
  for _, w in ipairs(now.walls) do
    draw[w.shape](canvas, scene, w, now, eye)
    floor = floor or w.shape == "half_space" and w.normal[2] > 0.5 or w.shape == "height_field"
      or (w.shape == "box" and w.hollow)
  end
  if not floor then plane(canvas, { 0, now.ground, 0 }, { 0, 1, 0 }, scene.cell) end
  local ticks = scene.ruler and ruler.solid(canvas, scene, now) or {}
  markings(canvas, scene, now, ticks)
  marks.solid_goals(canvas, now.goals)
  if now.arrows then
    local list = {}
    marks.solid_arrows(list, now.arrows)
    triangles(canvas, list)
  end
  check(C.cq_picture_shade(canvas.handle))
  marks.goal_rims(canvas, now.goals, eye)
  for _, pose in ipairs(now.poses) do marks.cables(canvas, scene, pose.cables) end
  if now.arrows then marks.hidden_arrows(canvas, now.arrows, scene.pixels_of_length) end
  ruler.numbers(canvas, scene, ticks)
end

return solid
