-- vortex: an annulus of neo-Hookean material turns by an angle that differs from radius to radius, under the body force
-- that makes it so: a manufactured solution with large rotation and shear, in which nothing but error leaves the
-- circles.
--
--   alpha(R, t) = A (1 - cos(2 pi t / T)) / 2 h(R),  h = 1 - 8 s^2 + 16 s^4,  s = (R - 1) / 0.5,  0.75 <= R <= 1.25
--   b_r = -r alpha_t^2 + mu / rho r alpha_R^2,  b_theta = r alpha_tt - mu / rho (3 alpha_R + r alpha_RR)
local cq = require "cq"

local YOUNG, POISSON, DENSITY, PERIOD, ANGLE = 1000, 0.3, 1000, 1, 0.2
local MU = YOUNG / (2 * (1 + POISSON))
local INNER, OUTER, CENTER = 0.75, 1.25, 1.5
local SPEED = math.sqrt(YOUNG * (1 - POISSON) / ((1 + POISSON) * (1 - 2 * POISSON)) / DENSITY)

-- h and its derivatives along R
local function profile(radius)
  local s = (radius - 1) * 2
  return 1 - 8 * s ^ 2 + 16 * s ^ 4, 2 * (-16 * s + 64 * s ^ 3), 4 * (-16 + 192 * s ^ 2)
end

-- The force on every particle, from where it began: half its signal + half is t / T, for signals end at 1.
local Force = { particles = "ring", signals = 1, every = "engine_step" }
Force.__index = Force
function Force:force(u)
  local w = 2 * math.pi / PERIOD
  local t = u:item() * PERIOD
  local a, da, dda = ANGLE * (1 - math.cos(w * t)) / 2, ANGLE * w * math.sin(w * t) / 2,
    ANGLE * w ^ 2 * math.cos(w * t) / 2
  local r, angle = self.radius, self.angle + self.h * a
  local radial = r * (self.slope * a):square() * (MU / DENSITY) - r * (self.h * da):square()
  local around = r * self.h * dda - (self.slope * (3 * a) + r * self.curvature * a) * (MU / DENSITY)
  local c, s = angle:cos(), angle:sin()
  return cq.stack({ radial * c - around * s, radial * s + around * c }, 2) * self.mass
end

local function ring(dx, per_side)
  local force = setmetatable({}, Force)
  local robot = cq.Robot {
    shape = cq.Shape.disc { name = "ring", radius = OUTER, spacing = dx / per_side } - cq.Shape.disc { radius = INNER },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = DENSITY }, actuators = force,
  }
  local n = robot.particle_count
  local x, y = robot.position:slice(1, 1, 2):reshape { n }, robot.position:slice(2, 2, 2):reshape { n }
  force.radius, force.angle = (x:square() + y:square()):sqrt(), cq.zeros { n }
  force.h, force.slope, force.curvature = profile(force.radius)
  for k = 0, n - 1 do force.angle:data()[k] = math.atan2(y:data()[k], x:data()[k]) end
  force.mass = (robot.volume * robot.density):reshape { n, 1 }
  return robot, force
end

-- root of the mean square of the displacement's error at t = T / 2, by that of the displacement; cells across the ring
local function error_of(cells, courant, per_side)
  local dx = (OUTER - INNER) / cells
  local robot, force = ring(dx, per_side)
  local steps = math.ceil(PERIOD / 2 * SPEED / (courant * dx))
  local world = cq.World {
    cells = { 6 * cells, 6 * cells }, dx = dx, dt = PERIOD / 2 / steps, precision = "float64",
    robot:at { CENTER, CENTER },
  }
  local x = world:rollout {
    steps = steps, controller = function(_, _, t) return cq.tensor { t / PERIOD } end,
  }.state:positions() - CENTER
  world:close()
  local angle = force.angle + force.h * ANGLE
  local exact = cq.stack({ force.radius * angle:cos(), force.radius * angle:sin() }, 2)
  return ((x - exact):square():mean() / (exact - robot.position):square():mean()):sqrt():item()
end

return {
  summary = "an annulus that a body force turns by another angle at each radius: a manufactured solution",
  source = "Kamojjala, Brannon, Sadeghirad and Guilkey, Engineering with Computers 31 (2015), the generalised vortex;"
    .. " A = 0.2, half a period",
  run = function(row)
    local cells = { 8, 16, 32 }
    for _, way in ipairs { { 0.05, 3, 0.01, 2 }, { 0.25, 3, 0.02, 0.9 } } do
      local courant, per_side, promise, order = unpack(way)
      local errors = {}
      for k, n in ipairs(cells) do errors[k] = error_of(n, courant, per_side) end
      row {
        method = "explicit", exact = 0, scale = 1, ours = errors, refined = cells, by = "cells across",
        quantity = ("error of displacement, Courant number %g, %d particles a cell"):format(courant, per_side ^ 2),
        promise = promise, order = order,
      }
    end
  end,
}
