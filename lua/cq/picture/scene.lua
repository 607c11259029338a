-- scene: constants of all frames (sizes and colours of bodies, walls, size of the picture), and memory between frames
-- (the trail of the centre, a camera that follows it smoothly).
local method = require "cq.base.method"
local ffi = require "ffi"
local is = require "cq.base.schema"
local canvases = require "cq.picture.canvas"
local paint = require "cq.picture.paint"
local walls = require "cq.picture.wall"
local ruler = require "cq.picture.ruler"
local bodies = require "cq.picture.body"
local cameras = require "cq.picture.camera"
local class = require "cq.tensor.class"
local marks = require "cq.picture.marks"
local scales = require "cq.picture.scale"
local legend = require "cq.picture.legend"
local flat = require "cq.picture.flat"
local solid = require "cq.picture.solid"
local tables = require "cq.base.tables"

---@class cq.Picture.scene.def
---@field domain number[]              {dim} size of the world [length]
---@field volume number|cq.Tensor      of each particle {n}, or of all
---@field rest? cq.Tensor              {n, dim} where particles lie undeformed; where the first frame has them unless given
---@field bodies? cq.Picture.body.def[]   parts that are drawn each with a surface of its own; all particles are one where there are none
---@field groups? table[]              { name =, particles = numbers from 1, colour? } or cq.Group, later ones over earlier
---@field drawn? table<integer, integer>   0xRRGGBB of particles, numbers from 1, over the colours of groups
---@field pinned? integer[]              particles that are drawn as pinned in place, numbers from 1
---@field walls? cq.Boundary|table     the world's boundaries
---@field dx? number                   cell size of the world, for walls that stand relative to it [length]
---@field width? integer               [pixel]
---@field height? integer              by the shape of the domain unless given [pixel]
---@field samples? integer             along each side of a pixel
---@field follow? boolean              the camera goes with the particles' centre; where the world is much larger than they are unless given
---@field lag? number                  time by which a camera that follows is late, so that it goes smoothly, where frames tell theirs [time]
---@field zoom? number                 above 1 nearer
---@field camera? cq.Picture.camera.def|fun(time: number, centre: number[]): cq.Picture.camera.def   3D only
---@field fit? boolean                 the picture shows the bodies of its frame, and not the world
---@field trail? boolean               of the particles' centre; where the camera follows it unless given
---@field ruler? boolean               marks along the ground
---@field legend? boolean              what the colours of actuation, or of values, mean
---@field actuation_label? string      beside the colours of actuation
---@field scale? cq.Picture.scale.def  label, unit and range of the colours of values

---@class cq.Picture.frame.def : cq.Picture.scene.def, picture_scene.frame.def

---@class picture_scene.frame.def
---@field position cq.Tensor           {n, dim} [length]
---@field deformation? cq.Tensor       {n, dim, dim} F [-]
---@field actuation? cq.Tensor         {n} in -1..1, blended red (positive) or blue (negative) over the groups' colours
---@field value? cq.Tensor             {n} a number of each particle, whose colour it then has; instead of group and actuation
---@field opacity? cq.Tensor           {n} 0: cannot be seen, 1: hides what is behind
---@field cables? { count: integer, points: ffi.cdata*, tension: number[]? }[]   paths of cables {count, dim} [length]
---@field goals? (number[]|cq.Picture.goal.def)[]   places that are drawn as translucent balls
---@field arrows? cq.Picture.arrows.def   vectors at places, as of forces
---@field wall_offset? number[][]      {walls}{dim} the way that each wall has made [length]
---@field before? picture_scene.frame.def[]   earlier moments, drawn paler in the same picture
---@field time? number                 of this frame [time]
---@field label? string|string[]       lines, top left

---What stays the same from frame to frame of a film: bodies and walls, the camera and the trail that it has drawn so
---far.
---@class cq.PictureScene
---@field width integer        [pixel]
---@field height integer       [pixel]
---@field dim integer          2 or 3
---@field count integer        particles
local Scene = { __name = "cq.PictureScene" }
Scene.__index = Scene

local scene = {}

