-- biped_codesign: a biped that learns to walk, and with it what is asked of the stiffness, Poisson's ratio and density
-- of every particle. The experiment of fig. 11 of Advanced soft robot modeling in ChainQueen (Robotica 2021), with its
-- bounds; how fine it is, and what its controller is, is said by who asks.
--
--   local run = cq.Experiment(require "scenes.biped_codesign" { count = 20, trained = { young = true }, seed = 3 })
--   run:optimize { iterations = 100 }              -- the loss is -x of the middle of its particles, 0.35 at first
local cq = require "cq"

-- The definition of a trainable constant with a value for each particle, between min and max; a step of Adam changes it
-- by about a hundredth of the range.
local function within(min, max) return { min = min, max = max, per = "particle", rate = (max - min) / 100 } end
local ranges = { young = within(7, 20), poisson = within(0.2, 0.4), density = within(0.7, 2) }

---@class scenes.biped_codesign.options
---@field count? integer                     particles along each side of a block: 10 are 800, 20 are 3,200
---@field trained? table<string, boolean>    which of young, poisson and density
---@field seed? integer                      of the first weights
---@field dx? number                         of the grid
---@field dt? number                         control step
---@field substeps? integer|"auto"
---@field hidden? integer[]                  layers of the controller
---@field rate? number                       of its weights
---@field observer? fun(robot: cq.Robot): any
---@field effort? number                     cost of the squares of all signals

---The fields of cq.Experiment for the biped that is trained with its material.
---@param options? scenes.biped_codesign.options
---@return cq.Experiment.def
return function(options)
  options = require "scenes.options"("scenes.biped_codesign", options, { "count", "trained", "seed", "dx", "dt",
    "substeps", "hidden", "rate", "observer", "effort" })
  local robot, trainable = cq.Robot(require "scenes.biped" { count = options.count or 20 }), {}
  for name, range in pairs(ranges) do trainable[name] = options.trained and options.trained[name] and range or nil end
  local dx, effort = options.dx or 1 / 32, options.effort or 5e-7
  local observe = options.observer or function(body)
    return cq.Observer.centroid { groups = body.groups, velocity = true }
  end
  return {
    world = cq.World {
      cells = { 6.25 / dx, 1 / dx }, dx = dx, gravity = { 0, -2 }, dt = options.dt or 0.02,
      substeps = options.substeps or "auto",
      walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.12 },
    },
    duration   = 4,
    observer   = observe(robot),
    controller = cq.Controller.mlp { hidden = options.hidden or { 64, 64 }, activation = "relu", seed = options.seed },
    objective  = {
      terminal = function(state) return -state:center(robot)[1] end,
      effort   = function(u) return effort * u:square():sum() end,
    },
    trainable  = trainable,
    optimizer  = cq.Optimizer.adam { rate = options.rate or 5e-3, clip = 1 },
  }
end
