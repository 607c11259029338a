-- picture: how long a frame of a picture in space takes, of a cube of 19,683 particles at 960 x 540 pixels.
--   build/cqlua tests/bench/picture.lua --threads 2
local cq = require "cq"
local clock = require("cq.base.engine").C.cq_clock

local sample = cq.Shape.box { at = { 1, 0.1, 1 }, size = { 0.27, 0.27, 0.27 }, spacing = 0.01 }:sample()
local scene  = cq.Picture.scene {
  domain = { 4, 1, 2 }, volume = sample.volume, width = 960, height = 540, walls = cq.Boundary.floor { at = 0.1 },
}
local deformation, best, least = cq.zeros { sample.count, 3, 3 } + cq.eye(3), math.huge, math.huge
for _ = 1, cq.option("frames", 20) do
  local began, worked = clock(), os.clock()
  scene:frame({ position = sample.position, deformation = deformation }):pixels()
  best, least = math.min(best, clock() - began), math.min(least, os.clock() - worked)
end
print(("%d particles: at best %.0f ms for a frame and its pixels, %.0f ms of all threads"):format(sample.count,
  1e3 * best, 1e3 * least))
