-- steps: the options of a world's time steps: formulation, transfer of unresolved motion, collisions.
local ffi = require "ffi"
local is = require "cq.base.schema"

local C = ffi.C
local steps = {}

local AUTO = -1                  -- of cq_world_def.residual_decay

local decay = is.define("cq.World: transfer", {
  decay = is.any_of { is.number { above = 0 }, is.one_of { "auto" }, default = "auto" } })
local collisions = is.define("cq.World: collisions", {
  stiffness = is.number { above = 0, default = 0.5 }, friction = is.number { min = 0, default = 0 } })
local formulations = { updated = C.CQ_FORMULATION_UPDATED, total_lagrangian = C.CQ_FORMULATION_TOTAL_LAGRANGIAN }

---@class cq.World.transfer.def
---@field decay? number|"auto"   rate at which motion of particles that the grid does not resolve decays [1/time];
---  "auto": 0.1 c / dx, c the speed of waves in the softest elastic material when the world is made, and at least
---  2 c / dx of the softest liquid, which breaks into spray with less. Below the rate at which a body turns it
---  gains energy

---@class cq.World.collisions.def
---@field stiffness? number           in shares of the P-wave modulus of the softer surface; above 0.6 in the plane, and
---  0.45 in space, steps must be shorter, which the Courant number says
---@field friction? number            of Coulomb; it sets in over the speed that it takes in 3 engine steps, in space 5, so
---  that surfaces which stick creep, and half as fast with half the step

-- The rate of decay of unresolved motion that the engine takes for a `transfer`: 0 for APIC, AUTO for "auto". transfer:
-- "apic" or { decay: number or "auto" }. Errors: other fields.
local function residual_decay(transfer)
  if transfer == "apic" then return 0 end
  local given = decay(transfer).decay
  return given == "auto" and AUTO or given
end

-- The stiffness and the friction of collisions that the engine takes: two zeros without collisions. given: false, true,
-- or a table of both.
local function collision(given)
  if not given then return 0, 0 end
  local c = collisions(given == true and {} or given)
  return c.stiffness, c.friction
end

---Fills formulation, decay of unresolved motion and collisions into the definition of a world for the engine.
---@param raw ffi.cdata*     cq_world_def
---@param def cq.World.def
function steps.fill(raw, def)
  raw.formulation, raw.residual_decay = formulations[def.formulation], residual_decay(def.transfer)
  raw.collision_stiffness, raw.collision_friction = collision(def.collisions)
end

---What else may change so that longer steps are stable, as a text: "a softer material, or less viscosity".
---@param raw ffi.cdata*     cq_world_def
---@return string
function steps.remedies(raw)
  local out, viscous = "a softer material", false
  for k = 0, raw.material_count - 1 do viscous = viscous or raw.materials[k].viscous ~= 0 end
  if viscous then out = out .. ", or less viscosity" end
  if raw.cable_count > 0 then out = out .. ", or softer cables" end
  if raw.collision_stiffness > 0.5 then out = out .. ", or a smaller stiffness of collisions" end
  return out
end

---Fails: a world of explicit steps does not settle.
---@param formulation "updated"|"total_lagrangian"|"by robot"
function steps.fail_settle(formulation)
  is.fail("world:settle: %s", formulation == "by robot"
    and "robots of both formulations in one world make explicit steps only; settle those of one in a world of their own"
    or "needs a world with integrator = cq.Implicit {}; this one makes explicit steps")
end

return steps
