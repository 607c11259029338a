-- machine: the machine that figures were measured on, and medians of figures.
local host = require "cq.host"
local quantile = require "cq.base.quantile"
local read_file = require "cq.base.read_file"

local machine = {}

---Name of the processor, its cores, the system and the number of its release, the compiler and the day, for
---tables and files of results.
---@return { processor: string, cores: integer, system: string, compiler: string, date: string }
function machine.facts()
  local all = read_file "/proc/cpuinfo" or ""
  local system = (host.system() or "unknown"):match "^%a+ ?[%d.]*"
  return {
    processor = all:match "model name%s*:%s*([^\n]*)" or jit.arch, cores = host.processors(), system = system,
    compiler = host.compiler, date = os.date "%Y-%m-%d",
  }
end

machine.median = quantile.median

---The least number of a list; nil for an empty one.
---@param values number[]
---@return number?
function machine.least(values)
  local least = values[1]
  for _, value in ipairs(values) do least = math.min(least, value) end
  return least
end

return machine
