-- filmed: films and pictures of what is no experiment: of a rollout, and of a world.
local is = require "cq.base.schema"
local option = require "cq.option"
local place = require "cq.base.place"
local control_steps = require "cq.rollout.control_steps"
local continued = require "cq.rollout.continued"
local render = require "cq.experiment.render"
local T = require "cq.tensor"

local filmed = {}

-- Simulates and draws one scene of a world by the fields of world:rollout. def: checked drawing options. Returns the
-- film's path, nil in a check or without films.
local function draw(world, path, def, fields)
  if render.is_left_out() then return nil end
  render.plan(def, { world = world, steps = fields.steps })
  if option.program.check then return nil end
  return render.film(place.of(path), def, function(on_step)
    fields.on_step = on_step
    return T.tape.pause(world.rollout, world, fields)
  end)
end

---rollout:render: repeats the rollout and draws it. Returns the path, or nil where --render=no leaves pictures out.
---Errors: a batch.
---@param roll cq.Rollout
---@param path string
---@param options? rollout.render.def
---@return string?
function filmed.rollout(roll, path, options)
  local def = render.options(path, options, nil, "rollout:render")
  if roll.batched then is.fail("rollout:render: a batch of %d scenes is not drawn; run one of them alone", roll.batch) end
  return draw(roll.world, path, def, continued.again(roll))
end

local of_rollout = { "robot", "controller", "observer", "contact", "gravity", "damping", "friction", "wall_velocity" }

-- The number of control steps that world:render simulates, given by `steps` or `duration`; 0 for a single picture
-- without either, of the start.
local function steps_of(world, def)
  if def.steps and def.duration then is.fail "world:render: give either duration or steps, not both" end
  if def.duration then return control_steps(def.duration, world, "world:render: duration") end
  if def.steps then return def.steps end
  if not def.still or def.stills then is.fail "world:render: needs steps or duration, how long is to be drawn" end
  return 0
end

---world:render: simulates the world without a controller, unless options give one, and draws it. Returns the path, or
---nil where --render=no leaves pictures out.
---@param world cq.World
---@param path string
---@param options? world.render.def
---@return string?
function filmed.world(world, path, options)
  local def = render.options(path, options, nil, "world:render")
  local fields = { steps = steps_of(world, def) }
  for _, name in ipairs(of_rollout) do fields[name] = def[name] end
  return draw(world, path, def, fields)
end

return filmed
