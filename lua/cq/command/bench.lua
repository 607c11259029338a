-- bench: how fast the engine is here, forward and backward.   cqlua bench [--case NAME or '3d-*'] [--json] [--csv FILE]
--
-- Scenes: a jittered block that falls on a floor with friction, float32 and neo-Hookean unless the name says otherwise,
-- on the grids of ChainQueen's speed table (ICRA 2019, table II) and others; some of them with transfers that keep
-- unresolved motion (decay-*); the same blocks on a grid of their own shape (tl-*), as a lattice and jittered, whose
-- backward pass leaves out the gradients of positions and of first deformations; a block in a tank of water, all of it
-- on one grid and the block on a grid of its own shape (water-*); the biped as a whole program, with its observer and
-- its network; 64 scenes of it that an environment steps together; and stiff blocks with implicit steps of 100 or 1,000
-- times the explicit one, whose parts (a product with the second derivative, tensors, assembly) are told in explicit
-- steps of the same scene. The memo of every step is written, and particles are sorted as often as they must be; where
-- memory is short there are fewer steps, and the table says how many. --device, --threads, --precision and --simd hold
-- for all cases; a case that needs what the device does not offer is left out, with the reason. Timers of the phases
-- are always on: they read the processor's counter at the end of each phase, 9 ns on an EPYC, 0.3 % of the time of the
-- smallest scenes of the table; below 1,024 particles one call in seven is timed for all (0.5 % with 100 particles).
-- The last line says what they took.
-- A figure is the median of the repetitions (--repeat N); --steps N measures another number of engine steps, a multiple
-- of those of a control step. --csv keeps the table.
local atomic_file = require "cq.base.atomic_file"
local engine = require "cq.base.engine"
local json = require "cq.base.json"
local option = require "cq.option"
local script = require "cq.base.script"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local cases = require "cq.measure.cases"
local implicit = require "cq.measure.implicit"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"
local stepped = require "cq.measure.stepped"
local whole = require "cq.measure.whole"

local is = schema
local FRAME = 3                  -- steps of a frame of the paper's benchmark
local SUBSTEPS = 10              -- engine steps in a control step, as the robots of the papers have

-- paper: milliseconds per frame forward and backward, on a GTX 1080 Ti
local all = {
  { name = "2d-1600", dim = 2, side = 40, cells = { 100, 100 }, steps = 500 },
  { name = "2d-1600-substeps1", dim = 2, side = 40, cells = { 100, 100 }, steps = 500, substeps = 1 },
  { name = "2d-6400", dim = 2, side = 80, cells = { 100, 120 }, steps = 200, paper = { 0.10, 0.14 } },
  { name = "3d-8000", dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, paper = { 0.392, 0.406 } },
  { name = "3d-8000-grid64", dim = 3, side = 20, cells = { 64, 64, 64 }, steps = 200 },
  { name = "3d-8000-grid100", dim = 3, side = 20, cells = { 100, 100, 100 }, steps = 200 },
  { name = "3d-8000-corotated", dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, law = "corotated" },
  { name = "2d-6400-averaged", dim = 2, side = 80, cells = { 100, 120 }, steps = 200, averaging = 1 },
  { name = "3d-8000-averaged", dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, averaging = 1 },
  { name = "3d-8000-float64", dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, precision = "float64" },
  { name = "3d-64000", dim = 3, side = 40, cells = { 50, 70, 50 }, steps = 60, paper = { 1.594, 1.774 } },
  { name = "3d-512000", dim = 3, side = 80, cells = { 100, 120, 100 }, steps = 30, repeats = 5,
    paper = { 10.501, 11.594 } },
  { name = "decay-2d-6400", dim = 2, side = 80, cells = { 100, 120 }, steps = 200, transfer = { decay = "auto" } },
  { name = "decay-3d-8000", dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 200, transfer = { decay = "auto" } },
  { name = "decay-3d-64000", dim = 3, side = 40, cells = { 50, 70, 50 }, steps = 60, transfer = { decay = "auto" } },
  { name = "tl-2d-6400", dim = 2, side = 80, cells = { 100, 120 }, steps = 200, formulation = "total_lagrangian",
    jitter = 0 },
  { name = "tl-2d-6400-jittered", dim = 2, side = 80, cells = { 100, 120 }, steps = 200,
    formulation = "total_lagrangian" },
  { name = "tl-3d-64000", dim = 3, side = 40, cells = { 50, 70, 50 }, steps = 60, formulation = "total_lagrangian",
    jitter = 0 },
  { name = "water-2d-8962", dim = 2, across = 64, steps = 120 },
  { name = "water-2d-8962-tl", dim = 2, across = 64, steps = 120, body = "total_lagrangian" },
  { name = "biped", time = whole.time, dim = 2, repeats = 3 },
  { name = "env-64", time = stepped.time, dim = 2, repeats = 3 },
  { name = "implicit-2d-6400", time = implicit.time, dim = 2, side = 80, cells = { 100, 120 }, steps = 10, repeats = 3,
    ratio = 100, moves = true },
  { name = "implicit-2d-6400-rest", time = implicit.time, dim = 2, side = 80, cells = { 100, 120 }, steps = 10,
    repeats = 3, ratio = 1000 },
  { name = "implicit-3d-8000", time = implicit.time, dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 10,
    repeats = 3, ratio = 100, moves = true },
  { name = "implicit-3d-8000-rest", time = implicit.time, dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 5,
    repeats = 3, ratio = 1000 },
  -- steps as exact as their gradients
  { name = "implicit-2d-6400-float64", time = implicit.time, dim = 2, side = 80, cells = { 100, 120 }, steps = 5,
    repeats = 3, ratio = 1000, precision = "float64", tolerance = 1e-6 },
  { name = "implicit-3d-8000-float64", time = implicit.time, dim = 3, side = 20, cells = { 50, 50, 50 }, steps = 5,
    repeats = 3, ratio = 1000, precision = "float64", tolerance = 1e-6 },
}

