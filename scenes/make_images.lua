-- Draws the images that scenes are made from, into scenes/assets.       cqlua scenes/make_images.lua
--
-- rhino.png: a rhinoceros from the side, on two feet. Each has two air chambers side by side, in a colour of its own
-- each, so that a controller has four signals.
local image = require "cq.base.image"
local Shape = require "cq.shape"
local colour = require "cq.base.colour"

local width, height = 600, 400                 -- [pixel]
local unit = 400                               -- pixels of one unit of the drawing

-- An ellipse around (x, y) with half axes rx and ry, turned about its middle by an angle [rad], 0 unless given.
local function oval(x, y, rx, ry, angle)
  return Shape.ellipse { at = { x, y }, radii = { rx, ry } }:rotate(angle or 0, { x, y })
end
-- A capsule, a bar with round ends, from (x0, y0) to (x1, y1).
local function limb(x0, y0, x1, y1, radius)
  return Shape.capsule { from = { x0, y0 }, to = { x1, y1 }, radius = radius }
end

local leg_width, leg_top, chamber_top, sole = 0.24, 0.50, 0.28, 0.02
-- The box of a leg whose middle is at x, from its sole up into the body.
local function leg(x) return Shape.box { at = { x - leg_width / 2, sole }, size = { leg_width, leg_top - sole } } end

local hind, front = 0.35, 0.97                          -- middles of the legs
local body = Shape.union {
  oval(0.66, 0.57, 0.46, 0.23), oval(0.34, 0.58, 0.21, 0.20), oval(0.98, 0.61, 0.22, 0.23),
  oval(1.20, 0.56, 0.19, 0.13, -0.5), limb(1.27, 0.50, 1.36, 0.45, 0.075),
  leg(hind), leg(front),
  limb(0.16, 0.64, 0.075, 0.50, 0.02), oval(0.068, 0.47, 0.03, 0.045, 0.4),
  oval(1.06, 0.82, 0.035, 0.075, 0.25), oval(1.13, 0.80, 0.032, 0.07, -0.2),
}
local horn = Shape.polygon { points = { { 1.30, 0.47 }, { 1.42, 0.47 }, { 1.465, 0.72 } } }
  + Shape.polygon { points = { { 1.20, 0.58 }, { 1.31, 0.54 }, { 1.33, 0.69 } } }
local eye = Shape.disc { at = { 1.215, 0.60 }, radius = 0.02 }

-- regions from the topmost down
local regions = { { eye, "#24303c" }, { body, "#95a1ad" }, { horn, "#efe3cf" } }
local chambers = { hind = { "#d9694f", "#3f7fbf" }, front = { "#e3b04b", "#5fa777" } }

-- The colour, "#rrggbb", of the leg's air chamber at (x, y) of the drawing; nil if there is none.
local function chamber_colour(x, y)
  if y > chamber_top then return nil end
  for name, middle in pairs { hind = hind, front = front } do
    if math.abs(x - middle) < leg_width / 2 then return chambers[name][x < middle and 1 or 2] end
  end
end

-- The colour of the drawing at (x, y), "#rrggbb"; nil outside of the rhinoceros.
local function colour_at(x, y)
  for _, region in ipairs(regions) do
    if region[1]:contains(x, y) then return region[1] == body and chamber_colour(x, y) or region[2] end
  end
end

local folder = debug.getinfo(1, "S").source:match "^@(.*[/\\])" or ""
image.write {
  path = folder .. "assets/rhino.png", width = width, height = height,
  -- Red, green, blue and alpha of a pixel, from the upper left corner; alpha 0 outside.
  pixel = function(i, j)
    local tint = colour_at((i + 0.5) / unit, (height - j - 0.5) / unit)
    if not tint then return 255, 255, 255, 0 end
    return colour.parse(tint, "rhino")
  end,
}
