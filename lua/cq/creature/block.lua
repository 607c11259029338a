-- block: creatures of equal blocks: walkers on legs of air chambers, arms of links, crawlers.
local is = require "cq.base.schema"
local body = require "cq.creature.body"

local block = {}

local COUNT = 8              -- particles along each side of a block, unless the user says it

local count_of, spacing_of = is.integer { min = 1, optional = true }, is.number { above = 0, optional = true }

-- A function block_of(part, at, size) that makes the blocks of a creature, cq.Shapes with the same number of particles
-- along a side, or the same spacing. part: the block's name; name: of the creature; def: its fields.
local function filler(name, def)
  local count, spacing = body.fineness(name, def, COUNT)
  return function(part, at, size) return body.block(part, at, size, count, spacing) end
end

-- ---- on legs --------------------------------------------------------------------------------------------------------

---@class cq.Creature.nped.def : cq.Creature.body.def
---@field legs? 4|6|8         4: under the corners; 6: and under the middle of both sides; 8: and under the middle of front and back
---@field count? integer      particles along each side of a block and of a chamber, 8 unless given; or spacing
---@field spacing? number      particles lie about so far apart; or count [length]
---@field body? integer[]      blocks along and across the body
---@field side? number        of a block of the body; a leg is as high [length]

local nped = body.define("nped", {
  legs = is.one_of { 4, 6, 8, default = 4 },
  count = count_of, spacing = spacing_of,
  body = is.vector { size = 2, integer = true, min = 2, max = 1000, default = { 3, 3 } },
  side = is.number { above = 0, default = 0.1 },
})

