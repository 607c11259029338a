-- sites: worlds of the engine with the pins elsewhere. The engine finds the nodes that pins of updated bodies hold when
-- a world is made; a rollout whose robot is stretched, so that pinned particles begin in other cells, runs in a world
-- that is made for them. All else is the same. Pins of total Lagrangian bodies are found at the start of each rollout,
-- in grids that stand where the bodies are in the world itself, whatever rollouts came before.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local field = require "cq.base.field"
local pool = require "cq.world.pool"
local C = engine.C

local Sites = {}
Sites.__index = Sites

local sites = {}

local KEPT_MAX = 2            -- that nobody uses: a length that is trained visits one after the other

---An empty list of engine worlds that differ from one world in the cells where its pinned particles begin.
---@param world cq.World
---@param raw ffi.cdata*      cq_world_def that it was made from; its arrays live with the world's layout
---@return table                the Sites
function sites.new(world, raw)
  local self = setmetatable({ raw = raw, dim = world.dim, dx = world.dx, list = {} }, Sites)
  -- what raw points to; not the world itself, whose finalizer holds this
  self.layout = world.layout
  self.home = self:key(world.layout.base.position)
  return self
end

-- The first stencil node of each pinned particle of updated bodies, by positions {n, dim} of all particles, as one
-- string, by which worlds are kept.
function Sites:key(position)
  local count, dim, body = 0, self.dim, self.layout.arrays.body
  local data, cells = position:data(), ffi.new("int32_t[?]", math.max(self.layout.pin_count * dim, 1))
  for k = 0, self.layout.pin_count - 1 do
    local p = self.layout.arrays.pins[k]
    if body[p] < 0 then
      for i = 0, dim - 1 do cells[count * dim + i] = math.floor(data[p * dim + i] / self.dx - 0.5) end
      count = count + 1
    end
  end
  return ffi.string(cells, count * dim * 4)
end

-- Makes a world of the engine with updated bodies at these positions {n, dim} of all particles, and total Lagrangian
-- ones where they are in the world itself. Returns its site { key, handle, pool }.
local function create(self, key, position)
  local raw, out = ffi.new("cq_world_def", self.raw), ffi.new "cq_world *[1]"
  local body, dim, home = self.layout.arrays.body, self.dim, self.layout.base.position:data()
  local places = position:copy()
  local data = places:data()
  for p = 0, tonumber(raw.particle_count) - 1 do
    for i = p * dim, body[p] < 0 and -1 or p * dim + dim - 1 do data[i] = home[i] end
  end
  raw.value[field.by_name.position.id] = data
  engine.check(C.cq_world_create(raw, out), "world:rollout")
  return { key = key, handle = out[0], pool = pool.new { handle = out[0] } }
end

-- Frees the oldest worlds with pins at other places, beyond KEPT_MAX, of which no rollout is used.
local function shrink(self)
  local spare = #self.list - KEPT_MAX
  if spare < 1 then return end
  collectgarbage()
  local kept = {}
  for _, site in ipairs(self.list) do
    local used = spare < 1
    for _, entry in ipairs(site.pool.entries) do used = used or entry.owner[1] ~= nil end
    if used then
      kept[#kept + 1] = site
    else
      site.pool:close()
      C.cq_world_destroy(site.handle)
      spare = spare - 1
    end
  end
  self.list = kept
end

---The pool of engine rollouts for particles that begin at these positions, with a world that is made on first use; nil
---where the pins begin in the same cells as in the world itself.
---@param position cq.Tensor     {n, dim}
---@return table? pool
function Sites:find(position)
  if self.layout.pin_count == 0 then return nil end
  local key = self:key(position)
  if key == self.home then return nil end
  for _, site in ipairs(self.list) do
    if site.key == key then return site.pool end
  end
  local site = create(self, key, position)
  self.list[#self.list + 1] = site
  shrink(self)
  return site.pool
end

---Destroys all worlds and rollouts of the sites, as the world closes.
function Sites:close()
  for _, site in ipairs(self.list) do
    site.pool:close()
    C.cq_world_destroy(site.handle)
  end
  self.list = {}
end

return sites
