-- checkpoint: states of chosen iterations that a run keeps beside the last one, in checkpoints/: forks begin there.
local host = require "cq.host"
local schema = require "cq.base.schema"
local tensor = require "cq.tensor"

local checkpoint = {}

---The path of the checkpoint file of an iteration, which need not exist.
---@param folder string       of the run
---@param iteration integer
---@return string
function checkpoint.path(folder, iteration) return ("%s/checkpoints/%06d.bin"):format(folder, iteration) end

---Writes a state to the folder of a run as a checkpoint. Errors: the folder cannot be made, or the file not written.
---@param folder string
---@param state { iteration: integer, params: table, optimizer: table }
function checkpoint.write(folder, state)
  local made, problem = host.make_folder(folder .. "/checkpoints")
  if not made then schema.fail("the folder %s/checkpoints cannot be made: %s", folder, tostring(problem)) end
  tensor.save(checkpoint.path(folder, state.iteration), state)
end

---The iterations whose checkpoints a run's folder has, ascending.
---@param folder string
---@return integer[]
function checkpoint.list(folder)
  local out = {}
  for _, name in ipairs(host.entries(folder .. "/checkpoints") or {}) do
    out[#out + 1] = tonumber(name:match "^(%d+)%.bin$")
  end
  table.sort(out)
  return out
end

---Removes the checkpoints after an iteration, since a resumed run will make those iterations again.
---@param folder string
---@param iteration integer
function checkpoint.remove_after(folder, iteration)
  for _, other in ipairs(checkpoint.list(folder)) do
    if other > iteration then os.remove(checkpoint.path(folder, other)) end
  end
end

return checkpoint
