-- snow: columns between smooth walls are pressed beyond their critical compression and let go; they stay shorter.
local cq = require "cq"

return {
  summary = "columns of snow that are pressed and let go",
  source = "Stomakhin et al., ACM TOG 32 (2013): the load is M theta_c exp(xi (1 - J)) / J by the undeformed section",
  run = function(row)
    local list = { 8, 12, 16 }
    local kept, expected, loads = {}, nil, nil
    for i, cells in ipairs(list) do
      local column = require "scenes.snow_column" { cells = cells, precision = "float64" }
      local world = cq.World(column.world)
      local state = column.press(world)
      kept[i], expected, loads = {}, column.expected, column.loads
      for k in ipairs(loads) do kept[i][k] = column.kept(state, k) end
      world:close()
    end
    for k, load in ipairs(loads) do
      local ours = {}
      for i in ipairs(list) do ours[i] = kept[i][k] end
      row { method = "explicit", quantity = ("length kept after %g critical loads"):format(load), exact = expected[k],
        ours = ours, refined = list, by = "cells across", promise = 0.005,
        plateau = "the load comes in a finite time: where it comes half as fast, the error is half as large" }
    end
  end,
}
