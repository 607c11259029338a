-- engine: the C functions of cq.h, through LuaJIT's FFI. The engine is linked into the program itself.
local ffi = require "ffi"
local schema = require "cq.base.schema"

local loaded, host = pcall(require, "cq.host")      -- preloaded by the program
if not loaded then
  schema.fail("cq: the engine is inside the program; run this script with cqlua, not with another Lua")
end

local declarations = host.cdef
ffi.cdef(declarations)
local C = ffi.C

---@class cq.engine
---@field C ffi.namespace*
---@field declarations string
---@field interruption string?    what the last call said that gave up because the user asked to stop
---@field unsupported string?     what the last call said that asked for what its device does not offer
local engine = { C = C, declarations = declarations }

-- A function of the engine by its name; nil: the program was built without it.
local function symbol(name)
  local found, value = pcall(function() return C[name] end)
  return found and value or nil
end

---Names of all public structs of cq.h that have fields.
---@return string[]
function engine.structs()
  local names = {}
  for name in declarations:gmatch "typedef%s+struct%s+([%w_]+)%s*{" do names[#names + 1] = name end
  return names
end

-- the header that Lua reads and the engine that was compiled must be of one build
local abi, struct_size = symbol "cq_abi", symbol "cq_struct_size"
if abi and abi() ~= C.CQ_ABI then
  error(("cq: the engine has ABI %d, its header says %d; run make clean and make"):format(abi(), C.CQ_ABI), 0)
end
if struct_size then
  for _, name in ipairs(engine.structs()) do
    local built, read = tonumber(struct_size(name)), ffi.sizeof(name)
    if built >= 0 and built ~= read then
      error(("cq: %s has %d bytes in the engine and %d in its header; run make clean and make"):format(name, built,
        read), 0)
    end
  end
end

---Raises the engine's last sentence as an error at the user's line, unless a call returned CQ_OK. Keeps the sentence of
---an interruption or an unsupported call in engine.
---@param status integer        cq_status
---@param what? string          put before the sentence: "cq.World"
---@param said? fun(sentence: string): string     rewrites the sentence, as with names in place of numbers
function engine.check(status, what, said)
  if tonumber(status) == C.CQ_OK then return end
  local sentence = ffi.string(C.cq_error())
  if tonumber(status) == C.CQ_INTERRUPTED then engine.interruption = sentence end
  if tonumber(status) == C.CQ_UNSUPPORTED then engine.unsupported = sentence end
  schema.fail("%s%s", what and what .. ": " or "", said and said(sentence) or sentence)
end

---Raises an error with this sentence if the user has asked to stop (Ctrl-C), and keeps the sentence in engine. For long
---work of which no call to the engine gives up by itself.
---@param sentence string
function engine.require_uninterrupted(sentence)
  if C.cq_interrupted() == 0 then return end
  engine.interruption = sentence
  schema.fail("%s", sentence)
end

return engine
