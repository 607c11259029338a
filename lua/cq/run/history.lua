-- history: numbers of each iteration as a CSV file, a line as soon as it is known. Columns begin iteration,loss.
local atomic_file = require "cq.base.atomic_file"
local host = require "cq.host"
local message = require "cq.base.message"
local schema = require "cq.base.schema"
local text = require "cq.base.text"

---@class cq.History
---@field path string
---@field columns string[]
local History = {}
History.__index = History
History.__name = "cq.History"

local SPREAD = 16            -- a tensor of up to so many elements gets a column for each

-- A value as the text of a cell of history.csv; "" for nil.
local function cell(value)
  if value == nil then return "" end
  if type(value) == "number" then return text.exact(value) end
  if type(value) == "boolean" then return value and "1" or "0" end
  return (tostring(value):gsub('[,\n"]', " "))
end

-- Adds a user's tensor to a row of the history, in place: one number as it is, up to SPREAD numbers as columns of their
-- own, more as least, mean and greatest.
local function spread(row, name, value)
  local data, count = value:data(), value.count
  if count == 1 then
    row[name] = data[0]
  elseif count <= SPREAD then
    for i = 1, count do row[("%s.%d"):format(name, i)] = data[i - 1] end
  else
    local least, greatest, sum = math.huge, -math.huge, 0
    for i = 0, count - 1 do
      least, greatest, sum = math.min(least, data[i]), math.max(greatest, data[i]), sum + data[i]
    end
    row[name .. ".min"], row[name .. ".mean"], row[name .. ".max"] = least, sum / count, greatest
  end
end

---A row of plain values from the values that a user records: numbers, booleans, strings, tensors. Errors: names with
---commas or quotes; other values.
---@param fields table<string, any>
---@param where string        for errors: "cq.log"
---@return table<string, number|boolean|string>
function History.row(fields, where)
  local row = {}
  for name, value in pairs(fields) do
    if type(name) ~= "string" or name:find "[,%c\"]" then
      schema.fail("%s: a column's name must be a string without commas and quotes, got %s", where, text.describe(name))
    end
    local kind = type(value)
    if kind == "number" or kind == "boolean" or kind == "string" then
      row[name] = value
    elseif text.is_instance(value, "cq.Tensor") then
      spread(row, name, value)
    else
      schema.fail("%s: %s must be a number, a string, true or false, or a tensor, got %s", where, name,
        text.describe(value))
    end
  end
  return row
end

---The names of a row's values in the order in which they are shown: iteration, epoch, loss, then the others by the
---alphabet.
function History.order(row)
  local names, rank = {}, { iteration = 1, epoch = 2, loss = 3 }
  for name in pairs(row) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    local at, bt = rank[a] or 9, rank[b] or 9
    if at ~= bt then return at < bt end
    return a < b
  end)
  return names
end

