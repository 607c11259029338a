-- help: the reference of the library, made from the annotations and schemas of its sources.
--   cqlua help                     what there is
--   cqlua help cq.World            a page; also cq.Shape.box, run:render, cq.zeros, bench
--   cqlua help stress              what speaks of it; a sentence where nothing does
--   cqlua help --format html       all of it, as one page
local host = require "cq.host"
local is = require "cq.base.schema"

-- The pages of the reference for these words, as text for a terminal. Where no page has the words as its name: the one
-- page that they find, or a list of those found. Returns true behind the text where nothing is found.
local function terminal_page(book, names)
  local find, plain = require "cq.reference.find", require "cq.reference.plain"
  local options = { bold = host.terminal(1) ~= nil }
  local asked = table.concat(names, " ")
  -- A page as text, with the functions that use it.
  local function shown(page)
    local said = page.entries and plain.section(page, options) or plain.entry(page, options)
    return said .. plain.uses(find.uses(book, page))
  end
  -- The pages of one name, or nil.
  local function page_of(name)
    local pages, parts = find.pages(book, name), {}
    if #pages == 0 then return nil end
    for k, page in ipairs(pages) do parts[k] = shown(page) end
    -- the name of a quantity is often that of other things too
    local others = pages[1].quantity == name and find.others(book, names, pages[1]) or {}
    if #others > 0 then parts[#parts + 1] = "what else speaks of it\n" .. plain.hits(others, options) end
    return table.concat(parts, "\n")
  end
  local page = page_of(asked)
  if page then return page end
  local hits, count = find.search(book, names)
  page = count == 1 and page_of(hits[1].name)
  if page then return page end
  if count > 0 then
    local more = count > #hits and ("\n%d more; another word makes them fewer\n"):format(count - #hits) or ""
    return plain.hits(hits, options) .. more
  end
  local near, word = find.nearest(book, names)
  if #near == 0 then
    return ("nothing is called %s, or speaks of it; cqlua help lists all that there is\n"):format(asked), true
  end
  local nearest = word and ("nearest is %s:"):format(word) or "nearest are"
  return ("nothing is called %s, or speaks of it; %s\n\n"):format(asked, nearest) .. plain.hits(near, options), true
end

return {
  summary = "the reference: of a name such as cq.World, or of what speaks of a word",
  arguments = "[name or words]",
  options = {
    format = is.one_of { "html", optional = true, help = "all of it, as one page" },
  },
  -- The subcommand: prints the pages of `names`, the overview, or the whole book. Returns 1 where nothing is found;
  -- nil: 0.
  run = function(options, names)
    local book = require("cq.reference.book").new()
    if options.format then
      io.write(require("cq.reference." .. options.format)(book))
      return
    end
    if #names == 0 then
      io.write(require("cq.reference.plain").overview(book, { bold = host.terminal(1) ~= nil }))
      return
    end
    local page, missing = terminal_page(book, names)
    io.write(page)
    if missing then return 1 end
  end,
}
