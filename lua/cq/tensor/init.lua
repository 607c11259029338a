-- tensor: arrays of numbers with reverse-mode gradients; what users write observers, controllers and objectives in.
--
-- A tensor is float64, row-major and contiguous, with up to 6 dimensions; rank 0 is one number. Dimensions and indices
-- count from 1, negative ones from the end. An operation makes a new tensor; only t:set, t[i] = x, t:fill, t:copy_from and
-- optimizers write in place. Numbers stand for rank 0 tensors everywhere, and shapes broadcast as in NumPy: aligned at
-- the last dimension, size 1 stretches. A wrong shape is an error at the user's line.
--
-- Making them (all also fields of cq):
--   tensor { {1,2}, {3,4} }   tensor(3.5)   from nested tables of numbers or tensors, from a number, or a copy of a tensor
--   zeros{n,m} ones{n,m} full({n,m}, v)     a shape is a table; zeros(n) is zeros{n}; {} is rank 0
--   empty{n,m}                              not initialised: for engine code that fills t:data()
--   eye(n)  arange(first, last, step)       range is the same; both ends included: arange(1, 3) is {1, 2, 3}
--   param(value, { min=, max= })            a trainable leaf; p.trainable is true, p.bounds { min=, max= }
--   concat({a, b}, dim=1)  stack({a, b}, dim=1)  concat{ a, 2.5, b } also takes numbers and rank 0: they are joined as {1}
--   is_tensor(v)   as_tensor(v)             as_tensor gives tensors back as they are
--
-- Looking at them:
--   t:shape() a table   t:size(dim) a number, t:size() the count of all   t.rank   t.count   t:data() double*, valid while
--   t lives   t:item() the number of a one-element tensor   t:get(i, j) a number   t:set(v, i, j)   t:totable()
--   t[i] is ALWAYS a tensor of one rank less (rank 0 for a vector), recorded or not, so that objectives read the same in
--   both; t:get(i) is the number, and "x = " .. t[1] works. Lua cannot compare tensors with numbers nor take #t: write
--   t:item() < 3 and t:size(1)
--   t:rows() iterates: for i, row in t:rows() do
--   t:equal(o) same shape and bits   t:close(o, relative=1e-9, absolute=0)   t:finite() no nan or inf
--
-- Elementwise, broadcasting: + - * / ^ and unary minus; t:pow(x) t:minimum(o) t:maximum(o) t:atan2(o)
--   t:less(o) t:less_equal(o) t:greater(o) t:greater_equal(o) t:equals(o): 1 or 0, without gradient
--   sqrt exp log sin cos tan asin acos atan tanh sigmoid relu softplus abs neg square; sign floor round have no gradient
--   t:clamp(min, max): either may be nil; where(mask, a, b) or mask:select(a, b)
-- Reductions: t:sum(dim, keep) and likewise mean max min prod norm logsumexp; dim nil is all, or a list of dims; keep
--   leaves size 1. t:argmax(dim) t:argmin(dim) without gradient. t:cumsum(dim=1) t:softmax(dim=-1) t:log_softmax(dim=-1)
-- Products: a:matmul(b) for vectors, matrices, and batches of matrices {..., n, k} x {..., k, m}; a:dot(b) of two vectors;
--   x:dense(w, b, "tanh") is x:matmul(w) + b, then tanh (or relu, softplus, sigmoid, nothing), in one operation
--   x:conv1d(w, { bias=, stride=1, padding=0, dilation=1 }), x {channels_in, length} or {batch, channels_in, length},
--   w {channels_out, channels_in, width}; x:conv2d(w, opts) with {h, w}: opts as numbers or {y, x}
-- Layout: t:reshape{...} (one -1 is inferred) t:flatten() t:transpose(i=-2, j=-1) t:permute{...} t:unsqueeze(dim)
--   t:squeeze(dim) (of these, all but transpose and permute share memory with t, as t:detach() does)
--   t:slice(i, j=-1, dim=1) both ends included   t:slice_columns(i, j) of the last dimension
--   t:gather({i, ...}, dim=1) t:expand{...} t:pad({before, after}, dim=1, value=0) t:repeated(n, dim=1) t:copy() t:detach()
--
-- Subgradients at kinks: abs and relu 0 at 0; clamp 1 on its bounds; minimum and maximum give all to the first operand at
-- a tie; max, min give all to the first of equals; norm 0 at the zero vector; sqrt and pow are infinite where they are,
-- but an element that the objective does not depend on has gradient 0 also there: where(x:greater(0), x:sqrt(), 0) is safe.
--
-- Gradients (tape.lua, gradient.lua):
--   value_and_grad(f)(p, ...)   p: a param or any nesting of tables. f gets p and the further arguments, and returns the
--     loss (rank 0 tensor, or one-element) and whatever else. Gives loss (number), grads (shape of p, only trainables), and
--     f's further results, as plain data. Trainable are the params in p; all tensors in p if it has no param. A trainable
--     that does not reach the loss is an error, an exactly zero gradient a warning (tensor.warn, once for each name).
--   grad(f) gives grads first, then the loss.
--   check_gradient(f, p, opts) compares with central differences; see check.lua.
--   t.requires_grad; t.grad the accumulated gradient or nil; t:accumulate(g) adds to it (g nil: nothing); t:zero_grad().
--
-- Tapes, for engine operations and rollouts:
--   tape.new(); tape.with(tape, f, ...) records f on it; tape.pause(f, ...) records nothing; tape.recording() the tape or nil
--   tape:backward(outputs, grads): lists (or one) of tensors; grads entries may be nil (false in lists: no gradient there).
--     Goes over this tape's operations only, newest first. What reaches tensors made outside adds to their .grad, and flows
--     on when their own tape goes backward. The tape is empty afterwards.
--   tape.custom { outputs = {...}, backward = function(g1, g2, ...) end, name = "rollout" }: marks the outputs as results of
--     an operation on the recording tape; a g is nil if nothing reached that output. backward must call input:accumulate(g)
--     for what it depends on (accumulate ignores inputs that need no gradient). Not called if nothing reached any output.
--     Outside recording it does nothing. Gives the outputs back.
--
-- Files: save(path, table), load(path) (file.lua).
local class = require "cq.tensor.class"
require "cq.tensor.elementwise"
require "cq.tensor.reduction"
require "cq.tensor.product"
require "cq.tensor.compare"
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
  grad = gradient.grad, value_and_grad = gradient.value_and_grad,
  check_gradient = require "cq.tensor.check",
  save = file.save, load = file.load,
  bytes = storage.bytes,
  Tensor = methods,                     -- the methods, for those who add their own
}

-- methods that read better as functions of several equals
tensor.pad = methods.pad
tensor.minimum, tensor.maximum = methods.minimum, methods.maximum

---mask:select(a, b) with the order of a sentence: where(x:less(0), a, b).
---@param mask cq.Tensor
---@param a cq.Tensor|number
---@param b cq.Tensor|number
---@return cq.Tensor
function tensor.where(mask, a, b)
  return methods.select(class.check_tensor(mask, "where"), a, b)
end

---Called with a sentence when a gradient is suspicious. Replace it to hear of it elsewhere.
---@param sentence string
---@return false?            it was not told: say it again when it comes again
function tensor.warn(sentence)
  require("cq.message").warn("%s", sentence)
end

return setmetatable(tensor, { __call = function(_, value) return make.tensor(value) end })
