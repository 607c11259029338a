-- source: the project's own files as text, for tests/style.lua.
local host = require "cq.host"

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

-- fields of an inline type, "{ young: number, kind?: string }"
local function inline_fields(text)
  local fields, depth, at = {}, 0, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == "{" or c == "(" or c == "<" then
      depth = depth + 1
    elseif c == "}" or c == ")" or c == ">" then
      depth = depth - 1
      if depth == 0 then break end
    elseif depth == 1 then
      local name, mark, after = text:match("^([%w_]+)(%??)%s*:()", at)
      local before = text:sub(1, at - 1):match "[{,]%s*$"
      if name and before then
        fields[name] = { optional = mark == "?" }
        at = after - 1
      end
    end
    at = at + 1
  end
  return fields
end

-- the comment block above line `number`, joined
local function block_above(lines, number)
  local block = {}
  for i = number - 1, 1, -1 do
    local comment = lines[i]:match "^%s*%-%-%-?(.*)"
    if not comment then break end
    table.insert(block, 1, comment)
  end
  return table.concat(block, "\n")
end

-- fields of every annotated class, and of the table that every function takes: { [file] = { [function] = fields } }
local function collect(files)
  local classes, taken = {}, {}
  for _, file in ipairs(files) do
    local class
    for _, line in ipairs(file.kind == "lua" and file.lines or {}) do
      local opened = line:match "^%s*%-%-%-@class%s+([%w_%.]+)"
      local field, mark = line:match "^%s*%-%-%-@field%s+([%w_]+)(%??)"
      if opened then class = opened classes[class] = classes[class] or {}
      elseif class and field then classes[class][field] = { optional = mark == "?" }
      elseif not line:find "^%s*%-%-%-" then class = nil end
    end
  end
  for _, file in ipairs(files) do
    taken[file] = {}
    for number, line in ipairs(file.kind == "lua" and file.lines or {}) do
      local name = line:match "^[%w_]+%.([%w_]+)%s*=" or line:match "^function [%w_]+[%.:]([%w_]+)"
      local block = name and block_above(file.lines, number) or ""
      local inline = block:match "fun%([%w_]+:%s*(%b{})" or block:match "@param%s+[%w_]+%??%s+(%b{})"
      local class = block:match "fun%([%w_]+:%s*(cq%.[%w_%.]+)" or block:match "@param%s+fields%??%s+(cq%.[%w_%.]+)"
        or block:match "@param%s+options%??%s+(cq%.[%w_%.]+)"
      if inline then taken[file][name] = inline_fields(inline) elseif class then taken[file][name] = classes[class] end
    end
  end
  return classes, taken
end

---Finds the annotated fields of a constructor: those of `---@class NAME.def`; else, in a file that declares NAME, those that
---the function with NAME's last word takes: `---@param fields` or `options` of a class, or any parameter of an inline type.
---@return fun(name: string): table<string, { optional: boolean }>?
function source.annotations(files)
  local classes, taken = collect(files)
  return function(name)
    local class = classes[name:gsub("[:%s]+", ".") .. ".def"]
    if class then return class end
    local family, word = name:match "^(.*[%.:])([%w_]+)$"
    if not word then return nil end                    -- a name that no user can type
    for _, file in ipairs(files) do
      local declares = file.text:find('"' .. name .. '"', 1, true) or file.text:find('"' .. family .. '"', 1, true)
      if declares and taken[file][word] then return taken[file][word] end
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
