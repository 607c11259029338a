-- maxwell: rubber with a Maxwell branch. The stress of a held shear relaxes by exp(-t / tau), and in a layer that
-- swings stress and strain have the storage and the loss modulus of the standard linear solid.
local cq = require "cq"

local SHEAR, BULK, MODULUS, TIME = 1, 10, 0.5, 0.1

local IMPLICIT = cq.Implicit { tolerance = 1e-6 }

-- the shear stress of the branch after a time, in a body whose every node is held; steps of dt
local function relax(dt, duration, integrator)
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", size = { 0.1, 0.1 }, count = { 2, 2 } }, pins = "body",
    material = cq.Material.viscoelastic { base = cq.Material.neo_hookean { shear = SHEAR, bulk = BULK, density = 100 },
      modulus = { MODULUS }, time = { TIME } },
  }
  local world = cq.World { cells = { 8, 8 }, dx = 0.1, dt = dt, precision = "float64", integrator = integrator,
    robot:at { 0.4, 0.4 } }
  local f = cq.tensor { { 1, 0.2 }, { 0, 1 } }:reshape({ 1, 2, 2 }):expand { 4, 2, 2 }
  local last
  world:rollout { steps = math.floor(duration / dt + 0.5), robot = world.robot:with { deformation = f },
    on_step = function(state)
      last = state:stress "body"[1][2]:item()
    end }
  world:close()
  return last
end

-- storage and loss modulus of a layer between two plates, of which the upper one swings
local function swing(omega, cells, steps, integrator)
  local dx, height, amplitude = 0.1 / cells, 0.1, 1e-4
  local wall = 4 * dx
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "layer", at = { 0, -2 * dx }, size = { 4 * height, height + 4 * dx },
      spacing = dx / 2 },
    groups = { middle = function(x, y)
      return math.abs(x - 2 * height) < height / 2 and y > height / 4 and y < 3 * height / 4
    end },
    material = cq.Material.viscoelastic { base = cq.Material.neo_hookean { shear = SHEAR, bulk = BULK, density = 0.01 },
      modulus = { MODULUS }, time = { TIME } },
  }
  local periods = 4
  local world = cq.World {
    cells = { 4 * cells + 8, cells + 8 }, dx = dx, dt = 2 * math.pi / omega / steps, substeps = "auto",
    precision = "float64", integrator = integrator, robot:at { wall, wall },
    walls = {
      cq.Boundary.floor { at = wall, kind = "sticky", clamp = true },
      cq.Boundary.half_plane { point = { 0, wall + height }, normal = { 0, -1 }, kind = "sticky", clamp = true,
        moves = false, velocity = function(t) return { amplitude * height * omega * math.cos(omega * t), 0 } end },
    },
  }
  local re, im, strain_re, strain_im = 0, 0, 0, 0
  world:rollout { steps = periods * steps, on_step = function(state)
    if state.step <= (periods - 1) * steps then return end
    local s, c = math.sin(omega * state.time), math.cos(omega * state.time)
    local stress, f = state:stress "middle"[1][2]:item(), state:mean("middle", "deformation")
    local strain = f[1][2]:item() + f[2][1]:item()      -- the layer's free ends turn its middle by a thousandth of it
    re, im, strain_re, strain_im = re + stress * s, im + stress * c, strain_re + strain * s, strain_im + strain * c
  end }
  world:close()
  local size = strain_re ^ 2 + strain_im ^ 2
  return (re * strain_re + im * strain_im) / size, (im * strain_re - re * strain_im) / size
end

return {
  summary = "a Maxwell branch: relaxation of a held shear, storage and loss modulus of a layer that swings",
  source = "the standard linear solid: G gamma + G_1 gamma exp(-t / tau), G' = G + G_1 (w tau)^2 / (1 + (w tau)^2),"
    .. " G'' = G_1 w tau / (1 + (w tau)^2)",
  quick = true,
  run = function(row)
    local function relaxation(method, t, integrator)
      local steps, ours = { 10, 20, 40 }, {}
      for k, n in ipairs(steps) do ours[k] = relax(t / n, t, integrator) end
      row { method = method, quantity = ("shear stress after %g relaxation times"):format(t / TIME),
        exact = 0.2 * (SHEAR + MODULUS * math.exp(-t / TIME)), ours = ours, refined = steps, by = "steps",
        promise = 2e-3, order = 0.9 }
    end
    relaxation("explicit", 0.05)
    relaxation("explicit", 0.2)
    relaxation("implicit", 0.2, IMPLICIT)
    local plateau = "the shear is the same everywhere, so that the grid does not matter: what is left is of the time steps"
      .. " and of the start from rest"
    local function moduli(method, slow, refined, by, found)
      local storage, loss = {}, {}
      for k, n in ipairs(refined) do storage[k], loss[k] = found(n) end
      for _, of in ipairs { { "storage", SHEAR + MODULUS * slow ^ 2 / (1 + slow ^ 2), storage },
        { "loss", MODULUS * slow / (1 + slow ^ 2), loss } } do
        row { method = method, quantity = ("%s modulus at w tau = %g"):format(of[1], slow), exact = of[2], ours = of[3],
          refined = refined, by = by, promise = 0.001, plateau = plateau }
      end
    end
    for _, slow in ipairs { 0.3, 1, 3 } do
      moduli("explicit", slow, { 4, 8 }, "cells across", function(n) return swing(slow / TIME, n, 200) end)
    end
    moduli("implicit", 1, { 50, 100 }, "steps a period", function(n) return swing(1 / TIME, 4, n, IMPLICIT) end)
  end,
}
