-- same_bits: a muscle's block on a floor: value and gradients with more threads, less memory and in a batch.
local assert = require "luassert"
local cq = require "cq"

---@param world_of fun(threads: integer): cq.World   a world of the robot
---@param robot cq.Robot                             its shape is "block"; it has one signal
---@param memory string                              less than what every step takes
return function(world_of, robot, memory)
  local function run(threads, budget, batch)
    local world = world_of(threads)
    local value, gradient = cq.value_and_grad(function(p)
      local roll = world:rollout { steps = 12, controller = cq.Controller.open_loop(p.u), batch = batch,
        memory = budget, robot = robot:with { young = p.young } }
      local y = roll.state:center("block")
      return batch and y:slice(1, 1, 1):sum() or y:sum()
    end) { u = 0.2 * cq.ones { 12, 1 }, young = 40 * cq.ones { robot.particle_count } }
    world:close()
    return value, gradient
  end
  local value, gradient = run(1)
  for _, other in ipairs { { 2 }, { 2, memory }, { 2, nil, 2 } } do
    local again, same = run(other[1], other[2], other[3])
    assert.equal(value, again)
    assert.same(gradient.u:totable(), same.u:totable())
    assert.same(gradient.young:totable(), same.young:totable())
  end
end
