-- topology_method: how the designs of scenes/topology.lua are found, for the examples that share it.
--
--   --method ours    a block of half as many particles along each edge finds a gait while it is soft, and goes on as a
--                    binary body, with the gradient of the smooth design (design:with { binary = "all" }; --rough
--                    iterations, of which --free are soft). From there the block itself goes on, soft (--soft) and then
--                    binary (--iterations in all). In space, and of long gaits, all but the last binary iterations are
--                    made in steps 2.5 times as long, with a Courant number of 0.37 in space (--quick iterations of the
--                    block). A climber is of one piece, and a walker in the plane, unless its adjoint decays. The
--                    climber has stages of its own: --free soft iterations, --light binary ones over half of the time,
--                    with pulses that come again after --period, and --iterations over all of it; it is its own mirror
--                    image (--symmetry no: it is not). The rotator is the same after a quarter of a turn (--symmetry
--                    no: it is not), and has soft iterations, --rough ones of a coarse block and --soft, in steps 2.5
--                    times as long (--substeps of 1 ms: 4), before binary ones (--iterations in all). Where a gait is
--                    long, the rotator's, the climber's and a walker's of more than 0.5, the adjoint decays (--decay,
--                    of any; 0: it does not; the rotator's block has half of it). At the end the pulses of the body are
--                    trained anew (--training; 0: they are not, as with --method paper unless given)
--   --method paper   algorithm 1 of Yuhn et al.: an augmented Lagrangian with the same bounds from the first iteration
local cq = require "cq"
local gravity_it_bears = require "scenes.gravity_it_bears"

local method = {}

local function experiment(scene, fields)
  fields.world, fields.duration, fields.objective = scene.world, scene.duration, fields.objective or scene.objective
  fields.adjoint_decay = fields.adjoint_decay or scene.adjoint_decay
  return cq.Experiment(fields)
end

-- A body of one piece is simulated without void that is far from it. The others were found with all of their void.
local function made_binary(scene)
  return scene.design:with { material = { sharpness = 2 * scene.design.material.sharpness }, binary = "all",
    far_void = not scene.one_piece }
end

-- a rate that falls to a tenth; of gradients that are no longer than clip
local function adam(from, to, rate, clip)
  return cq.Optimizer.adam { rate = rate or 0.01, clip = clip, schedule = function(i)
    return 1 - 0.9 * math.max(0, math.min(1, (i - from) / math.max(1, to - from)))
  end }
end

-- A stage of a run, in a folder of its own. Goes on from what lies there only where the stage before it was whole
-- already: otherwise that is of another run. Tells whether this one was.
local function optimise(run, stage, before)
  run:optimize { iterations = stage.count, name = stage.name, backtracks = 5,
    resume = before and cq.option("resume", false) }
  return run.run ~= nil and run.run.resumed_at == stage.count
end

-- The first values of a scene's design: those that another one, which is simulated sooner, found in so many iterations,
-- soft for some of them, then binary.
---@param stage { name: string, count: integer, free: integer }
---@param before boolean     was all before it made by an earlier run, which is gone on with?
---@return boolean whole, string? folder     of the whole run
local function start_from(other, scene, stage, before)
  local hard = made_binary(other)
  local run = experiment(other, { design = other.design, optimizer = adam(stage.free, stage.count),
    by_iteration = { design = function(i) return i <= stage.free and other.design or hard end } })
  local whole = optimise(run, stage, before)
  scene.design.params = scene.design:resample(other.design, run.best.params)
  return whole, run.folder and run.folder:match("^(.*)/" .. stage.name .. "$")
end

-- A scene of the same problem with other options.
local function variant(options, changes)
  local out = {}
  for key, value in pairs(options) do out[key] = value end
  for key, value in pairs(changes) do out[key] = value end
  return require "scenes.topology"(out)
end

