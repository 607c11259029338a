-- tape: remembers the operations of a computation in order, and goes over them backward to carry gradients
-- from results to what they were made of. Tapes nest: an operation on one tape may, in its backward
-- function, record and reverse another.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local storage = require "cq.tensor.storage"

---A record of operations, from cq.tape.new.
---@class cq.Tape
---@field count integer      operations recorded
local Tape = { __name = "cq.Tape" }
Tape.__index = Tape

local tape = {}

local current = nil               ---@type cq.Tape?  where operations are recorded; nil: nowhere
local open = {}                   ---@type cq.Tape[]  whose recording has not ended, also where it pauses
local reversing = {}              ---@type cq.Tape[]  through which a backward pass goes

---Why the last backward pass over an operation of cq.tape.custom gave another gradient than that of what was computed.
---@internal
---@type string?
tape.altered = nil

---What an operation says of why what it computes may jump nearby.
---@internal
---@type string?
tape.remark = nil

---An empty tape. It records while tape.with runs.
---@return cq.Tape
function tape.new()
  return setmetatable({ count = 0 }, Tape)
end

---The tape that records now, nil if none does.
---@return cq.Tape?
function tape.recording() return current end

---@internal
---By what a result that is kept for later is recorded: the same value until the tape that records now is emptied, after
---which its tensors have no gradient any more; nil if none records.
---@return table?
function tape.mark()
  if not current then return nil end
  current.marked = current.marked or {}
  return current.marked
end

-- Ends a recording: makes the tape `before` the present one again, with `count` open ones, and returns the results, or
-- raises the error.
local function finish(before, count, ok, ...)
  current, open[count + 1] = before, nil
  if not ok then error((...), 0) end
  return ...
end

---A list of the arguments with their number n, which counts nils.
---@param ... any
---@return { n: integer, [integer]: any }
function tape.pack(...) return { n = select("#", ...), ... } end

---A handler for xpcall: LuaJIT's error of a yield across C code as a sentence at the line of the yield; other errors
---unchanged.
---@param problem any
---@return any
function tape.explain(problem)
  local crossed = type(problem) == "string" and problem:find("attempt to yield across C-call boundary", 1, true)
  if not crossed then return problem end
  return schema.remember(schema.where() .. "coroutine.yield: a coroutine cannot be left while a gradient is computed in "
    .. "it; what it left would be lost to the gradient")
end

-- Runs f(...) so that a coroutine cannot be left in it, and returns its results: whoever resumed it would go on with
-- the recording of another, and one that is never resumed would leave it on for good. A yield cannot cross a function
-- of C, and string.gsub is one.
local function unyielding(f, ...)
  local arguments, results = tape.pack(...), nil
  -- Calls the user's function, and keeps its results.
  local function call() results = tape.pack(f(unpack(arguments, 1, arguments.n))) end
  local ok, problem = xpcall(string.gsub, tape.explain, ".", ".", call)
  if not ok then error(problem, 0) end
  return unpack(results, 1, results.n)
end

local callable = schema.callable()

---Runs a function as a whole: a coroutine cannot be left within it.
---@param f fun(...): any
---@param ... any             for f
---@return any ...            what f returns
function tape.whole(f, ...)
  schema.argument("tape.whole", "f", callable, f)
  local thread, is_main = coroutine.running()          -- the main one has a name too, by the flavour of LuaJIT
  if thread and not is_main then return unyielding(f, ...) end
  return f(...)
end

---Runs a function with its operations recorded on a tape (nil: on none). An error passes through, and leaves
---the recording as it was before.
---@param on cq.Tape?
---@param f fun(...): any
---@param ... any             for f
---@return any ...            what f returns
function tape.with(on, f, ...)
  if on ~= nil and getmetatable(on) ~= Tape then
    schema.fail("tape.with: needs a tape from tape.new() and a function, got %s", schema.describe(on))
  end
  schema.argument("tape.with", "f", callable, f)
  local before = current
  if on == before then return f(...) end
  local count = #open
  current, open[count + 1] = on, on
  return finish(before, count, pcall(tape.whole, f, ...))
