-- backward_euler: a scene through steps of backward Euler together with its derivative along one direction, in float64:
-- dual numbers through a Newton's method with dense matrices. A second, independent writing of the implicit step
-- (engine/physics/EQUATIONS.md), for a few particles, that the engine's gradients are held against.
--
-- Scenes: neo-Hookean, one engine step for each control step; a floor that lets go, below which nodes are held; pins;
-- a pressure in a chamber of the plane, of the state before the step.
local dual = require "tests.accuracy.dual"

local Model = {}
Model.__index = Model

local backward_euler = {}

local value, slope, log = dual.value, dual.slope, dual.log

-- ---- small matrices, row-major tables of numbers or duals -----------------------------------------------------------

-- the matrix {dim, dim} of f(i, j)
local function matrix(dim, f)
  local out = {}
  for i = 1, dim do
    out[i] = {}
    for j = 1, dim do out[i][j] = f(i, j) end
  end
  return out
end

local function product(a, b, dim)
  return matrix(dim, function(i, j)
    local sum = a[i][1] * b[1][j]
    for k = 2, dim do sum = sum + a[i][k] * b[k][j] end
    return sum
  end)
end

local function cofactor(f, dim)
  if dim == 2 then return { { f[2][2], -f[2][1] }, { -f[1][2], f[1][1] } } end
  return matrix(3, function(i, j)
    local p, q, r, s = i % 3 + 1, (i + 1) % 3 + 1, j % 3 + 1, (j + 1) % 3 + 1
    return f[p][r] * f[q][s] - f[p][s] * f[q][r]
  end)
end

-- P = mu (F - F^-T) + lambda log J F^-T
local function piola(model, f)
  local dim, cof = model.dim, cofactor(f, model.dim)
  local jac = f[1][1] * cof[1][1]
  for k = 2, dim do jac = jac + f[1][k] * cof[1][k] end
  local pressure = (log(jac) * model.lambda - model.mu) / jac
  return matrix(dim, function(i, j) return f[i][j] * model.mu + cof[i][j] * pressure end)
end

-- solves a x = b in place by elimination with pivots
local function solve(a, b)
  local n = #b
  for k = 1, n do
    local best = k
    for i = k + 1, n do
      if math.abs(a[i][k]) > math.abs(a[best][k]) then best = i end
    end
    a[k], a[best], b[k], b[best] = a[best], a[k], b[best], b[k]
    for i = k + 1, n do
      local share = a[i][k] / a[k][k]
      if share ~= 0 then
        for j = k, n do a[i][j] = a[i][j] - share * a[k][j] end
        b[i] = b[i] - share * b[k]
      end
    end
  end
  for k = n, 1, -1 do
    for j = k + 1, n do b[k] = b[k] - a[k][j] * b[j] end
    b[k] = b[k] / a[k][k]
  end
  return b
end

-- ---- stencils -------------------------------------------------------------------------------------------------------

