-- backward: options by which the backward pass departs from the exact one, where long times make exact gradients
-- useless: the adjoint of the state decays, is cut or is limited from one control step to the one before.
local control_steps = require "cq.rollout.control_steps"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"
local T = require "cq.tensor"
local C = engine.C

local backward = {}

---@class world.rollout.gradient.def
---@field decay? number    time in which the adjoint of a state falls by e, beside what the dynamics do to it: gradients
---  then are no longer exact, but not of chance either where bodies bounce for thousands of steps; for costs that are
---  sums over time. math.huge: none [time]
---@field window? number   time after which the adjoint is cut, counted from the start: costs of a window know nothing of
---  what was done before it, as if a new rollout began there from state:detach(). A multiple of the world's dt.
---  math.huge: none [time]
---@field clip? number     largest norm of the adjoint of a state, of each scene; a longer one is made so long after each
---  control step, with its direction

---The fields of the table, checked.
backward.kinds = {
  decay = is.number { above = 0, infinite = true, optional = true },
  window = is.number { above = 0, infinite = true, optional = true },
  clip = is.number { above = 0, infinite = true, optional = true },
}
local spec = is.define("world:rollout: gradient", backward.kinds)

---Are two tables of gradient options equal? nil: no options.
---@param a world.rollout.gradient.def?
---@param b world.rollout.gradient.def?
---@return boolean
function backward.are_same(a, b)
  for name in pairs(backward.kinds) do
    if (a or {})[name] ~= (b or {})[name] then return false end
  end
  return true
end

---A window of the adjoint, a time, in control steps; 0: none. Errors: no whole number of control steps.
---@param window number?
---@param world cq.World
---@param what string        for errors
---@return integer
function backward.window_steps(window, world, what)
  if not window or window == math.huge then return 0 end
  local steps = control_steps(window, world, what .. ": window")
  return steps * world.pieces < 2 ^ 31 and steps or 0              -- longer than any rollout
end

-- Tells the engine how the adjoint goes from one control step to the one before; where these are reversed engine step
-- by engine step (world.pieces), rollout/adjoint.lua asks for the decay between control steps. clip: the largest norm.
local function set_rules(self, clip)
  engine.check(C.cq_rollout_set_adjoint(self.handle, self.discount, self.window * self.world.pieces, clip),
    "world:rollout: gradient")
end

---Sets the gradient options of a rollout in it (window, discount, clip, is_exact, altered) and in the engine.
---Errors: unknown options; a window of no whole control steps.
---@param self cq.Rollout
---@param given world.rollout.gradient.def?
function backward.apply(self, given)
  local def, world = spec(given or {}), self.world
  local decay = def.decay or math.huge
  self.clip = def.clip or math.huge
  self.window = backward.window_steps(def.window, world, "world:rollout: gradient")
  self.discount = math.exp(-world.control_dt / decay)                          -- of a control step
  self.is_exact = self.discount == 1 and self.window == 0
  self.altered = not (self.is_exact and self.clip == math.huge) and "gradient of world:rollout" or nil
  set_rules(self, self.clip)
end

---Limits the norm of the adjoint of the state after a control step, and not of those between its engine steps.
---@param self cq.Rollout
---@param is_after boolean       is the state that is reversed next the one after a control step?
function backward.limit(self, is_after)
  if self.clip < math.huge then set_rules(self, is_after and self.clip or math.huge) end
end

---The factor on the adjoint of the state between control step i, from 0, and the step before it: the decay, or 0 where
---a window ends.
---@param self cq.Rollout
---@param i integer
---@return number
function backward.factor(self, i)
  return self.window > 0 and i > 0 and i % self.window == 0 and 0 or self.discount
end

---Norms of the adjoint of the state after each control step, from the last backward pass.
---@param self cq.Rollout
---@return cq.Tensor     {steps} or {steps, batch}
function backward.norms(self)
  local norms = C.cq_rollout_adjoint_norms(self.handle)
  local out, pieces = T.zeros { self.steps, self.batch }, self.world.pieces
  for i = 0, self.steps - 1 do
    for scene = 0, self.batch - 1 do
      out.pointer[i * self.batch + scene] = norms[((i + 1) * pieces - 1) * self.batch + scene]
    end
  end
  return self.batched and out or out:reshape { self.steps }
end

return backward
