-- network: dense layers in a table of parameters, NAME_w1, NAME_b1, NAME_w2, ... of which the last is linear.
local T = require "cq.tensor"

local network = {}

-- Random weights {inputs, outputs} whose shorter sides are orthonormal, times a gain (Saxe et al. 2014), by Gram and
-- Schmidt.
local function orthogonal(source, inputs, outputs, gain)
  local long, short = math.max(inputs, outputs), math.min(inputs, outputs)
  local rows = source:normal({ short, long }):totable()
  for i = 1, short do
    for _ = 1, 2 do                        -- the second time for rounding
      for j = 1, i - 1 do
        local dot = 0
        for k = 1, long do dot = dot + rows[i][k] * rows[j][k] end
        for k = 1, long do rows[i][k] = rows[i][k] - dot * rows[j][k] end
      end
    end
    local norm = 0
    for k = 1, long do norm = norm + rows[i][k] * rows[i][k] end
    for k = 1, long do rows[i][k] = rows[i][k] * gain / math.sqrt(norm) end
  end
  local out = T.tensor(rows)
  return inputs > outputs and out:transpose(1, 2):copy() or out
end

---Adds the parameters of a network to params: orthogonal weights with the gain sqrt 2 in hidden layers, biases of 0.
---@param params table<string, cq.Tensor>
---@param name string
---@param source cq.Random
---@param sizes integer[]     inputs, units of hidden layers, outputs
---@param gain number         of the last layer
function network.add(params, name, source, sizes, gain)
  for k = 1, #sizes - 1 do
    local own = k == #sizes - 1 and gain or math.sqrt(2)
    params[name .. "_w" .. k] = T.param(orthogonal(source, sizes[k], sizes[k + 1], own))
    params[name .. "_b" .. k] = T.param(T.zeros { sizes[k + 1] })
  end
end

---Widths of all layers of a network in one list: inputs, hidden layers, outputs.
---@param inputs integer
---@param hidden integer[]
---@param outputs integer
---@return integer[] sizes
function network.sizes(inputs, hidden, outputs)
  local out = { inputs }
  for _, width in ipairs(hidden) do out[#out + 1] = width end
  out[#out + 1] = outputs
  return out
end

---Outputs of the network NAME for inputs x.
---@param params table<string, cq.Tensor>
---@param name string
---@param x cq.Tensor          {..., inputs}
---@param activation "tanh"|"elu"   of hidden layers
---@return cq.Tensor           {..., outputs}
function network.evaluate(params, name, x, activation)
  local k = 1
  while params[name .. "_w" .. k + 1] do
    x = x:dense(params[name .. "_w" .. k], params[name .. "_b" .. k], activation)
    k = k + 1
  end
  return x:dense(params[name .. "_w" .. k], params[name .. "_b" .. k])
end

return network
