-- verdict: is an error what a user may see? It stands at the user's line, names the file,
-- and is no error of Lua itself.
local verdict = {}

local raw = { "attempt to ", "stack overflow", "bad argument #", "C stack", "not enough memory", "table overflow" }

---@param sentence string
---@param path string?     that it must name
---@return string? problem
function verdict.of_sentence(sentence, path)
  if type(sentence) ~= "string" then return "an error that is no sentence: " .. tostring(sentence) end
  for _, words in ipairs(raw) do
    if sentence:find(words, 1, true) then return "an error of Lua itself: " .. sentence end
  end
  if path and not sentence:find(path, 1, true) then return "an error that does not name the file: " .. sentence end
end

---@param problem any          from pcall
---@param what string          the call that it must name
---@param path string
---@return string? problem
function verdict.of_error(problem, what, path)
  local bad = verdict.of_sentence(problem, path)
  if bad then return bad end
  if not problem:find "^[^\n:]*tests/fuzz/[%w_]+%.lua:%d+: " then
    return "an error that is not at the user's line: " .. problem
  end
  if not problem:find(what, 1, true) then return ("an error that does not name %s: %s"):format(what, problem) end
end

return verdict
