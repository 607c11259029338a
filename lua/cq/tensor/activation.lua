-- activation: the engine's numbers of the activation functions that follow a layer; -1: none.
local C = require("cq.base.engine").C

---@type table<string, integer>
return {
  relu = tonumber(C.CQ_UNARY_RELU), tanh = tonumber(C.CQ_UNARY_TANH), softplus = tonumber(C.CQ_UNARY_SOFTPLUS),
  sigmoid = tonumber(C.CQ_UNARY_SIGMOID), elu = tonumber(C.CQ_UNARY_ELU), none = -1,
}
