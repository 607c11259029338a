-- starts: how many trainings, from different initial values, a plan begins with, and after which stages the worst of
-- them end.
--
--   starts = { count = 4, keep = 2, at = "binary" }
--   starts = { count = 8, { keep = 4, at = "coarse binary" }, { keep = 2, at = "binary" } }
--
-- Source of several cuts, successive halving: Karnin, Koren, Somekh, Almost optimal exploration in multi-armed bandits,
-- 2013; Jamieson, Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local tables = require "cq.base.tables"
local words = require "cq.plan.words"

local starts = {}

---@class cq.Plan.starts.def
---@field count integer        starts, of seeds that follow one another from --seed on (else from the design's, or 0)
---@field keep? integer        how many go on; 1
---@field at? string|table     name of the stage after which the others end, the last one as a rule; or { "binary", 40
---  }, that and one of its iterations
---@field [integer] cq.Plan.starts.cut.def   several cuts in place of keep and at, as { keep = 4, at = "coarse binary" },
---  in the order of their stages. After the last of them losses must be those of the last stage's problem

---@class cq.Plan.starts.cut.def
---@field keep integer         how many go on
---@field at string|table      after which stage, or after which of its iterations

---The starts of a plan as it keeps them; at: the number of a stage.
---@class cq.Plan.starts
---@field count integer
---@field cuts { keep: integer, at: integer, iteration: integer? }[]

local a_place = is.any_of { is.string(), is.table() }
local cut_spec = is.define("cq.Plan: starts", { keep = is.integer { min = 1 }, at = a_place })
local spec = is.define("cq.Plan: starts", { count = is.integer { min = 1, max = 1000 },
  keep = is.integer { min = 1, optional = true }, at = is.any_of { is.string(), is.table(), optional = true } },
  is.table())

-- The place of a cut: the number of a stage, and an iteration of it or nil. Errors: no such stage or iteration.
local function place_of(plan, at)
  local name, iteration = at, nil
  if type(at) == "table" then
    name, iteration = at[1], at[2]
    if type(name) ~= "string" or #at ~= 2 then
      is.fail("cq.Plan: starts.at is the name of a stage, or { name, iteration }, got %s", text.describe(at))
    end
  end
  local number = plan.number[name]
  if not number then
    local names = {}
    for k, stage in ipairs(plan.stages) do names[k] = stage.name end
    is.fail("cq.Plan: starts.at: there is no stage %s%s; stages are %s", text.describe(name),
      text.suggestion(name, names), table.concat(names, ", "))
  end
  if iteration then
    local most = math.max(1, plan.stages[number].iterations)
    is.argument("cq.Plan", "starts.at[2]", is.integer { min = 1, max = most }, iteration)
  end
  return number, iteration
end

-- Is the place of a cut behind that of the one before it? Without an iteration it is the end of its stage.
local function is_later(cut, before)
  if cut.at ~= before.at then return cut.at > before.at end
  return before.iteration ~= nil and (cut.iteration or math.huge) > before.iteration
end

-- Raises an error if losses at the last cut are of another problem than those of the last stage: of another level, or
-- of a soft body where the last one's is not.
local function check_problem(plan, cut)
  local last, names = plan.stages[#plan.stages], {}
  -- Are losses of a stage of the last one's problem?
  local function is_alike(stage)
    return words.of(words.whole_level(stage.level)) == words.of(words.whole_level(last.level))
      and (stage.body ~= "soft" or last.body == "soft")
  end
  if is_alike(plan.stages[cut.at]) then return end
  for _, stage in ipairs(plan.stages) do names[#names + 1] = is_alike(stage) and stage.name or nil end
  is.fail("cq.Plan: starts.at: losses of stage %q say little of those of the last one, which has another level or no soft body; the last cut can be after %s",
    plan.stages[cut.at].name, table.concat(names, ", "))
end

---The starts of a plan, checked. Errors: no such stage or iteration; cuts that are not in order, or that keep more
---starts than there are; a last one in a stage whose losses do not predict those of the last stage.
---@param plan cq.Plan          whose stages are known
---@param given cq.Plan.starts.def
---@return cq.Plan.starts
function starts.of(plan, given)
  is.require_whole(given, "cq.Plan: starts")
  local def, out = spec(given), { cuts = {} }
  out.count = def.count
  if #def > 0 and (def.keep or def.at) then
    is.fail("cq.Plan: starts has a list of cuts, or keep and at, not both")
  end
  local list = #def > 0 and def or { { keep = def.keep or 1, at = def.at or plan.stages[#plan.stages].name } }
  local count = def.count
  for k, entry in ipairs(list) do
    local cut = cut_spec(entry)
    cut.at, cut.iteration = place_of(plan, cut.at)
    if cut.keep > count then
      is.fail("cq.Plan: starts.keep must be at most %s, %d, got %d", k == 1 and "starts.count" or "that of the cut before",
        count, cut.keep)
    end
    if k > 1 and not is_later(cut, out.cuts[k - 1]) then
      is.fail("cq.Plan: cuts of starts must be in the order of their stages; cut %d, after stage %q, is not behind cut %d",
        k, plan.stages[cut.at].name, k - 1)
    end
    out.cuts[k], count = cut, cut.keep
  end
  check_problem(plan, out.cuts[#out.cuts])
  return out
end

---The same starts with other iterations, of which part(iterations) is the number.
---@param self cq.Plan.starts
---@param part fun(iterations: integer): integer
---@return cq.Plan.starts
function starts.scaled(self, part)
  local out = { count = self.count, cuts = {} }
  for k, cut in ipairs(self.cuts) do
    out.cuts[k] = tables.merged(cut, cut.iteration and { iteration = part(cut.iteration) } or {})
  end
  return out
end

---How many starts come to the end of a plan.
---@param self cq.Plan.starts?
---@return integer
function starts.kept(self) return self and self.cuts[#self.cuts].keep or 1 end

return starts
