-- horizons: the table of how far robots get by which gradient, from what tests/papers/horizons.lua gave.
--   cqlua study export tests/papers/horizons.lua --robot biped >> trials.csv, for each robot, and then
--   cqlua -e 'require("tests.pages.horizons").collect("biped", "trials.csv")'
local marks = require "tests.pages.marks"
local quantile = require "cq.base.quantile"
local rows_of = require "tests.rows"
local source = require "tests.source"

local horizons = {}
local PATH = "tests/papers/horizons.csv"
local HEAD = "robot,times,way,seed,lengths"
local ROBOTS = { "biped", "cable_biped", "quadruped", "creature", "rhino", "terrain" }
local WAYS = { "adam", "decay", "window", "smooth", "shac", "ppo", "cma" }
local NAMES = { adam = "exact, Adam", shac = "SHAC", ppo = "PPO", cma = "CMA-ES" }

---Puts the trials of a robot, as `cqlua study export` writes them, in the place of its rows of the table.
---@param robot string
---@param path string
function horizons.collect(robot, path)
  local lines = { HEAD }
  for line in source.read(PATH):gmatch "\n([^\n]+)" do
    if line:match "^[^,]*" ~= robot then lines[#lines + 1] = line end
  end
  for _, row in ipairs(rows_of(source.read(path))) do
    local lengths = tonumber(row.lengths)
    lines[#lines + 1] = ("%s,%s,%s,%s,%s"):format(robot, row.times, row.way, row.seed,
      lengths and ("%.3f"):format(lengths) or "failed")
  end
  local file = assert(io.open(PATH, "wb"))
  assert(file:write(table.concat(lines, "\n"), "\n"))
  assert(file:close())
end

---Body lengths by robot, time and way: the median of the seeds, and in brackets the least and the most.
---@return string
function horizons.table()
  local found, rows = {}, {}
  for _, row in ipairs(rows_of(source.read(PATH))) do
    local key = row.robot .. row.times .. row.way
    found[key] = found[key] or {}
    table.insert(found[key], tonumber(row.lengths) or -math.huge)
  end
  for _, robot in ipairs(ROBOTS) do
    for _, times in ipairs { "1", "4" } do
      local cells, medians, best = { robot, times }, {}, -math.huge
      for k, way in ipairs(WAYS) do
        local list = assert(found[robot .. times .. way], robot .. " has no trials by " .. way)
        table.sort(list)
        medians[k] = quantile.median(list)
        best = math.max(best, medians[k])
      end
      for k, way in ipairs(WAYS) do
        local list = found[robot .. times .. way]
        local median = ("%.2f"):format(medians[k])
        cells[#cells + 1] = ("%s (%.2f to %.2f)"):format(medians[k] == best and "**" .. median .. "**" or median,
          list[1], list[#list])
      end
      rows[#rows + 1] = cells
    end
  end
  local heads = { "robot", "time" }
  for k, way in ipairs(WAYS) do heads[k + 2] = NAMES[way] or "`" .. way .. "`" end
  return marks.table(heads, rows)
end

return horizons
