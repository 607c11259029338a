-- scene: a random small world, everything that can be trained in it, and a loss, from a seed.
local cq = require "cq"
local T = require "cq.tensor"
local field = require "cq.base.field"
local new_draw = require "tests.hunt.draw"
local walls = require "tests.hunt.walls"
local drives = require "tests.hunt.drives"

local scene = {}

local DX = 1 / 16
local YOUNG, POISSON, DENSITY = 14, 0.4, 0.8      -- the stiffest: what is trained stays below
local SHEAR, BULK = 5, 23

-- Constants of the laws, on a scale with those above: {low, high} between which they are trained. The material has
-- the high one, which is the stiffest, so that the Courant number holds. A law that is not here is given by
-- Young's modulus or by two moduli.
local laws = {
  mooney_rivlin = { c10 = { 0.6, 1.2 }, c01 = { 0.2, 0.8 }, bulk = { 8, 20 } },
  yeoh = { c10 = { 1, 2 }, c20 = { -0.1, 0.1 }, c30 = { 0.01, 0.05 }, bulk = { 8, 20 } },
  ogden = { mu_1 = { 1, 2.5 }, alpha_1 = { 1, 1.9 }, mu_2 = { 0.02, 0.1 }, alpha_2 = { 3, 5 }, mu_3 = { -0.5, -0.05 },
    alpha_3 = { -2.5, -0.5 },
    bulk = { 8, 20 } },
  transversely_isotropic = { shear = { 2, 4 }, bulk = { 8, 20 }, k1 = { 0.2, 1 }, k2 = { 0.05, 0.5 } },
  fluid = { bulk = { 8, 20 }, exponent = { 1, 7 }, tension = { 0.1, 1 } },
  von_mises = { young = { 5, 14 }, poisson = { 0.1, 0.4 }, yield_stress = { 0.3, 2 }, hardening = { 0.1, 2 } },
  drucker_prager = { young = { 5, 14 }, poisson = { 0.1, 0.4 }, friction_angle = { 0.3, 0.9 },
    cohesion = { 0.01, 0.2 } },
  snow = { young = { 5, 14 }, poisson = { 0.1, 0.4 }, snow_hardening = { 1, 3 }, critical_compression = { 0.02, 0.1 },
    critical_stretch = { 0.02, 0.1 } },
}
local LAME = { young = { 5, YOUNG }, poisson = { 0.1, POISSON } }
local MODULI = { shear = { 2, SHEAR }, bulk = { 4, BULK } }

