-- topology_method: how the designs of scenes/topology.lua are found, for the examples that share it.
--
--   --method ours       no bounds at first, then ever tighter ones, then ever sharper densities; the binary body's pulses are trained anew
--   --method paper      algorithm 1 of Yuhn et al.: an augmented Lagrangian with the same bounds from the first iteration on
local cq = require "cq"

local shares = { material = 0.05, layout = 0.05, pulses = 0.01 }
local method = {}

-- violations are none at exactly the limit
local function bounds(design)
  local list = design:binary(shares)
  for _, c in ipairs(list) do c.tolerance = 0 end
  return list
end

-- how the limits come down, and what else changes
local function schedule(scene, ours)
  local out = {}
  for name, f in pairs(scene.by_iteration) do out[name] = f end
  if ours then
    local from, over = cq.option("from", 100), cq.option("over", 250)
    out.limits = scene.design:tightening {
      material = shares.material, layout = shares.layout, pulses = shares.pulses, from = from, over = over,
    }
    out.design = scene.design:sharpening { from = from + over, over = 100 }
  end
  return out
end

---Optimises a scene, makes the design binary, and draws and saves both.
---@param scene table       from scenes.topology
---@param name string       of the files
---@return cq.Experiment run, cq.Topology.Solid solid
function method.run(scene, name)
  local ours, design = cq.option("method", "ours") == "ours", scene.design
  local run = cq.Experiment {
    world = scene.world, duration = scene.duration, design = design, objective = scene.objective, constraints = bounds(design),
    by_iteration = schedule(scene, ours),
    optimizer = cq.Optimizer.augmented_lagrangian {
      inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation", penalty = ours and cq.option("penalty", 1) or 1e-3, restart = not ours,
    },
  }
  run:optimize { iterations = cq.option("iterations", ours and 500 or 2000) }
  local solid = run.design:binarise(run.best.params)
  local binary = run:evaluate(solid)
  print(("optimised %.4f, binarised %.4f: %s"):format(run.best.loss, binary, tostring(solid)))
  if ours then
    local trained, loss = solid:train(run, { iterations = cq.option("training", 200) })
    print(("pulses trained anew: %.4f"):format(loss))
    solid = trained
  end
  run.design:save(run.best.params, run.run:path(name .. ".csv"))
  solid:save_stl(run.run:path(name .. ".stl"))
  run:render(name .. ".mp4", { which = solid })
  return run, solid
end

return method
