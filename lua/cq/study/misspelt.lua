-- misspelt: options of a study's command line that nobody asks for, but which resemble one: told before any trial
-- begins.
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

-- The names of options that Lua texts ask for by cq.option "NAME", as keys. texts: by the names of files.
local function asked_in(texts)
  local out = {}
  for _, bytes in pairs(texts) do
    for name in bytes:gmatch "option%s*%(?%s*[\"']([%w_-]+)[\"']" do out[name] = true end
  end
  return out
end

-- Has one of these texts a name between quotes? A function of the script's own may ask for an option by it.
local function is_quoted(texts, name)
  for _, bytes in pairs(texts) do
    if bytes:find('"' .. name .. '"', 1, true) or bytes:find("'" .. name .. "'", 1, true) then return true end
  end
  return false
end

-- Does one of these texts ask for options whose names it makes, as cq.option(("weight%d"):format(i)), or with ..?
local function makes_names(texts)
  for _, bytes in pairs(texts) do
    if bytes:find "option%s*%(%s*%(%s*[\"']" then return true end
    if bytes:find "option%s*%(%s*[\"'][^\"'\n]*[\"']%s*%.%." then return true end
  end
  return false
end

---Ends the program with a sentence where an option was given that the script has not asked for, and does not name, but
---which resembles an option of the command, of the program, of trainings or of the script; warns instead where it
---resembles one of the script, which makes names of options. Others are told when the first trial is done.
---@param options table<string, any>     of the command, by name
return function(options)
  local texts = tables.merged(scripts.required(), scripts.sources(), { scripts.text() or "" })
  local own, known = tables.merged(options), tables.merged(asked_in(texts), option.asked())
  for _, declared in ipairs(option.declared) do own[declared.name] = true end
  for _, name in ipairs(option.of_trainings) do own[name] = true end
  for _, name in ipairs(tables.names(option.given())) do
    local alike = text.suggestion(name, tables.names(own))
    local likely = alike ~= "" and alike or text.suggestion(name, tables.names(known))
    if not own[name] and not known[name] and not is_quoted(texts, name) and likely ~= "" then
      if alike == "" and makes_names(texts) then
        message.warn("the script does not name --%s%s", name, likely)
      else
        scripts.misuse("--%s is no option of cqlua study, and the script does not ask for it%s", name, likely)
      end
    end
  end
end
