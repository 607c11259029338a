-- body: the particles that are drawn as one: the surface that they carry along, or each alone.
local ffi = require "ffi"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"

local C, check = engine.C, engine.check

local HATCH = 0x2B3440D0

local Body = {}
Body.__index = Body

local body = {}

---@class cq.Picture.body.def
---@field first? integer       number of its first particle
---@field count? integer       of its particles; all from the first one on unless given
---@field loose? boolean|integer[]   its particles are drawn each alone, as those of a liquid: all, or these numbers of the body, from 1
---@field mesh? ffi.cdata*     double[9 triangles]: its surface in 3D, where its particles are at rest
---@field rest? cq.Tensor      {count, dim} where they are so, unless it is the scene's rest
---@field triangles? integer   of the mesh

local spec = is.define("cq.Picture body", {
  first = is.integer { min = 1, default = 1 }, count = is.integer { min = 1, optional = true },
  loose = is.any_of { is.boolean(), is.list(is.integer { min = 1 }), default = false },
  mesh = is.any { optional = true }, triangles = is.integer { min = 1, optional = true },
  rest = is.tensor { optional = true },
})

-- uint8_t[count] with 1 for each particle that is to be drawn alone, 0 for the others; nil for none. given: a list of
-- their numbers, true for all, or false for none. Errors: a number beyond count.
local function loose_ones(given, count)
  if given == false then return nil end
  local out = ffi.new("uint8_t[?]", count)
  if given == true then ffi.fill(out, count, 1) end
  for k, p in ipairs(given ~= true and given or {}) do
    if p > count then is.fail("cq.Picture: loose[%d] of a body is particle %d, it has %d", k, p, count) end
    out[p - 1] = 1
  end
  return out
end

-- A list of the definitions of a scene's bodies, each with its first particle and count; one of all n particles where
-- none is given. Errors: they overlap, or go beyond n.
local function ranges(given, n)
  local out, taken = {}, 0
  for k, entry in ipairs(#given > 0 and given or { {} }) do
    local def = spec(entry)
    def.count = def.count or n - def.first + 1
    if def.first - 1 < taken or def.first - 1 + def.count > n then
      is.fail("cq.Picture: bodies[%d] has the particles %d to %d; they follow those of the body before it, and there are %d", k, def.first,
        def.first - 1 + def.count, n)
    end
    taken, out[k] = def.first - 1 + def.count, def
  end
  return out
end

---Makes the bodies of a scene of n particles, each with its surface (cq_skin). Errors: those of ranges and of the
---engine.
---@param given cq.Picture.body.def[]     empty: one of all particles
---@param scene { dim: integer, volumes: ffi.cdata* }   volumes: double[n]
---@param n integer
---@param position ffi.cdata*             double[n dim] where they are at rest
---@param deformation ffi.cdata*?         double[n dim dim] F there
---@return table[]
function body.list(given, scene, n, position, deformation)
  local dim, out = scene.dim, {}
  for k, def in ipairs(ranges(given, n)) do
    local raw, first, skin = ffi.new "cq_skin_def", def.first - 1, ffi.new "cq_skin *[1]"
    C.cq_skin_init(raw)
    local loose, volume = loose_ones(def.loose, def.count), scene.volumes + first
    raw.dim, raw.particle_count, raw.position, raw.volume, raw.loose = dim, def.count, position + dim * first, volume,
      loose
    raw.deformation = deformation and deformation + dim * dim * first or nil
    if def.rest then raw.position, raw.deformation = def.rest:data(), nil end
    if def.mesh then raw.triangle_count, raw.corner = def.triangles, def.mesh end
    check(C.cq_skin_create(raw, skin), "cq.Picture")
    out[k] = setmetatable({ first = first, count = def.count, dim = dim, is_mesh = def.mesh ~= nil,
      skin = ffi.gc(skin[0], C.cq_skin_destroy) }, Body)
  end
  return out
end

---Moves the surface of the body to where its particles are in this frame.
---@param x ffi.cdata*        double[n dim] of all particles of the scene
---@param F ffi.cdata*?       double[n dim dim]
---@param level ffi.cdata*?   uint8_t[n], steps of opacity, 0: not drawn; cells of different steps do not join
function Body:pose(x, F, level)
  local k, dim = self.first, self.dim
  check(C.cq_skin_pose(self.skin, x + dim * k, F and F + dim * dim * k or nil, level and level + k or nil),
    "cq.Picture")
end

---Draws the surface of this body.
---@param rgba ffi.cdata*     uint32_t[n], colours of all particles of the world, 0xRRGGBBAA
---@param blend boolean       colours pass into each other
---@param outline number      in the plane, 0: none [pixel]
---@param canvas cq.Canvas
---@param x ffi.cdata*        double[dim n], positions of all particles of the world
function Body:draw(canvas, x, rgba, blend, outline)
  check(C.cq_picture_skin(canvas.handle, self.skin, x + self.dim * self.first, rgba + self.first, blend and 1 or 0,
    outline), "cq.Picture")
end

---Hatches those cells of the plane whose particles are pinned.
---@param pinned integer[]      particles of the scene, from 1; those of the first call are kept
function Body:hatch(canvas, pinned)
  if not self.marked then
    self.marked = ffi.new("uint8_t[?]", self.count)
    for _, p in ipairs(pinned) do
      if p > self.first and p <= self.first + self.count then self.marked[p - 1 - self.first] = 1 end
    end
  end
  C.cq_picture_hatch(canvas.handle, self.skin, self.marked, HATCH)
end

return body
