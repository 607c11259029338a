-- tree: sums of vectors, one for each scene, by a binary tree over the numbers of scenes. The order of additions is
-- that of the tree, whichever rank makes them, so that the sum has the same bits on any number of ranks.
--
--   scene    0   1   2   3   4        level 0      Ranks have neighbouring scenes. A node belongs to the rank of its
--             \ /     \ /    |                     first scene; that of a right child sends its sum to the left one.
--              01      23    4        level 1      Of 1,000 ranks the first receives ten vectors, one a level.
--                \    /      |
--                 0123       4        level 2
--                    \      /
--                     01234           level 3
local ffi = require "ffi"

---@class cq.Ranks.Tree
---@field count integer         scenes
---@field length integer        of a vector
---@field sent integer          vectors that this rank has sent
local Tree = {}
Tree.__index = Tree

local tree = {}

-- The number of ranks that have scenes: ranks beyond the number of scenes have none.
local function parts(count, size) return math.min(count, size) end

---The scenes of a rank, of `size` ranks: from first to last, counted from 0; last is first - 1 where it has none.
---@param count integer
---@param rank integer
---@param size integer
---@return integer first, integer last
function tree.scenes(count, rank, size)
  local n = parts(count, size)
  if rank >= n then return count, count - 1 end
  return math.floor(rank * count / n), math.floor((rank + 1) * count / n) - 1
end

---The number of the rank that has a scene.
---@param scene integer          from 0
---@param count integer
---@param size integer
---@return integer
function tree.owner(scene, count, size)
  return math.floor(((scene + 1) * parts(count, size) - 1) / count)
end

---A sum of vectors of all scenes, in the order of a binary tree over the scenes, so that its bits do not depend on the
---number of ranks.
---@param count integer          scenes of all ranks
---@param length integer         of a vector
---@param ranks { rank: integer, size: integer, send: function, receive: function }
---@return cq.Ranks.Tree
function tree.new(count, length, ranks)
  return setmetatable({ count = count, length = length, ranks = ranks, nodes = {}, free = {}, sent = 0 }, Tree)
end

---A vector to fill, double {length}, which may hold any numbers.
---@return ffi.cdata*
function Tree:vector() return table.remove(self.free) or ffi.new("double[?]", self.length) end

-- Adds a vector to another one in place, left <- left + right, and keeps the memory of `right` for later use.
local function add(self, left, right)
  for k = 0, self.length - 1 do left[k] = left[k] + right[k] end
  self.free[#self.free + 1] = right
end

---Adds the vector of a scene; a rank adds its scenes in order. Pairs are summed at once, so that a rank holds no more
---vectors than the tree has levels.
---@param scene integer           from 0
---@param vector ffi.cdata*       from tree:vector, which the tree keeps
function Tree:put(scene, vector)
  local nodes = self.nodes
  nodes[#nodes + 1] = { level = 0, index = scene, vector = vector }
  while #nodes > 1 do
    local left, right = nodes[#nodes - 1], nodes[#nodes]
    if left.level ~= right.level or left.index % 2 == 1 or right.index ~= left.index + 1 then return end
    add(self, left.vector, right.vector)
    nodes[#nodes] = nil
    left.level, left.index = left.level + 1, left.index / 2
  end
end

-- Sums a node of the tree and its right neighbour into their parent, which is returned, and whether `next` (the
-- following node in this rank's list) was that neighbour; otherwise it is received from another rank. nil: the node is
-- itself a right neighbour, and was sent to the rank that has the left one.
local function climb(self, node, next)
  local width, ranks = 2 ^ node.level, self.ranks
  if node.index % 2 == 1 then
    ranks:send(node.vector, self.length, tree.owner((node.index - 1) * width, self.count, ranks.size))
    self.free[#self.free + 1], self.sent = node.vector, self.sent + 1
    return nil
  end
  local scene = (node.index + 1) * width
  local taken = false
  if scene < self.count then
    taken = next ~= nil and next.level == node.level and next.index == node.index + 1
    local other = taken and next.vector or self:vector()
    if not taken then ranks:receive(other, self.length, tree.owner(scene, self.count, ranks.size)) end
    add(self, node.vector, other)
  end
  return { level = node.level + 1, index = node.index / 2, vector = node.vector }, taken
end

---The sum over all scenes, on the rank of the first scene; nil on others. All ranks must call it.
---@return ffi.cdata*?
function Tree:sum()
  for level = 0, math.huge do
    if 2 ^ level >= self.count then break end
    local nodes, k = {}, 1
    while k <= #self.nodes do
      local node, taken = self.nodes[k], false
      if node.level == level then node, taken = climb(self, node, self.nodes[k + 1]) end
      nodes[#nodes + 1] = node
      k = k + (taken and 2 or 1)
    end
    self.nodes = nodes
  end
  local root = self.nodes[1]
  return root and root.vector
end

return tree
