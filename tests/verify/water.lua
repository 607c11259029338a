-- water: a tank at rest has the pressure of the depth, and sloshes with the frequency of linear theory.
local cq = require "cq"

local function sloshing(scene, world, periods)
  local omega, velocity = scene.mode(scene, world.robot, 0.05)
  local passed, before = {}, nil
  world:rollout {
    steps = math.ceil(periods * 2 * math.pi / omega / world.control_dt),
    robot = world.robot:with { velocity = velocity },
    on_step = function(state)
      local off = state:center "water"[1]:item() - scene.corner[1] - scene.length / 2
      if state.time > 0.1 / omega and before and before * off < 0 then
        passed[#passed + 1] = state.time - world.control_dt * off / (off - before)
      end
      before = off
    end,
  }
  return math.pi * (#passed - 1) / (passed[#passed] - passed[1]), omega
end

return {
  summary = "a tank of water: pressure at rest, and the frequency of its first sloshing mode",
  source = "weight of the water above; linear theory of waves, omega^2 = g k tanh(k h)",
  run = function(row)
    local cells, worst, found, exact = { 16, 32, 64 }, {}, {}, nil
    for k, across in ipairs(cells) do
      local scene = require "scenes.water_tank" { across = across }
      local world = cq.World(scene.world)
      worst[k] = scene.worst_pressure(world:rollout({ steps = 200 }).state, scene)
      found[k], exact = sloshing(scene, world, 4.2)
      world:close()
    end
    row { method = "explicit", quantity = "pressure of the worst layer, off by that of the bottom", exact = 0, scale = 1,
      ours = worst, refined = cells, by = "cells along", promise = 0.015 }
    row { method = "explicit", quantity = "sloshing", unit = "rad/time", exact = exact, ours = found, refined = cells,
      by = "cells along", promise = 0.02,
      plateau = "within 1 % smoothing of the pressure and amplitude count as much as the grid: with 32 cells a fourth of the"
        .. " smoothing leaves 0.01 %, and waves of 0.02 are 0.5 % too fast" }
  end,
}
