-- unstable: a simulation that failed, in a sentence: where, what, why it may be, and what helps.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local capacity = require "cq.base.capacity"
local engine = require "cq.base.engine"
local assembly = require "cq.world.assembly"
local memory = require "cq.rollout.memory"
local states = require "cq.state"
local surface = require "cq.actuator.surface"
local C = engine.C

local unstable = {}

---The particles at fault in the last rollout that failed, with the robots of its world: one, or two that met.
---@type { robot: cq.Robot, particle: integer }[]
unstable.culprits = {}

---The scene, from 1, in which the simulation of the last rollout failed; whoever asks sets it to nil before.
---@type integer?
unstable.scene = nil

-- Advice where no equilibrium was found.
local SETTLE = "look whether something holds the body, and whether gravity, an actuator or a pressure is stronger than the material: settle under less"

-- Is a number finite?
local function is_finite(x) return x == x and math.abs(x) < math.huge end

-- Is nothing damped in this world: total Lagrangian explicit steps, no damping, no viscous material?
local function undamped(world)
  local def = world.def
  if world.layout.formulation ~= "total_lagrangian" or def.integrator or def.damping > 0 then return false end
  for _, robot in ipairs(world.robots) do
    for _, law in ipairs(robot.laws) do
      if law.viscous == 1 then return false end
    end
  end
  return true
end

-- The state that the step which failed began with.
local function live(self) return states.new(self, C.cq_rollout_at(self.handle) / self.world.pieces) end

-- Was the particle of the engine's cq_health inside out before the first step?
local function began_inverted(self, health)
  if health.bad ~= C.CQ_HEALTH_INVERTED or health.step > 0 or not self.set.deformation then return false end
  local found = live(self):gather(nil, "jacobian")
  if self.batched then found = found[health.scene + 1] end
  return found:data()[health.particle] <= 0
end

-- Two texts on the particle at which a simulation failed: what happened to it, and a likely cause with advice. health:
-- the engine's cq_health.
local function what_happened(self, health)
  local world = self.world
  local statics = world.def.statics and SETTLE
  if began_inverted(self, health) then
    return ("was turned inside out (det F = %.3g)"):format(health.value),
      "its deformation at the start has such a determinant, which must be above 0"
  elseif health.bad == C.CQ_HEALTH_INVERTED then
    return ("was turned inside out (det F = %.3g)"):format(health.value), statics
      or ("an actuator or a collision is stronger than the material: use more substeps than %d, a smaller dt, less max, or a stiffer material%s")
        :format(world.substeps, undamped(world) and "; total Lagrangian steps damp nothing themselves: give the material a viscosity" or "")
  elseif health.bad == C.CQ_HEALTH_LEFT_GRID then
    return ("left the world (%s = %.4g, the world is %s long there)"):format(("xyz"):sub(health.axis + 1,
      health.axis + 1), health.value,
        text.number(world.domain.size[health.axis + 1])),
      statics and statics .. ", or make the world larger"
        or #world.walls == 0 and "give the world walls (walls = cq.Boundary.box()), or make it larger"
        or ("make it larger if it has no wall there; else the step is too long for what happens: use more substeps than %d, a smaller dt, or less max")
          :format(world.substeps)
  end
  return ("has a velocity or position that is not finite (%.3g)"):format(health.value), statics
    or ("the step is too long: the Courant number was %.3g at the start; use more substeps than %d, or a smaller dt"):format(world.courant, world.substeps)
end

-- Advice, a text, after memory ran out: a budget of half the plan, if that holds a record and a checkpoint. plan: from
-- memory.plan.
local function what_saves(plan)
  if plan.bytes == 0 then return "nothing is remembered; fewer particles or scenes take less" end
  local half = plan.bytes / 2
  if half < plan.record_bytes + plan.slice_bytes then
    return "shorter control steps, and fewer particles or scenes, take less"
  end
  return ("memory = \"%s\", or less, makes it take less"):format(capacity.text(half))
end

-- A clause for the error of a failed step or equilibrium: the pressure in the cavity that has grown most before it may
-- be too high. Empty without closed cavities; after the first control step also where none holds 1.1 times its drawn
-- volume. health: the engine's cq_health.
local function pressed_cavity(self, health)
  local most = surface.most_expanded(live(self), health.scene + 1)
  local first = health.step == 0 or self.world.def.statics
  if not most or (not first and most.volume < 1.1 * most.drawn) then return "" end
  return ("; the pressure of \"%s\" may be above the largest that the walls of its cavity in %s stand, which %s"):format(
    most.name, most.robot, first and ("was drawn with %.3g"):format(most.drawn)
      or ("holds %.3g before this step, %.3g times what it was drawn with"):format(most.volume, most.volume / most.drawn))
