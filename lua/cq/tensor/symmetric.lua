-- symmetric: eigenvalues and eigenvectors of small symmetric matrices, lists of rows, by Jacobi's rotations.
local symmetric = {}

local SWEEPS = 50
local TOLERANCE = 1e-28      -- squares beside the diagonal, of all squares

-- One Jacobi rotation, in place, that makes a[p][q] of a symmetric matrix zero; v, a matrix, is multiplied by the
-- rotation.
local function rotate(a, v, p, q)
  if a[p][q] == 0 then return end
  local n = #a
  local theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
  local t = (theta >= 0 and 1 or -1) / (math.abs(theta) + math.sqrt(theta * theta + 1))
  local c = 1 / math.sqrt(t * t + 1)
  local s = t * c
  for k = 1, n do
    a[k][p], a[k][q] = c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]
  end
  for k = 1, n do
    a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]
    v[k][p], v[k][q] = c * v[k][p] - s * v[k][q], s * v[k][p] + c * v[k][q]
  end
end

-- Is a matrix diagonal, but for rounding?
local function is_diagonal(a)
  local off, all = 0, 0
  for i, row in ipairs(a) do
    for j, value in ipairs(row) do
      all = all + value * value
      if i ~= j then off = off + value * value end
    end
  end
  return off <= TOLERANCE * all
end

---The eigenvalues of a symmetric matrix, in no order, and its eigenvectors, the columns of a second matrix, in the
---order of the values.
---@param matrix number[][]    symmetric; unchanged
---@return number[] values
---@return number[][] vectors
function symmetric.eigen(matrix)
  local a, v, values = {}, {}, {}
  for i, row in ipairs(matrix) do
    a[i], v[i] = { unpack(row) }, {}
    for j = 1, #matrix do v[i][j] = i == j and 1 or 0 end
  end
  for _ = 1, SWEEPS do
    if is_diagonal(a) then break end
    for p = 1, #a - 1 do
      for q = p + 1, #a do rotate(a, v, p, q) end
    end
  end
  for i = 1, #a do values[i] = a[i][i] end
  return values, v
end

return symmetric
