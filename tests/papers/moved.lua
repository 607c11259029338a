-- moved: an observer of velocities of clusters, and of 20 times the way of each from where it was at the first control
-- step, which a body that leans or slides tells slowly by its velocity.
local cq = require "cq"

---@param clusters integer
---@return table observer
return function(clusters)
  local inner = cq.Observer.kmeans { clusters = clusters, velocity = true }
  return { observe = function(_, state, first)
    local z = inner:observe(state)
    first = first or z
    local half = z:size(z.rank) / 2
    return cq.concat({ 20 * (z - first):slice(1, half, z.rank), z:slice(half + 1, 2 * half, z.rank) }, -1), first
  end }
end
