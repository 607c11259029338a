-- alone: the operations of several ranks where there is one. What the tests put in its place is several in one process.
local ffi = require "ffi"

---@class cq.Ranks.Alone
local Alone = { rank = 0, size = 1, host = "" }
Alone.__index = Alone

-- The minimum over one rank is what it has.
function Alone:minimum() end
-- There is no other rank to send to.
function Alone:broadcast() end
-- A hash of data, which no other rank compares.
function Alone:hash() return 0 end
-- Gathers the data of the one rank.
function Alone:gather(mine, all, bytes) ffi.copy(all, mine, bytes) end
-- There is nothing to end.
function Alone:close() end

return setmetatable({}, Alone)
