-- mutate: bytes of an input changed at random, the same for the same seed.
local bit = require "bit"

local mutate = {}

local LONGEST = 4096                     -- bytes; longer inputs find no more, and slowly

-- ---- random whole numbers -------------------------------------------------------------------------------------------

local state = 1

-- xorshift, 32 bits
local function advance()
  local x = state
  x = bit.bxor(x, bit.lshift(x, 13))
  x = bit.bxor(x, bit.rshift(x, 17))
  x = bit.bxor(x, bit.lshift(x, 5))
  state = x
  return x % 2^32
end

---@param seed integer
function mutate.begin(seed)
  state = bit.bxor(seed * 2654435761 % 2^32, 0x5bd1e995)
  if state == 0 then state = 1 end
  for _ = 1, 8 do advance() end
end

---@return integer  from 1 to n
function mutate.below(n) return 1 + advance() % n end

local below = mutate.below

---@generic Item
---@param list Item[]
---@return Item
function mutate.one_of(list) return list[below(#list)] end

-- ---- changes --------------------------------------------------------------------------------------------------------

-- counts, sizes and bits at the edge of what fits, and doubles that are strange
local words = {
  "\0", "\1", "\127", "\128", "\255", "\0\0\0\0", "\1\0\0\0", "\255\255\255\255", "\255\255\255\127", "\0\0\0\128",
  "\0\0\0\16", "\0\0\128\127",
  "\0\0\192\127", "\255\255\255\255\255\255\255\255", "\255\255\255\255\255\255\255\127", "\0\0\0\0\0\0\0\128",
  "\0\0\0\0\0\0\240\127",
  "\0\0\0\0\0\0\248\127", "\0\0\0\0\0\0\248\255", "\1\2\3\4\5\128\253\255", "\0\0\0\0\0\0\250\255",
  "\1\0\0\0\0\0\240\127", "\0\0\0\0\0\0\16\0",
  "\255\255\255\255\255\255\239\127",
}

local function replaced(s, from, to, by) return s:sub(1, from - 1) .. by .. s:sub(to + 1) end

local changes = {
  function(s, at) return replaced(s, at, at, string.char(bit.bxor(s:byte(at), bit.lshift(1, below(8) - 1)))) end,
  function(s, at) return replaced(s, at, at, string.char(below(256) - 1)) end,
  function(s, at) return replaced(s, at, math.min(#s, at + below(16) - 1), "") end,
  function(s, at) return replaced(s, at, at - 1, string.char(below(256) - 1):rep(below(8))) end,
  function(s, at)
    local piece = s:sub(at, at + below(64))
    return replaced(s, at, at - 1, piece:rep(below(4)))
  end,
  function(s, at)
    local word = mutate.one_of(words)
    return replaced(s, at, at + #word - 1, word)
  end,
  function(s, at) return below(8) == 1 and s:sub(1, at) or s end,
}

-- a number or a word of the text by one of the reader's own, or one more of those
local function change_token(s, at, tokens)
  local token = mutate.one_of(tokens)
  local from, to = s:find("[^%s,=/]+", at)
  if not from or below(4) == 1 then return replaced(s, at, at - 1, token) end
  return replaced(s, from, to, token)
end

---@param input string
---@param other string        another, of which a piece may be taken
---@param tokens string[]     what the reader knows
---@return string
function mutate.change(input, other, tokens)
  local s = input
  for _ = 1, below(5) do
    local kind, at = below(12), below(math.max(#s, 1))
    if #s == 0 then s = mutate.one_of(tokens)
    elseif kind <= #changes then s = changes[kind](s, at)
    elseif kind <= 10 then s = change_token(s, at, tokens)
    elseif #other > 0 then
      local from = below(#other)
      s = replaced(s, at, at - 1 + below(32), other:sub(from, from + below(256)))
    end
  end
  return s:sub(1, LONGEST)
end

return mutate
