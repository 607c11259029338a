-- plain_lua: a controller as a module of Lua 5.1 that needs nothing but math: its numbers as a table, and the step.
local text = require "cq.base.text"

-- The elements of a tensor as the text of a Lua table.
local function list(tensor)
  local words = tensor:flatten():totable()
  for k, value in ipairs(words) do words[k] = ("%.17g"):format(value) end
  return "{\n" .. text.wrapped(words, 6, "    ") .. " }"
end

local ACTIVATIONS = [[
local activations = {
  tanh = function(x)
    local e = math.exp(-2 * math.abs(x))
    return (x < 0 and -1 or 1) * (1 - e) / (1 + e)
  end,
  relu = function(x) return x > 0 and x or 0 end,
  sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  softplus = function(x) return math.max(x, 0) + math.log(1 + math.exp(-math.abs(x))) end,
  elu = function(x) return x < 0 and math.exp(x) - 1 or x end,
  clip = function(x) return math.max(-1, math.min(1, x)) end,
}

-- A dense layer of a network: y = f(W x + b).
local function layer(l, x)
  local y, outputs, f = {}, #l.b, activations[l.activation]
  for j = 1, outputs do
    local sum = l.b[j]
    for i = 1, #x do sum = sum + x[i] * l.w[(i - 1) * outputs + j] end
    y[j] = f(sum)
  end
  return y
end

-- Activations of all layers of the exported network at input x.
local function network(x)
  for _, l in ipairs(M.layers) do x = layer(l, x) end
  return x
end
]]

local steps = {}

-- The Lua statements, as text, that compute the signals of a network from its inputs.
function steps.network(program)
  local lines, clock = { "  local x = {}" }, nil
  for _, input in ipairs(program.inputs) do
    local line = ("  for _, value in ipairs(input.%s) do x[#x + 1] = value end"):format(input.name)
    if input.name == "clock" then
      clock = line
    elseif input.name ~= "velocity" or program.shows_velocity or not program.change then
      lines[#lines + 1] = line
    end
  end
  if program.change then
    lines[#lines + 1] = ([[
  for k, v in ipairs(input.velocity) do
    x[#x + 1] = state.velocity and (v - state.velocity[k]) / %.17g or 0
  end
  local kept = {}
  for k, v in ipairs(input.velocity) do kept[k] = v end
  state.velocity = kept]]):format(program.dt)
  end
  lines[#lines + 1] = clock
  if program.mean then
    lines[#lines + 1] = ([[
  for k, value in ipairs(x) do
    x[k] = math.max(-10, math.min(10, (value - M.mean[k]) / M.deviation[k]))
  end]])
  end
  lines[#lines + 1] = "  return network(x)"
  return table.concat(lines, "\n")
end

-- The Lua statements, as text, of a controller of sines: signals from the time.
function steps.sines(program)
  return ([[
  local x = {}
  for _, f in ipairs(M.frequency) do
    for k = 0, %d do x[#x + 1] = math.sin(2 * math.pi * (f * input.time + k / %d)) end
  end
  return network(x)]]):format(program.phases - 1, program.phases)
end

-- The Lua statements, as text, of a controller that plays a table of signals, held or interpolated in time.
function steps.table(program)
  local rows, signals = program.values:size(1), program.values:size(2)
  return ([[
  local row = math.max(0, math.min(%d, input.time / %.17g))
  local k = math.floor(row + 1e-6)
  local next, share, out = math.min(k + 1, %d), %s, {}
  for s = 1, %d do
    out[s] = (1 - share) * M.values[k * %d + s] + share * M.values[next * %d + s]
  end
  return out]]):format(rows - 1, program.dt * program.hold, rows - 1, program.linear and "math.max(0, row - k)" or "0",
    signals, signals, signals)
end

-- The Lua text of a program's constants: weights, table values and frequencies.
local function constants(program)
  local parts = {}
  if program.layers then
    parts[1] = "M.layers = {"
    for _, layer in ipairs(program.layers) do
      parts[#parts + 1] = ("  { activation = %q, b = %s,\n    w = %s },"):format(layer.activation, list(layer.b),
        list(layer.w))
    end
    parts[#parts + 1] = "}\n"
  end
  for _, name in ipairs { "mean", "deviation", "values" } do
    if program[name] then parts[#parts + 1] = ("M.%s = %s\n"):format(name, list(program[name])) end
  end
  if program.frequency then
    parts[#parts + 1] = ("M.frequency = { %s }   -- [1/time]\n"):format(table.concat(program.frequency, ", "))
  end
  return table.concat(parts, "\n")
end

-- Comment lines on the argument of the exported M.step, one table of named arrays. path: in front of the names.
local function inputs(program, path)
  local lines = {}
  for _, input in ipairs(program.inputs) do
    lines[#lines + 1] = ("--   input.%s%s%s  %s"):format(path, input.name,
      input.name == "time" and "" or (" {%d}"):format(input.count), input.about)
    for k, row in ipairs(input.rows or {}) do lines[#lines + 1] = ("--     %d: %s"):format(k, (row:gsub("%c", " "))) end
  end
  for _, part in ipairs(program.parts or {}) do lines[#lines + 1] = inputs(part, part.name .. ".") end
  return table.concat(lines, "\n")
end

-- The text of the exported Lua module, from its table M to its end.
local function module(program)
  local names = {}
  for k, name in ipairs(program.signals) do names[k] = ("%q"):format((name:gsub("%c", " "))) end
  local head = ("local M = { dt = %.17g, signals = { %s } }\n"):format(program.dt, table.concat(names, ", "))
  if not program.parts then
    return table.concat({ head, constants(program) .. (program.layers and "\n" .. ACTIVATIONS or ""),
      "function M.start() return {} end\n",
      ("function M.step(input, state)\n%s\nend\n\nreturn M\n"):format(steps[program.kind](program)) }, "\n")
  end
  local parts = { head, "local parts = {}\n" }
  for _, part in ipairs(program.parts) do
    parts[#parts + 1] = ("parts[%q] = (function()\n%send)()\n"):format(part.name, module(part))
  end
  parts[#parts + 1] = [[
-- The initial state of all parts.
function M.start()
  local state = {}
  for name, part in pairs(parts) do state[name] = part.start() end
  return state
end

-- Signals from an input and the state, by all parts.
function M.step(input, state)
  local out = {}
  for name, part in pairs(parts) do
    for k, u in ipairs(part.step(input[name], state[name])) do out[k] = (out[k] or 0) + u end
  end
  for k, u in ipairs(out) do out[k] = math.max(-1, math.min(1, u)) end
  return out
end

return M
]]
  return table.concat(parts, "\n")
end

---The program as a module of Lua.
---@param program cq.controller.Program
---@return string
return function(program)
  return table.concat({
    ("-- %s. One step each %.9g [time]: out = M.step(input, state), state = M.start()."):format(program.about, program.dt),
    inputs(program, ""), module(program),
  }, "\n")
end
