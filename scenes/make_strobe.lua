-- make_strobe: draws the README's picture, poses of a trained biped side by side, from what a run of examples/biped.lua left.
--   build/cqlua scenes/make_strobe.lua --run runs/biped --particles 60 --png examples/biped.png
local cq = require "cq"

local times = cq.option("times", { 0, 1.2, 2.4, 3.2, 4 })                   -- of the poses
local size  = { cq.option("width", 2.1), cq.option("height", 0.5) }         -- of the world that is seen
local robot = cq.Robot(require "scenes.biped" { count = cq.option("particles", 60) })
-- the world of examples/biped.lua
local world = cq.World {
  cells = { 400, 64 }, dx = 1 / 64, gravity = { 0, -2 }, dt = 5e-3, substeps = 5,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.12 },
}
local run = cq.Experiment {
  world = world, duration = 4, observer = cq.Observer.kmeans { clusters = 7, velocity = true },
  controller = cq.Controller.mlp { hidden = { 64, 64 }, activation = "relu" }, objective = function(state) return state:center(robot)[1] end,
}

local n, weights, due = world.particle_count, cq.zeros { world.particle_count, world.actuator_count }, {}
for signal, name in ipairs(robot.signals) do
  for _, p in ipairs(robot:group(name):particles()) do weights:set(1, p, signal) end
end
for _, t in ipairs(times) do due[math.floor(t / world.control_dt + 0.5)] = true end

-- every pose is a body of its own, at rest far from the others
local position, deformation, actuation, rest, volume, groups = {}, {}, {}, {}, {}, {}
run:rollout(cq.load(cq.option("run", "runs/biped") .. "/best.bin"), function(state, u)
  if not due[state.step] then return end
  local k = #position
  position[k + 1], deformation[k + 1] = state:positions(), state:deformations()
  actuation[k + 1] = u and cq.Picture.actuation(weights, u) or cq.zeros { n }
  rest[k + 1], volume[k + 1] = world.robot.position + cq.tensor { k, 0 }, robot.volume
  for _, name in ipairs(robot.groups) do
    local members = robot:group(name):particles()
    for i, p in ipairs(members) do members[i] = p + k * n end
    groups[#groups + 1] = { name = name, particles = members }
  end
end)
cq.Picture.frame {
  domain = size, walls = cq.Boundary.floor { at = 3 * world.dx }, width = 1600, samples = 3, follow = false, trail = false, groups = groups,
  position = cq.concat(position), deformation = cq.concat(deformation), actuation = cq.concat(actuation), rest = cq.concat(rest),
  volume = cq.concat(volume), label = "t = " .. table.concat(times, ", "),
}:write(cq.option("png", "biped.png"))