-- Ends the program, as after wrong use, if a chosen case cannot measure this number of engine steps: it measures whole
-- control steps.
local function check_steps(chosen, steps)
  for _, case in ipairs(chosen) do
    local unit = case.time == implicit.time and 1 or case.time and whole.SUBSTEPS or case.substeps or SUBSTEPS
    if steps % unit ~= 0 then
      script.misuse("--steps must be a multiple of %d, the engine steps of a control step of %s, got %d", unit,
        case.name, steps)
    end
  end
end

-- ---- measuring ------------------------------------------------------------------------------------------------------

-- The world of a case with the falling block, and the velocities {n, dim} that its particles begin with.
local function falling(case)
  local scene = require "scenes.falling_block" {
    dim = case.dim, side = case.side, cells = case.cells, law = case.law, averaging = case.averaging,
    substeps = case.substeps or SUBSTEPS, jitter = case.jitter,
  }
  scene.world.precision, scene.world.formulation = case.precision, case.formulation
  scene.world.transfer = case.transfer
  return require("cq").World(scene.world), scene.velocity
end

-- The world of a case with a tank of water, in which a block of a quarter of the tank's length floats at rest, and the
-- velocities {n, dim} of zeros.
local function floating(case)
  local cq = require "cq"
  local side, dx = 0.25, 1 / case.across
  local shape = cq.Shape.box { name = "block", at = { 0.375, 0.375 }, size = { side, side }, spacing = dx / 2 }
  local body = cq.Robot { name = "block", formulation = case.body, shape = shape,
    material = cq.Material.neo_hookean { young = 20, poisson = 0.3, density = 0.5 } }
  local scene = require "scenes.water_tank" { across = case.across, without = shape, bodies = { body } }
  scene.world.substeps = SUBSTEPS
  scene.world.dt = SUBSTEPS * 0.02 / 26                     -- a Courant number of 0.5
  local world = cq.World(scene.world)
  return world, cq.zeros { world.particle_count, 2 }
end

-- Times a case that has no function `time` of its own: rollouts of the engine without observer, controller and loss.
-- Returns { particles, precision, engine, device, law, cells, steps, timers, lists of seconds forward and backward, and
-- phases: seconds by phase in all repetitions }. steps: engine steps, nil for the case's.
local function block(case, steps, repeats)
  local substeps = case.substeps or SUBSTEPS
  local world, velocity = (case.across and floating or falling)(case)
  local timing = kernel.time(world, { velocity = velocity, steps = (steps or case.steps) / substeps,
    repeats = repeats })
  local result = {
    particles = world.particle_count, precision = world.precision, engine = world.device,
    steps = timing.steps * substeps, cells = case.cells or { world.cells[1], world.cells[2] },
    forward = timing.forward, backward = timing.backward, phases = timing.phases,
    law = case.law or case.across and "fluid and neo_hookean" or "neo_hookean",
    device = world.device_kind,
    timers = kernel.timer_cost(substeps),
  }
  world:close()
  return result
