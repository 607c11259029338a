-- tangent: a plane scene through time together with its derivative along one direction, in float64: forward mode, exact
-- to rounding, without differences. A second, independent writing of the step (engine/physics/EQUATIONS.md), one
-- particle and one node at a time, that the engine's gradients are held against.
--
-- Every quantity a has its derivative beside it: a and da. Scenes: 2D, neo-Hookean, one engine step for each control
-- step; boxes of kind "separate"; pins; actuators along y; no gravity.
local ffi = require "ffi"

---@class cq.measure.Tangent
local Tangent = {}
Tangent.__index = Tangent

local tangent = {}

local function array(count) return ffi.new("double[?]", count) end

-- nodes that pins hold: those that a pinned particle touches at the start
local function hold_pins(self, robot)
  for _, pin in ipairs(robot.pins) do
    local index, count = robot:select({ pin }, "tangent")
    for k = 0, count - 1 do
      local p = index[k]
      local i, j = math.floor(self.x[2 * p] / self.dx - 0.5), math.floor(self.x[2 * p + 1] / self.dx - 0.5)
      for a = i, i + 2 do
        for b = j, j + 2 do self.held[a * self.height + b] = 1 end
      end
    end
  end
end

-- the span of nodes that no side of the box holds, along each axis
local function set_walls(self, world)
  self.free = { -1e9, 1e9, -1e9, 1e9 }
  for _, wall in ipairs(world.walls) do
    if wall.family ~= "box" or wall.kind ~= "separate" or wall.lower then
      error "tangent: walls must be one separate box without lower and upper"
    end
    for d = 1, 2 do self.free[2 * d - 1], self.free[2 * d] = 3, world.cells[d] - 3 end
  end
end

---@param world cq.World
---@param velocity cq.Tensor      {n, 2} at the start
---@param direction cq.Tensor?    {n, 2} derivative of the velocity at the start, none: 0
---@return cq.measure.Tangent
function tangent.new(world, velocity, direction)
  local robot, n = world.robot, world.particle_count
  if world.dim ~= 2 or world.substeps ~= 1 or #world.robots > 1 then
    error "tangent: only plane scenes of one robot without substeps"
  end
  for _, material in ipairs(robot.laws) do
    if material.law ~= "neo_hookean" or material.incompressible > 0 then
      error "tangent: only neo-Hookean material, not incompressible"
    end
  end
  local nodes = (world.cells[1] + 1) * (world.cells[2] + 1)
  local self = setmetatable({
    n = n, dx = world.dx, dt = world.control_dt, width = world.cells[1] + 1, height = world.cells[2] + 1, robot = robot,
    x = array(2 * n), shift = array(2 * n), v = array(2 * n), dv = array(2 * n), c = array(4 * n), dc = array(4 * n),
    f = array(4 * n), df = array(4 * n), stress = array(n), dstress = array(n),
    mass = array(n), volume = array(n), mu = array(n), lambda = array(n),
    node = array(3 * nodes), dnode = array(3 * nodes), held = ffi.new("uint8_t[?]", nodes), nodes = nodes,
  }, Tangent)
  for p = 0, n - 1 do
    local young, poisson = robot.young:data()[p], robot.poisson:data()[p]
    self.mu[p], self.lambda[p] = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    self.volume[p] = robot.volume:data()[p]
    self.mass[p] = robot.density:data()[p] * self.volume[p]
    self.f[4 * p], self.f[4 * p + 3] = 1, 1
    for d = 0, 1 do
      self.x[2 * p + d], self.v[2 * p + d] = robot.position:data()[2 * p + d], velocity:data()[2 * p + d]
      self.dv[2 * p + d] = direction and direction:data()[2 * p + d] or 0
    end
  end
  hold_pins(self, robot)
  set_walls(self, world)
  return self
end

-- weights of three nodes, their derivative, and the arm to the middle one
local wx, wy, dwx, dwy = array(3), array(3), array(3), array(3)
-- weights w of the three nodes along one axis, and their derivatives dw; returns the first node
local function place(x, dx, inverse, w, dw)
  local s = x * inverse
  local base = math.floor(s - 0.5)
  local f, df = s - base, dx * inverse
  local a, b, c = 1.5 - f, f - 1, f - 0.5
  w[0], w[1], w[2] = 0.5 * a * a, 0.75 - b * b, 0.5 * c * c
  dw[0], dw[1], dw[2] = -a * df, -2 * b * df, c * df
  return base, 1 - f, -df
