-- markdown: the reference as one Markdown file.
local guide = require "cq.reference.guide"
local host = require "cq.host"
local plain = require "cq.reference.plain"
local prose = require "cq.reference.prose"

local function add(out, format, ...) out[#out + 1] = select("#", ...) > 0 and format:format(...) or format end

-- what Markdown would take for marks of its own
local function escaped(said) return (said:gsub("[|<>*_]", "\\%0")) end

local function add_comment(out, lines)
  for _, block in ipairs(prose.blocks(lines)) do
    if block.kind == "paragraph" then
      add(out, "%s\n", escaped(table.concat(block.lines, " ")))
    else
      add(out, "```lua\n%s\n```\n", (table.concat(block.lines, "\n"):gsub("^  ", ""):gsub("\n  ", "\n")))
    end
  end
end

local function add_table(out, given)
  if given.title ~= "" then add(out, "Fields of `%s`:\n", given.title) end
  add(out, "| field | may be | | what |\n|---|---|---|---|")
  if given.items then add(out, "| 1, 2, ... | %s | without a name | |", escaped(given.items)) end
  for _, field in ipairs(given.fields) do
    local need = field.default and "default `" .. field.default .. "`" or field.optional and "optional" or "required"
    add(out, "| `%s` | %s | %s | %s |", field.name, escaped(field.allowed), need, escaped(field.text))
  end
  add(out, "")
end

local function add_values(out, fields)
  for _, field in ipairs(fields) do
    local said = field.text ~= "" and ": " .. escaped(field.text) or ""
    add(out, "- `%s`: %s%s", field.name, escaped(plain.allowed(field)), said)
  end
  add(out, "")
end

local function add_entry(out, entry)
  add(out, "### `%s`\n", entry.call)
  add_comment(out, entry.text)
  if #entry.params > 0 then add_values(out, entry.params) end
  for _, given in ipairs(entry.tables) do add_table(out, given) end
  for _, result in ipairs(entry.returns) do
    add(out, "Gives `%s`%s\n", result.type, result.text ~= "" and ": " .. escaped(result.text) or "")
  end
end

---@param book table
---@return string
return function(book)
  local out = {}
  add(out, "# Reference of cqlua %s\n", host.version)
  add(out, "Made by `make docs` from the sources; `cqlua help NAME` shows the same in the terminal.\n")
  for _, page in ipairs(guide.pages()) do add(out, "- guide, `%s`: %s", page.name, escaped(page.text)) end
  add(out, "")
  for _, section in ipairs(book.sections) do
    local summary = escaped(prose.summary(plain.text_of(section)))
    add(out, "- [%s](#%s): %s", section.name, plain.anchor(section.name), summary)
  end
  add(out, "")
  for _, section in ipairs(book.sections) do
    add(out, '<a id="%s"></a>\n\n## %s\n', plain.anchor(section.name), section.name)
    add_comment(out, prose.about(section.about))
    local functions, methods = plain.parts(section)
    for _, entry in ipairs(functions) do add_entry(out, entry) end
    if #section.properties > 0 then
      add(out, "### Fields of a `%s`\n", section.class)
      add_values(out, section.properties)
    end
    for _, entry in ipairs(methods) do add_entry(out, entry) end
  end
  return table.concat(out, "\n")
end
