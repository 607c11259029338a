-- symmetry: bodies that are their own mirror image, or look the same after a turn, to the last digit.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local sparse = require "cq.sparse"

local NEAR = 1e-3             -- spacings that an image may be off

local axes = { x = 1, y = 2, z = 3 }
local spec = is.define("cq.Topology: design symmetry", {
  axis = is.one_of { "x", "y", "z" }, at = is.number { optional = true },
  order = is.one_of { 2, 4, optional = true },
  signals = is.list(is.integer { min = 1 }, { optional = true }),
})

-- The middle of the points {n, dim} along axis d.
local function middle_of(points, d) return 0.5 * (points:min(1):get(d) + points:max(1):get(d)) end

-- A copy of the points {n, dim}, without gradient, mirrored at the plane x_d = at.
local function mirrored(points, d, at)
  local out = points:detach():copy()
  local x, dim = out:data(), points:size(2)
  for p = 0, points:size(1) - 1 do x[p * dim + d - 1] = 2 * at - x[p * dim + d - 1] end
  return out
end

-- A copy of the points {n, dim}, without gradient, turned by a quarter about axis d through their middle: from x to y
-- about z, from y to z about x, from z to x about y.
local function turned(points, d)
  local out = points:detach():copy()
  local x, dim, first, second = out:data(), points:size(2), d % 3 + 1, (d + 1) % 3 + 1
  local a, b = middle_of(points, first), middle_of(points, second)
  for p = 0, points:size(1) - 1 do
    local i, j = p * dim + first - 1, p * dim + second - 1
    x[i], x[j] = a - (x[j] - b), b + (x[i] - a)
  end
  return out
end

-- For each particle of the block, a list: the number of the particle that lies at its image. image {n, dim}: the
-- mirrored or turned place of each. If a particle has none there: nil, and its number.
local function partners(design, image)
  local found = sparse.neighbours { points = design.robot.position, places = image, radius = NEAR * design.spacing }
  local row, column = found:places()
  local out = {}
  for e, p in ipairs(row) do out[p] = column[e] end
  for p = 1, image:size(1) do
    if not out[p] then return nil, p end
  end
  return out
end

-- A permutation of signals applied twice: list k to map[map[k]].
local function again(map)
  local out = {}
  for k = 1, #map do out[k] = map[map[k]] end
  return out
end

-- A list, for each signal and for "none" after them, of the one that it becomes in the image of the body. given: the
-- user's list. Errors: a permutation that `order` images do not bring back to itself.
local function exchange(design, given, order)
  local count, out = design.signals, {}
  for k = 1, count do out[k] = given[k] or k end
  local fine = #given == count
  for k = 1, count do fine = fine and out[k] <= count end
  local last = fine and again(out)
  if last and order == 4 then last = again(last) end
  for k = 1, count do fine = fine and last[k] == k end
  if not fine then
    is.fail("cq.Topology: symmetry.signals names for each of the %d signals the one that its image follows, as { %s }, got { %s }",
      count, order == 4 and count > 3 and "2, 3, 4, 1, ..." or count == 2 and "2, 1" or "2, 1, 3, ...",
      table.concat(given, ", "))
  end
  out[count + 1] = count + 1
  return out
end

-- A field {n}, or {signals + 1, n}, that equals its image: the mean of x and its image. mirror: { partner, signals }. A
-- sum of two numbers is the same in either order, so both have the same bits.
local function fold(mirror, x)
  local image = x:gather(mirror.partner, -1)
  if x.rank == 2 and mirror.signals then image = image:gather(mirror.signals, 1) end
  return (x + image) * 0.5
end

