-- A cantilever beam and a thick tube of nearly incompressible material: the grid locks, and with the dilatation averaged
-- over cells it does not.                                                                   cqlua examples/locking.lua
local cq = require "cq"

local cells = cq.option("cells", 4)                 -- across the beam
local list  = cq.option("poisson", { 0.3, 0.4, 0.45, 0.49, 0.499 })
local run   = cq.Run.open { iterations = #list, resume = false }

local LENGTH, HEIGHT, YOUNG, SAG = 0.4, 0.05, 1, 0.02      -- the tip sinks by 2 % of the length
local dx = HEIGHT / cells

-- (Timoshenko) what the tip of a beam of plane strain sinks by under its weight; 0.77 cells shorter, for pins hold nodes
local function theory(nu, gravity)
  local length, plane, shear = LENGTH - 0.77 * dx, YOUNG / (1 - nu ^ 2), YOUNG / (2 * (1 + nu))
  return gravity * (12 * length ^ 4 / (8 * plane * HEIGHT ^ 2) + length ^ 2 / (2 * 5 / 6 * shear))
end

local function beam(nu, averaging)
  local gravity = SAG * LENGTH / theory(nu, 1)
  local spacing, root, low = dx / 2, 10 * dx, 24 * dx
  local bar = cq.Robot {
    shape = cq.Shape.box { at = { root - 2 * dx, low }, size = { LENGTH + 2 * dx, HEIGHT } }, spacing = spacing,
    groups = { root = function(x) return x < root end, tip = function(x) return x > root + LENGTH - spacing end },
    pins = "root",
    material = cq.Material.neo_hookean { young = YOUNG, poisson = nu, density = 1, dilatation_averaging = averaging },
  }
  -- its first period, to damp it by: what is left after two of them is below a thousandth
  local period = 2 * math.pi / 3.516 * LENGTH ^ 2 / (HEIGHT / math.sqrt(12 * (1 - nu ^ 2)))
  local world = cq.World { cells = { 24 + cells * 9, 28 + cells }, dx = dx, dt = period / 50, substeps = "auto",
    gravity = { 0, -gravity }, damping = 10 / period, precision = "float64", bar }
  local began, start = os.clock(), nil
  local state = world:rollout { steps = 150, on_step = nil }.state
  start = low + HEIGHT / 2
  local out = (start - state:center "tip"[2]:item()) / theory(nu, gravity)
  print(nu, averaging, out, world.substeps, os.clock() - began)
  world:close()
  return out
end
for k, nu in ipairs(list) do
  run:record { iteration = k, loss = 0, nu = nu, plain = beam(nu, 0), averaged = beam(nu, 1) }
end
