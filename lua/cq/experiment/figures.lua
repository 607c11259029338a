-- figures: a run on one page: what was designed, how it moves, what it pushes on, and how it was found.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local canvases = require "cq.picture.canvas"
local history = require "cq.picture.history"
local host = require "cq.host"
local paint = require "cq.picture.paint"
local plot = require "cq.plot"
local raster = require "cq.picture.raster"
local evaluate = require "cq.experiment.evaluate"
local extracted = require "cq.experiment.extracted"
local render = require "cq.experiment.render"
local visuals = require "cq.picture.visuals"

local figures = {}

local GAP = 10                -- [pixel] between panels
local LOWEST = 200            -- [pixel] that a panel of curves is high
local SAMPLES = 2
local STILLS = 4
local WINDOW = 0.01           -- of the run: forces are means over twice as long, since impulses come in spikes
local REACH = 1.5             -- cells from a particle to the nodes at which a wall meets it

---@class run.figures.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them
---@field body? cq.Topology.Body   that was extracted from a design, in its place
---@field stills? number[]     times of the moments; four from the start to the end unless given [time]
---@field title? string        the objective, unless given
---@field width? integer       of the page [pixel]

figures.spec = is.define("run:figures", {
  params = evaluate.params_kind, body = is.instance { "cq.Topology.Body", optional = true },
  stills = is.list(is.number { min = 0 }, { min = 1, optional = true }),
  title = is.string { optional = true },
  width = is.integer { min = 800, max = 4096, default = 1680 },
})

-- ---- what walls give ------------------------------------------------------------------------------------------------

-- The mean of x over the control steps up to `half` before and after each, {steps, ...}; fewer at both ends.
local function smooth(x, half)
  local steps = x:size(1)
  local sums = T.concat({ T.zeros { 1, x.count / steps }, x:reshape { steps, x.count / steps }:cumsum(1) }, 1)
  local from, to, width = {}, {}, T.empty { steps, 1 }
  for i = 1, steps do
    from[i], to[i] = math.max(1, i - half), math.min(steps, i + half) + 1
    width:set(to[i] - from[i], i, 1)
  end
  return ((sums:gather(to, 1) - sums:gather(from, 1)) / width):reshape(x:shape())
end

-- The force of each wall over a run, for arrows and curves: { force {steps, walls, dim}, at {steps, walls, dim} the
-- centre of pressure, touched {steps, walls} the size of the normal impulse }; nil without walls, or if no contact was
-- read. All three are means over the control steps within WINDOW of the run before and after each. Centres are weighted
-- by the size of the normal impulse, whether the wall pushes or pulls.
function figures.forces(roll)
  local contact = roll.contact
  if not contact or not contact.impulse then return nil end
  local half = math.max(1, math.floor(WINDOW * roll.steps))
  local touched = contact.normal:abs():unsqueeze(3)
  return {
    force = smooth(contact.impulse, half) / roll.world.control_dt,
    at = smooth(contact.center * touched, half) / (smooth(touched, half) + 1e-30),
    touched = smooth(touched, half):squeeze(3),
  }
end

