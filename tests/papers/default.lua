-- What does the default plan reach where an example of topology optimization has a plan of its own?
--   cqlua tests/papers/default.lua --example climber --seed 101        beside   cqlua examples/topology_climber.lua
-- The example runs as it is, but that cq.Plan gives the default plan with one start.
local cq = require "cq"
local is = require "cq.base.schema"

local own = cq.Plan
cq.Plan = setmetatable({}, { __index = own, __call = function() return own.topology { starts = 1 } end })
dofile(("examples/topology_%s.lua"):format(cq.option("example", "climber", is.one_of { "climber", "rotator" })))
