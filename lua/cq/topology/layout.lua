-- layout: which signal each particle follows, if any (Yuhn et al., eq. 21).
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

---@class cq.Topology.Layout
---@field sharpness number
local Layout = { __name = "cq.Topology.Layout" }
Layout.__index = Layout

local spec = is.define("cq.Topology.layout", { sharpness = is.number { above = 0 } })

---@class cq.Topology.layout.def
---@field sharpness number     of the choice

---A layout, which is called with filtered variables {signals + 1, n}: a softmax over the first dimension, to shares
---that add up to 1 for each particle. The last row is "none".
---@param fields cq.Topology.layout.def
---@return cq.Topology.Layout
local function new(fields) return setmetatable(spec(fields), Layout) end

---The shares of the signals, for each particle a sum of 1.
---@param z cq.Tensor     {signals + 1, n}
---@return cq.Tensor      {signals + 1, n}
function Layout:__call(z) return (T.as_tensor(z) * self.sharpness):softmax(1) end

-- The layout in one line: its sharpness.
function Layout:__tostring() return ("cq.Topology.layout { sharpness %s }"):format(text.number(self.sharpness)) end

return new
