-- scene: one scene of a batch, as a rollout of it alone. The whole batch is what is simulated and released.
local Scene = {}

-- The initial state of this scene, a cq.State.
function Scene:start() return self.whole:start():scene(self.number) end

-- Frees the whole batch, not this scene alone.
function Scene:release() self.whole:release() end

-- tensors of each control step {steps, batch, ...}, or numbers {batch}, of one scene
local axis_of = { running = 2, record = 2, work = 2, signals = 2, effort = 1 }

---@param whole cq.Rollout     with a batch
---@param k integer            from 1
---@return cq.Rollout
return function(whole, k)
  local self = { whole = whole, number = k, batch = 1, batched = false, state = whole.state:scene(k) }
  for name, axis in pairs(axis_of) do
    local all = whole[name]
    if all and all.rank >= axis then self[name] = all:slice(k, k, axis):squeeze(axis) end
  end
  if whole.contact then
    self.contact = {}
    for name, all in pairs(whole.contact) do self.contact[name] = all:slice(k, k, 2):squeeze(2) end
  end
  local meta = { __name = "cq.Rollout", __recorded = getmetatable(whole).__recorded }
  -- Methods of one scene, then what the whole batch has.
  function meta.__index(_, key)
    local own = Scene[key]
    if own ~= nil then return own end
    return whole[key]
  end
  return setmetatable(self, meta)
end
