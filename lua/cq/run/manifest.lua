-- manifest: manifest.json of a run that begins, and of one that was made. The folder may be none of a run, or of a
-- newer program.
local C = require("cq.base.engine").C
local host = require "cq.host"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

local manifest = {}

---The present date and time in UTC, as text.
---@return string
function manifest.date()
  return os.date "!%Y-%m-%dT%H:%M:%SZ" --[[@as string]]
end

---The manifest of a run: command line, options, version, machine. A table of plain data, for manifest.json.
---@param def cq.Run.def
---@param hash? string                   of the script's text
---@param ranks? { size: integer }       of MPI
---@return table
function manifest.new(def, hash, ranks)
  local words = { "cqlua" }
  for _, word in ipairs(script.arguments or {}) do words[#words + 1] = text.quoted(word) end
  local system, name = host.system()
  local options = tables.merged(option.given(), option.of_program())
  return {
    command = table.concat(words, " "), arguments = script.arguments, script = script.path, script_hash = hash,
    options = options, seed = option.program.seed, device = def.device or option.program.device or "cpu",
    version = host.version, abi = C.CQ_ABI, lua = jit.version, system = system, host = name,
    started = manifest.date(), iterations = def.iterations, notes = def.notes, ranks = ranks and ranks.size,
  }
end

-- The numbers of a version text, as a list such as { 0, 2, 0 }.
local function numbers(version)
  local out = {}
  for part in tostring(version):gmatch "%d+" do out[#out + 1] = tonumber(part) end
  return out
end

-- Is version `one` newer than version `other`? By major, minor and patch number.
local function is_newer(one, other)
  local a, b = numbers(one), numbers(other)
  for k = 1, math.max(#a, #b) do
    if (a[k] or 0) ~= (b[k] or 0) then return (a[k] or 0) > (b[k] or 0) end
  end
  return false
end

-- what others read of a manifest; a fork that has not begun has its parent alone
local text_field, number_field, table_field = is.string { optional = true }, is.number { optional = true },
  is.table { optional = true }
local fields = {
  command = text_field, script = text_field, script_hash = text_field, started = text_field, finished = text_field,
  status = text_field, device = text_field, version = text_field, iterations = number_field,
  iterations_done = number_field, resumed_at = number_field, arguments = table_field, options = table_field,
  seconds = number_field, notes = table_field, sources = table_field, parent = table_field, prompt = table_field,
}
local of_parent = { folder = is.string(), iteration = is.integer { min = 0 }, set = is.table() }
local of_notes = { name = is.string { optional = true }, world = is.string { optional = true } }

-- A text on why a table is no manifest of a run; nil: it is one.
local function problem_of(found)
  local said = is.problem(fields, found)
  if said then return said end
  local words = found.arguments or {}
  for k = 1, table.maxn(words) do          -- null is a hole
    if type(words[k]) ~= "string" then
      return ("argument %d must be a string, got %s"):format(k, text.describe(words[k]))
    end
  end
  said = found.parent and is.problem(of_parent, found.parent)
  if said then return "parent." .. said end
  said = found.notes and is.problem(of_notes, found.notes)
  return said and "notes." .. said
end

-- The seconds from a fixed day to a time such as "2026-11-24T23:00:00Z", without the local time zone; nil for another
-- text.
local function seconds_of(date)
  local y, mo, d, h, mi, s = (date or ""):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z$"
  if not y then return nil end
  -- years that begin in March, so that the leap day is their last
  local years, months = y - (mo < "03" and 1 or 0), (mo + 9) % 12
  local leaps = math.floor(years / 4) - math.floor(years / 100) + math.floor(years / 400)
  return (((365 * years + leaps + math.floor((153 * months + 2) / 5) + d) * 24 + h) * 60 + mi) * 60 + s
end

---The time that a run took in all its sessions [s], of its manifest; nil: it has not ended.
---@param found table
---@return number?
function manifest.seconds(found)
  if found.seconds and found.finished then return found.seconds end
  local first, last = seconds_of(found.started), seconds_of(found.finished)          -- of an earlier program
  return first and last and last - first or nil
end

---The names of the files of a folder as text, for an error.
---@param folder string
---@return string
function manifest.contents(folder)
  local names = host.entries(folder) or {}
  table.sort(names)
  if #names > 6 then names[6] = ("and %d more"):format(#names - 5) end
  return #names == 0 and "it is empty" or "it has " .. table.concat(names, ", ", 1, math.min(#names, 6))
end

---The manifest of a folder; nil: there is none, or it is damaged.
---@param folder string
---@return table?, string? problem     why it cannot be read
function manifest.of(folder)
  local fine, found = pcall(json.decode, read_file(folder .. "/manifest.json") or "")
  local problem = (not fine or type(found) ~= "table") and "it is no JSON object" or problem_of(found)
  if problem then return nil, problem end
  return found
end

---The manifest of a run's folder. Errors: no folder; no folder of a run; a run of a newer program.
---@param folder string
---@param what string        for the errors
---@return table
function manifest.read(folder, what)
  local kind = host.kind(folder)
  if kind ~= "folder" then
    is.fail("%s: %s is no folder of a run: %s", what, folder,
      kind and "it is a file" or "there is nothing of this name")
  end
  if not host.kind(folder .. "/manifest.json") then
    is.fail("%s: %s is no folder of a run: it lacks manifest.json; %s", what, folder,
      manifest.contents(folder))
  end
  local found, problem = manifest.of(folder)
  if not found then is.fail("%s: %s/manifest.json is damaged: %s", what, folder, problem) end
  if found.version and is_newer(found.version, host.version) then
    is.fail("%s: the run in %s was made by cqlua %s, this is %s; take a newer program", what, folder,
      text.describe(found.version), host.version)
  end
  return found
end

return manifest
