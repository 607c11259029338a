-- sampler: which points a study tries. The point number k is a function of the study's seed and k alone for the designs
-- that stand before a study begins, and of the results of earlier points too for those that adapt.
--
--   grid               every combination of what grid lists; the last name (in order of letters) changes first
--   random             independent uniform coordinates
--   latin_hypercube    of n points one in each of n slices along every coordinate (McKay, Beckman, Conover 1979)
--   sobol              Sobol's sequence, scrambled (sobol.lua)
--   tpe                tree-structured Parzen estimator (tpe.lua)
--   cma_es             covariance matrix adaptation (cma.lua), a generation at a time
local is = require "cq.base.schema"
local Cma = require "cq.study.cma"
local sobol = require "cq.study.sobol"
local stream = require "cq.study.stream"
local tpe = require "cq.study.tpe"

---@class cq.Sampler
---@field adapts boolean?       does a point depend on results?
---@field fixed boolean?        does a point depend on how many there are?
---@field units fun(study: cq.Study, k: integer, history: table?): number[]    coordinates in [0, 1)
---@field check fun(study: cq.Study)?       what the sampler cannot do, as an error
---@field limit fun(study: cq.Study, history: table): integer   the last point that can be drawn now; none: all
local samplers = {}

samplers.grid = {
  fixed = true,
  -- Coordinates {parameters} in [0, 1) of point k, from 1: one combination of the lists' values.
  units = function(study, k)
    local rest, out = k - 1, {}
    for d = #study.space, 1, -1 do
      local count = #study.space[d].parameter.values
      out[d] = (rest % count + 0.5) / count
      rest = math.floor(rest / count)
    end
    return out
  end,
}

samplers.random = {
  -- Coordinates {parameters} in [0, 1) of point k, uniformly at random.
  units = function(study, k)
    local random, out = stream.of(study.seed, "point", k), {}
    for d = 1, #study.space do out[d] = random:uniform() end
    return out
  end,
}

samplers.latin_hypercube = {
  fixed = true,
  -- Coordinates {parameters} in [0, 1) of point k: along each, every point is in its own of study.points slices.
  units = function(study, k)
    local orders = study.orders or {}
    study.orders = orders
    local jitter, out = stream.of(study.seed, "jitter", k), {}
    for d = 1, #study.space do
      orders[d] = orders[d] or stream.of(study.seed, "permutation", d):permutation(study.points)
      out[d] = (orders[d][k] - 1 + jitter:uniform()) / study.points
    end
    return out
  end,
}

samplers.sobol = {
  -- Raises an error if the study has more parameters than Sobol's numbers are for.
  check = function(study)
    if #study.space > sobol.dimensions then
      is.fail("cq.Study: sampler \"sobol\" has numbers for %d parameters, the space has %d; take another",
        sobol.dimensions, #study.space)
    end
  end,
  -- Coordinates {parameters} in [0, 1) of point k, of the scrambled Sobol sequence.
  units = function(study, k)
    local out = {}
    for d = 1, #study.space do out[d] = sobol.coordinate(study.seed, k - 1, d) end
    return out
  end,
}

-- A list of the cq.Parameter of a study's space.
local function parameters_of(study)
  local out = {}
  for d, entry in ipairs(study.space) do out[d] = entry.parameter end
  return out
end

samplers.tpe = {
  adapts = true,
  -- Coordinates {parameters} in [0, 1) of point k, by the finished and running points of history.
  units = function(study, k, history)
    local finished = {}
    for _, entry in ipairs(history.finished) do finished[#finished + 1] = entry end
    table.sort(finished, function(a, b) return a.number < b.number end)
    return tpe.next(parameters_of(study), finished, history.running, stream.of(study.seed, "tpe", k))
  end,
}

-- The CMA-ES (Cma) of a study, kept in history, updated by all generations that have ended as a whole; a failed trial
-- counts as infinite.
local function strategy(study, history)
  local cma = history.cma or Cma.new(#study.space)
  history.cma = cma
  while true do
    local first, points, values = cma.generation * cma.size, {}, {}
    for i = 1, cma.size do
      local entry = history.by_number[first + i]
      if not entry then return cma end
      points[i], values[i] = entry.x, entry.state == "done" and entry.values[1] or math.huge
    end
    cma:tell(points, values)
  end
end

samplers.cma_es = {
  adapts = true,
  -- Raises an error if the study has several objectives, or a choice among its parameters.
  check = function(study)
    if #study.objectives > 1 then is.fail("cq.Study: sampler \"cma_es\" takes one objective, got %d; take \"tpe\"",
      #study.objectives) end
    for _, entry in ipairs(study.space) do
      if entry.parameter.kind == "choice" then
        is.fail("cq.Study: sampler \"cma_es\" draws numbers, and %s is a choice; take \"tpe\"", entry.name)
      end
    end
  end,
  -- Coordinates {parameters} in [0, 1) of point k, drawn from the present generation's distribution.
  units = function(study, k, history) return strategy(study, history):ask(stream.of(study.seed, "cma", k)) end,
  -- The number of the last point of the present generation.
  limit = function(study, history)
    local cma = strategy(study, history)
    return (cma.generation + 1) * cma.size
  end,
}

return samplers
