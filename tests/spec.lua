-- spec: runs a busted file in cqlua.   build/cqlua tests/spec.lua tests/tensor_spec.lua [--filter "part of a name"]
local option = require "cq.option"
local filter = option("filter", "")
local files = { ... }

local words = { [0] = "tests", "--output=tests/reporter.lua", "--pattern=%.lua$", "--loaders=lua" }
if filter ~= "" then words[#words + 1] = "--filter=" .. filter end
for _, file in ipairs(files) do words[#words + 1] = file end
rawset(_G, "arg", words)

-- busted (Debian's lua-busted) ends a failed run with an error that says nothing; the reporter has said all
local found, runner = pcall(require, "busted.runner")
if not found then
  io.stderr:write("busted, which runs the tests, is not installed: make setup\n")
  os.exit(1)
end
local fine, problem = pcall(runner, { standalone = false })
if problem ~= nil then print(problem) end
os.exit(fine and 0 or 1)
