-- dam_break: the front of a column of water that collapses, beside the measured one.
local cq = require "cq"

local TONGUE = "a tongue runs ahead, thinner on finer grids, for nothing rubs on the bed and the dam is gone at once; where"
  .. " the water is a fifth of a width deep the front keeps to theirs"

return {
  summary = "front of a dam break",
  source = "Martin and Moyce, Phil. Trans. R. Soc. A 244 (1952), table 2, n^2 = 2, a = 2.25 inches, as published"
    .. " comparisons tabulate it",
  run = function(row)
    local cells, found = { 10, 20, 40 }, { raw = {}, aligned = {}, [0.1] = {}, [0.2] = {} }
    for k, n in ipairs(cells) do
      local scene = require "scenes.dam_break" { across = 2 * n }
      local world, tip, deep = cq.World(scene.world), {}, { [0.1] = {}, [0.2] = {} }
      world:rollout { steps = 120, on_step = function(state)
        local time = state.time / scene.unit
        tip[#tip + 1] = { time, scene.front(state) }
        for depth, front in pairs(deep) do front[#front + 1] = { time, scene.front(state, depth) } end
      end }
      world:close()
      found.raw[k], found.aligned[k] = scene.compare(tip)
      for depth, front in pairs(deep) do found[depth][k] = scene.compare(front) end
    end
    local function compare(what, ours, more)
      local given = { method = "explicit", quantity = "place of the front, " .. what, exact = 0, scale = 1, ours = ours,
        refined = cells, by = "cells a width", promise = 0.05 }
      for key, value in pairs(more or {}) do given[key] = value end
      row(given)
    end
    compare("its tip, off at the worst point", found.raw, { at_most = 0.21, falls_short = TONGUE })
    compare("where the water is 0.1 widths deep", found[0.1], { at_most = 0.15, falls_short = TONGUE })
    compare("where the water is 0.2 widths deep", found[0.2])
    compare("its tip, from where both pass 1.44 widths together", found.aligned)
  end,
}