-- Arrows for the force of each wall after a control step, at its centre of pressure; where a wall pushes at one end and
-- pulls at the other, that centre may be anywhere, and the arrow begins beside the bodies. Returns a function of a
-- state, which gives places and vectors {k, dim} of the walls that are touched; one zero vector where none is.
function figures.arrows_of(found, world)
  return function(state)
    local at, vector, sides = {}, {}, nil
    for w = 1, state.index > 0 and #world.walls or 0 do
      if found.touched:get(state.index, w) > 0 then
        sides = sides or { state:positions():min(1) - REACH * world.dx, state:positions():max(1) + REACH * world.dx }
        at[#at + 1] = found.at[state.index][w]:maximum(sides[1]):minimum(sides[2]):totable()
        vector[#vector + 1] = found.force[state.index][w]:totable()
      end
    end
    if #at == 0 then at, vector = { T.zeros { world.dim }:totable() }, { T.zeros { world.dim }:totable() } end
    return at, vector
  end
end

local axes = { "x", "y", "z" }

-- The panel of forces of walls over time, a canvas: a curve for each wall and axis along which the force exceeds a
-- thousandth of the largest. found: what figures.forces returns; size: { width, height } [pixel].
local function force_panel(found, world, size)
  local most = found.force:abs():max():item()
  local series, time = {}, (T.arange(1, found.force:size(1)) * world.control_dt):totable()
  for w, wall in ipairs(world.walls) do
    for d = 1, world.dim do
      local y = found.force:slice(w, w, 2):slice(d, d, 3):flatten()
      local name = #world.walls == 1 and axes[d] or ("%s %s"):format(wall.name or "wall " .. w, axes[d])
      if y:abs():max():item() > 1e-3 * most then series[#series + 1] = { name = name, x = time, y = y } end
    end
  end
  if #series == 0 then series = { { x = time, y = found.force:slice(1, 1, 2):slice(1, 1, 3):flatten() } } end
  return plot { title = "force of the walls", series = series, x_label = "time", width = size.width,
    height = size.height }
end

-- ---- the body -------------------------------------------------------------------------------------------------------

-- A tensor {particle_count} of the world: the values of one robot's particles, and `rest` for all others.
local function spread(world, robot, values, rest)
  local out = T.full({ world.particle_count }, rest)
  for k = 1, robot.particle_count do out:set(values[k], robot.first + k) end
  return out
end

-- Names of the colours of actuators: none, actuator 1, ...
local function actuators_of(signals)
  local names = { "none" }
  for k = 1, signals do names[k + 1] = "actuator " .. k end
  return names
end

-- Opacity by density. In 3D, if any is above one half, those are opaque and others clear: a soft body hides all within.
local function opacity_of(density, dim)
  local solid = density:greater(0.5)
  return dim == 3 and solid:sum():item() > 0 and solid or density
end

-- How a design's body is drawn: { world, by {particle_count} the signal of each particle + 1 (1: none), categories: the
-- names of these, opacity {particle_count} where the density is not yet 0 or 1 }. def: completed by `subject`.
local function look_of(self, def)
  local solid = def.solid
  if solid then
    local which = {}
    for k, a in ipairs(solid.actuator) do which[k] = a + 1 end
    return { world = solid.world, by = spread(solid.world, solid.robot, which, 1),
      categories = actuators_of(solid.pulses:size(2)) }
  end
  local design = self.design
  local map = T.tape.pause(design.map, design, def.params.design)
  local own, which = map.shares:argmax(1):totable(), {}
  for k, a in ipairs(own) do which[k] = a <= design.signals and a + 1 or 1 end
  return { world = self.world, by = spread(self.world, design.robot, which, 1),
    opacity = spread(self.world, design.robot, opacity_of(map.density, self.world.dim):totable(), 1),
    categories = actuators_of(design.signals) }
end

-- The height of a panel of this width that shows the bodies of a world at rest, at most that of `size` [pixel]. In 3D
-- all of it.
local function design_height(world, size)
  if world.dim == 3 then return size.height end
  local rest = world.layout.base.position
  local extent = (rest:max(1) - rest:min(1)):totable()
  local share = math.max(0.5, 1.5 * extent[2] / math.max(extent[1], world.dx))
  return math.floor(math.min(size.height, share * size.width))
end

-- A canvas of the design at its start: opacity by density, colour by actuator. look: what look_of returns; size: {
-- width, height } [pixel], the height at most.
local function design_panel(self, def, look, size)
  local options = render.plan(render.options("design.png", {
    stills = { 0 }, zoom = 0.85, width = size.width, height = design_height(look.world, size), samples = SAMPLES,
    colour = { by = look.by, categories = look.categories }, opacity = look.opacity,
    label = function() return "design" end,
  }), { steps = 1, world = self.world })
  return render.picture(options, function(on_step) return def.simulate(on_step, 1) end)
end

-- A list of the times of the drawn moments [time]: as the user gave them, or evenly over the rollout; `begins`: the
-- first is the start.
local function moments(def, duration, begins)
  if def.stills then return def.stills end
  local out = {}
  for k = 1, STILLS do out[k] = begins and duration * (k - 1) / (STILLS - 1) or duration * k / STILLS end
  return out
end

-- A canvas of pictures at several times, with the forces of walls as arrows. look: what look_of returns, or nil.
local function stills_panel(self, def, look, width)
  local times = moments(def, self.steps * self.world.control_dt, look == nil)
  local forces = def.forces and { by = figures.arrows_of(def.forces, def.world), label = "force of a wall",
    colour = paint.force } or nil
  local options = render.plan(render.options("stills.png", {
    stills = times, layout = #times > 1 and "apart" or "auto", width = width, samples = SAMPLES,
    colour = visuals.has_followers(def.world) and "signal" or nil, opacity = look and look.opacity, arrows = forces,
  }), self)
  return render.picture(options, def.simulate)
end

-- ---- how it was found -----------------------------------------------------------------------------------------------

-- A canvas of the objective over the iterations of the run; nil where nothing was optimized. size: { width, height }
-- [pixel].
local function objective_panel(self, size)
  local folder = self.folder
  if not folder or not host.kind(folder .. "/history.csv") then return nil end
  local rows = require("cq.run").read_history(folder)
  if #rows == 0 then return nil end
  local _, _, has_task = history.column(rows, "task")
  local series = history.by_stage(rows, has_task and "task" or "loss", history.dropped_in(rows, folder))
  return plot { title = "objective", series = series, x_label = "iteration", width = size.width, height = size.height }
end

-- ---- the page -------------------------------------------------------------------------------------------------------

-- Appends a row of canvases, to be drawn side by side, to page.rows, and makes page.height larger by the tallest.
local function beside(page, row)
  page.rows[#page.rows + 1] = row
  local tallest = 0
  for _, panel in ipairs(row) do tallest = math.max(tallest, panel.height) end
  page.height = page.height + tallest + GAP
end

-- One canvas of two that are as wide, the second at the bottom of this height [pixel].
local function stacked(upper, lower, height)
  local sheet = canvases.new { width = upper.width, height = height, samples = SAMPLES }
  sheet:paste(upper, 0, 0)
  sheet:paste(lower, 0, height - lower.height)
  return sheet
end

-- One canvas of the page's rows of panels, from top to bottom.
local function assemble(page, width)
  local sheet = canvases.new { width = width, height = page.height + GAP, samples = SAMPLES }
  local y = GAP
  for _, row in ipairs(page.rows) do
    local x, tallest = GAP, 0
    for _, panel in ipairs(row) do
      sheet:paste(panel, x, y)
      x, tallest = x + panel.width + GAP, math.max(tallest, panel.height)
    end
    y = y + tallest + GAP
  end
  return sheet
end

-- A canvas with the page's title, in smaller letters where it would be wider than the page [pixel].
local function title_panel(title, width)
  local canvas, size = canvases.new { width = width, height = 26, samples = SAMPLES }, 13
  size = math.min(size, size * (width - 8) / math.max(1, canvas:text_width(title, size)))
  canvas:text { x = 4, y = 20, size = size, text = title }
  return canvas
end

-- Determines what a page of figures shows: completes its options `def` in place with body, solid (the body or nil),
-- world and params, and with def.simulate(on_step, steps), which runs their rollout and returns it.
local function subject(self, def)
  def.params = evaluate.params(self, def.params, "run:figures")
  if self.extracted then def.body = def.body or extracted.result(self, def.params) end
  def.solid, def.world = def.body, def.body and def.body.world or self.world
  -- Runs the rollout that the page shows; on_step gets each state.
  function def.simulate(on_step, steps)
    return self:rollout(def.params, { body = def.body, on_step = on_step, steps = steps })
  end
end

-- The title of the page as text: objective and share of solid particles.
local function title_of(def, loss)
  local solid = def.solid
  local body = solid and ("; %d of %d particles are solid"):format(#solid.particles, solid.total) or ""
  return ("objective %.4g%s"):format(loss, body)
end

-- Simulates once, and sets has_signals, signals {steps, signals}, forces (figures.forces) and title of the page's
-- options `def`.
local function measure(self, def)
  local asked = self.contact
  self.contact = asked or #def.world.walls > 0
  local fine, roll = pcall(def.simulate)
  self.contact = asked
  if not fine then error(roll, 0) end
  def.has_signals, def.signals, def.forces = roll.signals:size(2) > 0, roll.signals:copy(), figures.forces(roll)
  def.title = def.title or title_of(def, self:loss(roll):item())
  roll:release()
end

-- The panels over time, as a list of functions that draw signals and forces of walls: each takes { width, height }
-- [pixel] and returns a canvas.
local function times_of(self, def)
  local out = {}
  if def.has_signals then
    out[1] = function(size)
      return raster { values = def.signals, dt = self.world.control_dt, title = "signals", width = size.width,
        height = size.height }
    end
  end
  if def.forces then out[#out + 1] = function(size) return force_panel(def.forces, def.world, size) end end
  return out
end

-- A list of the canvases that `makers`, functions of { width, height }, draw side by side in a row of this width and
-- height [pixel].
local function row_of(makers, width, height)
  local size, out = { width = math.floor((width - (#makers - 1) * GAP) / #makers), height = height }, {}
  for k, make in ipairs(makers) do out[k] = make(size) end
  return out
end

---Simulates, and draws the page: title, design, pictures at several times, objective over iterations, signals and
---forces.
---@param self cq.Experiment
---@param def table          of figures.spec
---@return cq.Canvas
function figures.page(self, def)
  subject(self, def)
  measure(self, def)
  local inner, page = def.width - 2 * GAP, { rows = {}, height = 0 }
  local tall = math.max(LOWEST, math.floor(0.2 * def.width))
  local look = (def.solid or self.design) and look_of(self, def) or nil
  local share = look and math.floor(0.34 * inner) or 0
  local stills = stills_panel(self, def, look, inner - (look and share + GAP or 0))
  -- moments far higher than the design leave room for a wider one beside them, and for a curve below it
  local has_room = look and design_height(look.world, { width = share, height = stills.height }) < 0.5 * stills.height
  if has_room then
    share = math.floor(0.48 * inner)
    stills = stills_panel(self, def, look, inner - share - GAP)
  end
  local first = look and design_panel(self, def, look, { width = share, height = stills.height })
  local room = has_room and stills.height - first.height - GAP or 0
  local is_below = room >= LOWEST
  local found = objective_panel(self, { width = is_below and share or inner, height = is_below
    and math.min(room, 2 * tall) or tall })
  if is_below and found then first = stacked(first, found, stills.height) end
  beside(page, { title_panel(def.title, inner) })
  beside(page, { first or stills, first and stills })
  local times = times_of(self, def)
  if found and not is_below then beside(page, { found }) end
  if #times > 0 then beside(page, row_of(times, inner, tall)) end
  return assemble(page, def.width)
end

return figures
