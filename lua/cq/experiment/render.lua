-- render: a rollout once more, drawn as it goes on: a film, its last state, or several moments of it in one picture.
local atomic_file = require "cq.base.atomic_file"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local changed = require "cq.experiment.changed"
local message = require "cq.base.message"
local option = require "cq.option"
local place = require "cq.base.place"
local rollouts = require "cq.rollout"
local wall_motion = require "cq.rollout.wall_motion"
local parts = require "cq.picture.parts"
local visuals = require "cq.picture.visuals"
local of_particles = require "cq.state.values"

local render = {}

---@class rollout.render.def
---@field fps? number            frames in a second of film; if they are closer than control steps, several show the
---  same state
---@field speed? number          simulated time in a second of film
---@field width? integer         even in films [pixel]
---@field height? integer        even in films; by the shape of the world unless given [pixel]
---@field samples? integer       along each side of a pixel; 2 in films and 3 in pictures unless given
---@field follow? boolean        the camera goes with the robot, smoothly
---@field zoom? number           above 1 nearer
---@field camera? cq.Picture.camera.def|fun(time: number, centre: number[]): cq.Picture.camera.def   in 3D: { eye =, target =,
---  field_of_view? }, or a function of time and of the robots' centre that gives it; all of the robots unless given
---@field colour? string|cq.Tensor|run.render.colour.def|fun(state: cq.State, u: cq.Tensor?): cq.Tensor   colours of particles by a
---  number, with a legend: a cq.Quantity that is a number, as "von_mises"; "signal"; a constant, as "young"; a tensor
---  or a function that gives a number for each particle of the world {n}; or { by = "von_mises", label = "...", unit =
---  "kPa", range = { 0, 20 } }, or { by = ..., categories = { "left", "right" } }, where the number says which. Without
---  a range the scale holds all that the film shows, for which the rollout is simulated twice
---@field opacity? string|cq.Tensor|fun(state: cq.State, u: cq.Tensor?): cq.Tensor   how opaque each particle is, 0 to 1, by
---  what colour takes
---@field arrows? "velocity"|run.render.arrows.def|fun(state: cq.State, u: cq.Tensor?): (cq.Tensor|number[][]), (cq.Tensor|number[][])?
---  vectors {n, dim} of the world's particles, or places and vectors {k, dim}, as of forces; or { by =
---  ..., scale =, label =, unit = }
---@field goals? table|fun(state: cq.State, u: cq.Tensor?): table   places { { x, y }, ... }, or { at =, radius =, colour = }, that are
---  drawn as translucent balls; that of the objective unless given, and {} for none
---@field trail? boolean         the way of the robots' centre; where the camera follows unless given
---@field stills? number[]       times of several moments in one picture (.png) [time]
---@field layout? "auto"|"together"|"apart"   stills: in one scene, earlier ones paler, or each in a picture of its own; "auto": by
---  whether the robots have gone far enough to be seen beside each other
---@field keep_frames? boolean   keep the frames beside the film
---@field label? string|fun(state: cq.State): string|number|string[]   a line at the top left, above the time; or what a function
---  gives for each frame, alone

-- The checkers, by name, of the fields that all drawing functions of a rollout take.
local function drawing()
  return {
    fps = is.number { above = 0, max = 240, default = 30 },
    speed = is.number { above = 0, default = 1 },
    width = is.integer { min = 64, max = 8192, default = 1280 },
    height = is.integer { min = 64, max = 8192, optional = true },
    samples = is.integer { min = 1, max = 4, optional = true },
    follow = is.boolean { optional = true },
    zoom = is.number { above = 0, default = 1 },
    camera = is.any { optional = true },
    keep_frames = is.boolean { default = false },
    label = is.any_of { is.string(), is.callable(), optional = true },
    colour = is.any { optional = true },
    opacity = is.any { optional = true },
    arrows = is.any { optional = true },
    goals = is.any { optional = true },
    trail = is.boolean { optional = true },
    stills = is.list(is.number { min = 0 }, { min = 1, optional = true }),
    layout = is.one_of { "auto", "together", "apart", default = "auto" },
  }
end

-- Adds the fields of drawing to a definition's, in place, and returns them.
local function with_drawing(fields)
  for name, kind in pairs(drawing()) do fields[name] = kind end
  return fields
end

---@class run.render.def : rollout.render.def, run.changes.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them

