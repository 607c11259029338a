-- host: the command line of cqlua, its exit codes and what it says.
local process = require "tests.process"
local has = require("tests.sentence").says
local cqlua = process.cqlua

local folder

local function script(content) return process.write(folder .. "/script.lua", content) end

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

describe("matrix products", function()
  it("take kernels of this processor, unless a variable names others", function()
    local flags = process.read "/proc/cpuinfo" or ""
    if flags:find(" avx2 ", 1, true) then
      local said = cqlua({ "info" }, { before = "env -u OPENBLAS_CORETYPE" }).out
      assert(said:find("matrix products", 1, true) and not said:find("Prescott", 1, true), said)
    end
    has(cqlua({ "info" }, { before = "OPENBLAS_CORETYPE=Prescott" }).out, "Prescott")
  end)
end)

describe("a script", function()
  it("that finishes gives 0", function()
    local result = cqlua { script "print 'hello'" }
    assert.same({ code = 0, out = "hello\n", err = "" }, result)
  end)

  it("that is empty gives 0 and says nothing", function()
    assert.same({ code = 0, out = "", err = "" }, cqlua { script "" })
  end)

  it("gets its words, also after --", function()
    local result = cqlua { script "print(arg[0]:match '[^/]+$', ...)", "a", "--", "--b", "c d" }
    assert.equal("script.lua\ta\t--b\tc d\n", result.out)
  end)

  it("that fails gives 1, its message and a traceback of its own lines", function()
    local result = cqlua { script "local function step()\n  local x\n  return x.y\nend\nstep()\n" }
    assert.equal(1, result.code)
    has(result.err, "script.lua:3: attempt to index local 'x' (a nil value)")
    has(result.err, "script.lua:3: in function step")
    has(result.err, "script.lua:5: in main chunk")
  end)

  it("that misuses the library sees its own line and none of the library's", function()
    local result = cqlua { script(
      "local is = require 'cq.base.schema'\nlocal S = is.define('thing', { a = is.number() })\n"
      .. "local s = S { b = 1 }\nprint(s)\n") }
    assert.equal(1, result.code)
    has(result.err, "script.lua:3: thing: unknown field b")
    assert.is_nil(result.err:find "lua/cq/")
  end)

  it("that misuses the library in a tail call still hears its name", function()
    local result = cqlua { script "return require('cq.base.schema').define('thing', {}) { b = 1 }" }
    assert.equal(1, result.code)
    assert.matches("^cqlua: [^\n]*script.lua: thing: unknown field b", result.err)
  end)

  it("that breaks the library shows the library's frames too", function()
    local result = cqlua { script "local text = require 'cq.base.text'\nlocal s = text.suggest(nil, { 'a' })\nprint(s)\n" }
    assert.equal(1, result.code)
    assert.matches("\n  [^\n]*lua/cq/base/text.lua:%d+: in function", result.err)
    has(result.err, "script.lua:2: in main chunk")
  end)

  it("that raises a sentence without a place is told in that sentence alone, also from a scene or a function", function()
    for _, content in ipairs {
      "error('--legs must be 4, got 5', 0)",
      "local function scene()\n  local n = 5\n  error(('--legs must be 4, got %d'):format(n), 0)\nend\nscene()\n",
    } do
      assert.same({ code = 1, out = "", err = "cqlua: --legs must be 4, got 5\n" }, cqlua { script(content) })
    end
    local scene = cqlua { "-e", "require 'scenes.terrain' { slopes = { 90 } }" }
    assert.equal(1, scene.code)
    assert.matches("^cqlua: slopes of the terrain must be above 0 and below 60 degrees, got [^\n]*\n$", scene.err)
  end)

  it("may throw what is no string", function()
    local result = cqlua { script "error { 1 }" }
    assert.equal(1, result.code)
    has(result.err, "an error that is not a sentence but a table")
    has(result.err, "script.lua:1: in main chunk")
  end)

  it("with a wrong syntax gives 1 and the line", function()
    local result = cqlua { script "x = = 1" }
    assert.equal(1, result.code)
    has(result.err, "script.lua:1: unexpected symbol near '='")
  end)

  it("that is missing or a folder gives 2", function()
    local result = cqlua { folder .. "/none.lua" }
    assert.equal(2, result.code)
    has(result.err, "none.lua: No such file or directory")
    result = cqlua { folder }
    assert.equal(2, result.code)
    has(result.err, "it is a folder")
  end)

  it("finds modules beside itself and the project's scenes and library", function()
    process.write(folder .. "/neighbour.lua", "return 42")
    local result = cqlua { script "print(require 'neighbour', type(require 'cq.base.schema'))" }
    assert.equal("42\ttable\n", result.out)
  end)

  it("is read from standard input with -", function()
    script "print 'piped'"
    assert.equal("piped\n", cqlua({ "-" }, { after = "< " .. folder .. "/script.lua" }).out)
  end)

  it("overflows the stack without a crash", function()
    local result = cqlua { script "local function f(x) return 1 + f(x) end\nf(1)" }
    assert.equal(1, result.code)
    has(result.err, "stack overflow")
  end)

  it("runs out of memory without a crash", function()
    if process.sanitized() then return pending "AddressSanitizer reserves more than any limit allows" end
    local result = cqlua({ script "local t = {}\nwhile true do t[#t + 1] = ('x'):rep(1e7) .. #t end" },
      { before = "ulimit -v 2000000;" })
    assert.equal(1, result.code)
    has(result.err, "not enough memory")
  end)

  it("that cannot print says so", function()
    local result = cqlua({ script "print 'x'" }, { after = "> /dev/full" })
    assert.equal(1, result.code)
    has(result.err, "No space left on device")
  end)

  it("shows its first comment with --help, and does not run", function()
    local result = cqlua { script "-- Trains a thing.\n-- --n N   how many\n\n-- not this\nprint 'ran'\n", "--help" }
    assert.same({ code = 0, out = "Trains a thing.\n--n N   how many\n", err = "" }, result)
    has(cqlua({ script "print 'ran'", "--help" }).out, "script.lua says nothing of itself: it begins with no comment")
    result = cqlua { folder, "--help" }
    assert.same({ code = 2, out = "", err = ("cqlua: cannot open %s: it is a folder\n"):format(folder) }, result)
  end)
end)

