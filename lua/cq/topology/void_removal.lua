-- void_removal: rollouts of a design without void that is far from all solid, or that the simulation cannot bear.
--
-- Where a binary design is asked for it (remove_void = true), void that has no solid within the filter's radius is left
-- out from the start: what became solid there would hang together with nothing. Its gradients say how a crumb would
-- move the body that it falls on, can be thousands of times as long as others, and come by the filter to where they
-- mean something. A group that would be left out as a whole stays.
--
-- A void particle has next to no mass and less stiffness, so it goes where the solid around it goes: under a sole it is
-- pressed flat, a little more with each step, until det F is 0 in the digits that there are. Nothing of that says that
-- the body is a bad one, since void is not there when the body is made. A rollout that fails by a void particle is made
-- again without that particle, without the void within the filter's radius of it, which goes the same way, and without
-- the images of these where the design is symmetric; when it fails again, twice as far around, for a block of which
-- much is void can fail at thirty places one after another. What is left out has no gradient but that of its
-- neighbours, by way of the filter; the next rollout has again what failed.
local T = require "cq.tensor"
local text = require "cq.base.text"
local message = require "cq.base.message"
local failures = require "cq.rollout.unstable"
local memory = require "cq.rollout.memory"
local subworld = require "cq.topology.subworld"
local tables = require "cq.base.tables"

local void_removal = {}

local VOID = 0.01          -- densities below are as good as nothing: the mass of a hundredth of a particle, or less

-- The end of the sentence on a failed simulation of a body that has no solid.
local EMPTY = "; no particle of the design is solid: the body is empty; begin with more of it, as after a soft stage, or bound it by design:volume { at_least = ... }"

-- Calls each(other) for every particle within the filter's radius of p.
local function neighbours(design, p, each)
  local near = design.filter.matrix
  for e = tonumber(near.start[p - 1]), tonumber(near.start[p]) - 1 do each(tonumber(near.column[e]) + 1) end
end