---@class world.render.def : rollout.render.def
---@field steps? integer          control steps; or duration; of a picture without either it is the start
---@field duration? number        a multiple of the world's dt [time]
---@field robot? cq.Robot|cq.Robot[]  variants of the world's robots, from robot:with
---@field controller? any         of cq.Controller, or the user's own
---@field observer? any           of cq.Observer, or the user's own
---@field contact? boolean        read what walls and pins give, for state:contact in colour, arrows and label
---@field gravity? any            as world:rollout takes it
---@field damping? any            as world:rollout takes it
---@field friction? any           as world:rollout takes it
---@field wall_velocity? any      as world:rollout takes it

local specs = {
  ["run:render"] = is.define("run:render", changed.fields(with_drawing {
    params = is.any_of { is.one_of { "best", "last" }, is.tensor(), is.table(), default = "best" },
  })),
  ["rollout:render"] = is.define("rollout:render", with_drawing {}),
  ["world:render"] = is.define("world:render", rollouts.fields(with_drawing {
    steps = is.integer { min = 0, max = 2 ^ 31 - 1, optional = true },
    duration = is.number { above = 0, optional = true },
  })),
}

local endings = { png = true, mp4 = true, mkv = true, webm = true, gif = true }

-- Raises an error if a film, which def describes, has an odd width or height, which encoders of videos refuse.
local function require_even(def, what)
  for _, side in ipairs { "width", "height" } do
    if def[side] and def[side] % 2 == 1 then
      is.fail("%s: %s of a film must be even, got %d", what, side, def[side])
    end
  end
end

-- Raises an error if the times of stills do not rise.
local function require_rising(stills, what)
  for k = 2, #stills do
    if stills[k] <= stills[k - 1] then
      is.fail("%s: stills must be times that rise, got %s after %s", what, text.number(stills[k]),
        text.number(stills[k - 1]))
    end
  end
end

-- A list of the control steps after which stills are drawn: each the first whose state is less than half a step before
-- its time. Errors: a time after the end; two in one control step.
local function steps_of_stills(stills, run, what)
  local out, dt = {}, run.world.control_dt
  for k, time in ipairs(stills) do
    out[k] = math.floor(time / dt + 0.5)
    if out[k] > run.steps then
      is.fail("%s: a still is wanted at time %s, the run ends at %s", what, text.number(time),
        text.number(run.steps * dt))
    elseif out[k] == out[k - 1] then
      is.fail("%s: stills %s and %s are closer than a control step, %s", what, text.number(stills[k - 1]),
        text.number(time), text.number(dt))
    end
  end
  return out
end

---Are pictures left out: by --render no, or on all ranks but the first?
---@return boolean
function render.is_left_out() return option.program.follows or option.get("render", true) == false end

-- Do colours, arrows or cables need a scale that only the whole film determines? Then it is simulated twice.
local function is_open(options, world)
  local coloured = options.read_colour and not options.scale.range and not options.scale.categories
  return coloured or options.read_arrows ~= nil or #world.layout.cable.list > 0
end

-- Leaves the colours of signals out, and says so, in a world in which no particle follows one: all would be of 0.
local function leave_out_idle_signals(options, world)
  if not visuals.is_signal(options.colour) or visuals.has_followers(world) then return end
  message.note("%s: no particle of this world follows a signal; colours are those of groups", options.what)
  options.colour, options.read_colour, options.scale = nil, nil, {}
end

---Completes drawing options before any simulation: still_steps, the control steps of stills, and `open`, whether a
---first rollout must find the scales of a film; colour is removed where it is "signal" and no particle follows one.
---Errors: stills beyond the end, or two in one control step.
---@param options table           from render.options
---@param run { steps: integer, world: cq.World }   what will be simulated
---@return table options
function render.plan(options, run)
  leave_out_idle_signals(options, run.world)
  options.still_steps = options.stills and steps_of_stills(options.stills, run, options.what)
  options.open = is_open(options, run.world)
  return options
end

