-- names: what is written under the places of categories. Every name is shown: side by side where they fit, else in
-- rows by turns, else without what all of them have in common, else shortened. Only where not even that has room are
-- some left out.
--
--   topology_walker      topology_rotator        of an axis with three places that are closer than names are wide
--             topology_climber
local paint = require "cq.picture.paint"

local names = {}

names.SIZE, names.LINE = 8.5, 15      -- [pixel] height of a capital, and between two rows
local GAP, ROWS = 6, 4                -- [pixel] between two names; rows at most
local LEAST = 28                      -- [pixel] a name that is shortened further says nothing
local COMMON = 3                      -- characters, what several names have in common is left out from so many on

-- the characters of a text, each of one or several bytes
local function characters(text)
  local out = {}
  for character in text:gmatch "[%z\1-\127\192-\255][\128-\191]*" do out[#out + 1] = character end
  return out
end

-- how many characters all lists begin with, from which(list, k) on
local function common(lists, which)
  for k = 0, math.huge do
    local first = which(lists[1], k)
    for _, list in ipairs(lists) do
      if not first or which(list, k) ~= first then return k end
    end
  end
end

-- names without the beginning and the end that they share
local function distinct(labels)
  local lists = {}
  for k, label in ipairs(labels) do lists[k] = characters(label) end
  if #lists < 2 then return labels end
  local head = common(lists, function(list, k) return list[k + 1] end)
  local tail = common(lists, function(list, k) return #list - k > head and list[#list - k] or nil end)
  head, tail = head >= COMMON and head or 0, tail >= COMMON and tail or 0
  local out = {}
  for k, list in ipairs(lists) do
    out[k] = (head > 0 and ".." or "") .. table.concat(list, "", head + 1, #list - tail) .. (tail > 0 and ".." or "")
  end
  return out
end

-- a text without its middle, for names often differ at their ends: "topo..rot"
local function shortened(canvas, text, room)
  if canvas:text_width(text, names.SIZE) <= room then return text end
  local list = characters(text)
  for kept = #list - 1, 1, -1 do
    local head = math.ceil(kept / 2)
    local short = table.concat(list, "", 1, head) .. ".." .. table.concat(list, "", #list - (kept - head) + 1)
    if canvas:text_width(short, names.SIZE) <= room then return short end
  end
  return ""
end

local function all_fit(canvas, labels, room)
  for k, label in ipairs(labels) do
    if canvas:text_width(label, names.SIZE) > room(k) then return false end
  end
  return true
end

---Names one below the other, each at most so wide.
---@param canvas cq.Canvas
---@param labels string[]
---@param room number        [pixel]
---@return string[]
function names.below(canvas, labels, room)
  local out = {}
  if not all_fit(canvas, labels, function() return room end) then labels = distinct(labels) end
  for k, label in ipairs(labels) do out[k] = shortened(canvas, label, room) end
  return out
end

---@class cq.StudyNames.def
---@field canvas cq.Canvas
---@field labels string[]     of places that are equally far apart
---@field left number         [pixel] where the first place begins
---@field pitch number        [pixel] of a place
---@field before number       [pixel] that a name may stand out to the left of all places
---@field after number        [pixel] and to the right of them

-- room for the name in the middle of a place, with so many rows [pixel]
local function room_of(def, k, rows)
  local left, right = (k - 0.5) * def.pitch + def.before, (#def.labels - k + 0.5) * def.pitch + def.after
  return math.min(rows * def.pitch - GAP, 2 * left, 2 * right)
end

-- labels as they are shown, and how many rows hold them; nil: none do
local function rows_of(def)
  for _, labels in ipairs { def.labels, distinct(def.labels) } do
    for rows = 1, ROWS do
      if all_fit(def.canvas, labels, function(k) return room_of(def, k, rows) end) then return labels, rows end
    end
  end
end

---Where names stand: in as few rows as hold them.
---@param def cq.StudyNames.def
---@return { rows: integer, [integer]: { x: number, row: integer, text: string } }   row: from 0
function names.across(def)
  local labels, rows = rows_of(def)
  local every = labels and 1 or math.ceil((LEAST + GAP) / (ROWS * def.pitch))
  labels, rows = labels or distinct(def.labels), rows or ROWS
  local out = { rows = rows }
  for k = 1, #labels, every do
    out[#out + 1] = {
      x = def.left + (k - 0.5) * def.pitch, row = #out % rows,
      text = shortened(def.canvas, labels[k], room_of(def, k, rows * every)),
    }
  end
  return out
end

---Writes them, the first row at y.
---@param canvas cq.Canvas
---@param lay table         of names.across
---@param y number          [pixel] of the baseline
function names.write(canvas, lay, y)
  for _, name in ipairs(lay) do
    canvas:text { x = name.x, y = y + names.LINE * name.row, size = names.SIZE, align = "centre", colour = paint.faint,
      text = name.text }
  end
end

return names