-- A list of the cells of a line of CSV.
local function split(line)
  local cells = {}
  for part in (line .. ","):gmatch "([^,]*)," do cells[#cells + 1] = part end
  return cells
end

-- The iteration of a line of history.csv, its first cell; nil if that is no number.
local function iteration_of(line) return tonumber(line:match "^[^,]*") end

-- Is the text of a cell a number? nan and inf are, as LuaJIT reads them.
local function is_number(cell_of_line) return tonumber(cell_of_line) ~= nil end

-- A text on why line `number` of a file cannot be one of a run's history; nil if it can. columns: of the first line.
local function problem_of(line, columns, number)
  local count = select(2, line:gsub(",", "")) + 1
  local iteration, loss = line:match "^([^,]*),([^,]*)"
  if number == 1 and not line:match "^iteration,loss" then
    return "is no history of a run: its first line must begin with iteration,loss"
  elseif count ~= #columns then
    return ("is damaged: line %d has %s, and its first line %s"):format(number, text.count(count, "cell"),
      text.count(#columns, "column"))
  elseif number > 1 and not is_number(iteration) then
    return ("is damaged: line %d has no number of an iteration but %s"):format(number, text.describe(iteration))
  elseif number > 1 and loss ~= "" and not is_number(loss) then
    return ("is damaged: line %d has the loss %s"):format(number, text.describe(loss))
  end
end

-- Reads an open history file: its columns, a list of its lines up to iteration `last`, and an unfinished last line, ""
-- without one; if it is damaged, the error's text as fourth result. columns: nil for an empty file.
local function read(file, last)
  file:seek "set"
  local all, refused = file:read "*a"
  if not all then return nil, {}, "", "cannot be read: " .. tostring(refused) end
  local columns, lines, number = nil, {}, 0
  -- a spreadsheet may have saved it with the line ends of Windows
  for line in all:gmatch "([^\n]-)\r?\n" do
    number, columns = number + 1, columns or split(line)
    local problem = problem_of(line, columns, number)
    if problem then return columns, lines, "", problem end
    if number > 1 and (iteration_of(line) or math.huge) <= last then lines[#lines + 1] = line end
  end
  return columns, lines, all:match "[^\n]*$"
end

---The rows of a history file as tables by column name; numbers as numbers, empty cells left out.
---@param path string
---@param shown? string       path to name in errors, if the file is a copy
---@return table<string, number|string>[]
function History.rows(path, shown)
  local file, problem = io.open(path)
  if not file then schema.fail("cq.Run.read_history: there is no history: %s", problem) end
  local columns, lines, torn, wrong = read(file, math.huge)
  file:close()
  if wrong then schema.fail("%s %s", shown or path, wrong) end
  if torn ~= "" then message.warn("%s ends within a line, which is left out", shown or path) end
  local rows = {}
  for i, line in ipairs(lines) do
    rows[i] = {}
    for k, text_of_cell in ipairs(split(line)) do
      if text_of_cell ~= "" then rows[i][columns[k]] = tonumber(text_of_cell) or text_of_cell end
    end
  end
  return rows
end

-- Warns if the history of a resumed run lacks iterations before the one it continues after. torn: its unfinished last
-- line.
local function warn_of_gap(path, columns, lines, last, torn)
  local from = lines[#lines] and iteration_of(lines[#lines]) or 0
  local beyond = torn:find(",", 1, true) and (iteration_of(torn) or 0) > last      -- it was being written
  if from >= last or beyond or torn == "" and columns then return end
  message.warn("%s %s; it lacks what came after iteration %d up to %d, where the run goes on", path,
    torn ~= "" and "ends within a line" or "was lost or emptied", from, last)
end

---Copies a history up to an iteration into another file. Errors: there is no such file, or it is no run's history.
---@param path string
---@param to string
---@param last integer
function History.copy(path, to, last)
  local file, problem = io.open(path)
  if not file then schema.fail("there is no history to go on with: %s", problem) end
  local columns, lines, _, wrong = read(file, last)
  file:close()
  if wrong or not columns then schema.fail("%s %s", path, wrong or "is empty") end
  table.insert(lines, 1, table.concat(columns, ","))
  atomic_file.write(to, table.concat(lines, "\n") .. "\n", { durable = true })
end

-- The columns and lines of a resumed run's history up to its last iteration; columns nil: there is no file. Errors: a
-- file that is no run's history.
local function recorded(path, last)
  local file, columns, lines, torn, wrong = io.open(path), nil, {}, "", nil
  if file then
    columns, lines, torn, wrong = read(file, last)
    file:close()
  end
  if wrong then schema.fail("%s %s; take it away or mend it, or start without --resume", path, wrong) end
  warn_of_gap(path, columns, lines, last, torn)
  return columns, lines
end

-- Raises the error that the history cannot be written.
local function write_error(path, problem)
  schema.fail("%s cannot be written: %s; what was written before is kept", path, tostring(problem))
end

-- Replaces the file by self.columns and the given lines (texts without line ends), and opens it to append. Appends an
-- empty text to the list `lines`. Errors: the file cannot be written.
function History:rewrite(lines)
  lines[#lines + 1] = ""
  local all = table.concat(self.columns, ",") .. "\n" .. table.concat(lines, "\n")
  atomic_file.write(self.path, all, { durable = true })
  if self.file then self.file:close() end
  self.file = nil
  local file, problem = io.open(self.path, "a+")
  if not file then write_error(self.path, problem) end
  self.file = file
end

---Opens the history file of a run to append to it. Lines after iteration `last` are dropped: all of them for 0.
---@param path string
---@param last? integer       iteration after which a run is resumed
---@return cq.History
function History.open(path, last)
  local self = setmetatable({ path = path, columns = { "iteration", "loss" } }, History)
  local columns, lines = nil, {}
  if last and last > 0 then columns, lines = recorded(path, last) end
  self.columns = columns or self.columns
  self:rewrite(lines)
  return self
end

-- Adds to the file the columns that a row has and the file lacks; earlier lines get empty cells.
function History:widen(row)
  local known, new = {}, {}
  for _, name in ipairs(self.columns) do known[name] = true end
  for _, name in ipairs(History.order(row)) do
    if not known[name] then new[#new + 1] = name end
  end
  if #new == 0 then return end
  local _, lines = read(self.file, math.huge)
  for i, line in ipairs(lines) do lines[i] = line .. (","):rep(#new) end
  for _, name in ipairs(new) do self.columns[#self.columns + 1] = name end
  self:rewrite(lines)
end

---Writes the file again if somebody removed it: its content can still be read through the open handle.
function History:keep()
  if host.kind(self.path) then return end
  local _, lines = read(self.file, math.huge)
  self:rewrite(lines)
end

---Appends a row as a line, which is in the file when this returns.
---@param row table<string, number|boolean|string>
function History:append(row)
  self:keep()
  self:widen(row)
  local cells = {}
  for i, name in ipairs(self.columns) do cells[i] = cell(row[name]) end
  local fine, problem = self.file:write(table.concat(cells, ","), "\n")
  if fine then fine, problem = self.file:flush() end
  if not fine then write_error(self.path, problem) end
end

-- Closes the file.
function History:close()
  if self.file then self.file:close() end
  self.file = nil
end

return History
