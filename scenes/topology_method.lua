-- topology_method: how the designs of scenes/topology.lua are found, for the examples that share it.
--
--   --method ours    no bounds at first, then ever tighter ones, then pulses that are whole or none and ever sharper
--                    densities; at the end the pulses of the binary body are trained anew
--   --method paper   algorithm 1 of Yuhn et al.: an augmented Lagrangian with the same bounds from the first iteration
local cq = require "cq"

local shares = { material = 0.05, layout = 0.05, pulses = 0.01 }
local method = {}

-- violations are none at exactly the limit
local function bounds(design)
  local list = design:binary(shares)
  for _, c in ipairs(list) do c.tolerance = 0 end
  return list
end

-- how the limits come down and the density becomes sharper, and what else changes
local function schedule(scene, stages)
  local out = {}
  for name, f in pairs(scene.by_iteration) do out[name] = f end
  if stages then
    out.limits = scene.design:tightening {
      material = shares.material, layout = shares.layout, pulses = shares.pulses, from = stages.free,
      over = stages.tighten, release = true,
    }
    out.design = scene.design:sharpening { from = stages.free + stages.tighten, over = stages.sharpen,
      binary = "pulses" }
  end
  return out
end

-- Of the last iterations the one whose binary body goes best, kept in the run's folder beside the best of the soft
-- ones: binary losses jump from one iteration to the next, and are cheap to look at.
local function binary_watch(run, design)
  local best
  return function()
    local path = run.run:path "binary.bin"
    if not best and run.run.saved then
      local fine, kept = pcall(cq.load, path)
      best = fine and kept or nil
    end
    local solid = design:binarise(run.params)
    local loss = run:evaluate(solid)
    solid.world:close()
    if not best or loss < best.loss then
      best = { loss = loss, params = run.params }
      cq.save(path, best)
      best = cq.load(path)
    end
  end, function() return best and best.params or run.best.params end
end

---Optimises a scene, makes the design binary, and draws and saves both.
---@param name "walker"|"climber"|"balancer"|"walker3d"|"rotator"    of scenes.topology, and of the files
---@return cq.Experiment run, cq.Topology.Solid? solid
local function run_once(name)
  local ours = cq.option("method", "ours") == "ours"
  local scene = require "scenes.topology" {
    name = name, coarse = cq.option("coarse", 1), signals = cq.option("signals", 4),
      duration = cq.option("duration", 0) > 0
      and cq.option("duration", 0) or nil, power = cq.option("power", ours and 2 or 1),
    void = cq.option("void", ours and 1e-8 or 1e-5),
  }
  local design = scene.design
  local stages = ours and { free = cq.option("free", 100), tighten = cq.option("tighten", 200),
    sharpen = cq.option("sharpen", 120) }
  local whole = ours and stages.free + stages.tighten + stages.sharpen
  local run = cq.Experiment {
    world = scene.world, duration = scene.duration, design = design, objective = scene.objective,
    constraints = bounds(design),
    by_iteration = schedule(scene, stages),
    optimizer = cq.Optimizer.augmented_lagrangian {
      inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation", penalty = ours and cq.option("penalty", 20)
        or 1e-3, restart = not ours,
    },
  }
  local look, found = binary_watch(run, design)
  run:optimize {
    iterations = cq.option("iterations", ours and whole + 40 or 2000),
    after = function(i)
      if ours and i == stages.free + stages.tighten then design:loosen(run.params) end
      if ours and i > stages.free + stages.tighten and i % 5 == 0 then look() end
    end,
  }
  if not run.run then return run end              -- cqlua check: nothing was optimised
  local params = found()
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
