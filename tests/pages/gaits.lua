-- gaits: the tables of what trained gaits keep at parts of their step, and in other simulations, from what
-- tests/bench/gaits.lua wrote.
local csv = require "cq.base.csv"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local gaits = {}
local PATH, KEPT = "tests/bench/gaits.csv", "tests/bench/kept.csv"

-- The rows of the table, as lists of cells.
local function rows_of(path)
  local rows = {}
  for line in source.read(path):gmatch "\n([^\n]+)" do      -- after the head
    rows[#rows + 1] = assert(csv.cells(line))
  end
  return rows
end

-- A way or gain as text.
local function figure_of(cells) return math.abs(tonumber(cells[5])) < 0.1 and "%.4f" or "%.2f" end

---At parts of the step.
---@return string
function gaits.table()
  local rows = {}
  for _, cells in ipairs(rows_of(PATH)) do
    local figure = figure_of(cells)
    local row = { cells[1], cells[2], cells[3], cells[4], figure:format(cells[5]) }
    for part = 6, 8 do
      local found = tonumber(cells[part])
      row[#row + 1] = found and (figure .. " (%.0f %%)"):format(found, 100 * found / cells[5]) or "fails"
    end
    row[#row + 1] = cells[10] or ""
    rows[#rows + 1] = row
  end
  return marks.table({ "example", "steps", "seed", "iterations", "way or gain", "at dt / 2", "dt / 4", "dt / 8",
    "s an iteration" }, rows)
end

---Both formulations side by side, of trainings of seed 0: each row of total Lagrangian steps beside that of updated
---steps with the same material, or with that of the example.
---@return string
function gaits.side_by_side()
  local updated, rows = {}, {}
  for _, cells in ipairs(rows_of(PATH)) do
    if cells[2] == "apic" and cells[3] == "0" then updated[cells[1]] = cells end
  end
  -- The three cells of a training.
  local function told(cells)
    local kept = tonumber(cells[8]) and ("%.0f %%"):format(100 * cells[8] / cells[5]) or "fails"
    return figure_of(cells):format(cells[5]), kept, cells[10]
  end
  for _, cells in ipairs(rows_of(PATH)) do
    if cells[2] == "total_lagrangian" and cells[3] == "0" then
      local name, with = cells[1]:match "^(%S+) ?(.*)$"
      local other = updated[cells[1]] or assert(updated[name], name .. " has no row of updated steps")
      local way, kept, seconds = told(other)
      local own_way, own_kept, own_seconds = told(cells)
      rows[#rows + 1] = { name, cells[4], with, way, own_way, kept, own_kept, seconds, own_seconds }
    end
  end
  return marks.table({ "example", "iterations", "total Lagrangian steps with", "way or gain, updated",
    "total Lagrangian", "kept at dt / 8, updated", "total Lagrangian", "s an iteration, updated",
    "total Lagrangian" }, rows)
end

---In other simulations, in percent of the gain.
---@return string
function gaits.kept()
  local names, rows
  for line in source.read(KEPT):gmatch "[^\n]+" do
    local cells = assert(csv.cells(line))
    if not names then
      names, rows = cells, {}
    else
      local of = {}
      for k, name in ipairs(names) do of[name] = cells[k] end
      local failed = tonumber(of.failed) > 0 and (" (%s failed)"):format(of.failed) or ""
      rows[#rows + 1] = { of.example, of.steps, of.way, of.stiffness, of.density, of.friction, of.strength, of.gravity,
        of.substeps_2 .. ", " .. of.substeps_4, of.grid, of.place, of.noise, of.latency,
        of.median .. ", " .. of.worst .. failed }
    end
  end
  return marks.table({ "robot", "steps", "way or gain", "E", "density", "friction", "strength", "gravity",
    "dt / 2, dt / 4", "finer grid", "half a cell", "noise", "latency", "all at once: median, worst" }, rows)
end

return gaits