-- nodes of a particle: key, weight, distance from the particle in cells
local function stencil(model, x)
  local dim, out, axis = model.dim, {}, {}
  for i = 1, dim do
    local cell = x[i] / model.dx
    local base = math.floor(value(cell) - 0.5)
    local f = cell - base
    local high, middle, low = f - 0.5, f - 1, -f + 1.5
    axis[i] = { base = base, f = f, w = { low * low * 0.5, -(middle * middle) + 0.75, high * high * 0.5 } }
  end
  for k = 0, 3 ^ dim - 1 do
    local key, weight, rel, rest, at = 0, 1, {}, k, {}
    for i = 1, dim do
      local o = rest % 3
      rest = (rest - o) / 3
      at[i] = axis[i].base + o
      key, weight, rel[i] = key * 4096 + at[i], axis[i].w[o + 1] * weight, -axis[i].f + o
    end
    out[#out + 1] = { key = key, at = at, w = weight, rel = rel }
  end
  return out
end

-- C of a particle from velocities of nodes
local function affine(model, stencil_of, velocity)
  return matrix(model.dim, function(i, j)
    local sum = 0
    for _, n in ipairs(stencil_of) do sum = n.w * velocity[n.key][i] * n.rel[j] + sum end
    return sum * (4 / model.dx)
  end)
end

local function trial(model, c, f)
  local cf = product(c, f, model.dim)
  return matrix(model.dim, function(i, j) return cf[i][j] * model.dt + f[i][j] end)
end

-- ---- a step ---------------------------------------------------------------------------------------------------------

-- Forces of a pressure in a chamber, by particle: those of its corners, p dV/dy of the polygon, by their weights.
local function forces_of(model, particles)
  local chamber, out, y, force = model.chamber, {}, {}, {}
  for c, carrier in ipairs(chamber and chamber.carriers or {}) do
    y[c], force[c] = { 0, 0 }, { 0, 0 }
    for k, p in ipairs(carrier.particle) do
      for i = 1, 2 do y[c][i] = particles[p + 1].x[i] * carrier.weight[k] + y[c][i] end
    end
  end
  for f = 1, chamber and #chamber.face or 0, 2 do
    local a, b, half = chamber.face[f], chamber.face[f + 1], model.pressure * 0.5
    force[a][1], force[a][2] = half * y[b][2] + force[a][1], -(half * y[b][1]) + force[a][2]
    force[b][1], force[b][2] = -(half * y[a][2]) + force[b][1], half * y[a][1] + force[b][2]
  end
  for c, carrier in ipairs(chamber and chamber.carriers or {}) do
    for k, p in ipairs(carrier.particle) do
      out[p + 1] = out[p + 1] or { 0, 0 }
      for i = 1, 2 do out[p + 1][i] = force[c][i] * carrier.weight[k] + out[p + 1][i] end
    end
  end
  return out
end

-- mass and momentum with given forces at nodes
local function to_grid(model, particles)
  local nodes, dim, given = {}, model.dim, forces_of(model, particles)
  for number, p in ipairs(particles) do
    p.stencil = stencil(model, p.x)
    local force = given[number]
    for _, n in ipairs(p.stencil) do
      local node = nodes[n.key]
      if not node then
        node = { mass = 0, momentum = {}, at = n.at }
        for i = 1, dim do node.momentum[i] = 0 end
        nodes[n.key] = node
      end
      node.mass = n.w * p.mass + node.mass
      for i = 1, dim do
        local q = p.v[i]
        for j = 1, dim do q = p.c[i][j] * n.rel[j] * model.dx + q end
        q = q * p.mass
        if force then q = force[i] * model.dt + q end
        node.momentum[i] = n.w * q + node.momentum[i]
      end
    end
  end
  return nodes
end

-- r = m v - p - dt m g + dt 4/dx sum V w P(F^) F^T rel
local function residual(model, particles, nodes, velocity)
  local r, dim = {}, model.dim
  for key, node in pairs(nodes) do
    r[key] = {}
    for i = 1, dim do
      r[key][i] = node.mass * (velocity[key][i] - model.dt * model.gravity[i]) - node.momentum[i]
    end
  end
  for _, p in ipairs(particles) do
    local stress = piola(model, trial(model, affine(model, p.stencil, velocity), p.f))
    local k = matrix(dim, function(i, j)
      local sum = stress[i][1] * p.f[j][1]
      for l = 2, dim do sum = sum + stress[i][l] * p.f[j][l] end
      return sum * (model.dt * p.volume * 4 / model.dx)
    end)
    for _, n in ipairs(p.stencil) do
      for i = 1, dim do
        local sum = k[i][1] * n.rel[1]
        for j = 2, dim do sum = sum + k[i][j] * n.rel[j] end
        r[n.key][i] = n.w * sum + r[n.key][i]
      end
    end
  end
  return r
end

-- dr/dv on free components, of plain numbers
local function jacobian(model, particles, nodes, velocity, index, count)
  local a, dim = {}, model.dim
  for k = 1, count do
    a[k] = {}
    for j = 1, count do a[k][j] = 0 end
  end
  for key, node in pairs(nodes) do
    for i = 1, dim do
      local k = index[key][i]
      if k then a[k][k] = node.mass end
    end
  end
  for _, p in ipairs(particles) do
    local f = trial(model, affine(model, p.stencil, velocity), p.f)
    for _, n in ipairs(p.stencil) do
      for i = 1, dim do
        local column = index[n.key][i]
        if column then
          local along = {}   -- of C F, its row i
          for j = 1, dim do
            along[j] = 0
            for l = 1, dim do along[j] = along[j] + 4 / model.dx * n.w * n.rel[l] * p.f[l][j] end
          end
          local moved = matrix(dim, function(q, j) return dual.new(f[q][j], q == i and model.dt * along[j] or 0) end)
          local stress = piola(model, moved)
          for _, m in ipairs(p.stencil) do
            for q = 1, dim do
              local row, sum = index[m.key][q], 0
              for j = 1, dim do
                for l = 1, dim do sum = sum + stress[q][l].slope * p.f[j][l] * m.rel[j] end
              end
              if row then a[row][column] = a[row][column] + model.dt * p.volume * 4 / model.dx * m.w * sum end
            end
          end
        end
      end
    end
  end
  return a
end

-- a copy in which dual numbers are their values
local function plain(x)
  if type(x) ~= "table" then return x end
  if getmetatable(x) then return value(x) end
  local out = {}
  for k, v in pairs(x) do out[k] = plain(v) end
  return out
end

-- numbers the free components; a node on the floor is free along it, and against it where it lifts off
local function number(model, nodes, lifted)
  local index, count = {}, 0
  for key, node in pairs(nodes) do
    index[key] = {}
    for i = 1, model.dim do
      local held = model.held[key] or i == 2 and node.at[2] <= model.floor and not lifted[key]
      if not held then
        count = count + 1
        index[key][i] = count
      end
    end
  end
  return index, count
end

-- velocities of nodes; which of them the floor holds is found as a set that does not change any more
local function newton(model, particles, nodes)
  local velocity, lifted, scale = {}, {}, model.dt * model.mu * model.dx ^ (model.dim - 1)
  for key, node in pairs(nodes) do
    velocity[key] = {}
    for i = 1, model.dim do velocity[key][i], scale = 0, math.max(scale, math.abs(node.momentum[i])) end
    lifted[key] = false
  end
  for _ = 1, 60 do
    local index, count = number(model, nodes, lifted)
    local r, b, largest = residual(model, particles, nodes, velocity), {}, 0
    for key in pairs(nodes) do
      for i = 1, model.dim do
        local k = index[key][i]
        if k then b[k], largest = -r[key][i], math.max(largest, math.abs(r[key][i])) end
      end
    end
    if largest < 1e-14 * scale then
      local changed = false
      for key, node in pairs(nodes) do
        if not model.held[key] and node.at[2] <= model.floor then
          local lifts = lifted[key] and velocity[key][2] >= 0 or not lifted[key] and r[key][2] < 0
          if lifts ~= lifted[key] then
            lifted[key], changed = lifts, true
            if not lifts then velocity[key][2] = 0 end
          end
        end
      end
      if not changed then return velocity, index, count end
    else
      local step = solve(jacobian(model, particles, nodes, velocity, index, count), b)
      for key in pairs(nodes) do
        for i = 1, model.dim do
          local k = index[key][i]
          if k then velocity[key][i] = velocity[key][i] + step[k] end
        end
      end
    end
  end
  error "backward_euler: Newton's method did not come to an end"
end

---One step, with its derivative along direction.
function Model:step()
  local simple = plain(self.particles)
  local pressure = self.pressure
  self.pressure = value(pressure)
  local nodes = to_grid(self, simple)
  local velocity, index, count = newton(self, simple, nodes)
  self.pressure = pressure
  local full = to_grid(self, self.particles)
  -- the slopes of velocities are linear in those of the residual at them
  local r, b = residual(self, self.particles, full, velocity), {}
  for key in pairs(nodes) do
    for i = 1, self.dim do
      local k = index[key][i]
      if k then b[k] = -slope(r[key][i]) end
    end
  end
  local tangent = solve(jacobian(self, simple, nodes, velocity, index, count), b)
  for key in pairs(nodes) do
    for i = 1, self.dim do
      local k = index[key][i]
      if k then velocity[key][i] = dual.new(velocity[key][i], tangent[k]) end
    end
  end
  for _, p in ipairs(self.particles) do
    local v = {}
    p.c = affine(self, p.stencil, velocity)
    p.f = trial(self, p.c, p.f)
    for i = 1, self.dim do
      v[i] = 0
      for _, n in ipairs(p.stencil) do v[i] = n.w * velocity[n.key][i] + v[i] end
    end
    p.v = v
    for i = 1, self.dim do p.x[i] = v[i] * self.dt + p.x[i] end
  end
end

---Mean of the particles' places along an axis, and its derivative along direction.
---@param axis integer
---@return number value
---@return number slope
function Model:mean(axis)
  local sum = 0
  for _, p in ipairs(self.particles) do sum = p.x[axis] + sum end
  return value(sum) / #self.particles, slope(sum) / #self.particles
end

---@class cq.measure.BackwardEuler.def
---@field world cq.World          of one robot of one neo-Hookean material
---@field young number
---@field poisson number
---@field velocity number[]       of all particles at the start
---@field direction number[]      its derivative
---@field pressure? number        in the robot's first chamber [stress]
---@field slope? number           its derivative
---@field floor? integer          nodes up to this one along y are in the floor

---@param def cq.measure.BackwardEuler.def
---@return table
function backward_euler.new(def)
  local world, robot = def.world, def.world.robot
  local dim = world.dim
  local x, density, volume = robot.position:data(), robot.density:data(), robot.volume:data()
  local self = setmetatable({
    dim = dim, dx = world.dx, dt = world.control_dt, gravity = world.def.gravity or { 0, 0, 0 },
    particles = {}, held = {},
    mu = def.young / (2 * (1 + def.poisson)),
    lambda = def.young * def.poisson / ((1 + def.poisson) * (1 - 2 * def.poisson)), floor = def.floor or -1,
    pressure = dual.new(def.pressure or 0, def.slope or 0),
  }, Model)
  self.chamber = def.pressure and robot.surfaces[1].chamber or nil
  for p = 0, robot.particle_count - 1 do
    local at, v = {}, {}
    for i = 1, dim do
      at[i] = dual.new(x[p * dim + i - 1], 0)
      v[i] = dual.new(def.velocity[i], def.direction[i])
    end
    self.particles[p + 1] = { x = at, v = v, mass = density[p] * volume[p], volume = volume[p],
      c = matrix(dim, function() return 0 end), f = matrix(dim, function(i, j) return i == j and 1 or 0 end) }
  end
  for _, pin in ipairs(robot.pins or {}) do
    local index, count = robot:select({ pin }, "backward_euler")
    for k = 0, count - 1 do
      for _, n in ipairs(stencil(self, plain(self.particles[index[k] + 1].x))) do self.held[n.key] = true end
    end
  end
  return self
end

return backward_euler
