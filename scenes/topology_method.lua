-- topology_method: how the designs of scenes/topology.lua are found, for the examples that share it.
--
--   --method ours    a soft body finds its gait without bounds; then what runs is binary, with the gradient of the
--                    smooth design; at the end the pulses of the binary body are trained anew
--   --method paper   algorithm 1 of Yuhn et al.: an augmented Lagrangian with the same bounds from the first iteration
local cq = require "cq"

local shares = { material = 0.05, layout = 0.05, pulses = 0.01 }
local unbound = { material = 1, layout = 1, pulses = 1 }             -- all that these can be: for the history
local method = {}

-- violations are none at exactly the limit
local function bounds(design, most)
  local list = design:binary(most)
  for _, c in ipairs(list) do c.tolerance = 0 end
  return list
end

-- the design by iteration: soft, then binary; and its rate, which falls from there
local function schedule(scene, free, whole)
  local design, out = scene.design, {}
  for name, f in pairs(scene.by_iteration) do out[name] = f end
  local binary = design:with { material = { sharpness = 2 * design.material.sharpness }, binary = "all" }
  out.design = function(i) return i <= free and design or binary end
  return out, function(i) return i <= free and 1 or 1 - 0.9 * (i - free) / (whole - free) end
end

---Optimises a scene, makes the design binary, and draws and saves both.
---@param name "walker"|"climber"|"balancer"|"walker3d"|"rotator"    of scenes.topology, and of the files
---@return cq.Experiment run, cq.Topology.Solid? solid
local function run_once(name)
  local ours = cq.option("method", "ours") == "ours"
  local duration = cq.option("duration", 0)
  local scene = require "scenes.topology" {
    name = name, coarse = cq.option("coarse", 1), signals = cq.option("signals", 4),
    duration = duration > 0 and duration or nil, power = ours and 2 or 1, mass_power = 1,
    void = ours and 1e-8 or 1e-5,
  }
  local design, free = scene.design, ours and cq.option("free", 150)
  local iterations = cq.option("iterations", ours and 250 or 2000)
  local by_iteration, schedule_of_rate = scene.by_iteration, nil
  if ours then by_iteration, schedule_of_rate = schedule(scene, free, iterations) end
  local run = cq.Experiment {
    world = scene.world, duration = scene.duration, design = design, objective = scene.objective,
    constraints = bounds(design, ours and unbound or shares), by_iteration = by_iteration,
    optimizer = cq.Optimizer.augmented_lagrangian {
      inner = cq.Optimizer.adam { rate = 0.01, schedule = schedule_of_rate }, form = "violation", penalty = 1e-3,
      restart = not ours,
    },
  }
  run:optimize { iterations = iterations }
  if not run.run then return run end              -- cqlua check: nothing was optimised
  local params = run.best.params
  local solid = run.design:binarise(params)
  local binary, trained_loss = run:evaluate(solid), nil
  print(("optimised %.4f, binarised %.4f: %s"):format(run.best.loss, binary, tostring(solid)))
  if ours then
    local trained, loss = solid:train(run, { iterations = cq.option("training", 200) })
    print(("pulses trained anew: %.4f"):format(loss))
    solid, trained_loss = trained, loss
  end
  run.design:save(params, run.run:path(name .. ".csv"))
  solid:save_stl(run.run:path(name .. ".stl"))
  run:render(name .. ".mp4", { which = solid })
  return run, solid, { optimised = run.best.loss, binarised = binary, loss = trained_loss or binary }
end

---The same with --seeds N: from N starts, each in a process and a folder of its own; the best is told.
function method.run(name)
  local count = cq.option("seeds", 1)
  if count == 1 then return run_once(name) end
  local found = cq.seeds { count = count, run = function()
    local _, _, values = run_once(name)
    return values
  end }
  print(found)
end

return method
