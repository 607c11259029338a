-- plans: a small problem with levels and a design, plans of it, and what is compared of their runs.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local host = require "cq.host"

local plans = {}

---A block that is thrown, whose signals squeeze it; coarser by a level.
function plans.block(level)
  local k = level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.02 * k },
    material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
    actuators = cq.Actuator.isotropic { count = 2, max = 1e4 },
  }
  local world = cq.World {
    cells = { 28 / k, 28 / k }, dx = 0.04 * k, gravity = { 0, -9.8 }, dt = 2e-3, substeps = 8, precision = "float64",
    threads = 1, walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 * k }, robot:at { 0.24,
      0.08 * k },
  }
  return {
    world = world, duration = 0.02, design = cq.Topology { world = world, duration = 0.02, connected = true,
      pulses = { interval = 4e-3 } },
    objective = function(state, start) return start:center(robot)[1] - state:center(robot)[1] end,
  }
end

function plans.adam(rate) return cq.Optimizer.adam { rate = rate or 0.05 } end

function plans.whole(changes)
  local fields = {
    optimizer = plans.adam(),
    { name = "coarse", iterations = 3, level = { coarsen = 2 } },
    { name = "soft", iterations = 2 },
    { name = "binary", iterations = 3, body = "binary",
      options = { rate = cq.Schedule.linear { from = 0.05, to = 0.01 }, clip = "median" } },
    { name = "pulses", iterations = 3, body = "extracted" },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Plan(fields)
end

---Values by path, to the last bit.
function plans.bits(params)
  local out = {}
  for _, leaf in ipairs(T.leaves.list(params)) do out[leaf.path] = leaf.tensor:totable() end
  return out
end

---run:optimize in a folder that it does not go on from.
function plans.optimize(run, plan, folder, more)
  local fields = { plan = plan, folder = folder, resume = false }
  for key, value in pairs(more or {}) do fields[key] = value end
  return run:optimize(fields)
end

---Fields of run:optimize by which it is interrupted after some iterations.
function plans.stops(at)
  local count = 0
  return { on_iteration = function()
    count = count + 1
    if count == at then C.cq_interrupt(1) end
  end }
end

---What a run has left in its folder, but for its sources.
function plans.files_of(path, within, out)
  out = out or {}
  for _, name in ipairs(host.entries(path)) do
    local inner = within and within .. "/" .. name or name
    if host.kind(path .. "/" .. name) == "folder" then
      if name ~= "sources" then plans.files_of(path .. "/" .. name, inner, out) end
    else
      out[#out + 1] = inner
    end
  end
  table.sort(out)
  return out
end

return plans
