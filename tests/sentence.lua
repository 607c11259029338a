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

---A text, such as a message, contains each of these parts, to the letter.
function sentence.says(text, ...)
  for _, part in ipairs { ... } do
    assert.is_truthy(text and text:find(part, 1, true), ("%q is not in:\n%s"):format(part, tostring(text)))
  end
end

---f fails, and its sentence contains each of these parts.
---@param f function
function sentence.refuses(f, ...) sentence.says(sentence.of(f), ...) end

---f, called with the rest, fails with a sentence that holds this part, at the line of the user: one of the file that
---calls this, or of this one, which calls f, where f is the library's own.
---@param part string
---@param f function
function sentence.fails(part, f, ...)
  local user = debug.getinfo(2, "S").source
  if type(f) ~= "function" or debug.getinfo(f, "S").source ~= user then user = debug.getinfo(1, "S").source end
  local fine, problem = pcall(f, ...)
  problem = tostring(problem)
  assert.is_false(fine, "no error, one was expected with: " .. part)
  assert.is_truthy(problem:find(part, 1, true), ("%q is not in: %s"):format(part, problem))
  local line = user:match "[%w_]+%.lua$" .. ":"
  assert.is_truthy(problem:find(line, 1, true), "not at the user's line: " .. problem)
end

return sentence
