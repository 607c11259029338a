-- fields: the start of an environment's scenes: variants of the robots, and goals, drawn by the user's reset.
local is = require "cq.base.schema"
local rollout_fields = require "cq.rollout.fields"
local text = require "cq.base.text"
local T = require "cq.tensor"
local tape = T.tape

local fields = {}

local bodies = is.any_of { is.instance "cq.Robot", is.list(is.instance "cq.Robot", { min = 1 }) }

-- Stores the goal that the user's reset gave for a scene, or nil, as a row of self.goal_rows. Errors: a goal that is
-- not finite; a goal for some scenes only; goals of different sizes.
local function take_goal(self, scene, goal)
  if goal == nil then
    if self.goal_size and self.goal_size > 0 then
      is.fail("cq.Env: reset gave no goal for scene %d, and one before", scene)
    end
    self.goal_size = 0
    return
  end
  -- a copy: reset may give the same tensor for each scene
  local row = T.as_tensor(goal, "cq.Env: the goal of reset"):detach():flatten():copy()
  if not row:finite() then is.fail("cq.Env: the goal of reset must be finite, it is not for scene %d", scene) end
  self.goal_size = self.goal_size or row.count
  if row.count ~= self.goal_size then
    is.fail("cq.Env: reset gave a goal of %s for scene %d, and one of %d before", text.count(row.count, "number"),
      scene, self.goal_size)
  end
  self.goal_rows[scene] = row
end

---Calls the user's reset for a scene: sets its variant of the robots and its goal, and notes its random numbers, so
---that it can be drawn again. Errors: reset gives something else than a variant of the robot and a goal, or goals of
---different sizes.
---@param self cq.Env
---@param scene integer
function fields.draw(self, scene)
  self.drawn_from[scene] = self.random[scene]:state()
  if not self.draw then return end
  local variant, goal = self.draw(self.random[scene], scene)
  if variant ~= nil and not bodies.check(variant) then
    is.fail("cq.Env: reset must give a variant of the robot, or nil, and then a goal, got %s", text.describe(variant))
  end
  self.variants[scene] = rollout_fields.bodies(self.world, variant)
  take_goal(self, scene, goal)
end

---Sets self.bodies and self.goals, the robots and goals of all scenes, from those that were drawn for each.
---@param self cq.Env
function fields.stack(self)
  if not self.draw then return end
  self.bodies = tape.pause(rollout_fields.stack, self.world, self.variants, "cq.Env: reset")
  self.goals = self.goal_size > 0 and T.stack(self.goal_rows, 1) or nil
end

return fields
