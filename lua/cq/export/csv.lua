-- csv: tables of numbers with a unit behind each name, as cq.csv and spreadsheets read them: particles in rows; or of
-- all frames the centres of groups, signals and contact forces, a row for each control step.
local columns = require "cq.export.columns"
local table_of = require "cq.base.csv"

local csv = { name = "csv", summary = "CSV with units; all frames: centres of groups, signals and contact forces over time",
  tabular = true }

-- A column's name with its unit, as a cell.
local function head(name, unit, units) return table_of.cell(("%s [%s]"):format(name, columns.unit(unit, units))) end

---A frame of particles as CSV: a line of names with units in brackets, then a line for each particle, 9 digits.
---@param frame cq.export.Frame
---@return string
function csv.particles(frame)
  local heads, lists, formats = {}, {}, {}
  local fields = { { name = "position", unit = "length", values = frame.points }, unpack(frame.fields) }
  for _, field in ipairs(fields) do
    local names = columns.names(field, frame.dim)
    local values = field.values:reshape { frame.points:size(1), #names }
    for k, name in ipairs(names) do
      heads[#heads + 1] = head(name, field.unit or "", frame.units):gsub(" %[%]$", "")
      lists[#lists + 1] = values:slice(k, k, 2):flatten():totable()
      formats[#formats + 1] = field.integer and "%d" or "%.9g"
    end
  end
  return table_of.columns(heads, lists, formats)
end

---A table of columns, of one length each, as CSV.
---@param list { name: string, unit: string, values: number[] }[]
---@param units? table<string, string>
---@return string
function csv.trajectory(list, units)
  local heads, lists = {}, {}
  for k, column in ipairs(list) do heads[k], lists[k] = head(column.name, column.unit, units), column.values end
  return table_of.columns(heads, lists, "%.9g")
end

return csv
