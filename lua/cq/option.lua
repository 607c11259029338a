-- option: options of the command line after the script's name. Scripts read them with cq.option(name, default); the
-- program's own options (threads, precision, ...) are in option.program.
--
--   cqlua train.lua --iterations 50 --goal 0.5,0.6 --dry
--
--   cq.option("iterations", 100)          --> 50
--   cq.option("goal", { 0, 0 })           --> { 0.5, 0.6 }
--   cq.option("dry", false)               --> true
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

---Value of a script's option `--name value`, or the default when it was not typed. The text is read as the type of
---the default; a table's default reads a list, `--goal 0.5,0.6`; `--dry` alone is true. Names of the program's own
---options (seed, out, ...) give what they are set to. Errors: text that is none of that type, or not what kind
---allows; another default of threads, simd or quiet than the program's.
---@class cq.OptionModule
---@field program cq.ProgramOptions
---@overload fun(name: string, default: any, kind?: cq.Checker): any
local option = {}

---Options of the program, the same for every script.
---@class cq.ProgramOptions
---@field device "auto"|"cpu"|"cuda"|nil    nil: not given, the world's own choice holds
---@field threads integer                    0: all cores
---@field precision "float32"|"float64"|nil  nil: not given, the world's own choice holds
---@field simd "auto"|"baseline"|"avx2"|"avx512"   auto: the best of this machine
---@field out string|nil                     folder of the run
---@field overwrite boolean|nil           an earlier run in the folder is replaced; else it moves away
---@field seed integer|nil
---@field serve integer|nil               port of the page that shows what goes on; 0: any
---@field quiet boolean
---@field watch boolean|nil               the script is loaded afresh at each save
---@field share integer|nil               processes among which memory is shared, under cqlua study
---@field check boolean|nil               true under cqlua check: nothing is trained or drawn
---@field seeks_study boolean|nil         true while cqlua study reads a script, which is to return a study and not to train
---@field replay boolean|nil              true under cqlua study render: run:optimize loads what it has found
---@field follows boolean|nil             true on all ranks but the first: nothing is written
option.program = { threads = 0, simd = "auto", quiet = false }

local defaults = tables.merged(option.program)      -- those of the program itself

---Called with what an experiment's check found, under cqlua check.
---@type fun(report: table)|false
option.on_check = false

local is = schema

---The program's options as they are typed: what they allow, and a line of help.
option.declared = {
  { name = "device", kind = is.one_of { "auto", "cpu", "cuda" },
    help = "cpu (the default), cuda, or auto: the GPU where there is one that pays" },
  { name = "threads", kind = is.integer { min = 0, max = 256 }, help = "number of threads; 0, the default: all cores" },
  { name = "precision", kind = is.one_of { "float32", "float64" }, help = "float32 or float64" },
  { name = "simd", kind = is.one_of { "auto", "baseline", "avx2", "avx512" }, help = "auto, baseline, avx2 or avx512" },
  { name = "out", kind = is.string(), help = "folder for what a run leaves" },
  { name = "overwrite", kind = is.boolean(), help = "a run replaces an earlier one in its folder, which else moves away" },
  { name = "seed", kind = is.integer { min = 0, max = 2 ^ 53 }, help = "of all random numbers but those of math.random" },
  { name = "watch", kind = is.boolean(), help = "the script is loaded afresh at each save, and its training goes on" },
  { name = "serve", kind = is.integer { min = 0, max = 65535 },
    help = "a page that shows a training while it goes on; the port, or any that is free" },
  { name = "quiet", kind = is.boolean(), help = "no progress, no notes" },
}

---@internal
---Options that trainings ask for, whatever the script.
option.of_trainings = { "budget", "from", "keep", "render", "resume" }

---@type table<string, string|true>          as typed, by name
local given = {}
---@type table<string, string|true>          options of the program, as typed
local given_to_program = {}
---@type table<string, { default: any, is_known: boolean? }>     asked for by the script, by name
local asked = {}
---@type table<string, { default: any, is_known: boolean? }>     options of the program that the script asked for
local asked_of_program = {}
---@type table<string, true?>                by name: that nobody asked for it was told
local told = {}