end

-- (E7, E11) Kirchhoff stress of particle p and its derivative: xx, xy, yy, and of each
local function stress(self, p)
  local f, df, mu, lambda = self.f, self.df, self.mu[p], self.lambda[p]
  local a, b, c, d = f[4 * p], f[4 * p + 1], f[4 * p + 2], f[4 * p + 3]
  local da, db, dc, dd = df[4 * p], df[4 * p + 1], df[4 * p + 2], df[4 * p + 3]
  local j, dj = a * d - b * c, da * d + a * dd - db * c - b * dc
  local pressure, dpressure = lambda * math.log(j) - mu, lambda * dj / j
  -- F F^T, with the actuation along y added to the square of the second column
  local s = mu + self.stress[p]
  local ds = self.dstress[p]
  local xx, xy, yy = mu * a * a + s * b * b + pressure, mu * a * c + s * b * d, mu * c * c + s * d * d + pressure
  local dxx = 2 * mu * a * da + ds * b * b + 2 * s * b * db + dpressure
  local dxy = mu * (da * c + a * dc) + ds * b * d + s * (db * d + b * dd)
  local dyy = 2 * mu * c * dc + ds * d * d + 2 * s * d * dd + dpressure
  return xx, xy, yy, dxx, dxy, dyy
end

-- (E2, E4) particles to nodes; dq and db are derivatives of q and b
local function to_grid(self)
  local node, dnode, height, inverse = self.node, self.dnode, self.height, 1 / self.dx
  for p = 0, self.n - 1 do
    local i, ax, dax = place(self.x[2 * p], self.shift[2 * p], inverse, wx, dwx)
    local j, ay, day = place(self.x[2 * p + 1], self.shift[2 * p + 1], inverse, wy, dwy)
    local m, k = self.mass[p], -4 * inverse * self.dt * self.volume[p]
    local mc, c, dc = m * self.dx, self.c, self.dc
    local xx, xy, yy, dxx, dxy, dyy = stress(self, p)
    local b00, b01, b10, b11 = k * xx + mc * c[4 * p], k * xy + mc * c[4 * p + 1], k * xy + mc * c[4 * p + 2],
      k * yy + mc * c[4 * p + 3]
    local d00, d01, d10, d11 = k * dxx + mc * dc[4 * p], k * dxy + mc * dc[4 * p + 1], k * dxy + mc * dc[4 * p + 2],
      k * dyy + mc * dc[4 * p + 3]
    local q0, q1 = m * self.v[2 * p] + b00 * ax + b01 * ay, m * self.v[2 * p + 1] + b10 * ax + b11 * ay
    local dq0 = m * self.dv[2 * p] + d00 * ax + b00 * dax + d01 * ay + b01 * day
    local dq1 = m * self.dv[2 * p + 1] + d10 * ax + b10 * dax + d11 * ay + b11 * day
    for a = 0, 2 do
      for b = 0, 2 do
        local w, dw = wx[a] * wy[b], dwx[a] * wy[b] + wx[a] * dwy[b]
        local u0, u1 = q0 + b00 * (a - 1) + b01 * (b - 1), q1 + b10 * (a - 1) + b11 * (b - 1)
        local at = 3 * ((i + a) * height + j + b)
        node[at], node[at + 1], node[at + 2] = node[at] + w * u0, node[at + 1] + w * u1, node[at + 2] + w * m
        dnode[at] = dnode[at] + dw * u0 + w * (dq0 + d00 * (a - 1) + d01 * (b - 1))
        dnode[at + 1] = dnode[at + 1] + dw * u1 + w * (dq1 + d10 * (a - 1) + d11 * (b - 1))
        dnode[at + 2] = dnode[at + 2] + dw * m
      end
    end
  end
end

-- (E12) velocities of nodes, then walls and pins
local function grid(self)
  local node, dnode, free, height = self.node, self.dnode, self.free, self.height
  for i = 0, self.width - 1 do
    for j = 0, height - 1 do
      local at = 3 * (i * height + j)
      local m = node[at + 2]
      if m > 0 then
        for d = 0, 1 do
          local v = node[at + d] / m
          local dv = (dnode[at + d] - v * dnode[at + 2]) / m
          local index = d == 0 and i or j
          local stopped = index <= free[2 * d + 1] and v < 0 or index >= free[2 * d + 2] and v > 0
          if stopped or self.held[i * height + j] == 1 then v, dv = 0, 0 end
          node[at + d], dnode[at + d] = v, dv
        end
      end
    end
  end