---Checks the path and the options of a drawing function and returns the options completed, with functions read_colour,
---read_opacity, read_arrows and read_goals of a state. Errors: an ending that no picture or film has; stills in a
---film, or a film of odd width or height; unknown fields.
---@param path string
---@param given? run.render.def|world.render.def|rollout.render.def
---@param goals? number[][]       places to show unless the options give some
---@param what? "run:render"|"rollout:render"|"world:render"   run:render unless given
---@return table
function render.options(path, given, goals, what)
  what = what or "run:render"
  is.argument(what, "path", is.string(), path)
  visuals.name = what
  if not endings[path:match "%.(%w+)$"] then
    is.fail("%s: path must end in .png, .mp4, .mkv, .webm or .gif, got %s", what, text.describe(path))
  end
  local def = specs[what](given or {})
  def.what = what
  if what == "run:render" then def.changes = changed.take(def) end
  def.still = path:match "%.png$" ~= nil
  if def.stills and not def.still then
    is.fail("%s: stills are moments in one picture, so the path must end in .png, got %s", what, text.describe(path))
  end
  if def.still and def.keep_frames then
    is.fail("%s: keep_frames is of films, and has no effect on a picture, %s", what, text.describe(path))
  elseif not def.stills and (given or {}).layout ~= nil then
    is.fail("%s: layout is of stills, and has no effect without them", what)
  end
  require_rising(def.stills or {}, what)
  if not def.still then require_even(def, what) end
  def.read_colour, def.scale = visuals.colour(def.colour)
  def.read_opacity, def.read_arrows, def.read_goals = visuals.opacity(def.opacity), visuals.arrows(def.arrows),
    visuals.goals(def.goals or goals)
  return def
end

local of_label = is.any_of { is.string(), is.number { infinite = true }, is.list(is.string()), optional = true }

-- The text on a frame: what the user's function of the state gives, or the user's text with the time, or the time.
local function label_of(options, state)
  if type(options.label) == "function" then
    local given = options.label(state)
    if type(given) == "number" then return text.number(given) end        -- also nan, as 0/0 at the start
    return is.argument(options.what, "the result of label", of_label, given)
  end
  local time = ("t = %.4g"):format(state.time)
  if state.time == 0 or state.time >= 0.1 then time = ("t = %.2f"):format(state.time) end
  return options.label and { options.label, time } or time
end

-- Evaluates f(state, u), which reads the drawing option `name`; an error in a function of the user's names the option
-- and the control step. nil: no f.
local function read(options, name, f, state, u)
  if not f then return nil end
  local roll, given = state.roll, options[name]
  if type(given) == "table" and not T.is_tensor(given) and given.by ~= nil then given = given.by end
  roll.phase = text.is_callable(given) and not T.is_tensor(given) and ("%s of %s"):format(name, options.what) or nil
  local out = f(state, u)
  roll.phase = nil
  return out
end

-- The quantities of a state that share a scale over the film: { position, value (of colours), arrows, cables (their
-- tensions) }.
local function scaled(options, state, u)
  local position = state:positions()
  return {
    position = position, value = read(options, "colour", options.read_colour, state, u),
    arrows = read(options, "arrows", options.read_arrows, state, u), cables = visuals.cables(state, u, position),
  }
end

-- All that a picture shows of one state, copied so that the state may change afterwards: what `scaled` returns, and
-- deformation, actuation, time, opacity, goals, wall_offset and label.
local function moment(options, state, u)
  local out = scaled(options, state, u)
  out.deformation, out.actuation, out.time = state:deformations(), visuals.actuation(state, u), state.time
  out.opacity = read(options, "opacity", options.read_opacity, state, u)
  out.goals = read(options, "goals", options.read_goals, state, u)
  out.wall_offset = wall_motion.way(state, 0)
  out.label = read(options, "label", function() return label_of(options, state) end, state, u)
  return out
end

local LAG = 0.12           -- [seconds of film] that the camera is late

-- The picture scene (cq.picture) of a rollout, from any of its states. size: { width, height } of the picture [pixel];
-- nil takes both from the options.
local function scene_of(state, options, size)
  local world = state.world
  local rest, volume = of_particles.undeformed(state)
  local scale, _, red = options.scale, visuals.red(state)
  scale.floor = scale.floor or visuals.floor(options.colour, world)
  if red and visuals.says_red(options.colour) then scale.label = "signal; red " .. red end
  return require("cq.picture").scene {
    domain = world.domain.size, volume = volume, rest = rest,
    groups = parts.groups(world), drawn = parts.drawn(world), walls = world.walls,
    dx = world.dx, bodies = parts.bodies(world, options.read_opacity ~= nil), pinned = parts.pinned(world),
    width = size and size.width or options.width, height = size and size.height or options.height,
    samples = options.samples or options.still and 3 or 2, follow = options.follow, zoom = options.zoom,
    camera = options.camera,
    actuation_label = red and "actuation; red " .. red,
    scale = scale, lag = LAG * options.speed, fit = options.still, trail = options.trail,
  }
