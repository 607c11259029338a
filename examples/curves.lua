-- Stress over stretch of rubbers and silicones: pulled along one axis and two, and sheared.   cqlua examples/curves.lua
-- Source: the closed forms of Rivlin (1948) and Ogden (1972) for incompressible solids; the silicone is of the table of
-- elastomers. Dots are the engine's bodies with free faces, lines the closed forms. Expect: the two at most 6.2 %
-- apart, for nu = 0.49 and not 0.5.
-- Size: 25 particles, 24 bars. Time: 1 s.
local cq      = require "cq"
local stretch = require "scenes.stretch"

local name      = cq.option("elastomer", "Dragon Skin 30")
local elastomer = cq.Material.elastomer { name = name, density = cq.option("density", 1080) }
local mu        = 2 * 40e3
local rubbers = {
  { elastomer, name },
  { cq.Material.ogden { mu = { 0.63e6, 1200, -1e4 }, alpha = { 1.3, 5, -2 }, bulk = 2e7, density = 930 }, "Ogden" },
  { cq.Material.mooney_rivlin { c10 = 30e3, c01 = 10e3, bulk = 50 * mu, density = 1000 }, "Mooney-Rivlin" },
  { cq.Material.transversely_isotropic { shear = mu, bulk = 50 * mu, k1 = 5e3, k2 = 0.05, fibre = { 1, 0, 0 } },
    "with fibres" },
}
local modes = {
  { "uniaxial", 0.6, 2.6, "stretch" }, { "biaxial", 0.8, 1.8, "stretch" }, { "shear", 0, 1.5, "shear" },
}
local colours = { "#1f77b4", "#d62728", "#2ca02c", "#9467bd" }
local run = cq.Run.open { iterations = cq.option("iterations", 24), resume = false }      -- dots of a curve
local gap, worst = 0 / 0, 0

for _, mode in ipairs(modes) do
  local kind, low, high, label = unpack(mode)
  local amounts, fine = {}, {}
  for k = 0, run.iterations do amounts[k + 1] = low + (high - low) * k / run.iterations end
  for k = 0, 120 do fine[k + 1] = low + (high - low) * k / 120 end
  local series = {}
  for k, rubber in ipairs(rubbers) do
    local line, x, dots, top = {}, {}, {}, 0
    for i, amount in ipairs(fine) do line[i] = 1e-6 * stretch.closed_form(rubber[1], kind, amount) end
    for i, stress in ipairs((stretch.measure(rubber[1], kind, amounts))) do
      -- each dot by itself
      x[2 * i - 1], dots[2 * i - 1], x[2 * i], dots[2 * i] = amounts[i], 1e-6 * stress, amounts[i], gap
      top = math.max(top, math.abs(line[math.floor(1 + (i - 1) * 120 / run.iterations + 0.5)]))
    end
    for i, amount in ipairs(amounts) do
      worst = math.max(worst, math.abs(dots[2 * i - 1] - 1e-6 * stretch.closed_form(rubber[1], kind, amount)) / top)
    end
    series[#series + 1] = { name = rubber[2], x = fine, y = line, colour = colours[k] }
    series[#series + 1] = { x = x, y = dots, colour = colours[k] }
  end
  cq.Plot { title = kind, x_label = label, y_label = "nominal stress [MPa]",
    series = series }:write(kind .. ".png")
end
print(("dots are at most %.2f %% of a curve's largest stress off its closed form; plots are in %s"):format(100 * worst,
  run.folder))
