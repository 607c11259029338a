-- cma: CMA-ES, the evolution strategy with a covariance matrix that adapts (Hansen, The CMA evolution strategy: a
-- tutorial, arXiv 1604.00772, with its default constants). It works in the unit cube; points outside are drawn again.
local symmetric = require "cq.tensor.symmetric"

local Cma = {}
Cma.__index = Cma

local SIGMA = 0.3            -- first step size, of a cube of side 1
local ATTEMPTS = 100         -- draws of a point outside of the cube, before it is moved to its side

-- Sets in self the weights of the better half of a generation, the learning rates that follow from them (c_sigma, c_c,
-- c_1, c_mu, d_sigma), and the mean length of a standard normal vector (chi).
local function constants(self)
  local n, size = self.n, self.size
  local half = math.floor(size / 2)
  local weights, sum, squares = {}, 0, 0
  for i = 1, half do
    weights[i] = math.log((size + 1) / 2) - math.log(i)
    sum = sum + weights[i]
  end
  for i = 1, half do
    weights[i] = weights[i] / sum
    squares = squares + weights[i] * weights[i]
  end
  local mu = 1 / squares
  self.weights, self.mu = weights, mu
  self.c_sigma = (mu + 2) / (n + mu + 5)
  self.d_sigma = 1 + 2 * math.max(0, math.sqrt((mu - 1) / (n + 1)) - 1) + self.c_sigma
  self.c_c = (4 + mu / n) / (n + 4 + 2 * mu / n)
  self.c_1 = 2 / ((n + 1.3) * (n + 1.3) + mu)
  self.c_mu = math.min(1 - self.c_1, 2 * (mu - 2 + 1 / mu) / ((n + 2) * (n + 2) + mu))
  self.chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))       -- the mean length of a standard normal vector
end

-- The identity matrix of n rows, as nested lists.
local function identity(n)
  local out = {}
  for i = 1, n do
    out[i] = {}
    for j = 1, n do out[i][j] = i == j and 1 or 0 end
  end
  return out
end

-- A list of n zeros.
local function zeros(n)
  local out = {}
  for i = 1, n do out[i] = 0 end
  return out
end

---CMA-ES in the unit cube: its mean at the centre, its covariance the identity.
---@param n integer           dimensions
---@param size? integer       points of a generation
---@return table                the Cma
function Cma.new(n, size)
  local self = setmetatable({ n = n, size = size or Cma.population(n), sigma = SIGMA, generation = 0 }, Cma)
  self.mean, self.path_sigma, self.path_c = zeros(n), zeros(n), zeros(n)
  for i = 1, n do self.mean[i] = 0.5 end
  self.covariance, self.basis, self.axes = identity(n), identity(n), zeros(n)
  for i = 1, n do self.axes[i] = 1 end
  constants(self)
  return self
end

---The usual number of points of a generation in n dimensions.
---@return integer
function Cma.population(n) return 4 + math.floor(3 * math.log(n)) end

-- Computes the eigenvectors B (self.basis) and the square roots of the eigenvalues (self.axes) of the covariance
-- matrix: C = B diag(axes^2) B^T.
local function decompose(self)
  local values, basis = symmetric.eigen(self.covariance)
  self.basis = basis
  for i = 1, self.n do self.axes[i] = math.sqrt(math.max(values[i], 1e-30)) end
end

-- Draws a point of the distribution, a list {n}: mean + sigma B D z, with z standard normal.
local function draw(self, random)
  local n, z, x = self.n, {}, {}
  for i = 1, n do z[i] = self.axes[i] * random:normal() end
  for i = 1, n do
    local y = 0
    for j = 1, n do y = y + self.basis[i][j] * z[j] end
    x[i] = self.mean[i] + self.sigma * y
  end
  return x
end

---Draws a point of this generation inside the unit cube; after ATTEMPTS draws outside it, the last one is moved to the
---cube's side.
---@param random table        a stream of its own for each point
---@return number[]           in [0, 1)
function Cma:ask(random)
  local x
  for _ = 1, ATTEMPTS do
    x = draw(self, random)
    local inside = true
    for _, u in ipairs(x) do inside = inside and u >= 0 and u < 1 end
    if inside then return x end
  end
  for i, u in ipairs(x) do x[i] = math.max(0, math.min(u, 1 - 2 ^ -53)) end
  return x
end

-- Updates the step size (self.sigma, self.path_sigma) after a generation whose mean moved by sigma step: p_sigma <-
-- (1 - c) p_sigma + sqrt(c (2 - c) mu) C^-1/2 step; sigma grows, to 1 at most, where this path is longer than that of
-- random steps. Returns whether the path is short enough for the covariance to follow it.
local function adapt_sigma(self, step)
  local n, c = self.n, self.c_sigma
  local factor, length = math.sqrt(c * (2 - c) * self.mu), 0
  local inner = {}
  for j = 1, n do
    local sum = 0
    for i = 1, n do sum = sum + self.basis[i][j] * step[i] end
    inner[j] = sum / self.axes[j]
  end
  for i = 1, n do
    local sum = 0
    for j = 1, n do sum = sum + self.basis[i][j] * inner[j] end
    self.path_sigma[i] = (1 - c) * self.path_sigma[i] + factor * sum
    length = length + self.path_sigma[i] * self.path_sigma[i]
  end
  length = math.sqrt(length)
  self.sigma = math.min(self.sigma * math.exp(c / self.d_sigma * (length / self.chi - 1)), 1)
  return length / math.sqrt(1 - (1 - c) ^ (2 * self.generation)) < (1.4 + 2 / (n + 1)) * self.chi
end

-- Updates the covariance (self.covariance, self.path_c) after a generation: rank one by the path of the mean, rank mu
-- by the steps of the better half. steps, step: of the better points and of the mean, in units of sigma; moves: what
-- adapt_sigma returned.
local function adapt_covariance(self, steps, step, moves)
  local n, c_c, c_1, c_mu = self.n, self.c_c, self.c_1, self.c_mu
  local factor = moves and math.sqrt(c_c * (2 - c_c) * self.mu) or 0
  for i = 1, n do self.path_c[i] = (1 - c_c) * self.path_c[i] + factor * step[i] end
  local lost = moves and 0 or c_c * (2 - c_c)
  for i = 1, n do
    for j = 1, n do
      local rank_mu = 0
      for k, w in ipairs(self.weights) do rank_mu = rank_mu + w * steps[k][i] * steps[k][j] end
      self.covariance[i][j] = (1 - c_1 - c_mu + c_1 * lost) * self.covariance[i][j]
        + c_1 * self.path_c[i] * self.path_c[j] + c_mu * rank_mu
    end
  end
end

---Goes to the next generation: moves the mean, and updates step size and covariance.
---@param points number[][]    of this one
---@param values number[]      the less the better; infinite where a trial failed
function Cma:tell(points, values)
  local n, order = self.n, {}
  for k = 1, #points do order[k] = k end
  table.sort(order, function(a, b)
    if values[a] == values[b] then return a < b end
    return values[a] < values[b]
  end)
  local steps, step = {}, zeros(n)
  for k, w in ipairs(self.weights) do
    steps[k] = {}
    for i = 1, n do
      steps[k][i] = (points[order[k]][i] - self.mean[i]) / self.sigma
      step[i] = step[i] + w * steps[k][i]
    end
  end
  self.generation = self.generation + 1
  for i = 1, n do self.mean[i] = self.mean[i] + self.sigma * step[i] end
  local moves = adapt_sigma(self, step)
  adapt_covariance(self, steps, step, moves)
  decompose(self)
end

return Cma
