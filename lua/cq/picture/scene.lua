-- scene: what stays the same from frame to frame (bodies' sizes and colours, walls, size of the picture), and what is
-- remembered between frames (the trail of the centre, a camera that follows it smoothly).
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local canvases = require "cq.picture.canvas"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local walls = require "cq.picture.wall"
local ruler = require "cq.picture.ruler"
local bodies = require "cq.picture.body"
local scales = require "cq.picture.scale"
local flat = require "cq.picture.flat"
local solid = require "cq.picture.solid"

---@class cq.Picture.scene.def
---@field domain number[]              {dim} size of the world [length]
---@field volume number|cq.Tensor      of each particle {n}, or of all
---@field rest? cq.Tensor              {n, dim} where particles lie undeformed; where the first frame has them unless given
---@field bodies? cq.Picture.body.def[]   parts that are drawn each with a surface of its own; one of all particles unless given
---@field groups? table[]              { name =, particles = numbers from 1, colour? } or cq.Group, later ones over earlier
---@field walls? cq.Boundary|table     the world's boundaries
---@field dx? number                   cell size of the world, for walls that stand relative to it [length]
---@field width? integer               [pixel]
---@field height? integer              by the shape of the domain unless given [pixel]
---@field samples? integer             along each side of a pixel
---@field follow? boolean              the camera goes with the particles' centre; where the world is much larger than they are unless given
---@field zoom? number                 above 1 nearer
---@field camera? cq.Picture.camera.def   3D only
---@field trail? boolean               of the particles' centre
---@field ruler? boolean               marks along the ground
---@field legend? boolean              what the colours of actuation, or of values, mean
---@field scale? cq.Picture.scale.def  label, unit and range of the colours of values

---@class cq.Picture.frame.def : cq.Picture.scene.def, picture_scene.frame.def

---@class picture_scene.frame.def
---@field position cq.Tensor           {n, dim} [length]
---@field deformation? cq.Tensor       {n, dim, dim} F [-]
---@field actuation? cq.Tensor         {n} in -1..1, blended red (positive) or blue (negative) over the groups' colours
---@field value? cq.Tensor             {n} a number of each particle, whose colour it then has; instead of group and actuation
---@field cables? { count: integer, points: ffi.cdata* }[]   paths of cables {count, dim} [length]
---@field label? string|string[]       lines, top left

---@class cq.Picture.camera.def
---@field eye number[]                  [length]
---@field target number[]               [length]
---@field field_of_view? number         vertical [radian]

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
  camera = is.table { optional = true },
  trail = is.boolean { default = true },
  ruler = is.boolean { default = true },
  legend = is.boolean { default = true },
  scale = is.table { default = {} },
  dx = is.number { above = 0, optional = true },
}
local moving = {
  position = is.tensor(),
  deformation = is.tensor { optional = true },
  actuation = is.tensor { optional = true },
  value = is.tensor { optional = true },
  cables = is.table { default = {} },
  label = is.any_of { is.string(), is.list(is.string()), optional = true },
}

local scene_spec = is.define("cq.Picture.scene", static)
local frame_spec = is.define("picture_scene:frame", moving)
local camera_spec = is.define("cq.Picture camera", {
  eye = is.vector { size = 3 }, target = is.vector { size = 3 }, field_of_view = is.number { above = 0, below = 3, default = 0.6 },
})

-- a strip of a world gets a strip of a picture
local function default_height(def, dim)
  if dim == 3 then return math.floor(def.width * 9 / 32) * 2 end
  local aspect = def.domain[2] / def.domain[1]
  return math.floor(def.width * math.min(math.max(aspect, 0.36), 0.75) / 2) * 2
end

---A scene, of which frames are drawn. The size of particles in the picture comes from their volume.
---@param fields cq.Picture.scene.def
---@return cq.PictureScene
function scene.new(fields)
  local self = setmetatable(scene_spec(fields), Scene)
  self.dim = #self.domain
  self.height = self.height or default_height(self, self.dim)
  if self.camera then
    if self.dim == 2 then is.fail("cq.Picture.scene: camera is for 3D, the domain is 2D; see follow and zoom") end
    self.camera = camera_spec(self.camera)
  end
  self.scale = scales.new(self.scale)
  self.walls = walls.list(self.walls, self.dim, { dx = self.dx, size = self.domain })
  self.ground = walls.ground(self.walls, 0)
  self.path, self.canvas = {}, canvases.new { width = self.width, height = self.height, samples = self.samples }
  return self
end

function Scene:__tostring() return ("cq.PictureScene { %dD, %d x %d pixels }"):format(self.dim, self.width, self.height) end

local function shape_of(t) return "{" .. table.concat(t:shape(), ", ") .. "}" end

local function wanted_shape(name, t, ...)
  local want = { ... }
  local fits = t and t.rank == #want
  for d, size in ipairs(want) do fits = fits and t:size(d) == size end
  if t and not fits then is.fail("picture_scene:frame: %s must have the shape {%s}, got %s", name, table.concat(want, ", "), shape_of(t)) end
end

local function bounds(x, n, dim)
  local lower, upper = {}, {}
  for d = 1, dim do
    lower[d], upper[d] = math.huge, -math.huge
    for p = 0, n - 1 do
      local value = x[dim * p + d - 1]
      lower[d], upper[d] = math.min(lower[d], value), math.max(upper[d], value)
    end
  end
  return lower, upper
