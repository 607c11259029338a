-- info: what this program is and what it found here.      cqlua info [--json]
local ffi = require "ffi"
local engine = require "cq.base.engine"
local first_line = require "cq.base.first_line"
local host = require "cq.host"
local read_file = require "cq.base.read_file"
local json = require "cq.base.json"
local option = require "cq.option"
local schema = require "cq.base.schema"

local C, is = engine.C, schema

-- A list of the vector instructions of this processor that the engine has kernels for, and the processor's name, nil
-- where it is not known.
local function instruction_sets()
  local all = read_file "/proc/cpuinfo" or ""
  local flags = " " .. (all:match "flags%s*:([^\n]*)" or "") .. " "
  local found = {}
  if jit.arch == "x64" then
    found[1] = "baseline"
    if flags:find(" avx2 ", 1, true) and flags:find(" fma ", 1, true) then found[#found + 1] = "avx2" end
    if flags:find(" avx512f ", 1, true) and flags:find(" avx512vl ", 1, true) then found[#found + 1] = "avx512" end
  else
    found[1] = jit.arch
  end
  return found, all:match "model name%s*:%s*([^\n]*)"
end

-- The engine that a CPU world has here in words: instruction set, threads and precision; the error's text where none
-- can be made.
local function engine_of()
  local cq = require "cq"
  local material = cq.Material.neo_hookean { young = 1, poisson = 0, density = 1 }
  local grain = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, count = { 1, 1 } }, material = material }
  local fine, world = pcall(cq.World, { cells = { 8, 8 }, dx = 0.1, dt = 1e-3, device = "cpu", grain:at { 0.4, 0.4 } })
  if not fine then return tostring(world) end
  local name = world.device
  world:close()
  return name
end

-- OpenBLAS's description of itself, e.g. "OpenBLAS 0.3.21 ... SkylakeX MAX_THREADS=64"; the tensors link it. nil: the
-- program is linked with another BLAS.
local function openblas()
  ffi.cdef "char *openblas_get_config(void);"
  local found, config = pcall(function() return ffi.string(C.openblas_get_config()) end)
  return found and config or nil
end

-- A list of the GPUs, { kind, name, memory, ... } each, and a sentence why there are no more, if the engine finds none.
local function gpus()
  local gpu, found = ffi.new "cq_gpu", {}
  local status = tonumber(C.cq_gpu_find(0, gpu))
  if status ~= C.CQ_OK then return found, ffi.string(C.cq_error()) end
  for index = 1, gpu.count do
    if tonumber(C.cq_gpu_find(index - 1, gpu)) ~= C.CQ_OK then return found, ffi.string(C.cq_error()) end
    found[index] = {
      kind = "cuda", name = ffi.string(gpu.name), memory = tonumber(gpu.memory),
      memory_available = tonumber(gpu.memory_available),
      processors = gpu.processors, compute = gpu.compute / 10, driver = gpu.driver / 1000, runtime = gpu.runtime / 1000,
    }
  end
  return found
end

-- A device as one line of text.
local function device_text(device)
  if device.kind == "cpu" then return "cpu" end
  return ("cuda: %s, %.1f of %.1f GiB free, compute capability %.1f, driver of CUDA %.1f"):format(device.name,
    device.memory_available / 2 ^ 30,
    device.memory / 2 ^ 30, device.compute, device.driver)
end

-- Facts about program, machine and devices, as a table by the names of --json.
local function collect()
  local system, name = host.system()
  local sets, processor = instruction_sets()
  local video = first_line "ffmpeg -version"
  local devices, why_none = gpus()
  table.insert(devices, 1, { kind = "cpu", name = processor })
  return {
    version = host.version, abi = C.CQ_ABI, lua = jit.version, system = system, host = name, processor = processor,
    instruction_sets = sets, engine = engine_of(), threads = option.program.threads > 0 and option.program.threads
      or host.processors(),
    memory_available = tonumber(C.cq_memory_available()), devices = devices, no_cuda = why_none,
    precisions = { "float32", "float64" },
    openblas = openblas(), ffmpeg = video and video:match "version (%S+)", root = host.root,
  }
end

local shown = {
  { "version", "cqlua" }, { "abi", "engine ABI" }, { "lua", "Lua" }, { "system", "system" },
  { "processor", "processor" },
  { "instruction_sets", "instructions" }, { "engine", "runs on" }, { "threads", "threads" },
  { "memory_available", "free memory" }, { "devices", "devices" },
  { "precisions", "precisions" }, { "openblas", "matrix products" }, { "ffmpeg", "ffmpeg" }, { "root", "library" },
}

return {
  summary = "versions, devices, instruction sets",
  options = { json = is.boolean { default = false, help = "as one JSON object" } },
  -- The subcommand: prints the facts, or one line of JSON.
  run = function(options)
    local facts = collect()
    if options.json then
      print(json.encode(facts, { "version", "abi" }))
      return
    end
    local devices = facts.devices
    facts.devices = {}
    for k, device in ipairs(devices) do facts.devices[k] = device_text(device) end
    if facts.no_cuda then facts.devices[#devices + 1] = ("no cuda (%s)"):format(facts.no_cuda) end
    for _, entry in ipairs(shown) do
      local value = facts[entry[1]]
      if type(value) == "table" then value = table.concat(value, ", ") end
      if entry[1] == "memory_available" then value = ("%.1f GiB"):format(value / 2 ^ 30) end
      if entry[1] == "ffmpeg" and not value then value = "not found: pictures are kept, videos are not made" end
      print(("%-16s %s"):format(entry[2], value ~= nil and tostring(value) or "not found"))
    end
  end,
}