describe("options of a script", function()
  local ask = "local option = require 'cq.option'\n"

  it("have no defaults of their own for those that the program sets", function()
    local result = cqlua { script(ask .. "print(option('threads', 0), option('seed', 3), option('threads', 5))") }
    assert.equal(1, result.code)
    has(result.err, "cq.option: threads is an option of the program itself, whose default is 0, got the default 5")
    result = cqlua { script(ask .. "print(option('threads', 0), option('simd', 'auto'), option('threads'))"),
      "--threads", "2" }
    assert.equal("2\tauto\t2\n", result.out)
  end)

  it("have a checker as their kind, and nothing else", function()
    local result = cqlua { script(ask .. "option('n', 3, 'how many')") }
    assert.equal(1, result.code)
    has(result.err, 'script.lua:2: cq.option: kind must be a checker, as require("cq.base.schema").integer { min = 1 }, '
      .. 'got "how many"')
    result = cqlua { script(ask .. "print(option('n', 3, require('cq.base.schema').integer { min = 1 }))"), "--n", "0" }
    has(result.err, "--n must be a whole number")
  end)

  it("are read as the type of their default", function()
    local content = ask .. "print(option('n', 3), option('dry', false), option('wet', true), option('name', 'a'), "
      .. "option('goal', { 0, 0 })[2], option('other'))"
    assert.equal("3\tfalse\ttrue\ta\t0\tnil\n", cqlua { script(content) }.out)
    assert.equal("-7\ttrue\tfalse\tb c\t0.25\t5\n",
      cqlua { script(content), "--n", "-7", "--dry", "--wet=false", "--name", "b c", "--goal", "1,0.25",
        "--other=5" }.out)
  end)

  it("that do not fit are errors at the script's line", function()
    for typed, problem in pairs {
      ["--n=x"] = '--n must be a number, got "x"', ["--n"] = "--n must be a number, got nothing",
      ["--n=nan"] = '--n must be a number, got "nan"',
      ["--dry=perhaps"] = '--dry must be true or false, got "perhaps"',
    } do
      local result = cqlua { script(ask .. "print(option('n', 3), option('dry', false))"), typed }
      assert.equal(1, result.code)
      has(result.err, "script.lua:2: " .. problem)
    end
  end)

  it("can be checked more closely", function()
    local content = ask .. "local is = require 'cq.base.schema'\nprint(option('n', 3, is.integer { min = 1 }))"
    assert.equal("3\n", cqlua { script(content) }.out)
    local result = cqlua { script(content), "--n", "0" }
    assert.equal(1, result.code)
    has(result.err, '--n must be a whole number at least 1, got "0"')
  end)

  it("that nobody asked for are told at the end, with a suggestion", function()
    local result = cqlua { script(ask .. "print(option('iterations', 3))"), "--iteration", "5" }
    assert.equal(0, result.code)
    assert.equal("3\n", result.out)
    has(result.err, "the script never asked for --iteration (did you mean iterations?); it asked for --iterations")
  end)

  it("can also be the program's", function()
    local content = ask .. "local p = option.program\nprint(p.threads, p.precision, p.simd, p.out, p.seed, p.quiet, "
      .. "p.device, option('seed', 9))"
    assert.equal("0\tnil\tauto\tnil\tnil\tfalse\tnil\t9\n", cqlua { script(content) }.out)
    assert.equal("2\tfloat64\tavx2\tx\t5\ttrue\tcpu\t5\n", cqlua {
      "--threads", "2", "--precision=float64", "--device", "cpu", script(content), "--simd", "avx2", "--out", "x",
      "--seed", "5", "--quiet",
    }.out)
  end)
end)

