-- folder: the page of a run's folder: facts of its manifest, its history as curves, its script, and its body, by
-- running the best result once more.
local history = require "cq.picture.history"
local host = require "cq.host"
local is = require "cq.base.schema"
local films = require "cq.report.film"
local json = require "cq.base.json"
local loads = require "cq.load"
local manifests = require "cq.run.manifest"
local message = require "cq.base.message"
local read_file = require "cq.base.read_file"
local Run = require "cq.run"
local text = require "cq.base.text"
local T = require "cq.tensor"

local folder = {}

-- Copies the entries of a nested table into the flat table `out`, whose keys are paths with points, and returns it.
-- Numbers stay, other values become texts.
local function flatten(value, path, out)
  if type(value) ~= "table" then
    out[path] = type(value) == "number" and value or tostring(value)
    return out
  end
  for key, inner in pairs(value) do flatten(inner, path == "" and tostring(key) or path .. "." .. key, out) end
  return out
end

local hidden = { script_hash = true, sources = true, abi = true, started = true, finished = true, seconds = true,
  ranks = true }

---Facts of a run for the page, by name: most entries of its manifest, by paths with points, and the best loss.
---@param manifest table
---@param result? table         field `result` of what cq.load gives
---@return table<string, string|number>
function folder.facts(manifest, result)
  local plain = {}
  for key, value in pairs(manifest) do
    if not hidden[key] then plain[key] = value end
  end
  local out = flatten(plain, "", {})
  if result then out["best loss"], out["best at iteration"] = result.loss, result.iteration end
  return out
end

-- The cq.Saved that cq.load reads in a run's folder; or nil and a sentence why there is none. Errors: a newer program
-- has written it, unless takes_newer.
local function result_of(path, takes_newer)
  local fine, saved = pcall(loads, path)
  if fine then return saved end
  local is_newer = type(saved) == "string" and saved:find("version", 1, true) and saved:find("newer program", 1, true)
  if is_newer and not takes_newer then error(saved, 0) end
  return nil, (tostring(saved):gsub("^[^:]*:%d+: ", ""))
end

---The report that cqlua robust has left in the folder of a run, robustness.json; nil: none, a damaged one, or one of
---parameters that are the best no more, which is noted. Its gains are over the start, or the body without signals:
---baseline_of is "start" or "no signals".
---@param path string
---@param saved? cq.Saved     of the folder, if it was read already
---@return { text: string, bars: table[], baseline_of: string }?
function folder.robustness(path, saved)
  local fine, found = pcall(json.decode, read_file(path .. "/robustness.json") or "")
  if not fine or type(found) ~= "table" or type(found.bars) ~= "table" then return nil end
  local measured = type(found.best) == "table" and found.best
  local best = measured and (saved or result_of(path, true) or {}).result
  if best and (measured.loss ~= best.loss or measured.iteration ~= best.iteration) then
    message.note("%s/robustness.json is left out: it is of earlier parameters, with loss %s at iteration %s, and the best have now %s at %s; cqlua robust measures them",
      path, text.describe(measured.loss), text.describe(measured.iteration), text.describe(best.loss),
      text.describe(best.iteration))
    return nil
  end
  return { text = found.text, bars = found.bars, baseline_of = found.baseline_of }
end

-- at most so many points of a curve
local POINTS = 2000

-- at most so many columns of a history
local COLUMNS = 24