end

-- A clause of advice after a linear system did not converge in float32: take float64, as its residual may be all
-- rounding; empty in float64.
local function or_precise(world)
  return world.precision == "float32" and ", or precision = \"float64\", without which what is stiff may not get to 1e-6"
    or ""
end

-- May a wall of a rollout move?
local function walls_move(self)
  if self.wall_motion or self.set.wall_velocity then return true end
  for _, wall in ipairs(self.world.walls) do
    if wall.velocity then return true end
  end
  return false
end

-- Where a step could not begin, its residual not being finite: turns the engine's cq_health to a particle that is
-- inside out before that step, if there is one, as the midpoint rule may leave it: what is beyond the middle of a step
-- is not solved for.
local function blame_inverted(self, health)
  local found = live(self):gather(nil, "jacobian")
  if self.batched then found = found[health.scene + 1] end
  local numbers = found:data()
  for p = 0, found.count - 1 do
    if numbers[p] <= 0 then
      health.bad, health.particle, health.value = C.CQ_HEALTH_INVERTED, p, numbers[p]
      return
    end
  end
end

-- Raises the error of a step whose residual is not finite. failed: where the simulation failed, as text.
local function raise_not_finite(self, failed)
  if walls_move(self) then
    is.fail("%s: walls that move turn a particle inside out in one implicit step: use more substeps than %d, or a smaller dt",
      failed, self.world.substeps)
  end
  is.fail("%s: the potential of the implicit step is no finite number, even where nothing moves: damping, signals, forces or constants of the material are too large",
    failed)
end

-- Raises the error of a failed world:settle, or of its adjoint, from the engine's cq_health. failed: that the
-- equilibrium was not found, as text.
local function raise_settle(self, health, failed)
  local scene = self.batched and (" of scene %d"):format(health.scene + 1) or ""
  if health.bad == C.CQ_HEALTH_NOT_CONVERGED then
    is.fail("%s, Newton's method did not converge: the relative residual stays at %.3g; %s, or allow more newton_iterations or linear_iterations (cq.Implicit)%s",
      failed, health.value, SETTLE, pressed_cavity(self, health))
  end
  if health.bad == C.CQ_HEALTH_PRESSURE then
    is.fail("%s: the pressure on its surface did not settle, in 200 rounds each moves the surface and so the pressure (by %.3g of the forces in the last one): settle under less pressure%s",
      failed, health.value, pressed_cavity(self, health))
  end
  is.fail("no gradient of world:settle%s: the linear system of the adjoint did not converge in %d products%s (cq.Implicit)",
    scene, health.value, health.bad == C.CQ_HEALTH_SADDLE
      and ", and it may have ended at a saddle of its potential, not at its minimum: use a smaller tolerance"
      or ": allow more linear_iterations, or a larger adjoint_tolerance" .. or_precise(self.world))
end

-- Raises the error of an implicit step that did not converge or moved too far, or of its adjoint; no particle is at
-- fault. at: where in the rollout, failed: where the simulation failed, as text.
local function raise_solver(self, health, at, failed)
  local world, bad = self.world, health.bad
  if bad == C.CQ_HEALTH_NOT_CONVERGED and not is_finite(health.value) then raise_not_finite(self, failed) end
  if world.def.statics then raise_settle(self, health, failed) end
  if bad == C.CQ_HEALTH_TOO_FAR then
    is.fail("%s: a particle moves by %.3g cells in one implicit step; one is the most, for it would not feel what lies between: use substeps = %d or more, or a smaller dt%s",
      failed, health.value, math.ceil(world.substeps * health.value), pressed_cavity(self, health))
  elseif bad == C.CQ_HEALTH_NO_GRADIENT then
    is.fail("no gradient at %s: the linear system of the adjoint did not converge in %d products: allow more (cq.Implicit { linear_iterations = }), a larger adjoint_tolerance, or shorter steps%s",
      at, health.value, or_precise(world))
  elseif bad == C.CQ_HEALTH_SADDLE then
    is.fail("no gradient at %s: the linear system of the adjoint did not converge in %d products, and the step may have ended at a saddle of its potential, not at its minimum: use a smaller tolerance (cq.Implicit { tolerance = }), or shorter steps",
      at, health.value)
  end
  if bad == C.CQ_HEALTH_PRESSURE then
    is.fail("%s: the pressure at the end of the implicit step (cq.Implicit { pressure = \"implicit\" }) did not settle, in 200 rounds each moves the surface and so the pressure (by %.3g of the forces in the last one): use less pressure, more substeps than %d, or pressure = \"lagged\"%s",
      failed, health.value, world.substeps, pressed_cavity(self, health))
  end
  is.fail("%s: the implicit step did not converge, its relative residual stays at %.3g: use more substeps than %d or a smaller dt, allow more newton or linear iterations (cq.Implicit), or look whether an actuator or a pressure is stronger than the material%s",
    failed, health.value, world.substeps, pressed_cavity(self, health))
