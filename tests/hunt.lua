-- hunt: random scenes, and the gradient of everything that can be trained in them against
-- central differences, in float64.
--
--   make hunt SEED=1 COUNT=1000           or build/cqlua tests/hunt.lua --seed 1 --count 1000
--   make hunt SEED=417 COUNT=1 VERBOSE=1  one of them again, with what was seen
--
-- The scene of a seed is always the same. The exit code is 1 where a gradient is wrong or not repeatable, or where
-- something fails that should not.
local cq = require "cq"
local option = require "cq.option"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local scene = require "tests.hunt.scene"
local judge = require "tests.hunt.judge"

local first, count, verbose = option.program.seed or 1, cq.option("count", 100), cq.option("verbose", false)
option.program.threads = option.program.threads > 0 and option.program.threads or 1
T.warn = function() end      -- a parameter without influence is nothing rare here

local total = { right = 0, kink = 0, unclear = 0, wrong = 0, failed = 0, unstable = 0 }
local bad, hidden = {}, {}

local function tell(seed, what, words)
  bad[#bad + 1] = seed
  print(("seed %d: %s\n  %s"):format(seed, what, words))
end

local function hunt(seed)
  local words, close = "", nil
  local fine, problem = xpcall(function()
    local made = scene.make(seed)
    words, close = made.words, made.world
    local verdicts, report, repeatable = judge.check(made.loss, made.params, seed)
    local wrong = {}
    for name, verdict in pairs(verdicts) do
      total[verdict] = total[verdict] + 1
      if verdict == "wrong" then wrong[#wrong + 1] = name end
      if verdict == "unclear" then hidden[#hidden + 1] = ("%s of seed %d"):format(name, seed) end
    end
    table.sort(wrong)
    if #wrong > 0 then tell(seed, "the gradient is wrong along " .. table.concat(wrong, ", "), words) end
    if not repeatable then tell(seed, "not the same bits twice", words) end
    if verbose or #wrong > 0 then print(verbose and words .. "\n" .. report or report) end
  end, function(why) return tostring(why) .. (verbose and "\n" .. debug.traceback() or "") end)
  if close then close:close() end
  if fine then return end
  -- a body that a wall or its own muscle turns inside out has no gradient
  if problem:find("the simulation failed at", 1, true) then
    total.unstable = total.unstable + 1
    if verbose then print(words .. "\n" .. problem) end
  else
    total.failed = total.failed + 1
    tell(seed, problem, words)
  end
end

local start = C.cq_clock()
for seed = first, first + count - 1 do
  hunt(seed)
  if not option.program.quiet and seed % 50 == 0 then
    io.stderr:write(("%d scenes, %.0f s\n"):format(seed - first + 1, C.cq_clock() - start))
  end
end
local checked = total.right + total.kink + total.unclear + total.wrong
print(("%d scenes from seed %d, %d directions of gradients: %d right, %d right but at a kink, %d that rounding or kinks hide, %d wrong; "
  .. "%d unstable, %d failed"):format(count, first, checked, total.right, total.kink, total.unclear, total.wrong,
    total.unstable, total.failed))
if #hidden > 0 then print("hidden: " .. table.concat(hidden, ", ")) end
for _, seed in ipairs(bad) do print(("make hunt SEED=%d COUNT=1 VERBOSE=1"):format(seed)) end
os.exit(#bad == 0 and 0 or 1)
