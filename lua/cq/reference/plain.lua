-- plain: the reference in a terminal, at most 100 columns wide.
local guide = require "cq.reference.guide"
local host = require "cq.host"
local prose = require "cq.reference.prose"

local plain = {}

local WIDTH = 100

-- A line in bold where the text goes to a terminal.
local function bold(page, line) return page.bold and "\27[1m" .. line .. "\27[0m" or line end

local Page = {}
Page.__index = Page

-- Appends a line.
function Page:add(line) self[#self + 1] = line end

-- Appends some lines.
function Page:add_all(lines)
  for _, line in ipairs(lines) do self:add(line) end
end

-- Appends a title, after an empty line.
function Page:title(line)
  if #self > 0 then self:add "" end
  self:add(bold(self, line))
end

---Appends a row "name   text", the text in a column of its own, which begins at `column`.
function Page:row(name, said, column)
  local head = "  " .. name .. (" "):rep(math.max(1, column - #name - 2))
  if #head > column then
    self:add("  " .. name)
    head = (" "):rep(column)
  end
  self:add_all(prose.wrap(said, WIDTH, head, (" "):rep(column)))
end

-- The column at which the texts behind these names begin: behind the longest name, unless that is out of proportion.
local function column_of(names)
  local widest = 8
  for _, name in ipairs(names) do
    if #name <= 26 then widest = math.max(widest, #name) end
  end
  return widest + 5
end

---The values that a field may have as text: "a finite number above 0; default 1". in_table: also says "required".
---@param field cq.reference.Field
---@return string
function plain.allowed(field, in_table)
  local words = { field.allowed }
  if field.default then words[2] = "default " .. field.default
  elseif in_table then words[2] = field.optional and "optional" or "required"
  elseif field.optional then words[2] = "optional" end
  return table.concat(words, "; ")
end

-- A list of the names of a list of fields.
local function names_of(list)
  local names = {}
  for k, item in ipairs(list) do names[k] = item.name end
  return names
end

-- Appends the fields of a table: name and type on one line, the description below. given: { fields, items? }; items: a
-- text on the entries without names, which gets a first line.
function Page:table(given)
  local column = column_of(names_of(given.fields))
  if given.items then self:row("1, 2, ...", given.items .. "; without a name", column) end
  for _, field in ipairs(given.fields) do
    self:row(field.name, plain.allowed(field, true), column)
    if field.text ~= "" then self:add_all(prose.wrap(field.text, WIDTH, (" "):rep(column + 2))) end
  end
end

-- Appends parameters or properties, name and meaning in two columns.
function Page:values(fields)
  local column = column_of(names_of(fields))
  for _, field in ipairs(fields) do
    self:row(field.name, plain.allowed(field) .. (field.text ~= "" and ": " .. field.text or ""), column)
  end
end

-- Appends the page of one function: call, text, parameters, tables of fields, results and source.
function Page:entry(entry)
  self:title(entry.call)
  if #entry.text > 0 then self:add_all(prose.fill(entry.text, WIDTH, "  ")) end
  if #entry.params > 0 then
    self:add ""
    self:values(entry.params)
  end
  for _, given in ipairs(entry.tables) do
    self:add ""
    if given.title ~= "" then self:add("  fields of " .. given.title:gsub("^%[integer%]$", "each entry")) end
    self:table(given)
  end
  for k, result in ipairs(entry.returns) do
    if k == 1 then self:add "" end
    self:row(k == 1 and "gives" or "", result.type .. (result.text ~= "" and ": " .. result.text or ""), 10)
  end
  if entry.source then
    self:add ""
    self:add("  " .. entry.source)
  end
end

---Splits the entries of a section into its constructors and functions, and the methods of its objects.
---@param section cq.reference.Section
---@return cq.reference.Entry[] functions, cq.reference.Entry[] methods
function plain.parts(section)
  local functions, methods = {}, {}
  for _, entry in ipairs(section.entries) do
    local list = entry.name:find ":" and methods or functions
    list[#list + 1] = entry
  end
  return functions, methods
end

-- Appends a list of functions, a row each, with the first sentence of their text.
function Page:list(entries)
  local column = column_of(names_of(entries))
  for _, entry in ipairs(entries) do self:row(entry.name, prose.summary(entry.text), column) end
end

---Appends the page of a section: its text, its constructor, and rows of its other functions, fields and methods.
function Page:section(section)
  self:title(section.name)
  self:add_all(prose.fill(prose.about(section.about), WIDTH, "  "))
  local functions, methods = plain.parts(section)
  if functions[1] and functions[1].name == section.name then self:entry(table.remove(functions, 1)) end
  if #functions > 0 then
    local kind = section.class and "constructors" or functions[1].name:find "^cqlua" and "commands"
      or functions[1].quantity and "quantities" or "functions"
    self:title(("%s; more of each: cqlua help %s"):format(kind, functions[1].name))
  end
  self:list(functions)
  if #section.properties > 0 then
    self:title(("fields of a %s"):format(section.class))
    self:values(section.properties)
  end
  if #methods > 0 then self:title(("methods; more of each: cqlua help %s"):format(methods[1].name)) end
  self:list(methods)
end

-- An empty page for a terminal; options.bold: with bold titles.
local function page(options) return setmetatable({ bold = options.bold }, Page) end

-- The lines of a page as one text.
local function concat(self) return table.concat(self, "\n") .. "\n" end

---An entry of the reference as text for a terminal.
---@param entry cq.reference.Entry
---@param options { bold: boolean }
---@return string
function plain.entry(entry, options)
  local out = page(options)
  out:entry(entry)
  return concat(out)
end

---The lines of examples that use a name (find.uses) as text, to stand under its page; empty without any.
---@param uses string[]
---@return string
function plain.uses(uses)
  local out = page {}
  for k, line in ipairs(uses) do
    if k == 1 then out:add "" end
    out:add("  " .. (#line > WIDTH - 2 and line:sub(1, WIDTH - 5) .. "..." or line))
  end
  return #uses > 0 and concat(out) or ""
end

---A section of the reference as text for a terminal.
---@param section cq.reference.Section
---@param options { bold: boolean }
---@return string
function plain.section(section, options)
  local out = page(options)
  out:section(section)
  return concat(out)
end

---The lines of text at the head of a section: its own, or its constructor's.
---@param section cq.reference.Section
---@return string[]
function plain.text_of(section)
  if #section.about > 0 then return section.about end
  local first = section.entries[1]
  return first and not first.name:find ":" and first.text or {}
end

---The HTML anchor of a name within a page: letters, digits and -. Capitals are kept, so that cq.Random and cq.random
---differ.
---@param name string
---@return string
function plain.anchor(name) return (name:gsub("[^%w_]+", "-")) end

---The page of `cqlua help` without a name: all classes and functions, a line each.
---@param book table
---@param options { bold: boolean }
---@return string
function plain.overview(book, options)
  local out = page(options)
  out:add "cqlua help NAME        a page: cq.World, cq.Shape.box, run:render, cq.zeros, bench"
  out:add "cqlua help WORD ...    what speaks of it: cqlua help stress, cqlua help initial velocity"
  -- Lists the sections of public names, or those of objects that functions give (is_object), a line each.
  local function list(title, is_object)
    out:title(title)
    local sections = {}
    for _, section in ipairs(book.sections) do
      if section.name ~= "cq" and section.name ~= "cqlua" and (section.is_object or false) == is_object then
        sections[#sections + 1] = section
      end
    end
    local column = column_of(names_of(sections))
    for _, section in ipairs(sections) do out:row(section.name, prose.summary(plain.text_of(section)), column) end
  end
  list("nouns", false)
  list("objects that they give", true)
  out:title "functions"
  out:list(book.section_of.cq.entries)
  local pages = guide.pages()
  if #pages > 0 then
    out:title("guide, in " .. host.root)
    local column = column_of(names_of(pages))
    for _, page_of in ipairs(pages) do out:row(page_of.name, page_of.text, column) end
  end
  out:title "the program"
  out:list(book.section_of.cqlua.entries)
  return concat(out)
end

---The hits of a search as text for a terminal: names, with the fields that match.
---@param hits { name: string, summary: string, fields: cq.reference.Field[] }[]
---@param options { bold: boolean }
---@return string
function plain.hits(hits, options)
  local out, told = page(options), {}
  local column = column_of(names_of(hits))
  for _, hit in ipairs(hits) do
    out:row(hit.name, hit.summary, column)
    for _, field in ipairs(hit.fields) do
      local line = ("%s: %s"):format(field.name, field.text ~= "" and field.text or plain.allowed(field))
      -- what many have in common is told of the first
      if not told[line] then out:add_all(prose.wrap(line, WIDTH, (" "):rep(column + 2), (" "):rep(column + 4))) end
      told[line] = true
    end
  end
  return concat(out)
end

return plain
