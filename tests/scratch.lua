-- scratch: a folder for one test, in which experiments run without a word:
--
--   before_each(function() folder = scratch.open() end)
--   after_each(scratch.close)
local option = require "cq.option"
local process = require "tests.process"

local scratch = {}

local folder, quiet

---An empty folder; from now on the program is quiet.
---@return string
function scratch.open()
  folder, quiet = process.folder(), option.program.quiet
  option.program.quiet = true
  return folder
end

---Removes the folder; the program is as it was.
function scratch.close()
  option.program.quiet = quiet
  process.remove(folder)
end

return scratch
