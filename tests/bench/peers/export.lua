-- export: a scene as a file for the peers.       cqlua tests/bench/peers/export.lua --case NAME --file PATH [--steps N]
--
-- The file is a row of float64 numbers: 32 of the head, then for n particles position {n, dim}, velocity {n, dim},
-- mass {n}, volume {n}, group {n} (from 0); with actuators also group {actuators} (from 0), W {4 groups in 2D,
-- actuators}, b {actuators}. Head: 0 dim, 1 n, 2 steps, 3-5 cells, 6 dx, 7 dt, 8-10 gravity, 11 friction, 12 inset
-- [cells], 13 law (0 neo-Hookean, 1 fixed corotated), 14 young, 15 poisson, 16 groups, 17 actuators, 18 strength, 19
-- target group, 20-22 direction of the loss.
local ffi = require "ffi"
local cq = require "cq"
local scenes = require "tests.bench.peers.scenes"

local scene = scenes.make(cq.option("case", "2d-1600"), cq.option("steps", nil))
local file = assert(io.open(cq.option("file", "scene.f64"), "wb"))

local function write(data, count) file:write(ffi.string(data, count * ffi.sizeof "double")) end
local function write_tensor(tensor) write(tensor:data(), tensor.count) end

local def = scene.world
local robot, dim = def[1], #def.cells
local n = robot.particle_count

local head = ffi.new("double[32]")
head[0], head[1], head[2] = dim, n, scene.steps
for i = 1, dim do head[2 + i], head[7 + i], head[19 + i] = def.cells[i], def.gravity[i], scene.direction[i] end
head[6], head[7], head[11], head[12] = def.dx, def.dt, scene.mu, scene.inset
head[13] = scene.law == "corotated" and 1 or 0
head[14], head[15] = robot.young:get(1), robot.poisson:get(1)
head[16], head[17], head[18], head[19] = #scene.groups, scene.actuated and #scene.actuated or 0, scene.strength or 0,
  scene.target - 1
write(head, 32)

write_tensor(robot.position)
write_tensor(scene.velocity)
write_tensor(robot.density * robot.volume)
write_tensor(robot.volume)
local group = ffi.new("double[?]", n)
for g, names in ipairs(scene.groups) do
  local index, count = robot:select(names, "export")
  for k = 0, count - 1 do group[index[k]] = g - 1 end
end
write(group, n)

if scene.actuated then
  for _, g in ipairs(scene.actuated) do write(ffi.new("double[1]", g - 1), 1) end
  write_tensor(scene.controller.params.w1)
  write_tensor(scene.controller.params.b1)
end
file:close()
