-- Meshes the finger of scenes/soft_finger.lua with Gmsh, into scenes/assets/soft_finger.msh.
--
--   cqlua scenes/make_finger.lua --fine 2 --out scenes/assets
--
-- It writes soft_finger.geo with the dimensions of the scene, in mm, and lets Gmsh (on Debian: apt install gmsh) make
-- tetrahedra of edges of about --fine. Physical volumes: "body" and, stiffer, "base"; physical surfaces: "chamber_1",
-- "chamber_2", ..., the walls of the air chambers. The volume "root", a part of both, is what is held. Where Gmsh is
-- missing the .geo is written, and the mesh stays as it is; else the .geo goes, unless --keep true.
local option = require "cq.option"
local drawing = require("scenes.soft_finger").drawing

local FINE, OUT = option("fine", 2), option("out", "scenes/assets")
local TEXT, KEEP = option("text", false), option("keep", false)

local lines = {}
-- Appends a line to the text of the .geo file; arguments as for string.format.
local function line(format, ...) lines[#lines + 1] = format:format(...) end

-- Appends a box to the text of the .geo file: its number in Gmsh, its lower corner and its size {3} [mm].
local function box(number, at, size)
  line("Box(%d) = {%g, %g, %g, %g, %g, %g};", number, at[1], at[2], at[3], size[1], size[2], size[3])
end

-- ---- the drawing ----------------------------------------------------------------------------------------------------

local d = drawing
line("// A soft finger with %d air chambers [mm]; written by scenes/make_finger.lua.", d.count)
line('SetFactory("OpenCASCADE");')
-- root and base, root and rest, and so on: four blocks that share their faces
box(1, { 0, 0, 0 }, { d.root, d.base, d.size[3] })
box(2, { d.root, 0, 0 }, { d.size[1] - d.root, d.base, d.size[3] })
box(3, { 0, d.base, 0 }, { d.root, d.size[2] - d.base, d.size[3] })
box(4, { d.root, d.base, 0 }, { d.size[1] - d.root, d.size[2] - d.base, d.size[3] })
for k = 1, d.count do box(4 + k, { d.first[1] + (k - 1) * d.pitch, d.first[2], d.first[3] }, d.chamber) end
line("BooleanDifference(100) = { Volume{4}; Delete; }{ Volume{5:%d}; Delete; };", 4 + d.count)
line("BooleanFragments{ Volume{1, 2, 3, 100}; Delete; }{ }")

-- An expression in Gmsh's language for all entities of a kind, "Volume" or "Surface", that lie in the box from low {3}
-- to high {3} [mm]: so volumes and surfaces are found again after Gmsh has cut the finger.
local function within(kind, low, high)
  local e = 1e-3
  return ("%s In BoundingBox {%g, %g, %g, %g, %g, %g}"):format(kind, low[1] - e, low[2] - e, low[3] - e, high[1] + e,
    high[2] + e, high[3] + e)
end
line("all() = Volume{:};")
line("base() = %s;", within("Volume", { 0, 0, 0 }, { d.size[1], d.base, d.size[3] }))
line("root() = %s;", within("Volume", { 0, 0, 0 }, { d.root, d.size[2], d.size[3] }))
line("body() = all(); body() -= base();")
line('Physical Volume("body") = body();')
line('Physical Volume("base") = base();')
line('Physical Volume("root") = root();')
for k = 1, d.count do
  local low = { d.first[1] + (k - 1) * d.pitch, d.first[2], d.first[3] }
  local high = { low[1] + d.chamber[1], low[2] + d.chamber[2], low[3] + d.chamber[3] }
  line("chamber() = %s;", within("Surface", low, high))
  line('Physical Surface("chamber_%d") = chamber();', k)
end
line("Mesh.MeshSizeMin = %g;", FINE)
line("Mesh.MeshSizeMax = %g;", FINE)
line("Mesh.Optimize = 1;")
line("Mesh.RandomSeed = 1;")

-- ---- Gmsh -----------------------------------------------------------------------------------------------------------

local geo, msh = OUT .. "/soft_finger.geo", OUT .. "/soft_finger.msh"
local file = assert(io.open(geo, "w"))
file:write(table.concat(lines, "\n"), "\n")
file:close()

-- A word in single quotes, as one argument of a shell command.
local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

if os.execute "command -v gmsh >/dev/null 2>&1" ~= 0 then
  print(("gmsh is not installed (on Debian: apt install gmsh): %s is written, and %s stays as it is"):format(geo, msh))
  return
end
local status = os.execute(("gmsh %s -3 -nt 1 -v 2 -format msh41 %s -o %s"):format(quote(geo), TEXT and "" or "-bin",
  quote(msh)))
if status ~= 0 then error("gmsh failed on " .. geo, 0) end
if not KEEP then os.remove(geo) end
local sample = require("cq").Shape.tetrahedra { path = msh, scale = 1e-3 }:sample()
print(("wrote %s: %s"):format(msh, tostring(sample)))
