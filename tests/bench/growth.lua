-- growth: how cost grows with the number of particles, and with the number of steps under a fixed memory budget.
--
--   cqlua tests/bench/growth.lua --out DIR [--what particles|steps|all] [--largest 4100000] [--longest 100000]
--                                [--repeat 3] [--memory 8] [--budget 64] [--threads N]
--
-- Particles: the falling block in 3D, float32, from 1,000 to 4 million; forward only, nothing remembered; and
-- forward and backward with every step kept, where that takes less than --memory [GiB]. Steps: the block in 2D
-- with 1,600 particles, 100 to 100,000 steps, within --budget [MiB] and with everything kept where that takes
-- less than 2 GiB. Leaves growth_steps.csv, growth_particles.csv and their plots (PNG) in DIR. Times are medians,
-- after a pass that is not counted.
local ffi = require "ffi"
local cq = require "cq"
local engine = require "cq.base.engine"
local host = require "cq.host"
local machine = require "cq.measure.machine"
local C = engine.C

local MIB = 2 ^ 20
local SIDES = { 10, 16, 25, 40, 64, 100, 126, 159 }              -- 3D: side^3 particles
local LENGTHS = { 100, 300, 1000, 3000, 10000, 30000, 100000 }   -- 2D: engine steps
local SUBSTEPS = 10                                              -- engine steps in a control step, in 2D
local KEPT_MAX = 2048 * MIB                                      -- for everything kept, in 2D [byte]
local ROOM = 40                                                  -- cells beside the block: it never reaches a side

local folder = cq.option("out", nil) or error("growth: --out DIR is missing, the folder for tables and plots", 0)
local what = cq.option("what", "all")
local largest, longest, repeats = cq.option("largest", 4100000), cq.option("longest", 100000), cq.option("repeat", 3)
local memory, budget = cq.option("memory", 8) * 1024 * MIB, cq.option("budget", 64) * MIB
host.make_folder(folder)

-- ---- one measurement ------------------------------------------------------------------------------------------------

-- a line of /proc/self/status in MiB; nil where there is no such file
local function process_memory(name)
  local file = io.open "/proc/self/status"
  if not file then return nil end
  local kib = file:read "*a":match(name .. ":%s*(%d+)")
  file:close()
  return kib and tonumber(kib) / 1024
end

-- the peak of memory counts from here, where the system lets it
local function forget_peak()
  local file = io.open("/proc/self/clear_refs", "w")
  if not file then return end
  file:write "5"
  file:close()
end

local function mean_position(world)
  local n = world.particle_count
  local keep = { start = ffi.new("int64_t[2]", { 0, n }), particles = ffi.new("int32_t[?]", n) }
  for p = 0, n - 1 do keep.particles[p] = p end
  local readout = ffi.new "cq_readout"
  C.cq_readout_init(readout)
  readout.group_count, readout.group_start, readout.particles = 1, keep.start, keep.particles
  return readout, keep
end

