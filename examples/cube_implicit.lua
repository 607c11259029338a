-- A cube falls onto a floor by explicit steps and by implicit ones that are up to 1000 times as long.
--                                                                                  cqlua examples/cube_implicit.lua
-- Source: fig. 3 of the soft-finger paper on implicit MPM (Robotica 2024), which prints no numbers: here a cube of
-- 16 mm of a rubber of 2.5 MPa falls by 1.5 mm in the plane. Expect: explicit steps fail above a Courant number of
-- about 1; implicit ones converge at every length, with all J > 0, and are the quicker ones from 50 to 100 times
-- the explicit step on, a cube of half the size from 20 times on. How high it bounces hangs on how often momentum
-- goes to the grid and back, which takes energy, and on steps of 50 times and more, which take the bounce away; the
-- longest are late to stop the cube, a third of a cell lower. Time is the processor's: take --threads 1.
-- Size: 1,024 particles, from 8,000 to 8 steps. Time: 10 s with --threads 1.
local cq = require "cq"

local dx      = 1e-3
local across  = cq.option("cells", 16)             -- of the cube
local dim     = cq.option("dim", 2)
local total   = cq.option("steps", 8000)           -- explicit ones in the time that is simulated
local ratios  = cq.option("ratios", { 1, 5, 20, 50, 100, 200, 500, 1000 })      -- of implicit steps to the explicit one
local tolerance = cq.option("tolerance", 1e-3)
local run     = cq.Run.open { iterations = #ratios, resume = false }

-- a list by axis: the value, and `up` (nil: the value) for y
local function each(value, up) return { value, up or value, dim == 3 and value or nil } end
local cube = cq.Robot {
  shape = cq.Shape.box { name = "cube", size = each(across * dx), spacing = dx / 2 },
  material = cq.Material.neo_hookean { young = 2.5e6, poisson = 0.45, density = 1000 },
}
-- a world with the cube above a floor; an explicit one without an integrator
local function world(dt, substeps, integrator)
  return cq.World {
    cells = each(across + 16, across + 12), dx = dx, dt = dt, substeps = substeps, precision = "float64",
    gravity = { 0, -9.81, dim == 3 and 0 or nil }, integrator = integrator,
    walls = cq.Boundary.box { kind = "separate" }, cube:at(each(8 * dx, 4.5 * dx)),
  }
end
local probe    = world(1e-7, 1)
local explicit = 1e-7 * cq.World.class.courant_aim / probe.courant                -- what substeps = "auto" takes
probe:close()

-- Lets the cube fall for the time of `total` explicit steps, in steps of `ratio` times the explicit one, and looks 200
-- times at most. A table: steps, least J, times [ms], heights [mm], seconds, failure, solver's counts.
local function fall(ratio, integrator)
  local substeps = math.max(1, math.floor(total / ratio / 200))
  local steps = math.floor(total / ratio / substeps + 0.5)
  local place = world(ratio * explicit * substeps, substeps, integrator)
  local out, began = { steps = steps * substeps, least = math.huge, time = {}, height = {} }, os.clock()
  local fine, roll = pcall(place.rollout, place, { steps = steps, on_step = function(state)
    local k = #out.height + 1
    out.time[k], out.height[k] = 1e3 * state.time, 1e3 * (state:center(cube)[2]:item() - across * dx / 2) - 3
    out.least = math.min(out.least, -(-state:gather(cube, "jacobian")):max():item())
  end })
  out.seconds, out.failure, out.solver = os.clock() - began, not fine and roll or nil, fine and roll.solver or nil
  return out
end

local series = {}
-- adds the heights of a fall to the curves
local function draw(name, out, colour)
  series[#series + 1] = { name = name, x = out.time, y = out.height, colour = colour }
end
local reference = fall(1)
draw("explicit", reference, "#000000")
print(("explicit, Courant number %.1f: %d steps in %.2f s"):format(cq.World.class.courant_aim, total, reference.seconds))

-- the check of the Courant number would refuse the next ones
local most = cq.World.class.courant_max
cq.World.class.courant_max = math.huge
for _, courant in ipairs { 0.9, 1.2, 1.5, 2 } do
  local out = fall(courant / cq.World.class.courant_aim)
  local how = out.failure and out.failure:match "failed at ([^;]*)" or "holds"
  print(("explicit, Courant number %.1f: %s"):format(courant, how))
end
cq.World.class.courant_max = most

print "implicit: step by the explicit one, steps, Newton and products of a step, largest residual, least J, speed-up"
for k, ratio in ipairs(ratios) do
  local out = fall(ratio, cq.Implicit { tolerance = tolerance })
  if out.failure then error(out.failure, 0) end
  local newton, linear = out.solver.newton:mean():item(), out.solver.linear:mean():item()
  local residual, faster = out.solver.residual:max():item(), reference.seconds / out.seconds
  print(("%5d %6d %6.1f %7.1f  %.1e  %.4f %7.2f"):format(ratio, out.steps, newton, linear, residual, out.least, faster))
  run:record { iteration = k, loss = residual, ratio = ratio, newton = newton, linear = linear, least = out.least,
    speed_up = faster }
  draw(("x %d"):format(ratio), out)
end
cq.Plot { width = 1200, x_label = "time [ms]", y_label = "height over the floor's last node [mm]",
  series = series }:write "cube_implicit.png"

local shot = cq.Experiment {
  world = world(200 * explicit, 1, cq.Implicit {}), steps = math.floor(total / 200),
  objective = function(state) return state:center(cube)[2] end,
}
local stills = {}
for k, part in ipairs { 0, 0.25, 0.3, 1 } do stills[k] = part * total * explicit end
shot:render("cube.png", { colour = { by = "von_mises", range = { 0, 8e3 } }, stills = stills, layout = "apart" })
