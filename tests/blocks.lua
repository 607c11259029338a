-- blocks: the Lua blocks of README.md and docs/*.md as scripts. A block is what stands between ```lua and ```. The line
-- above it may be a comment, which no reader sees, with one or several of these, between semicolons:
--
--   <!-- continues -->                 after the blocks above it, with their locals, up to one that does not continue
--   <!-- fails with: TEXT -->          and the error must hold this text
--
-- Each runs as a user would run it, with two iterations; its lines have the numbers that they have in the document.
local process = require "tests.process"

local blocks = {}

local function marks_of(line)
  local marks, inside = {}, line:match "^<!%-%-%s*(.-)%s*%-%->$"
  for part in (inside and inside .. ";" or ""):gmatch "%s*(.-)%s*;" do
    local key, value = part:match "^([%l ]+):%s*(.*)$"
    marks[key or part] = value or true
  end
  return marks
end

local known = { continues = true, ["fails with"] = true }

---The blocks of a document: { path, first, last, lines, marks, before }. `before` is the block that it continues.
---@param path string
---@return table[]
function blocks.of(path)
  local found, open, previous, number = {}, nil, "", 0
  for line in (assert(process.read(path), path) .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    if open and line:find "^```" then
      open.last, open = number - 1, nil
    elseif open then
      open.lines[#open.lines + 1] = line
    elseif line:find "^```lua" then
      open = { path = path, first = number + 1, lines = {}, marks = marks_of(previous) }
      for mark in pairs(open.marks) do
        assert(known[mark], ("%s:%d: no mark is called %s"):format(path, number, mark))
      end
      if open.marks.continues then
        open.before = assert(found[#found], path .. ": the first block continues nothing")
      end
      found[#found + 1] = open
    end
    previous = line
  end
  assert(not open, path .. ": a block has no end")
  return found
end

local function shortened(line)
  return (line:gsub("iterations = %d+", "iterations = 2"):gsub("trials = %d+", "trials = 2"))
end

-- the script of a block: what it continues stands before it, each line at its number in the document
local function script_of(block)
  local lines, chain = {}, {}
  local at = block
  while at do
    table.insert(chain, 1, at)
    at = at.before
  end
  for n = 1, block.last do lines[n] = "" end
  for _, part in ipairs(chain) do
    for k, line in ipairs(part.lines) do lines[part.first + k - 1] = shortened(line) end
  end
  assert(lines[1] == "", block.path .. ": a block in the first line")
  lines[1] = 'require("cq.option").set_silently("render", "no")'
  return table.concat(lines, "\n") .. "\n"
end

-- a study that a script returned, run: each of its trials must come to its end
local function problem_of_trials(script, out)
  local words = { script, "--out", out, "--quiet", "--threads", "1" }
  local result = process.cqlua { "study", "run", unpack(words) }
  if result.code ~= 0 then return "its trials: " .. result.err end
  for line in process.cqlua({ "study", "export", unpack(words) }).out:gmatch "\n([^\n]+)" do
    if not line:find ",done," and not line:find ",pruned," then return "a trial: " .. line end
  end
end

---Runs a block, and the trials of a study that it returns; nil, or what was wrong.
---@param block table
---@return string? problem
function blocks.problem(block)
  local folder = process.folder()
  local script = process.write(folder .. "/" .. block.path:match "([^/]+)$", script_of(block))
  local result, of_trials = process.cqlua { script, "--out", folder .. "/out", "--quiet", "--threads", "1" }, nil
  if result.code == 0 and block.lines[#block.lines] and table.concat(block.lines, "\n"):find "return cq%.Study" then
    of_trials = problem_of_trials(script, folder .. "/out")
  end
  process.remove(folder)
  local wanted = block.marks["fails with"]
  if wanted then
    if result.code == 0 then return "it did not fail" end
    return not result.err:find(wanted, 1, true) and "it failed with: " .. result.err or nil
  end
  if result.code ~= 0 or result.err ~= "" then return result.err end
  return of_trials
end

return blocks
