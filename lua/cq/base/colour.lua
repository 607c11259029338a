-- colour: "#rrggbb" and the engine's 0xRRGGBBAA.
local bit = require "bit"
local is = require "cq.base.schema"
local text = require "cq.base.text"

local colour = {}

-- "#rrggbb", "#rrggbbaa" or "#rgb" as red, green, blue, alpha in 0..255; nil if the value is none of them.
local function parse(value)
  if type(value) ~= "string" then return nil end
  local digits = value:match "^#(%x+)$"
  if not digits then return nil end
  if #digits == 3 then digits = digits:gsub(".", "%0%0") end
  if #digits ~= 6 and #digits ~= 8 then return nil end
  local out = {}
  for pair in digits:gmatch "%x%x" do out[#out + 1] = tonumber(pair, 16) end
  return out[1], out[2], out[3], out[4] or 255
end

---Red, green, blue, alpha in 0..255 of "#rrggbb", "#rrggbbaa" or "#rgb". Errors: any other value.
---@param value string
---@param what string       for the error
---@return integer, integer, integer, integer
function colour.parse(value, what)
  local r, g, b, a = parse(value)
  if not r then is.fail("%s: a colour is \"#rrggbb\", got %s", what, text.describe(value)) end
  return r, g, b, a
end

---Colours as lists { red, green, blue, alpha } in 0..255.
---@param list string[]
---@return number[][]
function colour.list(list)
  local out = {}
  for k, value in ipairs(list) do out[k] = { colour.parse(value, "colour") } end
  return out
end

---A colour of red, green, blue and opacity in 0..255 (the opacity 255 unless given) as the engine's number 0xRRGGBBAA.
---@return number
function colour.pack(r, g, b, a)
  -- x rounded and clamped to 0..255.
  local function byte(x) return math.min(math.max(math.floor(x + 0.5), 0), 255) end
  return ((byte(r) * 256 + byte(g)) * 256 + byte(b)) * 256 + byte(a or 255)
end

---The engine's number 0xRRGGBBAA of "#rrggbb", with another alpha (0..1) if given. Errors: no colour.
---@param value string
---@param alpha? number
---@return number
function colour.number(value, alpha)
  local r, g, b, a = colour.parse(value, "colour")
  return colour.pack(r, g, b, alpha and alpha * 255 or a)
end

---A colour of red, green and blue in 0..255 as "#rrggbb".
---@return string
function colour.text(r, g, b) return "#" .. bit.tohex(r, 2) .. bit.tohex(g, 2) .. bit.tohex(b, 2) end

---Makes the checker of a field that is a colour, for schema.define. options: default, optional.
function colour.checker(options)
  options = options or {}
  return {
    label = "a colour such as \"#3f7fbf\"", cats = "string", default = options.default, optional = options.optional
      or options.default ~= nil,
    check = function(value) return parse(value) ~= nil end,
  }
end

return colour
