-- c99: a controller as a C header: constants, and functions that need no memory and of the C library tanhf, expf and
-- sinf alone.
--
-- Sums are of doubles, so that a network of hundreds of units agrees with the one in Lua to 1e-6.

local is = require "cq.base.schema"
local text = require "cq.base.text"

local FLOAT_LEAST, FLOAT_MOST = 1.17549435e-38, 3.4e38

-- A number as a C literal of a float. Errors: a number too large for a float.
local function number(value)
  if math.abs(value) > FLOAT_MOST then is.fail("controller:export: %g is too large for a float of C", value) end
  if math.abs(value) < FLOAT_LEAST then value = 0 end
  local word = ("%.9g"):format(value)
  return (word:find "[%.en]" and word or word .. ".0") .. "f"
end

-- The text of a tensor as a constant C array of this name.
local function array(name, tensor)
  local words = tensor:flatten():totable()
  for k, value in ipairs(words) do words[k] = number(value) end
  return ("static const float %s[%d] = {\n%s\n};\n"):format(name, tensor.count, text.wrapped(words, 8, "  "))
end

local activations = {
  tanh = "tanhf(sum)", relu = "(sum > 0.0f ? sum : 0.0f)", sigmoid = "1.0f / (1.0f + expf(-sum))",
  softplus = "@softplus(sum)", elu = "(sum < 0.0f ? expf(sum) - 1.0f : sum)",
  clip = "(sum < -1.0f ? -1.0f : sum > 1.0f ? 1.0f : sum)",
}

-- log(1 + u) = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = u / (2 + u) <= 1/3, of u = e^-|x|
local SOFTPLUS = [[
// log(1 + e^x)
static inline float @softplus(float x) {
  const float u = expf(x > 0.0f ? -x : x), s = u / (2.0f + u), q = s * s;
  float tail = 0.0f;
  for (int k = 13; k > 1; k -= 2) { tail = q * (1.0f / (float)k + tail); }
  return (x > 0.0f ? x : 0.0f) + 2.0f * s * (1.0f + tail);
}
]]

-- y = f(b + x w), w row after row of its inputs
local LAYER = [[
static inline void @layer_%s(const float *w, const float *b, const float *x, float *y, int inputs, int outputs) {
  for (int j = 0; j < outputs; j++) {
    double all = b[j];
    for (int i = 0; i < inputs; i++) { all += (double)x[i] * (double)w[i * outputs + j]; }
    const float sum = (float)all;
    y[j] = %s;
  }
}
]]

-- ---- types ----------------------------------------------------------------------------------------------------------

-- The C dimensions of an input as text, such as "[rows][columns]".
local function shape_of(input)
  if input.rows and input.count > #input.rows then
    return ("[%d][%d]"):format(#input.rows, input.count / #input.rows)
  end
  return ("[%d]"):format(input.count)
end

-- The text of the C struct of the observation. "@" in names stands for the prefix.
local function type_of_input(program)
  local lines = { "typedef struct @input {" }
  for _, input in ipairs(program.inputs) do
    local is_time = input.name == "time"
    lines[#lines + 1] = ("  %s %s%s;  // %s"):format(is_time and "double" or "float", input.name,
      is_time and "" or shape_of(input), input.about)
    for k, row in ipairs(input.rows or {}) do
      lines[#lines + 1] = ("    // %d: %s"):format(k - 1, (row:gsub("%c", " ")))
    end
  end
  return table.concat(lines, "\n") .. "\n} @input;\n"
end

-- The text of the C struct of the values that one control step leaves for the next, and of the function that starts it.
local function type_of_state(program)
  local count = program.change
  local memory = count and ("  float velocity[%d];  // [length/time] of the step before\n"):format(count) or ""
  return "// what one step leaves for the next; @start before the first\ntypedef struct @state {\n"
    .. "  long steps;  // made since the start\n" .. memory .. "} @state;\n\n"
    .. "static inline void @start(@state *state) {\n  state->steps = 0;\n"
    .. (count and ("  for (int i = 0; i < %d; i++) { state->velocity[i] = 0.0f; }\n"):format(count) or "")
    .. "}\n"
end

-- ---- bodies of the step ---------------------------------------------------------------------------------------------

local bodies = {}

-- C statements that copy what the network sees into one array, with the changes of velocities computed there; and how
-- many numbers that are.
local function gather(program)
  local lines, total = {}, 0
  -- C statements that copy an input into the array of observations.
  local function copy(input)
    lines[#lines + 1] = ("  for (int i = 0; i < %d; i++) { x[%d + i] = (&input->%s%s)[i]; }"):format(input.count, total,
      input.name, shape_of(input):gsub("%d+", "0"))
    total = total + input.count
  end
  local clock
  for _, input in ipairs(program.inputs) do
    if input.name == "clock" then
      clock = input
    elseif input.name ~= "velocity" or program.shows_velocity or not program.change then
      copy(input)
    end
  end
  if program.change then
    lines[#lines + 1] = ([[
  for (int i = 0; i < %d; i++) {  // [length/time^2] change of the velocities over a control step of %s
    const float v = (&input->velocity[0][0])[i];
    x[%d + i] = state->steps > 0 ? (v - state->velocity[i]) * %s : 0.0f;
    state->velocity[i] = v;
  }]]):format(program.change, ("%.9g"):format(program.dt), total, number(1 / program.dt))
    total = total + program.change
  end
  if clock then copy(clock) end
  return table.concat(lines, "\n"), total
