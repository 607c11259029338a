-- Dragon Skin's constants from the curve of a finger's tip over pressure; then thicknesses of the finger's walls for a
-- curve that is wanted. Both by equilibria and their gradients.                 cqlua examples/identify_silicone.lua
-- Source: constants of the soft-finger paper (Robotica 2024), C10 23.028 and C01 1.19 kPa of Mooney and Rivlin; the
-- measured curve is a simulated one with the noise of a camera. Expect: C10 + C01, half the shear modulus, within 1 %
-- from every start, of which noise explains 0.8 %. The share of C10 in it ends anywhere, for in plane strain both
-- invariants of a body that keeps its volume are the same: no such curve tells C10 from C01. The walls that are found
-- have the wanted curve within 0.25 mm; as they grow chambers cross cells, by which the tip goes 0.1 mm up and down.
-- The grid of 2 mm is coarse for walls of 4: on one of 1 mm this finger bends 39 % farther. For a real one take --dx 1,
-- ten times as slow; --data-dx 1 shows what comes out of its curve here.
-- Kept: not asked: it identifies. Size: 1,088 particles, about 100 equilibria. Time: 20 s with --threads 1.
local cq = require "cq"

local C10, C01, MM = 23.028, 1.19, 1e-3
local dim        = cq.option("dim", 2)
local levels     = cq.option("levels", { 4, 8, 12, 15 })                 -- [kPa]
local wanted     = cq.option("wanted", { 3, 6.7, 11, 14.9 })             -- the tip lower by, under levels [mm]
local noise      = cq.option("noise", 0.1)                               -- of the tip that is measured [mm]
local starts     = cq.option("starts", 3)
local iterations = cq.option("iterations", 12)                           -- of each descent, at most
local dx         = cq.option("dx", 2)                                    -- of the grid [mm]
local data_dx    = cq.option("data-dx", dx)                              -- and that of the finger that is measured
local designs    = cq.option("design", dim == 2)
-- raises a formatted error without a position
local function refuse(...) error((...):format(select(2, ...)), 0) end
if #wanted ~= #levels then
  refuse("--wanted has %d numbers and --levels %d: a wanted curve has one for each level", #wanted, #levels)
end
if not (noise > 0) then refuse("--noise must be above 0, for errors are told by it, got %g", noise) end
if designs and dim == 3 then refuse "--design is for --dim 2: in space the walls are those of a mesh" end
local random = cq.random { seed = cq.option("seed", 1) }
local run    = cq.Run.open { resume = false }

-- ---- curves, and their gradients ------------------------------------------------------------------------------------

-- { robot, world } of the scene soft_finger, implicit; options: fields of the scene, which are added to
local function finger(options)
  options.dim, options.max, options.precision, options.dx = dim, 1, "float64", options.dx or dx
  if dim == 2 then options.spacing = options.dx / 2 end
  local scene = require "scenes.soft_finger" (options)
  scene.world.integrator = cq.Implicit { tolerance = 1e-4, adjoint_tolerance = 1e-4 }
  scene.world.cells[1] = scene.world.cells[1] + math.ceil(24 / dx)          -- room for thicker walls
  return { robot = scene.robot, world = cq.World(scene.world) }
end

-- state at rest under a pressure [kPa], of the body's robot or of another in its place
local function settle(body, pressure, robot) return (body.world:settle { signals = { pressure }, robot = robot }) end

-- how much lower the tip is at rest under a pressure [kPa] than it was made [mm]; robot: in place of the body's
local function drop(body, pressure, robot)
  local tip = body.robot:group "tip"
  local rest = body.world:rollout { steps = 0, robot = robot }.state:center(tip)[2]
  return (rest - settle(body, pressure, robot):center(tip)[2]) / MM
end

-- a list of drops under all levels of pressure [mm]
local function curve(body, robot)
  local out = {}
  for k, pressure in ipairs(levels) do out[k] = drop(body, pressure, robot or body.robot):item() end
  return out
end

-- { p, y, slope }: drops of the finger robot(p) under all levels [mm], and their slopes by the two numbers of p;
-- nothing where that finger balloons
local function look(body, robot, p)
  local out = { y = {}, slope = {}, p = p }
  for k, pressure in ipairs(levels) do
    local step = cq.value_and_grad(function(q) return drop(body, pressure, robot(q)) end)
    local fine, y, slope = pcall(step, cq.param(p))
    if not fine and not tostring(y):find("did not converge", 1, true) then error(y, 0) end
    if not fine then return end
    out.y[k], out.slope[k] = y, slope:totable()
  end
  return out
end

-- sum of squares of a look's drops less those aimed at, over the noise; its gradient {2} and its curvature by Gauss and
-- Newton {2, 2}
local function misfit(at, aim)
  local sum, g, h = 0, { 0, 0 }, { { 0, 0 }, { 0, 0 } }
  for k, y in ipairs(at.y) do
    local off, slope = (y - aim[k]) / noise, at.slope[k]
    sum = sum + off * off
    for i = 1, 2 do
      g[i] = g[i] + off * slope[i] / noise
      for j = 1, 2 do h[i][j] = h[i][j] + slope[i] * slope[j] / noise ^ 2 end
    end
  end
  return sum, g, h
end

-- Where a step of Levenberg and Marquardt ends, and by how much the sum of squares should fall. A number that would
-- cross its limit ends there; the step of the other number is then the best one for that.
local function step_from(p, g, h, damping, limits)
  local diagonal, b = { h[1][1] * (1 + damping), h[2][2] * (1 + damping) }, h[1][2]
  local det = diagonal[1] * diagonal[2] - b * b
  local way, out = { (b * g[2] - diagonal[2] * g[1]) / det, (b * g[1] - diagonal[1] * g[2]) / det }, {}
  -- the way of the k-th number, cut off at its limits
  local function clamped(k) return math.max(limits[k][1], math.min(limits[k][2], p[k] + way[k])) - p[k] end
  for k = 1, 2 do
    if clamped(k) ~= way[k] then
      way[k] = clamped(k)
      way[3 - k] = -(g[3 - k] + b * way[k]) / diagonal[3 - k]
    end
  end
  for k = 1, 2 do
    way[k] = clamped(k)
    out[k] = p[k] + way[k]
  end
  local square = h[1][1] * way[1] ^ 2 + 2 * b * way[1] * way[2] + h[2][2] * way[2] ^ 2
  return out, -2 * (g[1] * way[1] + g[2] * way[2]) - square
end

-- iterations of all searches so far
local done = 0
-- Levenberg and Marquardt's least squares of two numbers between limits, from p on: the best look, with `first`, its
-- first drops, the number of `looks`, and how far it is `off`, root mean square [mm]. It ends where the sum would fall
-- by less than the noise explains.
local function descend(body, robot, p, aim, limits)
  local at, damping, looks = look(body, robot, p), 1e-3, 1
  if not at then refuse("a finger of the first guess %g, %g bears no %g kPa", p[1], p[2], levels[#levels]) end
  local sum, g, h = misfit(at, aim)
  local first = at.y
  for _ = 1, iterations do
    local moved, hope = step_from(at.p, g, h, damping, limits)
    if hope < 0.5 then break end
    local new, gain = look(body, robot, moved), -math.huge
    looks = looks + 1
    if new then gain = sum - misfit(new, aim) end
    if gain > 0 then
      at, damping = new, damping / 10
      sum, g, h = misfit(at, aim)
    else
      damping = 10 * damping
    end
    done = done + 1
    run:record { iteration = done, loss = sum / #aim, first = at.p[1], second = at.p[2] }
  end
  at.first, at.looks, at.off = first, looks, math.sqrt(sum / #aim) * noise
  return at
end

-- ---- constants ------------------------------------------------------------------------------------------------------

local body = finger {}
local measured = curve(data_dx == dx and body or finger { dx = data_dx })
local seen = (cq.tensor(measured) + random:normal({ #levels }, { deviation = noise })):totable()
local series = { { name = "measured, 2 deviations", x = levels, y = seen, colour = "#2160ad", lower = {}, upper = {} } }
for k, y in ipairs(seen) do series[1].lower[k], series[1].upper[k] = y - 2 * noise, y + 2 * noise end

-- robot of a place (nil: of `body`) whose silicone has p: 1 / (C10 + C01), with which the tip goes almost in
-- proportion, and the share of C10; the base is ten times as stiff
local function silicone(p, place)
  local c10, c01 = p[2] / p[1], (1 - p[2]) / p[1]
  return (place or body).robot:with { c10 = { body = c10, base = 10 * c10 }, c01 = { body = c01, base = 10 * c01 } }
end

-- Axes of the curvature by C10 and C01, whose slopes are a linear map of those that were found: a weight w, and one
-- standard deviation of C10 + w C01, which the curve holds best, and of C10 - C01 / w, which it holds worst.
local function axes(found)
  local s, f, h = 1 / found.p[1], found.p[2], { 0, 0, 0 }
  for _, slope in ipairs(found.slope) do
    local by_sum = -slope[1] / (s * s)
    local a, b = by_sum + (1 - f) * slope[2] / s, by_sum - f * slope[2] / s
    h[1], h[2], h[3] = h[1] + a * a / noise ^ 2, h[2] + a * b / noise ^ 2, h[3] + b * b / noise ^ 2
  end
  local middle, half = (h[1] + h[3]) / 2, math.sqrt((h[1] - h[3]) ^ 2 / 4 + h[2] ^ 2)
  local least = math.max((h[1] * h[3] - h[2] ^ 2) / (middle + half), 1e-12 * middle)
  local weight = (middle + half - h[1]) / h[2]
  local size = math.sqrt(1 + weight ^ 2)
  return weight, size / math.sqrt(middle + half), size / weight / math.sqrt(least)
end

local best
for k = 1, starts do
  local guess = random:uniform({ 2 }, { min = 0.1, max = 0.9 }):totable()
  guess[1] = 1 / (15 + 50 * guess[1])
  local found = descend(body, silicone, guess, seen, { { 1 / 500, 1 / 5 }, { 0, 1 } })
  local s, f = 1 / found.p[1], found.p[2]
  -- text of a number and its error in percent
  local function error_of(x, truth) return ("%.2f (%+.2f %%)"):format(x, 100 * (x / truth - 1)) end
  print(("start %d: C10 + C01 %.1f, share of C10 %.2f -> %s: C10 %s, C01 %s; %.3f mm off, %d curves"):format(k,
    1 / guess[1], guess[2], error_of(s, C10 + C01), error_of(s * f, C10), error_of(s * (1 - f), C01), found.off,
    found.looks))
  if not best or found.off < best.off then best = found end
  series[#series + 1] = { name = k == 1 and "first guesses" or nil, x = levels, y = found.first, colour = "#b3892b" }
end
local weight, held, loose = axes(best)
print(("the curve holds C10 + %.3f C01 within %.2f kPa; C10 - %.3f C01 within %.0f kPa, that is not at all"):format(
  weight, held, 1 / weight, loose))
series[#series + 1] = { name = "identified", x = levels, y = best.y, colour = "#000000" }

-- ---- walls ----------------------------------------------------------------------------------------------------------

-- a frame of a finger at rest under the last level, coloured by its stress
local function picture(name, place, robot)
  local state = settle(place, levels[#levels], robot)
  return cq.Picture.frame {
    domain = place.world.domain.size, volume = robot.volume, rest = place.world.robot.position, fit = true, width = 700,
    height = 330, ruler = false, scale = { label = "von Mises", unit = "kPa", range = { 0, 40 } }, label = name,
    position = state:positions(), deformation = state:deformations(), value = state:gather(place.robot, "von_mises"),
  }
end

if designs then
  -- seven walls between eight chambers, which keep their 4 mm, and the roof over them
  local joints = {}
  for k = 1, 8 do joints[2 * k - 1], joints[2 * k] = (6 + 8 * k) * MM, (10 + 8 * k) * MM end
  joints[16] = nil
  -- the identified finger with inner walls as thick as p[1] and a roof as thick as p[2] [mm]
  local function walled(p)
    local lengths = {}
    for k = 1, 7 do lengths[2 * k - 1], lengths[2 * k] = p[1] * MM, 4 * MM end
    return silicone(best.p):stretched { axis = "x", joints = joints, lengths = lengths }
      :stretched { axis = "y", joints = { 12 * MM, 16 * MM }, lengths = { p[2] * MM } }
  end
  local found = descend(body, walled, { 4, 4 }, wanted, { { 2.5, 7 }, { 2.5, 7 } })
  -- drawn with these walls, as far as the lattice allows, beside this finger stretched to the same
  local near = {}
  for k = 1, 2 do near[k] = math.floor(2 * found.p[k] / dx + 0.5) * dx / 2 end
  local anew = finger { wall = near[1], roof = near[2] }
  local built, made = curve(anew, silicone(best.p, anew)), curve(body, walled(near))
  print(("walls %.2f and roof %.2f mm in place of 4 and 4: %.3f mm off what is wanted, %d curves"):format(found.p[1],
    found.p[2], found.off, found.looks))
  print(("%-34s %s"):format("under [kPa] the tip is lower by", table.concat(levels, " ")))
  for _, row in ipairs { { "wanted [mm]", wanted }, { "as it is", curve(body, silicone(best.p)) },
    { "with these walls", found.y }, { ("walls %g, roof %g"):format(near[1], near[2]), made },
    { "the same, drawn anew", built } } do
    local words = {}
    for i, y in ipairs(row[2]) do words[i] = ("%.2f"):format(y) end
    print(("%-34s %s"):format(row[1], table.concat(words, " ")))
  end
  series[#series + 1] = { name = "wanted", x = levels, y = wanted, colour = "#d1603d" }
  series[#series + 1] = { name = "other walls", x = levels, y = found.y, colour = "#3b8f5a" }
  local plot = cq.Plot { width = 1400, height = 530, x_label = "pressure [kPa]", y_label = "tip lower by [mm]",
    series = series }
  if cq.option("render", true) then
    local canvas = cq.Picture.canvas { width = 1400, height = 860 }
    canvas:paste(picture("walls 4 mm, roof 4 mm", body, silicone(best.p)), 0, 0)
    canvas:paste(picture(("walls %g mm, roof %g mm"):format(near[1], near[2]), anew, silicone(best.p, anew)), 700, 0)
    canvas:paste(plot, 0, 330)
    canvas:write "identify_silicone.png"
  end
end
run:finish { c10 = cq.tensor(best.p[2] / best.p[1]), c01 = cq.tensor((1 - best.p[2]) / best.p[1]) }
