-- study: many runs of one function: sweeps, seeds, combinations, searches. A script returns it, and cqlua study runs
-- it, one process for each trial, as many at a time as there are jobs; what was done is kept whatever happens.
--
--   return cq.Study {
--     name = "stiffness", seed = 1, repeats = 5, minimize = "loss",
--     space = {
--       young = cq.Space.log(1e2, 1e5), rate = cq.Space.log(1e-4, 1e-2), net = cq.Space.choice { "mlp", "sines" },
--     },
--     sampler = "sobol", trials = 256, pruner = cq.Pruner.asha { step = 10, reduction = 3 },
--     run = function(point, trial)
--       local r = experiment(point, trial.seed)
--       r:optimize { iterations = 100, on_iteration = trial.report }
--       return { loss = r.best.loss }
--     end,
--   }
--
--   cqlua study run s.lua --jobs 8        the same command goes on where it was stopped
--   cqlua study status s.lua              also plot, export, show N, retry --state failed,lost, stop
local method = require "cq.base.method"
local is = require "cq.base.schema"
local script = require "cq.base.script"
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local access = require "cq.study.access"
local Pruner = require "cq.study.pruner"
local require_name = require "cq.study.column"
local samplers = require "cq.study.sampler"
local space_of = require "cq.study.space"
local text = require "cq.base.text"

---@class cq.Study
---@field name string           its folder is runs/<name> unless --out says another
---@field seed integer
---@field repeats integer       trials of each point
---@field points integer        points to draw
---@field sampler string
---@field retries integer       attempts beyond the first of a trial whose process was ended
---@field pruner cq.Pruner?
---@field objectives { name: string, sign: integer }[]
---@field space { name: string, parameter: cq.Parameter }[]
---@field resumes boolean?      a trial that was stopped goes on with the training in its folder
---@field refusal string?       set by a trial that failed as all others would: no more are begun
local Study = { __name = "cq.Study" }
Study.__index = Study

---@internal
---Set by cqlua study: the studies that a script makes are then no mistake.
Study.under_command = false

local MOST = 1e6             -- trials of a study, each of which is a row of its store

local names = is.any_of { is.string(), is.list(is.string(), { min = 1 }), optional = true }
local spec = is.define("cq.Study", {
  name = is.string(),
  seed = is.integer { min = 0, max = 2 ^ 52, optional = true },
  repeats = is.integer { min = 1, max = MOST, default = 1 },
  minimize = names, maximize = names,
  space = is.table { optional = true },
  grid = is.table { optional = true },
  sampler = is.one_of { "grid", "random", "latin_hypercube", "sobol", "tpe", "cma_es", optional = true },
  trials = is.integer { min = 1, max = MOST, optional = true },
  pruner = is.instance { "cq.Pruner", optional = true },
  retries = is.integer { min = 0, max = 1000, default = 2 },
  process = is.one_of { "trial", "job", default = "trial" },
  run = is.callable(),
})

