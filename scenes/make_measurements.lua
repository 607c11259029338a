-- Makes measurements that examples read, into scenes/assets.       cqlua scenes/make_measurements.lua
--
-- bar_swing.csv: what a camera with 60 pictures a second sees of the tip of scenes/swinging_bar.lua, to 0.3 mm. The
-- camera counts from a point of its own. The bar has E = 150 kPa, loses speed at 2 1/s, and is simulated on a grid that
-- is twice as fine as that of examples/identify_noisy.lua.
local cq = require "cq"

local bar = require "scenes.swinging_bar" { young = 150, cells = 8, precision = "float64" }
local roll = bar.world:rollout {
  steps = 105, damping = 2, record = function(state) return state:center "tip" end,
}
local times = cq.arange(1 / 60, 1.02, 1 / 60)
local noise = cq.random({ seed = 1 }):normal({ times.count, 2 }, { deviation = 0.3 })
local seen = (1000 * (roll.record:at(times) - cq.tensor { 0.1, 0.1 }) + noise):transpose()
local lines = { "time [s],tip x [mm],tip y [mm]" }
for k = 1, times.count do
  lines[k + 1] = ("%.4f,%.2f,%.2f"):format(times:get(k), seen:get(1, k), seen:get(2, k))
end
local folder = debug.getinfo(1, "S").source:match "^@(.*[/\\])" or ""
local file = assert(io.open(folder .. "assets/bar_swing.csv", "wb"))
assert(file:write(table.concat(lines, "\n"), "\n"))
file:close()
