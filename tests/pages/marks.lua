-- marks: puts a generated text into a page, between the two comments that mark its place.
local source = require "tests.source"

local marks = {}

local function begins(name) return ("<!-- %s: made by `make docs` -->"):format(name) end
local function ends(name) return ("<!-- end of %s -->"):format(name) end

---The cells as a row of a table in Markdown.
---@param cells string[]
---@return string
function marks.row(cells)
  local out = {}
  for k, cell in ipairs(cells) do out[k] = cell:gsub("|", "\\|") end
  return "| " .. table.concat(out, " | ") .. " |"
end

---A table in Markdown.
---@param heads string[]
---@param rows string[][]
---@return string
function marks.table(heads, rows)
  local lines = { marks.row(heads), "|" .. ("---|"):rep(#heads) }
  for _, cells in ipairs(rows) do lines[#lines + 1] = marks.row(cells) end
  return table.concat(lines, "\n")
end

---Words in lines of at most 120 columns; the first begins with one text, all others with another.
---@param words string
---@param first string
---@param rest string
---@return string
function marks.wrapped(words, first, rest)
  local lines, current = {}, first
  for word in words:gmatch "%S+" do
    if #current + #word + 1 > 118 and current:find "%S" then
      lines[#lines + 1], current = current, rest .. word
    else
      current = current .. (current:find "%S$" and " " or "") .. word
    end
  end
  lines[#lines + 1] = current
  return table.concat(lines, "\n")
end

---The page with another text between the marks of a name.
---@param page string
---@param name string
---@param text string
---@return string
function marks.into(page, name, text)
  local _, first = page:find(begins(name), 1, true)
  local last = page:find(ends(name), first or 1, true)
  if not first or not last then
    error(("the page has no place for %s, from %s to %s"):format(name, begins(name), ends(name)), 0)
  end
  return page:sub(1, first) .. "\n" .. text .. "\n" .. page:sub(last)
end

---What the page of a path would be: every generated text in its place.
---@param path string
---@param texts table<string, string>   by the names of their marks
---@return string
function marks.fill(path, texts)
  local page = source.read(path)
  for name, text in pairs(texts) do page = marks.into(page, name, text) end
  return page
end

return marks
