-- implicit: steps of backward Euler, or of the midpoint rule, in place of explicit ones. The engine solves for the
-- velocities of the grid's nodes that minimise the incremental potential: inertia, strain, gravity, what walls allow.
local is = require "cq.base.schema"

---How a world makes its steps: implicitly, for bodies so stiff or motions so slow that explicit steps are too
---short. From cq.Implicit.
---@class cq.Implicit
---@field tolerance number
---@field adjoint_tolerance number
local Implicit = { __name = "cq.Implicit" }
Implicit.__index = Implicit

-- what papers and other programs let one choose, and is settled here
local SETTLED = {
  preconditioner = "it is the one that was found to pay: Gauss-Seidel in 2D, blocks of nodes with a coarse lattice in 3D, "
    .. "with total Lagrangian steps a sparse factor in 2D and of slender bodies, and no multigrid, see docs/implicit.md",
}

local spec = is.define("cq.Implicit", {
  tolerance = is.number { above = 0, below = 1, default = 1e-3 },
  adjoint_tolerance = is.number { above = 0, below = 1, default = 1e-6 },
  newton_iterations = is.integer { min = 1, max = 10000, default = 60 },
  linear_iterations = is.integer { min = 1, max = 1000000, default = 5000 },
  pressure = is.one_of { "lagged", "implicit", default = "lagged" },
  cables = is.one_of { "lagged", "implicit", default = "lagged" },
  stick_velocity = is.number { above = 0, optional = true },
  scheme = is.one_of { "backward_euler", "midpoint", default = "backward_euler" },
}, nil, function(key) return SETTLED[key] end)

---@class cq.Implicit.def
---@field tolerance? number   of the residual of a step, relative to the inertia and the internal forces that it balances
---@field adjoint_tolerance? number   of the linear system of a step's adjoint, relative
---@field newton_iterations? integer  Newton iterations that a step may take; five times as many where one that came to no end begins again
---@field linear_iterations? integer  products with the second derivative that a linear system may take
---@field pressure? "lagged"|"implicit"   that of a surface at the start of a step, or at its end, which takes several solves
---@field cables? "lagged"|"implicit"   their pull at the start of a step, or at its end, for those without friction
---@field scheme? "backward_euler"|"midpoint"   midpoint: of second order, keeps energy and angular momentum and damps nothing; with formulation = "total_lagrangian"
---@field stick_velocity? number    speed at a wall with friction above which it is Coulomb's; 1e-3 dx a step by default

---Implicit steps, for cq.World { integrator = cq.Implicit {} }: backward Euler, found by Newton's method with conjugate
---gradients. A step may be as long as one likes, as long as no particle moves by more than a cell in it, which it may
---with formulation = "total_lagrangian"; plastic flow, and forces of cables and pressure that are "lagged", are those
---at its start. Gradients are exact for converged steps: their error is of the size of the two tolerances.
---rollout.solver tells what each step took.
---
---An implicit step costs as much as fifty explicit ones or more. It pays where it replaces a hundred of them, two
---hundred in float64 or in 3D, a thousand in both; formulation = "total_lagrangian" changes little in this. Backward
---Euler damps motion that is faster than its steps, scheme = "midpoint" damps nothing.
---
---Walls with friction are Coulomb's above the speed `stick_velocity`; below, friction falls to 0 with the speed, so
---that what sticks creeps, slower than that.
---
---On the CPU. With a material's f_bar a step takes several times as much computing time, see its docs.
---@param fields? cq.Implicit.def
---@return cq.Implicit
local function new(_, fields)
  return setmetatable(spec(fields or {}), Implicit)
end

---@internal
---Fills the integrator of a cq_world_def.
---@param raw userdata
---@param statics boolean   steps without inertia
function Implicit:fill(raw, statics)
  raw.kind, raw.statics, raw.pressure = 1, statics and 1 or 0, self.pressure == "implicit" and 1 or 0
  raw.cables = self.cables == "implicit" and 1 or 0
  raw.tolerance, raw.adjoint_tolerance = self.tolerance, self.adjoint_tolerance
  raw.newton_iterations, raw.linear_iterations = self.newton_iterations, self.linear_iterations
  raw.midpoint = self.scheme == "midpoint" and 1 or 0
  raw.stick_velocity = self.stick_velocity or 0
end

-- The integrator in one line: scheme and tolerances.
function Implicit:__tostring()
  return ("cq.Implicit { %s, tolerance %g, adjoint_tolerance %g }"):format(self.scheme, self.tolerance,
    self.adjoint_tolerance)
end

return setmetatable({ class = Implicit }, { __call = new })
