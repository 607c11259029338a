-- example: runs a file of examples/ as a user does, and reads what it leaves.
local process = require "tests.process"

---@param name string       of the example
---@param words string[]    more of its command line
---@param folder string     for --out
---@return table<string, number>[] history   rows by the name of their column
---@return string out                        what it printed
local function run(name, words, folder)
  -- tests share the cores
  local arguments = { "examples/" .. name .. ".lua", "--out", folder, "--quiet", "--threads", "1" }
  for _, word in ipairs(words) do arguments[#arguments + 1] = word end
  local result = process.cqlua(arguments)
  assert(result.code == 0, result.err)
  assert(result.err == "", result.err)
  local history, names = {}, nil
  for line in process.read(folder .. "/history.csv"):gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "[^,]+" do cells[#cells + 1] = cell end
    if not names then
      assert(line:sub(1, 14) == "iteration,loss", line)
      names = cells
    else
      assert(#names == #cells, line)
      local row = {}
      for k, column in ipairs(names) do
        row[column] = column == "stage" and cells[k] or assert(tonumber(cells[k]), line)
      end
      history[#history + 1] = row
      assert(row.iteration == #history, line)
    end
  end
  return history, result.out
end

local example = {}

---For a file of tests: each of them has a folder of its own.
---@param before fun(f: function)     before_each of that file
---@param after fun(f: function)      after_each
---@return fun(name: string, words: string[]): table, string example   runs one in it
---@return fun(): string folder
function example.each(before, after)
  local folder
  before(function() folder = process.folder() end)
  after(function() process.remove(folder) end)
  return function(name, words) return run(name, words, folder) end, function() return folder end
end

return setmetatable(example, { __call = function(_, ...) return run(...) end })