-- ---- from text to values --------------------------------------------------------------------------------------------

local switches = { ["true"] = true, ["false"] = false, yes = true, no = false, on = true, off = false }

-- The text of an option (true: none) as a value of the wanted type, a type's name; nil where it is none of it.
local function convert(typed, wanted)
  if wanted == "boolean" then
    if type(typed) == "boolean" then return typed end
    return switches[typed]
  elseif typed == true then
    return nil
  elseif wanted == "number" then
    local number = tonumber(typed)
    return number and math.abs(number) < math.huge and number or nil
  elseif wanted == "table" then
    local list = {}
    for part in (typed .. ","):gmatch "([^,]*)," do list[#list + 1] = tonumber(part) or part end
    return list
  elseif wanted == "string" then
    return typed
  end
  return tonumber(typed) or typed             -- no default to go by
end

-- The name of the type as which convert reads the text of a checker's option.
local function wanted_by(kind)
  if kind.cats == "number" or kind.cats == "integer" then return "number" end
  if kind.cats == "boolean" then return "boolean" end
  return kind.cats:find "%[%]$" and "table" or "string"
end

local nouns = { number = "a number", boolean = "true or false", string = "a value", table = "a list such as 0.5,0.6" }

---@internal
---The value of a checker from its text; nil and a sentence when it does not fit.
---@param name string
---@param typed string|true
---@param kind cq.Checker
---@return any value, string? problem
function option.read(name, typed, kind)
  local value, fine, detail, replaces = convert(typed, wanted_by(kind)), false, nil, nil
  if value ~= nil then fine, detail, replaces = kind.check(value) end
  if fine then return value end
  local got = typed == true and "nothing" or text.describe(typed)
  return nil, ("--%s must be %s, got %s%s"):format(name, kind.label, got, detail and not replaces and detail or "")
end

---@internal
---Value of a script's option `--name value`, or its default when it was not given.
---The text is read as the type of the default; a table's default reads a list, `--goal 0.5,0.6`.
---@param name string        letters, digits, - and _
---@param default any        returned when the option was not given; its type decides how the text is read
---@param kind? cq.Checker   what is allowed, e.g. schema.integer { min = 1 }
---@return any
function option.get(name, default, kind)
  schema.argument("cq.option", "name", is.string(), name)
  if kind ~= nil and not (type(kind) == "table" and kind.check) then
    schema.fail("cq.option: kind must be a checker, as require(\"cq.base.schema\").integer { min = 1 }, got %s",
      text.describe(kind))
  end
  for _, declared in ipairs(option.declared) do
    if declared.name == name then
      if default ~= nil and defaults[name] ~= nil and default ~= defaults[name] then
        schema.fail("cq.option: %s is an option of the program itself, whose default is %s, got the default %s; name the option of the script otherwise",
          name, text.describe(defaults[name]), text.describe(default))
      end
      asked_of_program[name] = { default = default, is_known = true }
      local value = option.program[name]
      if value == nil then return default end
      return value
    end
  end
  asked[name] = { default = default, is_known = true }
  local typed = given[name]
  if typed == nil then return default end
  if kind then
    local value, problem = option.read(name, typed, kind)
    if problem then schema.fail("%s", problem) end
    return value
  end
  local value = convert(typed, type(default))
  if value == nil then
    schema.fail("--%s must be %s, got %s", name, nouns[type(default)] or "a value", typed == true and "nothing"
      or text.describe(typed))
  end
  return value
end

-- ---- set by the program ---------------------------------------------------------------------------------------------

---@internal
---Keeps the options that were typed for the script, and forgets which ones it asked for.
---@param options table<string, string|true>
function option.set_given(options)
  given, asked, asked_of_program, told = options, {}, {}, {}
end

---@internal
---Sets an option as if it had been typed; it is no error if the script never asks for it.
---@param name string
---@param typed string|true
function option.set_silently(name, typed)
  given[name], asked[name] = typed, {}
end

---@internal
---Sets one of the program's options from its text; returns a sentence if it does not fit, false if there is no such
---option.
---@return string|false|nil problem
function option.set_program(name, typed)
  for _, declared in ipairs(option.declared) do
    if declared.name == name then
      local value, problem = option.read(name, typed, declared.kind)
      if problem then return problem end
      option.program[name], given_to_program[name] = value, typed
      return nil
    end
  end
  return false
end

---@internal
---The default with which the script has asked for an option so far; false: it has not asked for it.
---@param name string
---@return boolean is_known, any default
function option.default(name)
  local entry = asked[name] or asked_of_program[name] or {}
  return entry.is_known or false, entry.default
end

---@internal
---The value of a script's option from its text on a command line, read as the type of its default.
---@param typed string|number|true
---@param default any        nil: not known
---@return any
function option.value(typed, default) return convert(typed, type(default)) end

---@internal
---The program's options by name, without those that it sets itself, as the memory's share.
---@return table<string, any>
function option.of_program()
  local out = {}
  for _, declared in ipairs(option.declared) do out[declared.name] = option.program[declared.name] end
  return out
end

---@internal
---The names of the options that the script has asked for so far, as keys.
---@return table<string, true>
function option.asked()
  local out = {}
  for name in pairs(asked) do out[name] = true end
  return out
end

---@internal
---Options that were typed and that the script never asked for, as sentences; each once, unless `again` is set.
---@param near? boolean      only those that resemble one that it asked for, so far: it may go on to ask for others
---@param again? boolean     also those that were told before
---@return string[]
function option.unused(near, again)
  local known, sentences = {}, {}
  for name in pairs(asked) do known[#known + 1] = name end
  table.sort(known)
  for name in pairs(given) do
    -- a command that runs a script without training asks for no films, also where the script makes none, and for no
    -- checkpoints
    local is_ours = (option.program.replay or option.program.check) and (name == "render" or name == "keep")
    if not asked[name] and (again or not told[name]) and not is_ours and (not near or text.suggest(name, known)) then
      told[name] = true
      local allowed = #known > 0 and "it asked for --" .. table.concat(known, ", --") or "it asked for none"
      sentences[#sentences + 1] = ("the script %s --%s%s; %s"):format(
        near and "has not asked so far for" or "never asked for", name, text.suggestion(name, known), allowed)
    end
  end
  table.sort(sentences)
  return sentences
end

---@internal
---The options that the results of a script depend on: its own, and device, precision, simd and seed where they were
---given.
---@return table<string, string|number|true>
function option.of_results()
  local out = option.given()
  for _, name in ipairs { "device", "precision", "simd", "seed" } do
    local value = option.program[name]
    if value ~= nil and not (name == "simd" and value == "auto") then out[name] = value end
  end
  return out
end

---@internal
---Options by name as sorted words of a command line, which a shell may need in quotes.
---@param options table<string, string|number|true>
---@return string[]
function option.words(options)
  local out = {}
  for name, value in pairs(options) do
    out[#out + 1] = value == true and "--" .. name
      or ("--%s=%s"):format(name, type(value) == "number" and text.exact(value) or tostring(value))
  end
  table.sort(out)
  return out
end

---@internal
---Options that were typed for the program and by which a script computes, as words of a command line.
---@return string[]
function option.typed_for_program()
  local out = {}
  for _, name in ipairs { "device", "precision", "seed", "simd", "threads" } do
    if given_to_program[name] then out[#out + 1] = ("--%s=%s"):format(name, given_to_program[name]) end
  end
  return out
end

---@internal
---The options that were given on the command line, for a run's manifest.
---@return table<string, string|true>
function option.given()
  return tables.merged(given)
end

return setmetatable(option, { __call = function(_, name, default, kind) return option.get(name, default, kind) end })
