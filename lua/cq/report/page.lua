-- page: one HTML file with everything in it: style, scripts, data, and texts that the scripts decode.
local atomic_file = require "cq.base.atomic_file"
local film = require "cq.report.film"
local host = require "cq.host"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local read_file = require "cq.base.read_file"
local text = require "cq.base.text"

local page = {}

local WIDE = 12              -- runs that are told side by side
local folder = host.root .. "/lua/cq/report/"
local scripts = { "decode.js", "view.js", "curves.js", "table.js", "page.js" }

-- The text of a file of the folder lua/cq/report.
local function read(name) return assert(read_file(folder .. name)) end

-- The text of all scripts of the page as one.
local function script()
  local out = {}
  for k, name in ipairs(scripts) do out[k] = read(name):gsub('^"use strict";\n', "") end
  return '"use strict";\n' .. table.concat(out, "\n")
end

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }

-- A script element of HTML with this content, in which </script> must not occur: the element would end there.
local function element(kind, id, content)
  return ('<script type="%s" id="%s">%s</script>\n'):format(kind, id, content)
end

---A page: runs and curves that all of them share are added to it, then it is written.
---@class cq.Report.page
---@field data table        what the scripts are given; decode.js and page.js say how it is used
---@field texts string[]    base64, by number from 1
local Page = {}
Page.__index = Page

---An empty page, to which runs and curves are added.
---@param title string
---@return cq.Report.page
function page.new(title)
  return setmetatable({
    texts = {}, data = { title = title, runs = {}, curves = {}, palettes = film.palettes(),
      made = ("cqlua %s, %s"):format(host.version, os.date "!%Y-%m-%d %H:%M UTC") },
  }, Page)
end

---Keeps a text, and returns the number by which the page's data refer to it.
---@param content string
---@return integer
function Page:add(content)
  self.texts[#self.texts + 1] = content
  return #self.texts
end

-- The table of facts of several runs, { heads, rows }, a column for each run and a row for each fact that differs; of a
-- single run, all facts.
local function side_by_side(runs)
  local names, heads, rows = {}, { "" }, {}
  for k, run in ipairs(runs) do
    heads[k + 1] = run.name
    for name in pairs(run.facts) do names[name] = true end
  end
  for name in pairs(names) do
    local row, differs = { name }, #runs == 1
    for k, run in ipairs(runs) do
      row[k + 1] = run.facts[name] == nil and "" or run.facts[name]
      differs = differs or row[k + 1] ~= row[2]
    end
    if differs then rows[#rows + 1] = row end
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  return { heads = heads, rows = rows }
end

---The whole page as HTML text. Moves the facts of its runs into one table.
---@return string
function Page:html()
  local data = self.data
  if #data.runs > 0 then
    data.facts = data.facts or side_by_side({ unpack(data.runs, 1, WIDE) })
    for _, run in ipairs(data.runs) do run.facts = nil end
  end
  local parts = { element("application/json", "data", (page.json(data):gsub("<", "\\u003c"))) }
  for k, content in ipairs(self.texts) do parts[#parts + 1] = element("text/plain", "blob-" .. k, content) end
  local fill = {
    title = data.title:gsub("[&<>]", entities), style = read "page.css", script = script(),
    data = table.concat(parts), facts = #data.runs > 1 and "What differs" or "Run",
    connect = data.live and "'self'" or "'none'",
  }
  return (read "page.html":gsub("{{(%l+)}}", fill))
end

-- lists that the scripts go through, also where they are empty: JSON of an empty Lua table is {}
local lists = { runs = true, curves = true, channels = true, groups = true, cables = true, walls = true, rows = true,
  columns = true, series = true, x = true, y = true, axes = true, corners = true, particles = true }

---Data as one line of JSON, in which a list that is empty stays a list.
---@param data table
---@return string
function page.json(data)
  return (json.encode(data):gsub('"(%l+)": {}', function(name)
    return lists[name] and ('"%s": []'):format(name) or nil
  end))
end

-- A number of bytes as text, such as "1.2 MB".
local function size_of(bytes)
  return bytes < 1e5 and ("%.0f kB"):format(bytes / 1e3) or ("%.1f MB"):format(bytes / 1e6)
end

-- The films of a page as text, "3125 particles x 60 frames" each; empty without any.
local function bodies_of(data)
  local out = {}
  for _, run in ipairs(data.runs) do
    if run.film then
      out[#out + 1] = ("%s x %s"):format(text.count(run.film.count, "particle"), text.count(#run.film.times, "frame"))
    end
  end
  if #out > 3 then out = { text.count(#out, "body"):gsub("bodys", "bodies") .. "", out[1] } end
  return #out > 0 and ", " .. table.concat(out, ", ") or ""
end

---Raises an error if a path does not end in .html.
---@param path any
---@param what string           for errors
function page.check(path, what)
  is.argument(what, "path", is.string(), path)
  if not path:match "%.html$" then is.fail("%s: path must end in .html, got %s", what, text.describe(path)) end
end

---Raises an error if a path cannot be written, before anything is simulated; an existing file stays as it is.
---@param path string
---@param what string           the function or command that the error names
---@param advice? string        what the error ends with
function page.require_writable(path, what, advice)
  local problem = atomic_file.problem(path)
  if problem then is.fail("%s: %s cannot be written: %s%s", what, path, problem, advice and "; " .. advice or "") end
end

---Writes the page, whole or not at all, and prints its path and size.
---@param path string
---@param what string           for errors
---@return string path
function Page:write(path, what)
  local bytes = self:html()
  atomic_file.write(path, bytes, { what = what })
  message.note("%s: %s%s", path, size_of(#bytes), bodies_of(self.data))
  return path
end

return page
