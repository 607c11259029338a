-- topology_walker: a block from which topology optimization makes a walker, as a function of a level. Source: Yuhn et
-- al., 4D topology optimization (CMAME), section 4.1.1: 0.2 x 0.2 m, 1,600 particles, as far as it gets.
--
--   local run = cq.Experiment(require "scenes.topology_walker" { duration = 0.5, signals = 4 })
local cq = require "cq"

---A function that gives the experiment's fields for a level of coarseness.
---@param options { duration: number, signals: integer }     time to walk [s], muscles with a signal of their own
---@return fun(level: { coarsen: integer }): cq.Experiment.def
return function(options)
  return function(level)
    local k, duration = level.coarsen, options.duration                 -- k: 1, or as a stage says
    local n, steps = math.ceil(100 / k), math.ceil(1000 * duration / k) -- cells of a metre, and control steps
    local dx = 0.01 * k
    local block = cq.Robot {
      shape     = cq.Shape.box { size = { 0.2, 0.2 }, spacing = dx / 2 },
      material  = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
      actuators = cq.Actuator.isotropic { count = options.signals, max = 1e4 },
    }
    local world = cq.World {
      cells = { duration > 0.5 and 2 * n or n, n }, dx = dx, gravity = { 0, -9.8 }, dt = duration / steps,
      substeps = 10, walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 3 * dx },
      block:at { 0.1, 3 * dx },
    }
    return {
      world = world, duration = duration,
      design = cq.Topology { world = world, duration = duration, connected = true },
      objective = { running = function(state) return -world.control_dt * state:velocity(block)[1] end },
    }
  end
end
