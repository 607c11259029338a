-- convolution: strided and transposed convolutions in one, two and three dimensions.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local engine = require "cq.base.engine"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local activations = require "cq.tensor.activation"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local C = engine.C

local Tensor = class.methods
local adjoint, fail = class.adjoint, schema.fail

local LARGEST = 2 ^ 20           -- pixels of an option: products of these and of sizes stay whole numbers

-- Makes the checker of an option of a convolution: a whole number, or a list of one for each axis, of at least `least`.
-- default: the value where the option is not given.
local function along(least, default)
  return schema.any_of { schema.integer { min = least, max = LARGEST },
    schema.vector { size = { 2, 3 }, integer = true, min = least, max = LARGEST }, default = default }
end

local fields = { bias = schema.tensor { optional = true }, stride = along(1, 1), padding = along(0, 0),
  dilation = along(1, 1), activation = schema.one_of { "relu", "tanh", "softplus", "sigmoid", "elu", "none",
    default = "none" } }
local options = schema.define("conv", fields)
local transposed_options = schema.define("conv_transpose",
  tables.merged(fields, { output_padding = along(0, 0) }))

---@class cq.ConvolutionOptions
---@field bias? cq.Tensor                {channels_out}, added to each channel
---@field stride? integer|integer[]      pixels between neighbouring places of the kernel, default 1; or one along each axis
---@field padding? integer|integer[]     zeros added on both sides, default 0; or along each axis
---@field dilation? integer|integer[]    pixels between neighbouring entries of the kernel, default 1; or along each axis
---@field activation? "relu"|"tanh"|"softplus"|"sigmoid"|"elu"|"none"   of the result, default none

---@class cq.TransposedConvolutionOptions : cq.ConvolutionOptions
---@field output_padding? integer|integer[]   pixels that the output has more at the end of each axis, below stride or dilation, default 0

-- ---- shapes ---------------------------------------------------------------------------------------------------------

local AXES = { "length", "h, w", "d, h, w" }
local TAPS = { "width", "kh, kw", "kd, kh, kw" }

-- Raises an error if an input x or a kernel w is no tensor, or has another rank than an n-dimensional convolution
-- takes. channels: a kernel's first two sizes in words.
local function check_ranks(what, n, x, w, channels)
  class.check_tensor(x, what)
  class.check_tensor(w, what)
  if w.rank ~= n + 2 then
    fail("%s: the kernel must be {%s, %s}, got shape %s", what, channels, TAPS[n], class.shape_text(w.dims))
  end
  if x.rank ~= n + 2 and x.rank ~= n + 1 then
    fail("%s: the input must be {channels, %s}, or a batch of these, got shape %s", what, AXES[n],
      class.shape_text(x.dims))
  end
end

