-- The silicone finger of soft_finger.lua in a tank of water, beside itself in air: its tip over pressure, and after a
-- step of pressure. Explicit steps, for it is to swing.                       cqlua examples/soft_finger_water.lua
-- Source: figures 6 and 7 of the soft-finger paper (Robotica 2024); finger, tank and pressures are of our own.
-- Expect: from its rest without pressure the tip goes 3, 7 and 12 mm in air, 0.35 s for each level, and 68, 80 and 82 %
-- of that in water, which presses against the chambers and holds the finger on its way: after half a second 5 kPa have
-- taken it 79 % as far. A step of pressure takes it to half of its farthest in three times the time, for it moves more
-- water than it weighs; in air it then swings at 8 Hz, in water hardly. In space water could give way to the sides.
-- Size: 10,240 and 2,448 particles, 950 x 196 steps. Time: 4 min with --threads 1.
local cq = require "cq"

local G, MM, ROOT = 9.81, 1e-3, 6
local levels    = cq.option("levels", { 5, 10, 15 })              -- [kPa]
local rise, hold = cq.option("rise", 0.1), cq.option("hold", 0.25) -- of each level [s]
local step      = cq.option("step", 5)                            -- what the finger answers to from rest [kPa]
local seconds   = cq.option("seconds", 0.5)                       -- for which its answer is looked at
local stiffness = cq.option("stiffness", 200)                     -- bulk modulus of water by the pressure at the bottom
local precision = cq.option("precision", "float32")
local DT, LENGTH, DEPTH, HEIGHT = 2e-3, 110, 80, 40    -- of the tank, and of the finger in it [mm]
local DAMPING = { air = 30, water = 5 }                           -- on the way to rest; water damps by itself
local run = cq.Run.open { iterations = #levels, resume = false }

-- { world, finger, tip }: a finger with its root at the wall, with water or in air; gravity, walls and steps are the
-- same.
local function tank(wet)
  local scene = require "scenes.soft_finger" { dim = 2, max = 1 }
  local corner, room = { ROOT * MM, ROOT * MM }, { ROOT * MM, (ROOT + HEIGHT) * MM }
  local fields = {
    cells = { (LENGTH + 2 * ROOT) / 2, (DEPTH + 30) / 2 }, dx = 2 * MM, dt = DT, substeps = "auto", gravity = { 0, -G },
    precision = precision, walls = cq.Boundary.box { kind = "separate" }, scene.robot:at(room),
  }
  if wet then
    local shape = cq.Shape.box { name = "water", at = { -MM, -MM }, size = { (LENGTH + 2) * MM, (DEPTH + 1) * MM },
      spacing = MM } - cq.Shape.box { at = { 0, HEIGHT * MM }, size = scene.size }
    local water = cq.Robot { name = "water", shape = shape,
      material = cq.Material.fluid { bulk = stiffness * G * DEPTH * MM, density = 1 } }
    fields.pressure_smoothing = 50
    fields[2] = water:at(corner):hydrostatic { gravity = { 0, -G }, surface = corner[2] + DEPTH * MM }
  end
  return { world = cq.World(fields), finger = scene.robot, tip = scene.robot:group "tip" }
end

-- ---- the curve: rest without pressure, and then one level after the other -------------------------------------------

-- pressure at a time [kPa]: none first, then in turn to each level, in a time `rise`, and held
local function held(t)
  local k = math.floor(t / (rise + hold) + 1e-9)                       -- 0: no pressure yet
  local before, now = levels[k - 1] or 0, levels[k] or 0
  return before + (now - before) * math.min(1, (t - k * (rise + hold)) / rise)
end

-- the robot with the positions and deformations that it has in the state
local function fields_of(state, robot)
  return robot:with { position = state:gather(robot, "position"), deformation = state:gather(robot, "deformation") }
end

-- A table: `way` of the tip under each level from its rest without pressure, `height` of the tip in that rest above
-- where it was made [mm], all robots in that rest, and positions and deformations under the last level.
local function load_slowly(place, damping)
  local out, each = { way = {}, height = {} }, math.floor((rise + hold) / DT + 0.5)
  local first
  place.world:rollout {
    steps = each * (#levels + 1), damping = damping, controller = function(_, _, t) return cq.tensor { held(t) } end,
    on_step = function(state)
      local k = state.step / each
      if k % 1 ~= 0 or k == 0 then return end
      local x = state:center(place.tip)
      first = first or x
      out.way[k - 1] = (x - first):norm():item() / MM
      out.last = { position = state:positions(), deformation = state:deformations() }
      if k > 1 then return end
      out.rest = {}
      for i, robot in ipairs(place.world.robots) do out.rest[i] = fields_of(state, robot) end
      out.height = x[2]:item() / MM - (ROOT + HEIGHT) - 8
    end,
  }
  return out
end

-- ---- the answer to a step of pressure -------------------------------------------------------------------------------

-- Of a step of pressure on robots at rest, without damping, a table: how much lower the tip is at each time [mm], the
-- most of it, and the times of a half and of nine tenths of that [ms].
local function answer(place, rest)
  local out = { time = { 0 }, way = { 0 } }
  local first
  place.world:rollout {
    steps = math.floor(seconds / DT + 0.5), robot = rest, controller = function() return cq.tensor { step } end,
    on_step = function(state)
      local y = state:center(place.tip)[2]:item() / MM
      first = first or y
      local n = state.step + 1
      out.time[n], out.way[n] = 1e3 * state.time, first - y
    end,
  }
  out.most = 0
  for _, way in ipairs(out.way) do out.most = math.max(out.most, way) end
  -- in air it swings several times about as far
  for n, way in ipairs(out.way) do
    if not out.half and way >= 0.5 * out.most then out.half = out.time[n] end
    if not out.nearly and way >= 0.9 * out.most then out.nearly = out.time[n] end
  end
  return out
end

local found, curves, steps = {}, {}, {}
for k, medium in ipairs { "air", "water" } do
  local place = tank(medium == "water")
  local slow = load_slowly(place, DAMPING[medium])
  local quick = answer(place, slow.rest)
  found[k] = { slow = slow, quick = quick, place = place }
  local x, y, words = { 0 }, { 0 }, {}
  for i, level in ipairs(levels) do
    x[i + 1], y[i + 1], words[i] = level, slow.way[i], ("%.2f under %g"):format(slow.way[i], level)
  end
  curves[k] = { name = medium, x = x, y = y }
  steps[k] = { name = medium, x = quick.time, y = quick.way }
  print(("in %-5s the tip rests %+.2f mm from where it was made, and goes from there by [mm] %s kPa"):format(medium,
    slow.height, table.concat(words, ", ")))
  print(("         %g kPa at once: half of its farthest, %.2f mm, after %.0f ms, nine tenths after %.0f ms"):format(
    step, quick.most, quick.half, quick.nearly))
end
for i, level in ipairs(levels) do
  run:record { iteration = i, loss = found[2].slow.way[i] / found[1].slow.way[i], pressure = level,
    air = found[1].slow.way[i], water = found[2].slow.way[i] }
end
print(("water lets it go %.0f %% as far under %g kPa, and takes %.1f times as long to a half of its farthest"):format(
  100 * found[2].slow.way[#levels] / found[1].slow.way[#levels], levels[#levels],
  found[2].quick.half / found[1].quick.half))

-- ---- the picture: both under the last level, and both curves --------------------------------------------------------

-- a frame of a finger, and of its water, under the last level
local function shown(one, medium)
  local world, last = one.place.world, one.slow.last
  local groups, bodies, volumes, n = {}, {}, {}, 0
  for i, colour in ipairs { "#d1603d", "#8fb8dc" } do
    local robot, list = world.robots[i], {}
    for p = 1, robot and robot.particle_count or 0 do list[p] = n + p end
    if robot then
      bodies[i] = { first = n + 1, count = #list, loose = i == 2 }          -- water is drawn by its particles
      groups[i], volumes[i], n = { name = robot.name, particles = list, colour = colour }, robot.volume, n + #list
    end
  end
  return cq.Picture.frame {
    domain = world.domain.size, dx = world.dx, walls = world.walls, bodies = bodies, groups = groups,
    volume = cq.concat(volumes, 1), position = last.position, deformation = last.deformation,
    width = 700, height = 480, ruler = false, label = ("%s, %g kPa"):format(medium, levels[#levels]),
  }
end

-- a plot of curves; x, y: labels
local function plot(series, x, y)
  return cq.Plot { width = 700, height = 400, series = series, x_label = x, y_label = y }
end
local curve = plot(curves, "pressure [kPa]", "way of the tip from its rest [mm]")
local response = plot(steps, "time [ms]", ("lower by, after a step to %g kPa [mm]"):format(step))
if cq.option("render", true) then
  local canvas = cq.Picture.canvas { width = 1400, height = 880 }
  canvas:paste(shown(found[1], "air"), 0, 0):paste(shown(found[2], "water"), 700, 0)
  canvas:paste(curve, 0, 480):paste(response, 700, 480):write "soft_finger_water.png"
end