-- The mirror image of the block across axis d: { partner: for each particle, from partners; signals: from exchange, nil
-- if none change; axis; words: for the signature }. def: one checked symmetry. Errors: the block is not its own mirror
-- image.
local function mirror_of(design, def, d)
  if d > design.robot.dim then is.fail("cq.Topology: symmetry over %s needs a block in space", def.axis) end
  local at = def.at or middle_of(design.robot.position, d)
  local partner, lost = partners(design, mirrored(design.robot.position, d, at))
  if not partner then
    is.fail("cq.Topology: symmetry needs a block that is its own mirror image over %s = %s: particle %d has none",
      def.axis, text.number(at), lost)
  end
  return { partner = partner, signals = def.signals and exchange(design, def.signals, 2), axis = def.axis,
    words = def.axis .. (def.signals and " " .. table.concat(def.signals, " ") or "") }
end

-- The images of a block that looks the same after half a turn (def.order 2) or a quarter (4: half a turn first, then a
-- quarter, so that each sum is of two numbers only). Returns a list of { partner, signals }, and words on it. Errors:
-- the block does not look the same.
local function turns_of(design, def, d)
  if d ~= 3 and design.robot.dim == 2 then
    is.fail("cq.Topology: a block in the plane turns about z alone, got symmetry.axis = %q with an order", def.axis)
  end
  if def.at then is.fail("cq.Topology: symmetry.at is of mirrors; with an order a block turns about its middle") end
  local quarter = turned(design.robot.position, d)
  local half, lost = partners(design, turned(quarter, d))
  local partner = half
  if def.order == 4 and half then partner, lost = partners(design, quarter) end
  if not partner then
    is.fail("cq.Topology: symmetry needs a block that is the same after a turn by %d degrees about %s: particle %d has no image",
      360 / def.order, def.axis, lost)
  end
  local signals = def.signals and exchange(design, def.signals, def.order)
  local words = ("%s by %d%s"):format(def.axis, def.order,
    def.signals and " " .. table.concat(def.signals, " ") or "")
  local turns = { { partner = half, signals = signals and def.order == 4 and again(signals) or signals } }
  if def.order == 4 then turns[2] = { partner = partner, signals = signals } end
  return turns, words
end

-- Raises an error if the images of two mirrors depend on the order in which they are applied.
local function check_pair(a, b)
  if a.axis == b.axis then is.fail("cq.Topology: symmetry over %s is given twice", a.axis) end
  for k in ipairs(a.signals and b.signals or {}) do
    if a.signals[b.signals[k]] ~= b.signals[a.signals[k]] then
      is.fail("cq.Topology: symmetry.signals over %s and over %s must give the same in either order", a.axis, b.axis)
    end
  end
end

-- Raises an error if the solid region is not its own image. how: the image in words.
local function check_mask(design, images, how)
  for _, image in ipairs(images) do
    if design.mask and not design.mask:gather(image.partner, 1):equal(design.mask) then
      is.fail("cq.Topology: the particles that are solid must be their own %s", how)
    end
  end
end

---The function fold(x) that makes filtered fields {n} or {signals + 1, n} of a design symmetric, the symmetry in words,
---and the lists of partners of each of its images; nil without a symmetry. given: the design's field `symmetry`.
---@param design cq.Topology
---@param given table?
---@return (fun(x: cq.Tensor): cq.Tensor)? fold, string? words, integer[][]? images    of each particle, by all that fold does
return function(design, given)
  if not given then return nil end
  local images, words, list = {}, {}, given[1] and given or { given }
  for k, one in ipairs(list) do
    local def = spec(one)
    local d = axes[def.axis]
    if def.order then
      if #list > 1 then is.fail("cq.Topology: a symmetry with an order stands alone, without mirrors or others") end
      images, words[1] = turns_of(design, def, d)
      check_mask(design, images, "image after a turn about " .. def.axis)
    else
      images[k] = mirror_of(design, def, d)
      words[k] = images[k].words
      check_mask(design, { images[k] }, "mirror image over " .. def.axis)
      for j = 1, k - 1 do check_pair(images[j], images[k]) end
    end
  end
  local partner = {}
  for k, image in ipairs(images) do partner[k] = image.partner end
  return function(x)
    for _, image in ipairs(images) do x = fold(image, x) end
    return x
  end, table.concat(words, ", "), partner
end
