-- beam: a beam that is held at one end and bends under its weight until it rests, in plane strain; of density 1.
-- For tests/verify/cantilever.lua, and for a picture of docs/total_lagrangian.md.
local cq = require "cq"

local LENGTH, HEIGHT, YOUNG, POISSON = 0.4, 0.05, 1, 0.3
local PLANE, SHEAR = YOUNG / (1 - POISSON ^ 2), YOUNG / (2 * (1 + POISSON))
local beam = { LENGTH = LENGTH, HEIGHT = HEIGHT, PLANE = PLANE, SHEAR = SHEAR }

---What the tip sinks by, of Timoshenko's beam.
function beam.timoshenko(gravity)
  return gravity * LENGTH ^ 2 * (12 * LENGTH ^ 2 / (8 * PLANE * HEIGHT ^ 2) + 1 / (2 * 5 / 6 * SHEAR))
end

-- three of the first periods, damped so that less than a thousandth of its motion is left
local PERIOD = 2 * math.pi / 3.516 * LENGTH ^ 2 * math.sqrt(12 / PLANE) / HEIGHT

---What the tip sinks by, of the beam of particles. Pins hold every node that a pinned particle touches, up to 1.5 cells
---beyond it, and the beam begins 0.23 cells before the last of them. So the drawn root is there, and pins end 0.4 cells
---before it.
---@param cells integer       across the beam
---@param gravity number
---@param method "explicit"|"implicit"|"settle"|"total Lagrangian"|"total Lagrangian, implicit"|"total Lagrangian, settle"
---@param particles number    across a cell
---@param drawn? boolean      pins end at the root, which is at a node
---@return number
function beam.sink(cells, gravity, method, particles, drawn)
  local dx = HEIGHT / cells
  local root, low = (drawn and 10 or 9.77) * dx, math.ceil(LENGTH / dx) + 4
  local pinned = root - (drawn and 0 or 0.4 * dx)
  local bar = cq.Robot {
    shape = cq.Shape.box { at = { root - 2 * dx, low * dx }, size = { LENGTH + 2 * dx, HEIGHT } },
    groups = { root = function(x) return x < pinned end, tip = function(x) return x > root + LENGTH - dx / 2 end },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 1 }, pins = "root",
    spacing = dx / particles,
  }
  local lagrangian, implicit = method:match "^total Lagrangian", method:match "implicit$"
  local settles = method:match "settle$"
  local solved = implicit or settles
  local world = cq.World {
    cells = { math.ceil(LENGTH / dx) + 20, low + cells + 8 }, dx = dx, gravity = { 0, -gravity }, damping = 10 / PERIOD,
    dt = PERIOD / (implicit and 20 or 50), precision = "float64",
    substeps = not solved and "auto" or implicit and cells or 1,
    formulation = lagrangian and "total_lagrangian" or nil,
    integrator = solved and cq.Implicit { tolerance = 1e-5 } or nil, bar,
  }
  local state = settles and world:settle {}
    or world:rollout({ steps = implicit and 60 or 150 }).state
  local y = state:center "tip"[2]:item()
  world:close()
  return low * dx + HEIGHT / 2 - y
end

return beam