-- A list of the names of a study's parameters in alphabetic order. field: "space" or "grid", for errors. Errors: an
-- entry without a name; no entry.
local function sorted_names(given, field)
  local list = {}
  for name in pairs(given) do
    if type(name) ~= "string" then
      is.fail("cq.Study: %s takes named parameters, got %s at position %s", field, text.describe(given[name]),
        tostring(name))
    end
    list[#list + 1] = name
  end
  if #list == 0 then is.fail("cq.Study: %s is empty; it needs one parameter at least", field) end
  table.sort(list)
  return list
end

local LARGEST_SEED = 2 ^ 53

-- Raises an error if the parameter called seed, which is the seed of trials, has other values than seeds.
local function require_seeds(parameter)
  for _, value in ipairs(parameter.values or { parameter.min, parameter.max }) do
    local is_seed = type(value) == "number" and value % 1 == 0 and value >= 0 and value <= LARGEST_SEED
    if not is_seed then
      is.fail("cq.Study: the parameter seed is the seed of trials, a whole number from 0 on, got %s", text.describe(value))
    end
  end
  if not parameter.values and parameter.kind ~= "integer" then
    is.fail "cq.Study: the parameter seed is the seed of trials, a whole number: take cq.Space.integer"
  end
end

-- A list { name, parameter } of the parameters of a study, from its field space or grid, in alphabetic order. Errors:
-- not one of both; an entry that is no range or list; seeds that are none.
local function space_list(def)
  if (def.space == nil) == (def.grid == nil) then
    is.fail("cq.Study: give space (ranges that a sampler draws from) or grid (lists for a grid)%s",
      def.space and ", not both" or "")
  end
  local out = {}
  for d, name in ipairs(sorted_names(def.space or def.grid, def.space and "space" or "grid")) do
    local given = (def.space or def.grid)[name]
    if name ~= "seed" then require_name(name, "cq.Study: a parameter") end
    if def.space and not text.is_instance(given, "cq.Parameter") then
      is.fail("cq.Study: space.%s must be one of cq.Space, such as cq.Space.uniform(0, 1), got %s", name,
        text.describe(given))
    end
    out[d] = { name = name, parameter = def.grid and space_of.listed(name, given) or given }
    if name == "seed" then require_seeds(out[d].parameter) end
  end
  return out
end

-- A list { name, sign } of a study's objectives: sign 1 to minimize, -1 to maximize; "loss" if none is named. Errors: a
-- name twice, or one that cannot be a column; that of a parameter.
local function objectives_of(def, space)
  local out, seen = {}, {}
  -- Adds the objectives to minimize (sign 1) or to maximize (sign -1): a name, or a list of names.
  local function add(given, sign)
    for _, name in ipairs(type(given) == "string" and { given } or given or {}) do
      if seen[name] then is.fail("cq.Study: %s is named twice in minimize and maximize", name) end
      require_name(name, "cq.Study: an objective", space)
      seen[name], out[#out + 1] = true, { name = name, sign = sign }
    end
  end
  add(def.minimize, 1)
  add(def.maximize, -1)
  if #out == 0 then add("loss", 1) end
  return out
end

-- The number of points that a study tries: all of a grid, or `trials`. Errors: a sampler without trials; a grid with a
-- range.
local function count_points(self, def)
  if self.sampler ~= "grid" then
    return def.trials or is.fail("cq.Study: trials is missing: how many points the sampler \"%s\" shall draw",
      self.sampler)
  end
  local count, lengths = 1, {}
  for d, entry in ipairs(self.space) do
    if entry.parameter.kind ~= "choice" then
      is.fail("cq.Study: a grid needs a list for %s, got a range; use grid = { %s = { ... } }, or another sampler",
        entry.name, entry.name)
    end
    lengths[d] = #entry.parameter.values
    count = count * lengths[d]
  end
  if count > MOST then
    is.fail("cq.Study: the grid has %s = %s points, and a study has %d trials at most", table.concat(lengths, " x "),
      text.number(count), MOST)
  end
  if def.trials and def.trials ~= count then
    is.fail("cq.Study: the grid has %s, trials says %d; leave trials out", text.count(count, "point"), def.trials)
  end
  return count
end

---@class cq.Study.def
---@field name string                    letters, digits, - _ and .
---@field run fun(point: table, trial: cq.Trial): table|number   what each trial does: it returns a table with a number
---  for each objective, and whatever else shall be kept: numbers, curves as lists of numbers, and tables of these,
---  whose names get a dot, as deviation.young. What cannot be kept is told. With one objective its number alone will
---  do
---@field space? table<string, cq.Parameter>      parameters of cq.Space by name; or grid
---@field grid? table<string, any[]|cq.Tensor>    values by name, of which every combination is tried; or space
---@field trials? integer                points that the sampler draws; of a grid it is known
---@field repeats? integer               trials of each point, with seeds seed, seed + 1, ...; a point of which one
---  failed is left out where the best is told
---@field seed? integer                  of points and trials; --seed, or 1, unless given
---@field minimize? string|string[]      names of what run returns; "loss" unless minimize or maximize is given
---@field maximize? string|string[]      names of what run returns
---@field sampler? "grid"|"random"|"latin_hypercube"|"sobol"|"tpe"|"cma_es"    "grid" for grid, else "sobol", unless
---  given
---@field pruner? cq.Pruner              ends trials that fall behind, by what they report
---@field retries? integer               how often a trial is tried again whose process was killed
---@field process? "trial"|"job"         a process for each trial; or one for each job, which goes on with the next
---  trial: for trials of a few milliseconds

---A study: many runs of one function at points of a space of parameters. Errors: an empty space, neither or both of
---space and grid, a sampler that does not fit.
---@param fields cq.Study.def
---@return cq.Study
local function new(_, fields)
  local def = spec(fields)
  if not def.name:match "^[%w_][%w_.-]*$" then
    is.fail("cq.Study: name is that of a folder: letters, digits, - _ and . , got %s", text.describe(def.name))
  end
  local space = space_list(def)
  local self = setmetatable({
    name = def.name, seed = def.seed or option.program.seed or 1, repeats = def.repeats, retries = def.retries,
    pruner = def.pruner, run = def.run, process = def.process, space = space, objectives = objectives_of(def, space),
    sampler = def.sampler or (def.grid and "grid" or "sobol"),
  }, Study)
  if def.grid and self.sampler ~= "grid" then is.fail("cq.Study: grid tries every combination; the sampler \"%s\" takes space",
    self.sampler) end
  for _, entry in ipairs(def.repeats > 1 and space or {}) do
    if entry.name == "seed" then
      is.fail "cq.Study: repeats gives each trial of a point another seed, and the parameter seed gives all of a point the same; leave out one of them"
    end
  end
  self.points = count_points(self, def)
  if self:count() > MOST then
    is.fail("cq.Study: %s x %s are %s trials, and a study has %d at most", text.count(self.points, "point"),
      text.count(self.repeats, "replicate"), text.number(self:count()), MOST)
  end
  local check = samplers[self.sampler].check
  if check then check(self) end
  if option.program.check then self:check()
  elseif not Study.under_command then
    message.note_once("a study is run by: cqlua study run %s", script.path or "script.lua")
  end
  return self
end

---@internal
---The number of trials of the study: points times replicates.
function Study:count() return self.points * self.repeats end

---@internal
---The point that a trial tries, and which of the point's replicates it is, both from 1. number: of the trial, from 1.
---@return integer k, integer replicate
function Study:place(number)
  local k = math.floor((number - 1) / self.repeats)
  return k + 1, number - k * self.repeats
end

---Groups rows of trials by their points: a list of { k =, point =, rows = } in the order of the points.
---@internal
---@param rows table[]
---@return table[]
function Study:by_point(rows)
  local by_k, out = {}, {}
  for _, row in ipairs(rows) do
    local k = self:place(row.number)
    if not by_k[k] then
      by_k[k] = { k = k, point = row.point, rows = {} }
      out[#out + 1] = by_k[k]
    end
    table.insert(by_k[k].rows, row)
  end
  table.sort(out, function(a, b) return a.k < b.k end)
  return out
end

---@internal
---The value of --seed within a trial: the point's parameter `seed` if there is one, else the replicate's seed.
---@param numbers table<string, number>    the point
---@param replicate integer
---@return integer
function Study:seed_of(numbers, replicate)
  local own = numbers.seed and self:point(numbers).seed
  if type(own) == "number" and own >= 0 and own % 1 == 0 then return own end
  return self.seed + replicate - 1
end

---@internal
---The numbers of point k by the names of its parameters, as the sampler draws them; of a choice its index.
---@param k integer
---@param history? table       earlier points (study/history.lua), for samplers that adapt
---@return table<string, number>
function Study:draw(k, history)
  local units, out = samplers[self.sampler].units(self, k, history), {}
  for d, entry in ipairs(self.space) do out[entry.name] = entry.parameter:at(units[d]) end
  return out
end

---@internal
---The table of parameters that run is called with: values by name, from the numbers of a point. A script that reads
---another name gets an error.
---@param numbers table<string, number>
---@return table<string, any>
function Study:point(numbers)
  local out = {}
  for _, entry in ipairs(self.space) do out[entry.name] = entry.parameter:value(numbers[entry.name]) end
  return access.point(out)
end

---@internal
---Does the sampler choose points by the results of earlier ones?
---@return boolean
function Study:adapts() return samplers[self.sampler].adapts == true end

---@internal
---The number of the last trial whose point the sampler can draw from the results in history so far: the last of the
---study for samplers that need no results.
function Study:limit(history)
  local limit = samplers[self.sampler].limit
  return math.min(limit and limit(self, history) * self.repeats or math.huge, self:count())
end

---@internal
---The study's definition as stored, to detect changes; equal studies give equal tables.
---@param former? boolean      as earlier programs have stored it
---@return table<string, any>
function Study:definition(former)
  local parameters, objectives = {}, {}
  for d, entry in ipairs(self.space) do
    parameters[d] = entry.parameter:description(former)
    parameters[d].name = entry.name
  end
  for m, entry in ipairs(self.objectives) do objectives[m] = { name = entry.name, sign = entry.sign } end
  return {
    name = self.name, seed = self.seed, repeats = self.repeats, trials = self.points, sampler = self.sampler,
      space = parameters,
    objectives = objectives, pruner = self.pruner and self.pruner:description() or "none",
  }
end

-- what the stored definition is called in an error, where its name says too little
local called = { space = "space or grid", objectives = "minimize or maximize" }

-- Is a definition of a grid the stored one with values appended to its only list? Its points then keep their numbers.
local function is_longer(own, stored)
  local now, was = own.space, stored.space
  if own.sampler ~= "grid" or #now ~= 1 or type(was) ~= "table" or #was ~= 1 or type(was[1]) ~= "table"
    or was[1].name ~= now[1].name or type(was[1].values) ~= "table" then
    return false
  end
  for i, value in ipairs(was[1].values) do
    if now[1].values[i] ~= value then return false end
  end
  return true
end

---@internal
---The differences from a stored definition, as sentences; none if the study can be resumed, also with more points where
---those that were drawn stay the same.
---@param stored table<string, any>
---@param of_trials? boolean      only those that matter to one trial: in space or objectives; points may lack
---@return string[]
function Study:changes(stored, of_trials)
  local own, former, out = self:definition(), self:definition(true), {}
  local longer = is_longer(own, stored) or is_longer(former, stored)
    or of_trials and (is_longer(stored, own) or is_longer(stored, former))
  for key, value in pairs(own) do
    local was, is_now = json.encode(stored[key]), json.encode(value)
    local grows = longer and (key == "trials" or key == "space")
      or key == "trials" and not samplers[self.sampler].fixed and stored.trials <= value
    local matters = not of_trials or key == "space" or key == "objectives"
    if was ~= is_now and was ~= json.encode(former[key]) and matters and not grows then
      out[#out + 1] = ("%s was %s and is %s"):format(called[key] or key, was, is_now)
    end
  end
  table.sort(out)
  return out
end

---@internal
---Under cqlua check: draws the first point, tries it with one iteration, and prints the study.
function Study:check()
  require("cq.study.trial").check(self, self:draw(1, { finished = {}, running = {}, by_number = {} }))
  print(tostring(self))
end

-- The study in one line: name, points, replicates and sampler.
function Study:__tostring()
  return ("cq.Study %s: %s x %s, %s"):format(self.name, text.count(self.points, "point"),
    text.count(self.repeats, "replicate"), self.sampler)
end

method.guard(Study, "study")

return setmetatable({ class = Study, Pruner = Pruner.class }, { __call = new })
