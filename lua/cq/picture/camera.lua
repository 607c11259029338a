-- camera: where a scene of space is looked at from, so that what is to be seen fills the picture, however high it is.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local camera = {}

-- from the target to the eye: a little from above, from the front and from the right
local AHEAD = { 0.48, 0.36, 0.80 }
local LEVEL = math.cos(0.05)           -- of a plane that leans less nobody sees a slope
local STANDS = 0.5                     -- upward part of the normal of a plane that bodies can stand on
local FIELD = 0.6                      -- [radian] vertical
local VERTICAL = 1e-6                  -- horizontal share of a view that counts as vertical
local FILLED = 0.92                    -- share of the picture's sides that may be taken

---@class cq.Picture.camera.def
---@field eye number[]                  y is up in the picture; straight from above or below x is to the right [length]
---@field target number[]               [length]
---@field field_of_view? number         vertical [radian]

local spec = is.define("cq.Picture camera", {
  eye = is.vector { size = 3 }, target = is.vector { size = 3 },
  field_of_view = is.number { above = 0, below = 3, default = FIELD },
})

---The camera of a scene as a function of the time and the centre of the bodies that gives { eye, target, field_of_view
---}. given: such a function, or one fixed table. Errors: neither.
function camera.check(given)
  if text.is_callable(given) then return given end
  if type(given) ~= "table" then
    is.fail("cq.Picture.scene: camera must be { eye =, target = }, or a function of time and the bodies' centre that gives it, got %s",
      text.describe(given))
  end
  local fixed = spec(given)
  return function() return fixed end
end

-- The dot product of two vectors {3}.
local function dot(a, b) return a[1] * b[1] + a[2] * b[2] + a[3] * b[3] end

-- The direction {3} from the target to the eye. Seen straight up or down a slope, a body looks as if on level ground:
-- so the eye turns around the bodies, as little as needed, until the slope rises across the picture.
local function ahead_of(walls)
  local slope
  for _, w in ipairs(walls) do
    local n = w.shape == "half_space" and w.normal
    if n and n[2] > STANDS and n[2] < LEVEL and not (slope and slope[2] <= n[2]) then slope = n end
  end
  if not slope then return AHEAD end
  local azimuth, room = math.atan2(AHEAD[3], AHEAD[1]), math.atan2(AHEAD[1], AHEAD[3])
  local beside = (azimuth - math.atan2(slope[3], slope[1])) % math.pi           -- between the eye and the slope's line
  local turn = math.max(math.pi / 2 - room - beside, 0) - math.max(beside - math.pi / 2 - room, 0)
  local flat = math.sqrt(AHEAD[1] ^ 2 + AHEAD[3] ^ 2)
  return { flat * math.cos(azimuth + turn), AHEAD[2], flat * math.sin(azimuth + turn) }
end

-- How far from its target {3} a camera must be to see a whole box { lower, upper } [length]. aspect: width over height
-- of the picture; ahead: unit vector from the target to the eye.
local function distance(box, target, aspect, ahead)
  local forward, right = { -ahead[1], -ahead[2], -ahead[3] }, { ahead[3], 0, -ahead[1] }
  local length = math.sqrt(dot(right, right))
  right[1], right[3] = right[1] / length, right[3] / length
  local up = { right[2] * forward[3] - right[3] * forward[2], right[3] * forward[1] - right[1] * forward[3],
    right[1] * forward[2] - right[2] * forward[1] }
  local tall, away = FILLED * math.tan(FIELD / 2), 0
  for k = 0, 7 do
    local q = {}
    for d = 1, 3 do q[d] = (math.floor(k / 2 ^ (d - 1)) % 2 == 0 and box.lower[d] or box.upper[d]) - target[d] end
    local reach = math.max(math.abs(dot(q, up)) / tall, math.abs(dot(q, right)) / (tall * aspect))
    away = math.max(away, reach - dot(q, forward))
  end
  return away
end

-- The direction {3} that is upward in a picture: y; of a vertical view, which has no such direction, z or -z, so that x
-- points to the right. Errors: eye and target are one place.
local function up_of(eye, target)
  local view = { target[1] - eye[1], target[2] - eye[2], target[3] - eye[3] }
  local length = math.sqrt(dot(view, view))
  if length == 0 then
    is.fail("cq.Picture.scene: camera: eye and target must differ, both are { %s, %s, %s }", text.number(eye[1]),
      text.number(eye[2]), text.number(eye[3]))
  end
  local across = math.sqrt(view[1] ^ 2 + view[3] ^ 2)
  return across > VERTICAL * length and { 0, 1, 0 } or { 0, 0, view[2] > 0 and 1 or -1 }
end

---Where a scene is seen from now: by its own camera, or by one that shows all of now.box; up is a direction.
---@param scene cq.PictureScene
---@param now table       time, centre and box of what is to be seen
---@return number[] eye, number[] target, number field_of_view, number[] up
function camera.now(scene, now)
  if scene.camera then
    local given = scene.camera(now.time or 0, now.centre)
    if type(given) ~= "table" then
      is.fail("cq.Picture.scene: the camera's function must give { eye =, target = }, got %s", text.describe(given))
    end
    if given.field_of_view == nil or getmetatable(given) then given = spec(given) end
    return given.eye, given.target, given.field_of_view, up_of(given.eye, given.target)
  end
  local target = {}
  for d = 1, 3 do target[d] = (now.box.lower[d] + now.box.upper[d]) / 2 end
  local ahead = ahead_of(scene.walls)
  local away, eye = distance(now.box, target, scene.width / scene.height, ahead) / scene.zoom, {}
  for d = 1, 3 do eye[d] = target[d] + away * ahead[d] end
  return eye, target, FIELD, up_of(eye, target)
end

return camera
