-- capacity: refuses arrays that would not fit into memory before they are allocated. An allocation itself seldom fails:
-- Linux promises more memory than there is, and kills the process that writes to it.
local engine = require "cq.base.engine"
local schema = require "cq.base.schema"

local capacity = {}

local WORTH_A_LOOK = 2 ^ 28      -- [byte] below this nobody asks what is free

local units = { { "TiB", 2 ^ 40 }, { "GiB", 2 ^ 30 }, { "MiB", 2 ^ 20 }, { "KiB", 2 ^ 10 } }

---An amount of memory as text for people, such as "1.5 GiB".
---@param bytes number
---@return string
function capacity.text(bytes)
  for _, unit in ipairs(units) do
    if bytes >= 999.5 / 1024 * unit[2] then return ("%.3g %s"):format(bytes / unit[2], unit[1]) end
  end
  return ("%d B"):format(bytes)
end

---Raises an error at the user's line if `count` doubles do not fit into the free memory.
---@param count number       of doubles
---@param what string        what needs them, for the error: "cq.Controller.mlp: layers of 1000000000 units"
function capacity.require(count, what)
  local bytes = 8 * count
  if bytes < WORTH_A_LOOK then return end
  local free = tonumber(engine.C.cq_memory_available())
  if bytes <= free then return end
  schema.fail("%s would take %s at least, and %s of memory are free", what, capacity.text(bytes), capacity.text(free))
end

return capacity