-- The engine's struct of an n-dimensional convolution with the kernel w, sizes of the input not yet set. The engine has
-- three dimensions: the missing ones come first, with a kernel of 1. Errors: an option of a wrong length.
local function convolution_of(what, n, w, opts)
  local conv = ffi.new "cq_convolution"
  conv.out, conv["in"] = w.dims[1], w.dims[2]
  for _, name in ipairs { "stride", "padding", "dilation", "output_padding" } do
    local value = opts[name]
    if type(value) == "table" and #value ~= n then
      fail("%s: %s must be one whole number%s, got %d", what, name, n > 1 and (" or %d"):format(n) or "", #value)
    end
  end
  for d = 1, 3 do
    local axis = d - (3 - n)
    conv.size[d - 1], conv.kernel[d - 1] = 1, axis > 0 and w.dims[2 + axis] or 1
    for _, name in ipairs { "stride", "padding", "dilation" } do
      local value = opts[name]
      conv[name][d - 1] = axis < 1 and (name == "padding" and 0 or 1) or type(value) == "table" and value[axis] or value
    end
  end
  return conv
end

-- Raises an error if a bias is no tensor {channels}.
local function check_bias(what, channels, bias)
  if bias and (bias.rank ~= 1 or bias.count ~= channels) then
    fail("%s: the bias must have shape {%d}, one for each output channel, got %s", what, channels,
      class.shape_text(bias.dims))
  end
end

local rows = ffi.new "cq_channels"

-- Fills the shared struct of the result y {batch, channels, ...} of a convolution, for an activation's number; returns
-- it.
local function set_rows(y, number)
  rows.batch, rows.channels, rows.activation = y.dims[1], y.dims[2], number
  rows.count = y.count / math.max(y.dims[1] * y.dims[2], 1)
  return rows
end

-- Adjoint of a convolution with its bias and activation: adds to the gradients of the input, the kernel and the bias;
-- overwrites `gradient` with that before the activation.
local function back(node, gradient)
  local extra = node.extra
  if extra.bias or extra.activation >= 0 then
    C.cq_tensor_activate_adj(set_rows(node.out, extra.activation), node.out.pointer,
      extra.bias and adjoint(extra.bias) or nil, gradient)
  end
  extra.way.back(node.a, node.b, extra.conv, gradient)
end

-- The convolution of x with the kernel w, recorded on the tape. way: `straight` or `transposed`, with its options, the
-- kernel's channels in words (channels), the place of the input's channels in the kernel (takes), size, run and back.
local function apply(way, what, n, x, w, opts)
  local given = x
  check_ranks(what, n, x, w, way.channels)
  opts = way.options(opts or {})
  if x.rank == n + 1 then x = x:unsqueeze(1) end
  if w.dims[way.takes] ~= x.dims[2] then
    fail("%s: the input has %s and the kernel takes %d", what, text.count(x.dims[2], "channel"), w.dims[way.takes])
  end
  local conv, dims = convolution_of(what, n, w, opts), { x.dims[1], w.dims[3 - way.takes] }
  conv.batch = x.dims[1]
  for axis = 1, n do
    local d, more = axis + 2 - n, opts.output_padding
    local size = way.size(what, conv, d, x.dims[2 + axis], type(more) == "table" and more[axis] or more)
    if size < 1 or conv.kernel[d] == 0 then
      fail("%s: a kernel of shape %s %s an input of shape %s", what, class.shape_text(w.dims), way.refusal,
        class.shape_text(given.dims))
    end
    dims[2 + axis] = size
  end
  check_bias(what, dims[2], opts.bias)
  local y, number = class.make(dims), activations[opts.activation]
  engine.check(way.run(conv, x, w, y), what)
  if opts.bias or number >= 0 then
    C.cq_tensor_activate(set_rows(y, number), opts.bias and opts.bias.pointer, y.pointer)
  end
  if tape.wants(x, w) or opts.bias and tape.wants(opts.bias) then
    tape.hold_plain(x, w)
    y = tape.push(back, y, x, w, { way = way, conv = conv, bias = opts.bias, activation = number })
  end
  return given.rank == n + 1 and y:squeeze(1) or y
end

local straight = { options = options, channels = "channels_out, channels_in", takes = 2,
  refusal = "does not fit into" }

-- The size of a strided convolution's result along axis d, from 0, for the size `width` of its input, which it sets in
-- conv; 0 where the kernel does not fit.
function straight.size(_, conv, d, width)
  conv.size[d] = width
  local room = width + 2 * conv.padding[d] - conv.dilation[d] * (conv.kernel[d] - 1) - 1
  return room < 0 and 0 or tonumber(room / conv.stride[d]) + 1
end

-- Runs a strided convolution of x with the kernel w into y; returns the engine's status.
function straight.run(conv, x, w, y) return C.cq_tensor_convolve(conv, x.pointer, w.pointer, y.pointer) end

-- Adjoint of a strided convolution: adds to the gradients of the input and the kernel.
function straight.back(x, w, conv, gradient)
  engine.check(C.cq_tensor_convolve_adj(conv, x.pointer, w.pointer, adjoint(x), adjoint(w), gradient), "conv")
end

local transposed = { options = transposed_options, channels = "channels_in, channels_out", takes = 1,
  refusal = "leaves nothing of" }

-- The size of a transposed convolution's result along axis d, from 0, for the size `width` of its input, which it sets
-- in conv; more: output_padding. Errors: that is below neither the stride nor the dilation.
function transposed.size(what, conv, d, width, more)
  if more >= math.max(tonumber(conv.stride[d]), tonumber(conv.dilation[d])) then
    fail("%s: output_padding must be below the stride or the dilation, got %d", what, more)
  end
  conv.size[d] = (width - 1) * conv.stride[d] - 2 * conv.padding[d] + conv.dilation[d] * (conv.kernel[d] - 1) + more + 1
  return tonumber(conv.size[d])
end

-- Runs a transposed convolution, the adjoint of a strided one, of x with w into y; returns the engine's status.
function transposed.run(conv, x, w, y)
  y:fill(0)
  return C.cq_tensor_convolve_adj(conv, nil, w.pointer, y.pointer, nil, x.pointer)
end

-- Adjoint of a transposed convolution: adds to the gradients of the input and the kernel. y = K^T x, where K is the
-- convolution from y's side to x's: dx = K dy, and dw is that of K with dy in and x out.
function transposed.back(x, w, conv, gradient)
  local to_x, to_w = adjoint(x), adjoint(w)
  if to_x then
    conv.accumulate = 1
    engine.check(C.cq_tensor_convolve(conv, gradient, w.pointer, to_x), "conv_transpose")
  end
  if to_w then
    engine.check(C.cq_tensor_convolve_adj(conv, gradient, w.pointer, nil, to_w, x.pointer), "conv_transpose")
  end
end

-- ---- methods --------------------------------------------------------------------------------------------------------

---Cross-correlation of a signal {channels_in, length}, or a batch of them, with kernels.
---@param kernel cq.Tensor  {channels_out, channels_in, width}
---@param opts? cq.ConvolutionOptions
---@return cq.Tensor        {channels_out, length'}, with the batch in front if there was one
function Tensor:conv1d(kernel, opts) return apply(straight, "conv1d", 1, self, kernel, opts) end

---Cross-correlation of a picture {channels_in, h, w}, or a batch of them, with kernels.
---@param kernel cq.Tensor  {channels_out, channels_in, kh, kw}
---@param opts? cq.ConvolutionOptions
---@return cq.Tensor        {channels_out, h', w'}, with the batch in front if there was one
function Tensor:conv2d(kernel, opts) return apply(straight, "conv2d", 2, self, kernel, opts) end

---Cross-correlation of a volume {channels_in, d, h, w}, or a batch of them, with kernels.
---@param kernel cq.Tensor  {channels_out, channels_in, kd, kh, kw}
---@param opts? cq.ConvolutionOptions
---@return cq.Tensor        {channels_out, d', h', w'}, with the batch in front if there was one
function Tensor:conv3d(kernel, opts) return apply(straight, "conv3d", 3, self, kernel, opts) end

---Transposed convolution of a picture {channels_in, h, w}, or a batch, the adjoint of conv2d with the same kernel and
---options: a stride of 2 doubles the size. h' = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
---@param kernel cq.Tensor  {channels_in, channels_out, kh, kw}
---@param opts? cq.TransposedConvolutionOptions
---@return cq.Tensor        {channels_out, h', w'}, with the batch in front if there was one
function Tensor:conv_transpose2d(kernel, opts) return apply(transposed, "conv_transpose2d", 2, self, kernel, opts) end

---Transposed convolution of a volume {channels_in, d, h, w}, or a batch, as conv_transpose2d: the adjoint of conv3d.
---@param kernel cq.Tensor  {channels_in, channels_out, kd, kh, kw}
---@param opts? cq.TransposedConvolutionOptions
---@return cq.Tensor        {channels_out, d', h', w'}, with the batch in front if there was one
function Tensor:conv_transpose3d(kernel, opts) return apply(transposed, "conv_transpose3d", 3, self, kernel, opts) end

return Tensor
