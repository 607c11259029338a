-- scan: the LuaCATS annotations of the library's own sources: classes with their fields, and every function with the
-- comment of three dashes above it. Nothing is run.
local host = require "cq.host"
local read_file = require "cq.base.read_file"
local types = require "cq.reference.type"

---@class cq.reference.Item         of @field, @param or @return
---@field name string?
---@field type string
---@field optional boolean
---@field text string

---@class cq.reference.Class
---@field name string
---@field parents string[]
---@field text string[]                     lines of the comment
---@field fields cq.reference.Item[]        its own, in their order
---@field var string?                       the local variable that holds its methods
---@field overload string?                  the function that it is when it is called
---@field path string
---@field folder string
---@field method_list cq.reference.Function[]
---@field methods table<string, table>      by name, those that are annotated as fields too
---@field internal boolean                  for the library alone
---@field is_object boolean                 neither a table of named fields that functions take nor a module

---@class cq.reference.Function
---@field owner string?                     the variable before the dot or the colon
---@field name string
---@field text string[]
---@field params cq.reference.Item[]
---@field returns cq.reference.Item[]
---@field internal boolean                  for the library alone
---@field documented boolean
---@field is_method boolean                 defined with a colon
---@field path string                       "lua/cq/world.lua"
---@field line integer

---@class cq.reference.Sources
---@field classes cq.reference.Class[]
---@field functions cq.reference.Function[]
---@field heads table<string, string[]>     the comment at the head of each file
---@field texts table<string, string>       of each file, by its path

local scan = {}

local SPACE, NEWLINE, DASH = (" \n-"):byte(1, 3)

-- ---- one comment ----------------------------------------------------------------------------------------------------

