-- snow_column: a column of snow between smooth walls is pressed from above and let go. Beyond its critical compression
-- it stays shorter.
-- Source: the law of Stomakhin et al. (ACM TOG 32, 2013). Between walls the snow is only compacted. Its elastic stretch
-- ends at 1 - critical_compression. So it bears M critical_compression exp(hardening (1 - J)) / J by the undeformed
-- section, where J is the part of its length that it keeps and M = E (1 - nu) / ((1 + nu) (1 - 2 nu)).
local cq = require "cq"
local bisect = require "scenes.bisect"

local YOUNG, POISSON, HARDENING, COMPRESSION = 100, 0.2, 5, 0.05
local WIDTH, WALL, IN_WALL = 0.5, 3, 2                           -- half its height; [cells], [cells]
-- when the whole load is there, when it begins to go, is gone, and the end
local PRESS, REST, RELEASE, DURATION = 6, 10, 12, 15

-- load that begins to compact, by the undeformed section [stress]
local YIELD = YOUNG * (1 - POISSON) / ((1 + POISSON) * (1 - 2 * POISSON)) * COMPRESSION

-- The part of its length that the column keeps after a load, in closed form. load: by the load that begins to compact
-- the snow; 1 is returned up to a load of 1.
local function expected(load)
  if load <= 1 then return 1 end
  return bisect(function(j) return load - math.exp(HARDENING * (1 - j)) / j end, 0.1, 1)
end

---A column of snow and the fields of its world.
---@param options? { loads?: number[], cells?: integer, precision?: string, device?: string }
---  loads: on the top, by the load that begins to compact, 0.8, 1.5 and 2.5 unless given; cells: across the
---  column, 8 unless given
---@return { robot: cq.Robot, world: cq.World.def, loads: number[], expected: number[], steps: integer, press: fun(world: cq.World): cq.State, kept: fun(state: cq.State, k: integer): number }
---  press: presses columns side by side in a batch and lets them go; kept, expected: part of its length that each keeps
return function(options)
  local given = options or {}
  local cells = given.cells or 8
  local dx, dt, high = WIDTH / cells, 0.05, 2 * cells
  local loads, list, steps = given.loads or { 0.8, 1.5, 2.5 }, {}, math.floor(DURATION / dt + 0.5)
  local width, height = WIDTH, 2 * WIDTH
  local plate = { particles = "top", signals = 1 }
  -- The downward force {..., n, 2} on the n particles of the top, at positions x {..., n, 2}. u: the signal, the load
  -- on the column by the load that begins to compact the snow.
  function plate:force(u, x)
    local down = cq.tensor { 0, -YIELD * (width + 2 * IN_WALL * dx) / x:size(-2) }
    return u:unsqueeze(-1) * down + x * 0
  end
  local robot = cq.Robot {
    name = "snow", actuators = { plate },
    shape = cq.Shape.box {
      name = "column", size = { width + 2 * IN_WALL * dx, height },
      count = { 2 * (cells + 2 * IN_WALL), 2 * high },
    },
    material = cq.Material.snow {
      young = YOUNG, poisson = POISSON, density = 1, snow_hardening = HARDENING, critical_compression = COMPRESSION,
    },
    groups = {
      top = function(_, y) return y > height - dx end,
      low = function(_, y) return y > 4 * dx and y < 5 * dx end,
      high = function(_, y) return y > height - 5 * dx and y < height - 4 * dx end,
    },
  }
  for k, load in ipairs(loads) do list[k] = expected(load) end
  return {
    robot = robot, loads = loads, expected = list, steps = steps,
    -- The last state of a rollout in which columns side by side in a batch are pressed, one by each load, and let go.
    press = function(world)
      local u = {}
      for k, load in ipairs(loads) do
        u[k] = {}
        for i = 1, steps do
          local t = (i - 0.5) * dt
          u[k][i] = { load * math.max(0, math.min(1, t / PRESS, (RELEASE - t) / (RELEASE - REST))) }
        end
      end
      return world:rollout({ steps = steps, batch = #loads,
        controller = cq.Controller.open_loop(cq.tensor(u)) }).state
    end,
    -- The part of its length that column k keeps in a state.
    kept = function(state, k)
      local way = state:center("high") - state:center("low")
      return (way.rank == 2 and way[k] or way)[2]:item() / (height - 9 * dx)
    end,
    world = {
      cells = { cells + 2 * WALL, high + 2 * WALL + 2 }, dx = dx, dt = dt, substeps = 5 * cells, damping = 3,
      precision = given.precision, device = given.device,
      walls = cq.Boundary.box { kind = "slip", clamp = true }, robot:at { (WALL - IN_WALL) * dx, WALL * dx },
    },
  }
end