end

-- The C lines of a network's layers, from the array x to the array out by way of h0 and h1 in turn. Returns the
-- declaration of h0 and h1 as far as they are needed, and the calls. inputs: of the first layer.
local function layers(program, inputs)
  local widest, lines, from = 0, {}, "x"
  for k, layer in ipairs(program.layers) do
    local outputs, last = layer.b.count, k == #program.layers
    local to = last and "out" or ("h%d"):format(k % 2)
    widest = last and widest or math.max(widest, outputs)
    lines[#lines + 1] = ("  @layer_%s(@w%d, @b%d, %s, %s, %d, %d);"):format(layer.activation, k, k, from, to, inputs,
      outputs)
    inputs, from = outputs, to
  end
  local hidden = #program.layers > 2 and ("  float h0[%d], h1[%d];\n"):format(widest, widest)
    or #program.layers > 1 and ("  float h1[%d];\n"):format(widest) or ""
  return hidden, table.concat(lines, "\n")
end

local SCALED = [[
  for (int i = 0; i < %d; i++) {
    const float z = (x[i] - @mean[i]) / @deviation[i];
    x[i] = z < -10.0f ? -10.0f : z > 10.0f ? 10.0f : z;
  }]]

-- The C statements, as text, that compute the signals of a network from its inputs.
function bodies.network(program)
  local lines, inputs = gather(program)
  local hidden, calls = layers(program, inputs)
  if program.mean then lines = lines .. "\n" .. SCALED:format(inputs) end
  return ("  float x[%d];\n%s%s\n%s\n"):format(inputs, hidden, lines, calls)
end

-- The C statements, as text, of a controller of sines: signals from the time.
function bodies.sines(program)
  local count = #program.frequency * program.phases
  local _, calls = layers(program, count)
  return ([[
  float x[%d];
  for (int i = 0; i < %d; i++) {
    double turns = @frequency[i / %d] * input->time + (double)(i %% %d) / %d.0;
    turns -= (double)(long)turns;
    turns -= turns > 0.5 ? 1.0 : turns < -0.5 ? -1.0 : 0.0;
    x[i] = sinf((float)(turns * 6.283185307179586));
  }
%s
]]):format(count, count, program.phases, program.phases, program.phases, calls)
end

-- The C statements, as text, of a controller that plays a table of signals, held or interpolated in time.
function bodies.table(program)
  local rows, signals = program.values:size(1), program.values:size(2)
  local body = ([[
  double row = input->time / %.17g;
  int k;
  row = row > 0.0 ? row < %d.0 ? row : %d.0 : 0.0;
  k = (int)(row + 1e-6);
]]):format(program.dt * program.hold, rows - 1, rows - 1)
  if not program.linear then
    return body .. ("  for (int s = 0; s < %d; s++) { out[s] = @values[k * %d + s]; }\n"):format(signals, signals)
  end
  return body .. ([[
  const int next = k < %d ? k + 1 : k;
  const float share = row > (double)k ? (float)(row - (double)k) : 0.0f;
  for (int s = 0; s < %d; s++) {
    out[s] = (1.0f - share) * @values[k * %d + s] + share * @values[next * %d + s];
  }
]]):format(rows - 1, signals, signals, signals)
end

-- ---- the file -------------------------------------------------------------------------------------------------------