end

-- 1.25 times the height over the width of the region that 2D bodies cover at some moments. moments: what `moment`
-- returns. Places that are not finite are left out.
local function aspect_of(moments)
  local lower, upper = { math.huge, math.huge }, { -math.huge, -math.huge }
  for _, one in ipairs(moments) do
    local x = one.position:data()
    for k = 0, one.position.count - 1 do
      if x[k] - x[k] == 0 then
        lower[k % 2 + 1], upper[k % 2 + 1] = math.min(lower[k % 2 + 1], x[k]), math.max(upper[k % 2 + 1], x[k])
      end
    end
  end
  return 1.25 * (upper[2] - lower[2]) / math.max(upper[1] - lower[1], 1e-9)
end

local LOWEST = 64                 -- [pixel] that a picture may be high

-- The height of a picture of this width that shows all bodies at these moments [pixel]. least: smallest height over
-- width, 0.36 for nil. In 3D three quarters of the width; without `least` nil, which leaves it to the scene.
local function height_of(world, moments, width, least)
  if world.dim == 3 then return least and math.max(LOWEST, math.floor(width * 3 / 8) * 2) or nil end
  local share = math.min(math.max(aspect_of(moments), least or 0.36), 0.75)
  return math.max(LOWEST, math.floor(width * share / 2) * 2)
end

-- Is this state at a time already, or the nearest one before it?
local function is_due(state, time) return state.time + 0.5 * state.world.control_dt > time end

-- ---- films ----------------------------------------------------------------------------------------------------------

-- Runs the rollout, calls frame(state, u, count) with each state that a film shows and the number of its frames that
-- show it, more than one where frames are closer than control steps; returns what simulate returns.
local function each_frame(options, simulate, frame)
  local period, due = options.speed / options.fps, nil
  return simulate(function(state, u)
    state.roll.phase = nil           -- what fails here is no on_step of the user's
    due = due or state.time
    -- each frame has the state that is nearest to its time; the film ends with the rollout
    local dt, count = state.world.control_dt, 0
    local until_time = state.time + 0.5 * (state.index == state.roll.steps and math.min(dt, period) or dt)
    while due < until_time do due, count = due + period, count + 1 end
    if count > 0 then frame(state, u, count) end
  end)
end

-- Draws a video and returns its path; an error discards the video and is raised again. simulate(on_step) runs the
-- rollout and calls on_step(state, signals) as it goes; it runs twice where the whole film determines a scale.
local function film(path, options, simulate)
  local scene
  local video = require("cq.picture").video { path = path, fps = options.fps, keep_frames = options.keep_frames }
  -- Simulates, and calls frame(state, signals, count) with each state that the video shows in `count` frames.
  local function frames(frame)
    each_frame(options, simulate, function(state, u, count)
      scene = scene or scene_of(state, options)
      frame(state, u, count)
    end)
  end
  local fine, problem = pcall(function()
    -- all frames have one scale, that of the most that any of them shows
    if options.open then frames(function(state, u) scene:include_in_scales(scaled(options, state, u)) end) end
    frames(function(state, u, count)
      local picture = scene:frame(moment(options, state, u))
      for _ = 1, count do video:add(picture) end
    end)
  end)
  if not fine then
    video:discard()
    error(problem, 0)
  end
  return video:close()
end

-- ---- pictures -------------------------------------------------------------------------------------------------------

-- How wide all bodies together are in x at one moment [length].
local function width_of(one)
  local x = one.position:slice(1, 1, 2)
  return (x:max() - x:min()):item()
end

-- Do the bodies move so far along x between consecutive moments that they can stand side by side in one picture?
local function go_far(moments)
  for k = 2, #moments do
    local way = (moments[k].position - moments[k - 1].position):mean { 1 }
    -- one that is held may bend to where it is wide
    local wide = math.max(width_of(moments[k - 1]), width_of(moments[k]))
    if math.abs(way:data()[0]) < 0.55 * wide then return false end
  end
  return true
end

local NARROWEST = 200             -- [pixel] that one of several pictures beside each other is wide, where they can be

