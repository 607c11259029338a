-- judge: is the gradient of a scene right? Along random directions, through all parameters and through each alone, by
-- cq.check_gradient, which tells a kink from a wrong adjoint by how the differences on the two sides behave. Where it
-- says anything but right the scene is asked again at points nearby: a kink stays behind, a wrong adjoint comes along.
local cq = require "cq"
local T = require "cq.tensor"
local new_draw = require "tests.hunt.draw"

local judge = {}

local OPTIONS = { steps = { 1e-3, 1e-4, 1e-5, 1e-6, 1e-7 }, directions = 1, each = true, brief = true,
  tolerance = 1e-6 }
local AWAY = 2e-4            -- how far a point nearby is, relative to each parameter
local POINTS = 5

local function move(params, draw)
  for _, leaf in ipairs(T.leaves.trainable(params, "hunt")) do
    local t = leaf.tensor
    local scale = t:detach():norm():item() / math.sqrt(t.count)
    scale = scale > 0 and scale or 1          -- biases of a network begin at 0, where a cable's tension has its corner
    t:copy_from(t:detach() + draw:tensor(t:shape(), -AWAY, AWAY) * scale)
  end
end

---Verdicts by the name of each direction: "right"; "kink" if so at one of the points nearby only; "wrong"; "unclear"
---where rounding or kinks are all that was seen. report: what cq.check_gradient printed where it was not right.
---@param loss fun(p: table): cq.Tensor
---@param params table         moved a little, if anything was not right
---@param seed integer
---@return table<string, string> verdicts, string report, boolean repeatable
function judge.check(loss, params, seed)
  local draw, verdicts, wrong, reports, repeatable = new_draw(seed), {}, {}, {}, true
  for point = 1, POINTS do
    OPTIONS.seed = seed + point
    local check, open = cq.check_gradient(loss, params, OPTIONS), false
    repeatable = repeatable and check.repeatable
    for _, direction in ipairs(check.directions) do
      local name, before = direction.name, verdicts[direction.name]
      if point == 1 or before == "unclear" then
        verdicts[name] = direction.verdict ~= "right" and "unclear" or point == 1 and "right" or "kink"
        if direction.verdict == "wrong" then wrong[name] = (wrong[name] or 0) + 1 end
        open = open or verdicts[name] == "unclear"
      end
    end
    if not (open and repeatable) then break end
    reports[#reports + 1] = tostring(check)
    move(params, draw)
  end
  for name, verdict in pairs(verdicts) do
    if verdict == "unclear" and (wrong[name] or 0) >= 2 then verdicts[name] = "wrong" end
  end
  return verdicts, table.concat(reports, "\n"), repeatable
end

return judge
