-- outline: creatures from a drawing or a mesh, with chambers by position or by colour.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.shape.class"
local Shape = require "cq.shape"
local body = require "cq.creature.body"
local chamber = require "cq.creature.chamber"
local lattice = require "cq.creature.lattice"
local tables = require "cq.base.tables"

local outline = {}

-- ---- chambers -------------------------------------------------------------------------------------------------------

-- Is this table not empty, are its keys all names, and is is_one true of each value?
local function all_of(given, is_one)
  if next(given) == nil then return false end
  for name, value in pairs(given) do
    if type(name) ~= "string" or not is_one(value) then return false end
  end
  return true
end

-- Adds the chambers of a creature to its shape as groups, and returns the shape and a list of their names: the places
-- where the user's functions are true, or parts of the bottom by chamber.cut. what: the constructor, for errors.
local function with_chambers(def, shape, spacing, what)
  local given = def.chambers or {}
  if all_of(given, text.is_callable) then
    local names = tables.names(given)
    for _, name in ipairs(names) do shape = shape:group(name, given[name]) end
    return shape, names
  end
  local groups, names = chamber.cut(shape:sample { spacing = spacing }, given, what)
  return class.new {
    kind = shape.kind, dim = shape.dim, lower = shape.lower, upper = shape.upper, exact = shape.exact,
    inside = shape.inside, surface = shape.surface,
    fill = function(own)
      local out = shape.fill(own)
      for _, name in ipairs(names) do out.names[#out.names + 1], out.groups[name] = name, groups[name] end
      return out
    end,
  }, names
end

-- ---- common ---------------------------------------------------------------------------------------------------------

---Fields of creatures from files.
---@class cq.Creature.outline.def : cq.Creature.body.def
---@field particles? integer     how many, as near as a lattice comes; or spacing
---@field spacing? number        of the particles; or particles [length]
---@field axis? "x"|"y"|"z"      along which the chambers act

-- The schema of a creature that is read from a file, mesh or picture: common fields, and those given.
local function define(name, fields)
  fields.path = is.string()
  fields.particles = is.integer { min = 4, optional = true }
  fields.spacing = is.number { above = 0, optional = true }
  fields.axis = is.one_of { "x", "y", "z", default = "y" }
  fields.chambers = is.table { optional = true }
  return body.define(name, fields)
end

-- Raises an error for both or neither of particles and spacing.
local function check_fineness(def, name)
  if (def.particles == nil) == (def.spacing == nil) then
    is.fail("cq.Creature.%s: give either particles or spacing%s", name, def.particles and ", not both" or "")
  end
end

-- The spacing of a creature's particles: the one that the user gave, or the one by which `particles` of them fill the
-- shape.
local function spacing_of(def, shape) return def.spacing or lattice.spacing(shape, def.particles) end

-- ---- meshes ---------------------------------------------------------------------------------------------------------

---@class cq.Creature.from_mesh.def : cq.Creature.outline.def
---@field path string            .stl or .obj of one closed surface, from the working directory, else the script's folder, else cqlua's
---@field length number          of the longest side of the box that holds it [length]
---@field up? "y"|"z"            which axis of the file points up; x is forward
---@field chambers? cq.Creature.chambers.def|table<string, fun(x: number, y: number, z: number): boolean>   the quadrants of the bottom quarter
---  unless given: "back.left", "back.right", "fore.left", "fore.right"; or functions of a place by name

local mesh = define("from_mesh", {
  length = is.number { above = 0 },
  up = is.one_of { "y", "z", default = "y" },
})

---A creature from a triangle mesh, with its lower corner at the origin (Advanced soft robot modeling in ChainQueen,
---Robotica 2021, fig. 9): air chambers that stretch and contract along an axis at the quadrants of its bottom quarter,
---or where chambers says. A mesh whose triangles face inward is turned, which is told.
---Errors: a surface that is open, or whose triangles do not agree on which side is outside;
---a chamber without particles.
---@param fields cq.Creature.from_mesh.def
---@return cq.Robot
function outline.from_mesh(fields)
  local def = mesh(fields)
  check_fineness(def, "from_mesh")
  local shape = Shape.mesh { path = def.path, length = def.length, closed = true }
  if def.up == "z" then shape = shape:rotate(-math.pi / 2, "x") end
  shape = shape:translate { -shape.lower[1], -shape.lower[2], -shape.lower[3] }
  local spacing = spacing_of(def, shape)
  local names
  shape, names = with_chambers(def, shape, spacing, "cq.Creature.from_mesh")
  return body.make("from_mesh", def,
    { shape = shape, spacing = spacing, actuators = body.pressure(def, names, def.axis) })
end

-- ---- images ---------------------------------------------------------------------------------------------------------

---@class cq.Creature.from_image.def : cq.Creature.outline.def
---@field path string            a PNG file, from the working directory, else the script's folder, else cqlua's
---@field width number           of the body [length]
---@field background? string     a colour that is outside, as what is transparent
---@field chambers? cq.Creature.chambers.def|table<string, string>|table<string, fun(x: number, y: number): boolean>   colours by name,
---  { fore = "#d9694f" }, or functions of a place; unless given two side by side in each foot: "foot.1.back",
---  "foot.1.fore", "foot.2.back", ...; of one foot "back" and "fore"

local image = define("from_image", { width = is.number { above = 0 }, background = is.string { optional = true } })

---A creature in the plane from a PNG drawing, x forward and y up, with its lower left corner at the origin (Advanced
---soft robot modeling in ChainQueen, Robotica 2021, fig. 7): what is opaque is body; chambers are regions of
---colours, or parts by position. Errors: a picture without a body, or without an outline; a colour that no pixel
---has; a chamber without particles.
---@param fields cq.Creature.from_image.def
---@return cq.Robot
function outline.from_image(fields)
  local def = image(fields)
  check_fineness(def, "from_image")
  local colours = def.chambers and all_of(def.chambers, function(value) return type(value) == "string" end)
    and def.chambers or nil
  local shape = Shape.image { path = def.path, width = def.width, background = def.background, colours = colours,
    trim = true }
  local spacing, names = spacing_of(def, shape), colours and tables.names(colours)
  if not colours then shape, names = with_chambers(def, shape, spacing, "cq.Creature.from_image") end
  return body.make("from_image", def,
    { shape = shape, spacing = spacing, actuators = body.pressure(def, names, def.axis) })
end

return outline
