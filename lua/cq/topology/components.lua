-- components: which particles of a block touch, and which parts of a body are connected.
local T = require "cq.tensor"
local sparse = require "cq.sparse"

local components = {}

---@class cq.Topology.components.graph
---@field near cq.Sparse       {n, n} distances of particles that touch, and 0 on the diagonal [length]
---@field row integer[]        of its entries, row after row
---@field column integer[]

---The graph of the particles that touch: all pairs nearer than the radius, as a sparse matrix of distances with the row
---and column of each entry.
---@param points cq.Tensor     {n, dim}
---@param radius number        particles nearer than this touch [length]
---@return cq.Topology.components.graph
function components.graph(points, radius)
  local near = sparse.neighbours { points = points, radius = radius, weight = function(distance) return distance end }
  local row, column = near:places()
  return { near = near, row = row, column = column }
end

-- A list of the numbers, from 1, of the particles connected with `first`, all within double among[n] (above 0); marks
-- them in `seen`.
local function together(graph, among, first, seen)
  local list, at = { first }, 1
  seen[first] = true
  while at <= #list do
    for e = tonumber(graph.near.start[list[at] - 1]), tonumber(graph.near.start[list[at]]) - 1 do
      local other = graph.column[e + 1]
      if among[other - 1] > 0 and not seen[other] then
        seen[other] = true
        list[#list + 1] = other
      end
    end
    at = at + 1
  end
  return list
end

---The largest connected component of a body, by its number of particles; of equal ones the first.
---@param graph cq.Topology.components.graph
---@param body cq.Tensor       {n} 1 for the particles of the body, else 0
---@return cq.Tensor           {n} 1 for the particles of that component, else 0
function components.largest(graph, body)
  local out, seen, best, among = T.zeros { body.count }, {}, {}, body:data()
  for p = 1, body.count do
    if among[p - 1] > 0 and not seen[p] then
      local part = together(graph, among, p, seen)
      if #part > #best then best = part end
    end
  end
  for _, p in ipairs(best) do out:set(1, p) end
  return out
end

local FACE, CORNER = 1.2, 1.5      -- spacings: above the distance of cells that share a face; a corner or an edge

---The neighbour graph of a block's particles. On a lattice those whose cells share a face are neighbours, since a
---corner would not hold once printed. If this leaves the block in several pieces, as one that is off a lattice, those
---nearer than 1.5 spacings are.
---@param block cq.Robot
---@param spacing number         between particles [length]
---@return cq.Topology.components.graph
---@return integer largest       particles of the block's largest piece
function components.touching(block, spacing)
  local n, graph, largest = block.particle_count, nil, nil
  for _, reach in ipairs { FACE, CORNER } do
    graph = components.graph(block.position, reach * spacing)
    largest = components.largest(graph, T.ones { n }):sum():item()
    if largest == n then break end
  end
  return graph, largest
end

---The connected components of a body that hold some given particles.
---@param graph cq.Topology.components.graph
---@param body cq.Tensor       {n} 1 for the particles of the body, else 0
---@param root cq.Tensor       {n} 1 for these particles, else 0
---@return cq.Tensor           {n} 1 for the particles of the components, else 0
function components.around(graph, body, root)
  local out, seen, among = T.zeros { body.count }, {}, body:data()
  for p = 1, body.count do
    if root:get(p) > 0 and among[p - 1] > 0 and not seen[p] then
      for _, other in ipairs(together(graph, among, p, seen)) do out:set(1, other) end
    end
  end
  return out
end

return components
