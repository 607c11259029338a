-- cell: what part of the plane each particle fills, from where it lies at rest. A lattice may be finer along one axis than along
-- the other; particles that lie on none fill a square.
local ffi = require "ffi"

local cell = {}

local REACH = 2.2          -- [square root of the volume] how far neighbours are looked for
local OFF_AXIS = 0.3       -- a neighbour along x has a y that differs less than this
local AGREE = 0.15         -- width times height may differ from the volume by this share, else the particle is on no lattice

-- particles by square bins, as linked lists
local function bins(x, n, size)
  local head, next_one = {}, ffi.new("int32_t[?]", n)
  for p = 0, n - 1 do
    local key = math.floor(x[2 * p] / size) * 1048576 + math.floor(x[2 * p + 1] / size)
    next_one[p] = head[key] or -1
    head[key] = p
  end
  return head, next_one
end

---Edges of the cells of n particles: volume^(1/2) along both axes, or the lattice's.
---@param x ffi.cdata*           double[2 n] at rest
---@param spacing ffi.cdata*     double[n] square roots of the volumes
---@return ffi.cdata*            double[2 n]
function cell.edges(x, n, spacing)
  local largest = 0
  for p = 0, n - 1 do largest = math.max(largest, spacing[p]) end
  local size = REACH * largest
  local head, next_one = bins(x, n, size)
  local out = ffi.new("double[?]", 2 * n)
  for p = 0, n - 1 do
    local h, px, py = spacing[p], x[2 * p], x[2 * p + 1]
    local i, j, wide, tall = math.floor(px / size), math.floor(py / size), math.huge, math.huge
    for bx = i - 1, i + 1 do
      for by = j - 1, j + 1 do
        local q = head[bx * 1048576 + by] or -1
        while q >= 0 do
          local dx, dy = math.abs(x[2 * q] - px), math.abs(x[2 * q + 1] - py)
          if q ~= p then
            if dy < OFF_AXIS * h and dx > OFF_AXIS * h then wide = math.min(wide, dx) end
            if dx < OFF_AXIS * h and dy > OFF_AXIS * h then tall = math.min(tall, dy) end
          end
          q = next_one[q]
        end
      end
    end
    local lattice = math.abs(wide * tall / (h * h) - 1) < AGREE
    out[2 * p], out[2 * p + 1] = lattice and wide or h, lattice and tall or h
  end
  return out
end

return cell
