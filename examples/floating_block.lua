-- A block that is lighter than water is let go above its draught.                   cqlua examples/floating_block.lua
--   cqlua examples/floating_block.lua --formulation total_lagrangian       the block on a grid of its own shape
-- Source: Archimedes. Expect: it comes to rest within one cell of its draught, here 0.4: the grid moves water and block
-- by one velocity, so that water clings to its sides and holds it on the last of its way. Let go at its draught it
-- stays. On a grid of its own shape it is 0.14 cells off, and 0.31 where it is let go 4 cells above.
-- Size: 2,400 particles, 1,000 x 13 steps. Time: 2 s.
local cq = require "cq"

local density = cq.option("density", 0.5)          -- of the block, that of water is 1
local above   = cq.option("above", 2)              -- its draught where it starts [cells]
local gap     = cq.option("gap", 0)                -- between it and the water [cells]
local dx      = 1 / cq.option("cells", 32)
local side, depth = 8 * dx, 0.5
local draught = density * side

local shape = cq.Shape.box {
  name = "block", at = { 0.5 - side / 2, depth - draught + above * dx }, size = { side, side }, spacing = dx / 2,
}
local block = cq.Robot {
  name = "block", shape = shape, formulation = cq.option("formulation", "updated"),
  material = cq.Material.neo_hookean { young = 20, poisson = 0.3, density = density },
}
-- without a gap particles of water go on where those of the block end
local scene = require "scenes.water_tank" {
  across = 1 / dx, depth = depth, height = 1, without = gap > 0 and shape:grown(gap * dx) or shape,
  bodies = { block }, damping = 0.5, kind = cq.option("kind", "separate"),
}
local run = cq.Experiment {
  world = cq.World(scene.world), duration = 20, objective = function(state) return state:center "block"[2] end,
}

-- height of the water away from the block, over the tank's floor: a mean over columns of cells of their highest
-- particles
local function level(state)
  local top, sum, count = {}, 0, 0
  for _, x in ipairs(state:gather("water", "position"):totable()) do
    local column = math.floor((x[1] - scene.corner[1]) / dx)
    top[column] = math.max(top[column] or 0, x[2] - scene.corner[2])
  end
  for column, height in pairs(top) do
    local far = math.abs((column + 0.5) * dx - 0.5) > side / 2 + 2 * dx
    if far then sum, count = sum + height + dx / 4, count + 1 end
  end
  return sum / count
end
local state = run:rollout(run.params).state
local found = level(state) - (state:center "block"[2]:item() - scene.corner[2] - side / 2)
print(("draught %.4f, by Archimedes %.4f: %.2f cells apart"):format(found, draught, math.abs(found - draught) / dx))
run:render("floating_block.mp4", { colour = scene.colour, speed = 4 })
run:render("floating_block.png", { colour = scene.colour, stills = { 0, 0.5, 1, 20 }, layout = "apart" })
