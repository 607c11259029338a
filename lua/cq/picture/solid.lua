-- solid: scenes of space. y is up.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"

local C, check = engine.C, engine.check
local solid = {}

local SKY, GROUND, LINE, OBSTACLE = { "#c9d6e2", "#f1f4f6" }, "#dde2e7", "#57687a", "#8d99a6"

local function camera(scene, now)
  local cam, centre, reach = ffi.new "cq_camera", now.camera_centre, scene.reach
  C.cq_camera_init(cam)
  local eye, target
  if scene.camera then
    eye, target = scene.camera.eye, scene.camera.target
  else
    -- the robot stands in the middle, seen a little from above and from the front right
    local away = scene.follow and 4.6 * reach or 0.5 * math.max(scene.domain[1], scene.domain[3]) / math.tan(0.3)
    local middle = scene.follow and centre or { scene.domain[1] / 2, centre[2], scene.domain[3] / 2 }
    target = { middle[1], scene.ground + 0.42 * (scene.follow and 2 * (scene.height_middle - scene.ground) or reach), middle[3] }
    eye = { target[1] + 0.48 * away, target[2] + 0.36 * away, target[3] + 0.80 * away }
  end
  cam.eye, cam.target, cam.field_of_view = eye, target, scene.camera and scene.camera.field_of_view or 0.6
  cam.light = { -0.5, 1, 0.62 }
  cam.focus, cam.focus_radius = centre, 1.5 * reach
  return cam
end

local function plane(canvas, point, normal, cell, extent)
  local p = ffi.new "cq_plane"
  C.cq_plane_init(p)
  p.point, p.normal, p.cell = point, normal, cell
  p.rgba, p.line = colour.number(GROUND), colour.number(LINE)
  if extent then p.lower, p.upper = { -extent, -extent }, { extent, extent } end
  check(C.cq_picture_plane(canvas.handle, p))
end

local faces = { { 1, 2, 4, 3 }, { 5, 6, 8, 7 }, { 1, 2, 6, 5 }, { 3, 4, 8, 7 }, { 1, 3, 7, 5 }, { 2, 4, 8, 6 } }

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

function draw.half_space(canvas, scene, w)
  plane(canvas, w.point, w.normal, scene.cell, w.normal[2] < 0.999 and 2 * scene.domain[1] or nil)
end

function draw.box(canvas, scene, w)
  if w.hollow then      -- of a room, the floor is seen
    return plane(canvas, { w.lower[1], w.lower[2], w.lower[3] }, { 0, 1, 0 }, scene.cell)
  end
  local corners, list, tint = {}, {}, colour.number(OBSTACLE)
  for k = 0, 7 do
    corners[k + 1] = {
      k % 2 == 0 and w.lower[1] or w.upper[1], math.floor(k / 2) % 2 == 0 and w.lower[2] or w.upper[2], k < 4 and w.lower[3] or w.upper[3],
    }
  end
  for _, f in ipairs(faces) do
    list[#list + 1] = { corners[f[1]], corners[f[2]], corners[f[3]], colour = tint }
    list[#list + 1] = { corners[f[1]], corners[f[3]], corners[f[4]], colour = tint }
  end
  triangles(canvas, list)
end

function draw.sphere(canvas, _, w)
  if w.hollow then return end      -- seen from inside there would be nothing else
  check(C.cq_picture_spheres(canvas.handle, 1, ffi.new("double[3]", w.point), ffi.new("double[1]", w.radius), ffi.new("uint32_t[1]", colour.number(OBSTACLE))))
end

function draw.height_field(canvas, scene, w)
  local list, columns = {}, w.count[2]
  local tints = { [0] = colour.number(GROUND), colour.number "#d3d9df" }
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

-- a ribbon on the ground between two points {x, z}, as two triangles
local function ribbon(list, scene, a, b, half, tint)
  local dx, dz, y = b[1] - a[1], b[2] - a[2], scene.ground + 2e-3 * scene.reach
  local length = math.sqrt(dx * dx + dz * dz)
  if length == 0 then return end
  local ox, oz = -dz / length * half, dx / length * half
  local p, q = { a[1] + ox, y, a[2] + oz }, { a[1] - ox, y, a[2] - oz }
  local r, t = { b[1] + ox, y, b[2] + oz }, { b[1] - ox, y, b[2] - oz }
  list[#list + 1] = { p, q, r, colour = tint }
  list[#list + 1] = { q, t, r, colour = tint }
end

-- the way so far, and the ticks of the ruler
local function markings(canvas, scene, now, ticks)
  local list, tint = {}, colour.number(paint.trail)
  for i = 2, #now.trail do
    local a, b = now.trail[i - 1], now.trail[i]
    ribbon(list, scene, { a[1], a[3] }, { b[1], b[3] }, 0.012 * scene.reach, tint)
  end
  tint = colour.number "#5b6875"
  for _, tick in ipairs(ticks) do
    ribbon(list, scene, { tick.x, tick.z - 0.14 * scene.reach }, { tick.x, tick.z }, 0.008 * scene.reach, tint)
  end
  triangles(canvas, list)
end

-- on top of the bodies that they run through
local function draw_cables(canvas, cables)
  for _, path in ipairs(cables) do
    local pixels = ffi.new("double[?]", 2 * path.count)
    check(C.cq_picture_project(canvas.handle, path.count, path.points, pixels))
    local seen = true
    for k = 0, 2 * path.count - 1 do seen = seen and pixels[k] == pixels[k] end
    if seen then check(C.cq_picture_polyline(canvas.handle, path.count, pixels, 2.5, colour.number(paint.cable))) end
  end
end

---Draws a scene as it is now.
---@param canvas cq.Canvas
---@param scene cq.PictureScene
---@param now table      position, deformation, colours, centre
function solid.draw(canvas, scene, now)
  canvas:clear(SKY)
  check(C.cq_picture_camera(canvas.handle, camera(scene, now)))
  for _, body in ipairs(scene.bodies) do body:draw(canvas, now.position, now.colours, now.blend, 0) end
  local floor = false
  for _, w in ipairs(scene.walls) do
    draw[w.shape](canvas, scene, w)
    floor = floor or w.shape == "half_space" or w.shape == "height_field" or (w.shape == "box" and w.hollow)
  end
  if not floor then plane(canvas, { 0, scene.ground, 0 }, { 0, 1, 0 }, scene.cell) end
  local ticks = scene.ruler and ruler.solid(canvas, scene, now.camera_centre) or {}
  markings(canvas, scene, now, ticks)
  check(C.cq_picture_shade(canvas.handle))
  draw_cables(canvas, now.cables)
  ruler.numbers(canvas, scene, ticks)
end

return solid
