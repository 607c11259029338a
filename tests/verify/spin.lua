-- spin: a square turns freely in empty space. Its momentum, and its angular momentum about its centre, stay.
local cq = require "cq"

local DX, SPIN, DRIFT = 1 / 32, 1, { 0.02, 0.01 }

local function turn(precision, dt, steps, integrator, formulation)
  local size = 8 * DX
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "square", size = { size, size }, spacing = DX / 2, jitter = 0.5, seed = 1 },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
  }
  local world = cq.World {
    cells = { 32, 32 }, dx = DX, dt = dt, precision = precision, integrator = integrator,
    formulation = formulation, substeps = integrator and 1 or 10, robot:at { 12 * DX, 12 * DX },
  }
  local x = robot.position - cq.tensor { size / 2, size / 2 }
  local velocity = x:matmul(cq.tensor { { 0, SPIN }, { -SPIN, 0 } }) + cq.tensor(DRIFT)
  local start, last
  world:rollout { steps = steps, robot = world.robot:with { velocity = velocity }, on_step = function(state)
    if state.step > 0 and state.step < steps then return end
    local p, l = state:momentum "square", state:angular_momentum "square"
    start, last = start or { p, l }, { p, l }
  end }
  world:close()
  return ((last[1] - start[1]):norm() / start[1]:norm()):item(), (last[2] / start[2]):reshape({ 1 })[1]:item()
end

return {
  summary = "a square turns freely: momentum and angular momentum stay",
  source = "no force acts",
  quick = true,
  run = function(row)
    local p, l = turn("float64", 1e-2, 1000)
    row { method = "explicit", quantity = "momentum lost in 1e4 steps", exact = 0, scale = 1, ours = { p },
      refined = { 1e-3 }, by = "step", promise = 1e-11 }
    row { method = "explicit", quantity = "angular momentum left", exact = 1, ours = { l }, refined = { 1e-3 },
      by = "step", promise = 1e-11 }
    local lost, left, steps = {}, {}, { 0.02, 0.01, 0.005 }
    for k, dt in ipairs(steps) do lost[k], left[k] = turn("float64", dt, 4 / dt, cq.Implicit { tolerance = 1e-9 }) end
    local count = { 200, 400, 800 }
    row { method = "implicit", quantity = "momentum lost in a time of 4", exact = 0, scale = 1, ours = lost,
      refined = count, by = "steps", promise = 1e-8 }
    row { method = "implicit", quantity = "angular momentum left after a time of 4", exact = 1, ours = left,
      refined = count, by = "steps", promise = 0.01, order = 0.8, at_most = 0.018,
      falls_short = "backward Euler takes 7 % in 200 steps; the order is that of the step" }
    for _, scheme in ipairs { "midpoint", "backward_euler" } do
      local is_midpoint, ours = scheme == "midpoint", {}
      for k, dt in ipairs(steps) do
        local integrator = cq.Implicit { tolerance = 1e-9, scheme = scheme }
        ours[k] = select(2, turn("float64", dt, 4 / dt, integrator, "total_lagrangian"))
      end
      row { method = is_midpoint and "total Lagrangian, midpoint" or "total Lagrangian, implicit",
        quantity = "angular momentum left after a time of 4", exact = 1, ours = ours, refined = count, by = "steps",
        promise = is_midpoint and 1e-3 or 0.01, order = not is_midpoint and 0.8 or nil,
        at_most = not is_midpoint and 0.018 or nil,
        plateau = is_midpoint and "what is left is of the start, whose vibration particles see in part" or nil,
        falls_short = not is_midpoint and "backward Euler takes 7 % in 200 steps; the order is that of the step" or nil }
    end
  end,
}
