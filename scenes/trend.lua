-- trend: the straight line through points, by least squares.
--
--   local line = require("scenes.trend").new()
--   line:add(x, y)
--   line:slope()
local Trend = {}
Trend.__index = Trend

-- Adds a point (x, y) to those that the line is fitted to.
function Trend:add(x, y)
  self.n, self.x, self.y = self.n + 1, self.x + x, self.y + y
  self.xx, self.xy = self.xx + x * x, self.xy + x * y
end

-- The slope dy/dx of the straight line that fits the added points best, by least squares.
function Trend:slope() return (self.n * self.xy - self.x * self.y) / (self.n * self.xx - self.x ^ 2) end

return { new = function() return setmetatable({ n = 0, x = 0, y = 0, xx = 0, xy = 0 }, Trend) end }
