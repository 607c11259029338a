-- write: files of every format, for readers that are not ours, and what cqlua itself says of them.
--   cqlua tests/export/write.lua --folder DIR
package.path = "./?.lua;" .. package.path
local cq = require "cq"
local host = require "cq.host"
local json = require "cq.base.json"
local scene = require "tests.scene"

local folder, expect = cq.option("folder", "export"), {}

local function volume_of(state, thickness)
  local world = state.world
  local sum = (state:gather(nil, "jacobian") * world.layout.base.volume):sum():item()
  return world.dim == 2 and sum * thickness or sum
end

for _, dim in ipairs { 2, 3 } do
  local robot = scene.robot { dim = dim, count = 16 }
  local world = scene.world(robot)
  local roll = world:rollout { steps = 20, contact = true, controller = function(_, _, t)
    return cq.tensor { math.sin(40 * t), -0.5 }
  end }
  local at = ("%s/%dd/"):format(folder, dim)
  host.make_folder(at)
  for _, ending in ipairs(require("cq.export").names()) do
    roll:export { path = at .. "all." .. ending, interval = ending == "glb" and 10 or 2,
      units = { length = "m", time = "s" } }
    roll.state:save(at .. "one." .. ending)
  end
  for _, ending in ipairs { "ply", "vtp" } do roll.state:save(at .. "skin." .. ending, { as = "surface" }) end
  local group = {}
  for k, name in ipairs { "foot", "trunk" } do
    for _, p in ipairs(robot:group(name):particles()) do group[p] = k end
  end
  expect["d" .. dim] = {
    count = world.particle_count, position = roll.state:positions():totable(), frames = 11, glb_frames = 3,
    deformation = roll.state:deformations():totable(), group = group, signals = roll.signals:totable(),
    force = (roll.contact.impulse / world.control_dt):totable(), center = roll.state:center(world.robot):totable(),
    time = roll.state.time, volume = volume_of(roll.state, world.dx),
  }
end

cq.save(folder .. "/tensor.npy", cq.arange(0, 23):reshape { 2, 3, 4 } / 7)
local file = assert(io.open(folder .. "/expect.json", "w"))
file:write(json.encode(expect))
file:close()
