-- book: the reference as data. What the library's own names are at run time, joined with the annotations of its sources
-- (scan.lua) and with the schemas that check what users give, so that nothing is said twice.
--
-- A book has sections, in the order of the class cq; a section has entries: one for each function, method or command.
local host = require "cq.host"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local field = require "cq.reference.field"
local quantity = require "cq.reference.quantity"
local formats = require "cq.export"
local scan = require "cq.reference.scan"
local types = require "cq.reference.type"

---@class cq.reference.Table        the named fields that a parameter takes
---@field title string              "" for the only parameter of a constructor
---@field fields cq.reference.Field[]
---@field items string?             what stands in it without names

---@class cq.reference.Entry
---@field name string               as users write it: "cq.Shape.box", "run:render"
---@field call string               with its parameters
---@field text string[]             lines of the comment
---@field params cq.reference.Field[]
---@field tables cq.reference.Table[]
---@field returns { type: string, text: string }[]
---@field section cq.reference.Section
---@field source string?            "lua/cq/world.lua:155"
---@field quantity string?          its name, where the entry is one that can be read of particles

---@class cq.reference.Section
---@field name string
---@field class string?             the class of its objects
---@field is_object boolean?        no name of cq, but what others give
---@field about string[]            the comment at the head of its file
---@field properties cq.reference.Field[]
---@field entries cq.reference.Entry[]

local Book = {}
Book.__index = Book

-- ---- tables ---------------------------------------------------------------------------------------------------------

---The name of the annotated class of the fields that a schema checks: world.rollout.def for the schema "world:rollout".
---@param name string
---@return string
local function class_name(name) return (name:gsub("[:%s]+", ".") .. ".def") end

-- Appends to out the table of named fields that a LuaCATS type stands for, { title, fields, items }, and the tables
-- that are types of those fields, or results of functions in them. title: how errors name the table, as "camera";
-- definition: its schema, nil for none.
function Book:add_tables(out, type, title, definition)
  for _, part in ipairs(types.split((type:gsub("%?$", "")))) do
    local name = part:gsub("%[%]$", "")
    -- a list of one class or another
    for _, one in ipairs(types.split(part:match "^(%b())%[%]$" or "")) do
      if self.classes[one] then self:add_tables(out, one, title .. "[k]", definition) end
    end
    local class = self.classes[name]
    local items = scan.is_record(class) and scan.items(self.classes, class) or types.fields(part)
    -- a table of values by name, as a list of tables
    local inner = part:match "^table<string,%s*(.*)>$"
    if inner then self:add_tables(out, inner, title .. ".NAME", definition) end
    if name ~= part and title ~= "" then title = title .. "[k]" end
    if items and #items > 0 and not (class and out[class]) then
      local of_class = self.by_class[name] or class and self.by_class[class.parents[1]]
      definition = scan.is_record(class) and of_class or definition
      if class then out[class] = true end
      local entries = definition and definition.items
      out[#out + 1] = { title = title, fields = field.joined(items, definition), items = entries and entries.label
        or nil }
      for _, item in ipairs(items) do
        local place = (title == "" and "" or title .. ".") .. item.name
        local result = item.type:match "^fun%b():%s*(.*)$"
        if result then self:add_tables(out, result, place .. "(...)", nil)
        elseif not item.type:find "^fun%(" then self:add_tables(out, item.type, place, nil) end
      end
    end
  end
end

-- ---- entries --------------------------------------------------------------------------------------------------------

-- The text of how a function is called: cq.World { ... } with a table of named fields, else robot:at(offset).
local function call_of(name, params, tables)
  if #params == 1 and tables[1] and tables[1].title == "" then return name .. " { ... }" end
  local words = {}
  for k, item in ipairs(params) do words[k] = item.name .. (item.optional and "?" or "") end
  return ("%s(%s)"):format(name, table.concat(words, ", "))
end

