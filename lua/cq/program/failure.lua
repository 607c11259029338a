-- failure: an error as the program tells it: its message, and the frames that help.
local schema = require "cq.base.schema"
local text = require "cq.base.text"

local failure = {}

local own = debug.getinfo(1, "S").source:match "^(.*[/\\])program[/\\]" or "@"
local driver = { [own .. "program/failure.lua"] = true, [own .. "program.lua"] = true,
  [own .. "program/prompt.lua"] = true }

-- The name of a frame of the call stack, from debug.getinfo: "main chunk", or "function" with its name, else with the
-- file and line where it is defined.
local function frame_name(info)
  if info.what == "main" then return "main chunk" end
  if info.name and info.namewhat ~= "" then return ("function %s"):format(info.name) end
  return ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- A list of lines "file:line: in function f", one for each frame of the call stack from `level` on. whole: with frames
-- of the library.
local function frames(level, whole)
  local lines = {}
  while true do
    local info = debug.getinfo(level, "Sln")
    if not info then break end
    local shown = info.what ~= "C" and not driver[info.source] and (whole or not schema.is_library(info))
    if shown then lines[#lines + 1] = ("  %s:%d: in %s"):format(info.short_src, info.currentline, frame_name(info)) end
    level = level + 1
  end
  return lines
end

-- A sorted list of the names of all methods of loaded classes, and a table of the class's name by method.
local function methods()
  local names, class_of = {}, {}
  for module, loaded in pairs(package.loaded) do
    local class = type(loaded) == "table" and module:match "^cq%."
      and (rawget(loaded, "Tensor") or rawget(loaded, "class") or loaded)
    local title = type(class) == "table" and (rawget(class, "__name") or module == "cq.tensor" and "cq.Tensor")
    for name, value in pairs(title and class or {}) do
      if type(value) == "function" and not name:match "^_" then names[#names + 1], class_of[name] = name, title end
    end
  end
  table.sort(names)
  return names, class_of
end

-- For an error "attempt to call method 'new'": the class whose :new() the user's line calls, as "cq.World" for
-- "cq.World:new {}". nil: that line calls another object.
local function class_made(problem)
  local path, number = problem:match "([^%s:]+):(%d+): attempt to call method 'new'"
  local file, line = path and io.open(path), nil
  if not file then return nil end
  for _ = 1, tonumber(number) do line = file:read "*l" end
  file:close()
  local name = (line or ""):match "cq%.(%u[%w_]*):new"
  local meta = name and getmetatable(require "cq"[name])
  return meta and meta.__call and "cq." .. name
end

-- Returns an error message; to one about a method that an object lacks it adds the name that may be meant.
local function with_suggestion(problem)
  return (problem:gsub("attempt to call method '([%w_]+)' %(a nil value%)", function(name)
    local names, class_of = methods()
    if name == "new" then
      local class = class_made(problem)
      return class and ("attempt to call method 'new' (a nil value; %s { ... } makes one)"):format(class)
    end
    local near = text.suggest(name, names)
    return near and ("attempt to call method '%s' (a nil value; did you mean %s of %s?)"):format(name, near,
      class_of[near])
  end))
end

-- what a function of math is for a tensor, where its name alone does not say it
local of_tensor = { max = "maximum(x)", min = "minimum(x)", pow = "pow(x)", atan2 = "atan2(x)" }

-- Returns an error message; to Lua's error about a table where a number is wanted it adds a hint, since the table is
-- mostly a tensor: use :item().
local function with_tensor_hint(problem)
  problem = problem:gsub("attempt to compare %a+ with %a+", function(said)
    if not said:find "table" then return said end
    return said .. " (if the table is a tensor t: its number is t:item(), "
      .. "and t:less(x) and t:greater(x) compare each element)"
  end)
  problem = problem:gsub("'for' %a+ must be a number", "%0 (if it is a tensor t: its number is t:item())")
  return (problem:gsub("(bad argument #%d+ to '([%w_?]+)' %((%a+) expected, got table)", function(said, name, wanted)
    if wanted ~= "number" and wanted ~= "string" then return said end
    local call = math[name] and (of_tensor[name] or require("cq.tensor").Tensor[name] and name .. "()")
    call = call and ("it is t:%s, and "):format(call) or ""
    -- `return math.sin(t)` leaves no name behind
    local known = math[name] or string[name] or table[name] or io[name] or wanted == "string"
    local more = known and "" or ", and its functions are methods, as t:sin()"
    return ("%s; if the table is a tensor t: %sits number is t:item()%s"):format(said, call, more)
  end))
end

-- Does the place "file:line:" at the beginning of a message lie in the library, not in the user's script? Also true for
-- a message without a place.
local function is_within(problem)
  return not problem:match "^[^\n:]+:%d+: " or problem:match "^[^\n:]*lua/cq/[%w_/]+%.lua:%d+: " ~= nil
end

-- Was the error raised outside of the library without a position, by error(sentence, 0)? Such a sentence is for the
-- user of a command, whom source lines do not help.
local function wants_no_place(problem)
  if problem:match "^[^\n:]+:%d+: " then return false end
  local level = 2
  local info = debug.getinfo(level, "Sf")
  while info and driver[info.source] do
    level = level + 1
    info = debug.getinfo(level, "Sf")
  end
  local caller = info and info.func == error and debug.getinfo(level + 1, "S")
  return caller and not schema.is_library(caller)
end

---Message handler for xpcall: message and traceback as one text; the message alone where its writer wanted no place.
---@param problem any
---@return string
function failure.handle(problem)
  -- hardly any stack is left for more, and the frames are all the same
  if type(problem) == "string" and problem:find("stack overflow", 1, true) then return problem end
  local is_sentence = type(problem) == "string"
  if not is_sentence then
    local meta = getmetatable(problem)
    if not (type(meta) == "table" and meta.__tostring) then
      problem = ("an error that is not a sentence but a %s"):format(type(problem))
    end
    problem = tostring(problem)
  end
  if is_sentence and wants_no_place(problem) then return problem end
  -- an error of the user's, or made for the user, needs none of the library's frames
  local lines = frames(3, not schema.is_failure(problem) and is_within(problem))
  problem = with_tensor_hint(with_suggestion(problem))
  if #lines == 0 then return problem end
  return problem .. "\ntraceback:\n" .. table.concat(lines, "\n")
end

return failure
