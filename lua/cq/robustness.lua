-- robustness: how much of what a robot has learned is left in a simulation that is a little different from the one that
-- it was trained in.
--
--   local report = cq.robustness(run)                  after run:optimize or run:load
--   print(report)
--   report:plot(run:path "robustness.png")
--
-- The gain of a run is by how much its loss is below that of its start, where no control step has been made. Kept is
-- the gain in a changed simulation as a share of that in the simulation that it was trained in.
local atomic_file = require "cq.base.atomic_file"
local C = require("cq.base.engine").C
local changes = require "cq.robustness.changes"
local evaluate = require "cq.experiment.evaluate"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local method = require "cq.base.method"
local random = require "cq.random"
local text = require "cq.base.text"

---@class cq.Robustness.row
---@field name string          what is changed: "stiffness", ...
---@field change string        by how much, as "+5 %"
---@field size number          the same as a number
---@field loss number?         nil where the simulation failed
---@field kept number?         share of the gain
---@field problem string?      why it failed

---@class cq.Robustness
---@field loss number          of the run, in the simulation that it was trained in
---@field start number         of its start
---@field rows cq.Robustness.row[]                       one change at a time
---@field missing { name: string, why: string }[]        what could not be changed
---@field draws { change: table<string, number>, loss: number?, kept: number?, problem: string? }[]   all at once
---@field median number?       kept, of the draws that did not fail
---@field worst number?        kept, of the same
---@field failed integer       rows and draws whose simulation failed
local Robustness = { __name = "cq.Robustness" }
Robustness.__index = Robustness

-- ---- measuring ------------------------------------------------------------------------------------------------------

local function gain_of(run, params, change, seed)
  local start = changes.loss(run, params, change, 0, seed)
  local loss = changes.loss(run, params, change, nil, seed)
  return start - loss, loss, start
end

-- A row or a draw with what came of its change. The same simulation unchanged did not fail, so the change is at fault,
-- as where it puts the body into a wall or the function of a level has no such grid.
local function measured(self, run, params, row, change, seed)
  local fine, gain, loss = pcall(gain_of, run, params, change, seed)
  if fine then
    row.loss, row.kept = loss, gain / (self.start - self.loss)
  elseif type(gain) == "string" and C.cq_interrupted() == 0 then
    row.problem, self.failed = gain:gsub("^[^:\n]+:%d+: ", ""):match "^[^\n]*", self.failed + 1
  else
    error(gain, 0)
  end
  return row
end

local function require_uninterrupted()
  if C.cq_interrupted() ~= 0 then is.fail("cq.robustness: interrupted") end
end

