-- index: what each trained robot of this folder is claimed to do, and how that is measured.
--
--   name      of NAME.bin, a run's saved.bin in float32
--   made      the command that trained it
--   says      the figure in words; claimed: what it was after training
--   less      is less of the figure better?
--   measure   the figure, of the states at the start and at the end, and the robots of the world
--   objective of cqlua robust, a function of the world that gives an objective of cq.Experiment; the figure, unless
--             given
--   early     for the tests: after so many control steps the figure is `is`, to `within`. --simd baseline, avx2 and
--             avx512 differ by less than a tenth of that; later gaits may part
local cq = require "cq"

local function way(of, length)
  return function(first, last, robots)
    local which = of or robots[1]
    return (last:center(which)[1] - first:center(which)[1]):item() / (length or robots[1].size[1])
  end
end

return {
  { name = "biped", made = "examples/biped.lua --particles 20", says = "ran %.2f body lengths in 4 time units",
    claimed = 4.23, measure = way(nil, 0.3), early = { steps = 300, is = 0.6965, within = 1e-3 } },
  { name = "walker2d", made = "examples/walker2d.lua", says = "walked %.2f body lengths in 4 time units",
    claimed = 2.56, measure = way("trunk", 0.6), early = { steps = 300, is = 0.4048, within = 1e-3 } },
  { name = "codesign", made = "examples/codesign.lua", says = "its trunk went %.2f in 4 time units, with a body of its own",
    claimed = 2.20, measure = way("trunk", 1), early = { steps = 300, is = 0.3119, within = 1e-3 } },
  { name = "crawler", made = "examples/crawler.lua", says = "crawled %.2f body lengths in 2 time units",
    claimed = 1.24, measure = way(), early = { steps = 200, is = 0.2665, within = 1e-3 } },
  { name = "runner", made = "examples/runner.lua", says = "ran %.2f body lengths in 4 time units",
    claimed = 1.07, measure = way(), early = { steps = 30, is = 0.0659, within = 1e-3 } },
  { name = "cable_biped", made = "examples/cable_biped.lua --seed 2", says = "walked %.2f body lengths in 4 time units",
    claimed = 3.75, measure = way(), early = { steps = 300, is = 1.2108, within = 1e-3 } },
  { name = "quadruped", made = "examples/quadruped.lua --legs 4 --codesign",
    says = "walked %.2f body lengths in 3 time units, with a body of its own", claimed = 4.51, measure = way(),
    early = { steps = 24, is = 0.8120, within = 1e-3 } },
  { name = "gripper", made = "examples/gripper.lua", says = "holds the ball %.2f mm over where it lay, its table gone",
    claimed = 2.07, early = { steps = 20, is = 0.6364, within = 1e-3 },
    measure = function(first, last, robots)
      return (last:center(robots[2])[2] - first:center(robots[2])[2]):item() / 1e-3
    end },
  { name = "arm2d", made = "examples/arm2d.lua", says = "brings its hand to %.3f from its goal, with a body of its own",
    claimed = 0.0101, less = true, early = { steps = 100, is = 0.2259, within = 1e-3 },
    measure = function(_, last) return (last:center "hand" - cq.tensor { 0.7, 0.5 }):norm():item() end },
  { name = "climber", made = "examples/topology_climber.lua --seed 101",
    says = "climbed %.2f m in 1 s between two walls, a body found by topology optimization", claimed = 0.31,
    early = { steps = 1000, is = 0.3081, within = 1e-3 },
    measure = function(first, last, robots)
      return (last:center(robots[1])[2] - first:center(robots[1])[2]):item()
    end },
  { name = "balancer", made = "examples/topology_balancer.lua --starts 1 --seed 101",
    says = "has its top %.1f mm from where it was, after 1 s on a floor that shakes, a body found by topology optimization",
    claimed = 2.5, less = true, early = { steps = 100, is = 3.1562, within = 1e-3 },
    measure = function(first, last)
      local by = { weight = "particle" }
      return 1e3 * (last:center("tip", by) - first:center("tip", by)):norm():item()
    end,
    objective = function(world) return { reduce = "mean", running = require "scenes.swaying"(world) } end },
  { name = "walker", made = "examples/topology_walker.lua --starts 1 --seed 101",
    says = "walked %.3f m in 0.5 s, a body found by topology optimization", claimed = 0.345, measure = way(nil, 1),
    early = { steps = 200, is = 0.0603, within = 1e-3 } },
  { name = "walker3d", made = "examples/topology_walker3d.lua --seed 101",
    says = "galloped %.3f m in 0.5 s, a body in space found by topology optimization", claimed = 0.663,
    measure = way(nil, 1), early = { steps = 150, is = 0.0695, within = 1e-3 } },
  { name = "walker_feedback",
    made = "tests/papers/feedback.lua --from zoo/walker.bin --over steps --iterations 120 --rate 1e-2",
    says = "walked %.3f m in 0.5 s, the walker's body with a small feedback beside its pulses", claimed = 0.409,
    measure = way(nil, 1), early = { steps = 200, is = 0.0629, within = 1e-3 } },
  { name = "creature", made = "examples/creature.lua --seed 1", says = "ran %.2f body lengths in 4 time units",
    claimed = 1.73, measure = way(nil, 0.4), early = { steps = 200, is = 0.6384, within = 1e-3 } },
  { name = "rhino", made = "examples/rhino.lua --seed 1", says = "galloped %.2f body lengths in 4 time units",
    claimed = 2.52, measure = way(nil, 0.45), early = { steps = 200, is = 0.7940, within = 1e-3 } },
}
