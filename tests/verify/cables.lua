-- cables: a chain of heavy bodies that hangs between two anchors, beside the discrete catenary; and a cable with
-- friction that turns around held bodies, beside the capstan.
local cq = require "cq"
local bisect = require "scenes.bisect"

local GRAVITY, BODIES, SPAN, STIFFNESS, LINK = 1, 7, 1.6, 4, 0.25

-- how far the middle body hangs below the anchors, of links that stretch by T / k: the horizontal pull is the same
-- everywhere, the vertical one grows by a body's weight from link to link
local function catenary(weight)
  local links = BODIES + 1
  local function shape(pull)
    local along, down, lowest = 0, 0, 0
    for k = 1, links do
      local vertical = weight * (links / 2 - k + 0.5)
      local tension = math.sqrt(pull ^ 2 + vertical ^ 2)
      local length = LINK + tension / STIFFNESS
      along, down = along + length * pull / tension, down + length * vertical / tension
      lowest = math.max(lowest, down)
    end
    return along, lowest
  end
  local pull = bisect(function(h) return (shape(h)) - SPAN end, 1e-6, 10)
  return select(2, shape(pull))
end

-- where the middle body hangs below the anchors, of bodies that begin on a parabola with a sag of 0.6, and their weight
local function chain(dx, size, method)
  local blocks, cables, left, height = {}, {}, 0.2, 1.5
  local function x_of(k) return left + SPAN * k / (BODIES + 1) end
  for k = 1, BODIES do
    local part = k / (BODIES + 1)
    blocks[k] = cq.Shape.box { name = "body " .. k, size = { size, size }, spacing = dx / 2,
      at = { x_of(k) - size / 2, height - 4 * 0.6 * part * (1 - part) - size / 2 } }
  end
  for k = 0, BODIES do
    local function point(n)
      if n == 0 then return { anchor = { left, height } } end
      if n == BODIES + 1 then return { anchor = { left + SPAN, height } } end
      return "body " .. n
    end
    cables[k + 1] = cq.Actuator.cable { path = { point(k), point(k + 1) }, stiffness = STIFFNESS, rest_length = LINK,
      contraction = 0, gap = 2 }
  end
  local robot = cq.Robot { shape = blocks, actuators = cables,
    material = cq.Material.neo_hookean { young = 50, poisson = 0.3, density = 4 } }
  local world = cq.World {
    cells = { math.ceil(2 / dx), math.ceil(2 / dx) }, dx = dx, dt = 0.02, gravity = { 0, -GRAVITY }, damping = 3,
    substeps = method == "implicit" and 2 or "auto", precision = "float64", robot,
    integrator = method == "implicit" and cq.Implicit { tolerance = 1e-4, cables = "implicit" } or nil,
  }
  local state = world:rollout { steps = 500 }.state
  local middle = state:center("body " .. (BODIES + 1) / 2)[2]:item()
  world:close()
  return height - middle, 4 * size ^ 2 * GRAVITY
end

-- pull at the last of the held bodies on a quarter of a circle by that at the first
local function capstan(turns, mu)
  local dx, center, radius = 1 / 32, { 0.5, 0.5 }, 1
  local path, pins, shapes = {}, {}, {}
  local function body(x, y)
    local name = "body " .. #path + 1
    shapes[#shapes + 1] = cq.Shape.box { name = name, at = { x - dx, y - dx }, size = { 2 * dx, 2 * dx },
      spacing = dx / 2 }
    path[#path + 1], pins[#pins + 1] = name, name
  end
  local step = math.pi / 2 / turns
  -- corners of a polygon around a quarter of a circle, whose first and last sides are its tangents
  body(center[1] + radius, center[2])
  for k = 1, turns do
    local angle = (k - 0.5) * step
    local far = radius / math.cos(step / 2)
    body(center[1] + far * math.cos(angle), center[2] + far * math.sin(angle))
  end
  body(center[1], center[2] + radius)
  local robot = cq.Robot { shape = shapes, pins = pins,
    actuators = cq.Actuator.cable { path = path, stiffness = 10, friction = mu, contraction = 0.5, gap = 3 },
    material = cq.Material.neo_hookean { young = 50, poisson = 0.3, density = 1 } }
  local world = cq.World { cells = { 64, 64 }, dx = dx, dt = 1e-3, precision = "float64", robot }
  local roll = world:rollout { steps = 1, contact = true, controller = function() return cq.tensor { 1 } end }
  local function force(k) return roll.contact.pin_groups:slice(k, k, 2):square():sum():sqrt():item() end
  local ratio = force(turns + 2) / force(1)
  world:close()
  return ratio
end

return {
  summary = "a heavy chain between two anchors, and a cable with friction around a quarter of a circle",
  source = "the discrete catenary of elastic links; Euler and Eytelwein, T2 = T1 exp(-mu angle)",
  quick = true,
  run = function(row)
    for _, method in ipairs { "explicit", "implicit" } do
      local cells, ours, weight = { 2, 3, 4 }, {}, nil
      for k, n in ipairs(cells) do ours[k], weight = chain(0.08 / n, 0.08, method) end
      row { method = method, quantity = "sag of the chain", exact = catenary(weight), ours = ours, refined = cells,
        by = "cells across a body", promise = 0.01 }
    end
    local turns, through = { 1, 2, 4 }, {}
    for k, n in ipairs(turns) do through[k] = capstan(n, 0.4) end
    row { method = "explicit", quantity = "tension after a quarter of a turn, mu 0.4",
      exact = math.exp(-0.4 * math.pi / 2), ours = through, refined = turns, by = "bodies in the turn", promise = 1e-6 }
  end,
}
