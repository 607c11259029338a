-- goal: a place that a part of a robot is to be at in the end, as a part of an objective.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local goal = {}

---@class cq.Experiment.goal.def
---@field of any           a group's name, a list of particle numbers, a group (cq.Group) or a robot, whose mean position is meant;
---  { { "a", "b" } }: that of several groups together
---@field at number[]      {dim} in the world [length]
---@field velocity_weight? number     adds so much times the mean of |v|^2 of these [time^2]

local spec = is.define("cq.Experiment: goal", {
  of = is.any(), at = is.vector { size = { 2, 3 } },
  velocity_weight = is.number { min = 0, default = 0 },
}, nil, is.renamed { rest = "velocity_weight" })

---Checks the goal of an objective: a place inside of the world, for particles that exist. Returns it with defaults and,
---as its field `tensor`, the place. Errors: no `of`, or several groups apart; a place outside of the world or of
---another dimension.
---@param given cq.Experiment.goal.def
---@param world cq.World
---@return table
function goal.check(given, world)
  if given.of == nil and given[1] == nil then
    is.fail("cq.Experiment: goal: of is missing: a group's name, particles or a robot, whose mean is to be at the place")
  end
  local def = spec(given)
  if #def.at ~= world.dim then
    is.fail("cq.Experiment: goal.at has %s, the world is %dD", text.count(#def.at, "component"), world.dim)
  end
  local size = world.domain.size
  for d = 1, world.dim do
    if def.at[d] < 0 or def.at[d] > size[d] then
      is.fail("cq.Experiment: the goal %s is outside of the world, which reaches from the origin to %s; no part of a robot can get there",
        text.place(def.at), text.place(size))
    end
  end
  local rows = world:selection(def.of, "cq.Experiment: goal.of").count
  if rows > 1 then
    is.fail("cq.Experiment: goal.of has %d groups, and one of them is to be at the place; { { \"a\", \"b\" } } is the mean of the particles of both",
      rows)
  end
  def.tensor = T.tensor(def.at)
  return def
end

---The cost of a state: the squared distance of the particles' mean position from the goal, plus velocity_weight times
---their mean |v|^2. Means weigh as the rollout says: by mass, particle or volume.
---@param def table         from check
---@param state cq.State
---@return cq.Tensor        one number
function goal.miss(def, state)
  local miss = (state:center(def.of) - def.tensor):square():sum():reshape {}
  if def.velocity_weight == 0 then return miss end
  return miss + def.velocity_weight * state:mean_square_velocity(def.of):reshape {}
end

---The places at which pictures show the goal; nil: none.
---@param def table?        from check
---@return number[][]?      places
function goal.places(def) return def and { def.at } or nil end

return goal
