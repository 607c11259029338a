-- prompt: reads, runs and prints, line by line (cqlua -i).
local failure = require "cq.program.failure"
local host = require "cq.host"

local prompt = {}

-- Compiles a line to a function: an expression, with or without =, returns its value; a statement is run. nil and an
-- error sentence if the line is neither.
local function compile(source)
  source = source:gsub("^%s*=", "return ")
  local chunk = loadstring("return " .. source, "=stdin")
  if chunk then return chunk end
  return loadstring(source, "=stdin")
end

-- Prints the results of a line as Lua's own prompt does. results: of xpcall, so that values are the entries 2 to
-- `count`.
local function show(count, results)
  if count < 2 then return end
  local words = {}
  for i = 2, count do words[i - 1] = tostring(results[i]) end
  print(table.concat(words, "\t"))
end

-- Arguments as their number and a list.
local function pack(...) return select("#", ...), { ... } end

---Reads and runs lines until the input ends. For cqlua -i.
---@param globals table      of what is typed
---@return string[] typed    statements that were run
function prompt.run(globals)
  local typed = {}
  local terminal = host.terminal(0) ~= nil
  if terminal then print(("cqlua %s; Ctrl-D to leave"):format(host.version)) end
  local source, problem
  while true do
    if terminal then io.write(source and ">> " or "> ") io.flush() end
    local line = io.read "*l"
    if not line then break end
    local chunk
    source = source and source .. "\n" .. line or line
    chunk, problem = compile(source)
    if chunk then
      typed[#typed + 1], source = source, nil
      local count, results = pack(xpcall(setfenv(chunk, globals), failure.handle))
      host.listen()                             -- an interruption was for this statement only
      if results[1] then show(count, results) else io.stderr:write(tostring(results[2]), "\n") end
    elseif not problem:find "<eof>" then
      source = nil
      io.stderr:write(problem, "\n")
    end                                         -- else: the statement goes on in the next line
  end
  if source then io.stderr:write(problem, "\n") end       -- the input ended within a statement
  if terminal then print() end
  return typed
end

return prompt
