-- sentence: what a mistake gets. Of a call that must fail: the sentence, without the line
-- of the test that it points at.
local assert = require "luassert"    -- whose calls the runner counts: a test that asserts nothing fails

local sentence = {}

---@param f function    called with the rest
---@return string
function sentence.of(f, ...)
  local fine, problem = pcall(f, ...)
  assert.is_false(fine, "no error")
  local message = tostring(problem):match "^[^:]*tests/[%w_]+%.lua:%d+: (.*)$"
  assert.is_truthy(message, "not at the user's line: " .. tostring(problem))
  return message
end

---The message holds this part, to the letter.
function sentence.says(message, part) assert.is_truthy(message:find(part, 1, true), message) end

return sentence
