-- symmetry: bodies that are their own mirror image, to the last digit.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local sparse = require "cq.sparse"

local NEAR = 1e-3             -- spacings that an image may be off

local axes = { x = 1, y = 2, z = 3 }
local spec = is.define("cq.Topology: design symmetry", {
  axis = is.one_of { "x", "y", "z" }, at = is.number { optional = true },
  signals = is.list(is.integer { min = 1 }, { optional = true }),
})

local function image_of(points, d, at)
  local out = points:detach():copy()
  local x, dim = out:data(), points:size(2)
  for p = 0, points:size(1) - 1 do x[p * dim + d - 1] = 2 * at - x[p * dim + d - 1] end
  return out
end

-- number of the particle at the image of each
local function partners(design, d, def)
  local points = design.robot.position
  local at = def.at or 0.5 * (points:min(1):get(d) + points:max(1):get(d))
  local found = sparse.neighbours { points = points, places = image_of(points, d, at), radius = NEAR * design.spacing }
  local row, column = found:places()
  local out = {}
  for e, p in ipairs(row) do out[p] = column[e] end
  for p = 1, points:size(1) do
    if not out[p] then
      is.fail("cq.Topology: symmetry needs a block that is its own mirror image over %s = %s: particle %d has none",
        def.axis, text.number(at), p)
    end
  end
  return out
end

-- the signal that each one, and none, becomes in the image
local function exchange(design, def)
  local given, count = def.signals, design.signals
  local out = {}
  for k = 1, count do out[k] = given[k] or k end
  local fine = #given == count
  for k = 1, count do fine = fine and out[k] <= count and out[out[k]] == k end
  if not fine then
    is.fail("cq.Topology: symmetry.signals names for each of the %d signals the one that its image follows, as { %s }, got { %s }",
      count, count == 2 and "2, 1" or "2, 1, 3, ...", table.concat(given, ", "))
  end
  out[count + 1] = count + 1
  return out
end

-- {n}, or {signals + 1, n}, made equal to its image; sums of two numbers are the same in either order
local function fold(mirror, x)
  local image = x:gather(mirror.partner, -1)
  if x.rank == 2 and mirror.signals then image = image:gather(mirror.signals, 1) end
  return (x + image) * 0.5
end

local function one_of(design, given)
  local def = spec(given)
  local d = axes[def.axis]
  if d > design.robot.dim then is.fail("cq.Topology: symmetry over %s needs a block in space", def.axis) end
  local signals = def.signals and exchange(design, def)
  return { partner = partners(design, d, def), signals = signals, axis = def.axis,
    words = def.axis .. (signals and " " .. table.concat(signals, " ") or "") }
end

-- two mirrors of a body, which must give the same in either order
local function check_pair(a, b)
  if a.axis == b.axis then is.fail("cq.Topology: symmetry over %s is given twice", a.axis) end
  for k in ipairs(a.signals and b.signals or {}) do
    if a.signals[b.signals[k]] ~= b.signals[a.signals[k]] then
      is.fail("cq.Topology: symmetry.signals over %s and over %s must give the same in either order", a.axis, b.axis)
    end
  end
end

---What makes fields of a design symmetric, after the filter; nil: nothing.
---@param design cq.Topology
---@param given table?
---@return (fun(x: cq.Tensor): cq.Tensor)? fold, string? words
return function(design, given)
  if not given then return nil end
  local mirrors, words = {}, {}
  for k, one in ipairs(given[1] and given or { given }) do
    mirrors[k] = one_of(design, one)
    words[k] = mirrors[k].words
    for j = 1, k - 1 do check_pair(mirrors[j], mirrors[k]) end
  end
  if design.mask then
    for _, mirror in ipairs(mirrors) do
      if not design.mask:gather(mirror.partner, 1):equal(design.mask) then
        is.fail("cq.Topology: the particles that are solid must be their own mirror image over %s", mirror.axis)
      end
    end
  end
  return function(x)
    for _, mirror in ipairs(mirrors) do x = fold(mirror, x) end
    return x
  end, table.concat(words, ", ")
end
