-- csv: tables of numbers in text files, as measuring devices and spreadsheets write them: a line of names, then lines
-- of numbers.
--
--   local measured = cq.csv "finger.csv"            -- time [s],tip [mm]
--   print(measured)                                 -- cq.Csv { finger.csv, 200 rows: time [s], tip [mm] }
--   local times, tip = measured.time, measured.tip  -- tensors {rows}
--
--   cq.csv.save("found.csv", { { "time [s]", times }, { "tip [mm]", tip } })
local atomic_file = require "cq.base.atomic_file"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local locate = require "cq.base.locate"
local read_file = require "cq.base.read_file"
local table_of = require "cq.base.csv"
local T = require "cq.tensor"

---The columns of a file, from cq.csv: each is a field of its name, a tensor {rows}.
---@class cq.Csv
---@field [string] cq.Tensor     {rows}; a column that is called as a method, as "names" or "unit", is read by csv:column
local Csv = {}

local meta = { __name = "cq.Csv" }
-- what an object keeps beside its columns
local inside = setmetatable({}, { __mode = "k" })

-- ---- reading --------------------------------------------------------------------------------------------------------

local NAMES = { [","] = "commas", [";"] = "semicolons", ["\t"] = "tabs" }       -- of separators
local TRIED = 20             -- rows that tell the separator
local BOM = "\239\187\191"

---@class cq.csv.def
---@field separator? ","|";"|"\t"    between values; the one that fits head and rows unless given
---@field decimal? "."|","           before decimals; unless given, a comma where a file with semicolons or tabs has it
---@field skip? integer              lines at the beginning that are not read
---@field names? string[]            of all columns, as "time [s]", where no line of the file names them
---@field gaps? boolean              cells that are empty, or NaN, NA, N/A, #N/A, null, are nan; without, they are errors

local spec = is.define("cq.csv", {
  separator = is.one_of { ",", ";", "\t", optional = true },
  decimal = is.one_of { ".", ",", optional = true },
  skip = is.integer { min = 0, default = 0 },
  names = is.list(is.string(), { min = 1, optional = true }),
  gaps = is.boolean { default = false },
})

-- the cells of a number that is missing, in lower case, and what they are read as
local GAPS = {}
for _, cell in ipairs { "", "nan", "na", "n/a", "#n/a", "null" } do GAPS[cell] = 0 / 0 end

-- The number in a cell, written in decimals and finite; nil for all else, such as nan, 0x10 or 1,234.5. decimal: the
-- character before its decimals, a point or a comma; nil: any of them.
local function number_of(cell, decimal)
  local mark = cell:match "[%.,]"
  if mark and decimal and mark ~= decimal then return nil end
  if mark == "," then cell = cell:gsub(",", ".") end
  local number = not cell:find "[^%d%.eE%+%-]" and tonumber(cell)
  return number and number - number == 0 and number or nil
end

-- A cell that is no number, as text for an error. decimal: the character before the decimals of its file.
local function describe(cell, decimal)
  local what = cell == "" and "empty" or text.describe(cell) .. ", no finite number"
  if GAPS[cell:lower()] then return what .. "; gaps = true reads it as nan" end
  return what .. (not number_of(cell) and "" or decimal == "," and "; decimals stand after a comma"
    or "; decimals stand after a point, or after a comma with decimal = \",\"")
end

-- The name and the unit, nil without one, in the head of a column, as of "tip [mm]" or "tip (mm)".
local function name_of(cell)
  local name, unit = cell:match "^(.-)%s*%[([^%[%]]*)%]$"
  if not name then name, unit = cell:match "^(.-)%s*%(([^%(%)]*)%)$" end
  return name or cell, unit
end

-- Is a line a comment, which begins with #, and not with the gap #N/A as its first cell?
local function is_comment(line)
  return line:find "^%s*#" ~= nil and not (line .. ","):lower():find "^%s*#n/a%s*[,;\t]"
end

