-- history: columns of a run's history as curves over its iterations. Losses of different stages of a plan, and of
-- different starts, do not continue each other, so no line joins them.
local paint = require "cq.picture.paint"

local history = {}

-- The colour of curve k as text, translucent if `pale`.
local function tint(k, pale) return paint.lines[(k - 1) % #paint.lines + 1] .. (pale and "60" or "") end

-- Does a row of a history belong to another stage or start than the row before it, if there is one?
local function begins(row, before)
  return before ~= nil and (row.stage ~= before.stage or row.start ~= before.start)
end

---A column of a history as lists of iterations and values, with NaN for a gap where another stage or start begins; and
---whether any value is finite. Rows without a number are left out.
---@param rows table[]
---@param name string
---@param every? integer      one row of so many, for less points; 1 unless given
---@return number[] x, number[] y, boolean any
function history.column(rows, name, every)
  local x, y, any, last = {}, {}, false, nil
  for k = 1, #rows, every or 1 do
    local row, value = rows[k], rows[k][name]
    if type(value) == "number" then
      if begins(row, last) then x[#x + 1], y[#y + 1] = row.iteration or k, 0 / 0 end
      x[#x + 1], y[#y + 1] = row.iteration or k, value
      any, last = any or value - value == 0, row
    end
  end
  return x, y, any
end

---A table by number of start of a multi-start plan: true for starts that were dropped; none where the run's state
---cannot be read.
---@param rows table[]
---@param path string         of the run's folder
---@return table<integer, boolean>
function history.dropped_in(rows, path)
  if not rows[1].start then return {} end
  local out, fine, saved = {}, pcall(require("cq.run").saved_in, path)
  local state = fine and saved and type(saved.optimizer) == "table" and saved.optimizer or {}
  for _, start in ipairs(state.starts or {}) do out[start.number] = start.dropped end
  return out
end

---A column of a history as one curve for each stage and start of a multi-start plan, stages with colours of their own
---and their names. Dropped starts are pale; a stage without a number has no name.
---@param rows table[]
---@param name string
---@param dropped table<integer, boolean>     starts
---@return cq.Plot.series.def[] series
function history.by_stage(rows, name, dropped)
  local series, stages, count = {}, {}, 0
  for k, row in ipairs(rows) do
    local stage, value = row.stage or "", type(row[name]) == "number" and row[name] or 0 / 0
    if k == 1 or begins(row, rows[k - 1]) then
      if not stages[stage] then
        count = count + 1
        stages[stage] = { number = count }
      end
      series[#series + 1] = { x = {}, y = {}, colour = tint(stages[stage].number, dropped[row.start or 1]) }
    end
    local line, known = series[#series], stages[stage]
    line.x[#line.x + 1], line.y[#line.y + 1] = row.iteration or k, value
    if not known.named and value - value == 0 and not dropped[row.start or 1] then
      line.name, known.named = row.stage, true
    end
  end
  return series
end

return history
