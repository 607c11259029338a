-- words: a plan as it would be told in a paper, and as the record by which a run that goes on knows it.
local signature = require "cq.run.signature"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

local words = {}

---A value of a stage as text for records and prints: numbers, strings, classes and lists by signature.word, "a
---function", infinity as "none", other tables as "name value, ...".
---@param value any
---@return string
function words.of(value)
  if type(value) == "function" then return "a function" end
  if value == math.huge then return "none" end
  if type(value) ~= "table" or text.class_of(value) or #value > 0 then return signature.word(value) end
  local list = {}
  for k, name in ipairs(tables.names(value)) do list[k] = name .. " " .. words.of(value[name]) end
  return table.concat(list, ", ")
end

---A copy of a level, the argument of an experiment's function, with the default coarsen = 1.
---@param level table
---@return table
function words.whole_level(level) return tables.merged({ coarsen = 1 }, level) end

---The variants of a stage as text: their number, "drawn" for a function, or "none".
---@param given any
---@return string
function words.of_variants(given)
  if not given then return "none" end
  if type(given) ~= "table" or getmetatable(given) then return "drawn variants" end
  return #given > 0 and text.count(#given, "variant") or ("%s%s"):format(text.count(given.count or 8, "variant"),
    given.fixed and ", fixed" or "")
end

---A reduction of the losses of variants to one as text: "mean", "worst", or "mean of the worst 0.3".
---@param reduce string|{ cvar: number }
---@return string
function words.of_reduce(reduce)
  return type(reduce) == "table" and "mean of the worst " .. text.number(reduce.cvar) or reduce
end

---How the starts of a plan become fewer, as text: "4 go on after coarse binary, 2 after binary".
---@param plan cq.Plan      with starts
---@return string
function words.of_cuts(plan)
  local list = {}
  for k, cut in ipairs(plan.starts.cuts) do
    local goes_on = k > 1 and "" or cut.keep == 1 and " goes on" or " go on"
    list[k] = ("%d%s after %s%s"):format(cut.keep, goes_on, cut.iteration and ("iteration %d of "):format(cut.iteration)
      or "", plan.stages[cut.at].name)
  end
  return table.concat(list, ", ")
end

-- ---- the record -----------------------------------------------------------------------------------------------------

---A stage as texts by the names of its fields, to compare with the present plan when a run is resumed.
---@param stage cq.Plan.stage.def
---@param optimizer cq.Optimizer      its own, the plan's or the experiment's
---@return table<string, string>
function words.record(stage, optimizer)
  local out = { name = stage.name, iterations = tostring(stage.iterations), level = words.of(stage.level),
    train = stage.train and table.concat(stage.train, ", ") or "all", body = stage.body, minimize = stage.minimize,
    initial = stage.initial, stop = stage.stop and words.of(stage.stop) or "none",
    variants = stage.variants ~= nil and words.of_variants(stage.variants) or nil,
    reduce = stage.reduce and words.of(stage.reduce) or nil,
    recover = stage.recover and words.of(stage.recover) or "none", on_end = stage.on_end and "a function" or nil }
  for name, value in pairs(stage.options) do
    if name == "limits" then
      for key, limit in pairs(value) do out["options.limits." .. key] = words.of(limit) end
    else
      out["options." .. name] = words.of(value)
    end
  end
  signature.add_optimizer(out, optimizer, "optimizer")
  return out
end

-- ---- sentences ------------------------------------------------------------------------------------------------------

local optimizer_names = { adam = "Adam", adam_per_tensor = "Adam with one mean square for each tensor",
  gradient_descent = "gradient descent", momentum = "momentum", augmented_lagrangian = "an augmented Lagrangian",
  nlopt = "NLopt", ipopt = "IPOPT", parts = "an optimizer for each part" }
local bodies = { soft = "soft body", binary = "binary body", extracted = "extracted body" }

