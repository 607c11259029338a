-- stretch: homogeneous deformations of a material, one particle for each: pulled along one axis or along two, with
-- free faces, sheared, or swollen alike along all axes; and what the books have for them.
--
--   local stress, lateral = stretch.measure(material, "uniaxial", { 1, 1.5, 2 })   P_11, or P_12 of a shear
--   stretch.closed_form(material, "uniaxial", 1.5)                                  of the incompressible solid
local cq = require "cq"

local stretch = {}

-- F of an amount and of the stretch of the free faces
local deformation = {
  -- F of a stretch l along one axis, with free faces of stretch t.
  uniaxial = function(l, t) return { { l, 0, 0 }, { 0, t, 0 }, { 0, 0, t } } end,
  -- F of a stretch l along two axes, with free faces of stretch t.
  biaxial  = function(l, t) return { { l, 0, 0 }, { 0, l, 0 }, { 0, 0, t } } end,
  -- F of a shear g.
  shear    = function(g) return { { 1, g, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } end,
  -- F of a stretch l along all axes.
  pressure = function(l) return { { l, 0, 0 }, { 0, l, 0 }, { 0, 0, l } } end,
}
-- the free stretch of an incompressible solid, where the search begins
local guess = {
  -- The free stretch of an incompressible solid at a stretch l along one axis (uniaxial), or two (biaxial).
  uniaxial = function(l) return l ^ -0.5 end, biaxial = function(l) return l ^ -2 end,
}
-- modes without a free face
local held = { shear = true, pressure = true }

-- Returns a world of `count` particles of a material, and a function that takes a list of `count` deformation gradients
-- (nested lists {count, 3, 3}) and returns the first Piola-Kirchhoff stress P of each in the same form. The function
-- reads the stresses at step 0 of a rollout, so that no particle has moved.
local function world_of(material, count)
  local size = 1 / 16
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", at = { 0, 0, 0 }, size = { count * size, size, size },
      count = { count, 1, 1 } },
    material = material,
  }
  local world = cq.World {
    cells = { count + 8, 8, 8 }, dx = 1 / 8, dt = 1e-6, precision = "float64", robot:at { 0.5, 0.5, 0.5 },
  }
  return world, function(list)
    local out
    world:rollout {
      steps = 1, robot = world.robot:with { deformation = cq.tensor(list) },
      on_step = function(state) if state.step == 0 then out = state:gather("body", "piola"):totable() end end,
    }
    return out
  end
end