end

-- Times a case; its result for table and JSON, with million particle-steps per second and nanoseconds by phase. given:
-- repetitions, nil for the case's.
local function measure(case, steps, given)
  local repeats = given or case.repeats or 11
  local result = case.time and case.time(steps, repeats, case) or block(case, steps, repeats)
  local work = result.particles * result.steps
  local out = {
    case = case.name, device = result.device, dim = case.dim, particles = result.particles,
    precision = result.precision, law = result.law,
    cells = result.cells, engine = result.engine, steps = result.steps, repeats = repeats,
    threads = option.program.threads > 0 and option.program.threads or machine.facts().cores,
    forward_mps = work / machine.median(result.forward) / 1e6,
    backward_mps = work / machine.median(result.backward) / 1e6,
    forward_best_mps = work / machine.least(result.forward) / 1e6,
    backward_best_mps = work / machine.least(result.backward) / 1e6,
    timer_share = result.device ~= "cuda" and result.timers * result.steps / math.min(machine.median(result.forward),
      machine.median(result.backward)),
    share = result.share, paper_frame_ms = case.paper, phase_ns = {},
  }
  for name, value in pairs(result.solver or {}) do out[name] = value end
  for name, seconds in pairs(result.phases) do out.phase_ns[name] = seconds / (work * repeats) * 1e9 end
  return out
end

-- ---- showing --------------------------------------------------------------------------------------------------------

local first_keys = { "case", "device", "threads", "dim", "particles", "precision", "forward_mps", "backward_mps" }

-- A number as text with `digits` significant digits; - where there is none.
local function significant(x, digits)
  if not x then return "-" end
  return ("%%.%df"):format(math.max(0, digits - 1 - math.floor(math.log10(math.max(x, 1e-9))))):format(x)
end

-- Milliseconds of a frame, which is FRAME engine steps, at `mps` million particle steps a second.
local function frame(result, mps) return result.particles * FRAME / mps / 1e3 end

-- A text on the parts of a whole program's time.
local function share_text(share)
  return ("%.1f %% steps and adjoints, %.1f %% readouts, %.1f %% Lua%s"):format(100 * share.steps,
    100 * share.readouts, 100 * share.lua,
    share.of_rollout and ("; forward %.0f %% of the speed of one rollout"):format(100 * share.of_rollout) or "")
end

-- A text on the cost of an implicit step.
local function solver_text(result)
  return ("product %.2f, tensors %.2f, assembly %.2f explicit steps; backward / forward %.2f; step %dx, %.2fx as quick")
    :format(result.hessian_product, result.tensors, result.assembly, result.backward_ratio, result.ratio,
      result.speedup)
end

-- The last cell of a case's row, a text.
local function remark(result)
  if result.hessian_product then return solver_text(result) end
  return result.share and share_text(result.share) or ""
end

-- Prints the machine and the heads of the table's columns.
local function print_head()
  local facts = machine.facts()
  print(("%s, %s, %s, %s, %s; %s"):format(facts.processor, text.count(facts.cores, "core"), facts.system,
    facts.compiler, facts.date,
    text.count(option.program.threads > 0 and option.program.threads or facts.cores, "thread")))
  print "million particle-steps per second: median (best); ms for a frame of 3 steps, and ChainQueen's on a GTX 1080 Ti\n"
  print(("%-18s %9s %-8s %6s  %-15s %-15s  %-17s %s"):format("case", "particles", "", "steps", "forward", "backward",
    "frame", "ChainQueen"))
end

-- Prints a case's result, of measure, as a row of the table.
local function print_row(result)
  -- The text "median (best)" of two numbers.
  local function pair(median, best) return ("%s (%s)"):format(significant(median, 3), significant(best, 3)) end
  local paper = result.paper_frame_ms
  print(("%-18s %9d %-8s %6d  %-15s %-15s  %-17s %s%s"):format(result.case, result.particles, result.precision,
    result.steps,
    pair(result.forward_mps, result.forward_best_mps), pair(result.backward_mps, result.backward_best_mps),
    ("%s + %s"):format(significant(frame(result, result.forward_mps), 3),
      significant(frame(result, result.backward_mps), 3)),
    paper and ("%s + %s"):format(significant(paper[1], 3), significant(paper[2], 3)) or "",
    remark(result)))
  io.flush()