-- A canvas of several moments, each in a picture of its own, in rows and columns. state: any of the rollout.
local function panels(state, options, moments)
  local canvases, world = require "cq.picture.canvas", state.world
  -- wide ones below each other
  local count, strip = #moments, world.dim == 2 and aspect_of(moments) < 0.45
  local gap = 6
  local columns = strip and 1 or math.min(count, count == 4 and 2 or 3)
  columns = math.max(1, math.min(columns, math.floor((options.width + gap) / (NARROWEST + gap))))
  local rows = math.ceil(count / columns)
  local wide = math.max(64, math.floor((options.width - (columns - 1) * gap) / columns))
  local high = options.height and math.floor((options.height - (rows - 1) * gap) / rows)
    or height_of(world, moments, wide, 0.2)
  local scene = scene_of(state, options, { width = wide, height = math.max(64, high) })
  scene.trail, scene.legend = false, false
  -- the scale of the colours and what is seen are those of all of them, and what the colours mean stands above
  for _, one in ipairs(moments) do scene:include_in_scales(one) end
  scene:frame(moments[count])
  local head = math.floor(scene:explain(canvases.new { width = columns * (wide + gap) - gap, height = 300,
    samples = 1 }))
  if head < 30 then head = 0 end
  local sheet = canvases.new {
    width = columns * (wide + gap) - gap, height = head + rows * scene.height + (rows - 1) * gap,
    samples = scene.samples, background = "#ffffff",
  }
  if head > 0 then scene:explain(sheet) end
  for k, one in ipairs(moments) do
    sheet:paste(scene:frame(one), ((k - 1) % columns) * (wide + gap),
      head + math.floor((k - 1) / columns) * (scene.height + gap))
  end
  return sheet
end

-- A canvas of one moment, or of several in one picture, where earlier ones are paler and lose their arrows, in place.
-- state: any of the rollout; way: centres of the bodies over time, { centre, time } each, for the trail.
local function together(state, options, moments, way)
  local scene = scene_of(state, options,
    { width = options.width, height = options.height or height_of(state.world, moments, options.width) })
  for _, point in ipairs(way) do scene:pass(point.centre, point.time) end
  local last, times = moments[#moments], {}
  if #moments > 1 then
    last.before = {}
    for k, one in ipairs(moments) do
      times[k] = ("%.4g"):format(one.time)
      if k < #moments then last.before[k], one.arrows = one, nil end
    end
    last.label = type(last.label) == "table" and last.label or { last.label }
    last.label[#last.label] = "t = " .. table.concat(times, ", ")
  end
  return scene:frame(last)
end

---Simulates, and draws the last state or the moments that options.stills asks for, in one picture.
---@param options table            from render.plan
---@param simulate fun(on_step: fun(state: cq.State, u: cq.Tensor?)): cq.Rollout
---@return cq.Canvas
function render.picture(options, simulate)
  local moments, way, due, period, seen = {}, {}, nil, options.speed / options.fps, nil
  simulate(function(state, u)
    state.roll.phase, seen = nil, state
    local last = state.index == state.roll.steps
    due = due or state.time
    -- the trail goes through where frames of a film would be
    if is_due(state, due) and not last then
      while is_due(state, due) do due = due + period end
      way[#way + 1] = { centre = state:center(state.world.robots):mean { 1 }:totable(), time = state.time }
    end
    local is_wanted = last
    if options.stills then is_wanted = state.index == options.still_steps[#moments + 1] end
    if is_wanted then moments[#moments + 1] = moment(options, state, u) end
  end)
  local apart = options.layout == "apart" or options.layout == "auto" and #moments > 1 and not go_far(moments)
  return apart and #moments > 1 and panels(seen, options, moments) or together(seen, options, moments, way)
end

-- Writes a rollout's last state, or several moments of it, as a picture; returns the path.
local function still(path, options, simulate)
  local problem = not place.is_left_out() and atomic_file.problem(path)       -- told before the simulation
  if problem then is.fail("%s: cannot write '%s': %s", options.what, path, problem) end
  render.picture(options, simulate):write(path)
  return path
end

---Draws a rollout into a film, or, when the path ends in .png, into a picture of its last state or of several moments.
---@param path string
---@param options table            from render.plan
---@param simulate fun(on_step: fun(state: cq.State, u: cq.Tensor?)): cq.Rollout
---@return string path             of the film, of the picture, or of the folder of frames
function render.film(path, options, simulate)
  local result = (options.still and still or film)(path, options, simulate)
  message.note("%s", result)
  return result
end

return render
