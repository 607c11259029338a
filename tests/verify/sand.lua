-- sand: Drucker and Prager's sand. Strength in triaxial compression, by a particle that is pressed beyond it and flows
-- back; the tilt from which a bed flows, and the slope of a pile.
local cq = require "cq"

-- ratio of the largest and the smallest stress of sand that is pressed beyond its strength; strain: how far
local function strength(degrees, strain)
  local size = 1 / 16
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", at = { 0, 0, 0 }, size = { size, size, size }, count = { 1, 1, 1 } },
    pins = "body", material = cq.Material.drucker_prager { young = 100, poisson = 0.3, density = 1,
      friction_angle = math.rad(degrees) },
  }
  local world = cq.World { cells = { 9, 8, 8 }, dx = 1 / 8, dt = 1e-6, precision = "float64",
    robot:at { 0.5, 0.5, 0.5 } }
  local a, b = math.exp(-strain), math.exp(0.2 * strain)
  local pressed = cq.tensor { { { a, 0, 0 }, { 0, b, 0 }, { 0, 0, b } } }
  local stress = world:rollout { steps = 1, robot = world.robot:with { deformation = pressed } }.state:stress "body"
  world:close()
  return (stress[1][1] / stress[3][3]):item()
end

return {
  summary = "sand: strength in triaxial compression, the tilt from which a bed flows, the slope of a pile",
  source = "Mohr and Coulomb's (1 + sin phi) / (1 - sin phi) at triaxial compression, which the cone of Drucker and"
    .. " Prager touches; in the plane without dilation tan(slope) = sin phi (Davis 1968)",
  run = function(row)
    for _, degrees in ipairs { 20, 30, 40 } do
      local ours, strains = {}, { 0.1, 0.2 }
      for k, strain in ipairs(strains) do ours[k] = strength(degrees, strain) end
      local s = math.sin(math.rad(degrees))
      row { quantity = ("triaxial strength, friction angle of %d degrees"):format(degrees), exact = (1 + s) / (1 - s),
        ours = ours, refined = strains, by = "strain", promise = 1e-9 }
    end
    local cells, tilt = { 4, 8, 16 }, {}
    for k, n in ipairs(cells) do
      local bed = require "scenes.sand_bed" { cells = n }
      local world = cq.World(bed.world)
      tilt[k] = bed.onset(world)
      world:close()
    end
    row { method = "explicit", quantity = "tilt from which a bed flows", unit = "degree", exact = 30, ours = tilt,
      refined = cells, by = "cells deep", promise = 0.05 }
    local across, slope = { 8, 16, 32 }, {}
    for k, n in ipairs(across) do
      local pile = require "scenes.sand_pile" { cells = n }
      local world = cq.World(pile.world)
      slope[k] = pile.slope(world:rollout({ steps = 600 }).state)
      world:close()
    end
    row { method = "explicit", quantity = "slope of a pile", unit = "degree", exact = 30, ours = slope,
      refined = across, by = "cells of the column", promise = 0.07,
      plateau = "where the particles stand at first moves the slope by a degree (four seeds with 16 cells: 30.2 to 31.3)" }
  end,
}