-- Marks a void particle p in the table gone, with the void that is connected to it within `radii` radii of the filter,
-- and the images of these; returns true, or false if p is not void. density: {n}.
local function leave_out(design, density, gone, p, radii)
  if density:get(p) >= VOID then return false end
  local reached, edge = { [p] = true }, { p }
  for _ = 1, radii do
    local beyond = {}
    for _, from in ipairs(edge) do
      neighbours(design, from, function(other)
        if not reached[other] and density:get(other) < VOID then
          reached[other] = true
          beyond[#beyond + 1] = other
        end
      end)
    end
    edge = beyond
    if #edge == 0 then break end
  end
  for found in pairs(reached) do
    for _, image in ipairs(design:with_images(found)) do gone[image] = true end
  end
  return true
end

-- Describes the design's world with only the particles `kept` of its body, for world.part_of: count: particles of the
-- whole world; kept: for each remaining particle its number in the whole world; place: the remaining particle's number
-- by its number in the whole world. All from 1.
local function part_of(design, kept)
  local own, all, place = design.robot, {}, {}
  for _, robot in ipairs(design.world.robots) do
    local numbers = robot == own and kept
    for k = 1, numbers and #numbers or robot.particle_count do
      all[#all + 1] = robot.first + (numbers and numbers[k] or k)
    end
  end
  for k, number in ipairs(all) do place[number] = k end
  return { count = design.world.particle_count, kept = all, place = place }
end

-- The design's robot as it is placed in `world`, a variant of the design's world; nil if it is not there.
local function robot_in(design, world)
  if world == design.world then return design.robot end
  for k, robot in ipairs(design.world.robots) do
    if robot == design.robot then return world.robots[k] end
  end
end

-- The design's body among the robots of a rollout, and a function that returns these robots with another body in its
-- place. given: one robot or a list.
local function body_of(design, given)
  if text.is_instance(given, "cq.Robot") then return given, function(body) return body end end
  for k, robot in ipairs(given) do
    if robot.root == design.robot.root then
      return robot, function(body)
        local out = { unpack(given) }
        out[k] = body
        return out
      end
    end
  end
end

-- The world without the void particles in the table `gone`. Returns that world, the design's robot in it, the robots of
-- the rollout, and the list of the particles that are left. Keeps the last world, which the next iteration often needs
-- again. whole: the design's world, or a variant of it with other substeps; with_body: of body_of.
local function rest_of(design, body, gone, whole, with_body)
  local kept = {}
  for p = 1, design.robot.particle_count do
    if not gone[p] then kept[#kept + 1] = p end
  end
  local key, last = design.world.substeps .. ": " .. table.concat(kept, " "), design.remaining
  whole.pool:make_room(memory.free(whole))
  if last.key ~= key then
    last.key, last.world = nil, nil
    local rest, _, at = T.tape.pause(subworld, design, design.robot:subset(kept))
    rest.part_of = part_of(design, kept)
    last.key, last.world, last.at = key, rest, at
  end
  local world = whole == design.world and last.world or last.world:variant(whole.variation)
  return world, world.robots[last.at], with_body(body:subset(kept)), kept
end

-- A list of the particles of the design's body by which the last rollout failed, by the design's numbers: one, or two
-- that met. robot: the body as it is in that rollout's world; kept: numbers of the particles simulated, nil for all.
local function culprits_of(robot, kept)
  local out = {}
  for _, culprit in ipairs(failures.culprits) do
    if culprit.robot == robot then out[#out + 1] = kept and kept[culprit.particle] or culprit.particle end
  end
  return out
end

---The void of a binary design, density {n}, that has no solid within the filter's radius, as a set of particle numbers;
---without groups that are void altogether.
---@return table<integer, boolean> gone
local function remote_void(design, density)
  local is_near, gone = design.filter(density:greater_equal(VOID)):greater(0), {}
  if is_near:sum():item() == 0 then return gone end                      -- no solid at all
  for p = 1, is_near.count do
    -- at the radius itself it is rounding that decides, and might not for an image
    local near = 0
    for _, image in ipairs(design:with_images(p)) do near = near + is_near:get(image) end
    if near == 0 then gone[p] = true end
  end
  for _, name in ipairs(design.robot.group_names) do
    local group, is_gone = design.robot.group_table[name]:particles(), true
    for _, p in ipairs(group) do is_gone = is_gone and gone[p] end
    for _, p in ipairs(is_gone and group or {}) do gone[p] = nil end
  end
  return gone
end

-- Are all particles of the design in the table `gone`?
local function is_all(design, gone)
  for p = 1, design.robot.particle_count do
    if not gone[p] then return false end
  end
  return true
end

-- Runs the rollout without the remote void, if the design asks for that, and without void particles that fail. Returns
-- true and the rollout, or false and an error where a solid particle fails, or all are void; then the world of the last
-- rollout and its definition.
local function attempt(design, params, given, whole)
  local fields = tables.merged(given)
  local world, own, kept = whole, robot_in(design, whole), nil
  local body, with_body = body_of(design, fields.robot)
  local gone, density, radii = {}, nil, 1
  if design.rounding == "all" and design.remove_void then
    density = design:map(params).density:detach()
    gone = remote_void(design, density)
    if next(gone) then world, own, fields.robot, kept = rest_of(design, body, gone, whole, with_body) end
  end
  if world == whole and design.remaining.world then design.remaining.world.pool:make_room(memory.free(whole)) end
  while true do
    failures.culprits = {}
    local fine, roll = pcall(world.rollout, world, fields)
    if fine then return true, roll, world, fields end
    local culprits, is_void = culprits_of(own, kept), false
    density = density or culprits[1] and design:map(params).density:detach()
    for _, p in ipairs(culprits) do is_void = leave_out(design, density, gone, p, radii) or is_void end
    if not is_void then return false, roll, world, fields end
    if is_all(design, gone) then return false, roll .. EMPTY, world, fields end
    radii = 2 * radii
    message.note_once("a void particle failed in the simulation: such particles are left out, until the next rollout")
    world, own, fields.robot, kept = rest_of(design, body, gone, whole, with_body)
  end
end

---A rollout of a design, without void that it fails by. With on_step it is run once before to find that void, so that
---on_step sees no rollout that fails by void; one that fails by solid is run again for it.
---@param design cq.Topology
---@param params table       of the design
---@param fields table       as world:rollout takes them
---@param world cq.World     the design's, or a variant of it
---@return cq.Rollout
function void_removal.rollout(design, params, fields, world)
  local given = tables.merged(fields)
  given.on_step = nil
  local fine, roll, rest, found = attempt(design, params, given, world)
  if fields.on_step then
    found.on_step = fields.on_step
    return rest:rollout(found)
  end
  if not fine then error(roll, 0) end
  return roll
end

return void_removal
