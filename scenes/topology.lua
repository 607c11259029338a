-- topology: the blocks of 4D topology optimization and what they are to become: a walker, a climber, a balancer, and in
-- space a walker and a rotator; and a walker over hills, which the paper does not have.
-- Source: Yuhn, Sato, Kobayashi, Kawamoto, Nomura: 4D topology optimization (CMAME), section 4; sizes,
-- times and constants are theirs. The floor lies 3 cells above the edge of the grid and particles in the
-- middle of their lattice's cells.
--
--   local scene = require "scenes.topology" { name = "walker" }      -- world, robot, design, objective, by_iteration
local cq = require "cq"

-- size and place of the block, duration, stress of an actuator, radius [cells] and power of the
-- filter, sharpness of both choices; the balancer has room for parts that are flung away
local scenes = {
  walker = {
    size = { 0.2, 0.2 }, at = { 0.1, 0.03 }, cells = { 100, 100 }, duration = 0.5, max = 1e4, radius = 1.5, power = 2,
    sharpness = 4,
  },
  terrain = {
    size = { 0.2, 0.2 }, at = { 0.1, 0.03 }, cells = { 100, 100 }, duration = 0.5, max = 1e4, radius = 1.5, power = 2,
    sharpness = 4,
  },
  climber = {
    size = { 0.2, 0.2 }, at = { 0.4, 0.3 }, cells = { 100, 100 }, duration = 1, max = 1e4, radius = 1.5, power = 2,
    sharpness = 4,
  },
  balancer = {
    size = { 0.1, 0.4 }, at = { 0.95, 0.03 }, cells = { 200, 100 }, duration = 1, max = 2e4, radius = 2, power = 3,
    sharpness = 4,
  },
  walker3d = {
    size = { 0.1, 0.1, 0.1 }, at = { 0.1, 0.03, 0.45 }, cells = { 100, 100, 100 }, duration = 0.5, max = 2e4,
    radius = 2, power = 3,
    sharpness = 8,
  },
  rotator = {
    size = { 0.1, 0.1, 0.1 }, at = { 0.45, 0.03, 0.45 }, cells = { 100, 100, 100 }, duration = 1, max = 2e4,
    radius = 1.5, power = 2,
    sharpness = 8,
  },
}

-- hills of 17 degrees, as high as a tenth of the block, from its front on
local HILL, PERIOD, FRONT = 0.02, 0.2, 0.3

local function hills(floor)
  local heights, spacing = {}, 0.005
  for k = 0, math.floor(0.7 / spacing + 0.5) do
    heights[k + 1] = floor + 0.5 * HILL * (1 - math.cos(2 * math.pi * k * spacing / PERIOD))
  end
  return cq.Boundary.height_field { name = "hills", heights = heights, spacing = spacing, origin = FRONT,
    kind = "sticky", separable = true }
end

-- "No slip, but free to leave" (eq. 9); between two walls that are as far apart as the block is wide; or held by a
-- floor that shakes. The two walls have only the nodes behind their surfaces: those on them, at 0.4 and 0.6, would hold
-- all of the block's sides from the start, wherever these are not pulled away from the wall.
local function walls_of(name, floor, dx)
  if name == "climber" then
    local function side(wall, x, normal)
      return cq.Boundary.half_plane { name = wall, point = { x, 0 }, normal = { normal, 0 }, kind = "sticky",
        separable = true }
    end
    return { side("left", 0.4 - 0.1 * dx, 1), side("right", 0.6 + 0.1 * dx, -1),
      cq.Boundary.box { name = "room", kind = "sticky", separable = true, inset = 0.04 } }
  end
  if name ~= "balancer" then
    local room = cq.Boundary.box { name = name == "terrain" and "room" or nil, kind = "sticky", separable = true,
      inset = floor }
    return name == "terrain" and { room, hills(floor) } or room
  end
  return cq.Boundary.floor { at = 0.06, kind = "sticky", clamp = true,
    velocity = function(t) return { 1.2 * math.cos(40 * t), 0 } end }
end

-- minus the way of the centre of mass along an axis (eqs 32, 34); as a sum over time, for an adjoint that decays
local function way(robot, world, axis, as_sum)
  if as_sum then
    return { running = function(state) return -world.control_dt * state:velocity(robot)[axis] end }
  end
  return function(state, start) return start:center(robot)[axis] - state:center(robot)[axis] end
end

-- the mean distance of the top from where it was (eq. 35)
local function sway(robot, world)
  local tip = robot:group("tip"):particles()
  local first = world.robot.position:gather(tip, 1):mean(1)
  return { running = function(state) return (state:center("tip", { weight = "particle" }) - first):norm() end,
    reduce = "mean" }
