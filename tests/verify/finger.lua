-- finger: the silicone finger of scenes/soft_finger.lua in the plane, at rest under 5 to 20 kPa, by explicit steps,
-- implicit ones and world:settle with updates, and total Lagrangian ones and their world:settle, beside finite elements
-- of our own (tests/verify/fem/soft_finger.py, whose results are soft_finger.csv).
local cq = require "cq"
local csv = require "cq.base.csv"
local host = require "cq.host"
local read_file = require "cq.base.read_file"

local LEVELS = { 5, 10, 15, 20 }           -- [kPa]
local RISE, HOLD = 0.2, 0.3                -- to each of them, and at it [s]
local ACROSS = 3                           -- particles across a cell
local UPDATES = 5
local TABLE = "tests/verify/fem/soft_finger.csv"
local METHODS = { "explicit", "implicit", "settle", "total Lagrangian", "total Lagrangian, settle" }

-- how far the tip is lower by pressure, of the finest mesh that is clamped where the scene is [mm]
local function elements()
  local rows = csv.read(read_file(host.root .. "/" .. TABLE), { "cells a mm", "clamp [mm]", "pressure [kPa]",
    "tip lower by [mm]", "chambers by their first area" }, TABLE)
  local out, finest = {}, 0
  for _, row in ipairs(rows) do
    local cells = tonumber(row["cells a mm"])
    if tonumber(row["clamp [mm]"]) == 6 and cells >= finest then
      out[tonumber(row["pressure [kPa]"])], finest = tonumber(row["tip lower by [mm]"]), cells
    end
  end
  return out
end

local function world_of(dx, across, method)
  local scene = require "scenes.soft_finger" { dim = 2, max = 1, dx = dx, spacing = dx / across, damping = 20,
    precision = "float64" }
  if method:match "^total Lagrangian" then scene.world.formulation = "total_lagrangian" end
  if method == "implicit" or method:match "settle$" then
    scene.world.integrator = cq.Implicit { tolerance = 1e-4, pressure = "implicit" }
    scene.world.dt, scene.world.substeps = 5e-3, 1
  end
  return cq.World(scene.world), scene.robot:group "tip"
end

local function pressure_at(t)
  local k = math.min(#LEVELS, math.floor(t / (RISE + HOLD) + 1e-6) + 1)
  local before = LEVELS[k - 1] or 0
  return before + (LEVELS[k] - before) * math.min(1, (t - (k - 1) * (RISE + HOLD)) / RISE)
end

-- How far the tip is lower at rest under each level [mm]; and for explicit steps how far it goes on from its rest under
-- the last where world:settle takes over, by how far it went.
local function bend(dx, across, method)
  local world, tip = world_of(dx, across, method)
  local out, first, last = {}, world:rollout({ steps = 0 }).state:center(tip)[2]:item(), nil
  local function tell(k, state) out[k] = 1e3 * (first - state:center(tip)[2]:item()) end
  if method:match "settle$" then
    local updates = method == "settle" and UPDATES or 0
    for k, level in ipairs(LEVELS) do tell(k, world:settle { signals = { level }, updates = updates }) end
  else
    local steps = math.floor((RISE + HOLD) / world.control_dt + 0.5)
    world:rollout {
      steps = #LEVELS * steps, controller = function(_, _, t) return cq.tensor { pressure_at(t) } end,
      on_step = function(state)
        if state.step % steps == 0 and state.step > 0 then tell(state.step / steps, state) end
        if state.step == #LEVELS * steps then
          last = { position = state:positions():copy(), deformation = state:deformations():copy() }
        end
      end,
    }
  end
  world:close()
  return out, last, first
end

-- where world:settle without updates brings explicit steps' rest, by how far the tip is lower
local function goes_on(dx, across, found, last, first)
  local world, tip = world_of(dx, across, "settle")
  local state = world:settle { signals = { LEVELS[#LEVELS] }, robot = world.robot:with(last) }
  local lower = 1e3 * (first - state:center(tip)[2]:item())
  world:close()
  return lower / found[#LEVELS] - 1
end

-- largest of the routes by the smallest, less 1
local function apart(found, k)
  local low, high = math.huge, -math.huge
  for _, method in ipairs { "explicit", "implicit", "settle" } do
    low, high = math.min(low, found[method][k]), math.max(high, found[method][k])
  end
  return high / low - 1
end

return {
  summary = "the silicone finger under pressure, at rest",
  source = "finite elements of our own in plane strain, quadratic triangles with a follower pressure (" .. TABLE .. ")",
  run = function(row)
    local exact, found, more = elements(), {}, {}
    for k, grid in ipairs { { 2, 2 }, { 2, ACROSS }, { 1, ACROSS } } do
      found[k] = {}
      for _, method in ipairs(METHODS) do
        if k > 1 or not method:match "^total Lagrangian" then
          local last, first
          found[k][method], last, first = bend(grid[1], grid[2], method)
          if method == "explicit" and k < 3 then more[k] = goes_on(grid[1], grid[2], found[k][method], last, first) end
        end
      end
    end
    local few, coarse, fine = unpack(found)
    for _, method in ipairs(METHODS) do
      for k, level in ipairs(LEVELS) do
        row { method = method, quantity = ("tip lower under %d kPa"):format(level), unit = "mm", exact = exact[level],
          ours = { coarse[method][k], fine[method][k] }, refined = { 2, 4 }, by = "cells across a wall", promise = 0.1 }
      end
    end
    for k, level in ipairs(LEVELS) do
      row { quantity = ("explicit, implicit and settle apart under %d kPa, 2 cells across a wall"):format(level),
        exact = 0, scale = 1, ours = { apart(few, k), apart(coarse, k) }, refined = { 2, ACROSS },
        by = "particles across a cell", promise = 0.05 }
    end
    row { method = "explicit", quantity = "goes on from its rest under 20 kPa", exact = 0, scale = 1,
      ours = { more[1], more[2] }, refined = { 2, ACROSS }, by = "particles across a cell", promise = 0.01 }
  end,
}
