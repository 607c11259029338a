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

---Annotated fields by the name of the constructor: from `---@class NAME.def` with its `---@field`s, or from an inline
---table type above the assignment: `---@type fun(fields: { ... })`, `---@param fields { ... }`. A constructor's last word
---must then be unique in its file's family: cq.Material.neo_hookean above `material.neo_hookean =`.
---@return table<string, table<string, { optional: boolean }>>
function source.annotations(files)
  local found = {}
  for _, file in ipairs(files) do
    if file.kind == "lua" and file.path:find "^lua/" then
      local class
      for number, line in ipairs(file.lines) do
        local opened = line:match "^%s*%-%-%-@class%s+([%w_%.]+)%.def"
        local field, mark = line:match "^%s*%-%-%-@field%s+([%w_]+)(%??)"
        if opened then class = opened found[class] = found[class] or {}
        elseif class and field then found[class][field] = { optional = mark == "?" }
        elseif not line:find "^%s*%-%-%-" then class = nil end

        local owner, name = line:match "^([%w_]+)%.([%w_]+)%s*="
        if not name then owner, name = line:match "^function ([%w_]+)[%.:]([%w_]+)" end
        local block = name and block_above(file.lines, number)
        local inline = block and (block:match "fun%([%w_]+:%s*(%b{})" or block:match "@param%s+[%w_]+%??%s+(%b{})")
        if inline then
          local family = owner:sub(1, 1):upper() .. owner:sub(2)
          for _, full in ipairs { "cq." .. family .. "." .. name, "cq." .. name, "cq." .. family .. ":" .. name } do
            found[full] = found[full] or inline_fields(inline)
          end
        end
      end
    end
  end
  return found
end

---Loads every module of the library, so that all of its definitions are known.
function source.require_all(files)
  for _, file in ipairs(files) do
    local name = file.path:match "^lua/(cq/.*)%.lua$"
    if name then require((name:gsub("/init$", ""):gsub("/", "."))) end
  end
end

return source
