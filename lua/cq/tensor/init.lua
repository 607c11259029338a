-- tensor: arrays of numbers with reverse-mode gradients; what users write observers, controllers and objectives in.
--
-- A tensor is float64, row-major and contiguous, with up to 6 dimensions; rank 0 is one number. Dimensions and indices
-- count from 1, negative ones from the end. An operation makes a new tensor; only t:set, t[i] = x, t:fill, t:copy_from
-- and optimizers write in place. Numbers stand for rank 0 tensors everywhere, and shapes broadcast as in NumPy: aligned
-- at the last dimension, size 1 stretches. A wrong shape is an error at the user's line.
--
--   local x = cq.tensor { { 1, 2 }, { 3, 4 } }       also zeros, ones, full, eye, arange, param, concat, stack
--   x[1]                            a row: always a tensor of one rank less, rank 0 for a vector; a copy, to be read
--   x:get(1, 2)  x:item()           a number; item is for a tensor of one element
--   x:set(5, 1, 2)  x[1] = { 5, 6 } a number and a row of x, in place; x[1][2] = 5 is an error
--   x * 2 + 1   -x   x ^ 2   1 / x  elementwise, as x:exp(), x:relu(), x:minimum(y), cq.where(mask, x, y)
--   x:sum()  x:mean(1)  x:max(-1)   over all dimensions, over the first, over the last
--   x:matmul(x)  x:dense(w, b, "tanh")  x:reshape { 4 }  x:slice(1, 2)  cq.concat { x, x }
--   for i, row in x:rows() do
--
-- Lua cannot compare tensors with numbers, take #t (it is 0) or walk t with ipairs (it ends at once): write
-- t:item() < 3, t:size(1) and t:rows(). t[1] == 3 is false and `if t[1] then` is true of any tensor. t:less(3) compares
-- each element, to 1 or 0 without a gradient. "x = " .. t[1] works. reshape, flatten, unsqueeze, squeeze and detach
-- share memory with their tensor.
--
-- Subgradients at kinks: abs and relu 0 at 0; clamp 1 on its bounds; minimum and maximum give all to the first
-- operand at a tie; max, min give all to the first of equals; norm 0 at the zero vector; sqrt and pow are infinite
-- where they are, but an element that the objective does not depend on has gradient 0 also there:
-- where(x:greater(0), x:sqrt(), 0) is safe.
--
-- Gradients come from cq.value_and_grad, which gives them in the shape of the parameters; cq.check_gradient compares
-- them with differences. Beneath are tapes (cq.tape), for operations whose adjoint is a user's own.
local class = require "cq.tensor.class"
require "cq.tensor.elementwise"
require "cq.tensor.reduction"
require "cq.tensor.product"
require "cq.tensor.convolution"
require "cq.tensor.compare"
require "cq.tensor.splat"
require "cq.tensor.interpolate"
local layout = require "cq.tensor.layout"
local make = require "cq.tensor.make"
local gradient = require "cq.tensor.gradient"
local file = require "cq.tensor.file"
local storage = require "cq.tensor.storage"

local methods = class.methods

---Calling the module is tensor.tensor: tensor { 1, 2, 3 }.
---@class cq.TensorModule
---@overload fun(value: number|table|cq.Tensor): cq.Tensor
local tensor = {
  tensor = make.tensor, as_tensor = make.as_tensor, is_tensor = class.is_tensor,
  zeros = make.zeros, ones = make.ones, full = make.full, empty = make.empty, eye = make.eye,
  arange = make.arange, range = make.range, param = make.param,
  concat = layout.concat, stack = layout.stack,
  tape = require "cq.tensor.tape",
  leaves = require "cq.tensor.leaves",
  grad = gradient.grad, value_and_grad = gradient.value_and_grad, values_and_grads = gradient.values_and_grads,
  check_gradient = require "cq.tensor.check",
  save = file.save, load = file.load,
  bytes = storage.bytes,
  Tensor = methods,                     -- the methods, for those who add their own
}

-- methods that read better as functions of several equals
tensor.pad = methods.pad
tensor.minimum, tensor.maximum = methods.minimum, methods.maximum

---mask:select(a, b) with the order of a sentence: where(x:less(0), a, b).
---@param mask cq.Tensor       0, or anything else
---@param a cq.Tensor|number   where the mask is not 0
---@param b cq.Tensor|number   where it is 0
---@return cq.Tensor
function tensor.where(mask, a, b)
  return methods.select(class.check_tensor(mask, "where"), a, b)
end

---Called with a sentence when a gradient is suspicious; prints it as a warning. Replace this function to send warnings
---elsewhere.
---@param sentence string
---@return false?            it was not told: say it again when it comes again
function tensor.warn(sentence)
  require("cq.base.message").warn("%s", sentence)
end

return setmetatable(tensor, { __call = function(_, value) return make.tensor(value) end })
