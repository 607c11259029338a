-- transfer: what two transfers between particles and grid take from a body that nothing damps, at an engine step of a
-- Courant number of 1/4 and at parts of it: energy of a free block that swings, energy and angular momentum of one that
-- turns and swings, and the height that a dropped one rises to. APIC drops at each step what the grid does not
-- resolve; with `transfer = { decay = "auto" }` that decays by time.
local cq = require "cq"

local WAVE = math.sqrt(1.35)      -- speed of waves for a Poisson's ratio of 0.3; density, cell and Young's modulus are 1
local HELD = 8                    -- engine steps of a control step
local PARTS = { 1, 8 }

local function block(size)
  local count = {}
  for i, length in ipairs(size) do count[i] = 2 * length end
  return cq.Robot { shape = cq.Shape.box { name = "block", size = size, count = count },
    material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 } }
end

local function world_of(robot, at, part, transfer, fields)
  return cq.World { cells = fields.cells, dx = 1, dt = HELD * 0.25 / WAVE, substeps = HELD * part,
    precision = "float64", transfer = transfer, gravity = fields.gravity, walls = fields.walls, robot:at(at) }
end

local function start_of(robot, velocity)
  local v, dim = cq.zeros { robot.particle_count, robot.dim }, robot.dim
  local x, to = robot.position:data(), v:data()
  for p = 0, robot.particle_count - 1 do
    to[dim * p], to[dim * p + 1] = velocity(x[dim * p], x[dim * p + 1])
  end
  return v
end

-- share of a mean over the first control steps that one over the last has, of each column
local function left(record)
  local steps, count = record:size(1), 5
  return unpack((record:slice(steps - count + 1, steps, 1):mean(1) / record:slice(1, count, 1):mean(1)):totable())
end

-- energy and angular momentum that are left after a time of 120; spin [1/time]
local function free(dim, spin, part, transfer)
  local size = dim == 2 and { 16, 10 } or { 10, 8, 6 }
  local robot = block(size)
  local world = world_of(robot, dim == 2 and { 12, 15 } or { 8, 9, 7 }, part, transfer,
    { cells = dim == 2 and { 40, 40 } or { 26, 26, 20 } })
  local velocity = start_of(robot, function(x, y)
    return 0.03 * math.sin(math.pi * (x - size[1] / 2) / size[1]) - spin * (y - size[2] / 2), spin * (x - size[1] / 2)
  end)
  local record = world:rollout { steps = 70, robot = robot:with { velocity = velocity }, record = function(state)
    local turn = state:angular_momentum("block")      -- in space about z last
    return cq.concat { (state:energy("block", "kinetic") + state:energy("block", "elastic")):reshape { 1 },
      turn:reshape { turn.count }:slice(turn.count, turn.count, 1) }
  end }.record
  world:close()
  return left(record)
end

-- height that a block rises to after a fall, as a share of the height it fell from
local function bounce(dim, part, transfer)
  local robot = block(dim == 2 and { 12, 12 } or { 8, 8, 8 })
  local world = world_of(robot, dim == 2 and { 10, 10 } or { 6, 10, 6 }, part, transfer, {
    cells = dim == 2 and { 32, 32 } or { 20, 26, 20 }, gravity = dim == 2 and { 0, -4e-4 } or { 0, -4e-4, 0 },
    walls = cq.Boundary.floor { at = 4, kind = "separate" },
  })
  local first, low, high = nil, math.huge, 0
  local heights = world:rollout { steps = 225, record = function(state) return state:center("block")[2] end }.record
  world:close()
  for _, y in ipairs(heights:totable()) do
    first = first or y
    if y < low then low, high = y, 0 end
    high = math.max(high, y)
  end
  return (high - low) / (first - low)
end

local DAMPED = "APIC loses at each step what the grid does not resolve, so that more steps lose more"
local RATE = "in this time the rate takes so much of the short waves, with any step"

local FIRST = "the first is 1 by definition"

-- promises of each quantity, in 2D and in 3D
local held = {
  apic = {
    swing = { { promise = 0.05, at_most = 0.45, falls_short = DAMPED },
      { promise = 0.05, at_most = 0.85, falls_short = DAMPED } },
    energy = { { promise = 0.05, plateau = DAMPED }, { promise = 0.05, at_most = 0.08, falls_short = DAMPED } },
    rise = { { promise = 0.03, at_most = 0.4, falls_short = DAMPED },
      { promise = 0.03, at_most = 0.5, falls_short = DAMPED } },
  },
  decay = {
    swing = { { promise = 0.05, plateau = RATE }, { promise = 0.05, at_most = 0.23, falls_short = RATE } },
    energy = { { promise = 0.05, plateau = RATE }, { promise = 0.05, plateau = RATE } },
    rise = { { promise = 0.03, plateau = FIRST }, { promise = 0.03, plateau = FIRST } },
  },
}

return {
  summary = "a block that swings, turns and bounces, with a transfer that damps by the step and one that damps by time",
  source = "nothing damps: energy and angular momentum stay, and a bounce does not depend on the step",
  run = function(row)
    for _, transfer in ipairs { "apic", "decay" } do
      local given = transfer == "apic" and "apic" or { decay = "auto" }
      for dim = 2, 3 do
        local function put(quantity, ours, fields)
          fields.method, fields.exact, fields.ours = "explicit", 1, ours
          fields.quantity = ("%s, %dD, %s"):format(quantity, dim, transfer)
          fields.refined, fields.by = PARTS, "times as many steps"
          row(fields)
        end
        local swing, energy, turn, rise, promised = {}, {}, {}, {}, held[transfer]
        for k, part in ipairs(PARTS) do
          swing[k] = free(dim, 0, part, given)
          energy[k], turn[k] = free(dim, 0.02, part, given)
          rise[k] = bounce(dim, part, given)
        end
        put("energy left of a free vibration", swing, promised.swing[dim - 1])
        put("energy left of a spin and a vibration", energy, promised.energy[dim - 1])
        put("angular momentum left", turn, { promise = 1e-3, plateau = "what the grid does not resolve is turned by C of"
          .. " its particle, which is not quite the turn of the body" })
        put("rise of a bounce, of that at the usual step", { 1, rise[2] / rise[1] }, promised.rise[dim - 1])
      end
    end
  end,
}
