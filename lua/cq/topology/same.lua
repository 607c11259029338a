-- same: what a design is beside its variables, as words: kept with a run, so that no other design goes on with it.
local is = require "cq.base.schema"
local json = require "cq.base.json"
local setup = require "cq.run.setup"
local text = require "cq.base.text"

local function digits(x) return ("%.9g"):format(x) end

-- numbers of the particles of a mask, those in a row as "81 to 100"
local function numbers_of(mask)
  local words, first = {}, nil
  for p = 1, mask.count + 1 do
    local inside = p <= mask.count and mask:get(p) > 0
    if inside and not first then first = p end
    if not inside and first then
      words[#words + 1] = first == p - 1 and tostring(first) or ("%d to %d"):format(first, p - 1)
      first = nil
    end
  end
  return "particles " .. table.concat(words, ", ")
end

-- by the names that a user gave them
local function words_of(design)
  local filter, pulses, x = design.filter, design.pulses, design.robot.position
  local out = {
    block = ("%s from %s to %s"):format(text.count(x:size(1), "particle"), tostring(x:min(1)), tostring(x:max(1))),
    signals = tostring(design.signals), duration = digits(design.duration),
    ["filter.radius"] = digits(filter.radius), ["filter.power"] = digits(filter.power),
    ["layout.sharpness"] = digits(design.layout.sharpness),
    ["pulses.every"] = digits(pulses.every), ["pulses.width"] = digits(pulses.width),
    ["pulses.height"] = digits(pulses.height), ["pulses.period"] = pulses.period and digits(pulses.period) or "none",
    solid = design.mask and numbers_of(design.mask) or "none",
    symmetry = design.fold_words or "none", binary = design.rounds or "none",
    one_piece = design.graph and "yes" or "none", far_void = design.far_void == false and "left out" or "none",
  }
  for name, value in pairs(design.material) do out["material." .. name] = digits(value) end
  return out
end

local same = {}

---Keeps what a design is in a file of a run.
---@param design cq.Topology
---@return string
function same.encode(design) return json.encode(words_of(design)) .. "\n" end

---Refuses a design that is not the one of a file, where there is one.
---@param design cq.Topology
---@param path string
function same.check(design, path)
  local file = io.open(path)
  if not file then return end
  local fine, before = pcall(json.decode, file:read "*a")
  file:close()
  if not fine or type(before) ~= "table" then is.fail("run:optimize: %s is damaged; start without --resume", path) end
  local now = words_of(design)
  -- words that are not kept any more are no difference
  for name in pairs(before) do
    if now[name] == nil then before[name] = nil end
  end
  local changes = setup.changes(before, now)
  if changes == "" then return end
  is.fail("run:optimize: the run in %s was made with another design: %s; resume with the same one, or start without --resume",
    path:match "^(.*)/", changes)
end

return same
