-- source: the project's own files as text, for tests/style.lua.
local host = require "cq.host"
local scan = require "cq.reference.scan"
local types = require "cq.reference.type"

local source = {}

local kinds = { c = "c", h = "c", inl = "c", cc = "c", cu = "c", cuh = "c", lua = "lua", sh = "sh" }

function source.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

local function walk(folder, into)
  local names = host.entries(folder) or {}
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    local kind = kinds[name:match "%.(%w+)$" or ""]
    if host.kind(path) == "folder" then
      walk(path, into)
    elseif kind then
      local text, lines = source.read(path), {}
      for line in text:gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
      into[#into + 1] = { path = path, kind = kind, text = text, lines = lines }
    end
  end
end

---Columns of a line of UTF-8.
function source.columns(line)
  return select(2, line:gsub("[^\128-\191]", ""))
end

---What stays in one line however long it is: an annotation, a command of a shell script, and a string, so that a
---message is found by its words.
function source.unbroken(line, kind)
  if line:find "^%s*%-%-%-@" or kind == "sh" and not line:find "^%s*#" then return true end
  local longest = 0
  for _, pattern in ipairs { '"[^"]*"', "'[^']*'" } do
    for text in line:gsub("\\.", "  "):gmatch(pattern) do longest = math.max(longest, #text) end
  end
  return source.columns(line) - longest <= 80
end

---Paths of the pages of Markdown.
function source.prose()
  local paths = { "README.md", "lua/README.md", "engine/README.md", "engine/physics/EQUATIONS.md",
    "tests/bench/README.md" }
  for _, name in ipairs(host.entries "docs") do
    if name:find "%.md$" then paths[#paths + 1] = "docs/" .. name end
  end
  return paths
end

---All source files below the folders: { path, kind "c" | "lua" | "sh", text, lines }.
function source.files(folders)
  local files = {}
  for _, folder in ipairs(folders) do walk(folder, files) end
  return files
end

---A line of C without its strings and its comment.
function source.code(line)
  return (line:gsub('"[^"]*"', '""'):gsub("//.*$", ""))
end

---The path that `included` in the file at `path` means: "engine/cpu/a.c", "../base/b.h" -> "engine/base/b.h".
---Without a file there, it is meant from engine/.
function source.join(path, included)
  local parts = {}
  for part in (path:match "^(.*)/" .. "/" .. included):gmatch "[^/]+" do
    if part == ".." then parts[#parts] = nil elseif part ~= "." then parts[#parts + 1] = part end
  end
  local joined = table.concat(parts, "/")
  return host.kind(joined) and joined or "engine/" .. included
end

---Iterates over the functions defined in a C file: line number, name. A definition begins in the first column.
function source.functions(file)
  local number = 0
  return function()
    while number < #file.lines do
      number = number + 1
      local line = source.code(file.lines[number])
      local name = line:match "^%a[%w_ %*]*[ %*]([%w_]+)%("
      if name and not line:find ";%s*$" and not line:find "^#" and not line:find "^typedef" then return number, name end
    end
  end
end

-- The text with blanks for all that comments and strings hold, and each of its lines where it was.
local function bare(file)
  local function blank(text) return (text:gsub("[^\n]", " ")) end
  local at, parts, text = 1, {}, file.text
  local opens = file.kind == "lua" and "[\"'%[%-]" or "[\"'/]"
  while true do
    local from = text:find(opens, at)
    if not from then break end
    local c = text:sub(from, from)
    local to
    if c == '"' or c == "'" then
      to = from
      repeat
        to = to + 1
        if text:sub(to, to) == "\\" then to = to + 2 end
        local closed = text:sub(to, to)
      until closed == c or closed == "\n" or closed == ""
    elseif text:find("^//", from) or text:find("^%-%-", from) and not text:find("^%-%-%[=*%[", from) then
      to = text:find("\n", from, true)
      to = (to or #text + 1) - 1
    elseif text:find("^/%*", from) then
      to = select(2, text:find("*/", from, true))
    else
      local level = text:match("^%-?%-?%[(=*)%[", from)
      to = level and select(2, text:find("]" .. level .. "]", from, true))
    end
    parts[#parts + 1] = text:sub(at, from - 1)
    parts[#parts + 1] = to and blank(text:sub(from, to)) or c
    at = (to or from) + 1
  end
  parts[#parts + 1] = text:sub(at)
  return table.concat(parts)
end

-- of "(a, int (*b)(c, d))": 2
local function count(list)
  local inner = list:sub(2, -2):gsub("%b()", ""):gsub("%b[]", ""):gsub("%b{}", ""):gsub("%b<>", "")
  if inner:find "^%s*$" or inner:find "^%s*void%s*$" then return 0 end
  return select(2, inner:gsub(",", "")) + 1
end

local no_function = { ["if"] = true, ["for"] = true, ["while"] = true, ["switch"] = true, ["return"] = true,
  sizeof = true }

-- a name and the list behind it, if that is a function of C: a definition, or a
-- declaration behind a type; before: its line
local function is_c_function(text, before, name, after)
  if no_function[name] or before:find "^%s*#" then return false end
  if text:find("^[%w%s]-{", after) or text:find("^%s*:[^;{]-{", after) then return true end
  local declares = text:find("^%s*;", after) or text:find("^%s*__attribute__", after)
  return declares and before:find "^%s*[%a_][%w_ ]*[%w_][ %*]+$"
    and not before:find "^%s*return%s" and not before:find "^%s*else%s"
end

---Iterates over the functions that a file defines or declares, pointers to functions
---too: line number, name, parameters.
function source.parameters(file)
  local text, at, line, begins = bare(file), 1, 1, 1
  local pattern = file.kind == "lua" and "()%f[%w_](function%s*[%w_.:]*)%s*(%b())()" or "()([%a_][%w_]*%)?)%s*(%b())()"
  return function()
    while file.kind ~= "sh" do
      local from, name, list, after = text:match(pattern, at)
      if not from then return end
      at = from + #name
      local piece, start = text:sub(begins, from - 1), begins
      for next_line in piece:gmatch "\n()" do
        line, begins = line + 1, start + next_line - 1
      end
      local found
      if file.kind == "lua" then
        name = name:match "^function%s+(%S+)$" or "function"
        found = true
      elseif name:sub(-1) == ")" then
        name = name:sub(1, -2)
        found = text:sub(from - 2, from - 1) == "(*"
      else
        found = is_c_function(text, text:sub(begins, from - 1), name, after)
      end
      if found then return line, name, count(list) end
    end
  end
end

-- ---- annotations ----------------------------------------------------------------------------------------------------

-- the annotated fields of the first parameter that is a table of named ones
local function fields_of(classes, params)
  for _, param in ipairs(params) do
    for _, part in ipairs(types.split(param.type)) do
      local name = part:gsub("%?$", "")
      local class = classes[name]
      local fields = scan.is_record(class) and scan.items(classes, class) or types.fields(name)
      if fields and #fields > 0 then return fields end
    end
  end
end

---Finds the annotated fields of a constructor: those of `---@class NAME.def`; else, in a file that declares NAME, those
---that the function with NAME's last word takes.
---@return fun(name: string): cq.reference.Item[]?
function source.annotations()
  local sources, classes = scan.library(), {}
  for _, class in ipairs(sources.classes) do classes[class.name] = class end
  return function(name)
    local class = classes[name:gsub("[:%s]+", ".") .. ".def"]
    if class then return scan.items(classes, class) end
    local family, word = name:match "^(.*[%.:])([%w_]+)$"
    for _, found in ipairs(word and sources.functions or {}) do
      local text = sources.texts[found.path]
      local declares = text:find('"' .. name .. '"', 1, true) or text:find('"' .. family .. '"', 1, true)
      if found.name == word and declares then return fields_of(classes, found.params) end
    end
  end
end

---Loads every module of the library, so that all of its definitions are known.
function source.require_all(files)
  for _, file in ipairs(files) do
    local name = file.path:match "^lua/(cq/.*)%.lua$"
    if name then require((name:gsub("/init$", ""):gsub("/", "."))) end
  end
end

return source