---The columns of a run's history as curves: the series of the loss, nil without one, and a list of up to COLUMNS other
---curves, of POINTS points at most; a note names those that are left out.
---@param rows table<string, any>[]
---@return table? loss, table[] others
function folder.curves(rows)
  local names, seen, every = {}, {}, math.max(1, math.ceil(#rows / POINTS))
  for _, row in ipairs(rows) do
    for name, value in pairs(row) do
      if type(value) == "number" and name ~= "iteration" and name ~= "stage_iteration" and not seen[name] then
        seen[name], names[#names + 1] = true, name
      end
    end
  end
  table.sort(names)
  -- A column of the history as a series { name, x: iterations, y: values } of at most POINTS points.
  local function series(name)
    local out = { name = name }
    local x, y, any = history.column(rows, name, every)
    for k, value in ipairs(y) do y[k] = tonumber(("%.6g"):format(value)) end
    out.x, out.y = any and x or {}, any and y or {}
    return out
  end
  local loss, others, left = seen.loss and series "loss" or nil, {}, {}
  for _, name in ipairs(names) do
    if name ~= "loss" and #others < COLUMNS then
      others[#others + 1] = { title = name, x_label = "iteration", series = { series(name) } }
    elseif name ~= "loss" then
      left[#left + 1] = name
    end
  end
  if #left > 0 then
    message.note("the page has %d columns of the history beside the loss, and leaves out %s", COLUMNS,
      table.concat(left, ", "))
  end
  return loss, others
end

---Adds the loss of a run to the page's curve of all losses.
---@param page cq.Report.page
---@param name string
---@param loss? table
function folder.add_loss(page, name, loss)
  if not loss or #loss.x == 0 then return end
  local all = page.data.curves[1]
  if not all then
    all = { title = "loss", x_label = "iteration", series = {} }
    page.data.curves[1] = all
  end
  loss.name = name
  table.insert(all.series, loss)
end

---Simulates a saved result once more and records it as a film for the page.
---@param saved cq.Saved
---@param def rollout.report.def
---@param page cq.Report.page
---@return table film
function folder.film(saved, def, page)
  local film = films.new(def, saved.steps)
  local world = saved.world
  local roll = T.tape.pause(function()
    return saved:rollout {
      contact = #world.walls > 0 or nil,
      on_step = function(state, u) film:see(state, u) end,
    }
  end)
  return film:finish(roll, function(content) return page:add(content) end)
end

-- The film of a run's body for the page; or nil and a sentence, if the saved file does not suffice to simulate it.
local function film_of(saved, def, page)
  local fine, film = pcall(folder.film, saved, def, page)
  if fine then return film end
  return nil, (tostring(film):gsub("^[^:]*:%d+: ", ""))
end

-- The curves of a run's history, as folder.curves gives them. A damaged history is an error where the run has nothing
-- else to show (has_more), else a warning.
local function curves_of(path, name, has_more)
  local fine, rows = pcall(Run.read_history, path)
  if fine then return folder.curves(rows) end
  if not has_more then error(rows, 0) end
  message.warn("%s: its curves are not shown: %s", name, (rows:gsub("^[^:/]*:%d+: ", "")))
  return nil, {}
end

---Raises an error if a file holds no saved result.
---@param path string
function folder.require_result(path)
  local saved, why = result_of(path)
  if not saved then is.fail("%s is no run: %s", path, why) end
end

---Reads a run's folder, or a file that cq.load reads, for the page: { name, folder, script, facts, curves, robustness,
---film, note: why there is no film }. Errors: no run there; a run of a newer program, unless def.takes_newer.
---@param path string
---@param def rollout.report.def|{ takes_newer: boolean? }
---@param page cq.Report.page
---@param with_body boolean
---@return table run
---@return table? loss          its curve
function folder.read(path, def, page, with_body)
  path = path:gsub("(.)/+$", "%1")
  local saved, why = result_of(path, def.takes_newer)
  local manifest = saved and saved.manifest or manifests.of(path)
  local numbers = path .. "/history.csv"
  if not saved and not host.kind(numbers) then is.fail("%s is no run: %s", path, why) end
  local run = { name = path:match "([^/]+)$":gsub("%.bin$", ""), folder = path, curves = {},
    script = read_file(path .. "/script.lua"), robustness = folder.robustness(path, saved),
    facts = folder.facts(manifest or {}, saved and saved.result) }
  local loss
  if host.kind(numbers) then loss, run.curves = curves_of(path, run.name, saved) end
  if with_body and saved and saved.data.world then
    run.film, why = film_of(saved, def, page)
  elseif saved and not saved.data.world then
    why = "it has parameters alone, without a world"
  end
  if with_body and not run.film then
    run.note = ("%s: its body is not shown: %s"):format(run.name, why)
    message.warn("%s", run.note)
  end
  return run, loss
end

-- Renames runs that share a name: each gets the path of its folder as name. In place.
local function tell_apart(runs)
  local seen = {}
  for _, run in ipairs(runs) do seen[run.name] = (seen[run.name] or 0) + 1 end
  for _, run in ipairs(runs) do
    if seen[run.name] > 1 then run.name = run.folder end
  end
end

---Adds runs to a page: the bodies of the first `bodies` ones, and one plot of all losses. Errors: those of folder.read.
---@param page cq.Report.page
---@param paths string[]
---@param def rollout.report.def|{ takes_newer: boolean? }
---@param bodies integer
function folder.add(page, paths, def, bodies)
  local runs, losses = page.data.runs, {}
  for k, path in ipairs(paths) do runs[k], losses[k] = folder.read(path, def, page, k <= bodies) end
  tell_apart(runs)
  for k, run in ipairs(runs) do folder.add_loss(page, run.name, losses[k]) end
end

return folder
