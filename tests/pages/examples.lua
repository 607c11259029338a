-- examples: docs/examples.md from the first comment of each example.
--
-- That comment begins with what the script is and its command, and has four fields: "Source:", "Expect:", "Size:" and
-- "Time:"; and "Kept:" where cqlua robust has measured what it trained, or why that is not asked. A field ends where
-- the next one begins, or at an empty comment line. The page has the first sentence of the description, and of what to
-- expect the first clause: other seeds, options and sizes stand in the script.
local host = require "cq.host"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local examples = { folders = { "examples", "examples/studies" } }

local FIELDS = { "Source", "Expect", "Kept", "Size", "Time" }

-- the first sentence; a full stop within a number, or after an abbreviation of one letter, ends none
local function sentence(text)
  local at = 1
  while true do
    local stop = text:find("[.]%s+%u", at)
    if not stop then return (text:gsub("%.$", "")) end
    if not text:sub(1, stop - 1):match "%f[%w]%l?l?$" then return text:sub(1, stop - 1) end
    at = stop + 1
  end
end

-- up to the first semicolon, without what stands in brackets
local function clause(text)
  return (sentence(text):gsub("%s*%b()", ""):gsub(";.*$", ""))
end

---The fields of a script's first comment, with what stands before them as `what`, and its command.
---@param text string     the script
---@return table<string, string>
function examples.head(text)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do
    if not line:match "^%-%-" then break end
    lines[#lines + 1] = line:match "^%-%-%s?(.*)$"
  end
  local words = table.concat(lines, "\n") .. "\n\n"
  local out = { command = words:match "(cqlua [^\n]-)%s%s" or words:match "(cqlua [^\n]+)" }
  for _, name in ipairs(FIELDS) do
    local _, first = words:find("%f[%w]" .. name .. ":%s")
    local last = first and #words
    for _, other in ipairs(FIELDS) do
      local stop = first and words:find("%f[%w]" .. other .. ":%s", first + 1)
      if stop then last = math.min(last, stop - 1) end
    end
    local blank = first and words:find("\n%s*\n", first)
    if blank then last = math.min(last, blank) end
    out[name:lower()] = first and words:sub(first, last):gsub("%s+", " "):match "^%s*(.-)%.?%s*$"
  end
  local stop = #words
  for _, name in ipairs(FIELDS) do stop = math.min(stop, (words:find("%f[%w]" .. name .. ":%s") or stop + 1) - 1) end
  local what = words:sub(1, stop):gsub("%s*cqlua [^\n]+", "")
  out.what = what:gsub("%s+", " "):match "^%s*(.-)%s*$"
  return out
end

---The paths of all examples, in order.
---@return string[]
function examples.paths()
  local out = {}
  for _, folder in ipairs(examples.folders) do
    local names = {}
    for _, name in ipairs(host.entries(folder)) do
      if name:match "%.lua$" then names[#names + 1] = folder .. "/" .. name end
    end
    table.sort(names)
    for _, path in ipairs(names) do out[#out + 1] = path end
  end
  return out
end

---The table of all examples.
---@return string
function examples.table()
  local rows = {}
  for k, path in ipairs(examples.paths()) do
    local head = examples.head(source.read(path))
    for _, name in ipairs { "what", "expect", "size", "time", "command" } do
      if not head[name] or head[name] == "" then error(("%s: its first comment has no %s"):format(path, name), 0) end
    end
    rows[k] = { ("[%s](../%s)"):format(path:match "examples/(.*)%.lua$", path), sentence(head.what),
      clause(head.expect), head.kept and clause(head.kept) or "", head.size, head.time }
  end
  return marks.table({ "example", "what", "to expect", "kept elsewhere", "size", "time" }, rows)
end

return examples
