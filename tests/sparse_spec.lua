-- sparse: products with sparse matrices, their gradients, and the matrix of neighbours.
local cq = require "cq"
local T = require "cq.tensor"
local differences = require "tests.differences"
local spread = require "tests.spread"
local says = require("tests.sentence").refuses

-- entries in no order, two of them at one place, and an empty row
local function matrix(value)
  return cq.sparse { shape = { 4, 3 }, row = { 4, 1, 2, 1, 4 }, column = { 1, 3, 2, 1, 1 }, value = value
    or { 5, 2, -1, 0.5, 3 } }
end

describe("a sparse matrix", function()
  it("is what its entries say, those at one place added", function()
    assert.same({ { 0.5, 0, 2 }, { 0, -1, 0 }, { 0, 0, 0 }, { 8, 0, 0 } }, matrix():full():totable())
    assert.equal("cq.Sparse { 4 x 3, 5 elements }", tostring(matrix()))
  end)

  it("multiplies the last dimension of any tensor", function()
    local A, x = matrix(), spread({ 2, 5, 3 }, -1, 1)
    local wanted = x:matmul(A:full():transpose())
    assert.is_true(A:product(x):close(wanted, 1e-15))
    assert.is_true(A:product(x[1][2]):close(wanted[1][2], 1e-15))
  end)

  it("has gradients to what it multiplies and to its values", function()
    local value, x = spread({ 5 }, 0.5, 2), spread({ 2, 3 }, -1, 1)
    local err = differences.error(function(v, t) return matrix(v):product(t):square() end, { value, x })
    assert(err < 1e-9, err)
    err = differences.error(function(v, t) return matrix():with(v):product(t) end, { value, x })
    assert(err < 1e-9, err)
  end)

  it("says where its entries are", function()
    local row, column = matrix():places()
    assert.same({ { 1, 1, 2, 4, 4 }, { 3, 1, 2, 1, 1 } }, { row, column })
  end)

  -- symmetric, with a diagonal that is larger than the rest
  local function definite(value)
    local row, column = { 1, 2, 3, 1, 2, 2, 3 }, { 1, 2, 3, 2, 1, 3, 2 }
    return cq.sparse { shape = { 3, 3 }, row = row, column = column, value = value }
  end

  it("solves equations, with gradients to the right side and to the values", function()
    local value, b = T.tensor { 3, 4, 2, -1, -1, 0.5, 0.5 }, spread({ 2, 3 }, -1, 1)
    local A = definite(value)
    assert.is_true(A:product(A:solve(b)):close(b, 1e-14))
    assert.is_true(A:solve(T.zeros { 3 }):equal(T.zeros { 3 }))
    -- both entries of a pair move together, as they do where a matrix is made
    local err = differences.error(function(v, t)
      return definite(T.concat { v:slice(1, 4), v:slice(4, 5), v:slice(5, 5) }):solve(t)
    end, { value:slice(1, 5), b })
    assert(err < 1e-9, err)
  end)

  it("solves nothing that has no such solution", function()
    says(function() matrix():solve(T.ones { 3 }) end, "sparse:solve", "square, got 4 x 3")
    says(function() definite { 3, 4, 2, -1, -1, 0.5, 0.5 }:solve(T.ones { 2 }) end, "size 3", "got shape {2}")
    says(function() definite { 3, -4, 2, -1, -1, 0.5, 0.5 }:solve(T.ones { 3 }) end, "above 0, got -4 in row 2")
    says(function() definite { 1, 1, 1, 9, 9, 0, 0 }:solve(T.tensor { 1, -1, 0 }) end, "not positive definite")
  end)

  it("refuses what does not fit", function()
    says(function() matrix():product(T.ones { 4 }) end, "sparse:product", "size 3", "got shape {4}")
    says(function() cq.sparse { shape = { 2, 2 }, row = { 1, 3 }, column = { 1, 1 }, value = { 1, 1 } } end,
      "entry 2 is at (3, 1)", "2 x 2")
    says(function() cq.sparse { shape = { 2, 2 }, row = { 1, 2 }, column = { 1 }, value = { 1, 1 } } end,
      "one length, got 2, 1 and {2}")
    says(function() matrix():with(T.ones { 2 }) end, "shape {5}")
  end)
end)