-- Adds the reference of one function to a section: its call, text, parameters, tables of fields and results; and notes
-- the classes that it names (follow). found: its annotation (cq.reference.Function). Returns the entry.
function Book:entry(name, found, section)
  local tables, params = {}, {}
  local definition = schema.registry[name]
  for _, item in ipairs(found.params) do
    local sole = #found.params == 1 and not item.type:find "^fun%("
    local before = #tables
    self:add_tables(tables, item.type, sole and "" or item.name, definition)
    if not (sole and #tables > before) then
      params[#params + 1] = field.of(item, item.name)
      if #tables > before and #types.split(item.type) == 1 then params[#params].allowed = "a table" end
    end
  end
  local returns = {}
  for k, item in ipairs(found.returns) do returns[k] = { type = item.type, text = item.text } end
  local entry = {
    name = name, call = call_of(name, found.params, tables), text = found.text, params = params, tables = tables,
    returns = returns, source = found.line and ("%s:%d"):format(found.path, found.line),
  }
  self:add_entry(section, entry)
  self:follow(found)
  return entry
end

-- Adds an entry to a section, to the book's entries, and by its name in lower case to by_name, unless that has one.
function Book:add_entry(section, entry)
  local key = entry.name:lower()
  entry.section = section
  self.entries[#self.entries + 1], self.by_name[key] = entry, self.by_name[key] or entry
  section.entries[#section.entries + 1] = entry
end

-- Notes the classes of objects that an annotated function returns, or passes to the user's functions, so that they get
-- sections of their own.
function Book:follow(found)
  for _, list in ipairs { found.returns, found.params } do
    for _, item in ipairs(list) do self:remember_classes(item.type) end
  end
end

-- Notes the classes that a LuaCATS type names, and those of their fields, so that they get sections of their own.
function Book:remember_classes(type)
  for name in types.classes(type) do
    local class = self.classes[name]
    if class and not self.known[name] then
      self.known[name] = true
      if class.is_object then self.waiting[#self.waiting + 1] = class end
      for _, item in ipairs(class.fields) do self:remember_classes(item.type) end
    end
  end
end

-- The annotation of a method that a class lists as a ---@field with type fun(self: cq.Tensor, ...): like a function's,
-- a new table, without self. Fails where item.type is no fun(...).
local function field_method(item, class)
  local inside, result = item.type:match "^fun(%b())%s*:?%s*(.*)$"
  local params = types.fields("{" .. inside:sub(2, -2) .. "}")
  if params[1] and params[1].name == "self" then table.remove(params, 1) end
  return {
    name = item.name, text = { item.text }, params = params, returns = { { type = result, text = "" } },
    path = class.path, documented = true, internal = false, is_method = true,
  }
end

-- ---- where things are annotated -------------------------------------------------------------------------------------

-- The path, from the program's root, and the line at which a function is defined.
local function place_of(f)
  local info = debug.getinfo(f, "S")
  local path = info.source:sub(1, 1) == "@" and info.source:sub(2) or ""
  if path:sub(1, #host.root + 1) == host.root .. "/" then path = path:sub(#host.root + 2) end
  return path, info.linedefined
end

-- The annotation of a function, or of a module that can be called. A function that was created at run time is found by
-- its name `key` in the file `path`. nil: it has no annotation.
function Book:annotated(value, key, path)
  local f = type(value) == "function" and value or getmetatable(value).__call
  local at, line = place_of(f)
  local found = self.by_line[at .. ":" .. line]
  if found and (found.documented or found.name == key) then return found end
  for _, candidate in ipairs(self.sources.functions) do
    local same = candidate.path == path and candidate.name == key
    if same and candidate.owner and candidate.documented then return candidate end
  end
  for _, class in ipairs(self.sources.classes) do
    if class.path == path and class.overload and class.name:find "Module$" then return self:overloaded(class) end
  end
  -- a method that is called as a function too
  for _, item in ipairs(self.classes["cq.Tensor"].fields) do
    if item.name == key then return field_method(item, self.classes["cq.Tensor"]) end
  end
end

-- A method's annotation as that of a function: the object before the colon becomes the first argument. The annotation
-- of a function is returned as it is.
local function as_function(found)
  if not found.is_method then return found end
  local params = { { name = "t", type = "cq.Tensor", optional = false, text = "" } }
  for _, item in ipairs(found.params) do params[#params + 1] = item end
  return setmetatable({ params = params }, { __index = found })
end

-- The annotation of a module that can be called, from the ---@overload of its class.
function Book:overloaded(class)
  local params, result = class.overload:match "^fun(%b())%s*:?%s*(.*)$"
  return {
    text = class.text, params = types.fields("{" .. params:sub(2, -2) .. "}"),
    returns = { { type = result, text = "" } }, documented = true, internal = false,
  }
end

-- The position in a file's text at which a name is first defined, infinite without one: the reference lists members in
-- that order.
local function position(source, name)
  local given = source:find("%f[%w_]" .. name .. "%s*=[^=]")
  local defined = source:find("\nfunction [%w_]+%." .. name .. "%(")
  return math.min(given or math.huge, defined or math.huge)
end

-- ---- sections -------------------------------------------------------------------------------------------------------

-- Appends a new section to the book and returns it. path: the file whose head comment is its text, nil for none.
function Book:section(name, path)
  local about = path and self.sources.heads[path] or {}
  local section = { name = name, about = about, properties = {}, entries = {}, path = path }
  self.sections[#self.sections + 1] = section
  self.section_of[name:lower()] = self.section_of[name:lower()] or section
  return section
end

-- The word that users write before the colon for an object of this class, as `run` of run:render; taken from the
-- class's error sentences.
function Book:word_of(class)
  local counts, best = {}, nil
  for word, method in self.sources.texts[class.path]:gmatch '"([%l_]+):([%l_]+)' do
    if class.methods[method] then counts[word] = (counts[word] or 0) + 1 end
  end
  for word, count in pairs(counts) do
    if not best or count > counts[best] or (count == counts[best] and word < best) then best = word end
  end
  return best or class.name:match("([%w_]+)$"):lower()
end

-- Adds the methods and fields of a class to its section.
function Book:add_class(section, class)
  section.class = class.name
  local word = self:word_of(class)
  for _, item in ipairs(scan.items(self.classes, class)) do
    if item.type:find "^fun%(self" then
      self:method(section, class, word, field_method(item, class))
    else
      section.properties[#section.properties + 1] = field.of(item, item.name)
      self:remember_classes(item.type)
    end
  end
  for _, found in ipairs(class.method_list) do
    if found.documented and not found.internal then self:method(section, class, word, found) end
  end
end

-- Adds a method to the section of its class, named by the word that users write before the colon.
function Book:method(section, class, word, found)
  local name = word .. ":" .. found.name
  if self.by_name[name:lower()] then name = class.name .. ":" .. found.name end
  local entry = self:entry(name, found, section)
  -- other ways to ask for it
  local short = class.name:match "([%w_]+)$"
  for _, front in ipairs { word .. ".", short .. ":", class.name .. ":", class.name .. "." } do
    local other = (front .. found.name):lower()
    self.by_name[other] = self.by_name[other] or entry
  end
end

-- Adds the functions of a module to a section: a family of constructors, or plain functions. path: of its file.
function Book:add_members(section, module, path)
  local names = {}
  for key, value in pairs(module) do
    if type(key) == "string" and not key:find "^_" and text.is_callable(value) then names[#names + 1] = key end
  end
  local places = {}
  for _, name in ipairs(names) do places[name] = position(self.sources.texts[path], name) end
  table.sort(names, function(a, b)
    if places[a] == places[b] then return a < b end
    return places[a] < places[b]
  end)
  for _, key in ipairs(names) do
    local found = self:annotated(module[key], key, path)
    local public = found and found.documented and not found.internal and not found.is_method
    if public then self:entry(section.name .. "." .. key, found, section) end
  end
end

-- The path of a module's file: "cq.shape" is lua/cq/shape.lua, or lua/cq/shape/init.lua; nil: it is none of the
-- library.
function Book:path_of(module)
  for name, value in pairs(package.loaded) do
    if rawequal(value, module) and name:find "^cq%." then
      local path = "lua/" .. name:gsub("%.", "/")
      return self.sources.texts[path .. ".lua"] and path .. ".lua" or path .. "/init.lua"
    end
  end
end

-- Adds the section of a public name of cq, such as cq.World: its constructor, its functions and families, and the class
-- of its objects.
function Book:add_noun(name, module)
  local path = self:path_of(module)
  local section = self:section("cq." .. name, path)
  if text.is_callable(module) then
    local found = self:annotated(module, name, path)
    if found then self:entry(section.name, found, section) end
  end
  self:add_members(section, module, path)
  local class = self.classes[section.name]
  if class and class.is_object then
    self.known[class.name] = true
    self:add_class(section, class)
  end
end

-- Adds a section for each class of objects that was noted and is no public name of cq. The comment at a file's head
-- goes to the first class in it, unless another section has it.
function Book:add_objects()
  local told = {}
  for _, section in ipairs(self.sections) do told[section.path or ""] = true end
  while #self.waiting > 0 do
    local class = table.remove(self.waiting, 1)
    if not self.nouns[class.name] then
      local section = self:section(class.name, not told[class.path] and #class.text == 0 and class.path or nil)
      if #class.text > 0 then section.about = class.text end
      section.is_object, told[class.path] = true, true
      self:add_class(section, class)
    end
  end
end

-- Adds the rest of the public names of cq: functions such as cq.grad, cq.Tensor, and modules of functions.
function Book:add_functions(cq, names)
  local section = self:section("cq", "lua/cq/init.lua")
  for _, name in ipairs(names) do
    if text.is_callable(cq[name]) and not self.nouns["cq." .. name] then
      local found = self:annotated(cq[name], name, "lua/cq/init.lua")
      if found then self:entry("cq." .. name, as_function(found), section) end
    end
  end
  self:add_class(self:section("cq.Tensor", "lua/cq/tensor/init.lua"), self.classes["cq.Tensor"])
  for _, name in ipairs(names) do
    local value = cq[name]
    local is_module = type(value) == "table" and not text.is_callable(value)
    if is_module and not self.nouns["cq." .. name] then self:add_noun(name, value) end
  end
end

-- ---- quantities -----------------------------------------------------------------------------------------------------

-- Adds a section of the quantities of particles that states can read. A quantity is found by its name alone too, unless
-- a command has that name.
function Book:add_quantities()
  local section = self:section("cq.Quantity")
  section.about = quantity.about
  for _, page in ipairs(quantity.pages()) do
    page.params, page.returns, page.tables = {}, {}, {}
    self:add_entry(section, page)
    self.by_name[page.quantity] = self.by_name[page.quantity] or page
  end
end

-- Adds a section of the file formats of exports, from their table.
function Book:add_formats()
  local section = self:section("formats")
  section.about = { "formats: files for other programs." }
  local fields = {}
  for k, format in ipairs(formats.formats) do
    fields[k] = { name = "." .. format.name, allowed = "a file", optional = true, text = format.summary }
  end
  self:add_entry(section, { name = "formats", params = {}, returns = {}, tables = { { title = "", fields = fields } },
    call = "state:save(path), rollout:export { format = }, run:export { format = }",
    text = { "Which format a file has is said by the ending of its path." } })
end

-- ---- the program ----------------------------------------------------------------------------------------------------

-- Adds a section of the commands of the program.
function Book:add_commands()
  local section = self:section("cqlua")
  section.about = { "cqlua: the program. It runs a script, `cqlua [options] script.lua [its options]`, or a command." }
  -- Adds a command to the section of the program.
  local function add(name, summary, options, arguments)
    self:add_entry(section, {
      name = name, call = ("%s [options]%s"):format(name, arguments and " " .. arguments or ""), text = { summary },
      params = {}, returns = {}, tables = { { title = "", fields = field.of_options(options) } },
    })
  end
  local declared = {}
  for _, entry in ipairs(require("cq.option").declared) do
    declared[entry.name] = setmetatable({ help = entry.help }, { __index = entry.kind })
  end
  local summary = "Runs a script. These options are the same for all scripts; a script's own stand after its name."
  add("cqlua script.lua", summary, declared)
  local folder = host.root .. "/lua/cq/command"
  local names = host.entries(folder)
  table.sort(names)
  for _, file in ipairs(names) do
    local name = file:match "^([%w_]+)%.lua$"
    if name then
      local command = require("cq.command." .. name)
      local said = command.summary:gsub("^%l", string.upper) .. "."
      add("cqlua " .. name, said, command.options or {}, command.arguments)
      self.by_name[name] = self.by_name[name] or self.by_name["cqlua " .. name]
    end
  end
end

-- ---- all of it ------------------------------------------------------------------------------------------------------

-- A book without sections, with classes by name and functions by file and line. sources: from scan.library.
local function index(sources)
  local self = setmetatable({
    sources = sources, classes = {}, by_line = {}, by_class = {}, nouns = {},
    sections = {}, section_of = {}, entries = {}, by_name = {},
    known = { ["cq.Tensor"] = true }, waiting = {},
  }, Book)
  for _, class in ipairs(sources.classes) do self.classes[class.name] = class end
  for _, found in ipairs(sources.functions) do self.by_line[("%s:%d"):format(found.path, found.line)] = found end
  return self
end

-- Loads all modules that define schemas, so that their definitions can be read.
local function require_definitions(sources)
  for path, source in pairs(sources.texts) do
    if source:find("is.define(", 1, true) or source:find("schema.define(", 1, true) then
      require((path:match "^lua/(.*)%.lua$":gsub("/init$", ""):gsub("/", ".")))
    end
  end
end

local book = {}

---The reference of the library that runs.
---@return table book     sections, entries, by_name, section_of
function book.new()
  local sources = scan.library()
  local self = index(sources)
  require_definitions(sources)
  local cq = require "cq"
  local names = getmetatable(cq).names()
  local modules = {}
  for _, item in ipairs(self.classes.cq.fields) do
    local value = cq[item.name]
    if type(value) == "table" and self:path_of(value) then
      modules[#modules + 1] = { name = item.name, value = value }
      self.nouns["cq." .. item.name] = true
    end
  end
  for name in pairs(schema.registry) do self.by_class[class_name(name)] = schema.registry[name] end
  for _, module in ipairs(modules) do self:add_noun(module.name, module.value) end
  self:add_functions(cq, names)
  self:add_objects()
  self:add_quantities()
  self:add_formats()
  self:add_commands()
  return self
end

return book