describe("the command line", function()
  it("refuses an unknown option with a suggestion and 2", function()
    local result = cqlua { "--thread", "2", script "" }
    assert.equal(2, result.code)
    has(result.err, "unknown option --thread (did you mean threads?)")
    result = cqlua { "-z" }
    assert.equal(2, result.code)
    has(result.err, "unknown option -z")
  end)

  it("refuses wrong values with what was got and what is allowed", function()
    for _, case in ipairs {
      { { "--threads", "-1" }, '--threads must be a whole number at least 0 and at most 256, got "-1"' },
      { { "--threads", "two" }, 'got "two"' }, { { "--threads" }, "got nothing" },
      { { "--precision", "float16" }, '--precision must be one of "float32", "float64", got "float16"' },
      { { "--device", "gpu" }, '--device must be one of "auto", "cpu", "cuda", got "gpu"' },
      { { "--seed", "1.5" }, 'got "1.5"' }, { { "--simd", "sse9" }, 'got "sse9"' },
      { { "-e" }, "-e needs a piece of Lua" },
      { {}, "nothing to run" },
    } do
      local result = cqlua(case[1])
      assert.equal(2, result.code)
      has(result.err, case[2])
    end
  end)

  it("runs pieces of Lua with -e", function()
    assert.same({ code = 0, out = "3\ta\n", err = "" }, cqlua { "-e", "x = 3", "-e", "print(x, ...)", "a" })
    local result = cqlua { "-e", "error 'no'" }
    assert.equal(1, result.code)
    has(result.err, "(command line):1: no")
    for words, told in pairs {
      [{ "-e", "print(1)", "a.lua" }] = "-e runs its code alone, without the script a.lua",
      [{ script "print(2)", "-e", "print(1)" }] = "-e is an option of cqlua and stands before a script",
    } do
      result = cqlua(words)
      assert.same({ 2, "" }, { result.code, result.out })
      has(result.err, told)
    end
    assert.equal("a.lua\n", cqlua({ "-e", "print(...)", "--", "a.lua" }).out)
    assert.equal("-e\n", cqlua({ script "print(...)", "--", "-e" }).out)
  end)

  it("has a prompt that prints values, joins lines and goes on after an error", function()
    process.write(folder .. "/typed", "1 + 1\nfor i = 1, 2 do\nprint(i)\nend\nx = 5\nx\nnil + 1\n'still here'\n")
    local result = cqlua({ "-i" }, { after = "< " .. folder .. "/typed" })
    assert.equal(0, result.code)
    assert.equal("2\n1\n2\n5\nstill here\n", result.out)
    has(result.err, "attempt to perform arithmetic on a nil value")
  end)

  it("forgets an interruption at the next line of the prompt", function()
    process.write(folder .. "/typed", "C = require('cq.base.engine').C\nC.cq_interrupt(1)\nC.cq_interrupted()\n")
    local result = cqlua({ "-i" }, { after = "< " .. folder .. "/typed" })
    assert.equal(0, result.code)
    assert.equal("0\n", result.out)
  end)

  it("tells its version and its options", function()
    assert.matches("^cqlua %d+%.%d+%.%d+ %(LuaJIT", cqlua { "--version" }.out)
    local help = cqlua { "--help" }
    assert.equal(0, help.code)
    local words = "--device --threads --precision --simd --out --seed --quiet -e -i info --iterations --resume --render"
    for word in words:gmatch "%S+" do has(help.out, word) end
  end)

  it("finds its library by CQLUA_ROOT, and says where it looked when it is not there", function()
    local result = cqlua({ "--version" }, { before = "CQLUA_ROOT=" .. folder })
    assert.equal(1, result.code)
    has(result.err, "set CQLUA_ROOT")
  end)
end)