end

-- Raises the error of surfaces that meet in total Lagrangian steps, with both particles and advice; sets
-- unstable.culprits to them. failed: where the simulation failed, as text.
local function raise_touching(self, health, failed)
  -- The robot that a particle belongs to, and the particle in words: "particle 5 of NAME".
  local function name(particle)
    local robot = self.world.robots[1]
    for _, candidate in ipairs(self.world.robots) do
      if particle >= candidate.first then robot = candidate end
    end
    return robot, ("particle %d of %s"):format(particle - robot.first + 1, robot.name)
  end
  local one, first = name(tonumber(health.particle))
  local other, second = name(health.value)
  unstable.culprits = { { robot = one, particle = tonumber(health.particle) - one.first + 1 },
    { robot = other, particle = health.value - other.first + 1 } }
  local def = self.world.def
  local remedy = def.collisions and health.step == 0 and self.first == 0
      and ("already at the start: move %s apart"):format(one == other and "its parts" or "them")
    or def.collisions
      and "deeper than collisions hold them apart: take smaller cells, or more substeps with a larger stiffness of collisions"
    or ('and nothing holds them apart: give the world collisions = true%s, or formulation = "updated"'):format(
      def.integrator and " and explicit steps" or "")
  is.fail("%s: %s: %s comes near %s, %s", failed,
    one == other and "a body meets itself" or "two bodies meet", first, second, remedy)
end

---Raises the error of a failed call of the engine: for a simulation that became unstable, with the place, a likely
---cause and advice. Sets unstable.scene and, where particles are at fault, unstable.culprits.
---@param self cq.Rollout
---@param status integer     cq_status
function unstable.raise(self, status)
  if status == C.CQ_MEMORY then
    local plan, at = memory.plan(self.handle), math.floor(C.cq_rollout_at(self.handle) / self.world.pieces)
    is.fail("world:rollout: out of memory at control step %d of %d; the plan was %s; %s", at + 1, self.steps, plan.text,
      what_saves(plan))
  end
  if status ~= C.CQ_UNSTABLE then engine.check(status, self.world.def.statics and "world:settle" or "world:rollout") end
  local world, health = self.world, ffi.new "cq_health"
  C.cq_rollout_health(self.handle, health)
  unstable.scene = health.scene + 1
  local step, scene = tonumber(health.step), self.batched and health.scene + 1
  local at = ("control step %d (time %.4g, substep %d)%s"):format(math.floor(step / world.substeps) + 1,
    (self.first + step / world.substeps) * world.control_dt, step % world.substeps + 1,
    scene and (" in scene %d"):format(scene) or "")
  local failed = not world.def.statics and "the simulation failed at " .. at
    or ("world:settle: the equilibrium%s was not found"):format(scene and (" of scene %d"):format(scene) or "")
  if health.bad == C.CQ_HEALTH_NOT_CONVERGED and not is_finite(health.value) then blame_inverted(self, health) end
  if health.bad == C.CQ_HEALTH_TOUCHES then raise_touching(self, health, failed) end
  if health.bad >= C.CQ_HEALTH_NOT_CONVERGED then raise_solver(self, health, at, failed) end
  local robot, particle = world.robots[1], tonumber(health.particle)
  for _, candidate in ipairs(world.robots) do
    if particle >= candidate.first then robot = candidate end
  end
  unstable.culprits = { { robot = robot, particle = particle - robot.first + 1 } }
  local group = assembly.group_of(robot, particle - robot.first)
  local happened, advice = what_happened(self, health)
  is.fail("%s: particle %d of %s%s %s; %s%s", failed, particle - robot.first + 1, robot.name,
    group and (", group \"%s\","):format(group) or "", happened, advice,
    world.def.statics and pressed_cavity(self, health) or "")
end

return unstable
