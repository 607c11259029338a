-- style: rules about the code that a program can check. Each failure names file and line.
local host = require "cq.host"
local source = require "tests.source"
local types = require "cq.reference.type"

local files = source.files { "engine", "cuda", "mpi", "lua", "scenes", "examples", "tests", "zoo" }

-- every problem at once, so that one run of the tests is enough to mend them
local function none(problems)
  assert(#problems == 0, ("%d of them:\n%s"):format(#problems, table.concat(problems, "\n")))
end

-- calls each(line, number, file) on files that pick() takes; what it returns is a problem
local function lines_that(pick, each)
  local problems = {}
  for _, file in ipairs(files) do
    if pick(file) then
      for number, line in ipairs(file.lines) do
        local problem = each(line, number, file)
        if problem then problems[#problems + 1] = ("%s:%d: %s"):format(file.path, number, problem) end
      end
    end
  end
  return problems
end

local function any() return true end
local function is_c(file) return file.kind == "c" end
local function is_lua(file) return file.kind == "lua" end
local function under(folder)
  return function(file) return file.kind == "c" and file.path:sub(1, #folder + 1) == folder .. "/" end
end

describe("style", function()
  it("finds the sources", function() assert(#files > 30, "only " .. #files .. " files") end)

  it("has no tabs, trailing blanks or carriage returns", function()
    none(lines_that(any, function(line)
      if line:find "\t" then return "a tab" end
      if line:find "\r" then return "a carriage return" end
      if line:find " $" then return "blanks at the end" end
    end))
  end)

  it("has lines of at most 120 columns", function()
    none(lines_that(any, function(line, _, file)
      local columns = source.columns(line)
      if columns > 120 and not source.unbroken(line, file.kind) then return columns .. " columns" end
    end))
    local problems = {}
    for _, path in ipairs(source.prose()) do
      local number = 0
      for line in source.read(path):gmatch "([^\n]*)\n" do
        number = number + 1
        local columns = source.columns(line)
        if columns > 120 and not line:find "^%s*|" and not line:find "^!%[" then        -- a row, a picture
          problems[#problems + 1] = ("%s:%d: %d columns"):format(path, number, columns)
        end
      end
    end
    none(problems)
  end)

  it("squares and roots numbers by products and math.sqrt where results must have the same bits", function()
    -- LuaJIT's interpreter has pow for x ^ 2, whose last bit is another than that of x * x, which compiled code has
    local of_pictures = { "^lua/cq/picture", "^lua/cq/report", "^lua/cq/plot", "^lua/cq/tensor/check%.lua",
      "^lua/cq/tensor/init%.lua", "^lua/cq/study/importance%.lua", "^lua/cq/controller/c99%.lua" }
    none(lines_that(function(file)
      for _, pattern in ipairs(of_pictures) do
        if file.path:find(pattern) then return false end
      end
      return is_lua(file) and file.path:find "^lua/cq/"
    end, function(line)
      local code = line:gsub("%-%-.*", ""):gsub('"[^"]*"', '""')
      local exponent = code:match "[%w_%)%]]%s*%^%s*([%d.]+)%f[^%w.]"
      if (exponent == "2" or exponent == "0.5") and not code:find "%f[%w.]%d+ ?%^ ?[%d.]+" then
        return "^ " .. exponent
      end
    end))
  end)

  it("has functions of at most six parameters", function()
    local problems = {}
    for _, file in ipairs(files) do
      for number, name, count in source.parameters(file) do
        if count > 6 and not file.path:find "^tests/" then
          problems[#problems + 1] = ("%s:%d: %s has %d parameters"):format(file.path, number, name, count)
        end
      end
    end
    none(problems)
  end)

  it("counts parameters, in C and in Lua, over lines, strings and comments", function()
    local function counts(kind, text)
      local found = {}
      for _, name, count in source.parameters { kind = kind, text = text } do found[name] = count end
      return found
    end
    assert.same({ a = 0, b = 1, g = 2, c = 2, d = 2, e = 1, k = 3 }, counts("c", [[
      #define ROW(x, y, z) {x, y, z},
      static int a(void) { return f(1, 2, 3, 4); }
      int b(int (*g)(int, int));
      void c(const cq_scene *s,   // one, two, three
             int k) {
        if (x(1, 2, 3)) { return; }
        put("d(a, b, c) {", 1, 2);
      }
      double d(int a[3], double b) __attribute__((weak));
      explicit e(int a) : a(1), b(2) {}
      struct t { void (*k)(int a, int b, int c); };
    ]]))
    assert.same({ a = 0, ["t:b"] = 2, ["t.c"] = 3, ["function"] = 2 }, counts("lua", [[
      local function a() return f(1, 2, 3) end
      function t:b(x, ...) end   -- function t.d(x, y) end
      function t.c(x,
                   y, z) end
      each(function(x, y) return "function(x, y, z, u)" end)
    ]]))
  end)

  it("has files of at most 600 lines that end with a newline", function()
    local problems = {}
    for _, file in ipairs(files) do
      if #file.lines > 600 then
        problems[#problems + 1] = file.path .. ": " .. #file.lines .. " lines; split it by noun"
      end
      if not file.text:find "\n$" then problems[#problems + 1] = file.path .. ": no newline at its end" end
      if file.text:find "\n\n$" then problems[#problems + 1] = file.path .. ": empty lines at its end" end
    end
    none(problems)
  end)

  it("begins each file with a comment that says what it holds", function()
    local problems = {}
    for _, file in ipairs(files) do
      local first = file.lines[1] or ""
      if first:find "^#!" then first = file.lines[2] or "" end
      if not first:find "^// %S" and not first:find "^%-%- %S" and not first:find "^# %S" then
        problems[#problems + 1] = file.path .. ": its first line is no comment"
      end
    end
    none(problems)
  end)

  -- spelt in two halves, so that this file does not hold them
  local loose = { "TO" .. "DO", "FIX" .. "ME", "XX" .. "X", "HA" .. "CK", "not imple" .. "mented", "unimple"
    .. "mented", "place" .. "holder" }
  local foreign = { "/wo" .. "rk/", "/ro" .. "ot/", "/ho" .. "me/", "file:/" .. "//" }

  it("leaves no loose ends and no paths of one machine", function()
    none(lines_that(any, function(line)
      for _, word in ipairs(loose) do
        if line:find("%f[%w]" .. word .. "%f[%W]") then return "a loose end: " .. word end
      end
      for _, word in ipairs(foreign) do
        if line:find(word, 1, true) then return "a path of one machine: " .. word end
      end
    end))
  end)

  it("never prints, exits or aborts in the engine's library", function()
    none(lines_that(function(file)
      return under "engine" (file) and not file.path:find "^engine/host/"
    end, function(line)
      local code = source.code(line)
      local call = code:match "%f[%w_](f?printf)%s*%(" or code:match "%f[%w_](puts)%s*%("
        or code:match "%f[%w_](exit)%s*%("
        or code:match "%f[%w_](abort)%s*%(" or code:match "%f[%w_](assert)%s*%("
      if call then return call .. "() in the library; it returns a cq_status and leaves a sentence" end
    end))
  end)

  it("says CUDA in no #if outside of cuda/ and engine/math/real.h", function()
    none(lines_that(function(file)
      return under "engine" (file) and file.path ~= "engine/math/real.h"
    end, function(line)
      if line:find "^%s*#%s*%a*if.*CUDA" or line:find "^%s*#%s*if.*CUDACC" then return "CUDA in an #if" end
    end))
  end)

  it("turns on no fast math", function()
    none(lines_that(any, function(line)
      if line:find("-ffast" .. "-math", 1, true) then return "fast math" end
    end))
    assert.is_nil(source.read("Makefile"):find("-ffast" .. "-math", 1, true))
  end)
end)

describe("rooms", function()
  -- what a room may include beside itself and cq.h; the map in engine/README.md
  local sees = {
    base = {}, math = { "base" }, physics = { "base", "math" },
    world = { "base", "physics" }, backend = { "base", "physics", "world" },
    cpu = { "base", "math", "physics", "world", "backend" }, cuda = { "base", "math", "physics", "world", "backend" },
    memo = { "base", "world", "backend" }, geometry = { "base" }, tensor = { "base", "math" }, picture = { "base" },
    api = { "base", "math", "physics", "world", "backend", "cpu", "cuda", "memo", "geometry", "tensor", "picture" },
    host = {},
  }

  it("include only what lies below them", function()
    none(lines_that(function(file)
      return file.kind == "c" and file.path:find "^engine/" or file.path:find "^cuda/"
    end, function(line, _, file)
      local included = line:match '^%s*#%s*include%s+"([^"]+)"'
      if not included then return end
      local from = file.path:match "^engine/([^/]+)/" or file.path:match "^(cuda)/"
      -- which stand beside it
      local parts = { ["lists.h"] = 1, ["drives.h"] = 1, ["bodies.h"] = 1, ["pictures.h"] = 1,
        ["tensors.h"] = 1 }
      if file.path == "engine/cq.h" and parts[included] then return end
      if not from then return "a file outside of the rooms" end
      if not sees[from] then return ("an unknown room %s; add it to engine/README.md and here"):format(from) end
      if included == "cdef.inc" then return from ~= "host" and "cdef.inc belongs to host" or nil end
      local path = source.join(file.path, included)
      local to = path:match "^engine/([^/]+)/" or path:match "^(cuda)/"
      if path == "engine/cq.h" or to == from then return end
      for _, room in ipairs(sees[from]) do
        if room == to then return end
      end
      return ("%s must not include %s"):format(from, path)
    end))
  end)

  it("are all on the map in engine/README.md", function()
    local map, missing = source.read "engine/README.md", {}
    for _, name in ipairs(host.entries "engine") do
      if host.kind("engine/" .. name) == "folder" and not map:find("%f[%w]" .. name .. "%f[%W]") then
        missing[#missing + 1] = name
      end
    end
    none(missing)
  end)

  it("of Lua declare nothing of the engine but through cq.h", function()
    none(lines_that(function(file)
      return is_lua(file) and file.path:find "^lua/" and file.path ~= "lua/cq/base/engine.lua"
    end, function(line)
      if line:find "cdef" and line:find "cq_%w+%s*%(" then return "a declaration of the engine outside of cq.h" end
    end))
  end)

  it("keep each adjoint beside its primal", function()
    local problems = {}
    for _, file in ipairs(files) do
      if file.path:find "^engine/physics/" or file.path:find "^engine/math/" then
        local primal = {}
        for number, name in source.functions(file) do
          local of = name:match "^(.*)_adj$"
          if of and primal[of] == nil then
            problems[#problems + 1] = ("%s:%d: %s stands without %s before it"):format(file.path, number, name, of)
          elseif of and primal[of] ~= true then
            problems[#problems + 1] = ("%s:%d: %s stands between %s and its adjoint"):format(file.path, number,
              primal[of], of)
          end
          -- between foo and foo_adj only what begins with foo_ may stand
          for earlier in pairs(primal) do
            if primal[earlier] == true and name:sub(1, #earlier + 1) ~= earlier .. "_" then primal[earlier] = name end
          end
          primal[name] = true
        end
      end
    end
    none(problems)
  end)
end)

describe("Lua", function()
  it("passes luacheck", function()
    local pipe = assert(io.popen "command -v luacheck >/dev/null && luacheck -q --no-color lua scenes examples tests; echo \"exit $?\"")
    local output = pipe:read "*a"
    pipe:close()
    assert(output:find "exit 0\n$", output)
  end)

  -- what is wrong with the annotation of one field, if anything
  local function disagreement(item, checker)
    if not checker then return "is annotated and not accepted" end
    if not item then return "is accepted and not annotated" end
    local optional = checker.optional or false
    if item.optional ~= optional then
      return ("is %s, its annotation says otherwise"):format(optional and "optional" or "required")
    end
    -- said once, by the schema
    if checker.default ~= nil and (item.text:find "default" or item.text:find "unless given") then
      return "has its default in the schema, and again in its annotation"
    end
    local annotated, accepted = types.set(item.type), types.set(checker.cats)
    -- a checker that leaves open what is in a table, or what a value is, is told more by its annotation
    for part in pairs(accepted) do
      local open = part:find "any" or part:find "^table" or part == "function"
      if open then return nil end
    end
    for part in pairs(annotated) do
      if not accepted[part] then return ("is %s, annotated is %s"):format(checker.cats, item.type) end
    end
    for part in pairs(accepted) do
      if not annotated[part] then return ("is %s, annotated is %s"):format(checker.cats, item.type) end
    end
  end

  it("annotates the fields that constructors accept, with their types, and no others", function()
    local annotated = source.annotations()
    local problems = {}
    source.require_all(files)
    for name, definition in pairs(require("cq.base.schema").registry) do
      if name:find "^cq%." or name:find "%w:%w" then
        local items, known = annotated(name), {}
        if not items then
          local class = name:gsub("[:%s]+", ".") .. ".def"
          problems[#problems + 1] = ("%s: its fields have no annotation; write ---@class %s with a ---@field for each"):format(name, class)
        end
        for _, item in ipairs(items or {}) do
          if not item.name:find "^%[" then known[item.name] = item end
        end
        for field in pairs(items and definition.fields or {}) do known[field] = known[field] or false end
        for field, item in pairs(known) do
          local problem = disagreement(item, definition.fields[field])
          if problem then problems[#problems + 1] = ("%s: %s %s"):format(name, field, problem) end
        end
      end
    end
    table.sort(problems)
    none(problems)
  end)

  it("annotates every noun of cq", function()
    local path = "lua/cq/init.lua"
    local annotated, problems = {}, {}
    for _, file in ipairs(files) do
      if file.path == path then
        for name in file.text:gmatch "%-%-%-@field ([%w_]+)" do annotated[name] = true end
        for name in file.text:match "local nouns = (%b{})":gmatch "([%w_]+) = \"" do
          if not annotated[name] then
            problems[#problems + 1] = ("%s: cq.%s has no ---@field in the class cq"):format(path, name)
          end
        end
      end
    end
    assert(annotated.World)
    none(problems)
  end)

  it("keeps the biped of Appendix C within 50 lines", function()
    local lines = 0
    for _, file in ipairs(files) do
      if file.path == "examples/biped.lua" then lines = #file.lines end
    end
    assert(lines > 0 and lines <= 50, lines .. " lines")
  end)

  it("has examples that name their source and what to expect", function()
    local problems = {}
    for _, file in ipairs(files) do
      if file.path:find "^examples/[^/]+%.lua$" then
        local head = file.text:match "^([^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n)" or file.text
        if not head:find "Source:" or not head:find "Expect:" then
          problems[#problems + 1] = file.path .. ": no Source: or no Expect: in its first lines"
        end
      end
    end
    none(problems)
  end)
end)

describe("C", function()
  it("is compiled with the warnings that the project wants", function()
    local makefile = source.read "Makefile"
    for _, flag in ipairs { "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wmissing-prototypes", "-Wvla",
      "-Werror" } do
      assert(makefile:find(flag, 1, true), flag .. " is missing in the Makefile")
    end
  end)

  it("names public functions cq_noun_verb", function()
    none(lines_that(function(file) return file.path == "engine/cq.h" end, function(line)
      local name = source.code(line):match "^[%w_ ]+[ %*]([%w_]+)%("
      if name and not name:find "^cq_%l" and not name:find "^CQ_%u+" then return name .. " does not begin with cq_" end
    end))
  end)

  it("takes no struct by value at the border", function()
    none(lines_that(function(file) return file.path == "engine/cq.h" and is_c(file) end, function(line)
      local arguments = source.code(line):match "^[%w_ %*]+%((.*)%);"
      if arguments and (("," .. arguments):find ",%s*c?o?n?s?t?%s*cq_%l[%w_]*%s+%l") then
        return "a struct by value: " .. line
      end
    end))
  end)
end)
