-- picture: scenes as PNG files and films, without a display.
--
--   local scene = cq.Picture.scene { domain = { 2, 1 }, volume = sample.volume, walls = walls,
--     groups = { { name = "leg", particles = sample.groups.leg } } }
--   local film = cq.Picture.video { path = "walk.mp4", fps = 30 }
--   for ... do film:add(scene:frame { position = x, deformation = F, actuation = a, label = "t = 0.3" }) end
--   film:close()
--
-- frame: one picture at once; canvas: an empty one to draw on; a picture writes itself: picture:write "a.png".
local canvas = require "cq.picture.canvas"
local scene = require "cq.picture.scene"
local video = require "cq.picture.video"

---@class cq.PictureModule
local picture = {
  canvas = canvas.new,
  scene = scene.new,
  frame = scene.once,
  video = video.new,
}

return picture