-- The text of the C arrays of numbers that an exported program holds: weights, table values, frequencies.
local function constants(program)
  local parts = {}
  for k, layer in ipairs(program.layers or {}) do
    parts[#parts + 1] = array("@w" .. k, layer.w)
    parts[#parts + 1] = array("@b" .. k, layer.b)
  end
  for _, name in ipairs { "mean", "deviation", "values" } do
    if program[name] then parts[#parts + 1] = array("@" .. name, program[name]) end
  end
  if program.frequency then
    local list = {}
    for k, f in ipairs(program.frequency) do list[k] = ("%.17g"):format(f) end
    parts[#parts + 1] = ("static const double @frequency[%d] = { %s };  // [1/time]\n"):format(#list,
      table.concat(list, ", "))
  end
  return table.concat(parts)
end

-- The text of the C functions of the layers, one for each activation that the program uses.
local function functions(program)
  local parts, done = {}, {}
  for _, layer in ipairs(program.layers or {}) do
    local kind = layer.activation
    if not done[kind] then
      if kind == "softplus" then parts[#parts + 1] = SOFTPLUS end
      parts[#parts + 1] = LAYER:format(kind, activations[kind])
      done[kind] = true
    end
  end
  return table.concat(parts, "\n")
end

-- The text of the C types and functions of an exported program; their names begin with @, which each export replaces by
-- its own prefix.
local function definitions(program)
  return table.concat({
    type_of_input(program), type_of_state(program), constants(program), functions(program),
    ("static inline void @step(const @input *input, @state *state, float out[%d]) {"):format(#program.signals),
    bodies[program.kind](program) .. "  state->steps++;", "}\n",
  }, "\n")
end

local KEYWORDS = (" auto break case char const continue default do double else enum extern float for goto if inline int "
  .. "long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while ")

-- Raises an error if two parts of a sum, or of a sum in it, have one name in C. front: before their names; taken: by
-- name.
local function require_apart(program, front, taken)
  for _, part in ipairs(program.parts or {}) do
    local name = front .. part.name
    if taken[name] then
      is.fail("controller:export: two parts of the sum are called %s in C, %s and %s; give one of them another name", name,
        taken[name], part.name)
    end
    taken[name] = part.name
    require_apart(part, name .. "_", taken)
  end
end

-- The C text of a sum of controllers: each part with its own input and state, then the function that adds their
-- signals, cut to -1 to 1.
local function definitions_of_sum(program)
  local parts, inputs, states, starts, steps = {}, {}, {}, {}, {}
  require_apart(program, "", {})
  for k, part in ipairs(program.parts) do
    local name, count = part.name, #program.signals
    if KEYWORDS:find(" " .. name .. " ", 1, true) then
      is.fail("controller:export: a part of the sum is called %s, which is a word of C; give it another name", name)
    end
    local body = (part.parts and definitions_of_sum or definitions)(part):gsub("@", "@" .. name .. "_")
    parts[k] = ("// ---- %s: %s\n\n%s"):format(name, part.about, body)
    inputs[k], states[k] = ("  @%s_input %s;"):format(name, name), ("  @%s_state %s;"):format(name, name)
    starts[k] = ("  @%s_start(&state->%s);"):format(name, name)
    steps[k] = ("  @%s_step(&input->%s, &state->%s, part);\n  for (int s = 0; s < %d; s++) { out[s] %s= part[s]; }"):format(
      name, name, name, count, k > 1 and "+" or "")
  end
  -- The texts of a list, a line each.
  local function lines(list) return table.concat(list, "\n") end
  return ([[
%s
typedef struct @input {
%s
} @input;

typedef struct @state {
%s
} @state;

static inline void @start(@state *state) {
%s
}

static inline void @step(const @input *input, @state *state, float out[%d]) {
  float part[%d];
%s
  for (int s = 0; s < %d; s++) { out[s] = out[s] < -1.0f ? -1.0f : out[s] > 1.0f ? 1.0f : out[s]; }
}
]]):format(lines(parts), lines(inputs), lines(states), lines(starts), #program.signals, #program.signals, lines(steps),
    #program.signals)
end

---The program as a C header.
---@param program cq.controller.Program
---@return string
return function(program)
  local guard = program.name:upper() .. "_H"
  local signals = {}
  for k, name in ipairs(program.signals) do signals[k] = ("//   out[%d]  %s"):format(k - 1, name:gsub("%c", " ")) end
  local parts = {
    ("// %s, as C99. One step each %.9g [time]; signals are meant to lie in [-1, 1]:"):format(program.about,
      program.dt),
    table.concat(signals, "\n"), ("#ifndef %s\n#define %s\n\n#include <math.h>\n"):format(guard, guard),
    (program.parts and definitions_of_sum or definitions)(program) .. "\n#endif\n",
  }
  local header = table.concat(parts, "\n"):gsub("@", program.name .. "_")
  -- a comment that ends in a backslash, or its trigraph ??/, as a name may, would go on in the next line
  return (header:gsub("(//[^\n]*[\\/][ \t]*)\n", "%1.\n"))
end
