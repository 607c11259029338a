-- drives: what moves the body of a random scene: stresses, forces of the user's own, cables, the pressure in a cavity.
local cq = require "cq"
local T = require "cq.tensor"

local drives = {}

-- a stress on a group; nil: none
local function stress(draw, group)
  local axis, max = draw:pick { "x", "y" }, draw:uniform(0.5, 3)
  local kind = draw:pick { "pressure", "muscle", "isotropic", "weighted", "none" }
  if kind == "none" then return nil end
  if kind == "weighted" then return cq.Actuator.isotropic { count = draw:whole(1, 3), max = max }, kind end
  if kind == "isotropic" then return cq.Actuator.isotropic { groups = { group }, max = max }, kind end
  return cq.Actuator[kind] { groups = { group }, axis = axis, max = max }, kind
end

-- forces from places and speeds, of the user's own
local function spring(draw, particles)
  local to, stiffness = draw:uniform(0.3, 0.6), draw:uniform(0.005, 0.03)
  return { particles = particles, signals = 1,
    force = function(_, u, x, v) return (to - x) * (stiffness * (1 + u:sum())) - 0.002 * v end }
end

-- a cable between particles of a body, at times from an anchor; implicit: its pull is that of the end of a step
local function cable(draw, count, dim, implicit)
  local path, last = {}, 0
  for k = 1, draw:whole(2, 3) do
    last = math.min(count, last + draw:whole(1, math.max(1, math.floor(count / 3))))
    path[k] = last
  end
  if path[#path] == path[#path - 1] then path[#path - 1] = path[#path] - 1 end
  if draw:chance(0.3) then path[#path + 1] = { anchor = draw:list(dim, 0.3, 0.6) } end
  local friction = not implicit and draw:chance(0.5) and draw:uniform(0.1, 0.5) or nil
  return cq.Actuator.cable { path = path, stiffness = draw:uniform(0.1, 0.5), gap = 1, friction = friction,
    law = draw:pick { "contract", "spool" } }
end

---The actuators of a body of so many particles.
---@param draw hunt.Draw
---@param body { group: string, count: integer, dim: integer, hole: number[]?, cables: string }   cables: as in cq.Implicit
---@return table[]? list, string[] kinds
function drives.draw(draw, body)
  local list, kinds = {}, {}
  list[1], kinds[1] = stress(draw, body.group)
  local function add(made, kind) list[#list + 1], kinds[#kinds + 1] = made, kind end
  if draw:chance(0.2) then add(spring(draw, { 1, 2, 4 }), "spring") end
  if body.hole then
    add(cq.Actuator.follower_pressure { surface = { inside = body.hole }, max = draw:uniform(0.2, 1) }, "chamber")
  end
  if draw:chance(0.25) then add(cable(draw, body.count, body.dim, body.cables == "implicit"), "cable") end
  return #list > 0 and list or nil, kinds
end

---What can be trained of the cables of a body.
function drives.train(draw, body, p, implicit)
  local count = #body.cables
  if count == 0 then return end
  if draw:chance(0.7) then p.cable_stiffness = T.param(draw:tensor({ count }, 0.1, 0.5)) end
  if draw:chance(0.7) then p.cable_length = T.param(draw:tensor({ count }, 0.02, 0.2)) end
  if not implicit and draw:chance(0.7) then p.cable_friction = T.param(draw:tensor({ count }, 0.1, 0.5)) end
end

return drives
