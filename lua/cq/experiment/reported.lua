-- reported: an experiment or a rollout once more, as a page of HTML to turn and scrub.
local is = require "cq.base.schema"
local option = require "cq.option"
local script = require "cq.base.script"
local C = require("cq.base.engine").C
local T = require "cq.tensor"
local changed = require "cq.experiment.changed"
local continued = require "cq.rollout.continued"
local evaluate = require "cq.experiment.evaluate"
local films = require "cq.report.film"
local folders = require "cq.report.folder"
local host = require "cq.host"
local manifests = require "cq.run.manifest"
local message = require "cq.base.message"
local pages = require "cq.report.page"
local place = require "cq.base.place"
local render = require "cq.experiment.render"
local runs = require "cq.run"
local visuals = require "cq.picture.visuals"

local reported = {}

---@class run.report.def : rollout.report.def, run.changes.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them

-- The checkers, by name, of a page's fields: the given ones, to which those of a film are added in place.
local function fields(others)
  for name, kind in pairs(films.fields()) do others[name] = kind end
  return others
end

local run_spec = is.define("run:report", changed.fields(fields { params = evaluate.params_kind }))
local rollout_spec = is.define("rollout:report", fields {})

-- The title of a page: the given one, else the script's name.
local function title_of(def)
  local name = script.path and script.path ~= "-" and script.path:match "([^/]+)$":gsub("%.lua$", "")
  return def.title or name or "rollout"
end

-- Writes the page of a rollout and returns its path. simulate(see) runs the rollout and calls see(state, u) for each
-- state. With the folder of a run, the page also has what was recorded there. what: the calling function, for errors.
local function write(path, def, what, steps, simulate, folder)
  pages.require_writable(path, what)
  local page, film = pages.new(title_of(def)), films.new(def, steps)
  local run = { name = page.data.title, curves = {}, facts = {}, script = script.text() }
  local roll = simulate(function(state, u) film:see(state, u) end)
  run.film = film:finish(roll, function(content) return page:add(content) end)
  run.facts.world = run.film.world
  if folder and host.kind(folder .. "/history.csv") then
    local loss
    loss, run.curves = folders.curves(runs.read_history(folder))
    folders.add_loss(page, run.name, loss)
    local manifest = manifests.of(folder)
    if manifest then run.facts = folders.facts(manifest) end
    run.robustness = folders.robustness(folder)
  end
  page.data.runs[1] = run
  return page:write(path, what)
end

-- Are pages left out, by --render=no, on ranks after the first, or where the script is only checked?
local function is_left_out() return render.is_left_out() or option.program.check end

---run:report: simulates once and writes the page. Returns its path; nil after Ctrl-C and where --render=no leaves pages
---out. Errors: a path that cannot be written; changes that do not fit the experiment.
---@param self cq.Experiment
---@param path string
---@param given? run.report.def
---@return string?
function reported.run(self, path, given)
  pages.check(path, "run:report")
  visuals.name = "run:report"
  local def = run_spec(given or {})
  local changes = changed.take(def)
  local params = evaluate.params(self, def.params, "run:report")
  if is_left_out() then return nil end
  if C.cq_interrupted() ~= 0 then
    message.interruption("interrupted: %s was not written; the best parameters are saved", path)
    return nil
  end
  local world = changes.world or self.world
  changes.contact = #world.walls > 0 or world.layout.pin_count > 0
  return write(place.of(path, self), def, "run:report", changed.steps(self, changes, "run:report"), function(see)
    changes.on_step = see
    return T.tape.pause(function() return self:rollout(params, changes) end)
  end, self.folder)
end

---rollout:report: repeats the rollout and writes the page. Returns its path, or nil where --render=no leaves pages out.
---Errors: a batch; a path that cannot be written.
---@param roll cq.Rollout
---@param path string
---@param given? rollout.report.def
---@return string?
function reported.rollout(roll, path, given)
  pages.check(path, "rollout:report")
  visuals.name = "rollout:report"
  local def = rollout_spec(given or {})
  if roll.batched then
    is.fail("rollout:report: a batch of %d scenes is not shown; run one of them alone", roll.batch)
  end
  if is_left_out() then return nil end
  local again, world = continued.again(roll), roll.world
  again.contact = #world.walls > 0 or world.layout.pin_count > 0
  return write(place.of(path), def, "rollout:report", roll.steps, function(see)
    again.on_step = see
    return T.tape.pause(world.rollout, world, again)
  end)
end

return reported
