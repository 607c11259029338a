-- options: words of a command line behind a script's name, one a line, read by the program as it reads all of them.
local message = require "cq.base.message"
local option = require "cq.option"
local program = require "cq.program"
local verdict = require "tests.fuzz.verdict"

local script = [[
-- a script that asks for one option of each type
local schema = require "cq.base.schema"
local option = require "cq.option"
option("iterations", 100)
option("goal", { 0, 0 })
option("dry", false)
option("name", "walker")
option("free")
option("count", 3, schema.integer { min = 1, max = 99 })
option("resume", false)
]]

local path, library, said
local plain_print, plain_fault, plain_warn = print, message.fault, message.warn

-- what the program says is kept; the harness says the rest
local function listen(on)
  local function keep(format, ...)
    said[#said + 1] = select("#", ...) > 0 and tostring(format):format(...) or tostring(format)
  end
  rawset(_G, "print", on and function(line) keep("%s", tostring(line)) end or plain_print)
  message.fault, message.warn = on and keep or plain_fault, on and keep or plain_warn
end

local function run(words)
  said, package.path = {}, library
  listen(true)
  local fine, code = pcall(program.main, words)
  listen(false)
  if not fine then return nil, "the program failed: " .. tostring(code) end
  for _, sentence in ipairs(said) do
    local problem = verdict.of_sentence(sentence)
    if problem then return nil, problem end
  end
  if code ~= 0 and (code ~= 1 and code ~= 2 or #said == 0) then
    return nil, ("code %s and nothing said"):format(tostring(code))
  end
  return code
end

-- the same text as the value of each of the program's options
local function try_kinds(text)
  for _, declared in ipairs(option.declared) do
    local value, problem = option.read(declared.name, text, declared.kind)
    if value == nil and type(problem) ~= "string" then return "no value and no sentence for --" .. declared.name end
    if value ~= nil and not declared.kind.check(value) then
      return "a value that its checker refuses for --" .. declared.name
    end
  end
end

local function read(input, bytes)
  if not path then
    path, library = input:match "^.*/" .. "script.lua", package.path
    local file = assert(io.open(path, "w"))
    file:write(script)
    file:close()
  end
  local words = { [0] = "cqlua", path }
  for word in (bytes .. "\n"):gmatch "([^\n]*)\n" do
    -- a prompt would read from the terminal
    if not word:find "^%-%-inter" then words[#words + 1] = word:gsub("%z.*", "") end
  end
  local problem = try_kinds(words[2] or "")
  if problem then return true, problem end
  local code, why = run(words)
  return code == 0, why
end

return {
  options = {
    ending = "words", read = read,
    seeds = {
      "--iterations\n50\n--goal\n0.5,0.6\n--dry", "--iterations=50\n--goal=0.5,0.6\n--dry=no\n--name\nx",
      "--threads\n2\n--device\ncpu\n--seed\n7\n--quiet",
      "--out\nsomewhere\n--precision\nfloat64\n--simd\navx2\n--count\n5", "--\n--dry\nword", "--help", "--version",
      "a\nb\n--resume", "--free\n1e3\n-x",
    },
    tokens = {
      "--", "-", "=", "--iterations", "--goal", "--dry", "--count", "--threads", "--device", "--seed", "--simd",
      "--precision", "--quiet", "--help",
      "nan", "inf", "-1", "1e999", "0x10", "9007199254740993", "1,5", "1,,2", "true", "no", "%s", "%d%n", "\n",
      "\n--count\n", "auto", "float32",
    },
  },
}
