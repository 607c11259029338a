-- variants: what users give as `variants` and `reduce` of an experiment, a plan or a stage, checked, and as text.
local is = require "cq.base.schema"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local words = require "cq.plan.words"

local variants = {}

---Most variants of an iteration.
variants.MOST = 2 ^ 12

local COUNT = 8                -- variants of a function that says no number

---@class cq.Experiment.variants.def
---@field each fun(random: cq.Random, k: integer): cq.Experiment.variant.def|cq.Experiment   what variant k, from 1, is; {}: the
---  experiment as it is. It draws from `random` alone
---@field count? integer          how many
---@field fixed? boolean          drawn once, and not for each iteration anew; an optimizer that compares losses of iterations needs it

---@class cq.Experiment.reduce.def
---@field cvar number      the mean of this share of the losses, the worst ones

local each_spec = is.define("cq.Experiment: variants", { each = is.callable(),
  count = is.integer { min = 1, max = variants.MOST, default = COUNT }, fixed = is.boolean { default = false } })
local reduce_spec = is.define("cq.Experiment: reduce", { cvar = is.number { above = 0, max = 1 } })

---@alias cq.Experiment.variants cq.Experiment.variants.def|(cq.Experiment.variant.def|cq.Experiment)[]|fun(random: cq.Random, k: integer): any

-- Checks the user's reduction of the losses of variants to one: "mean", "worst" or { cvar = share }. Errors: another
-- name; unknown fields.
local function check_reduce(given, what)
  if type(given) == "table" and not getmetatable(given) then return reduce_spec(given) end
  if given ~= "mean" and given ~= "worst" then
    is.fail('%s: reduce must be "mean", "worst" or { cvar = 0.3 }, the mean of the worst three tenths, got %s%s',
      what, text.describe(given), type(given) == "string" and text.suggestion(given, { "mean", "worst" }) or "")
  end
  return given
end

---Checks the user's variants and their reduction, and returns them as one table (an ensemble); nil: there are none.
---@param given any
---@param reduce any
---@param what string           for errors
---@return { each: function, count: integer, fixed: boolean, reduce: string|table, listed: boolean }?
function variants.of(given, reduce, what)
  if not given then
    if reduce ~= nil then is.fail("%s: reduce is of the losses of variants, and there are none", what) end
    return nil
  end
  local out
  if text.is_callable(given) then
    out = { each = given, count = COUNT, fixed = false }
  elseif type(given) ~= "table" or getmetatable(given) then
    is.fail("%s: variants must be a function(random, k), a list, or { each = ..., count = ... }, got %s", what,
      text.describe(given))
  elseif #given == 0 and next(given) then
    out = each_spec(given)
  elseif #given == 0 then
    is.fail("%s: variants is an empty list; give one at least, {} is the experiment as it is", what)
  elseif #given > variants.MOST then
    is.fail("%s: variants may be at most %d, got %d", what, variants.MOST, #given)
  else
    is.require_list(given, what .. ": variants")
    out = { each = function(_, k) return given[k] end, count = #given, fixed = true, listed = true }
  end
  out.reduce = check_reduce(reduce == nil and "mean" or reduce, what)
  return out
end

---Checks the variants and the reduction of a stage of a plan, of which either may be the experiment's.
---@param given any            nil: the experiment's
---@param reduce any           nil: the experiment's, or the mean
---@param what string
function variants.check(given, reduce, what)
  if given ~= nil then variants.of(given, reduce, what) elseif reduce ~= nil then check_reduce(reduce, what) end
end

---A copy of an ensemble with another reduction of its losses. Errors: there is no ensemble; no such reduction.
---@param own table?            from of
---@param reduce any
---@param what string
---@return table
function variants.with_reduce(own, reduce, what)
  local out = tables.merged(own or variants.of(nil, reduce, what))
  out.reduce = check_reduce(reduce, what)
  return out
end

---An ensemble as text, to compare when a run is resumed and to be told; nil: none.
---@param own table?
---@return string?
function variants.words(own)
  if not own then return nil end
  return ("%s of %d %s"):format(words.of_reduce(own.reduce), own.count,
    own.listed and "listed variants" or own.fixed and "fixed variants" or "variants of each iteration")
end

---Adds what listed variants say to a table, as texts by name. Functions and experiments are known as such alone.
---@param out table<string, string>
---@param own table?
function variants.add_words(out, own)
  for k = 1, own and own.listed and own.count or 0 do
    local given = own.each(nil, k)
    out["variant " .. k] = text.class_of(given) or words.of(given)
  end
end

return variants
