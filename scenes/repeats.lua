-- repeats: a training with the first weights of --seed, and with --repeats N with those of N seeds from it on. All
-- curves are kept (curves.csv) and drawn, over iterations and over wall time: the median of the best so far, and the
-- band that holds 90 % of the runs. --resume goes on with all of them.
--
--   local function place(state) return state:center(robot)[1] end
--   local function make(seed) return cq.Experiment { ..., terminal = function(state) return -place(state) end } end
--   local function way(x) return x - start end                                         the more the better
--   local all = repeats.train { make = make, iterations = 100, place = place, way = way }
--   print(("walked %.2f%s"):format(all.mean, all.of))                                  of: ", mean of ..."
--   repeats.draw { all, title = "A walker", label = "way, best so far" }
--   all.best:render "walker.mp4"
local cq = require "cq"

local repeats = {}

---Trains with each of the first weights, as --seed and --repeats say.
---@param def { make: (fun(seed: integer): cq.Experiment), iterations: integer, place: (fun(state: cq.State): cq.Tensor), way: (fun(x: number): number), name: string? }
---  place: of the last state, the number that the loss is the negative of, but for efforts; way: how far that is; name:
---  where a script trains several things
---@return { name: string, best: cq.Experiment, mean: number, of: string, curves: table[], first: integer } all   best:
---  the run that went farthest; mean: of the ways; of: what the mean is of, for people, empty of one run; curves: of
---  the loss as a way, efforts taken off, as that is what a run's history holds
function repeats.train(def)
  local first, count = cq.option("seed", 0), cq.option("repeats", 1)
  if count < 1 or count % 1 > 0 then error(("--repeats must be a whole number at least 1, got %g"):format(count), 0) end
  local all, sum, told, most = { name = def.name or "all", curves = {}, first = first }, 0, {}, -math.huge
  for n = 1, count do
    local run, name = def.make(first + n - 1), nil
    if def.name or count > 1 then name = ("%s-%d"):format(def.name or "seed", first + n - 1) end
    run:optimize { iterations = def.iterations, name = name }
    local roll = run:evaluate().rollout
    local value = def.way(def.place(roll.state):item())
    sum, told[n] = sum + value, ("%.2f"):format(value)
    all.curves[n] = run.run and repeats.curve(run.folder, def.way)
    if value > most then all.best, most = run, value end
  end
  all.mean, all.of = sum / count, count > 1 and (", mean of %s"):format(table.concat(told, ", ")) or ""
  return all
end

---The best so far of what a run was trained for, after each iteration; read from its history, so that a run that went
---on has all of it.
---@param folder string                        of the run
---@param way fun(x: number): number           of the negative of its loss; the more the better
---@return { iteration: number[], seconds: number[], best: number[] }
function repeats.curve(folder, way)
  local out, best, seconds = { iteration = {}, seconds = {}, best = {} }, -math.huge, 0
  for n, row in ipairs(cq.Run.read_history(folder)) do
    best, seconds = math.max(best, way(-row.loss)), seconds + row.seconds
    out.iteration[n], out.seconds[n], out.best[n] = n, seconds, best
  end
  return out
end

---The number that a share of a list is less than, between the two nearest.
---@param list number[]
---@param share number     from 0 to 1
---@return number
function repeats.quantile(list, share)
  local sorted = { unpack(list) }
  table.sort(sorted)
  local at = 1 + share * (#sorted - 1)
  local k = math.floor(at)
  return sorted[k] + (at - k) * ((sorted[k + 1] or sorted[k]) - sorted[k])
end

---Median and 90 % band after each iteration that all of the curves have; x, iterations or seconds, is the median too.
---@param curves table[]      of repeats.curve
---@param by "iteration"|"seconds"
---@return { x: number[], y: number[], lower: number[], upper: number[] } series   as cq.Plot takes it
function repeats.band(curves, by)
  local count, out = math.huge, { x = {}, y = {}, lower = {}, upper = {} }
  for _, curve in ipairs(curves) do count = math.min(count, #curve.best) end
  local function share_of(key, i, share)
    local list = {}
    for k, curve in ipairs(curves) do list[k] = curve[key][i] end
    return repeats.quantile(list, share)
  end
  for i = 1, count do
    out.x[i], out.y[i] = share_of(by, i, 0.5), share_of("best", i, 0.5)
    out.lower[i], out.upper[i] = share_of("best", i, 0.05), share_of("best", i, 0.95)
  end
  return out
end

-- Medians and bands of many sets, each in a plot of its own beside the median of the first, over the same height: as
-- many bands on top of each other cannot be told apart.
local function panels(series, options)
  local columns, wide, tall, head = 4, 400, 330, 60
  local rows, low, high = math.ceil(#series / columns), math.huge, -math.huge
  for _, one in ipairs(series) do
    low, high = math.min(low, unpack(one.lower)), math.max(high, unpack(one.upper))
  end
  local canvas = cq.Picture.canvas { width = columns * wide, height = head + rows * tall }
  canvas:text { x = 84, y = 34, size = 13, text = options.title }
  for k, one in ipairs(series) do
    local first = { name = k > 1 and series[1].name or nil, x = series[1].x, y = series[1].y, colour = "#7c8894" }
    local row, column = math.floor((k - 1) / columns), (k - 1) % columns
    canvas:paste(cq.Plot {
      width = wide, height = tall, x_label = options.x_label, y_label = column == 0 and options.label or nil,
      y_range = { low, high }, series = { first, one },
    }, column * wide, head + row * tall)
  end
  return canvas
end

---Draws the medians and bands of some sets of curves, of more than three each in a plot of its own.
---@param options table     path, by ("iteration" or "seconds"), title, label and series, a list of { name =, curves = }
function repeats.plot(options)
  local series, count = {}, #options.series[1].curves
  for k, one in ipairs(options.series) do
    series[k] = repeats.band(one.curves, options.by)
    series[k].name = #options.series > 1 and one.name or nil
  end
  local title = options.title .. (count > 1 and (": median and 90 %% of %d runs"):format(count) or "")
  local words = {
    title = title, x_label = options.by == "seconds" and "wall time [s]" or "iteration", label = options.label,
  }
  if #series > 3 then return panels(series, words):write(options.path) end
  cq.Plot { title = title, x_label = words.x_label, y_label = options.label, series = series }:write(options.path)
end

---Writes every curve, a line for each iteration.
---@param path string
---@param sets { name: string, curves: table[], first: integer }[]     first: seed of the first curve
function repeats.write_curves(path, sets)
  local file = assert(io.open(path, "w"))
  file:write "name,seed,iteration,seconds,best\n"
  for _, all in ipairs(sets) do
    for k, curve in ipairs(all.curves) do
      for i, value in ipairs(curve.best) do
        file:write(("%s,%d,%d,%.4g,%.6g\n"):format(all.name, all.first + k - 1, i, curve.seconds[i], value))
      end
    end
  end
  file:close()
end

---Keeps and draws the curves of several seeds, beside the folders of their runs; of one run there are none.
---@param sets table         a list of what train gave, with title and label, what the curves are
function repeats.draw(sets)
  local last = sets[#sets].best.run
  if #sets[1].curves < 2 or not last then return end
  local folder = last.folder .. "/.."
  repeats.write_curves(folder .. "/curves.csv", sets)
  if #sets[1].curves[1].best == 0 then return end
  for _, by in ipairs { "iteration", "seconds" } do
    repeats.plot {
      path = ("%s/curves_%s.png"):format(folder, by), by = by, series = sets, label = sets.label, title = sets.title,
    }
  end
end

return repeats
