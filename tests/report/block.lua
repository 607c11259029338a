-- block: the page of 31^3 particles and 120 frames: a body that leans, walks and waves by formulas, without simulating
-- it. Its size, its opening and its frames a second are what a report promises.
local ffi = require "ffi"
local cq = require "cq"
local films = require "cq.report.film"
local pages = require "cq.report.page"

local block = { side = 31, frames = 120 }
block.count = block.side ^ 3

local SPACING = 0.01

-- where the particles lie undeformed
local function rest_of()
  local rest, p = cq.zeros { block.count, 3 }, 0
  local data = rest:data()
  for i = 0, block.side - 1 do
    for j = 0, block.side - 1 do
      for k = 0, block.side - 1 do
        data[3 * p], data[3 * p + 1], data[3 * p + 2], p = SPACING * i, SPACING * j, SPACING * k, p + 1
      end
    end
  end
  return rest
end

local function positions_at(rest, t)
  local x, data = ffi.new("float[?]", 3 * block.count), rest:data()
  for k = 0, block.count - 1 do
    local a, b, c = data[3 * k], data[3 * k + 1], data[3 * k + 2]
    local lean = 0.06 * math.sin(6 * t) * b * b / 0.09 + 0.01 * math.sin(20 * a - 6 * t)
    x[3 * k], x[3 * k + 1], x[3 * k + 2] = a + 0.4 * t + lean, b + 0.02 * math.sin(12 * t + 9 * a) * b / 0.3,
      c + 0.03 * math.sin(5 * t) * a
  end
  return x
end

-- a world whose robot has these particles
local function world_of()
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", size = { 0.1, 0.1, 0.1 }, spacing = 0.05 },
    material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3, density = 1000 },
  }
  local world = cq.World {
    cells = { 24, 12, 12 }, dx = 0.05, dt = 0.02, substeps = 10,
    walls = cq.Boundary.box { kind = "friction", mu = 0.5, inset = 0.15 }, robot:at { 0.2, 0.2, 0.2 },
  }
  local large = setmetatable({ first = 0, particle_count = block.count, groups = {}, drawn = {},
    laws = { { law = "neo_hookean" } }, law = ffi.new("uint8_t[?]", block.count) }, { __index = world.robots[1] })
  return setmetatable({ particle_count = block.count, robots = { large } }, { __index = world })
end

---Writes the page.
---@param path string
---@return string path
function block.write(path)
  local film = films.new({ frames = block.frames, colour = {}, particles = "auto" }, block.frames - 1)
  film.world, film.rest, film.volume = world_of(), rest_of(), cq.full({ block.count }, SPACING ^ 3)
  for f = 1, block.frames do
    local t = f / 40
    film.times[f], film.positions[f], film.offsets[f] = t, positions_at(film.rest, t), false
  end
  local page = pages.new "walk"
  page.data.runs[1] = { name = "walk", curves = {}, facts = {},
    film = film:finish({}, function(content) return page:add(content) end) }
  return page:write(path, "tests.report.block")
end

return block
