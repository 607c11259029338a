-- A leg of silicone bends as its four air chambers are inflated in turn, and is dropped from 15 cm.
--   cqlua examples/pneumatic_leg.lua         --iterations: how many chambers; --spacing: of particles [mm]
-- Source: ChainQueen (ICRA 2019), fig. 3, a leg of Dragon Skin 30 with four chambers in a cross; it prints no numbers,
-- so that sizes and pressure are those of scenes/pneumatic_leg.lua. The bulk modulus is capped at 20 shear moduli (3.8
-- MPa, nu 0.475), silicone's own is about 8,000: J is down to 0.95. Expect: the foot goes 9.6 mm away from the chamber
-- that is inflated to 80 kPa, at most 0.4 mm aside, and that chamber has 1.77 times its air. Dropped, it comes down at
-- 1.71 m/s, is 8 mm shorter at most, and the foot rebounds to 139 mm: the law has no viscosity.
-- Size: 25,948 particles, 400 x 49 and 500 x 49 steps. Time: 90 s.
local cq = require "cq"

local kPa      = cq.option("pressure", 80)
local chambers = cq.option("iterations", 4)                  -- that are inflated, one after the other
local sizes    = { spacing = cq.option("spacing", 1.25), bulk = cq.option("bulk", 20), max = 1e3 * kPa }     -- [mm]
local run      = cq.Run.open { iterations = chambers, resume = false }
-- three lengths [mm] of a list of three [m]
local function mm(list) return 1e3 * list[1], 1e3 * list[2], 1e3 * list[3] end

-- ---- bending --------------------------------------------------------------------------------------------------------

local rise, turn = 0.05, cq.option("turn", 0.1)             -- to full pressure, and for each chamber [s]

-- a controller, of observation, memory and time [s]: signals {4}. Each chamber is filled once, while the one before it
-- empties; the last stays full
local function signals(_, _, t)
  local u, k = { 0, 0, 0, 0 }, math.min(math.floor(t / turn + 1e-6) + 1, 4)
  local part = math.min(1, (t - (k - 1) * turn) / rise)
  u[k] = part
  if k > 1 then u[k - 1] = 1 - part end
  return cq.tensor(u)
end

sizes.damping = 60
local leg  = require "scenes.pneumatic_leg"(sizes)
local bend = cq.Experiment {
  world = cq.World(leg.world), steps = math.floor(chambers * turn / 1e-3 + 0.5), controller = signals,
  objective = function(state) return state:center("foot")[2] end,
}
local start, ends = nil, {}
bend:rollout(bend.params, { on_step = function(state)
  local x, y, z = mm(state:center("foot"):totable())
  start = start or { x = x, y = y, z = z, volume = state:cavity_volume("fore"):sum():item() }
  local k = math.floor(state.time / turn + 0.5)
  if k == 0 or math.abs(state.time - k * turn) > 5e-4 then return end
  local name, a, b = unpack(leg.chambers[k])
  local away = -(x - start.x) * a - (z - start.z) * b
  local aside, air = (x - start.x) * b - (z - start.z) * a, state:cavity_volume(name):sum():item() / start.volume
  local least = -(-state:gather(leg.robot, "jacobian")):max():item()
  ends[k] = k * turn
  run:record { iteration = k, loss = -away, away = away, aside = aside, lift = y - start.y, air = air, least = least }
  print(("%-5s under %g kPa: the foot %.1f mm away from it, %.1f aside; %.2f times its air; least J %.3f"):format(
    name, kPa, away, aside, air, least))
end })
local middle = {}
for d = 1, 3 do middle[d] = leg.world.cells[d] / 2 * leg.world.dx end
bend:render("pneumatic_leg.png", {
  stills = ends, layout = "apart",
  camera = { target = middle, eye = { middle[1] + 0.14, middle[2] + 0.05, middle[3] + 0.14 } },
  colour = {
    by = function(state) return 1e-3 * state:gather(leg.robot, "von_mises") end,
    label = "von Mises stress", unit = "kPa", range = { 0, 100 },
  },
  label = function(state) return ("%s, %g kPa"):format(leg.chambers[math.floor(state.time / turn + 0.5)][1], kPa) end,
})

-- ---- the drop -------------------------------------------------------------------------------------------------------

local height = cq.option("drop", 0.15)                       -- [m]
sizes.damping, sizes.drop = nil, height
local falling = require "scenes.pneumatic_leg"(sizes)
local drop = cq.Experiment {
  world = cq.World(falling.world), duration = cq.option("duration", 0.5),
  controller = function() return cq.zeros(4) end, objective = function(state) return state:center("foot")[2] end,
}
local time, foot, mean, top, speed, touch, low = {}, {}, {}, {}, 0, nil, nil
drop:rollout(drop.params, { on_step = function(state)
  local k, y = #time + 1, state:positions():slice(2, 2, -1)
  time[k], foot[k], top[k] = 1e3 * state.time, 1e3 * (-(-y):max():item() - falling.floor),
    1e3 * (y:max():item() - falling.floor)
  mean[k] = 1e3 * (state:center(falling.robot)[2]:item() - falling.floor)
  speed = k > 1 and math.max(speed, mean[k - 1] - mean[k]) or 0                -- [m/s], for steps of 1 ms
  touch = touch or foot[k] < 0.5 and k or nil
  if touch and not low and mean[k] > mean[k - 1] then low = k - 1 end
end })
if not low then error("the leg has not come down and turned round: give a longer --duration", 0) end
print(("dropped from %g mm: down at %.2f m/s after %.0f ms (freely %.2f and %.0f)"):format(1e3 * height, speed,
  time[touch], math.sqrt(2 * 9.81 * height), 1e3 * math.sqrt(2 * height / 9.81)))
local rebound, shortest = 0, math.huge
for k = touch, #foot do
  rebound, shortest = math.max(rebound, k > low and foot[k] or 0), math.min(shortest, top[k] - foot[k])
end
print(("shorter by %.1f mm at most, the foot rebounds to %.1f mm"):format(top[1] - foot[1] - shortest, rebound))
cq.Plot {
  width = 1000, title = ("dropped from %g mm"):format(1e3 * height),
  x_label = "time [ms]", y_label = "height over the floor [mm]",
  series = {
    { name = "top", x = time, y = top }, { name = "centre of mass", x = time, y = mean },
    { name = "foot", x = time, y = foot },
  },
}:write "pneumatic_leg_drop.png"
drop:render("pneumatic_leg.mp4", { speed = 0.1 })