local function one_by_one(self, run, params, seed)
  for _, entry in ipairs(changes.list) do
    local why = entry.missing and entry.missing(run)
    if why then self.missing[#self.missing + 1] = { name = entry.name, why = why } end
    for _, size in ipairs(why and {} or entry.sizes) do
      require_uninterrupted()
      self.rows[#self.rows + 1] = measured(self, run, params,
        { name = entry.name, change = entry.says(size), size = size }, { [entry.name] = size }, seed)
    end
  end
end

local function is_missing(self, name)
  for _, entry in ipairs(self.missing) do
    if entry.name == name then return true end
  end
  return false
end

local function all_at_once(self, run, params, count, seed)
  local generator, kept = random { seed = seed }, {}
  for k = 1, count do
    require_uninterrupted()
    local change = {}
    for _, entry in ipairs(changes.list) do
      local u = generator:uniform():item()
      if entry.draw and not is_missing(self, entry.name) then change[entry.name] = entry.draw(u) end
    end
    local draw = measured(self, run, params, { change = change }, change, seed + k)
    self.draws[k], kept[#kept + 1] = draw, draw.kept
  end
  table.sort(kept)
  local n = #kept
  self.worst = kept[1]
  self.median = n > 0 and (kept[math.floor((n + 1) / 2)] + kept[math.ceil((n + 1) / 2)]) / 2 or nil
end

---@class cq.robustness.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them
---@field draws? integer        simulations with all changes at once, drawn at random
---@field seed? integer         of draws and of noise

local spec = is.define("cq.robustness", { params = evaluate.params_kind,
  draws = is.integer { min = 0, max = 1e6, default = 32 }, seed = is.integer { min = 0, max = 2 ^ 31, default = 0 } })

---Measures how much of its gain a trained robot keeps when its stiffness (all moduli of its materials), its density,
---friction of walls, strength of actuators and gravity are 5 and 10 % less and more; with 2 and 4 times the substeps;
---on a grid of 0.8 times the cell size, with the body sampled anew (for an experiment that is made by a function of a
---level); moved by half a cell; in the other precision; with noise of 5 % of a full signal; with signals that come
---one control step late; and with all of these drawn at once, but grid and precision. Other robots of the world stay
---as they are. Makes about 130 rollouts, without gradients. A change that the simulation or the script cannot do, as
---half a cell into a wall, is told, counted and left out.
---Errors: a run whose loss is not below that of its start.
---@param run cq.Experiment     after run:optimize or run:load
---@param opts? cq.robustness.def
---@return cq.Robustness        prints a table
local function robustness(_, run, opts)
  is.argument("cq.robustness", "run", is.instance "cq.Experiment", run)
  local def = spec(opts or {})
  local params = evaluate.params(run, def.params, "cq.robustness")
  local self = setmetatable({ rows = {}, missing = {}, draws = {}, failed = 0 }, Robustness)
  local gain
  gain, self.loss, self.start = gain_of(run, params, {}, def.seed)
  if not (gain > 0) then
    is.fail("cq.robustness: the run has gained nothing that could be kept: its loss is %.4g and that of its start %.4g",
      self.loss, self.start)
  end
  one_by_one(self, run, params, def.seed)
  all_at_once(self, run, params, def.draws, def.seed)
  if self.failed > 0 then
    message.warn("cq.robustness: %s failed and %s left out", text.count(self.failed, "simulation"),
      self.failed == 1 and "is" or "are")
  end
  return self
end

-- ---- what it tells --------------------------------------------------------------------------------------------------

local function share(kept) return kept and ("%.0f %%"):format(100 * kept) or "failed" end

function Robustness:__tostring()
  local lines = { ("loss %.4g, %.4g at the start; kept of that gain"):format(self.loss, self.start) }
  local at = 1
  while at <= #self.rows do
    local name, cells = self.rows[at].name, {}
    while self.rows[at] and self.rows[at].name == name do
      cells[#cells + 1] = ("%s: %s"):format(self.rows[at].change, share(self.rows[at].kept))
      at = at + 1
    end
    lines[#lines + 1] = ("  %-10s %s"):format(name, table.concat(cells, "   "))
  end
  if #self.draws > 0 then
    lines[#lines + 1] = ("  together   median %s, worst %s of %s"):format(share(self.median), share(self.worst),
      text.count(#self.draws, "draw"))
  end
  for _, entry in ipairs(self.missing) do
    lines[#lines + 1] = ("  %-10s not measured: %s"):format(entry.name, entry.why)
  end
  for _, row in ipairs(self.rows) do
    if row.problem then lines[#lines + 1] = ("%s %s failed: %s"):format(row.name, row.change, row.problem) end
  end
  return table.concat(lines, "\n")
end

---Writes all numbers as JSON.
---@param path string
---@return string path
function Robustness:save(path)
  is.argument("robustness:save", "path", is.string(), path)
  atomic_file.write(path, json.encode { loss = self.loss, start = self.start, rows = self.rows, missing = self.missing,
    draws = self.draws, median = self.median, worst = self.worst, failed = self.failed } .. "\n", { durable = true })
  return path
end

---Draws a bar for each change, from its least to its most kept, the longest on top.
---@param path string        ends in .png
---@return string path
function Robustness:plot(path)
  is.argument("robustness:plot", "path", is.string(), path)
  return require("cq.robustness.tornado")(self, path)
end

method.guard(Robustness, "robustness")

return setmetatable({ class = Robustness }, { __call = robustness })