-- From a block of particles twice as large; with --quick iterations, as in space, then from the block itself in steps
-- 2.5 times as long, for a coarse gait is not that of the block.
local function start(scene, options, quick)
  local substeps = quick > 0 and 4 or nil
  local rough = variant(options, { coarse = 2 * options.coarse, substeps = substeps })
  local long = quick > 0 and variant(options, { substeps = substeps }) or nil
  local whole, folder = start_from(rough, long or scene, { name = "rough",
    free = cq.option("free", long and 250 or 150), count = cq.option("rough", long and 400 or 250) }, true)
  if not long then return whole, folder end
  return start_from(long, scene, { name = "quick", free = math.floor(0.7 * quick), count = quick }, whole)
end

-- The last stage of a run: the block itself, in the folder of the run.
---@param stage { count: integer, by_iteration: table?, inner: cq.Optimizer, whole: boolean, folder: string?, adjoint_decay: number? }
local function finish(scene, stage)
  local run = experiment(scene, {
    design = scene.design, by_iteration = stage.by_iteration, adjoint_decay = stage.adjoint_decay,
    -- bounds that nothing reaches: for the history
    constraints = scene.design:binary { material = 1, layout = 1, pulses = 1 },
    optimizer = cq.Optimizer.augmented_lagrangian { inner = stage.inner, form = "violation", penalty = 1e-3,
      restart = false, tolerance = 1e-9 },          -- a loss that rests for a while does not end it
  })
  run:optimize { iterations = stage.count, backtracks = 5,
    resume = stage.whole and cq.option("resume", false) and stage.folder ~= nil and cq.Run.can_resume(stage.folder) }
  return run
end

-- How many iterations of the block are soft, and how many there are in all, by --soft and --iterations. A body that is
-- soft to the end may be wanted, as the balancer's is, but few --iterations alone come to one as well.
local function soft_of(soft, count)
  soft, count = cq.option("soft", soft), cq.option("iterations", count)
  if soft >= count and count > 1 then             -- a single one is a trial
    print(("all %d iterations of the block are soft (--soft %d), and none is binary: that takes more --iterations")
      :format(count, soft))
  end
  return soft, count
end

-- Of gradients of the block as it is binary, and of its pulses: where they mean something they are of 0.02 to 0.05,
-- now and then of 1 to 30,000, after which Adam, by its mean squares, stands still for hundreds of iterations.
local clips = { walker = 0.05, terrain = 0.05, walker3d = 0.05 }