end

-- the angle turned about the vertical: angular momentum by the polar moment of inertia, both
-- for each unit of mass (eq. 36)
local function turn(robot, world)
  return {
    running = function(state)
      local motion = state:motion(robot)                      -- in few readouts: there is one in every control step
      local x, v = motion:slice(1, 3), motion:slice(4, 6)
      local spin = state:mean(robot, "angular_momentum")[2] - (x[3] * v[1] - x[1] * v[3])
      local inertia = (state:moment(robot, { about = "origin" }) * cq.eye(3)):sum() - x:dot(x)
      return spin / inertia * world.control_dt
    end,
  }
end

local function forward(robot, world, as_sum) return way(robot, world, 1, as_sum) end
local function upward(robot, world, as_sum) return way(robot, world, 2, as_sum) end

local objectives = {
  walker = forward, terrain = forward, walker3d = forward, climber = upward, balancer = sway, rotator = turn,
}

-- gravity of the climber comes little by little
local function break_in(name)
  if name ~= "climber" then return {} end
  return { gravity = function(i) return { 0, -math.min(9.8, 0.98 * math.floor(i / 20)) } end }
end

---@class scenes.topology.def
---@field name "walker"|"terrain"|"climber"|"balancer"|"walker3d"|"rotator"
---@field coarse? integer       particles, cells and steps so many times as large; 1 unless given
---@field signals? integer      4 unless given
---@field duration? number      [time]
---@field symmetry? cq.Topology.design.symmetry.def    of the body; none, as in the paper, unless given
---@field one_piece? boolean    once it is binary, the largest piece is all of the body
---@field period? number        after which pulses come again; they do not unless given [time]
---@field power? number         of stiffness over the design's density; 1, as the paper has it, unless given
---@field mass_power? number    of density over the design's density; power unless given
---@field substeps? integer     of a control step of 1 ms; 10, as the paper has it, unless given
---@field void? number          what void particles have of the solid; 1e-5, as the paper has it, unless given
---@field decay? number         of the adjoint; it does not decay unless given [time]

---@param options scenes.topology.def
---@return { one_piece: boolean?, world: cq.World, robot: cq.Robot, material: cq.Material, actuators: cq.Actuator, design: cq.Topology, objective: any, by_iteration: table, duration: number, adjoint_decay: number? } scene
return function(options)
  local s, coarse = scenes[options.name], options.coarse or 1
  local dx, dim, duration = 0.01 * coarse, #scenes[options.name].size, options.duration or s.duration
  local material = cq.Material.neo_hookean { young = 0.1e6, poisson = 0.4, density = 1000 }
  local actuators = cq.Actuator.isotropic { count = options.signals or 4, max = s.max }
  local robot = cq.Robot {
    shape = cq.Shape.box { size = s.size, spacing = dx / 2 }, material = material, actuators = actuators,
    groups = options.name == "balancer" and { tip = function(_, y) return y > 0.4 - math.max(0.01, dx / 2) end } or nil,
  }
  local cells, gravity = {}, { 0, -9.8, dim == 3 and 0 or nil }
  for i, count in ipairs(s.cells) do cells[i] = math.floor(count / coarse) end
  if options.name == "walker" and duration > 0.5 then cells[1] = 2 * cells[1] end      -- it would leave a domain of 1 m
  local at = { unpack(s.at) }
  if options.name ~= "climber" then at[1], at[2] = math.max(at[1], 4 * dx), 3 * dx end
  local world = cq.World {
    cells = cells, dx = dx, gravity = gravity, dt = 1e-3 * coarse, substeps = options.substeps or 10,
    walls = walls_of(options.name, 3 * dx, dx), robot:at(at),
  }
  local every, count = 2e-3 * coarse, duration / (2e-3 * coarse)
  if math.abs(count - math.floor(count + 0.5)) > 1e-6 then every = 1e-3 * coarse end   -- pulses fill the time
  local design = cq.Topology {
    world = world, duration = duration, filter = { radius = s.radius * dx, power = s.power },
    material = { sharpness = s.sharpness, power = options.power or 1, mass_power = options.mass_power,
      void = options.void or 1e-5 },
    layout = { sharpness = s.sharpness }, pulses = { every = every, width = 0.01, height = 100 * every,
      deviation = 0.1, period = options.period },
    solid = options.name == "balancer" and "tip" or nil,
    symmetry = options.symmetry, one_piece = options.one_piece,
  }
  return {
    world = world, robot = robot, material = material, actuators = actuators, design = design, duration = duration,
    objective = objectives[options.name](robot, world, options.decay ~= nil), adjoint_decay = options.decay,
    by_iteration = break_in(options.name), one_piece = options.one_piece,
  }
end