-- A stage's optimizer and rate as text.
local function optimizer_words(stage)
  local optimizer, rate = stage.optimizer, stage.options.rate
  local kind = optimizer and optimizer.kind
  local name = not optimizer and "the experiment's optimizer" or optimizer_names[kind] or kind
  if kind == "augmented_lagrangian" then name = ("%s around %s"):format(name, optimizer_names[optimizer.inner.kind]) end
  if optimizer and optimizer.relative_epsilon then
    name = ("%s, relative epsilon %s"):format(name, words.of(optimizer.epsilon))
  end
  if optimizer and optimizer.clip and not stage.options.clip then
    name = ("%s, clip %s"):format(name, words.of(optimizer.clip))
  end
  rate = rate or optimizer and (optimizer.rate_made or optimizer.rate)
  return rate and ("by %s, rate %s"):format(name, words.of(rate)) or "by " .. name
end

-- A stage's level, such as its cell size, as a list of texts.
local function level_words(level)
  local list = {}
  for _, name in ipairs(tables.names(level)) do
    local value = level[name]
    if name == "coarsen" then
      list[#list + 1] = value == 2 and "cells and steps twice as large"
        or value ~= 1 and ("cells and steps %s times as large"):format(words.of(value)) or nil
    else
      list[#list + 1] = ("%s %s"):format(name, words.of(value))
    end
  end
  return list
end

-- A stage's options as a list of texts, without the learning rate.
local function option_words(options)
  local list = {}
  for _, name in ipairs(tables.names(options)) do
    if name ~= "rate" then list[#list + 1] = ("%s %s"):format((name:gsub("_", " ")), words.of(options[name])) end
  end
  return list
end

-- A stage's criterion to stop as a list of texts.
local function stop_words(stop)
  if text.is_callable(stop) then return { "until a function of the history ends it" } end
  local list = {}
  if stop.below then list[#list + 1] = "until the loss is below " .. text.number(stop.below) end
  if stop.stalled then
    list[#list + 1] = ("until %d iterations lower the loss by less than %s %%"):format(stop.stalled,
      text.number(100 * stop.change))
  end
  return list
end

-- What a stage trains, as text.
local function trained_words(stage, has_design)
  if stage.train then return table.concat(stage.train, ", ") end
  if not has_design then return "all" end
  return stage.body == "extracted" and "all but the body" or "all but a feedback"
end

-- The variants of a stage as a list of texts, where they are not the experiment's.
local function variant_words(stage)
  if stage.variants == false then return { "its own simulation alone" } end
  local reduce = stage.reduce and words.of_reduce(stage.reduce)
  if stage.variants then return { ("%s of %s"):format(reduce or "mean", words.of_variants(stage.variants)) } end
  return reduce and { reduce .. " of the experiment's variants" } or {}
end

-- A stage as a sentence of a methods section, for print(plan). number: of the stage; has_design: say which body it has.
local function stage_words(number, stage, has_design)
  local list = level_words(stage.level)
  if has_design then list[#list + 1] = bodies[stage.body] end
  list[#list + 1] = ("%s trained %s"):format(trained_words(stage, has_design), optimizer_words(stage))
  for _, word in ipairs(option_words(stage.options)) do list[#list + 1] = word end
  if stage.minimize == "violation" then list[#list + 1] = "constraints alone, until they are kept" end
  for _, word in ipairs(variant_words(stage)) do list[#list + 1] = word end
  if stage.initial == "last" then list[#list + 1] = "from the last iteration of the stage before" end
  for _, word in ipairs(stage.stop and stop_words(stage.stop) or {}) do list[#list + 1] = word end
  if stage.recover == false then list[#list + 1] = "without recovery from failed simulations" end
  list[#list + 1] = text.count(stage.iterations, "iteration")
  return ("%d. %s: %s."):format(number, stage.name, table.concat(list, ", "))
end

---A plan in sentences, as in the methods section of a paper.
---@param plan cq.Plan
---@return string
function words.sentences(plan)
  local sum, has_design, lines = 0, false, {}
  for _, stage in ipairs(plan.stages) do
    sum, has_design = sum + stage.iterations, has_design or stage.body ~= "soft"
  end
  local head = ("Plan %s: %s"):format(plan.name, text.count(sum, "iteration"))
  if plan.starts and plan.starts.count > 1 then
    head = ("%s; %d starts, %s"):format(head, plan.starts.count, words.of_cuts(plan))
  end
  lines[1] = head .. "."
  for k, stage in ipairs(plan.stages) do lines[k + 1] = stage_words(k, stage, has_design) end
  return table.concat(lines, "\n")
end

return words
