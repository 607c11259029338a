-- Nearly incompressible rubber locks: a cantilever under its weight and a thick tube under pressure, with and without
-- f_bar.                                                                                    cqlua examples/locking.lua
-- Source: Timoshenko's beam; the balance of a thick wall, in scenes/balloon.lua.
-- Expect: by Poisson's ratios of 0.3, 0.45, 0.49 and 0.499 the tip sinks by 99, 96, 89 and 61 % of theory, with f_bar
-- by 101, 98, 96 and 94 %, and at rest (world:settle, f_bar) by 102, 99, 96 and 94 %; the tube's cavity grows by 101 to
-- 104 %, at 0.499 by 96 %, with f_bar by 101 to 108 %. In space (--dim 3 --cells 2 --tube no) the tip sinks by 99, 94
-- and 86 % at 0.3, 0.45 and 0.49, with f_bar by 105, 99 and 94 %.
-- The particles of a cell must each keep their volume, which leaves its nodes no way to bend; a tube need not bend.
-- Size: 544 and 1,766 particles, 15 and 10 implicit runs. Time: 60 s.
local cq = require "cq"

local dim   = cq.option("dim", 2)
local cells = cq.option("cells", 4)                 -- across the beam; across the tube 12 times as many
local list  = cq.option("poisson", { 0.3, 0.4, 0.45, 0.49, dim == 2 and 0.499 or nil })
local tubes = cq.option("tube", true)
local run   = cq.Run.open { iterations = #list, resume = false }

-- ---- a beam ---------------------------------------------------------------------------------------------------------

local LENGTH, HEIGHT, YOUNG, SAG = 0.4, 0.05, 1, 0.02      -- theory lets the tip sink by 2 % of the length
local PINS = 0.77                                   -- cells that pins make a beam shorter by: they hold nodes
local dx   = HEIGHT / cells

-- modulus of a beam in bending: in plane strain it is higher
local function stiffness(nu) return dim == 2 and YOUNG / (1 - nu ^ 2) or YOUNG end

-- Timoshenko: what the tip sinks by under the weight of the beam, density 1
local function theory(nu, gravity)
  local length, shear = LENGTH - PINS * dx, YOUNG / (2 * (1 + nu))
  return gravity * length ^ 2 * (12 * length ^ 2 / (8 * stiffness(nu) * HEIGHT ^ 2) + 1 / (2 * 5 / 6 * shear))
end

-- a list by axis; z only in space
local function box(x, y, z) return dim == 2 and { x, y } or { x, y, z } end

-- How much the tip of a beam sinks by its weight, in parts of what theory says; its last state and its world. settled:
-- of an implicit search for rest, and not of a damped simulation.
local function beam(nu, averaging, settled)
  local root, low, spacing = 10 * dx, 24 * dx, dx / 2
  local gravity = SAG * LENGTH / theory(nu, 1)
  local bar = cq.Robot {
    shape = cq.Shape.box { at = box(root - 2 * dx, low, 4 * dx), size = box(LENGTH + 2 * dx, HEIGHT, HEIGHT) },
    spacing = spacing, pins = "root",
    groups = { root = function(x) return x < root end, tip = function(x) return x > root + LENGTH - spacing end },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = nu, density = 1, f_bar = averaging },
  }
  -- three of its first periods, damped so that less than a thousandth of its motion is left
  local period = 2 * math.pi / 3.516 * LENGTH ^ 2 * math.sqrt(12 / stiffness(nu)) / HEIGHT
  local world = cq.World {
    cells = box(24 + 9 * cells, 28 + cells, 8 + cells), dx = dx, dt = period / 50, substeps = "auto",
    gravity = box(0, -gravity, 0), damping = 10 / period, precision = "float64",
    integrator = settled and cq.Implicit {} or nil, bar,
  }
  local state = settled and world:settle {} or world:rollout({ steps = 150 }).state
  local sunk = (low + HEIGHT / 2 - state:center "tip"[2]:item()) / theory(nu, gravity)
  return sunk, state, world
end

-- ---- a tube, or a shell ---------------------------------------------------------------------------------------------

-- growth of the cavity's size under pressure, in parts of what the closed form says
local function tube(nu, averaging)
  local scene = require "scenes.balloon" { dim = dim, max = 1, cells = dim == 2 and 12 * cells or 8 * cells,
    damping = 20, poisson = nu, averaging = averaging, precision = "float64" }
  scene.world.substeps = "auto"
  local world = cq.World(scene.world)
  local first = world:rollout({ steps = 0 }).state:cavity_volume(scene.pressure):item()
  local roll = world:rollout { steps = 100, controller = function() return cq.tensor { 1 } end }
  local grown = roll.state:cavity_volume(scene.pressure):item() / first
  world:close()
  return (grown - 1) / (scene.balance(1) - 1)
end

-- ---- beside theory --------------------------------------------------------------------------------------------------

local names = { "plain", "averaged" }
local found = { x = {}, plain = {}, averaged = {} }
print(("%-10s %-42s %s"):format("", "beam, tip by theory", tubes and "tube, growth by closed form" or ""))
print(("%-10s %-13s %-13s %-14s %-13s %s"):format("poisson", "plain", "averaged", "settled", tubes and "plain" or "",
  tubes and "averaged" or ""))
for k, nu in ipairs(list) do
  local row, words = { iteration = k, poisson = nu }, {}
  for i, name in ipairs(names) do
    local sunk, _, world = beam(nu, i - 1)
    world:close()
    row[name], words[i] = sunk, ("%-13.3f"):format(sunk)
    if tubes then
      row["tube_" .. name] = tube(nu, i - 1)
      words[i + 3] = ("%-13.3f"):format(row["tube_" .. name])
    end
    found[name][k] = sunk
  end
  local sunk, _, world = beam(nu, 1, true)
  world:close()
  row.settled, words[3] = sunk, ("%-13.3f"):format(sunk)
  row.loss, found.x[k] = math.abs(row.averaged - 1), -math.log10(1 - 2 * nu)
  run:record(row)
  print(("%-10g %s"):format(nu, table.concat(words, " ")))
end
cq.Plot {
  width = 1000, x_label = "-log10(1 - 2 nu)", y_label = "sunk by the tip, by theory", series = {
    { name = "each particle its own dilatation", x = found.x, y = found.plain },
    { name = "averaged", x = found.x, y = found.averaged },
    { name = "theory", x = { found.x[1], found.x[#list] }, y = { 1, 1 } },
  },
}:write "locking.png"
