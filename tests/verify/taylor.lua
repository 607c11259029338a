-- taylor: a bar of copper that flies end on onto a smooth rigid wall: how long it is afterwards, and how wide its foot.
-- The wall is the bar's mirror image, which flies towards it: until they part that is the same. Beside it a wall of
-- nodes, from half a cell above the last of them, where its face is, and from the node itself.
local cq = require "cq"

local LENGTH, RADIUS, SPEED, TIME = 32.4, 3.2, 0.227, 80           -- [mm], [mm/us], [us]; so stresses are in GPa
local WALL = 3                                                     -- cells to the sides of cq.Boundary.box

-- A quarter of the bar, between slip walls at x = 0 and z = 0; its length, and its radius within a cell and a half of
-- its lower end. above: where it begins above the last node of a wall, in cells; nil: its mirror image in the place of
-- that wall
local function strike(cells, above)
  local dx, half = RADIUS / cells, RADIUS / cells / 4              -- two particles across a cell
  local long, wide = math.ceil(LENGTH / dx) + 2 + WALL, 3 * cells + 2 * WALL
  local mirrored = not above
  local ground = (mirrored and long or WALL + above) * dx
  local bar = cq.Robot {
    name = "bar",
    shape = cq.Shape.box { name = "quarter", size = { RADIUS, mirrored and 2 * LENGTH or LENGTH, RADIUS },
      spacing = 2 * half }:where(function(x, _, z) return x * x + z * z < RADIUS * RADIUS end),
    material = cq.Material.von_mises { young = 117, poisson = 0.35, yield_stress = 0.4, hardening = 0.1,
      density = 8.93 },
  }
  local world = cq.World {
    cells = { wide, mirrored and 2 * long or long + WALL, wide }, dx = dx, dt = 1, substeps = "auto",
    walls = cq.Boundary.box { kind = "slip" }, bar:at { WALL * dx, ground - (mirrored and LENGTH or 0), WALL * dx },
  }
  local down = ((world.robot.position:slice(2, 2, 2) - ground) / half):clamp(-1, 1) * -SPEED
  local state = world:rollout({ steps = TIME,
    robot = world.robot:with { velocity = cq.concat({ down * 0, down, down * 0 }, 2) } }).state
  local x, f, top, foot = state:positions():data(), state:deformations():data(), 0, 0
  for p = 0, world.particle_count - 1 do
    local across, up, away = x[3 * p] - WALL * dx, math.abs(x[3 * p + 1] - ground), x[3 * p + 2] - WALL * dx
    local radius = math.sqrt(across ^ 2 + away ^ 2)
    -- a particle reaches half a spacing farther, stretched as it is
    top = math.max(top, up + half * math.abs(f[9 * p + 4]))
    if up < 1.5 * dx then
      local stretch = math.sqrt((f[9 * p] * across + f[9 * p + 2] * away) ^ 2
        + (f[9 * p + 6] * across + f[9 * p + 8] * away) ^ 2) / radius
      foot = math.max(foot, radius + half * stretch)
    end
  end
  world:close()
  return top, foot
end

return {
  summary = "a bar of copper that flies onto a wall: its length and the radius of its foot (Taylor's test)",
  source = "finite elements: radius 7.22 mm (Foulk et al. 2021; 7.12 Simo 1992, 7.11 Zienkiewicz et al. 1998), length"
    .. " 21.43 mm (Sierra/SM, composite tetrahedra of 0.19 mm), both from benchmark/tet15-p1/taylor of Carina.jl",
  run = function(row)
    local cells = { 2, 4, 8 }
    local function compare(what, above, at_node)
      local length, radius = {}, {}
      for k, n in ipairs(cells) do length[k], radius[k] = strike(n, above) end
      for _, of in ipairs { { "length after the blow", 21.43, length }, { "radius of the foot", 7.22, radius } } do
        local given = { method = "explicit", quantity = of[1] .. what, unit = "mm", exact = of[2], ours = of[3],
          refined = cells, by = "cells a radius", promise = 0.03 }
        if at_node and of[3] == radius then given.at_most, given.falls_short = 0.25, at_node end
        row(given)
      end
    end
    compare(", on its mirror image")
    compare(", half a cell above a wall's last node", 0.5)
    compare(", at a wall's last node", 0, "the face of a wall is half a cell above its last node: a bar that begins"
      .. " there has the foot of the mirror image")
  end,
}
