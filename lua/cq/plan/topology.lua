-- topology: the plan by which a design is found unless a problem needs one of its own.
local is = require "cq.base.schema"

local spec = is.define("cq.Plan.topology", { name = is.string { default = "topology" },
  starts = is.any_of { is.integer { min = 1, max = 1000 }, is.table(), default = 8 },
  coarsen = is.integer { min = 1, max = 8, default = 2 },
  optimizer = is.instance { "cq.Optimizer", optional = true },
  passive_weight = is.number { min = 0, default = 1 }, feedback = is.integer { min = 0, default = 0 },
  variants = is.any { optional = true }, reduce = is.any { optional = true } })

-- The starts of a plan by their number: half of them go on after the bodies of coarse cells are binary, and a quarter
-- after those of all particles are.
local function halved(count)
  local half, quarter = math.ceil(count / 2), math.ceil(count / 4)
  return { count = count, { keep = half, at = "coarse binary" }, { keep = quarter, at = "binary" } }
end

---cq.Plan.topology: a plan of coarse, soft, binary and pulse stages.
---@param fields? cq.Plan.topology.def
---@return cq.Plan
return function(fields)
  local def = spec(fields or {})
  local cq_plan, schedule = require "cq.plan", require "cq.schedule"
  -- A schedule of a learning rate that falls to a tenth of its first value.
  local function falling(from) return schedule.linear { from = from, to = from / 10 } end
  local growing = { passive_weight = def.passive_weight }
  local careful = { rate = falling(0.01), clip = "median", sharpness = 8, passive_weight = def.passive_weight }
  local level = { coarsen = def.coarsen }
  local stages = {
    name = def.name,
    optimizer = def.optimizer or require("cq.optimizer").adam { rate = 0.01, epsilon = 1e-4, relative_epsilon = true },
    starts = type(def.starts) == "number" and halved(def.starts) or def.starts, options = { gradient_decay = "auto" },
    { name = "coarse gait", iterations = 60, level = level, train = { "design.layout", "design.pulses" } },
    { name = "coarse soft", iterations = 150, level = level, options = growing },
    { name = "coarse binary", iterations = 100, level = level, body = "binary", options = careful },
    { name = "soft", iterations = 60, options = growing },
    { name = "binary", iterations = 80, body = "binary", options = careful },
    { name = "pulses", iterations = 200, body = "extracted", train = { "design.pulses" },
      options = { rate = falling(0.03), clip = "median" } },
  }
  if def.feedback > 0 then
    stages[#stages + 1] = { name = "feedback", iterations = def.feedback, body = "extracted",
      train = { "design.pulses", "controller" }, options = { rate = falling(0.01), clip = "median" } }
  end
  stages[#stages].variants, stages[#stages].reduce = def.variants, def.reduce
  return cq_plan(stages)
end
