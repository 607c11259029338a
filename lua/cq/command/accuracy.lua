-- accuracy: errors of gradients against true ones, beside those of ChainQueen.   cqlua accuracy [--case A1] [--json]
--
-- The cases of ICRA 2019, table III, in the source tree: tests/accuracy/truth.lua says what is compared and how the
-- truth is known. The paper has no figures where its collision comes later. With --device cuda a case that needs what a
-- GPU does not offer is left out, with the reason.
local engine = require "cq.base.engine"
local json = require "cq.base.json"
local schema = require "cq.base.schema"
local cases = require "cq.measure.cases"
local host = require "cq.host"
local script = require "cq.base.script"

local is = schema
local STEPS = { 1, 10, 100, 1000 }
local NONE = 0 / 0                       -- null in JSON
local first_keys = { "case", "steps", "error", "paper" }

-- A number as text, 1.23e-04; - for nil and NaN.
local function scientific(x) return x and x == x and ("%.2e"):format(x) or "-" end

-- Prints the heads of the table's columns.
local function print_head()
  print(("%-5s %6s %10s %10s %8s %10s %10s  %s"):format("case", "steps", "error", "ChainQueen", "ratio", "particles",
    "forward", ""))
end

-- Prints a case's result, of measure, as a row of the table.
local function print_row(case, result)
  local ratio = result.paper == result.paper and ("%.2g"):format(result.error / result.paper) or "-"
  local what = result.steps == (case.steps or STEPS)[1] and ("%s; %s, truth: %s"):format(case.what,
    result.precision, case.truth) or ""
  print((("%-5s %6d %10s %10s %8s %10s %10s  %s"):format(case.name, result.steps, scientific(result.error),
    scientific(result.paper), ratio,
    scientific(result.particle_error), scientific(result.forward_error), what):gsub("%s+$", "")))
end

-- The list of cases with their true gradients, from the source tree. Where there is none, the program ends as after
-- wrong use.
local function load_cases()
  local path = host.root .. "/tests/accuracy/truth.lua"
  if host.kind(path) then return dofile(path).cases end
  script.misuse("accuracy finds no cases: there is no file %s; they come with the source tree", path)
end

-- The result of a case after `steps` control steps, a table for print_row and JSON: the relative error of the gradient
-- against the true one, and the paper's error. at(steps): the case's function that computes the errors.
local function measure(case, world, at, steps)
  local errors = at(steps)
  return {
    case = case.name, steps = steps, error = errors.error, paper = case.paper[steps] or NONE, dim = world.dim,
    precision = world.precision,
    particles = world.particle_count, particle_error = errors.particle_error, forward_error = errors.forward_error,
  }
end

return {
  summary = "gradient error table: ours beside ChainQueen's",
  options = {
    json = is.boolean { default = false, help = "one JSON object a line" },
    case = is.string { optional = true,
      help = "only those of this name, of a part of it, or of a pattern such as 'A*'" },
    steps = is.integer { min = 1, max = 100000, optional = true,
      help = "after so many, not after 1, 10, 100 and 1000" },
  },
  -- The subcommand: prints a row, or a line of JSON, for each case and number of steps. Returns the exit code.
  run = function(options)
    local chosen, told = cases.choose(load_cases(), options.case, "accuracy"), false
    if not options.json then print_head() end
    for _, case in ipairs(chosen) do
      local code = cases.attempt("accuracy", case.name, function()
        local world, at = case.make()
        for _, steps in ipairs(options.steps and { options.steps } or case.steps or STEPS) do
          if engine.C.cq_interrupted() ~= 0 then return 130 end
          local result = measure(case, world, at, steps)
          if options.json then print(json.encode(result, first_keys)) else print_row(case, result) end
          io.flush()
        end
        world:close()
        return 0
      end)
      told = told or code ~= nil
      if code == 130 then return code end
    end
    if not told then return 1 end
  end,
}