-- A cq.reference.Item, { name, type, optional, text }, from a line ---@field, ---@param or ---@return (`tag`). text:
-- the rest of the line behind the tag.
local function item_of(tag, text)
  local item = { text = "" }
  if tag ~= "return" then
    local name, mark, rest = text:match "^([%w_%.]+)(%??)%s+(.*)$"
    if not name then name, mark, rest = text:match "^(%b[])(%??)%s+(.*)$" end
    if not name then name, mark, rest = text, "", "any" end
    item.name, item.optional, text = name, mark == "?", rest
  end
  item.type, item.text = types.take(text)
  -- a result may have a name; what is said of it stands behind a gap
  if tag == "return" and item.text ~= "" and not text:find("^%s%s", #item.type + 1) then
    local names, said = item.text:match "^(.-)%s%s+(.*)$"
    item.type, item.text = item.type .. " " .. (names or item.text), said or ""
  end
  if item.type:find "[^%w]%?$" or item.type:find "%w%?$" then item.optional = true end
  return item
end

-- Parses the lines of a doc comment, without dashes, into { text, field, param, ["return"], class, parents, type,
-- internal }.
local function read_block(lines)
  local block = { text = {}, field = {}, param = {}, ["return"] = {}, documented = true }
  local last
  for _, line in ipairs(lines) do
    local tag, rest = line:match "^%s*@(%w+)%s*(.*)$"
    if tag == "class" then
      block.class, block.parents, last = rest:match "^([%w_%.]+)", {}, nil
      for parent in (rest:match ":(.*)" or ""):gmatch "[%w_%.]+" do table.insert(block.parents, parent) end
    elseif tag == "field" or tag == "param" or tag == "return" then
      last = item_of(tag, rest)
      table.insert(block[tag], last)
    elseif tag == "type" or tag == "overload" then
      block.type, last = rest, nil
    elseif tag == "internal" then
      block.internal, last = true, nil
    elseif tag then
      last = nil
    elseif last then
      last.text = last.text .. (last.text == "" and "" or " ") .. line:match "^%s*(.*)$"
    else
      table.insert(block.text, line)
    end
  end
  return block
end

-- ---- one file -------------------------------------------------------------------------------------------------------

-- Adds to a block (of read_block) the parameters and results of its ---@type fun(fields: x): y, if it has no ---@param.
local function read_signature(block)
  local inside, result = (block.type or ""):match "^fun(%b())%s*:?%s*(.*)$"
  if not inside or #block.param > 0 then return end
  for _, field in ipairs(types.fields("{" .. inside:sub(2, -2) .. "}")) do table.insert(block.param, field) end
  if result ~= "" and #block["return"] == 0 then block["return"][1] = item_of("return", result) end
end

-- Adds an annotated class, from the block of its comment (read_block), to found.classes. next_line: the line below it.
local function add_class(found, file, block, next_line)
  found.classes[#found.classes + 1] = {
    name = block.class, parents = block.parents, text = block.text, fields = block.field, path = file.path,
    folder = file.path:match "^(.*)/", var = next_line:match "^local ([%w_]+) =", overload = block.type,
    internal = block.internal or false,
  }
end

-- The owner and the name of the function that a line defines, "cq.x" and "f" of "function cq.x.f("; the owner is nil
-- for a local function. nil: it defines none.
local function defined(line)
  local owner, name = line:match "^function ([%w_%.]*[%w_])[%.:]([%w_]+)%s*%("
  if owner then return owner, name end
  owner, name = line:match "^([%w_]+)%.([%w_]+)%s*="
  if owner then return owner, name end
  return nil, line:match "^local function ([%w_]+)"
end

-- An iterator over number and text of the lines of a file that are not indented, and of the lines right behind a
-- comment.
local function outer_lines(text)
  local at, number, behind = 1, 0, false
  return function()
    while at <= #text do
      local from, first = at, text:byte(at)
      local stop = text:find("\n", at, true) or #text + 1
      at, number = stop + 1, number + 1
      if behind or first ~= SPACE and first ~= NEWLINE then
        behind = first == DASH
        return number, text:sub(from, stop - 1)
      end
    end
  end
end

-- Adds the annotated classes, and all functions, of a file { path, text } to `found` (cq.reference.Sources).
local function scan_file(found, file)
  local comment = {}
  for number, line in outer_lines(file.text) do
    local doc = line:sub(1, 3) == "---" and line:sub(4)
    if doc then
      comment[#comment + 1] = doc
    elseif #comment > 0 or line:find "^[%w_]" then
      local block = #comment > 0 and read_block(comment) or nil
      if block and block.class then add_class(found, file, block, line) end
      local owner, name = defined(line)
      if name and not (block and block.class) then
        block = block or { text = {}, param = {}, ["return"] = {} }
        read_signature(block)
        found.functions[#found.functions + 1] = {
          owner = owner, name = name, text = block.text, params = block.param, returns = block["return"],
          path = file.path, line = number, is_method = line:find "^function [%w_%.]+:" ~= nil,
          internal = block.internal or false, documented = block.documented or false,
        }
      end
      comment = {}
    end
  end
end

-- A list of the lines of the comment at the head of a file, without its dashes.
local function head_of(file)
  local head = {}
  for line in file.text:gmatch "([^\n]*)\n" do
    local text = line:match "^%-%-([^%-].*)$" or line:match "^%-%-$" and ""
    if not text then break end
    head[#head + 1] = text:gsub("^ ", "")
  end
  return head
end

---Is a class only a table of named fields that functions take (".def", "Options")?
---@param class cq.reference.Class?
---@return boolean
function scan.is_record(class)
  return class ~= nil and (class.name:find "%.def$" or class.name:find "Options$") ~= nil
end

---Annotated fields of a class, its own before its parents'; of two with the same name only the first.
---@param classes table<string, cq.reference.Class>
---@param class cq.reference.Class
---@return cq.reference.Item[]
function scan.items(classes, class)
  local out, seen = {}, {}
  -- Adds the fields of a class, then those of its parents.
  local function add(from)
    for _, item in ipairs(from.fields) do
      if not seen[item.name] then
        seen[item.name] = true
        out[#out + 1] = item
      end
    end
    for _, parent in ipairs(from.parents) do
      if classes[parent] then add(classes[parent]) end
    end
  end
  add(class)
  return out
end

-- ---- all files ------------------------------------------------------------------------------------------------------

-- Appends { path, text } of the Lua files of a folder and of the folders in it to a list.
local function walk(folder, into)
  local names = host.entries(host.root .. "/" .. folder) or {}
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    if name:find "%.lua$" then into[#into + 1] = { path = path, text = assert(read_file(host.root .. "/" .. path)) }
    elseif host.kind(host.root .. "/" .. path) == "folder" then walk(path, into) end
  end
end

-- Puts the types that ---@alias NAME TYPE gives names to, in one line, in the place of these names, in all items.
local function expand_aliases(sources)
  local aliases = {}
  for _, content in pairs(sources.texts) do
    for name, type in content:gmatch "\n%-%-%-@alias ([%w_%.]+) ([^\n]+)" do aliases[name] = type end
  end
  for _, list in ipairs { sources.classes, sources.functions } do
    for _, one in ipairs(list) do
      for _, item in ipairs(one.fields or one.params) do
        item.type = item.type:gsub("^[%w_%.]+", aliases)
      end
    end
  end
end

-- Sets methods, method_list and is_object of each class: a function is a method of the class that the variable before
-- its colon holds in the same file or folder.
local function attach_methods(sources)
  local by_file, by_folder = {}, {}
  for _, class in ipairs(sources.classes) do
    class.methods, class.method_list = {}, {}
    if class.var then
      by_file[class.path .. ":" .. class.var] = class
      by_folder[class.folder .. ":" .. class.var] = class
    end
  end
  for _, found in ipairs(sources.functions) do
    if found.is_method then
      local var = found.owner:match "([%w_]+)$"
      local class = by_file[found.path .. ":" .. var] or by_folder[found.path:match "^(.*)/" .. ":" .. var]
      if class and not found.name:find "^__" then
        class.methods[found.name] = found
        class.method_list[#class.method_list + 1] = found
      end
    end
  end
  for _, class in ipairs(sources.classes) do
    for _, item in ipairs(class.fields) do
      if item.type:find "^fun%(self" then class.methods[item.name] = class.methods[item.name] or item end
    end
    local is_module = class.name:find "Module$" or class.name == "cq"
    class.is_object = not class.internal and not scan.is_record(class) and not is_module
      and (next(class.methods) ~= nil or #class.fields > 0)
  end
end

---Reads the annotations of all sources of the library that runs.
---@return cq.reference.Sources
function scan.library()
  local files, found = {}, { classes = {}, functions = {}, heads = {}, texts = {} }
  walk("lua/cq", files)
  for _, file in ipairs(files) do
    found.heads[file.path], found.texts[file.path] = head_of(file), file.text
    scan_file(found, file)
  end
  attach_methods(found)
  expand_aliases(found)
  return found
end

return scan
