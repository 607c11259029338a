-- gaits: the tables of what trained gaits keep at parts of their step, and in other simulations, from what
-- tests/bench/gaits.lua wrote.
local csv = require "cq.base.csv"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local gaits = {}
local PATH, KEPT = "tests/bench/gaits.csv", "tests/bench/kept.csv"

---At parts of the step.
---@return string
function gaits.table()
  local rows = {}
  for line in source.read(PATH):gmatch "\n([^\n]+)" do      -- after the head
    local cells = assert(csv.cells(line))
    local figure = math.abs(tonumber(cells[5])) < 0.1 and "%.4f" or "%.2f"
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
