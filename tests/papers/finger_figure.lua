-- The figure of finger.lua: errors over rollouts, medians of all seeds that are done and bands of 90 %; and how many
-- rollouts gradients need to the error that PPO ends with, at the best of its rates.
--   cqlua study export tests/papers/finger.lua --goals fixed > trials.csv
--   cqlua study export tests/papers/finger.lua --goals fixed --curves > curves.csv
--   cqlua tests/papers/finger_figure.lua --trials trials.csv --curves curves.csv --to examples/pictures/finger.png
local cq = require "cq"
local is = require "cq.base.schema"
local quantiles = require "cq.base.quantile"
local read_file = require "cq.base.read_file"
local rows_of = require "tests.rows"

local function read(path) return rows_of(assert(read_file(path), path .. " cannot be read")) end

-- curves[way][trial] = { x = rollouts, y = errors } of the trials that are done
local curves, ways, way_of = {}, {}, {}
for _, row in ipairs(read(cq.option("trials", "trials.csv", is.string()))) do
  if row.state == "done" then
    if not curves[row.way] then ways[#ways + 1], curves[row.way] = row.way, {} end
    way_of[row.trial], curves[row.way][row.trial] = row.way, { x = {}, y = {} }
  end
end
for _, row in ipairs(read(cq.option("curves", "curves.csv", is.string()))) do
  local curve = row.name == "error" and way_of[row.trial] and curves[way_of[row.trial]][row.trial]
  if curve then
    table.insert(curve.x, tonumber(row.step))
    table.insert(curve.y, tonumber(row.value))
  end
end
table.sort(ways)

local function quantile(list, share)
  local sorted = { unpack(list) }
  table.sort(sorted)
  return quantiles.of(sorted, share)
end

-- {x, median, lower, upper} over the seeds of a way that have as many points as the longest
local function band(way)
  local most, lists = 0, {}
  for _, curve in pairs(curves[way]) do most = math.max(most, #curve.y) end
  local out = { x = {}, median = {}, lower = {}, upper = {}, seeds = 0 }
  for _, curve in pairs(curves[way]) do
    if #curve.y == most then out.seeds, lists[#lists + 1] = out.seeds + 1, curve end
  end
  for k = 1, most do
    local values = {}
    for i, curve in ipairs(lists) do values[i] = curve.y[k] end
    out.x[k], out.median[k] = lists[1].x[k], quantile(values, 0.5)
    out.lower[k], out.upper[k] = quantile(values, 0.05), quantile(values, 0.95)
  end
  return out
end

local bands, best = {}, nil
for _, way in ipairs(ways) do
  bands[way] = band(way)
  local b = bands[way]
  print(("%-10s %d seeds: %.2g after %g rollouts, 90 %% from %.2g to %.2g"):format(way, b.seeds, b.median[#b.median],
    b.x[#b.x], b.lower[#b.lower], b.upper[#b.upper]))
  if way:find "^ppo" and (not best or b.median[#b.median] < bands[best].median[#bands[best].median]) then best = way end
end

-- the first number of rollouts after which a seed's curve is below an error; nil: never
local function taken(curve, error)
  for k, y in ipairs(curve.y) do
    if y <= error then return curve.x[k] end
  end
end

if best and curves.gradient then
  local least = math.huge
  for _, y in ipairs(bands[best].median) do least = math.min(least, y) end
  for _, case in ipairs { { "ends with", bands[best].median[#bands[best].median] }, { "ever has", least } } do
    for _, way in ipairs(ways) do
      local numbers, never = {}, 0
      for _, curve in pairs(curves[way]) do
        local x = taken(curve, case[2])
        if x then numbers[#numbers + 1] = x else never = never + 1 end
      end
      if #numbers > 0 then
        print(("to the error %.2g that the median of %s %s: %s needs %g rollouts (%g to %g); %d of %d seeds never do")
          :format(case[2], best, case[1], way, quantile(numbers, 0.5), quantile(numbers, 0.05),
            quantile(numbers, 0.95), never, never + #numbers))
      end
    end
  end
end

local series, shown = {}, { "gradient", "shac", "cma", best }
local names = { gradient = "gradients", shac = "SHAC", cma = "CMA-ES" }
for _, way in ipairs(shown) do
  local b = bands[way]
  series[#series + 1] = b and { name = names[way] or "PPO, best of three rates", x = b.x, y = b.median,
    lower = b.lower, upper = b.upper }
end
cq.Plot {
  title = cq.option("title", "A finger that reaches a goal"), x_label = "simulated rollouts", log_y = true,
  series = series, y_label = "square of the distance at the end",
}:write(cq.option("to", "finger.png", is.string()))
