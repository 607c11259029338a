-- replay: a rollout once more, drawn as it goes on.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local message = require "cq.base.message"
local states = require "cq.state"
local cables = require "cq.actuator.cable"

local replay = {}

-- signal of each particle's actuators, -1 to 1, weighed
local function actuation_of(world, weights, u)
  local layout = world.layout
  local stresses, arrays = layout.stress.stresses, layout.arrays
  if #stresses == 0 or not u then return nil end
  local out = T.zeros { world.particle_count }
  local data, signal, weight = out:data(), u:data(), weights:data()
  for e = 0, layout.stress.entry_count - 1 do
    local p, stress = arrays.particle[e], stresses[arrays.actuator[e] + 1]
    data[p] = data[p] + weight[e] * signal[stress.signal]
  end
  for p = 0, world.particle_count - 1 do data[p] = math.max(-1, math.min(1, data[p])) end
  return out
end

-- groups of all robots, as the picture colours them: those of the shapes
local function groups_of(world)
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

-- ---- colours by a number ------------------------------------------------------------------------------------------------

local shown = { "von_mises", "energy_density", "jacobian", "speed", "kinetic_energy" }

---@class run.render.colour.def : cq.Picture.scale.def
---@field by string|fun(state: cq.State): cq.Tensor   a quantity, or a function that gives a number for each particle of the world {n}

local colour_spec = is.define("run:render colour", {
  by = is.any_of { is.one_of(shown), is.callable() },
  label = is.string { optional = true }, unit = is.string { optional = true }, range = is.vector { size = 2, optional = true },
})

-- what is shown, with the scale of it
local function colours_of(given)
  if not given then return nil, {} end
  if type(given) == "string" or type(given) == "function" then given = { by = given } end
  local def = colour_spec(given)
  local info = states.quantity(def.by)
  local scale = { label = def.label or info and (info.name:gsub("_", " ")) or nil, unit = def.unit or info and info.unit, range = def.range }
  if not info then return def.by, scale end
  return function(state) return state:gather(nil, info.name) end, scale
end

local function values_of(by, state)
  local values = T.as_tensor(by(state))
  local n = state.world.particle_count
  if values.rank ~= 1 or values:size(1) ~= n then
    is.fail("run:render: colour must give a number for each of the %d particles, got a tensor {%s}", n, table.concat(values:shape(), ", "))
  end
  return values
end

local spec = is.define("run:render", {
  fps = is.number { above = 0, max = 240, default = 30 },
  speed = is.number { above = 0, default = 1 },
  width = is.integer { min = 64, max = 8192, default = 1280 },
  height = is.integer { min = 64, max = 8192, optional = true },
  samples = is.integer { min = 1, max = 4, default = 2 },
  follow = is.boolean { optional = true },
  zoom = is.number { above = 0, default = 1 },
  camera = is.table { optional = true },
  keep_frames = is.boolean { default = false },
  label = is.any_of { is.string(), is.callable(), optional = true },
  colour = is.any { optional = true },
  which = is.any_of { is.one_of { "best", "last" }, is.instance "cq.Topology.Solid", default = "best" },
})

local endings = { png = true, mp4 = true, mkv = true, webm = true, gif = true }

---Checks the path and the options of run:render.
---@return table
function replay.options(path, given)
  if not endings[path:match "%.(%w+)$"] then
    is.fail("run:render: path must end in .png, .mp4, .mkv, .webm or .gif, got %s", text.describe(path))
  end
  return spec(given or {})
end

local function label_of(options, state)
  if type(options.label) == "function" then return options.label(state) end
  local time = ("t = %.2f"):format(state.time)
  return options.label and { options.label, time } or time
end

---Draws a rollout into a film, or into a PNG of its last state when the path ends in .png.
---@param world cq.World
---@param path string
---@param options table            from replay.options
---@param simulate fun(watch: fun(state: cq.State, u: cq.Tensor?)): cq.Rollout
---@return string path             of the film, of the picture, or of the folder of frames
function replay.film(world, path, options, simulate)
  local Picture = require "cq.picture"
  local by, scale = colours_of(options.colour)
  local scene = Picture.scene {
    domain = world.domain.size, volume = world.layout.base.volume, groups = groups_of(world), walls = world.walls, dx = world.dx,
    width = options.width, height = options.height, samples = options.samples, follow = options.follow, zoom = options.zoom,
    camera = options.camera, scale = scale,
  }
  local still = path:match "%.png$"
  local video = not still and Picture.video { path = path, fps = options.fps, keep_frames = options.keep_frames }
  local period, due, canvas = options.speed / options.fps, 0, nil
  local fine, problem = pcall(simulate, function(state, u)
    -- half a control step early is near enough; a picture of its own shows the very last state
    local last = still and state.step == state.roll.steps
    if state.time + 0.5 * world.control_dt < due and not last then return end
    while due <= state.time + 0.5 * world.control_dt do due = due + period end
    local set = state.roll.set.actuation_weight
    local weights = set and set.tensor or world.layout.base.actuation_weight
    local position = state:positions()
    canvas = scene:frame {
      position = position, deformation = state:deformations(), actuation = actuation_of(world, weights, u),
      value = by and values_of(by, state) or nil,
      cables = cables.paths(world, position:data()), label = label_of(options, state),
    }
    if video then video:add(canvas) end
  end)
  if not fine then
    if video then video:discard() end
    error(problem, 0)
  end
  if still then
    canvas:write(path)
    message.note("%s", path)
    return path
  end
  local result = video:close()
  message.note("%s", result)
  return result
end

return replay
