-- values: numbers of particles that a rollout was given, or that its world has: constants of materials, and where
-- particles are undeformed.
local values = {}

---The values {n, ...} of a field of particles by its name, such as "mass", in the rollout of a state: as given to the
---rollout, else the world's; nil if neither has it.
---@param state cq.State
---@param name string
---@return cq.Tensor?
function values.of(state, name)
  local set = state.roll.set[name]
  return set and set.tensor or state.world.layout.base[name]
end

---A constant of the materials {n}, or the density; {batch, n} where scenes differ; nil if no material of the world has
---it.
---@param state cq.State
---@param name string
---@return cq.Tensor?
function values.constant(state, name)
  if name == "density" then return values.of(state, "mass") / values.of(state, "volume") end
  return values.of(state, name)
end

---The places {n, dim} at which the particles of a rollout are undeformed, and their volumes there {n}; of what differs
---between scenes the world's own.
---@param state cq.State
---@return cq.Tensor rest, cq.Tensor volume
function values.undeformed(state)
  local set, base = state.roll.set, state.world.layout.base
  -- places that come without a deformation gradient are such places
  local moved = set.position and not set.deformation and not set.position.per_scene
  return moved and set.position.tensor or base.position,
    set.volume and not set.volume.per_scene and set.volume.tensor or base.volume
end

return values
