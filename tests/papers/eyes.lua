-- What an autoencoder sees of the walker: velocity on its window, the latent vector, and the velocity that the decoder
-- makes of it, at moments that it was not trained on. After figure 1 of Spielberg et al., Learning-in-the-loop
-- optimization (NeurIPS 2019).          cqlua tests/papers/eyes.lua [--iterations 800 --to examples/pictures/eyes.png]
-- Expect: after these 800 updates the decoder explains 47 % of the weighted square of what it was not trained on.
-- Size: 700 particles, 8 gaits of 100 x 4 steps, 400 pictures of 64 x 64. Time: 2 min of a core.
local cq = require "cq"
local is = require "cq.base.schema"

local SIZE, LATENT = 64, 8
local robot = cq.Robot(require "scenes.walker2d" { count = 10 })
local world = cq.World {
  cells = { 80, 20 }, dx = 1 / 20, dt = 2e-2, substeps = "auto", gravity = { 0, -2 },
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.4, 0.15 },
}
local eye = cq.Observer.autoencoder { window = { SIZE, SIZE }, latent = LATENT, spacing = 1 / 64, seed = 1 }

-- gaits of sines, of which the last is for the test
local function pictures(first, last)
  local list = {}
  for seed = first, last do
    world:rollout { steps = 100, controller = cq.Controller.sines { frequency = 2, deviation = 1, seed = seed },
      on_step = function(state) if state.step % 2 == 0 then list[#list + 1] = eye:picture(state) end end }
  end
  return cq.stack(list, 1)
end

local seen, others = pictures(1, 8), pictures(9, 9)
local iterations = cq.option("iterations", 800)
local adam = cq.Optimizer.adam { rate = 1e-3, schedule = function(i) return 0.05 ^ (i / iterations) end }
local history = eye:fit { pictures = seen, optimizer = adam, iterations = iterations, batch = 32 }
local blank = eye:error_of(others)
local scaled = others / eye.weights.scale:reshape { 3, 1, 1 }
local present = others:abs():max(2):greater(0):unsqueeze(2) * 0.9 + 0.1
local power = ((scaled:square() * present):sum() / (present:sum() * 3)):item()
print(("reconstruction %.3f at first, %.3f at the end; of other pictures %.3f, of %.3f: %.0f %% explained")
  :format(history.reconstruction[1], history.reconstruction[iterations], blank, power, 100 * (1 - blank / power)))

-- ---- the picture ----------------------------------------------------------------------------------------------------

local PIXEL, GAP, BAR, TOP, MOMENTS = 3, 16, 150, 34, { 12, 25, 40 }
local side = PIXEL * SIZE
local width, height = 4 * side + BAR + 6 * GAP, TOP + #MOMENTS * (side + GAP) + GAP
local canvas = cq.Picture.canvas { width = width, height = height, background = "#ffffff" }

-- blue below zero, red above, white at zero
local function colour(value)
  local s = math.max(-1, math.min(1, value))
  local function channel(x) return math.floor(255 * x + 0.5) end
  local faded = 1 - math.abs(s)
  if s >= 0 then return ("#%02x%02x%02x"):format(channel(1 - 0.25 * s), channel(faded), channel(faded)) end
  return ("#%02x%02x%02x"):format(channel(faded), channel(faded), channel(1 + 0.25 * s))
end

-- a channel {rows, columns} with its upper left corner at x, y from above
local function field(values, most, x, y)
  for row = 1, SIZE do
    for column = 1, SIZE do
      canvas:rectangle(x + (column - 1) * PIXEL, y + (row - 1) * PIXEL, PIXEL, PIXEL,
        colour(values:get(row, column) / most))
    end
  end
  canvas:line({ { x, y }, { x + side, y }, { x + side, y + side }, { x, y + side }, { x, y } }, 1, "#888888")
end

for k, title in ipairs { "v_x seen", "v_y seen", "latent vector", "v_x decoded", "v_y decoded" } do
  local x = k <= 2 and GAP + (k - 1) * (side + GAP) or k == 3 and 3 * GAP + 2 * side
    or 4 * GAP + 2 * side + BAR + (k - 4) * (side + GAP)
  canvas:text { x = x, y = 22, text = title }
end
for k, moment in ipairs(MOMENTS) do
  local picture, y = others[moment], TOP + (k - 1) * (side + GAP)
  local z = eye:encode(picture:unsqueeze(1))
  local made = eye:decode(z)[1]
  local most = picture:slice(1, 2):abs():max():item()
  field(picture[1], most, GAP, y)
  field(picture[2], most, 2 * GAP + side, y)
  field(made[1], most, 4 * GAP + 2 * side + BAR, y)
  field(made[2], most, 5 * GAP + 3 * side + BAR, y)
  local step, middle = side / LATENT, 3 * GAP + 2 * side + BAR / 2
  for i = 1, LATENT do
    local length = math.max(-1, math.min(1, z:get(1, i) / 3)) * BAR / 2
    canvas:rectangle(math.min(middle, middle + length), y + (i - 1) * step + 3, math.abs(length), step - 6, "#4477aa")
  end
  canvas:line({ { middle, y }, { middle, y + side } }, 1, "#888888")
end
canvas:write(cq.option("to", "eyes.png", is.string()))