-- A list { name, x, z } of the blocks of a body, counted from 0, under which its legs stand. along, across: blocks of
-- the body.
local function places_of(legs, along, across)
  local x, z, out = { back = 0, middle = (along - 1) / 2, fore = along - 1 },
    { left = 0, middle = (across - 1) / 2, right = across - 1 }, {}
  -- Adds a foot by its row along the body and its side: the name row.side, and where it is.
  local function add(i, k) out[#out + 1] = { name = i .. "." .. k, x = x[i], z = z[k] } end
  for _, k in ipairs { "left", "right" } do
    add("back", k)
    if legs > 4 then add("middle", k) end
    add("fore", k)
  end
  if legs == 8 then
    add("back", "middle")
    add("fore", "middle")
  end
  return out
end

-- Adds a leg of four air chambers, in two rows, under the body: appends their shapes and names, and the leg's group.
-- place: an entry of places_of, with side: of a block [length]; block_of: the function of filler.
local function add_leg(shapes, chambers, groups, place, block_of)
  local side, half = place.side, place.side / 2
  groups[place.name] = {}
  for i = 0, 1 do
    for k = 0, 1 do
      local name = ("%s.%d"):format(place.name, 2 * i + k + 1)
      shapes[#shapes + 1] = block_of(name, { place.x * side + i * half, 0, place.z * side + k * half },
        { half, side, half })
      chambers[#chambers + 1] = name
      table.insert(groups[place.name], name)
    end
  end
end

---A walker on 4, 6 or 8 legs (Advanced soft robot modeling in ChainQueen, Robotica 2021, fig. 12 to 14): a flat
---body of blocks, and in each leg 2 x 2 air chambers that stretch and contract along its height: 16, 24 or 32
---signals. Groups: the legs, "fore.left" for instance, with their chambers "fore.left.1" to 4 (back left, back
---right, fore left, fore right), "body", and each of its blocks, "body.1.1" at the back left. With 15 particles
---along each side there are 84,375, 111,375 or 138,375. body = { 5, 3 }, side = 0.2, legs = 6 and 8 particles are
---the runner of ChainQueen (ICRA 2019).
---Errors: six or eight legs under a body without a middle.
---@param fields? cq.Creature.nped.def
---@return cq.Robot
function block.nped(fields)
  local def = nped(fields or {})
  local along, across, side = def.body[1], def.body[2], def.side
  if def.legs > 4 and along % 2 == 0 or def.legs == 8 and across % 2 == 0 then
    is.fail("cq.Creature.nped: %d legs need a block in the middle of the body, so that %s must be odd, got body = { %d, %d }", def.legs,
      def.legs == 8 and "both its numbers" or "its first number", along, across)
  end
  local shapes, chambers, groups, block_of = {}, {}, { body = {} }, filler("nped", def)
  for _, place in ipairs(places_of(def.legs, along, across)) do
    place.side = side
    add_leg(shapes, chambers, groups, place, block_of)
  end
  for i = 1, along do
    for k = 1, across do
      local name = ("body.%d.%d"):format(i, k)
      shapes[#shapes + 1] = block_of(name, { (i - 1) * side, side, (k - 1) * side }, { side, side, side })
      table.insert(groups.body, name)
    end
  end
  return body.make("nped", def, { shape = shapes, actuators = body.pressure(def, chambers), groups = groups })
end

-- ---- arms -----------------------------------------------------------------------------------------------------------

---@class cq.Creature.arm.def : cq.Creature.body.def
---@field links? integer       each of air chambers and a stiff block at their end
---@field dim? 2|3             3: four chambers in a link; 2: two
---@field count? integer       particles along each side of a block and of a chamber, 8 unless given; or spacing
---@field spacing? number       particles lie about so far apart; or count [length]
---@field width? number        of the arm [length]
---@field chamber? number      length of the chambers of a link [length]
---@field block? number        length of the block at the end of a link [length]
---@field hanging? boolean     down from its root, which is held; else it stands on it
---@field root? number         length that is held, and with it every node that it touches [length]

local arm = body.define("arm", {
  links = is.integer { min = 1, max = 1000, default = 2 },
  dim = is.one_of { 2, 3, default = 3 },
  count = count_of, spacing = spacing_of,
  width = is.number { above = 0, default = 0.2 }, chamber = is.number { above = 0, default = 0.2 },
  block = is.number { above = 0, default = 0.1 },
  hanging = is.boolean { default = false },
  root = is.number { above = 0, default = 0.05 },
})

---An arm of links (ChainQueen, ICRA 2019, in the plane; Advanced soft robot modeling in ChainQueen, Robotica 2021, fig.
---10, in space): in each link two chambers side by side, or 2 x 2 in space, then a block. Signals are those of the
---chambers from the root on. Groups: "link.1" with its chambers "link.1.chamber.1" and so on, and its block
---"link.1.block"; "hand", the last block; "root", which is pinned. Two links in space with 12 particles along each side
---have 17,280; in the plane with 14, 1,176. Errors: a root as long as a chamber.
---@param fields? cq.Creature.arm.def
---@return cq.Robot
function block.arm(fields)
  local def = arm(fields or {})
  local link, half, shapes, chambers, groups = def.chamber + def.block, def.width / 2, {}, {}, {}
  local total, block_of = def.links * link, filler("arm", def)
  if def.root >= def.chamber then
    is.fail("cq.Creature.arm: root must be less than the length of a chamber, %g, or nothing of it can bend, got %g",
      def.chamber, def.root)
  end
  -- Adds a part of the arm, `length` long, that begins at the length `from` behind the root: chamber i, k, from 0, of
  -- those side by side; a block as wide as the arm if i is nil.
  local function add(name, from, length, i, k)
    local y = def.hanging and total - from - length or from
    local w = i and half or def.width
    local at, size = { (i or 0) * half, y, (k or 0) * half }, { w, length, w }
    if def.dim == 2 then at[3], size[3] = nil, nil end
    shapes[#shapes + 1] = block_of(name, at, size)
  end
  for n = 1, def.links do
    local prefix, from = ("link.%d"):format(n), (n - 1) * link
    groups[prefix] = { prefix .. ".block" }
    for i = 0, 1 do
      for k = 0, def.dim - 2 do
        local name = ("%s.chamber.%d"):format(prefix, i * (def.dim - 1) + k + 1)
        add(name, from, def.chamber, i, k)
        chambers[#chambers + 1] = name
        table.insert(groups[prefix], name)
      end
    end
    add(prefix .. ".block", from + def.chamber, def.block)
  end
  body.require_root("arm", def.root, shapes[1], def.hanging)
  groups.hand = ("link.%d.block"):format(def.links)
  groups.root = def.hanging and function(_, y) return y > total - def.root end or function(_, y) return y < def.root end
  return body.make("arm", def, { shape = shapes, actuators = body.pressure(def, chambers), groups = groups,
    pins = "root" })
end

-- ---- on its belly ---------------------------------------------------------------------------------------------------

---@class cq.Creature.crawler.def : cq.Creature.body.def
---@field count? integer       particles along each side of a block and of a chamber, 8 unless given; or spacing
---@field spacing? number       particles lie about so far apart; or count [length]

local crawler = body.define("crawler", { count = count_of, spacing = spacing_of })

local BODY, CHAMBER = { 0.2, 0.16, 0.2 }, { 0.1, 0.07, 0.2 }

-- Adds the four chambers, in two layers, of a leg at the body's side: appends their shapes and names, and the leg's
-- group. at: the leg's lower back corner; block_of: the function of filler.
local function add_side_leg(shapes, chambers, groups, name, at, block_of)
  groups[name] = {}
  for i = 0, 1 do
    for j = 0, 1 do
      local chamber = ("%s.%d"):format(name, 2 * i + j + 1)
      shapes[#shapes + 1] = block_of(chamber, { at[1] + i * CHAMBER[1], at[2] + j * CHAMBER[2], at[3] }, CHAMBER)
      chambers[#chambers + 1] = chamber
      table.insert(groups[name], chamber)
    end
  end
end

---A crawler (ChainQueen, ICRA 2019, in its public release): three blocks in a row, and on each side of the first and
---the last a leg of 2 x 2 chambers in two layers, which stretch and contract across the body, along z. 16 signals. The
---release's table of places is not printed: here the chambers of a leg lie side by side, so that they bend it forward
---and up. Groups: "body" and its blocks "body.1" to 3 from the back on; the legs, "back.left", "fore.left",
---"back.right", "fore.right", with their chambers "back.left.1" to 4 (back low, back high, fore low, fore high).
---@param fields? cq.Creature.crawler.def
---@return cq.Robot
function block.crawler(fields)
  local def = crawler(fields or {})
  local shapes, chambers, groups, block_of = {}, {}, { body = {} }, filler("crawler", def)
  for n = 1, 3 do
    shapes[n] = block_of(("body.%d"):format(n), { (n - 1) * BODY[1], 0, CHAMBER[3] }, BODY)
    groups.body[n] = "body." .. n
  end
  local bottom = (BODY[2] - 2 * CHAMBER[2]) / 2
  for _, side in ipairs { { "left", 0 }, { "right", CHAMBER[3] + BODY[3] } } do
    for _, place in ipairs { { "back", 0 }, { "fore", 2 * BODY[1] } } do
      add_side_leg(shapes, chambers, groups, place[1] .. "." .. side[1], { place[2], bottom, side[2] }, block_of)
    end
  end
  return body.make("crawler", def, {
    shape = shapes, actuators = body.pressure(def, chambers, "z"), groups = groups,
  })
end

return block
