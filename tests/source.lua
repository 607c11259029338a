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
  local paths = { "README.md", "engine/README.md", "engine/physics/EQUATIONS.md", "tests/bench/README.md" }
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
