-- friction: a block slides down a slope with Coulomb's friction, and one that was pushed comes to rest on level ground.
local cq = require "cq"
local trend = require "scenes.trend"

local GRAVITY, MU, SIDE = 1, 0.3, 0.25

local function block(dx)
  return cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 2 * SIDE, SIDE }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = 200, poisson = 0.3, density = 1 },
  }
end

local function world_of(dx, gravity, integrator)
  return cq.World {
    cells = { math.ceil(3 / dx), math.ceil(0.75 / dx) }, dx = dx, gravity = gravity, dt = 0.01,
    substeps = integrator and 1 or "auto", integrator = integrator, precision = "float64",
    walls = cq.Boundary.floor { at = 0.125, mu = MU }, block(dx):at { 0.25, 0.125 + dx },
  }
end

-- the slope of the line through the block's speed from a time of 0.5 on: it shakes a little on the ground
local function acceleration(world, speed)
  local line = trend.new()
  world:rollout { steps = 200, robot = world.robot:with { velocity = { speed, 0 } }, on_step = function(state)
    if state.step >= 50 then line:add(state.time, state:velocity "block"[1]:item()) end
  end }
  world:close()
  return line:slope()
end

-- on a slope of an angle: gravity is turned, so that the ground stays on nodes
local function slide_down(dx, angle, integrator)
  return acceleration(world_of(dx, { GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle) }, integrator), 0)
end

local function slow_down(dx, integrator) return -acceleration(world_of(dx, { 0, -GRAVITY }, integrator), 0.7) end

return {
  summary = "a block that slides down a slope, and one that slows down on level ground",
  source = "Coulomb's friction: g (sin a - mu cos a), mu g",
  quick = true,
  run = function(row)
    local cells, angle = { 4, 8, 16 }, math.rad(30)
    for _, method in ipairs { "explicit", "implicit" } do
      local down, slow = {}, {}
      local count = method == "implicit" and 2 or 3
      for k = 1, count do
        local integrator = method == "implicit" and cq.Implicit { tolerance = 1e-6 } or nil
        down[k], slow[k] = slide_down(SIDE / cells[k], angle, integrator), slow_down(SIDE / cells[k], integrator)
      end
      local at = { unpack(cells, 1, count) }
      row { method = method, quantity = "acceleration on a slope of 30 degrees", ours = down, refined = at,
        exact = GRAVITY * (math.sin(angle) - MU * math.cos(angle)), by = "cells across", promise = 0.01 }
      row { method = method, quantity = "deceleration on level ground", ours = slow, refined = at, exact = MU * GRAVITY,
        by = "cells across", promise = 0.02 }
    end
  end,
}
