-- cases: choosing among named cases of a subcommand, by name or by a part of it.
local engine = require "cq.base.engine"
local option = require "cq.option"
local script = require "cq.base.script"
local text = require "cq.base.text"

local cases = {}

-- The Lua pattern for whole names of a pattern as shells have it: * any text, ? any character.
local function glob(wanted)
  return "^" .. wanted:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".") .. "$"
end

---The cases that `wanted` selects: the case of this name, else all whose names contain it, or match it as a pattern
---with * and ?; all for nil. Where none fits, the program ends with a suggestion, as after wrong use.
---@param all { name: string }[]
---@param wanted string?
---@param command string         for the sentence
---@return { name: string }[]
function cases.choose(all, wanted, command)
  if not wanted then return all end
  local names, chosen, pattern = {}, {}, glob(wanted)
  for k, case in ipairs(all) do
    names[k] = case.name
    if case.name == wanted then return { case } end
  end
  for _, case in ipairs(all) do
    if case.name:find(wanted, 1, true) or case.name:find(pattern) then chosen[#chosen + 1] = case end
  end
  if #chosen == 0 then
    script.misuse("%s has no case %s%s; its cases are %s", command, wanted, text.suggestion(wanted, names),
      table.concat(names, ", "))
  end
  return chosen
end

---Runs a case. Where the device lacks what the case needs, says so on the error stream and returns nil; other errors
---are raised.
---@param command string         for the sentence
---@param name string            of the case
---@param run fun(): any
---@return any? result           of run
function cases.attempt(command, name, run)
  if option.program.device ~= "cuda" then return run() end
  engine.unsupported = nil
  local done, result = pcall(run)
  if done then return result end
  if not engine.unsupported then error(result, 0) end
  io.stderr:write(("cqlua: %s leaves out %s: %s\n"):format(command, name, engine.unsupported))
end

return cases
