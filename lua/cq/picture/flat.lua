-- flat: scenes of the plane.
local paint = require "cq.picture.paint"
local colour = require "cq.base.colour"
local ruler = require "cq.picture.ruler"
local marks = require "cq.picture.marks"

local flat = {}

local OUTLINE = 1.4        -- [pixel] around bodies
local RULER = 44           -- [pixel] of ground below the ruler's line
local LABEL = 50           -- [pixel] above bodies that a line of the label takes

---The part of the plane that is seen: { scale [pixel / length], left, bottom }. centre: of the camera, for a scene that
---follows; box: of all that is to be seen, for a scene that fits it.
function flat.view(scene, centre, box)
  local size, ground = scene.domain, scene.ground
  local width, height = scene.width, scene.height
  if scene.fit then
    -- all that is to be seen, with room for the ground below and for what is written above
    local on_ground = scene.has_ground and math.abs(ground - box.lower[2]) <= 1e-9
    -- shares of the height, more of a low picture, but bodies keep a third of it
    local below = on_ground and math.min(math.max(0.16, RULER / height), 0.36) or 0.1
    local above = math.min(math.max(0.18, LABEL / height), 0.3)
    local scale = scene.zoom * math.min(0.84 * width / (box.upper[1] - box.lower[1]),
      (1 - above - below) * height / (box.upper[2] - box.lower[2]))
    local middle = { (box.lower[1] + box.upper[1]) / 2, (box.lower[2] + box.upper[2]) / 2 }
    local bottom = on_ground and ground - below * height / scale or middle[2]
      - (0.5 + (below - above) / 2) * height / scale
    return { scale = scale, left = middle[1] - width / scale / 2, bottom = bottom }
  end
  if scene.follow then
    local tall = scene.view_height
    local scale = height / tall
    -- near its ends the world stays in the picture and the body leaves the middle
    local wide = width / scale
    local left = math.max(math.min(centre[1] - wide / 2, size[1] - 0.96 * wide), -0.04 * wide)
    return { scale = scale, left = left, bottom = ground - 0.2 * tall }
  end
  -- all of the domain, with room in the ground for the ruler's numbers
  local scale = math.min(width / size[1], height / size[2])
  local bottom = size[2] / 2 - height / scale / 2
  if scene.ruler then bottom = math.min(bottom, ground - RULER / scale) end
  return { scale = scale, left = size[1] / 2 - width / scale / 2, bottom = bottom }
end