-- fields of a scene, and of a frame; Picture.frame takes both at once
local static = {
  domain = is.vector { size = { 2, 3 }, above = 0 },
  volume = is.any_of { is.number { above = 0 }, is.tensor() },
  rest = is.tensor { optional = true },
  bodies = is.list(is.table(), { default = {} }),
  groups = is.table { default = {} },
  walls = is.any_of { is.instance "cq.Boundary", is.table(), default = {} },
  width = is.integer { min = 64, max = 8192, default = 1280 },
  height = is.integer { min = 64, max = 8192, optional = true },
  samples = is.integer { min = 1, max = 4, default = 2 },
  follow = is.boolean { optional = true },
  zoom = is.number { above = 0, default = 1 },
  camera = is.any { optional = true },
  lag = is.number { above = 0, optional = true },
  fit = is.boolean { default = false },
  drawn = is.table { default = {} },
  pinned = is.list(is.integer { min = 1 }, { default = {} }),
  trail = is.boolean { optional = true },
  ruler = is.boolean { default = true },
  legend = is.boolean { default = true },
  actuation_label = is.string { default = "actuation" },
  scale = is.table { default = {} },
  dx = is.number { above = 0, optional = true },
}
local moving = {
  position = is.tensor(),
  deformation = is.tensor { optional = true },
  actuation = is.tensor { optional = true },
  value = is.tensor { optional = true },
  opacity = is.tensor { optional = true },
  cables = is.table { default = {} },
  goals = is.table { default = {} },
  arrows = is.table { optional = true },
  wall_offset = is.table { optional = true },
  before = is.list(is.table(), { default = {} }),
  time = is.number { optional = true },
  label = is.any_of { is.string(), is.list(is.string()), optional = true },
}

local scene_spec = is.define("cq.Picture.scene", static)
local frame_spec = is.define("picture_scene:frame", moving)
-- The height of a picture where the user gives its width alone [pixel]: 9/16 of the width in 3D; in the plane by the
-- domain, so that a flat world has a flat picture.
local function default_height(def, dim)
  if dim == 3 then return math.floor(def.width * 9 / 32) * 2 end
  local aspect = def.domain[2] / def.domain[1]
  return math.floor(def.width * math.min(math.max(aspect, 0.36), 0.75) / 2) * 2
end

---What the frames of one film share, and what each leaves to the next: the trail, and the place of a camera that
---follows. The size of particles in the picture comes from their volume. Errors: a camera in 2D; unknown fields.
---@param fields cq.Picture.scene.def
---@return cq.PictureScene
function scene.new(fields)
  local self = setmetatable(scene_spec(fields), Scene)
  self.dim = #self.domain
  self.height = self.height or default_height(self, self.dim)
  if self.camera then
    if self.dim == 2 then is.fail("cq.Picture.scene: camera is for 3D, the domain is 2D; see follow and zoom") end
    self.camera = cameras.check(self.camera)
  end
  self.scale = scales.new(self.scale)
  self.tension = scales.new { label = "tension of cables", palette = "tension" }
  self.tension:see_one(0)                        -- the palest colour is that of a slack cable
  self.walls = walls.list(self.walls, self.dim, { dx = self.dx, size = self.domain })
  local ground = walls.ground(self.walls)
  self.ground, self.has_ground = ground or 0, ground ~= nil
  self.arrows_seen = {}
  self.path, self.canvas = {}, canvases.new { width = self.width, height = self.height, samples = self.samples }
  return self
end

-- The scene in one line: dimension and pixels.
function Scene:__tostring()
  return ("cq.PictureScene { %dD, %d x %d pixels }"):format(self.dim, self.width, self.height)
end

-- Raises an error if tensor t of a frame, nil for none, has another shape than the sizes in `...`. name: of the field.
local function wanted_shape(name, t, ...)
  local want = { ... }
  local fits = t and t.rank == #want
  for d, size in ipairs(want) do fits = fits and t:size(d) == size end
  if t and not fits then
    is.fail("picture_scene:frame: %s must have the shape {%s}, got %s", name, table.concat(want, ", "), class.shape_text(t.dims))
  end
end

-- Enlarges a box { lower, upper } (a new one unless given) by places double x[n dim], without those that are not
-- finite; returns it.
local function bounds(x, n, dim, box)
  box = box or { lower = {}, upper = {} }
  for d = 1, dim do
    local lower, upper = box.lower[d] or math.huge, box.upper[d] or -math.huge
    for p = 0, n - 1 do
      local value = x[dim * p + d - 1]
      if value - value == 0 then lower, upper = math.min(lower, value), math.max(upper, value) end
    end
    box.lower[d], box.upper[d] = lower, upper
  end
  return box
end

