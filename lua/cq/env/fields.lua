-- fields: how the scenes of an environment begin: variants of the robots, and goals, that the user's reset draws.
local field = require "cq.base.field"
local is = require "cq.base.schema"
local rollout_fields = require "cq.rollout.fields"
local text = require "cq.base.text"
local T = require "cq.tensor"
local values = require "cq.robot.values"
local tape = T.tape

local fields = {}

-- one number for each goal of a scene
local function take_goal(self, scene, goal)
  if goal == nil then
    if self.goal_size and self.goal_size > 0 then
      is.fail("cq.Env: reset gave no goal for scene %d, and one before", scene)
    end
    self.goal_size = 0
    return
  end
  local row = T.as_tensor(goal, "cq.Env: the goal of reset"):detach():flatten()
  self.goal_size = self.goal_size or row.count
  if row.count ~= self.goal_size then
    is.fail("cq.Env: reset gave a goal of %s for scene %d, and one of %d before", text.count(row.count, "number"),
      scene, self.goal_size)
  end
  self.goal_rows[scene] = row
end

---What the user says of how a scene begins. Its random numbers are noted, from which it can be drawn again.
---@param self cq.Env
---@param scene integer
function fields.draw(self, scene)
  self.drawn_from[scene] = self.random[scene]:state()
  if not self.draw then return end
  local variant, goal = self.draw(self.random[scene], scene)
  self.variants[scene] = rollout_fields.bodies(self.world, variant)
  take_goal(self, scene, goal)
end

-- the robots with a value of each scene for what any variant has set
local function stack_variants(self)
  local out = {}
  for k, own in ipairs(self.world.robots) do
    local stacked = {}
    for _, entry in ipairs(field.of_robot) do
      local rows, any = {}, false
      for scene = 1, self.scenes do
        rows[scene] = values.spread(self.variants[scene][k], entry.name, own) or false
        any = any or rows[scene]
      end
      for scene = 1, any and self.scenes or 0 do
        rows[scene] = rows[scene] or entry.owner ~= "entry" and values.base(own, entry.name)
          or is.fail("cq.Env: reset gave scene %d no actuation_weight, which others have", scene)
      end
      if any then stacked[entry.name] = T.stack(rows, 1) end
    end
    out[k] = next(stacked) and own:with(stacked) or own
  end
  return out
end

---Robots and goals of all scenes, from what was drawn for each.
---@param self cq.Env
function fields.stack(self)
  if not self.draw then return end
  self.bodies = tape.pause(stack_variants, self)
  self.goals = self.goal_size > 0 and T.stack(self.goal_rows, 1) or nil
end

return fields