-- The part of a window, a list of corners, that lies behind a line, where (x - point) . normal <= 0, as a list of
-- corners.
local function clip(window, point, normal)
  local out = {}
  -- The signed distance of a corner from the edge of a half-plane.
  local function side(q) return (q[1] - point[1]) * normal[1] + (q[2] - point[2]) * normal[2] end
  for i, q in ipairs(window) do
    local r = window[i % #window + 1]
    local a, b = side(q), side(r)
    if a <= 0 then out[#out + 1] = q end
    if (a <= 0) ~= (b <= 0) then
      local t = a / (a - b)
      out[#out + 1] = { q[1] + t * (r[1] - q[1]), q[2] + t * (r[2] - q[2]) }
    end
  end
  return out
end

-- A circle as a list of 96 corners.
local function circle(centre, radius)
  local out = {}
  for k = 0, 95 do
    local a = k * math.pi / 48
    out[k + 1] = { centre[1] + radius * math.cos(a), centre[2] + radius * math.sin(a) }
  end
  return out
end

-- An outline with a hole, lists of corners, as one polygon, joined by a cut.
local function with_hole(outer, hole)
  local out = {}
  for _, q in ipairs(outer) do out[#out + 1] = q end
  out[#out + 1] = outer[1]
  for _, q in ipairs(hole) do out[#out + 1] = q end
  out[#out + 1] = hole[1]
  return out
end

-- By the kind of a wall: the polygon that it covers of a window, given by its corners, and the line that is drawn as
-- its edge.
local solid = {}

-- Two lists of points: the outline of a half-space, cut off at the window, and its edge, which goes on far beyond.
function solid.half_space(w, window)
  local d = 1e3 * (window[3][1] - window[1][1])
  local t = { -w.normal[2], w.normal[1] }
  local edge = { { w.point[1] - d * t[1], w.point[2] - d * t[2] }, { w.point[1] + d * t[1], w.point[2] + d * t[2] } }
  return clip(window, w.point, w.normal), edge
end

-- Two lists of points: the outline of a box, if it is hollow that of the window with the box as a hole; and its edge.
function solid.box(w, window)
  local a, b = w.lower, w.upper
  local outline = { { a[1], a[2] }, { b[1], a[2] }, { b[1], b[2] }, { a[1], b[2] } }
  local edge = { outline[1], outline[2], outline[3], outline[4], outline[1] }
  return w.hollow and with_hole(window, outline) or outline, edge
end

-- Two lists of points: the outline of a disc, if it is hollow that of the window with the disc as a hole; and its edge.
function solid.sphere(w, window)
  local outline = circle(w.point, w.radius)
  local edge = circle(w.point, w.radius)
  edge[#edge + 1] = edge[1]
  return w.hollow and with_hole(window, outline) or outline, edge
end

-- Two lists of points: the outline of a height field, down to the lower side of the window, and its edge; both go on
-- level from its ends to the sides of the window.
function solid.height_field(w, window)
  local left, right, bottom = window[1][1], window[3][1], window[1][2]
  local edge = { { math.min(left, w.origin[1]), w.heights[1] } }
  for i, h in ipairs(w.heights) do edge[#edge + 1] = { w.origin[1] + (i - 1) * w.spacing[1], h } end
  edge[#edge + 1] = { math.max(right, edge[#edge][1]), w.heights[#w.heights] }
  local outline = { { edge[1][1], bottom }, unpack(edge) }
  outline[#outline + 1] = { edge[#edge][1], bottom }
  return outline, edge
end

-- Draws the walls of a world in the plane, and outlines their surfaces. view: of flat.view.
function flat.walls(canvas, scene, view, walls)
  local l, b = view.left, view.bottom
  local r, t = l + scene.width / view.scale, b + scene.height / view.scale
  local window = { { l, b }, { r, b }, { r, t }, { l, t } }
  for _, w in ipairs(walls) do
    local outline, edge = solid[w.shape](w, window)
    if #outline >= 3 then canvas:polygon(outline, paint.ground) end
    canvas:line(edge, 2, paint.ground_edge)
  end
end

-- Draws the way of the robot's centre so far, paler where it is older. Its pieces overlap, so they are opaque.
local function draw_trail(canvas, trail)
  local r, g, b = colour.parse(paint.trail, "trail")
  for i = 2, #trail do
    local w = 0.25 + 0.75 * i / #trail
    -- A channel of the trail's colour, mixed with the paper's by w.
    local function pale(c) return 240 + w * (c - 240) end
    canvas:line({ trail[i - 1], trail[i] }, 2.5, colour.pack(pale(r), pale(g), pale(b)))
  end
end

---Draws a scene of the plane as it is now, and sets scene.pixels_of_length.
---@param canvas cq.Canvas
---@param scene cq.PictureScene
---@param now table      poses, walls, ground, centre, and what is shown beside bodies
function flat.draw(canvas, scene, now)
  local view = flat.view(scene, now.camera_centre, now.box)
  scene.pixels_of_length = view.scale
  canvas:clear(paint.sky)
  canvas:view(view.scale, view.left, view.bottom)
  flat.walls(canvas, scene, view, now.walls)
  if scene.ruler then ruler.flat(canvas, scene, view, now.ground) end
  canvas:view(view.scale, view.left, view.bottom)
  draw_trail(canvas, now.trail)
  for _, pose in ipairs(now.poses) do
    scene:draw_bodies(canvas, pose, OUTLINE)
    marks.cables(canvas, scene, pose.cables)
  end
  marks.flat_goals(canvas, now.goals, view.scale)
  if now.arrows then marks.flat_arrows(canvas, now.arrows, view.scale) end
  if scene.trail then
    canvas:disc(now.centre[1], now.centre[2], 6 / view.scale, "#ffffff")
    canvas:disc(now.centre[1], now.centre[2], 4 / view.scale, paint.trail)
  end
  canvas:view()
end

return flat