end

---Runs a function with nothing recorded.
---@param f fun(...): any
---@param ... any             for f
---@return any ...
function tape.pause(f, ...)
  schema.argument("tape.pause", "f", callable, f)
  return tape.with(nil, f, ...)
end

---@internal
---Must an operation on these tensors be recorded? Yes if a tape records and one of them needs a gradient.
---@return boolean
function tape.wants(a, b)
  return current ~= nil and (a.requires_grad or (b ~= nil and b.requires_grad))
end

-- Where a tensor's numbers are, as a number.
local function address(t) return tonumber(ffi.cast("intptr_t", t.pointer)) end

---@internal
---Notes for the recording, also where it pauses, that a backward pass will read these numbers; until it ends they
---cannot be changed. Does nothing where there is none.
---@param t cq.Tensor
function tape.hold(t)
  local on = open[#open]
  if not on then return end
  on.held = on.held or {}
  on.held[address(t)] = t              -- alive, so that no other tensor comes to lie there
end

---@internal
---tape.hold for those of one or two factors that have no gradient; those with one cannot be changed anyway.
---@param a cq.Tensor|false|nil
---@param b? cq.Tensor|false
function tape.hold_plain(a, b)
  if a and not a.requires_grad then tape.hold(a) end
  if b and not b.requires_grad then tape.hold(b) end
end

---@internal
---Will a backward pass of a recording that has not ended read the numbers of this tensor?
---@return boolean
function tape.holds(t)
  for _, on in ipairs(open) do
    if on.held and on.held[address(t)] then return true end
  end
  return false
end

---@internal
---The results of the operations on a tape, each with the list of all results of its operation.
---@return table<cq.Tensor, cq.Tensor[]>
function Tape:results()
  local made = {}
  for n = 1, self.count do
    local node = self[n]
    if node.out then made[node.out] = { node.out } end
    for _, out in ipairs(node.outputs or {}) do made[out] = node.outputs end
  end
  return made
end

---@internal
---Calls f with each result of the recordings through which a backward pass goes.
---@param f fun(t: cq.Tensor)
function tape.each_reversed(f)
  for _, on in ipairs(reversing) do
    for out in pairs(on:results()) do f(out) end
  end
end

---@internal
---Is there a recording that has not ended, though it may pause, or a backward pass?
---@return boolean
function tape.is_busy() return #open > 0 or #reversing > 0 end

---@internal
---How many gradients are computed within one another at this moment.
tape.depth = 0

---@internal
---Was a gradient carried to a rollout of a gradient around it? The rollout has left it out.
tape.is_outside_reached = false

---@internal
---Records an operation of the library, with a node { back, out, a, b, extra }; returns `out`. back(node, gradient) adds
---to the adjoints of the tensors of the node; it is a plain function and no closure, because LuaJIT does not compile
---the making of closures.
---@param back fun(node: table, gradient: ffi.cdata*)
---@param out cq.Tensor
---@return cq.Tensor out
function tape.push(back, out, a, b, extra)
  out.requires_grad = true
  local n = current.count + 1
  current.count = n
  current[n] = { back = back, out = out, a = a, b = b, extra = extra }
  return out
end

-- Calls the backward function of a custom operation with the gradients of its outputs, which it clears, unless none
-- reached it. The gradients become tensors and are not released afterwards, because the user's function may hold on to
-- them. keep: the tape is kept for another backward pass.
local function back_custom(node, keep)
  local grads, reached = {}, false
  for i, out in ipairs(node.outputs) do
    if out.adjoint then
      grads[i] = class.wrap(out.adjoint, out.count, out.rank, out.dims)
      reached = true
    end
    out.adjoint, out.requires_grad = false, keep
  end
  if not reached then return end
  tape.altered = node.altered or tape.altered
  node.backward(unpack(grads, 1, #node.outputs))
end

---@class cq.tape.custom.def
---@field outputs cq.Tensor[]                 results of the operation
---@field backward fun(...: cq.Tensor?)       is given the gradients of the outputs, nil where none arrived, and calls input:accumulate
---@field name? string                        for errors
---@field altered? string                     what makes its gradient another than that of what it computes, for cq.check_gradient

---Records an operation whose adjoint the caller provides. Outside of recording it does nothing; backward is not called
---if no gradient reached any output. Errors: no list of outputs, or no function backward.
---@param def cq.tape.custom.def
---@return cq.Tensor ...  the outputs
function tape.custom(def)
  if type(def) ~= "table" or type(def.outputs) ~= "table" or type(def.backward) ~= "function" then
    schema.fail("tape.custom: needs { outputs = a list of tensors, backward = a function }, got %s",
      schema.describe(def))
  end
  for i, out in ipairs(def.outputs) do
    class.check_tensor(out, "tape.custom: output " .. i)
    if current then out.requires_grad = true end
  end
  if current then
    local n = current.count + 1
    current.count = n
    current[n] = { outputs = def.outputs, backward = def.backward, name = def.name, altered = def.altered }
  end
  return unpack(def.outputs)
end

-- Adds the gradients that a backward pass starts from to the adjoints of its outputs; without any, 1 to an output of
-- one element.
local function seed(outputs, grads)
  if class.is_tensor(outputs) then outputs, grads = { outputs }, grads ~= nil and { grads } or nil end
  for i, out in ipairs(outputs) do
    class.check_tensor(out, "tape:backward: output " .. i)
    local grad = grads and grads[i]
    if grads == nil then
      if out.count ~= 1 then
        schema.fail("tape:backward: output %d has shape %s and needs a gradient of that shape", i,
          class.shape_text(out.dims))
      end
      grad = 1
    end
    if grad then out:accumulate(grad) end
  end
end

-- Runs the backward functions of all recorded nodes, the newest first, clears the gradients of their results, and
-- removes the nodes unless the tape is kept.
local function reverse(self, keep)
  if not keep then self.marked = nil end
  for n = self.count, 1, -1 do
    local node = self[n]
    if not keep then
      self[n] = nil                    -- its tensors may be collected from here on
      self.count = n - 1
    end
    if node.backward then
      back_custom(node, keep)
    else
      local out = node.out
      local gradient = out.adjoint
      out.requires_grad = keep         -- plain data once its tape is gone
      if gradient then
        out.adjoint = false
        node.back(node, gradient)
        storage.release(gradient, out.count)
      end
    end
  end
  if not keep then self.held = nil end
end

-- Removes a tape from those through which backward passes go; passes on the error of its pass.
local function leave(self, fine, problem)
  for k = #reversing, 1, -1 do
    if reversing[k] == self then table.remove(reversing, k) break end
  end
  if not fine then error(problem, 0) end
end

local of_outputs = schema.any_of { schema.tensor(), schema.list(schema.tensor()) }

---Carries gradients from outputs to everything that the recorded operations were made of, newest operation first, and
---empties the tape unless it is kept. Leaves, and tensors made under other tapes, keep what reaches them in .grad.
---Errors: an output of more than one element without a gradient, or a gradient of a wrong shape.
---@param outputs cq.Tensor|cq.Tensor[]
---@param grads cq.Tensor|(cq.Tensor|number|false)[]|nil  of the outputs; nil: 1, for outputs of one element
---@param keep? boolean       for another backward pass over the same operations; rollouts are not run again for it
function Tape:backward(outputs, grads, keep)
  schema.argument("tape:backward", "outputs", of_outputs, outputs)
  schema.argument("tape:backward", "keep", schema.boolean { default = false }, keep)
  seed(outputs, grads)
  -- what an adjoint computes by tensors is not itself recorded
  reversing[#reversing + 1] = self
  leave(self, pcall(tape.whole, tape.with, nil, reverse, self, keep or false))
end

---Removes all recorded operations.
function Tape:clear()
  for n = self.count, 1, -1 do self[n] = nil end
  self.count, self.held, self.marked = 0, nil, nil
end

return tape
