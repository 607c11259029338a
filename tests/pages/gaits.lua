-- gaits: the table of what trained gaits keep at parts of their step, from what tests/bench/gaits.lua wrote.
local csv = require "cq.base.csv"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local gaits = {}
local PATH = "tests/bench/gaits.csv"

---@return string
function gaits.table()
  local rows = {}
  for line in source.read(PATH):gmatch "\n([^\n]+)" do      -- after the head
    local cells = assert(csv.cells(line))
    local row = { cells[1], cells[2], cells[3], cells[4], ("%.2f"):format(cells[5]) }
    for part = 6, 8 do row[#row + 1] = ("%.2f (%.0f %%)"):format(cells[part], 100 * cells[part] / cells[5]) end
    rows[#rows + 1] = row
  end
  return marks.table({ "example", "steps", "seed", "iterations", "body lengths", "at dt / 2", "dt / 4", "dt / 8" },
    rows)
end

return gaits