end

-- Prints a table of all results by phase, and the share of the timers.
local function print_phases(results)
  local names = kernel.phases()
  print "\nnanoseconds per particle-step, by phase"
  io.write(("%-18s"):format "case")
  for _, name in ipairs(names) do io.write(("%10s"):format(name)) end
  io.write(("%10s\n"):format "other")
  for _, result in ipairs(results) do
    local rest = 1e3 / result.forward_mps + 1e3 / result.backward_mps
    io.write(("%-18s"):format(result.case))
    for _, name in ipairs(names) do
      rest = rest - result.phase_ns[name]
      io.write(("%10.2f"):format(result.phase_ns[name]))
    end
    io.write(("%10.2f\n"):format(math.max(rest, 0)))
  end
  local most
  for _, result in ipairs(results) do
    if result.timer_share and result.timer_share > (most and most.timer_share or 0) then most = result end
  end
  if most then
    print(("\nthe timers took %.2f %% of the time, or less (%s)"):format(100 * most.timer_share, most.case))
  end
end

-- ---- keeping --------------------------------------------------------------------------------------------------------

local columns = {
  "case", "device", "threads", "dim", "particles", "precision", "forward_mps", "backward_mps", "forward_best_mps",
  "backward_best_mps",
  "steps", "repeats", "law", "engine",
}

-- Ends the program, as after wrong use, if the table's file cannot be written, before any case runs.
local function check_csv(path)
  local problem = atomic_file.problem(path)
  if problem then script.misuse("--csv cannot write %s: %s", path, problem) end
end

-- Writes all results into a CSV file: a row for each case, with phases in nanoseconds a particle-step and the machine.
local function write_csv(path, results)
  local facts, phases, head = machine.facts(), kernel.phases(), {}
  for _, name in ipairs(columns) do head[#head + 1] = name end
  for _, name in ipairs(phases) do head[#head + 1] = name .. "_ns" end
  local lines = { table.concat(head, ",") .. ",processor,cores,date\n" }
  for _, result in ipairs(results) do
    local row = {}
    for _, name in ipairs(columns) do
      local value = result[name]
      row[#row + 1] = type(value) == "number" and ("%.6g"):format(value) or '"' .. value .. '"'
    end
    for _, name in ipairs(phases) do row[#row + 1] = ("%.4g"):format(result.phase_ns[name]) end
    lines[#lines + 1] = table.concat(row, ",") .. (',"%s",%d,%s\n'):format(facts.processor, facts.cores, facts.date)
  end
  atomic_file.write(path, table.concat(lines), { what = "--csv" })
end

-- The chosen cases; with --precision without those that set a precision themselves and would be equal to others, unless
-- all of them do.
local function without_doubles(chosen)
  if not option.program.precision then return chosen end
  local out = {}
  for _, case in ipairs(chosen) do
    if not case.precision then out[#out + 1] = case end
  end
  return #out > 0 and out or chosen
end

return {
  summary = "speed table: million particle-steps per second",
  options = {
    json = is.boolean { default = false, help = "one JSON object a line" },
    case = is.string { optional = true,
      help = "only those of this name, of a part of it, or of a pattern such as '3d-*'" },
    steps = is.integer { min = 1, max = 1e6, optional = true, help = "another number of engine steps, in whole control steps" },
    csv = is.string { optional = true, help = "file that keeps the table" },
    ["repeat"] = is.integer { min = 1, max = 1000, optional = true, help = "repetitions, of which the median is told" },
  },
  -- The subcommand: times the cases and prints them. Returns the exit code; nil: 0.
  run = function(options)
    local chosen, results = without_doubles(cases.choose(all, options.case, "bench")), {}
    if options.csv then check_csv(options.csv) end
    if options.steps then check_steps(chosen, options.steps) end
    if not options.json then print_head() end
    for _, case in ipairs(chosen) do
      if engine.C.cq_interrupted() ~= 0 then return 130 end
      local result = cases.attempt("bench", case.name, function()
        return measure(case, options.steps, options["repeat"])
      end)
      results[#results + 1] = result
      if result and options.json then
        print(json.encode(result, first_keys))
        io.flush()
      elseif result then
        print_row(result)
      end
    end
    if #results == 0 then return 1 end
    if not options.json then print_phases(results) end
    if options.csv then write_csv(options.csv, results) end
  end,
}