describe("tests without busted", function()
  it("say what is missing, and every target that tests installs it", function()
    local result = cqlua({ "tests/spec.lua", "tests/host_spec.lua" }, { before = "LUA_PATH=none LUA_CPATH=none" })
    assert.same({ code = 1, out = "", err = "busted, which runs the tests, is not installed: make setup\n" }, result)
    local runs = { "tests/spec.lua", "tests/run.lua" }
    local targets, here, ready = {}, nil, false
    for line in io.lines(require("cq.host").root .. "/Makefile") do
      local target = line:match "^([%w-]+):"
      if target then here, ready = target, false end
      if line:find("setup.sh build test", 1, true) or line:find("setup.sh test", 1, true) then ready = true end
      for _, file in ipairs(runs) do
        if line:find("^\t") and line:find(file, 1, true) then targets[here] = ready end
      end
      if here == "tests" and line:find "run%-tests$" then targets.tests = ready end
    end
    -- run-tests is only made by tests, which has set up before
    assert.same({ trainings = true, tests = true, ["run-tests"] = false }, targets)
  end)
end)

describe("make help", function()
  it("tells of a machine without nvcc, and nothing goes wrong", function()
    local pipe = io.popen(("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory -C '%s' help NVCC= 2>&1")
      :format(require("cq.host").root))
    local said = pipe:read "*a"
    pipe:close()
    assert.matches("^cqlua %d", said)
    has(said, "not found: there will be no CUDA device")
    has(said, "CUDA_ARCHS=''")
  end)
end)