-- An iterator over the lines of a text that are neither empty nor comments, and their numbers. Between tabs there are
-- gaps. skip: how many lines are left out at the beginning.
local function lines_of(all, skip, separator)
  local following, number, full = all:gmatch "([^\n]*)\n", 0, separator == "\t" and "[%S\t]" or "%S"
  return function()
    for line in following do
      number = number + 1
      if number > skip and line:find(full) and not is_comment(line) then return line, number end
    end
  end
end

-- How well a separator fits the text of a file: the count of its first rows with as many cells as the head, each row
-- counted by its share of numbers; nil where the head is one cell.
local function fit_of(self, all, separator)
  local decimal, size, rows, fit = self.decimal or separator == "," and "." or nil, self.names and #self.names, 0, 0
  if size == 1 then return nil end
  for line in lines_of(all, self.skip, separator) do
    local cells, numbers = table_of.cells(line, separator) or {}, 0
    if size then
      for _, cell in ipairs(cells) do numbers = numbers + (number_of(cell, decimal) and 1 or 0) end
      rows, fit = rows + 1, fit + (#cells == size and numbers / size or 0)
    elseif #cells < 2 then
      return nil
    end
    size = size or #cells
    if rows == TRIED then break end
  end
  return fit
end

-- Raises an error if the first row of a file whose names were given has numbers between semicolons or tabs, but as many
-- as there are names only between commas, or not at all.
local function require_count(self, all, separator)
  local line = lines_of(all, self.skip, separator)()
  for _, other in ipairs { ";", "\t" } do
    local cells, numbers = line and table_of.cells(line, other) or {}, 0
    for _, cell in ipairs(cells) do numbers = numbers + (number_of(cell, self.decimal) and 1 or 0) end
    if other ~= separator and #cells > 1 and numbers == #cells then
      is.fail("cq.csv: %s has %s between %s, and there are %s: give as many, or separator = %q", self.path,
        text.count(#cells, "value"), NAMES[other], text.count(#self.names, "name"), separator or ",")
    end
  end
end

-- The character between the cells of a file: the one of those in its head that fits its first rows best. Errors: two
-- fit alike; more or fewer names than values.
local function separator_of(self, all)
  local best, most, other
  for _, separator in ipairs { ",", ";", "\t" } do
    local fit = fit_of(self, all, separator)
    if fit and (not most or fit > most) then
      best, most, other = separator, fit, nil
    elseif fit and fit == most and fit > 0 then
      other = separator
    end
  end
  if other then
    is.fail("cq.csv: %s may have %s or %s between its values; give separator = %q", self.path, NAMES[best], NAMES[other],
      best)
  end
  if self.names then require_count(self, all, best) end
  return best or self.decimal == "," and ";" or ","
end

-- A list of the cells of a line. number: of the line in the file, for errors. Errors: a line that is damaged.
local function cells_of(self, line, number)
  local cells, problem = table_of.cells(line, self.separator)
  if not cells then is.fail("cq.csv: line %d of %s has %s", number, self.path, problem) end
  return cells
end

-- Keeps the names and units of columns, from their heads, and the number of the column of each name.
local function take_heads(self, heads)
  self.names = {}
  for k, head in ipairs(heads) do
    local name, unit = name_of(head)
    self.names[k], self.units[k], self.columns[k] = name, unit, {}
    if self.numbers[name] then self.seconds[name] = self.seconds[name] or k else self.numbers[name] = k end
  end
end

-- Reads the line of column names. Errors: a name that is empty; a line of numbers alone.
local function read_header(self, line, number)
  take_heads(self, cells_of(self, line, number))
  local numbers = 0
  for k, name in ipairs(self.names) do
    if name == "" then
      is.fail("cq.csv: column %d of %s has no name in line %d; skip = %d with names = { ... } names all columns", k,
        self.path, number, number)
    end
    numbers = numbers + (number_of(name) and 1 or 0)
  end
  if numbers == #self.names then
    is.fail("cq.csv: %s begins with numbers in line %d; its first line must name the columns, as time [s],tip [mm], "
      .. "unless names = { ... } does", self.path, number)
  end
end

-- Remembers the first number with a point in a file whose decimals may stand after points and commas, the first with a
-- comma of each column, and whether a comma stands where none is between thousands. k: of the column; number: of the
-- cell's line.
local function see_decimals(self, k, cell, number)
  local mark = cell:match "[%.,]"
  if not mark then return end
  local told = ("%s in line %d"):format(cell, number)
  if mark == "." then self.point = self.point or told else self.commas[k] = self.commas[k] or told end
  self.has_decimals = self.has_decimals or not cell:find "^[%+%-]?[1-9]%d?%d?,%d%d%d$"
end

-- Keeps a sentence on each column with commas in a file with decimals after points too, or whose commas may all stand
-- between thousands.
local function check_decimals(self)
  for k, comma in pairs(self.commas) do
    if self.point or not self.has_decimals then
      self.problems[k] = ("cq.csv: %s has %s%s; give decimal = \",\" or decimal = \".\""):format(self.path, comma,
        self.point and " and " .. self.point or ", where the comma may stand before decimals or between thousands")
    end
  end
end

-- Appends a line of numbers to the columns, and keeps a sentence on the first cell of each column that is no finite
-- number. Errors: another number of cells than columns.
local function read_row(self, line, number)
  local cells = cells_of(self, line, number)
  if #cells ~= #self.names then
    is.fail("cq.csv: line %d of %s has %s, and there are %s: %s", number, self.path, text.count(#cells, "value"),
      text.count(#self.names, "column"), table.concat(self.names, ", "))
  end
  for k, cell in ipairs(cells) do
    local value, column = number_of(cell, self.decimal) or self.gaps and GAPS[cell:lower()], self.columns[k]
    if value then
      column[#column + 1] = value
      if not self.decimal then see_decimals(self, k, cell, number) end
    elseif not self.problems[k] then
      self.problems[k] = ("cq.csv: column %s in line %d of %s is %s"):format(self.names[k], number, self.path,
        describe(cell, self.decimal))
    end
  end
  self.rows = self.rows + 1
end

-- All bytes of a file, whose path is as given or beside the script. Errors: it cannot be read.
local function contents(path)
  local all, problem = read_file(locate(path))
  if not all then is.fail("cq.csv: cannot read '%s': %s", path, (tostring(problem):gsub("^.-: ", "", 1))) end
  return all
end

-- Reads a file into the data of a cq.Csv. Errors: those of cq.csv.
---@param path string
---@param def cq.csv.def
local function read(path, def)
  local all = contents(path)
  if all:sub(1, #BOM) == BOM then all = all:sub(#BOM + 1) end
  if all:find("%z") then
    is.fail("cq.csv: %s holds NUL bytes, so it is no text in UTF-8; a spreadsheet saves it as \"CSV UTF-8\"", path)
  end
  all = all:gsub("\r\n?", "\n") .. "\n"
  local self = { path = path, columns = {}, units = {}, numbers = {}, seconds = {}, problems = {}, rows = 0,
    commas = {}, decimal = def.decimal, skip = def.skip, gaps = def.gaps }
  if def.names then take_heads(self, def.names) end
  self.separator = def.separator or separator_of(self, all)
  if self.separator == "," then self.decimal = self.decimal or "." end
  for line, number in lines_of(all, self.skip, self.separator) do
    if self.names then read_row(self, line, number) else read_header(self, line, number) end
  end
  if not self.names then
    is.fail("cq.csv: %s is empty%s; its first line must name the columns", path, self.skip > 0
      and (" after line %d"):format(self.skip) or "")
  end
  if self.rows == 0 then is.fail("cq.csv: %s has the columns %s and no rows", path, table.concat(self.names, ", ")) end
  check_decimals(self)
  for k, column in ipairs(self.columns) do
    if not self.problems[k] then self.columns[k] = T.tensor(column) end
  end
  return self
end

-- ---- the object -----------------------------------------------------------------------------------------------------

-- A cq.Csv of its data.
local function made(own)
  local self = setmetatable({}, meta)
  inside[self] = own
  return self
end

-- The data of a csv object. Errors: a method was called with a dot.
local function of(self, method)
  local own = inside[self]
  if not own then is.fail("csv:%s: a method is called with a colon, csv:%s(...), not with a dot", method, method) end
  return own
end

-- The number of the column of a file (its data) that is asked for by its name or its number. Errors: none, with the
-- names that there are; two of this name.
local function place_of(own, name)
  local k = type(name) == "number" and own.names[name] and name or own.numbers[name]
  if not k then
    is.fail("%s has no column %s%s; its columns are %s", own.path, text.describe(name), type(name) == "string"
      and text.suggestion(name, own.names) or "", table.concat(own.names, ", "))
  elseif own.seconds[name] then
    is.fail("columns %d and %d of %s are called %s; csv:column(%d) reads the first", k, own.seconds[name], own.path,
      text.describe(name), k)
  end
  return k
end

---A column by its name, or by its number from 1, a tensor {rows}. Errors: no such column, with the names that there
---are; two of this name; a cell that is empty or no finite decimal number, with its line.
---@param name string|integer
---@return cq.Tensor
function Csv:column(name)
  local own = of(self, "column")
  local k = place_of(own, name)
  if own.problems[k] then is.fail("%s", own.problems[k]) end
  return own.columns[k]
end

---The names of the columns, in their order.
---@return string[]
function Csv:names() return { unpack(of(self, "names").names) } end

---The unit that stands behind the name of a column, as "mm" of "tip [mm]"; nil where there is none. Errors: those of
---csv:column.
---@param name string|integer
---@return string?
function Csv:unit(name)
  local own = of(self, "unit")
  return own.units[place_of(own, name)]
end

---The same columns without the rows that have a gap, of cq.csv(path, { gaps = true }): nan in one of the named columns.
---Errors: those of csv:column; no row is left.
---@param names? (string|integer)[]   all columns of numbers unless given
---@return cq.Csv
function Csv:without_gaps(names)
  local own = of(self, "without_gaps")
  local kind = is.list(is.any_of { is.string(), is.integer() }, { min = 1, optional = true })
  local columns, rows = {}, {}
  is.argument("csv:without_gaps", "names", kind, names)
  for k, name in ipairs(names or {}) do columns[k] = self:column(name) end
  for k, column in ipairs(own.columns) do
    if not names and not own.problems[k] then columns[#columns + 1] = column end
  end
  for row = 1, own.rows do
    local whole = true
    for _, column in ipairs(columns) do whole = whole and column:get(row) == column:get(row) end
    if whole then rows[#rows + 1] = row end
  end
  if #rows == 0 then is.fail("csv:without_gaps: every row of %s has a gap", own.path) end
  local left = { rows = #rows, columns = {} }
  for k, column in ipairs(own.columns) do
    left.columns[k] = own.problems[k] and column or column:gather(rows, 1)
  end
  return made(setmetatable(left, { __index = own }))
end

-- A method, or the column of this name, as csv.time. Errors: those of csv:column.
function meta:__index(name) return Csv[name] or Csv.column(self, name) end

-- Always an error: a cq.Csv cannot be changed.
function meta:__newindex(name)
  is.fail("a cq.Csv is what the file holds: %s cannot be set in it", text.describe(name))
end

-- The table in one line: path, rows and the heads of its columns.
function meta:__tostring()
  local own, heads = inside[self], {}
  for k, name in ipairs(own.names) do
    heads[k] = own.units[k] and ("%s [%s]"):format(name, own.units[k]) or name
  end
  return ("cq.Csv { %s, %s: %s }"):format(own.path, text.count(own.rows, "row"), table.concat(heads, ", "))
end

-- ---- writing --------------------------------------------------------------------------------------------------------

---@class cq.csv.save.def
---@field gaps? boolean      nan is written, as an empty cell

local save_spec = is.define("cq.csv.save", { gaps = is.boolean { default = false } })

-- Checks the columns that csv.save got: returns their heads, a list of cells, and their lists of numbers. Errors: a nil
-- between columns; a name that is empty, repeated or not one line; names that are all numbers; lists that are empty or
-- not all as long as the first; numbers that are infinite, or nan unless gaps are allowed.
local function checked(columns, gaps)
  if type(columns) ~= "table" or getmetatable(columns) or #columns == 0 then
    is.fail("cq.csv.save: columns must be a list, as { { \"time [s]\", times } }, got %s", text.describe(columns))
  end
  is.require_list(columns, "cq.csv.save: columns")
  local heads, lists, taken, is_named = {}, {}, {}, false
  for k, column in ipairs(columns) do
    if type(column) ~= "table" or getmetatable(column) or type(column[1]) ~= "string" or column[1] == "" then
      is.fail("cq.csv.save: column %d must be { \"name\", a tensor or a list of numbers }, got %s", k,
        text.describe(column))
    end
    local name = name_of(column[1])
    if taken[name] or name == "" or name:find "^%s*#" or name:find "[\r\n%z]" then
      is.fail("cq.csv.save: column %d is called %s, %s", k, text.describe(column[1]), taken[name] and "as another one"
        or name == "" and "which is a unit without a name" or "which must be one line that does not begin with #")
    end
    taken[name], is_named = true, is_named or not number_of(name)
    local values = T.as_tensor(column[2], "cq.csv.save: column " .. column[1])
    if values.rank ~= 1 or k > 1 and values.count ~= #lists[1] then
      is.fail("cq.csv.save: column %s must be a vector%s, got a tensor {%s}", column[1], k > 1
        and (" of %d numbers as %s"):format(#lists[1], heads[1]) or "", table.concat(values:shape(), ", "))
    end
    if values.count == 0 then is.fail("cq.csv.save: column %s has no numbers", column[1]) end
    heads[k], lists[k] = table_of.cell(column[1]), values:totable()
    for _, x in ipairs(lists[k]) do
      if x - x ~= 0 and (x == x or not gaps) then
        is.fail("cq.csv.save: column %s must be finite%s", column[1], x == x and "" or "; gaps = true writes nan as an "
          .. "empty cell")
      end
    end
  end
  if not is_named then
    is.fail("cq.csv.save: columns are called %s, which cq.csv would read as numbers; one name must be none",
      table.concat(heads, ", "))
  end
  return heads, lists
end

---Reads a file of columns of numbers: names in its first line, with a unit in brackets or without, then a line for each
---row. Commas, semicolons or tabs stand between values; between semicolons or tabs decimals may stand after commas.
---Quotes around values, a byte order mark, empty lines and lines that begin with # are read over, and a line may end as
---Windows ends it. A path is taken from the working directory, else the script's folder, else cqlua's. A column with
---texts in it is only told when it is asked for, and of two with one name each by its number. Errors, with the line:
---more or fewer values than columns, a file without a line of names or without rows; decimals after commas and after
---points, or commas that may all stand between thousands, as 1,234.
---
---  cq.csv.save("/tmp/finger.csv", { { "time [s]", { 0.1, 0.2 } }, { "tip [mm]", { 3, 4 } } })
---  local measured = cq.csv "/tmp/finger.csv"
---  print(measured.tip:sum():item(), measured:unit "tip")              --> 7  mm
---@class cq.CsvModule
---@overload fun(path: string, options?: cq.csv.def): cq.Csv
local csv = { class = meta }

---Writes columns of numbers, with all of their digits: cq.csv reads the same numbers. The file is written beside its
---place and renamed, so that there is never half of one. Errors: columns that are empty or of different lengths, two of
---one name, names that are all numbers; numbers that are infinite, or nan without gaps = true; a path that cannot be
---written.
---
---  local times = cq.arange(0, 1, 0.25)
---  cq.csv.save("/tmp/wave.csv", { { "time [s]", times }, { "height", times:sin() } })
---@param path string
---@param columns { [1]: string, [2]: cq.Tensor|number[] }[]   name, with a unit in brackets if it has one, and numbers
---@param options? cq.csv.save.def
---@return string path
function csv.save(path, columns, options)
  is.argument("cq.csv.save", "path", is.string(), path)
  local heads, lists = checked(columns, save_spec(options == nil and {} or options).gaps)
  atomic_file.write(path, table_of.columns(heads, lists, "%.17g"), { what = "cq.csv.save" })
  return path
end

return setmetatable(csv, {
  -- cq.csv: reads a file.
  __call = function(_, path, options)
    is.argument("cq.csv", "path", is.string(), path)
    return made(read(path, spec(options == nil and {} or options)))
  end,
})
