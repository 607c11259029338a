-- alone: the operations of several ranks where there is one. What the tests put in its place is several in one process.
local ffi = require "ffi"

---@class cq.Ranks.Alone
local Alone = { rank = 0, size = 1, host = "" }
Alone.__index = Alone

-- Does nothing: the values of a single rank are the minimum.
function Alone:minimum() end
-- Does nothing: there is no other rank to send to.
function Alone:broadcast() end
-- Returns 0 for all data, which no other rank compares.
function Alone:hash() return 0 end
-- Copies `bytes` bytes of the one rank from mine to all.
function Alone:gather(mine, all, bytes) ffi.copy(all, mine, bytes) end
-- Does nothing: no other rank has to be told.
function Alone:close() end

return setmetatable({}, Alone)