describe("a command", function()
  it("info tells what was found, also as JSON", function()
    local result = cqlua { "info" }
    assert.equal(0, result.code)
    has(result.out, "instructions")
    local line = cqlua { "info", "--json", "--threads", "3" }.out
    assert.matches('^{"version": "%d.*}\n$', line)
    has(line, '"threads": 3')
    has(cqlua({ "--simd", "baseline", "--threads", "1", "--precision", "float64", "info" }).out,
      "CPU, baseline, 1 thread, float64")
    assert.equal(1, select(2, line:gsub("\n", "")))
  end)

  it("refuses what it does not declare", function()
    for _, name in ipairs { "accuracy", "bench", "info" } do
      local stray = cqlua { name, "block" }
      assert.equal(2, stray.code)
      has(stray.err, ("%s takes options alone, got block; cqlua %s --help lists them"):format(name, name))
    end
    local result = cqlua { "info", "--jsn" }
    assert.equal(2, result.code)
    has(result.err, "info has no option --jsn (did you mean json?)")
  end)

  it("check runs a script with one iteration and hands its options on", function()
    local content = "local option = require 'cq.option'\nprint(option('iterations', 100), option('n', 3), "
      .. "option.program.check, arg[1])\n"
    local result = cqlua { "check", script(content), "--n", "4", "word", "--m", "1" }
    assert.equal(0, result.code, result.err)
    assert.equal("1\t4\ttrue\tword\n" .. folder .. "/script.lua: nothing wrong was found\n", result.out)
    has(result.err, "never asked for --m")
    assert.equal(1, cqlua({ "check", script "error 'bad'" }).code)
    for _, words in ipairs { { "check" }, { "check", folder .. "/none.lua" } } do assert.equal(2, cqlua(words).code) end
  end)

  it("has its own help, with what each option is for", function()
    for _, name in ipairs { "accuracy", "bench", "check", "info" } do
      local result = cqlua { name, "--help" }
      assert.equal(0, result.code)
      has(result.out, "--json")
      for option, kind in pairs(require("cq.command." .. name).options) do
        assert(kind.help, ("%s --%s says nothing"):format(name, option))
      end
    end
    has(cqlua({ "bench", "--help" }).out, "  --case C           only those of this name")
  end)
end)

describe("the engine", function()
  local engine = require "cq.base.engine"

  it("was built from the header that Lua reads", function()
    assert.equal(engine.C.CQ_ABI, engine.C.cq_abi())
    local structs = engine.structs()
    assert(#structs >= 5, #structs)
    for _, name in ipairs(structs) do
      assert(tonumber(engine.C.cq_struct_size(name)) == require("ffi").sizeof(name),
        name .. " is unknown to cq_struct_size or has another size")
    end
  end)

  it("has every function of the header", function()
    for name in engine.declarations:gmatch "(cq_[%w_]+)%([^()]*%);" do
      assert(pcall(function() return engine.C[name] end), name .. " is declared and not built")
    end
  end)

  it("turns a status into an error at the user's line", function()
    engine.check(engine.C.CQ_OK)
    local status = engine.C.cq_file_replace("/nowhere/at/all", "x", 1, 1)
    local fine, problem = pcall(function() engine.check(status, "saving") end)
    assert.is_false(fine)
    assert.matches("^tests/host_spec.lua:%d+: saving: .*there is no folder", problem)
  end)
end)

describe("pairs and next", function()
  it("are functions that LuaJIT does not compile, and work as its own", function()
    local info = require("jit.util").funcinfo
    assert.is_truthy(info(ipairs).ffid)                    -- the number of one that is compiled
    assert.is_nil(info(pairs).ffid or info(next).ffid)
    local sum = 0
    for key, value in pairs { 3, 4, a = 5 } do sum = sum + value * (key == "a" and 100 or key) end
    assert.equal(511, sum)
    assert.is_nil((next {}))
    assert.same({ 1, 7 }, { next { 7 } })
    local _, problem = pcall(function() for _ in pairs(nil) do return end end)     -- luacheck: ignore 512
    assert.is_truthy(problem:find("bad argument #1 to 'pairs' (table expected, got nil)", 1, true))
  end)
end)
