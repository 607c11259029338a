-- find: from what a user types to pages of the reference: by name, by the words of the texts, or what is nearest.
local host = require "cq.host"
local text = require "cq.base.text"
local plain = require "cq.reference.plain"
local prose = require "cq.reference.prose"
local words = require "cq.reference.words"

local find = {}

local SHOWN = 24                 -- hits of a search
local FIELDS_SHOWN = 4           -- of one hit
local USES_SHOWN = 4
local LETTERS_AN_EDIT = 4        -- a word of so many letters may have one edit and be taken for another, and so on
local SURE = 6                   -- words of fewer letters are taken for names alone, not for words of the texts

-- A list of all pages (sections and entries) under one name in lower case, a constructor before its class:
-- cq.Topology.filter before cq.Topology.Filter.
local function under(book, key)
  local entry, pages = book.by_name[key], {}
  for _, section in ipairs(book.sections) do
    if section.name:lower() == key then
      pages[#pages + 1] = section
      -- a section shows its own constructor
      if entry and entry.section == section then entry = nil end
    end
  end
  if entry then table.insert(pages, 1, entry) end
  return pages
end

---All pages (sections and entries) of a name, however it is written: "cq.World", "World", "cq.run:render",
---"Shape.box". A constructor is followed by its class of the same name; a name with the class's capitals gives the
---class alone.
---@param book table
---@param name string
---@return (cq.reference.Section|cq.reference.Entry)[]     none where nothing is called so
function find.pages(book, name)
  local written = name:gsub("%s*[%({].*$", "")
  local key = written:lower()
  for _, candidate in ipairs { key, "cq." .. key, (key:gsub("^cq%.", "")), (key:gsub("^t:", "tensor:")) } do
    local pages = under(book, candidate)
    for k = 2, #pages do
      if pages[k].name == written or pages[k].name == "cq." .. written then return { pages[k] } end
    end
    if #pages > 0 then return pages end
  end
  return {}
end

---The first page of a name: its section, or else its entry.
---@param book table
---@param name string
---@return cq.reference.Section? section, cq.reference.Entry? entry
function find.by_name(book, name)
  local page = find.pages(book, name)[1]
  if page and page.entries then return page end
  return nil, page
end

-- ---- examples -------------------------------------------------------------------------------------------------------

-- The Lua pattern of a line that uses a name. A method matches behind any object, unless several classes have a method
-- of that name: then only behind the object in `name`.
local function use_of(book, name)
  local method = name:match ":([%w_]+)$"
  if not method then return "%f[%w_]" .. name:gsub("%p", "%%%0") .. "%f[^%w_]" end
  for _, entry in ipairs(book.entries) do
    if entry.name ~= name and entry.name:match ":([%w_]+)$" == method then
      return "%f[%w_]" .. name .. "%f[^%w_]"
    end
  end
  return ":" .. method .. "%f[^%w_]"
end

---Lines of the examples that use the name of a page, at most one of each file.
---@param book table
---@param page cq.reference.Section|cq.reference.Entry
---@return string[]      "examples/biped.lua:20: run:render ..."
function find.uses(book, page)
  local pattern = page.quantity and '"' .. page.quantity .. '"' or use_of(book, page.name)
  local folder, found = host.root .. "/examples", {}
  local files = pattern and host.entries(folder) or {}
  table.sort(files)
  for _, file in ipairs(files) do
    local number, seen = 0, false
    for line in file:find "%.lua$" and io.lines(folder .. "/" .. file) or function() end do
      number = number + 1
      if not seen and #found < USES_SHOWN and not line:find "^%-%-" and line:find(pattern) then
        seen = true
        found[#found + 1] = ("examples/%s:%d: %s"):format(file, number, line:match "^%s*(.-)%s*$")
      end
    end
  end
  return found
end

-- ---- the words of others --------------------------------------------------------------------------------------------

-- The first sentence of the page with this name.
local function summary_of(book, name)
  local section, entry = find.by_name(book, name)
  return prose.summary(section and plain.text_of(section) or entry.text)
end

-- A list of the pages that words.lua names for any of the wanted words, as hits of find.search.
local function by_other_words(book, wanted)
  local found = {}
  for _, row in ipairs(words) do
    for _, word in ipairs(wanted) do
      if (" " .. row.words .. " "):find(" " .. word:lower() .. " ", 1, true) then
        for _, name in ipairs(row.see) do
          if not found[name] then found[#found + 1], found[name] = name, true end
        end
      end
    end
  end
  local hits = {}
  for k, name in ipairs(found) do hits[k] = { name = name, summary = summary_of(book, name), fields = {} } end
  return hits
end

-- ---- search ---------------------------------------------------------------------------------------------------------

-- Does the text `where`, in lower case, have a word that begins with `word`, an escaped pattern? A word of at most two
-- characters (E, nu, dt) must match a whole word.
local function has(where, word)
  return where:find("%f[%w]" .. word .. (#word <= 2 and "%f[^%w_]" or "")) ~= nil
end

-- A list of all fields of an entry: its parameters, and the fields of its tables.
local function fields_of(entry)
  local fields = {}
  for _, field in ipairs(entry.params) do fields[#fields + 1] = field end
  for _, given in ipairs(entry.tables) do
    for _, field in ipairs(given.fields) do fields[#fields + 1] = field end
  end
  return fields
end

-- The searchable text of one page: { name, lower: the name in lower case, said: its words in lower case, fields: a list
-- { field, said } }.
local function document(name, lines, fields, returns)
  local parts = { table.concat(lines, " ") }
  for _, result in ipairs(returns or {}) do parts[#parts + 1] = result.text end
  local doc = { name = name, lower = name:lower(), said = table.concat(parts, " "):lower(), fields = {} }
  for k, field in ipairs(fields) do
    doc.fields[k] = { field = field, said = table.concat({ field.name, field.text, field.allowed }, " "):lower() }
  end
  return doc
end

-- A list of documents, one for each noun, with its constructor, and for each function and method of the reference.
local function documents(book)
  local out = {}
  -- Adds a page to those that are searched.
  local function add(name, summary, lines, fields, returns)
    local doc = document(name, lines, fields, returns)
    doc.summary = prose.summary(summary)
    out[#out + 1] = doc
  end
  for _, section in ipairs(book.sections) do
    -- a noun and its constructor are one
    local first, lines, fields = section.entries[1], { unpack(section.about) }, { unpack(section.properties) }
    if first and first.name == section.name then
      for _, line in ipairs(first.text) do lines[#lines + 1] = line end
      for _, field in ipairs(fields_of(first)) do table.insert(fields, field) end
    end
    add(section.name, plain.text_of(section), lines, fields)
  end
  for _, entry in ipairs(book.entries) do
    local own = entry.name ~= entry.section.name
    if own then add(entry.name, entry.text, entry.text, fields_of(entry), entry.returns) end
  end
  return out
end

-- The points by which a document matches all wanted words, patterns of escaped, and the list of its fields that match,
-- at most FIELDS_SHOWN; nil when it lacks a word.
local function score(doc, wanted)
  local total, fields = 0, {}
  for _, word in ipairs(wanted) do
    local best = 0
    if doc.lower == word or doc.lower:match "([%w_]+)$" == word then best = 100
    elseif has(doc.lower, word) then best = 50
    elseif has(doc.summary:lower(), word) then best = 20
    elseif has(doc.said, word) then best = 5 end
    for _, item in ipairs(doc.fields) do
      if has(item.said, word) then
        best = math.max(best, item.field.name == word and 40 or 10)
        if #fields < FIELDS_SHOWN and fields[#fields] ~= item.field then fields[#fields + 1] = item.field end
      end
    end
    if best == 0 then return nil end
    total = total + best
  end
  return total, fields
end

-- The pages that have all wanted words, which are patterns in lower case, the best first: { name, summary, fields,
-- points, order } each.
local function search(docs, wanted)
  local hits = {}
  for order, doc in ipairs(docs) do
    local points, fields = score(doc, wanted)
    local hit = points and { name = doc.name, summary = doc.summary, fields = fields, points = points, order = order }
    hits[#hits + 1] = hit or nil
  end
  table.sort(hits, function(a, b)
    if a.points == b.points then return a.order < b.order end
    return a.points > b.points
  end)
  return hits
end

-- A list of the words of a search without their endings, so that "stresses" also finds stress, and "training" trains.
local function stems(wanted)
  local out = {}
  for k, word in ipairs(wanted) do
    local stem = word:gsub("ies$", "y"):gsub("ing$", ""):gsub("sses$", "ss"):gsub("([^s])s$", "%1")
    out[k] = #stem >= 3 and stem or word
  end
  return out
end

-- A list of words in lower case, as Lua patterns that match themselves.
local function escaped(list)
  local out = {}
  for k, word in ipairs(list) do out[k] = word:lower():gsub("[^%w_]", "%%%0") end
  return out
end

---Pages that contain all these words, or where none does, all without their endings, the best first; if there are any,
---behind those that words.lua names for a word. At most SHOWN of them, and how many there are.
---@param book table
---@param wanted string[]
---@return { name: string, summary: string, fields: cq.reference.Field[] }[] hits, integer count
function find.search(book, wanted)
  book.documents = book.documents or documents(book)
  local hits = search(book.documents, escaped(wanted))
  if #hits == 0 then hits = search(book.documents, escaped(stems(wanted))) end
  -- first the pages that hold what others call so
  local named = #hits > 0 and by_other_words(book, wanted) or {}
  for k = #hits, 1, -1 do
    for _, page in ipairs(named) do
      if hits[k] and page.name == hits[k].name then page.fields = table.remove(hits, k).fields end
    end
  end
  for k, page in ipairs(named) do table.insert(hits, k, page) end
  local count = #hits
  for k = count, SHOWN + 1, -1 do hits[k] = nil end
  return hits, count
end

---As find.search, without the page of `entry`, which is shown already.
---@param book table
---@param wanted string[]
---@param entry cq.reference.Entry
---@return { name: string, summary: string, fields: cq.reference.Field[] }[]
function find.others(book, wanted, entry)
  local out = {}
  for _, hit in ipairs((find.search(book, wanted))) do
    if hit.name ~= entry.name then out[#out + 1] = hit end
  end
  return out
end

-- ---- nothing fits ---------------------------------------------------------------------------------------------------

-- Is `word` the other word but for one edit in every LETTERS_AN_EDIT of its letters?
local function resembles(word, other)
  return text.distance(word, other) <= math.floor(#word / LETTERS_AN_EDIT)
end

-- A list { word, named } of all words that a search could mean; named: the word is the name of a page or field, not
-- only in a text. To be called after find.search, which makes book.documents.
local function vocabulary(book)
  local list, seen = {}, {}
  -- Appends a word in small letters, once, and not if it is shorter than three.
  local function add(word, named)
    word = word:lower()
    if #word > 2 and not seen[word] then
      seen[word] = true
      list[#list + 1] = { word = word, named = named }
    end
  end
  for _, section in ipairs(book.sections) do add(section.name:match "([%w_]+)$", true) end
  for _, entry in ipairs(book.entries) do
    add(entry.name:match "([%w_]+)$", true)
    add(entry.name, true)
    for _, field in ipairs(fields_of(entry)) do add(field.name:gsub("^%-%-", ""), true) end
  end
  for _, doc in ipairs(book.documents) do
    for word in doc.said:gmatch "%f[%a]%a%a%a%a+" do add(word, false) end
  end
  return list
end

-- The word of the reference that is spelt almost as one of the wanted words; nil: there is none.
local function misspelt(book, wanted)
  local found, least
  for _, entry in ipairs(vocabulary(book)) do
    for _, word in ipairs(wanted) do
      word = word:lower()
      if (entry.named or #word >= SURE) and resembles(word, entry.word) then
        local far = text.distance(word, entry.word) / #word
        if not least or far < least then found, least = entry.word, far end
      end
    end
  end
  return found
end

-- For a name that does not exist, such as "cq.Actuator.force": the members of cq.Actuator as hits of a search, or the
-- one member of similar spelling. Empty: no such noun.
local function members(book, name)
  local noun, word = name:match "^(.+%.%u.*)[%.:]([%w_]+)$"
  local hits = {}
  for _, page in ipairs(noun and find.pages(book, noun) or {}) do
    for _, entry in ipairs(page.entries or {}) do
      hits[#hits + 1] = { name = entry.name, summary = prose.summary(entry.text), fields = {} }
      if resembles(word, entry.name:match "([%w_]+)$") then return { hits[#hits] } end
    end
  end
  return hits
end

---Pages for words that no page contains: by synonyms of other programs, by the noun that the name would belong to, or
---by similar spelling. None for words of another subject.
---@param book table
---@param wanted string[]
---@return { name: string, summary: string, fields: table }[] hits, string? word     searched for instead, if misspelt
function find.nearest(book, wanted)
  local hits = by_other_words(book, wanted)
  if #hits > 0 then return hits end
  hits = members(book, wanted[1])
  if #hits > 0 then return hits end
  local word = misspelt(book, wanted)
  if word then return (find.search(book, { word })), word end
  return {}
end

return find