-- the material, what it is called, and the ranges in which its constants are trained; name: any unless given
local function material(draw, dim, name)
  local names, ranges = {}, {}
  for _, law in ipairs(field.laws) do names[#names + 1] = law.name end
  name = name or draw:pick(names)
  local fields, word, info = { density = DENSITY }, name, nil
  for _, law in ipairs(field.laws) do
    if law.name == name then info = law end
  end
  if laws[name] then
    for constant, range in pairs(laws[name]) do ranges[constant] = range end
  else
    local moduli = draw:chance(0.3)
    for constant, range in pairs(moduli and MODULI or LAME) do ranges[constant] = range end
    if moduli then word = name .. " by moduli" end
  end
  for constant, range in pairs(ranges) do fields[constant] = range[2] end
  if info.incompressible then fields.incompressible = draw:pick { 0, 0, 0, 2, 4 } end
  if name == "transversely_isotropic" then
    fields.fibre = {}
    for i = 1, dim do fields.fibre[i] = draw:uniform(0.3, 1) end
  end
  if info.branches and draw:chance(0.1) then
    fields.f_bar, word = draw:pick { 0.5, 1 }, word .. ", averaged"
  end
  if draw:chance(0.2) then fields.viscosity, ranges.viscosity, word = 0.02, { 0.005, 0.02 }, word .. ", viscous" end
  local made = cq.Material[name](fields)
  if info.branches and not fields.f_bar and draw:chance(0.2) then
    made = cq.Material.viscoelastic { base = made, modulus = { 0.5 }, time = { 0.05 } }
    ranges.branch_modulus_1, ranges.relaxation_time_1, word = { 0.1, 0.5 }, { 0.02, 0.05 }, word .. ", a Maxwell branch"
  end
  return made, word, ranges
end

-- A particle that may be pinned: it must not cross a cell's edge when its place is trained.
local function pinnable(body)
  for k, x in ipairs(body.position:totable()) do
    local inner = true
    for _, coordinate in ipairs(x) do inner = inner and math.abs((coordinate / DX - 0.5) % 1 - 0.5) < 0.4 end
    if inner then return { k } end
  end
end

-- a block, with a cavity in its middle at times, or a ball; spacing: half a cell or so between its particles
local function form_of(draw, dim, group, spacing, large)
  if dim == 2 and not large and draw:chance(0.3) then
    return cq.Shape.disc { name = group, radius = draw:uniform(0.6, 1.4) * DX, at = { 1.4 * DX, 1.4 * DX },
      spacing = spacing }
  end
  local hollow = not large and draw:chance(0.15)
  local count = hollow and (dim == 2 and { draw:whole(4, 6), 4 } or { 3, 3, 3 })
    or dim == 2 and { draw:whole(2, 6), draw:whole(2, 6) } or { draw:whole(2, 3), draw:whole(2, 4), draw:whole(2, 3) }
  if large then count = { 40, 40 } end
  local zero, size, lower, hole = {}, {}, {}, {}
  for i = 1, dim do
    zero[i], size[i], lower[i], hole[i] = 0, count[i] * spacing, spacing, (count[i] - 2) * spacing
  end
  local block = cq.Shape.box { name = group, at = zero, size = size, count = count }
  if not hollow then return block end
  local middle = {}
  for i = 1, dim do middle[i] = size[i] / 2 end
  if dim == 2 and count[1] % 2 == 0 then middle[1], middle[2] = 1.5 * spacing, 1.5 * spacing end
  return block - cq.Shape.box { at = lower, size = hole }, middle
end

-- a body, its lowest corner at `at`, and a function that makes it again with another formulation; of: large, so that
-- the engine splits it; law: its material; cables: as steps have them
local function robot(draw, dim, name, at, of)
  local spacing, group = draw:uniform(0.4, 0.6) * DX, name .. ".body"
  local form, hole = form_of(draw, dim, group, spacing, of.large)
  local made, law, ranges = material(draw, dim, of.law)
  local fields = { name = name, shape = form, material = made }
  local count = cq.Robot(fields).particle_count
  local list, kinds = drives.draw(draw, { group = group, count = count, dim = dim, hole = hole, cables = of.cables })
  fields.actuators = list
  local body = cq.Robot(fields):at(at)
  if draw:chance(0.2) then
    fields.pins = pinnable(body)
    body = cq.Robot(fields):at(at)
  end
  local word = ("%s of %d%s%s"):format(law, body.particle_count, fields.pins and ", pinned" or "", #kinds > 0 and ", "
    .. table.concat(kinds, ", ") or "")
  local function again(formulation)
    fields.formulation = formulation
    return cq.Robot(fields):at(at)
  end
  return body, word, kinds[1] == "weighted", ranges, again
end

local function place(draw, dim, k)
  local out = {}
  for i = 1, dim do out[i] = (draw:uniform(4.2, 5.2) + (i == 1 and 3 * (k - 1) or 0)) * DX end
  return out
end

-- signals of stress that a particle has a weight for: cables and chambers have none
local function columns_of(body) return #body.stresses - #body.cables - #body.surfaces end

-- trainables of one robot
local function body_params(draw, body, weighted, ranges, batch, cables)
  local n, p, dim = body.particle_count, {}, body.dim
  local function shape(...)
    local out = { ... }
    if batch > 1 and draw:chance(0.3) then table.insert(out, 1, batch) end
    return out
  end
  local function constant(name, low, high)
    if draw:chance(0.25) then return end
    p[name] = draw:chance(0.3) and T.param(draw:uniform(low, high)) or T.param(draw:tensor(shape(n), low, high))
  end
  local names = {}
  for name in pairs(ranges) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do constant(name, ranges[name][1], ranges[name][2]) end
  constant("density", DENSITY, 1.6)
  if draw:chance(0.6) then p.volume = T.param(body.volume * draw:tensor({ n }, 0.9, 1.1)) end
  if draw:chance(0.8) then p.position = T.param(body.position + draw:tensor(shape(n, dim), -0.04, 0.04) * DX) end
  if draw:chance(0.8) then
    p.velocity = T.param(draw:tensor(draw:chance(0.3) and { dim } or shape(n, dim), -0.8, 0.8))
  end
  if draw:chance(0.6) then p.affine = T.param(draw:tensor(shape(n, dim, dim), -0.3, 0.3)) end
  if draw:chance(0.6) then p.deformation = T.param(T.eye(dim) + draw:tensor(shape(n, dim, dim), -0.04, 0.04)) end
  drives.train(draw, body, p, cables == "implicit")
  if weighted then p.actuation_weight = T.param(draw:tensor({ n, columns_of(body) }, 0, 1)) end
  return p
end

local function world_params(draw, dim, count, batch)
  local function shape(...)
    local out = { ... }
    if batch > 1 and draw:chance(0.3) then table.insert(out, 1, batch) end
    return out
  end
  local p = {}
  if draw:chance(0.7) then p.gravity = T.param(draw:tensor(shape(dim), -3, 1)) end
  if count > 0 then
    p.friction = T.param(draw:tensor(shape(count), 0.1, 1))
    p.wall_velocity = T.param(draw:tensor(shape(count, dim), -0.6, 0.6))
  end
  return p
end

-- signals: given, or of a network that sees particles
local function control(draw, world, own, steps, batch)
  local signals = 0
  for _, body in ipairs(world.robots) do signals = signals + body.actuator_count end
  if signals == 0 then return {}, function() return nil end, "no signals" end
  -- what a first rollout cannot do without
  local weighted = own[1].actuation_weight and world.robots[1]:with { actuation_weight = own[1].actuation_weight }
  if #world.robots == 1 and draw:chance(0.4) then
    local observer = cq.Observer.particles { group = { 1, 2, 4 }, velocity = true }
    if draw:chance(0.5) then
      observer = cq.Observer.kmeans { clusters = 2, velocity = draw:chance(0.5), acceleration = draw:chance(0.3) }
    end
    local network = draw:chance(0.3) and cq.Controller.linear { seed = 1 }
      or cq.Controller.mlp { hidden = { 5, 4 }, seed = 1,
        activation = draw:pick { "tanh", "softplus", "sigmoid", "elu" } }
    return network:prepare(world, observer, weighted), function(p) return network:with(p), observer end, "network"
  end
  if #world.robots == 1 and draw:chance(0.2) then
    local sines = cq.Controller.sines { count = 2, frequency = 20, seed = 1 }
    return sines:prepare(world, nil, weighted), function(p) return sines:with(p) end, "sines"
  end
  local shape = { steps, signals }
  if batch > 1 and draw:chance(0.5) then shape = { batch, steps, signals } end
  return { u = T.param(draw:tensor(shape, -0.8, 0.8)) }, function(p) return cq.Controller.open_loop(p.u) end,
    "open loop"
end

-- a smooth sum over all that a state has, of numbers that are all different
local function felt(draw)
  local weight = {}
  return function(t, key)
    weight[key] = weight[key] or draw:tensor(t:shape(), -1, 1)
    return (t * weight[key]):sum()
  end
end

local function running(state, u)
  local cost = state:velocities():square():sum(-1):sum(-1) * 1e-2
  return u and cost + 1e-2 * u:square():sum(-1) or cost
end
local function signals_only(_, u) return 1e-2 * u:square():sum(-1) end

-- Steps: explicit ones, or longer implicit ones that are converged to rounding; and how many.
local function stepping(draw, dim)
  if not draw:chance(0.35) then
    local substeps = draw:whole(1, 3)
    return { substeps = substeps, steps = draw:whole(2, 12), dt = substeps * draw:uniform(8e-4, 2.2e-3) }
  end
  local made = { substeps = draw:chance(0.2) and 2 or 1, steps = draw:whole(2, dim == 2 and 6 or 4),
    pressure = draw:pick { "lagged", "implicit" }, cables = draw:pick { "lagged", "implicit" } }
  made.dt = made.substeps * draw:uniform(4e-3, 2e-2)
  return made
end

-- Bodies beside each other, at times so near that they share nodes; of two, one may be a fluid.
local function bodies_of(draw, dim, cables)
  local count = draw:chance(0.35) and 2 or 1
  local near, wet = count == 2 and draw:chance(0.5), count == 2 and draw:chance(0.4)
  local large = dim == 2 and draw:chance(0.05)
  local out = { bodies = {}, words = {}, weighted = {}, ranges = {}, again = {}, points = {},
    large = large, wet = wet, has = {} }
  local at = place(draw, dim, 1)
  for k = 1, count do
    local body
    body, out.words[k], out.weighted[k], out.ranges[k], out.again[k] = robot(draw, dim, "robot" .. k, at,
      { large = large and k == 1, law = wet and k == 2 and "fluid" or nil, cables = cables })
    out.bodies[k], at = body, place(draw, dim, k + 1)
    local right = 0
    for _, what in ipairs { "cables", "surfaces" } do
      out.has[what] = out.has[what] or #body[what] > 0
    end
    for _, x in ipairs(body.position:totable()) do
      out.points[#out.points + 1] = x
      right = math.max(right, x[1])
    end
    if near then
      at[1] = right + draw:uniform(0.3, 1) * DX
      out.words[k] = k == 2 and out.words[k] .. ", near" or out.words[k]
    end
  end
  return out
end

local flows = { fluid = true, von_mises = true, drucker_prager = true, snow = true }

-- The other formulation, for some of the scenes that it takes: bodies that do not flow or relax, with F as it is; and
-- whether surfaces push each other apart, as those of two bodies do. It draws by itself, so that other scenes stay as
-- they were.
local function formulation(seed, made)
  for _, body in ipairs(made.bodies) do
    local law = body.laws[1]
    if flows[law.law] or law.branches > 0 or (law.f_bar or 0) > 0 then return "updated" end
  end
  if not new_draw(seed + 1e6):chance(0.4) then return "updated" end
  if #made.bodies == 1 and not new_draw(seed + 3e6):chance(0.3) then return "total_lagrangian" end
  local draw = new_draw(seed + 4e6)
  return "total_lagrangian", draw:chance(0.5) and { friction = draw:uniform(0.1, 0.8) } or true
end

-- Formulation and scheme of implicit steps. Total Lagrangian ones refuse collisions, and so two bodies, which may meet,
-- and pressure on open surfaces.
local function implicitly(seed, made)
  if #made.bodies > 1 or made.has.surfaces or formulation(seed, made) == "updated" then return "updated" end
  return "total_lagrangian", new_draw(seed + 6e6):chance(0.5) and "midpoint" or "backward_euler"
end

-- Does a body that is elastic, the first one, have a grid of its own shape beside a second one of any kind, which stays
-- on that of the world, in explicit steps? The second one then has neither cables nor chambers.
local function by_robot(seed, made, implicit)
  local one, other = made.bodies[1], made.bodies[2]
  if implicit or not other or #other.cables > 0 or #other.surfaces > 0 then return false end
  local law = one.laws[1]
  if flows[law.law] or law.branches > 0 or (law.f_bar or 0) > 0 or (other.laws[1].f_bar or 0) > 0 then return false end
  return new_draw(seed + 5e6):chance(0.5)
end

-- Transfers that keep unresolved motion, for a third of explicit steps on the grid of the world.
local function transfer(seed, fields)
  local draw = new_draw(seed + 2e6)
  if fields.integrator or fields.formulation ~= "updated" or not draw:chance(0.33) then return "apic" end
  return { decay = draw:chance(0.3) and "auto" or draw:uniform(2, 200) }
end

---@param seed integer
---@return { words: string, world: cq.World, params: table, loss: fun(p: table): cq.Tensor }
function scene.make(seed)
  local draw = new_draw(seed)
  local dim, batch = draw:chance(0.6) and 2 or 3, draw:chance(0.2) and 2 or 1
  local step = stepping(draw, dim)
  local made = bodies_of(draw, dim, step.cables)
  -- where there are any
  if step.cables and not made.has.cables then step.cables = "lagged" end
  if step.pressure and not made.has.surfaces then step.pressure = "lagged" end
  if step.cables then step.formulation, step.scheme = implicitly(seed, made) end
  local words, weighted, ranges = made.words, made.weighted, made.ranges
  local list, wall_words = walls.draw(draw, made.points, dim, DX)
  local steps = step.steps
  local fields = {
    cells = made.large and { 40, 40 } or dim == 2 and { 16, 14 } or { 16, 14, 12 }, dx = DX,
    dt = step.dt, substeps = step.substeps, pressure_smoothing = made.wet and draw:chance(0.5) and 0.3 / step.dt or nil,
    gravity = draw:list(dim, -3, 1), walls = #list > 0 and list or nil, precision = "float64",
    integrator = step.cables and cq.Implicit { tolerance = 1e-12, adjoint_tolerance = 1e-12, newton_iterations = 200,
      pressure = step.pressure, cables = step.cables, scheme = step.scheme } or nil,
  }
  for k, body in ipairs(made.bodies) do fields[k] = body end
  fields.formulation, fields.collisions = formulation(seed, made)
  if step.cables then fields.formulation, fields.collisions = step.formulation, nil end
  local both = by_robot(seed, made, step.cables)
  if both then
    fields.formulation, fields.collisions, fields[1] = "updated", nil, made.again[1] "total_lagrangian"
  end
  fields.transfer = transfer(seed, fields)
  local world = cq.World(fields)
  local params = { world = world_params(draw, dim, #list, batch), bodies = {} }
  local rubs = false
  for _, wall in ipairs(list) do rubs = rubs or wall.kind == "friction" end
  if not rubs then params.world.friction = nil end     -- it is drawn all the same, so that scenes stay as they were
  for k, body in ipairs(world.robots) do
    params.bodies[k] = body_params(draw, body, weighted[k], ranges[k], batch, step.cables)
  end
  local controller, control_word
  params.control, controller, control_word = control(draw, world, params.bodies, steps, batch)
  local watched = draw:pick { "state", "signals", "none", "none" }
  local cost = watched == "state" and running or watched == "signals" and control_word ~= "no signals" and signals_only
    or nil
  local record = draw:chance(0.3) and function(s) return s:center(world.robots[1]) end or nil
  local memory = draw:chance(0.25) and steps > 4 and world:memory_plan { steps = steps, batch = batch } or nil
  memory = memory and math.floor(3.5 * memory.slice_bytes + memory.record_bytes) * batch
  local weigh = felt(draw)
  -- every third scene in two rollouts, of which the second goes on from the state of the first
  local first = seed % 3 == 0 and steps > 1 and 1 + math.floor(seed / 3) % (steps - 1) or 0
  -- {scenes, ...} could be of control steps where there are as many of them, in one of the rollouts; rank: of a scene's
  -- own shape
  local function of_scenes(v, rank, count)
    if not v or #v:shape() <= rank or (batch ~= first and batch ~= steps - first) then return v end
    local shape = v:shape()
    table.insert(shape, 2, count)
    return v:unsqueeze(2):expand(shape)
  end
  -- A value of walls alone, of rank `rank`, for each scene where there are as many of these, or it might be of scenes.
  local function of_walls(v, rank)
    if not v or batch == 1 or #list ~= batch or v.rank ~= rank then return v end
    return v:unsqueeze(1):expand { batch, unpack(v:shape()) }
  end
  local function loss(p)
    local own = {}
    for k, body in ipairs(world.robots) do own[k] = next(p.bodies[k]) and body:with(p.bodies[k]) or body end
    local act, observer = controller(p.control)
    if first > 0 and observer and observer.acceleration then
      -- the velocity before the second rollout is then handed on
      local own_observer = observer
      observer = function(state, hidden) return own_observer:observe(state, hidden) end
    end
    local function roll_on(from, count)
      return world:rollout {
        robot = not from and own or nil, from = from, steps = count, batch = not from and batch > 1 and batch or nil,
        controller = act, observer = observer, running = cost, record = record, memory = memory,
        gravity = of_scenes(p.world.gravity, 1, count), friction = of_walls(p.world.friction, 1),
        wall_velocity = of_scenes(of_walls(p.world.wall_velocity, 2), 2, count),
      }
    end
    local begun = first > 0 and roll_on(nil, first) or nil
    local roll = roll_on(begun and begun.state, steps - first)
    local s = roll.state
    local sum = weigh(s:positions(), "x") + 0.1 * weigh(s:velocities(), "v") + 0.1 * weigh(s:deformations(), "F")
      + s:moment(world.robots[1]):sum()
    for k, body in ipairs(world.robots) do sum = sum + 0.1 * weigh(s:gather(body, "energy_density"), "psi" .. k) end
    for _, body in ipairs(world.robots) do
      for _, surface in ipairs(body.surfaces) do sum = sum + 30 * s:cavity_volume(surface.name, body):sum() end
    end
    for k, part in ipairs { roll, begun } do
      if part.running then sum = sum + part.running:sum() end
      if part.record then sum = sum + weigh(part.record, "record" .. k) end
    end
    return sum
  end
  for _, word in ipairs(wall_words) do words[#words + 1] = word end
  words[#words + 1] = control_word
  if batch > 1 then words[#words + 1] = "batch" end
  if memory then words[#words + 1] = "checkpoints" end
  if first > 0 then words[#words + 1] = ("goes on after %d"):format(first) end
  if both then words[#words + 1] = "the first body total Lagrangian" end
  if fields.formulation ~= "updated" then words[#words + 1] = "total Lagrangian" end
  if fields.collisions then
    words[#words + 1] = fields.collisions == true and "collisions" or "collisions with friction"
  end
  if fields.transfer ~= "apic" then words[#words + 1] = "keeps unresolved motion" end
  local how = not step.cables and "" or (" implicit, pressure %s, cables %s"):format(step.pressure, step.cables)
  return { words = ("%dD, %d x %d%s: %s"):format(dim, steps, step.substeps, how, table.concat(words, "; ")),
    world = world, params = params, loss = loss }
end

return scene
