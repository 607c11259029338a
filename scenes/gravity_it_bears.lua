-- gravity_it_bears: gravity [length / time^2] that grows with what a climber bears, for by_iteration.gravity.
--
--   local gravity = require "scenes.gravity_it_bears" { from = 6, begins = 5, enough = 0.08, last = 340 }
--
-- It is `from` before iteration `begins`. After it, gravity is more by 0.1 wherever the climber rises by at least
-- `enough`, and less by 0.2 where it rises by less than half of that, each at least three iterations after the change
-- before. Once it is full, 9.8, it stays so; after iteration `last` it is full in any case.
local FULL, MORE, LESS, WAIT = 9.8, 0.1, 0.2, 3

---@param def { from: number, begins: integer, enough: number, last: integer }     enough: minus a loss [length]
---@return fun(i: integer, losses: number[]): number[]
return function(def)
  return function(i, losses)
    if i > def.last then return { 0, -FULL } end
    local gravity, waited = def.from, 0
    for k = def.begins, i - 1 do
      if gravity == FULL then break end
      waited = waited + 1
      local change = -losses[k] >= def.enough and MORE or -losses[k] < def.enough / 2 and -LESS or 0
      if waited >= WAIT and change ~= 0 then
        gravity, waited = math.max(0, math.min(FULL, gravity + change)), 0
      end
    end
    return { 0, -gravity }
  end
end
