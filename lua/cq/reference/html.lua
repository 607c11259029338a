-- html: the reference as one page that needs nothing else: an index, and a section for each noun.
local guide = require "cq.reference.guide"
local host = require "cq.host"
local plain = require "cq.reference.plain"
local prose = require "cq.reference.prose"

local STYLE = [[
:root { color-scheme: light dark; --line: #8884; --faint: #777; --mark: #8882; --link: #0a64a4; }
@media (prefers-color-scheme: dark) { :root { --link: #7ab8ea; } }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 17rem minmax(0, 58rem); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; box-sizing: border-box; padding: 1rem; font-size: 14px;
  border-right: 1px solid var(--line); }
nav details { margin: .15rem 0; }
nav ul { list-style: none; margin: 0 0 .4rem; padding-left: 1.1rem; }
nav p { margin: .15rem 0 .15rem 1rem; }
main { padding: 1rem 2rem 6rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
h2 { margin: 3rem 0 .5rem; border-bottom: 2px solid var(--line); }
h3 { margin: 2rem 0 .4rem; font: 600 1rem/1.4 ui-monospace, monospace; }
code, pre { font: .9em/1.45 ui-monospace, monospace; }
pre { background: var(--mark); padding: .7rem 1rem; overflow-x: auto; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .94em; }
td, th { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; }
.need { color: var(--faint); white-space: nowrap; }
.source { color: var(--faint); font-size: .8em; font-weight: normal; float: right; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { position: static; height: auto; }
  main { padding: 1rem; }
}
]]

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
-- Text with HTML's special characters escaped.
local function escaped(said) return (said:gsub("[&<>\"]", entities)) end

local Page = {}
Page.__index = Page

-- Appends a line of HTML. format, ...: as string.format takes them; format alone is taken as it is.
function Page:add(format, ...) self[#self + 1] = select("#", ...) > 0 and format:format(...) or format end

-- A text, escaped, as HTML in which names that have an entry become links to it.
function Page:linked(said)
  return (escaped(said):gsub("%f[%w_][%a_][%w_]*[%.:][%w_%.:]*[%w_]", function(name)
    if self.anchors[name] then return ('<a href="#%s">%s</a>'):format(plain.anchor(name), name) end
  end))
end

-- A sentence as HTML: characters escaped, `code` between backquotes as code.
function Page:prose(said)
  return (self:linked(said):gsub("`([^`]+)`", "<code>%1</code>"))
end

-- Appends the lines of a comment: paragraphs, and blocks of code.
function Page:comment(lines)
  for _, block in ipairs(prose.blocks(lines)) do
    if block.kind == "paragraph" then
      self:add("<p>%s</p>", self:prose(table.concat(block.lines, " ")))
    else
      self:add("<pre>%s</pre>", self:linked((table.concat(block.lines, "\n"):gsub("^  ", ""):gsub("\n  ", "\n"))))
    end
  end
end

-- Appends a table of fields. given: { title, fields, items }.
function Page:table(given)
  if given.title ~= "" then self:add("<p>Fields of <code>%s</code>:</p>", escaped(given.title)) end
  self:add "<table>"
  local row = '<tr><td>%s</td><td>%s</td><td class="need">%s</td><td>%s</td></tr>'
  if given.items then self:add(row, "1, 2, ...", self:linked(given.items), "without a name", "") end
  for _, field in ipairs(given.fields) do
    local need = field.optional and "optional" or "required"
    if field.default then need = "default <code>" .. escaped(field.default) .. "</code>" end
    self:add(row, "<code>" .. field.name .. "</code>", self:linked(field.allowed), need, self:prose(field.text))
  end
  self:add "</table>"
end

-- Appends parameters or properties, a list of cq.reference.Field, as a table.
function Page:values(fields)
  self:add "<table>"
  for _, field in ipairs(fields) do
    self:add("<tr><td><code>%s</code></td><td>%s</td><td>%s</td></tr>", escaped(field.name),
      self:linked(plain.allowed(field)), self:prose(field.text))
  end
  self:add "</table>"
end

-- Appends the section of one function: call, text, parameters, tables of fields, and results.
function Page:entry(entry)
  -- a noun's own place is its section
  local place = entry.name == entry.section.name and entry.name .. " call" or entry.name
  local source = entry.source and ('<span class="source">%s</span>'):format(escaped(entry.source)) or ""
  self:add('<h3 id="%s">%s%s</h3>', plain.anchor(place), escaped(entry.call), source)
  self:comment(entry.text)
  if #entry.params > 0 then self:values(entry.params) end
  for _, given in ipairs(entry.tables) do self:table(given) end
  for _, result in ipairs(entry.returns) do
    local said = result.text ~= "" and ": " .. self:prose(result.text) or ""
    self:add("<p>Gives <code>%s</code>%s</p>", self:linked(result.type), said)
  end
end

-- Appends the index of all sections of a book.
function Page:index(book)
  self:add "<nav>"
  for _, section in ipairs(book.sections) do
    local items = {}
    for _, entry in ipairs(section.entries) do
      if entry.name ~= section.name then
        items[#items + 1] = ('<li><a href="#%s">%s</a></li>'):format(plain.anchor(entry.name), escaped(entry.name))
      end
    end
    local link = ('<a href="#%s">%s</a>'):format(plain.anchor(section.name), escaped(section.name))
    if #items == 0 then self:add("<p>%s</p>", link)
    else self:add("<details><summary>%s</summary><ul>%s</ul></details>", link, table.concat(items)) end
  end
  self:add "</nav>"
end

---The whole reference, a book, as the text of an HTML page.
---@param book table
---@return string
return function(book)
  local page = setmetatable({ anchors = {} }, Page)
  for _, section in ipairs(book.sections) do page.anchors[section.name] = true end
  for _, entry in ipairs(book.entries) do page.anchors[entry.name] = true end
  page:add '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
  page:add '<meta name="viewport" content="width=device-width">'
  page:add("<title>cqlua %s: reference</title>\n<style>\n%s</style>\n</head>\n<body>", host.version, STYLE)
  page:index(book)
  page:add("<main>\n<h1>cqlua %s: reference</h1>", host.version)
  page:add "<p>Made by <code>make docs</code> from the sources; <code>cqlua help NAME</code> shows the same.</p>"
  page:add "<ul>"
  for _, one in ipairs(guide.pages()) do
    page:add("<li>guide, <code>%s</code>: %s</li>", one.name, escaped(one.text))
  end
  page:add "</ul>"
  for _, section in ipairs(book.sections) do
    page:add('<section>\n<h2 id="%s">%s</h2>', plain.anchor(section.name), escaped(section.name))
    page:comment(prose.about(section.about))
    local functions, methods = plain.parts(section)
    for _, entry in ipairs(functions) do page:entry(entry) end
    if #section.properties > 0 then
      page:add("<h3>Fields of a %s</h3>", section.class)
      page:values(section.properties)
    end
    for _, entry in ipairs(methods) do page:entry(entry) end
    page:add "</section>"
  end
  page:add "</main>\n</body>\n</html>\n"
  return table.concat(page, "\n")
end
