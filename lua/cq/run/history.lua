-- history: numbers of each iteration as a CSV file, a line as soon as it is known. Columns begin iteration,loss.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local host = require "cq.host"
local schema = require "cq.base.schema"
local text = require "cq.base.text"

---@class cq.History
---@field path string
---@field columns string[]
local History = {}
History.__index = History
History.__name = "cq.History"

local SPREAD = 16            -- a tensor of up to so many elements gets a column for each

local function cell(value)
  if value == nil then return "" end
  if type(value) == "number" then return text.exact(value) end
  if type(value) == "boolean" then return value and "1" or "0" end
  return (tostring(value):gsub('[,\n"]', " "))
end

-- name and tensor to columns: itself, its elements, or least, mean and greatest
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

---A row of plain values from what a user gives: numbers, booleans, strings, tensors.
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

---Names in the order they are shown: iteration, epoch, loss, the others sorted.
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

local function split(line)
  local cells = {}
  for part in (line .. ","):gmatch "([^,]*)," do cells[#cells + 1] = part end
  return cells
end

-- whole lines of an open file: columns, and lines of iterations up to last; a torn last line is dropped
local function read(file, last)
  file:seek "set"
  local all, columns, lines = file:read "*a", nil, {}
  for line in all:gmatch "([^\n]*)\n" do
    if not columns then
      columns = split(line)
    elseif (tonumber(line:match "^[^,]*") or math.huge) <= last then
      lines[#lines + 1] = line
    end
  end
  return columns, lines
end

---Rows of a history by the names of their columns; what is a number is given as one, an empty cell is left out.
---@param path string
---@return table<string, number|string>[]
function History.rows(path)
  local file, problem = io.open(path)
  if not file then schema.fail("cq.Run.read_history: there is no history: %s", problem) end
  local columns, lines = read(file, math.huge)
  file:close()
  local rows = {}
  for i, line in ipairs(lines) do
    rows[i] = {}
    for k, text_of_cell in ipairs(split(line)) do
      if text_of_cell ~= "" then rows[i][columns[k]] = tonumber(text_of_cell) or text_of_cell end
    end
  end
  return rows
end

local function write_error(path, problem)
  schema.fail("%s cannot be written: %s; what was written before is kept", path, tostring(problem))
end

function History:rewrite(lines)
  lines[#lines + 1] = ""
  local all = table.concat(self.columns, ",") .. "\n" .. table.concat(lines, "\n")
  engine.check(engine.C.cq_file_replace(self.path, ffi.cast("const void *", all), #all))
  if self.file then self.file:close() end
  self.file = nil
  local file, problem = io.open(self.path, "a+")
  if not file then write_error(self.path, problem) end
  self.file = file
end

---Opens the file; lines after iteration `last` are dropped, all of them when it is 0.
---@param path string
---@param last? integer       of a run that goes on
---@return cq.History
function History.open(path, last)
  local self = setmetatable({ path = path, columns = { "iteration", "loss" } }, History)
  local columns, lines = nil, {}
  local earlier = last and last > 0 and io.open(path)
  if earlier then
    columns, lines = read(earlier, last)
    earlier:close()
  end
  self.columns = columns or self.columns
  self:rewrite(lines)
  return self
end

-- a column that was not there before: earlier lines get an empty cell
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

---Writes the file again if it was removed: its name is gone then, and what was written is still in the open file.
function History:keep()
  if host.kind(self.path) then return end
  local _, lines = read(self.file, math.huge)
  self:rewrite(lines)
end

---Appends a line; it is in the file when this returns.
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

function History:close()
  if self.file then self.file:close() end
  self.file = nil
end

return History