---Measures the engine's stress in homogeneous deformations of a material. amounts: a list of stretches, or of shears
---gamma. mode: "uniaxial", "biaxial", "shear" or "pressure" (the same stretch along all axes). Returns two lists: the
---nominal stress P_11 (P_12 of a shear) for each amount, and the stretch of the free faces, at which they bear no
---stress (secant method; 1 if the mode has none).
function stretch.measure(material, mode, amounts)
  local world, stress_of = world_of(material, #amounts)
  -- The stress P {3, 3} for each amount, if the free faces have the stretches in the list `free`.
  local function at(free)
    local list = {}
    for k, amount in ipairs(amounts) do list[k] = deformation[mode](amount, free[k]) end
    return stress_of(list)
  end
  local now, before = {}, {}
  for k, amount in ipairs(amounts) do
    now[k] = held[mode] and 1 or guess[mode](amount)
    before[k] = 0.999 * now[k]
  end
  local last, found = at(before), at(now)
  for _ = 1, held[mode] and 0 or 40 do
    for k in ipairs(amounts) do
      local slope = (found[k][3][3] - last[k][3][3]) / (now[k] - before[k])
      before[k] = now[k]
      local step = slope == slope and slope ~= 0 and -found[k][3][3] / slope or 0
      now[k] = now[k] + math.max(-0.3 * now[k], math.min(0.3 * now[k], step))
    end
    last, found = found, at(now)
  end
  world:close()
  local stress = {}
  for k in ipairs(amounts) do stress[k] = found[k][1][mode == "shear" and 2 or 1] end
  return stress, now
end

-- ---- closed forms ---------------------------------------------------------------------------------------------------
-- Of an incompressible solid with W(I1, I2): 2 (l - l^-2)(W1 + W2 / l) along one axis, 2 (l - l^-5)(W1 + l^2 W2)
-- along two, 2 g (W1 + W2) in shear (Rivlin 1948). Of Ogden's (1972): sum of mu (l^(alpha-1) - l^(-alpha/2-1)), mu
-- (l^(alpha-1) - l^(-2 alpha-1)), and with the stretches l and 1/l of the shear g = l - 1/l mu (l^alpha - l^-alpha) /
-- (l + 1/l).

-- Closed forms of an incompressible solid with energy W(I1, I2): a table, by mode, of functions f(amount, material)
-- that return the nominal stress. slopes(material, I1): a function that returns W1 = dW/dI1 and W2 = dW/dI2.
local function by_invariants(slopes)
  return {
    -- Nominal stress at a stretch l along one axis.
    uniaxial = function(l, m)
      local w1, w2 = slopes(m, l ^ 2 + 2 / l)
      return 2 * (l - l ^ -2) * (w1 + w2 / l)
    end,
    -- Nominal stress at a stretch l along two axes.
    biaxial = function(l, m)
      local w1, w2 = slopes(m, 2 * l ^ 2 + l ^ -4)
      return 2 * (l - l ^ -5) * (w1 + l ^ 2 * w2)
    end,
    -- Nominal stress at a shear g.
    shear = function(g, m)
      local w1, w2 = slopes(m, 3 + g ^ 2)
      return 2 * g * (w1 + w2)
    end,
  }
end

-- A closed form of Ogden's law for one mode: a function of an amount l and a material m that returns the nominal
-- stress, the sum of mu_k f(l, alpha_k) over three terms k.
local function sum_of_terms(f)
  return function(l, m)
    local sum = 0
    for k = 1, 3 do sum = sum + m["mu_" .. k] * f(l, m["alpha_" .. k]) end
    return sum
  end
end

-- Closed forms by mode of a solid with fibres along the first axis. matrix: the closed forms of the solid without
-- fibres, to which fibres add 2 k1 l e exp(k2 e^2), e = l^2 - 1; a shear along the fibres does not stretch them.
local function with_fibres(matrix)
  -- The nominal stress that the fibres of material m add at a stretch l along them; none in compression.
  local function pull(l, m)
    local e = math.max(l ^ 2 - 1, 0)
    return 2 * m.k1 * l * e * math.exp(m.k2 * e ^ 2)
  end
  return {
    -- Nominal stress at a stretch l along one axis.
    uniaxial = function(l, m) return matrix.uniaxial(l, m) + pull(l, m) end,
    -- Nominal stress at a stretch l along two axes.
    biaxial = function(l, m) return matrix.biaxial(l, m) + pull(l, m) end,
    shear = matrix.shear,
  }
end

-- Young's modulus of a material that is given by E and nu.
local function young(m) return m.young end
-- The shear modulus of a material: its field `shear`, or from E and nu.
local function shear_of(m) return m.shear or m.young / (2 * (1 + m.poisson)) end
-- Lame's first constant, lambda, of a material, from E and nu.
local function lame(m) return m.young * m.poisson / ((1 + m.poisson) * (1 - 2 * m.poisson)) end

local solid = by_invariants(function(m) return shear_of(m) / 2, 0 end)
local forms = {
  mooney_rivlin = by_invariants(function(m) return m.c10, m.c01 end),
  yeoh = by_invariants(function(m, i1) return m.c10 + (i1 - 3) * (2 * m.c20 + 3 * (i1 - 3) * m.c30), 0 end),
  ogden = {
    uniaxial = sum_of_terms(function(l, a) return l ^ (a - 1) - l ^ (-a / 2 - 1) end),
    biaxial = sum_of_terms(function(l, a) return l ^ (a - 1) - l ^ (-2 * a - 1) end),
    shear = sum_of_terms(function(g, a)
      local l = g / 2 + math.sqrt(1 + g ^ 2 / 4)
      return (l ^ a - l ^ -a) / (l + 1 / l)
    end),
  },
  transversely_isotropic = with_fibres(by_invariants(function(m) return m.shear / 2, 0 end)),
  neo_hookean = solid,
  corotated = { shear = function(g, m) return 2 * shear_of(m) * (g - g / math.sqrt(4 + g ^ 2)) end },
  linear = {
    -- Nominal stress at a stretch l along one axis.
    uniaxial = function(l, m) return young(m) * (l - 1) end,
    -- Nominal stress at a stretch l along two axes.
    biaxial = function(l, m) return young(m) / (1 - m.poisson) * (l - 1) end,
    -- Nominal stress at a shear g.
    shear = function(g, m) return shear_of(m) * g end,
  },
  saint_venant_kirchhoff = {
    -- Nominal stress at a stretch l along one axis.
    uniaxial = function(l, m) return young(m) * l * (l ^ 2 - 1) / 2 end,
    -- Nominal stress at a stretch l along two axes.
    biaxial = function(l, m) return young(m) / (1 - m.poisson) * l * (l ^ 2 - 1) / 2 end,
    -- Nominal stress at a shear g.
    shear = function(g, m) return shear_of(m) * g + (shear_of(m) + lame(m) / 2) * g ^ 3 end,
  },
}

---The nominal stress from the literature's closed form of the material's law, for the incompressible solid. mode and
---amount (a stretch, or the shear gamma): as for stretch.measure. nil if there is no closed form.
function stretch.closed_form(material, mode, amount)
  local form = forms[material.law][mode]
  return form and form(amount, material)
end

-- laws of an isochoric energy and U(J), whose closed form holds at any bulk modulus for the isochoric stretch; with
-- what they have of J U'
local isochoric = { mooney_rivlin = true, yeoh = true, ogden = true }

---The relative errors of two equations that a compressible rubber must fulfil. stress, free: the nominal stress and the
---free stretch of stretch.measure at this amount (stretch l). The equations: l P = l' P'(l') with the isochoric stretch
---l' = J^(-1/3) l and the closed form P'; and J U' = K/2 (J^2 - 1) = n l P / 3, n the number of pulled axes. Returns
---nothing for a shear and for laws without an isochoric energy.
function stretch.errors(material, mode, amount, stress, free)
  if not isochoric[material.law] or mode == "shear" then return end
  local axes = mode == "uniaxial" and 1 or 2
  local jac = amount ^ axes * free ^ (3 - axes)
  local l = jac ^ (-1 / 3) * amount
  local tau, wanted = amount * stress, l * stretch.closed_form(material, mode, l)
  local pressure = material.bulk / 2 * (jac ^ 2 - 1)
  return math.abs(tau / wanted - 1), math.abs((pressure - axes * tau / 3) / wanted)
end

return stretch