-- Takes over from the first frame how many particles there are, and sets bodies, colours, the sizes that a picture
-- depends on (reach, view_height, cell), and follow and trail where the user gave none.
local function first_frame(self, x, n, F)
  wanted_shape("rest", self.rest, n, self.dim)
  local dim = self.dim
  self.count, self.spacing, self.colours = n, ffi.new("double[?]", n), ffi.new("uint32_t[?]", n)
  local volume = self.volume
  if type(volume) ~= "number" then
    wanted_shape("volume", volume, n)
    volume = volume:data()
  end
  self.volumes = ffi.new("double[?]", n)
  for p = 0, n - 1 do
    self.volumes[p] = type(volume) == "number" and volume or volume[p]
    self.spacing[p] = self.volumes[p] ^ (1 / dim)
  end
  self.bodies = bodies.list(self.bodies, self, n, self.rest and self.rest:data() or x, not self.rest and F or nil)
  self.base = paint.base(n, self.groups, self.drawn)
  for k, p in ipairs(self.pinned) do
    if p > n then is.fail("picture_scene:frame: pinned[%d] is particle %d, there are %d", k, p, n) end
  end
  local box = bounds(x, n, dim)
  local widest = 0
  for d = 1, dim do widest = math.max(widest, box.upper[d] - box.lower[d]) end
  widest = math.max(widest, self.spacing[0])
  local strip = dim == 3 or self.domain[1] > 2.4 * self.domain[2]
  if self.follow == nil then self.follow = strip and self.domain[1] > 3.5 * widest end
  if self.trail == nil then self.trail = self.follow end
  self.reach = 0.62 * widest / self.zoom
  self.first_box = box
  self.cell = ruler.step(6 * widest, 24)
  local tall = math.max(2.4 * (box.upper[2] - self.ground), 1.6 * widest * self.height / self.width * 2) / self.zoom
  self.view_height = math.min(tall, 1.25 * self.domain[2] / math.min(self.zoom, 1))
end

-- The mean place {dim} of the particles that are finite; the middle of the domain where none is.
local function centre_of(self, x)
  local dim, sum, count = self.dim, { 0, 0, self.dim == 3 and 0 or nil }, 0
  for p = 0, self.count - 1 do
    local a, b, c = x[dim * p], x[dim * p + 1], dim == 3 and x[dim * p + 2] or 0
    if a - a == 0 and b - b == 0 and c - c == 0 then
      sum[1], sum[2], count = sum[1] + a, sum[2] + b, count + 1
      if dim == 3 then sum[3] = sum[3] + c end
    end
  end
  for d = 1, dim do sum[d] = count > 0 and sum[d] / count or self.domain[d] / 2 end
  return sum
end

local LATE = 0.3           -- share of its way that a camera goes in a frame whose time nobody tells