local function ours(scene, options)
  local quick = cq.option("quick", (#scene.world.cells == 3 or options.decay) and 260 or 0)
  local soft, count = soft_of(quick > 0 and 0 or 80, quick > 0 and 40 or 140)
  local whole, folder = start(scene, options, quick)
  local hard = made_binary(scene)
  local inner = adam(math.min(soft, 0.6 * count), count, nil, not options.decay and clips[options.name] or nil)
  return finish(scene, { count = count, inner = inner, whole = whole, folder = folder,
    by_iteration = { design = function(i) return i <= soft and scene.design or hard end } })
end

-- of a climber's gradients as it is binary: where they mean something they are of 0.03 to 0.3
local CLIP = 0.1

-- A climber learns one step up that comes again (--period): asked for height alone, it learns to leap when time is up.
-- It learns it in half of the time, soft and in steps 2.5 times as long, then as a binary body, which has all of its
-- gravity in the last quarter of the iterations, whatever it bore, and by a rate that falls to a tenth, for what is
-- binary loses its step where much changes at once. Its adjoint decays (--decay): what is learned is what each step
-- does, and not how the last ones end. Gradients that are of chance nevertheless are clipped.
local function climb(scene, options)
  local function half(substeps) return variant(options, { substeps = substeps, duration = scene.duration / 2 }) end
  if not (options.period and options.period <= scene.duration / 2) then
    error(("--period must be above 0 and at most half of the duration, %g, for the climber's pulses come again; got %g")
      :format(scene.duration, options.period or 0), 0)
  end
  local soft, light, enough = half(4), half(10), 0.08 * scene.duration
  local free, count = cq.option("free", 230), cq.option("light", 240)
  local run = experiment(soft, { design = soft.design, optimizer = cq.Optimizer.adam { rate = 0.01, per = "tensor" },
    by_iteration = { gravity = gravity_it_bears { from = 0, begins = 30, enough = enough, last = free } } })
  local whole = optimise(run, { name = "soft", count = free }, true)
  light.design.params = light.design:resample(soft.design, run.params.design)
  run = experiment(light, { design = made_binary(light), optimizer = adam(0, count, 4e-3, CLIP),
    by_iteration = { gravity = gravity_it_bears { from = 6, begins = 5, enough = enough, last = 0.75 * count } } })
  whole = optimise(run, { name = "light", count = count }, whole)
  scene.design.params = scene.design:resample(light.design, run.best.params)
  local hard = made_binary(scene)
  return finish(scene, { count = cq.option("iterations", 40), whole = whole,
    inner = cq.Optimizer.adam { rate = 3e-4, clip = CLIP }, by_iteration = { design = function() return hard end },
    folder = run.folder and run.folder:match "^(.*)/light$" })
end

-- A rotator turns for all of the time. Its gradient is that of the last leaps unless the adjoint decays (--decay). With
-- that it is found soft, the same after a quarter of a turn, from a block twice as coarse, in steps 2.5 times as long
-- as the paper's. What is binary learns by small steps, or it loses its gait.
local function spin(scene, options)
  local rough, soft, count = cq.option("rough", 400), soft_of(220, 270)
  local coarse = variant(options, { coarse = 2 * options.coarse })
  local run = experiment(coarse, { design = coarse.design, optimizer = adam(0.9 * rough, rough) })
  local whole = optimise(run, { name = "rough", count = rough }, true)
  scene.design.params = scene.design:resample(coarse.design, run.best.params)
  local hard = made_binary(scene)
  local inner = cq.Optimizer.adam { rate = 0.01, schedule = function(i)
    return i <= soft and 1 or 0.2 * (1 - 0.9 * (i - soft) / math.max(1, count - soft))
  end }
  return finish(scene, { count = count, whole = whole, adjoint_decay = options.decay and options.decay / 2,
    inner = inner, folder = run.folder and run.folder:match "^(.*)/rough$",
    by_iteration = { design = function(i) return i <= soft and scene.design or hard end } })
end

local function paper(scene)
  local constraints = scene.design:binary { material = 0.05, layout = 0.05, pulses = 0.01 }
  -- violations are none at exactly the limit
  for _, c in ipairs(constraints) do c.tolerance = 0 end
  local run = experiment(scene, {
    design = scene.design, constraints = constraints, by_iteration = scene.by_iteration,
    optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation",
      penalty = 1e-3 },
  })
  run:optimize { iterations = cq.option("iterations", 2000) }
  return run
end

-- rates at which pulses are trained anew, from those of their design, where they are not begun anew as well
local training_rates = { balancer = 3e-3, walker3d = 3e-3 }

-- The pulses of a binary body, trained anew. Those of a balancer, of a walker in space, and of what has an adjoint that
-- decays, go on from those of their design, by small steps: what took many iterations to find is lost where many pulses
-- change at once.
local function train(name, run, solid, count)
  local rate = run.adjoint_decay and 0.01 or training_rates[name]
  if not rate then return solid:train(run, { iterations = count }) end
  local falling = function(i) return 1 - 0.9 * math.min(1, i / count) end
  return solid:train(run, { iterations = count, params = run.best.params.design,
    optimizer = cq.Optimizer.adam { rate = rate, clip = run.adjoint_decay and 1 or clips[name], schedule = falling } })
end

-- of the adjoint, where a gait is too long for exact gradients; 0: exact [time]
local function decay_of(name, duration)
  if name == "rotator" then return 0.8 end
  if name == "climber" then return 0.1 end                        -- two periods of its pulses
  return name == "walker" and duration > 0.5 and 1 or 0
end

-- of the body, by --symmetry: where the gait is to be straight, or all around, the problem is so as well
local symmetries = {
  walker3d = { axis = "z" }, climber = { axis = "x" }, rotator = { axis = "y", order = 4 },
}

-- bodies of one piece; a walker is one, too, where it learns by exact gradients
local is_one_piece = { terrain = true, climber = true }

---@class scenes.topology_method.def
---@field signals? integer     --signals, or 4, unless given
---@field duration? number     --duration, or the paper's, unless given [time]
---@field after? fun(scene: table, solid: cq.Topology.Solid, files: string[], values: table<string, number>)   what is done with a
---  body at the end, from its surfaces; it may add to the values that each seed tells

---Optimises a scene once, makes the design binary, and draws and saves both.
---@param name "walker"|"terrain"|"climber"|"balancer"|"walker3d"|"rotator"    of scenes.topology, and of the files
---@param given? scenes.topology_method.def
---@return table<string, number>? values     losses, by what they are of
function method.once(name, given)
  given = given or {}
  local which, duration = cq.option("method", "ours"), given.duration or cq.option("duration", 0)
  if which ~= "ours" and which ~= "paper" then error("--method must be ours or paper, got " .. which, 0) end
  local training = cq.option("training", which == "paper" and 0 or 250)
  if training < 0 or training % 1 ~= 0 then
    error(("--training must be 0, for none, or more iterations, got %g"):format(training), 0)
  end
  if duration < 0 then error(("--duration must be above 0, got %g"):format(duration), 0) end
  local is_paper, coarse = which == "paper", cq.option("coarse", 1)
  if not is_paper and coarse ~= 1 and coarse ~= 2 then
    error(("--coarse must be 1 or 2, for most begin on a block twice as coarse, got %g"):format(coarse), 0)
  end
  -- the paper's climber came to steps of 19 Hz
  local period = cq.option("period", not is_paper and name == "climber" and 0.052 or 0)
  local is_symmetric = cq.option("symmetry", not is_paper and (name == "climber" or name == "rotator"))
  if is_symmetric and not symmetries[name] then error("there is no --symmetry of a " .. name, 0) end
  local substeps = cq.option("substeps", not is_paper and name == "rotator" and 4 or 10)
  local decay = cq.option("decay", is_paper and 0 or decay_of(name, duration))
  local options = { name = name, coarse = coarse, period = period > 0 and period or nil,
    symmetry = is_symmetric and symmetries[name] or nil,
    signals = given.signals or cq.option("signals", 4),
    duration = duration > 0 and duration or nil, power = cq.option("power", is_paper and 1 or 2), mass_power = 1,
    substeps = substeps, decay = decay ~= 0 and decay or nil, void = is_paper and 1e-5 or 1e-8,
    -- one that leaves a foot behind goes farther, and is no walker
    one_piece = not is_paper and (is_one_piece[name] or name == "walker" and decay == 0) or nil }
  local scene = require "scenes.topology"(options)
  local way = is_paper and paper or name == "climber" and climb or name == "rotator" and spin or ours
  local run = way(scene, options)
  if not run.folder then return end                  -- cqlua check: nothing was optimised
  local params = run.best.params
  local solid = scene.design:binarise(params)
  local binary, trained_loss = run:evaluate { body = solid }.loss, nil
  print(("optimised %.4f, binarised %.4f: %s"):format(run.best.loss, binary, tostring(solid)))
  if training > 0 then
    local trained, loss = train(name, run, solid, training)
    print(("pulses trained anew: %.4f"):format(loss))
    solid, trained_loss = trained, loss
  end
  solid:save(run:path(name .. ".csv"))
  scene.design:save(params, run:path(name .. "_design.csv"))
  local files = solid:save_stl(run:path(name .. ".stl"))
  run:render(name .. ".mp4", { body = solid })
  run:figures(name .. ".png", { body = solid })
  local values = { optimised = run.best.loss, binarised = binary, loss = trained_loss or binary }
  if given.after then given.after(scene, solid, files, values) end
  return values
end

---The same; with --seeds N from N starts, each in a process and a folder of its own, of which the best is told.
---@param name string
---@param given? scenes.topology_method.def
function method.run(name, given)
  local count = cq.option("seeds", 1)
  if count == 1 then
    method.once(name, given)
  else
    print(cq.seeds { count = count, run = function() return method.once(name, given) end })
  end
end

return method