---Seconds forward and backward; kept: everything is to be kept, or nothing is measured.
---@param scene table
---@param fields { steps: integer, repeats: integer, differentiable: boolean, memory: number, kept?: boolean }   steps: control steps
---@return { forward: number, backward: number?, plan: ffi.cdata*, peak: number? }?
local function measure(scene, fields)
  collectgarbage()
  forget_peak()
  local world = cq.World(scene.world)
  local def, out, plan = ffi.new "cq_rollout_def", ffi.new "cq_rollout *[1]", ffi.new "cq_plan"
  C.cq_rollout_def_init(def)
  def.steps, def.differentiable, def.memory = fields.steps, fields.differentiable and 1 or 0, fields.memory
  engine.check(C.cq_rollout_create(world.handle, def, out), "growth")
  local handle = out[0]
  engine.check(C.cq_rollout_set(handle, C.CQ_FIELD_VELOCITY, scene.velocity:data(), 0), "growth")
  local readout, keep = mean_position(world)
  local ones, forward, backward = ffi.new("double[3]", { 1, 1, 1 }), {}, {}
  -- memory that is touched for the first time is in the pass that is not counted
  for k = 0, fields.repeats do
    local start = C.cq_clock()
    engine.check(C.cq_rollout_begin(handle), "growth")
    if k == 0 then
      C.cq_rollout_plan(handle, plan)
      if fields.kept and plan.recompute > 1 then
        world:close()
        return nil
      end
    end
    engine.check(C.cq_rollout_run(handle, fields.steps, nil, nil), "growth")
    local turn = C.cq_clock()
    if fields.differentiable then
      engine.check(C.cq_rollout_begin_adjoint(handle), "growth")
      engine.check(C.cq_rollout_read_adjoint(handle, readout, ones), "growth")
      engine.check(C.cq_rollout_run_adjoint(handle, fields.steps, nil, nil), "growth")
      if k > 0 then backward[k] = C.cq_clock() - turn end
    end
    if k > 0 then forward[k] = turn - start end
  end
  keep.particles = nil
  local peak = process_memory "VmHWM"
  world:close()
  return {
    forward = machine.median(forward), backward = fields.differentiable and machine.median(backward) or nil,
    plan = plan, peak = peak,
  }
end

-- ---- tables and plots -----------------------------------------------------------------------------------------------

local function cell(value, format)
  return value and format:format(value) or ""
end

local function open_table(name, note, columns)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "w"))
  local facts = machine.facts()
  file:write(("# %s, %d cores, %s, %s, %s; %s threads\n"):format(facts.processor, facts.cores, facts.system,
    facts.compiler, facts.date,
    cq.option("threads", 0) > 0 and cq.option("threads", 0) or facts.cores))
  file:write("# ", note, "\n", table.concat(columns, ","), "\n")
  return function(row)
    file:write(table.concat(row, ","), "\n")
    file:flush()
    print("  " .. table.concat(row, "  "))
    io.flush()
  end, function() file:close() end
end