-- Moves the centre of the camera towards the body's centre {dim}, with a lag, so that a gait does not shake the
-- picture, and appends it to the trail.
local function follow(self, centre, time)
  if not self.camera_centre then self.camera_centre = { unpack(centre) } end
  local share = LATE
  if time and self.lag then
    share = self.last_time and 1 - math.exp(-math.max(0, time - self.last_time) / self.lag) or 1
  end
  self.last_time = time
  for d = 1, self.dim do
    self.camera_centre[d] = self.camera_centre[d] + share * (centre[d] - self.camera_centre[d])
  end
  self.path[#self.path + 1] = centre
end

---Extends colour scales and view by a frame without drawing it, so that all frames of a film share their scales.
---@param fields picture_scene.frame.def
function Scene:include_in_scales(fields)
  is.argument("picture_scene:include_in_scales", "fields", is.table(), fields)
  is.argument("picture_scene:include_in_scales", "position", is.tensor(), fields.position)
  if self.fit then self.seen = bounds(fields.position:data(), fields.position:size(1), self.dim, self.seen) end
  if fields.value and not self.scale.categories then self.scale:see(fields.value:data(), fields.value.count) end
  self.tensions_told = marks.see_tensions(self, fields.cables or {}) or self.tensions_told
  if self.fit then
    for _, path in ipairs(fields.cables or {}) do bounds(path.points, path.count, self.dim, self.seen) end
  end
  if fields.arrows then
    local _, at, vector = marks.see_arrows(fields.arrows, self)
    if self.fit then table.insert(self.arrows_seen, { at = at, vector = vector }) end
  end
end

---Follows bodies at a moment that is not drawn: their trail grows and the camera follows.
---@param centre number[]     {dim} of the particles
---@param time? number
function Scene:pass(centre, time)
  -- a centre may be nan, where a simulation broke down
  if type(centre) ~= "table" or #centre ~= self.dim then
    is.argument("picture_scene:pass", "centre", is.vector { size = self.dim }, centre)
  end
  is.argument("picture_scene:pass", "time", is.number { optional = true }, time)
  follow(self, { unpack(centre) }, time)
end

-- Widens a box { lower, upper } in place so that it holds the arrows of all moments, at the scale at which they are
-- drawn.
local function hold_arrows(self, box, arrows)
  local dim = self.dim
  for _, one in ipairs(arrows and self.arrows_seen or {}) do
    local at, vector = one.at:data(), one.vector:data()
    for k = 0, one.at.count - 1 do
      local d, from, tip = k % dim + 1, at[k], at[k] + arrows.scale * vector[k]
      if from - from == 0 and tip - tip == 0 then
        box.lower[d], box.upper[d] = math.min(box.lower[d], from, tip), math.max(box.upper[d], from, tip)
      end
    end
  end
end

-- The height of the lowest ground below a box; in the plane that of the scene.
local function ground_below(self, now, box)
  if self.dim == 2 then return self.ground end
  local low = math.huge
  for k = 0, 3 do
    low = math.min(low, walls.height(now.walls, k % 2 == 0 and box.lower[1] or box.upper[1],
      k < 2 and box.lower[3] or box.upper[3], self.ground))
  end
  return low
end

local SUNK = 0.02          -- share of its height, or a spacing, that a body may be below its ground and stand on it

-- The box { lower, upper } that the camera must show.
local function seen_box(self, poses, now)
  local dim, box = self.dim, { lower = {}, upper = {} }
  if self.fit then
    -- surfaces reach half a spacing beyond their particles
    local half = self.spacing[0] / 2
    for d = 1, dim do box.lower[d], box.upper[d] = self.seen.lower[d] - half, self.seen.upper[d] + half end
    hold_arrows(self, box, now.arrows)
    for _, pose in ipairs(poses) do
      for _, goal in ipairs(pose.goals) do
        for d = 1, dim do
          box.lower[d], box.upper[d] = math.min(box.lower[d], goal.at[d] - goal.radius),
            math.max(box.upper[d], goal.at[d] + goal.radius)
        end
      end
    end
  elseif self.follow then
    for d = 1, dim do
      local half = 0.62 * (self.first_box.upper[d] - self.first_box.lower[d])
      box.lower[d], box.upper[d] = self.camera_centre[d] - half, self.camera_centre[d] + half
    end
  else
    for d = 1, dim do box.lower[d], box.upper[d] = 0, self.domain[d] end
    box.upper[2] = math.min(self.domain[2], math.max(self.first_box.upper[2], self.ground + 0.25 * self.domain[1]))
  end
  -- with the ground that bodies stand on, unless they fly high above it
  local ground, high = ground_below(self, now, box), box.upper[2] - box.lower[2]
  local sunk = math.max(SUNK * high, self.spacing[0])
  if self.has_ground and box.lower[2] - ground < 1.5 * high and box.lower[2] - ground > -sunk then
    box.lower[2] = ground
  end
  return box
end

local EARLIER = 0.55       -- how pale the earliest of several moments is

-- Checks the fields of a frame, and returns them as a pose: { def, position, deformation, pale, blend, cables, goals,
-- label }. pale: share of the background in its colours. The first frame sets the number of particles and their sizes.
-- Errors: wrong shapes; no particles.
local function pose_of(self, def, pale)
  local n = self.count or (def.position.rank == 2 and def.position:size(1)) or 0
  wanted_shape("position", def.position, n, self.dim)
  if n == 0 then is.fail("picture_scene:frame: there are no particles") end
  wanted_shape("deformation", def.deformation, n, self.dim, self.dim)
  wanted_shape("actuation", def.actuation, n)
  wanted_shape("value", def.value, n)
  wanted_shape("opacity", def.opacity, n)
  local x, F = def.position:data(), def.deformation and def.deformation:data()
  if not self.count then first_frame(self, x, n, F) end
  return {
    def = def, position = x, deformation = F, pale = pale, blend = def.value ~= nil and not self.scale.categories,
    cables = def.cables,
    goals = marks.checked_goals(def.goals, self), label = def.label,
  }
end

-- Writes the colour of each particle of a pose into the scene's array, which the next pose overwrites.
local function paint_pose(self, pose)
  local def, n = pose.def, self.count
  if def.value then
    self.scale:paint(self.colours, n, def.value:data())
  else
    paint.blend(self.colours, n, self.base, def.actuation and def.actuation:data())
  end
  if #self.pinned > 0 and self.dim == 3 then paint.darken(self.colours, self.pinned) end
  if pose.pale > 0 then paint.pale(self.colours, n, pose.pale) end
  if def.opacity then paint.fade(self.colours, n, def.opacity:data(), 1) end
end

local LEVELS, HIDDEN = 8, 0.02

-- The opacity of each particle in steps, uint8_t[n]: 0 is not drawn, and cells of the same step join. nil: all are
-- opaque.
local function levels_of(self, pose)
  local opacity = pose.def.opacity
  if not opacity then return nil end
  self.levels = self.levels or ffi.new("uint8_t[?]", self.count)
  local data = opacity:data()
  for p = 0, self.count - 1 do
    local value = math.max(0, math.min(1, data[p]))
    if value ~= value then value = 1 end
    self.levels[p] = value < HIDDEN and 0 or self.dim == 2 and 1 or 1 + math.floor(value * LEVELS)
  end
  return self.levels
end

---Draws the bodies of a pose. outline: width of their outline in 2D [pixel].
---@internal
function Scene:draw_bodies(canvas, pose, outline)
  paint_pose(self, pose)
  local levels = levels_of(self, pose)
  for _, body in ipairs(self.bodies) do
    body:pose(pose.position, pose.deformation, levels)
    body:draw(canvas, pose.position, self.colours, pose.blend, outline)
    if #self.pinned > 0 and self.dim == 2 then body:hatch(canvas, self.pinned) end
  end
end

---Draws the scene with its particles where they are now. Frames are drawn in their order in time: the trail grows, the
---camera follows. Errors: other shapes than in the first frame.
---@param fields picture_scene.frame.def
---@return cq.Canvas       the scene's own, drawn over by the next frame
function Scene:frame(fields)
  local def, poses = frame_spec(fields), {}
  for k, entry in ipairs(def.before) do
    poses[k] = pose_of(self, frame_spec(entry), EARLIER * (#def.before - k + 1) / #def.before)
  end
  local last = pose_of(self, def, 0)
  poses[#poses + 1] = last
  -- the scale of the colours must be that of all moments before any is painted
  for _, pose in ipairs(poses) do self:include_in_scales(pose.def) end
  local centre = centre_of(self, last.position)
  follow(self, centre, def.time)
  local now = {
    poses = poses, time = def.time, centre = centre, camera_centre = self.camera_centre, trail = self.trail
      and self.path or {},
    goals = last.goals, arrows = marks.arrows(def.arrows, self), walls = walls.moved(self.walls, def.wall_offset),
  }
  now.ground = self.has_ground and walls.ground(now.walls) or self.ground
  now.box = seen_box(self, poses, now)
  local draw = self.dim == 2 and flat.draw or solid.draw
  draw(self.canvas, self, now)
  legend.labels(self, def.label)
  self.shows = { valued = def.value ~= nil, actuated = def.actuation ~= nil, arrows = now.arrows }
  if self.legend then legend.over(self, self.canvas, self.shows) end
  return self.canvas
end

---Draws the legends of the colours and arrows of the last frame at the top right of another canvas. Errors: no frame.
---@param canvas cq.Canvas
---@return number y      [pixel] below them
function Scene:explain(canvas)
  is.argument("picture_scene:explain", "canvas", is.instance "cq.Canvas", canvas)
  if not self.shows then is.fail("picture_scene:explain: no frame was drawn yet, whose colours could be explained") end
  return legend.draw(self, canvas, self.shows)
end

local both = tables.merged(static, moving)
local once_spec = is.define("cq.Picture.frame", both)

---One picture: the fields of Picture.scene and of scene:frame in one table.
---@param fields cq.Picture.frame.def
---@return cq.Canvas
function scene.once(fields)
  once_spec(fields)
  local of_scene, of_frame = {}, {}
  for name, value in pairs(fields) do
    if static[name] then of_scene[name] = value else of_frame[name] = value end
  end
  return scene.new(of_scene):frame(of_frame)
end

method.guard(Scene, "picture_scene")

return scene