end

-- the first frame tells the number of particles, and how large they are together
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
  self.base = paint.base(n, self.groups)
  local lower, upper = bounds(x, n, dim)
  local widest = 0
  for d = 1, dim do widest = math.max(widest, upper[d] - lower[d]) end
  widest = math.max(widest, self.spacing[0])
  local strip = dim == 3 or self.domain[1] > 2.4 * self.domain[2]
  if self.follow == nil then self.follow = strip and self.domain[1] > 3.5 * widest end
  self.reach = 0.62 * widest / self.zoom
  self.height_middle = (lower[2] + upper[2]) / 2
  self.cell = ruler.step(6 * widest, 24)
  local tall = math.max(2.4 * (upper[2] - self.ground), 1.6 * widest * self.height / self.width * 2) / self.zoom
  self.view_height = math.min(tall, 1.25 * self.domain[2] / math.min(self.zoom, 1))
end

-- particles that are not numbers any more do not move the camera
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

local function follow(self, centre)
  if not self.camera_centre then self.camera_centre = { unpack(centre) } end
  for d = 1, self.dim do
    self.camera_centre[d] = self.camera_centre[d] + 0.3 * (centre[d] - self.camera_centre[d])
  end
  self.path[#self.path + 1] = centre
end

local HALO = "#ffffffd0"           -- under what is written, for it to be readable on walls too

-- line: as canvas:text takes it
local function write(canvas, line)
  canvas:text { x = line.x, y = line.y, size = line.size, align = line.align, text = line.text, weight = 2 + 0.25 * line.size, colour = HALO }
  canvas:text(line)
end

local function write_labels(self, label)
  for k, line in ipairs(type(label) == "string" and { label } or label or {}) do
    write(self.canvas, { x = 20, y = 16 + 20 * k, size = k == 1 and 12 or 10, text = line, colour = k == 1 and paint.ink or paint.faint })
  end
end

local function write_legend(self, valued, actuated)
  local canvas, x = self.canvas, self.width - 20
  if valued then return self.scale:legend(canvas, x, write) end
  if actuated then
    local wide, y = 90, 22
    canvas:rectangle(x - wide, y, wide, 8, HALO)
    for i = 0, wide - 1 do
      local u = 2 * (i + 0.5) / wide - 1
      local target = u < 0 and paint.negative or paint.positive
      canvas:rectangle(x - wide + i, y, 1, 8, colour.number(target, 0.9 * math.abs(u)^0.7))
    end
    for i, mark in ipairs { "-1", "0", "1" } do
      write(canvas, { x = x - wide + (i - 1) * wide / 2, y = y + 21, size = 8, align = "centre", text = mark, colour = paint.faint })
    end
    write(canvas, { x = x - wide - 12, y = y + 8, size = 9, align = "right", text = "actuation", colour = paint.faint })
  end
end

---The scene with its particles where they are now. Frames are drawn in their order in time: the trail grows, the camera
---follows.
---@param fields picture_scene.frame.def
---@return cq.Canvas       the scene's own, drawn over by the next frame
function Scene:frame(fields)
  local def = frame_spec(fields)
  local n = self.count or (def.position.rank == 2 and def.position:size(1)) or 0
  wanted_shape("position", def.position, n, self.dim)
  if n == 0 then is.fail("picture_scene:frame: there are no particles") end
  wanted_shape("deformation", def.deformation, n, self.dim, self.dim)
  wanted_shape("actuation", def.actuation, n)
  wanted_shape("value", def.value, n)
  local x = def.position:data()
  local F = def.deformation and def.deformation:data()
  if not self.count then first_frame(self, x, n, F) end
  local centre = centre_of(self, x)
  follow(self, centre)
  if def.value then
    self.scale:paint(self.colours, n, def.value:data())
  else
    paint.blend(self.colours, n, self.base, def.actuation and def.actuation:data())
  end
  for _, body in ipairs(self.bodies) do body:pose(x, F) end
  local now = {
    position = x, blend = def.value ~= nil, colours = self.colours, cables = def.cables,
    centre = centre, camera_centre = self.camera_centre, trail = self.trail and self.path or {},
  }
  local draw = self.dim == 2 and flat.draw or solid.draw
  draw(self.canvas, self, now)
  write_labels(self, def.label)
  if self.legend then write_legend(self, def.value ~= nil, def.actuation ~= nil) end
  return self.canvas
end

local both = {}
for name, kind in pairs(static) do both[name] = kind end
for name, kind in pairs(moving) do both[name] = kind end
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

---Actuation of every particle from the signals of a control step: weights {n, signals} times u {signals}.
---@param weights cq.Tensor    {n, signals}
---@param u cq.Tensor          {signals}
---@return cq.Tensor {n}
function scene.actuation(weights, u)
  if weights.rank ~= 2 or u.rank ~= 1 or weights:size(2) ~= u:size(1) then
    is.fail("cq.Picture.actuation: weights {n, signals} and u {signals} are wanted, got %s and %s", text.describe(weights), text.describe(u))
  end
  return T.tape.pause(function() return weights:matmul(u) end)
end

return scene
