-- pulled_bars: bars along x, one above the other, that are held at one end and pulled at the other, each by its own
-- force.
-- Source: none, the tensile test of every textbook, with dead loads and without the wide ends of a standard's specimen.
-- Bars are 1 x 1 x 4.
--
--   local bars  = require "scenes.pulled_bars"
--   local scene = bars { materials = { rubber, rubber }, loads = { 100, 200 }, side = 0.01, dt = 2e-4, damping = 1000 }
--   local roll = cq.World(scene.world):rollout { steps = 100, controller = scene.pull() }
--   scene.stretch(roll.state, 2)
local cq = require "cq"

local ALONG, GAP = 3, 4          -- particles in a cell along the bar, which pulls them apart; cells between bars
local GAUGE = { 2, 3.2 }         -- where stretch is measured, from the held end in sides, away from both ends

-- An actuator: a dead load along x on the particles of a bar's face (its pulled end); the signal is the force by area
-- of the undeformed face [stress].
local Load = { signals = 1, particles = "face" }
Load.__index = Load
-- The force {n, dim} on the n particles of the face, at x {n, dim}. u: the signal, force by undeformed area.
function Load:force(u, x)
  local n = x:size(1)
  return (u * self.area / n * self.along):reshape({ 1, self.along.count }):expand { n, self.along.count }
end

-- Size {dim} of a bar of section side x side and length 4 side, and its numbers of particles along the axes {dim}, two
-- lists. across: particles along a side.
local function box(side, dim, across)
  local size, count = { 4 * side }, { 2 * across * ALONG }
  for i = 2, dim do size[i], count[i] = side, across end
  return size, count
end

---@class scenes.pulled_bars.options
---@field materials cq.Material[]     of each bar
---@field loads number[]              of each bar, force by the face of the undeformed bar [stress]
---@field dt number                   [time]
---@field side? number                of a bar's section, 1 unless given [length]
---@field dim? integer                3 unless given
---@field across? integer             particles along a side, two in a cell; 8 unless given
---@field reach? number               length of the world in lengths of a bar, 2.5 unless given
---@field damping? number             [1/time]
---@field precision? string
---@field device? string

---Bars and the fields of their world.
---@param options scenes.pulled_bars.options
---@return { robots: cq.Robot[], world: cq.World.def, pull: function, stretch: function }
---  pull(profile?): a controller with these loads, from the start on, times profile(t) if given; stretch(state, k): of
---  bar k, between two sections away from its ends
return function(options)
  local side, dim, across = options.side or 1, options.dim or 3, options.across or 8
  local dx, size, count = 2 * side / across, box(side, dim, across)
  local robots, wide = {}, across / 2 + GAP
  local world = {
    dx = dx, dt = options.dt, substeps = "auto", damping = options.damping,
    precision = options.precision, device = options.device,
    cells = {
      math.ceil((options.reach or 2.5) * size[1] / dx) + GAP, #options.loads * wide + GAP,
      dim == 3 and wide + GAP or nil,
    },
  }
  for k, material in ipairs(options.materials) do
    -- A predicate for a group of particles: is x between `from` and `to`, measured from the held end in sides?
    local function section(from, to) return function(x) return x > from * side and x < to * side end end
    robots[k] = cq.Robot {
      name = "bar " .. k, shape = cq.Shape.box { name = "bar " .. k, size = size, count = count }, material = material,
      actuators = setmetatable({ area = side ^ (dim - 1), along = cq.tensor { 1, 0, dim == 3 and 0 or nil } }, Load),
      pins = "held",
      groups = {
        held = section(0, 0.25), face = section(4 - 1 / count[1] * 4, 4),
        near = section(GAUGE[1] - 0.1, GAUGE[1] + 0.1), far = section(GAUGE[2] - 0.1, GAUGE[2] + 0.1),
      },
    }
    world[k] = robots[k]:at { GAP * dx, (GAP + (k - 1) * wide) * dx, dim == 3 and GAP * dx or nil }
  end
  local apart = {}
  -- The distance along x between the groups "near" and "far" of bar k in a state, by which its stretch is measured.
  local function gauge(state, k)
    local robot = robots[k]
    return (state:center(robot:group "far") - state:center(robot:group "near"))[1]:item()
  end
  for k, robot in ipairs(robots) do
    -- The mean x of the particles of a named group in the undeformed bar.
    local function mean(name) return robot.position:gather(robot:group(name):particles(), 1):mean(1)[1]:item() end
    apart[k] = mean "far" - mean "near"
  end
  local loads = cq.tensor(options.loads)
  return {
    robots = robots, world = world,
    -- A controller that pulls with all loads, times profile(t) of the time if there is one.
    pull = function(profile)
      return function(_, _, t) return profile and profile(t) * loads or loads end
    end,
    -- The stretch of bar k between two sections in a state.
    stretch = function(state, k) return gauge(state, k) / apart[k] end,
  }
end