describe("solving with a sparse matrix", function()
  it("is as right for large and for small right sides, and refuses what is not finite", function()
    local A = cq.sparse { shape = { 2, 2 }, row = { 1, 1, 2, 2 }, column = { 1, 2, 1, 2 }, value = { 2, 1, 1, 2 } }
    for _, size in ipairs { 1e160, 1, 3e-170, 1e-300 } do
      local x = A:solve(T { 3 * size, 0 })
      assert.near(2, x:get(1) / size, 1e-12)
      assert.near(-1, x:get(2) / size, 1e-12)
    end
    assert.same({ 0, 0 }, A:solve(T { 0, 0 }):totable())
    for word, wrong in pairs { inf = 1 / 0, nan = 0 / 0 } do
      says(function() A:solve(T { wrong, 1 }) end, "sparse:solve: the right side must be finite, got " .. word)
    end
    says(function() cq.sparse { shape = { 2 ^ 31 - 1, 2 ^ 31 - 1 }, row = { 1 }, column = { 1 }, value = { 1 } } end,
      "cq.sparse would take 32 GiB at least")
  end)
end)

describe("neighbours", function()
  -- all pairs, one by one
  local function by_hand(points, places, radius)
    local out = T.zeros { places:size(1), points:size(1) }
    for r = 1, places:size(1) do
      for p = 1, points:size(1) do
        local distance = (points[p] - places[r]):norm():item()
        if distance < radius then out:set(distance + 1, r, p) end
      end
    end
    return out
  end

  it("are all that are nearer than the radius, in one, two and three dimensions", function()
    for dim = 1, 3 do
      local random = cq.random { seed = dim }
      local points, places = random:uniform { 90, dim } * 2 - 5, random:uniform { 40, dim } * 3 - 5.5
      for _, radius in ipairs { 0.05, 0.31, 7 } do
        local found = cq.sparse.neighbours { points = points, places = places, radius = radius,
          weight = function(r) return r + 1 end }
        assert.is_true(found:full():close(by_hand(points, places, radius), 1e-14))
        found = cq.sparse.neighbours { points = points, radius = radius, weight = function(r) return r + 1 end }
        assert.is_true(found:full():close(by_hand(points, points, radius), 1e-14))
      end
    end
  end)

  it("give means when normalised", function()
    local points = (cq.random { seed = 4 }):uniform { 60, 2 }
    local mean = cq.sparse.neighbours { points = points, radius = 0.3, weight = function(r) return 0.3 - r end,
      normalised = true }
    assert.is_true(mean:product(T.full({ 60 }, 3)):close(T.full({ 60 }, 3), 1e-14))
    assert.is_true(mean.count > 120)
  end)

  it("are found where points lie far apart", function()
    local points = T.tensor { { 0, 0, 0 }, { 1e6, 1e6, 1e6 }, { 1e6, 1e6, 1e6 + 1e-3 } }
    assert.same({ { 1, 0, 0 }, { 0, 1, 1 }, { 0, 1, 1 } },
      cq.sparse.neighbours({ points = points, radius = 0.01 }):full():totable())
  end)

  it("refuse what has no neighbours", function()
    says(function() cq.sparse.neighbours { points = T.ones { 3, 4 }, radius = 1 } end,
      "points must be {n, 1 to 3}, got {3, 4}")
    says(function() cq.sparse.neighbours { points = T.ones { 3, 2 }, places = T.ones { 1, 3 }, radius = 1 } end,
      "places must be {n, 2}")
    says(function() cq.sparse.neighbours { points = T.zeros { 3, 2 } / 0, radius = 1 } end, "finite")
    says(function() cq.sparse.neighbours { points = T { { -1.7e308 }, { 1.7e308 } }, radius = 1 } end,
      "points are farther apart than the largest number")
    says(function()
      cq.sparse.neighbours { points = T.ones { 3, 2 }, places = T.zeros { 2, 2 }, radius = 1, normalised = true }
    end, "around place 1 add up to 0")
    says(function() cq.sparse.neighbours { points = T.ones { 3, 2 }, radius = 1, weight = function() return 1 end } end,
      "{9}")
  end)
end)