end

-- (E13) nodes to particles
local function to_particles(self)
  local node, dnode, height, inverse, dt, n = self.node, self.dnode, self.height, 1 / self.dx, self.dt, self.n
  local f, df, c, dc = self.f, self.df, self.c, self.dc
  for p = 0, n - 1 do
    local i, ax, dax = place(self.x[2 * p], self.shift[2 * p], inverse, wx, dwx)
    local j, ay, day = place(self.x[2 * p + 1], self.shift[2 * p + 1], inverse, wy, dwy)
    for d = 0, 1 do
      local m0, dm0, mx, dmx, my, dmy = 0, 0, 0, 0, 0, 0
      for a = 0, 2 do
        for b = 0, 2 do
          local w, dw = wx[a] * wy[b], dwx[a] * wy[b] + wx[a] * dwy[b]
          local at = 3 * ((i + a) * height + j + b) + d
          local wv, dwv = w * node[at], dw * node[at] + w * dnode[at]
          m0, dm0 = m0 + wv, dm0 + dwv
          mx, dmx, my, dmy = mx + wv * (a - 1), dmx + dwv * (a - 1), my + wv * (b - 1), dmy + dwv * (b - 1)
        end
      end
      local row, scale = 4 * p + 2 * d, 4 * inverse
      self.v[2 * p + d], self.dv[2 * p + d] = m0, dm0
      c[row], c[row + 1] = scale * (mx + m0 * ax), scale * (my + m0 * ay)
      dc[row], dc[row + 1] = scale * (dmx + dm0 * ax + m0 * dax), scale * (dmy + dm0 * ay + m0 * day)
    end
    local f0, f1, f2, f3 = f[4 * p], f[4 * p + 1], f[4 * p + 2], f[4 * p + 3]
    local g0, g1, g2, g3 = df[4 * p], df[4 * p + 1], df[4 * p + 2], df[4 * p + 3]
    for d = 0, 1 do
      local row = 4 * p + 2 * d
      local a, b, da, db = c[row], c[row + 1], dc[row], dc[row + 1]
      f[row], f[row + 1] = f[row] + dt * (a * f0 + b * f2), f[row + 1] + dt * (a * f1 + b * f3)
      df[row] = df[row] + dt * (da * f0 + db * f2 + a * g0 + b * g2)
      df[row + 1] = df[row + 1] + dt * (da * f1 + db * f3 + a * g1 + b * g3)
      local at = 2 * p + d
      self.x[at], self.shift[at] = self.x[at] + dt * self.v[at], self.shift[at] + dt * self.dv[at]
    end
  end
end

---One step.
function Tangent:step()
  ffi.fill(self.node, ffi.sizeof(self.node))
  ffi.fill(self.dnode, ffi.sizeof(self.dnode))
  to_grid(self)
  grid(self)
  to_particles(self)
end

---Stress along y of a group in the material frame, and its derivative, from the next step on.
function Tangent:actuate(name, value, derivative)
  local group = self.robot:group(name)
  for k = 0, group.particle_count - 1 do
    self.stress[group.index[k]], self.dstress[group.index[k]] = value, derivative
  end
end

local LANES = 16              -- in which the engine sums

---Mass-weighted mean of positions and velocities of a group, {x, y, vx, vy}, and its derivative. Summed in the engine's
---order: where a loss is the difference of nearly equal numbers, another order would show.
---@return number[], number[]
function Tangent:mean(name)
  local group, sum, dsum, total = self.robot:group(name), { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, 0
  for lane = 0, LANES - 1 do
    local part, dpart, weight = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, 0
    for k = lane, group.particle_count - 1, LANES do
      local p = group.index[k]
      local m = self.mass[p]
      weight = weight + m
      for d = 1, 2 do
        local at = 2 * p + d - 1
        part[d], dpart[d] = part[d] + m * self.x[at], dpart[d] + m * self.shift[at]
        part[d + 2], dpart[d + 2] = part[d + 2] + m * self.v[at], dpart[d + 2] + m * self.dv[at]
      end
    end
    total = total + weight
    for k = 1, 4 do sum[k], dsum[k] = sum[k] + part[k], dsum[k] + dpart[k] end
  end
  for k = 1, 4 do sum[k], dsum[k] = sum[k] / total, dsum[k] / total end
  return sum, dsum
end

return tangent