-- curves over powers of ten, nan where there is no value; an axis that is not logarithmic begins at zero
local function plot(name, labels, xs, series)
  local logs, zeros, list = {}, {}, {}
  for i, x in ipairs(xs) do logs[i], zeros[i] = math.log10(x), 0 end
  for _, entry in ipairs(series) do
    local any = false
    for _, y in ipairs(entry.y) do any = any or y == y end
    if any then list[#list + 1] = { name = entry.name, x = logs, y = entry.y } end
  end
  if not labels.log_y then list[#list + 1] = { x = logs, y = zeros, colour = "#d8dce0" } end
  cq.Plot { title = labels.title, x_label = labels.x, y_label = labels.y, log_y = labels.log_y,
    series = list }:write(folder .. "/" .. name)
end

local NONE = 0 / 0

-- ---- particles ------------------------------------------------------------------------------------------------------

local function grow_particles()
  print "particles, steps, ns a particle-step: forward only, forward kept, backward; MiB kept"
  local write, close = open_table("growth_particles.csv",
    "falling block in 3D, float32, neo-Hookean; nanoseconds per particle-step; "
    .. "forward only: nothing remembered; kept and backward: every step remembered, empty where that takes more memory than allowed",
    { "particles", "cells", "steps", "forward_only_ns", "forward_kept_ns", "backward_ns", "kept_mib" })
  local xs, only, there, back = {}, {}, {}, {}
  for _, side in ipairs(SIDES) do
    local n, cells = side ^ 3, math.ceil(side / 2) + ROOM
    if n > largest then break end
    -- at least as many steps as lie between two sorts
    local steps = math.max(20, math.min(500, math.floor(4e6 / n)))
    local scene = require "scenes.falling_block" { dim = 3, side = side, cells = { cells, cells, cells } }
    local free = measure(scene, { steps = steps, repeats = repeats, differentiable = false, memory = 0 })
    local kept = measure(scene, { steps = steps, repeats = repeats, differentiable = true, memory = memory,
      kept = true })
    local scale = 1e9 / (n * steps)
    local i = #xs + 1
    xs[i], only[i], there[i], back[i] = n, free.forward * scale, kept and kept.forward * scale or NONE, kept
      and kept.backward * scale or NONE
    write { n, ("%d^3"):format(cells), steps, cell(only[i], "%.2f"), cell(kept and there[i], "%.2f"),
      cell(kept and back[i], "%.2f"),
      cell(kept and tonumber(kept.plan.bytes) / MIB, "%.0f") }
  end
  close()
  plot("growth_particles.png", { title = "A particle-step in 3D", x = "particles, power of ten", y = "ns" }, xs, {
    { name = "forward, nothing kept", y = only }, { name = "forward, kept", y = there },
    { name = "backward", y = back },
  })
end

-- ---- steps ----------------------------------------------------------------------------------------------------------

-- those within the budget first: memory that a process has had may stay with it
local function measure_lengths(fields)
  local scene = require "scenes.falling_block" { dim = 2, side = 40, cells = { 100, 100 } }
  scene.world.dt, scene.world.substeps = scene.world.dt * SUBSTEPS, SUBSTEPS
  local out = {}
  for _, length in ipairs(LENGTHS) do
    if length > longest then break end
    -- short ones are repeated until they take a while
    local found = measure(scene, { steps = length / SUBSTEPS, repeats = math.max(repeats, math.floor(3000 / length)),
      differentiable = true,
      memory = fields.memory, kept = fields.kept })
    if not found then break end
    found.ns, found.mib = (found.forward + found.backward) * 1e9 / (1600 * length), tonumber(found.plan.bytes) / MIB
    out[#out + 1] = found
  end
  return out
end

local function grow_steps()
  print(("steps; s forward, s backward, ns a particle-step both ways, forward passes, MiB of the memo and of the process within %d MiB; "
    .. "ns a particle-step and MiB of the memo with everything kept"):format(budget / MIB))
  local tight = measure_lengths { memory = budget }
  local kept = measure_lengths { memory = KEPT_MAX, kept = true }
  local write, close = open_table("growth_steps.csv",
    ("falling block in 2D, 1600 particles, 100 x 100 cells, float32, %d engine steps in "
    .. "a control step; seconds of a pass within %d MiB; process: all of its memory at its peak; kept: everything remembered"):format(
    SUBSTEPS, budget / MIB), { "steps", "forward_s", "backward_s", "ns_per_particle_step", "recompute", "memo_mib",
    "process_mib",
    "kept_ns_per_particle_step", "kept_memo_mib" })
  local xs, within, all, memo, process, kept_memo = {}, {}, {}, {}, {}, {}
  for i, m in ipairs(tight) do
    local k = kept[i]
    xs[i], within[i], memo[i], process[i] = LENGTHS[i], m.ns, m.mib, m.peak or NONE
    all[i], kept_memo[i] = k and k.ns or NONE, k and k.mib or NONE
    write { LENGTHS[i], cell(m.forward, "%.4f"), cell(m.backward, "%.4f"), cell(m.ns, "%.2f"),
      cell(m.plan.recompute, "%.2f"), cell(m.mib, "%.1f"),
      cell(m.peak, "%.1f"), cell(k and k.ns, "%.2f"), cell(k and k.mib, "%.1f") }
  end
  close()
  plot("growth_steps_time.png", { title = "A particle-step there and back, 2D, 1600 particles",
    x = "steps, power of ten", y = "ns" }, xs, {
    { name = ("within %d MiB"):format(budget / MIB), y = within }, { name = "everything kept", y = all },
  })
  plot("growth_steps_memory.png", { title = "Memory, 2D, 1600 particles", x = "steps, power of ten", y = "MiB",
    log_y = true }, xs, {
    { name = ("memo, %d MiB"):format(budget / MIB), y = memo }, { name = "its process", y = process },
    { name = "memo, everything kept", y = kept_memo },
  })
end

if what ~= "particles" and what ~= "steps" and what ~= "all" then
  error("growth: --what must be particles, steps or all, got " .. what, 0)
end
if what ~= "particles" then grow_steps() end
if what ~= "steps" then grow_particles() end
