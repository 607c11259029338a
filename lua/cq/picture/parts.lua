-- parts: the parts of a world in a picture: groups with their colours, bodies, pinned particles.
local loose_of = require "cq.robot.loose"

local parts = {}

---The groups of the shapes of all robots, as cq.Picture colours them: a list { name, particles: numbers in the world
---from 1 }.
function parts.groups(world)
  local out = {}
  for _, robot in ipairs(world.robots) do
    for _, name in ipairs(robot.groups) do
      local numbers = robot:group(name):particles()
      for k, p in ipairs(numbers) do numbers[k] = p + robot.first end
      out[#out + 1] = { name = name, particles = numbers }
    end
  end
  return out
end

---Colours of the particles whose shape was drawn: 0xRRGGBB by their number in the world from 1; others have none.
function parts.drawn(world)
  local out = {}
  for _, robot in ipairs(world.robots) do
    for p, rgb in pairs(robot.drawn) do out[robot.first + p] = rgb end
  end
  return out
end

---A list of the robots of a world as cq.Picture takes bodies: { first, count, loose, mesh, triangles, rest }. by_cells:
---a robot with a mesh is drawn by its lattice too, since the cells of a mesh cannot be told apart otherwise.
function parts.bodies(world, by_cells)
  local out = {}
  for k, robot in ipairs(world.robots) do
    out[k] = { first = robot.first + 1, count = robot.particle_count, loose = loose_of(robot) }
    if robot.surface and not by_cells and not out[k].loose then
      out[k].mesh, out[k].triangles = robot.surface()
      out[k].rest = robot.root.position
    end
  end
  return out
end

---A list of the numbers, from 1, of all particles of a world that are pinned.
function parts.pinned(world)
  local out, arrays = {}, world.layout.arrays
  for k = 0, world.layout.pin_count - 1 do out[k + 1] = arrays.pins[k] + 1 end
  return out
end

return parts
