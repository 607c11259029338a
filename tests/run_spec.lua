-- run: the folder that a run leaves: history, manifest, parameters, and what becomes of them when things go wrong.
local process = require "tests.process"
local has = require("tests.sentence").says
local cqlua = process.cqlua

local folder

local function script(content) return process.write(folder .. "/script.lua", content) end

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- counts to --iterations, and keeps a parameter that remembers how far it came
local loop = [[
local Run, T, option = require "cq.run", require "cq.tensor", require "cq.option"
local run = Run.open { iterations = option("iterations", 5), notes = { color = "red" } }
local w = run.saved and run.saved.params.w or T.tensor { 0, 0 }
local state = run.saved and run.saved.optimizer or { count = 0 }
for i = run.done + 1, run.iterations do
  w = w + 1
  state = { count = state.count + 1 }
  run:record { iteration = i, loss = 1 / i, w = w }
  run:save(i, { w = w }, state)
  if i == option("fail", 0) then error "the end" end
  if i == option("interrupt", 0) then require("cq.base.engine").C.cq_interrupt(1) end
  if run:interrupted() then break end
end
run:finish({ w = w }, state)
print(run.done, w:get(1), state.count)
]]

local function out() return folder .. "/out" end

-- a shell's wait until a run has written `ready`, ten seconds at most
local function wait_ready()
  return ("i=0; while [ ! -e %s/ready ] && [ $i -lt 500 ]; do sleep 0.02; i=$((i + 1)); done"):format(out())
end

describe("a run", function()
  it("says that --out is not used where the script names another folder", function()
    local content = ('require("cq.run").open { folder = %q }:finish()'):format(out() .. "/own")
    has(cqlua({ script(content), "--out", folder .. "/other" }).err,
      ("--out %s/other is not used: the script writes to the folder %s/own, which it names"):format(folder, out()))
    assert.equal("", cqlua({ script(content), "--out", out(), "--quiet" }).err)
  end)

  it("leaves history, manifest, script, parameters and optimizer state", function()
    local result = cqlua { script(loop), "--out", out(), "--seed", "3" }
    assert.equal(0, result.code, result.err)
    assert.equal("5\t5\t5\n", result.out)
    assert.equal("iteration,loss,w.1,w.2\n1,1,1,1\n2,0.5,2,2\n3,0.3333333333333333,3,3\n4,0.25,4,4\n5,0.2,5,5\n",
      process.read(out() .. "/history.csv"))
    assert.equal(loop, process.read(out() .. "/script.lua"))
    local manifest = process.read(out() .. "/manifest.json")
    for _, part in ipairs {
      '"seed": 3', '"status": "finished"', '"color": "red"', '"script_hash": "', '"version": "', '"iterations_done": 5',
      '"simd": "auto"', "--out",
    } do
      has(manifest, part)
    end
    local T = require "cq.tensor"
    assert.equal(5, T.load(out() .. "/params.bin").w:get(2))
    assert.equal(5, T.load(out() .. "/optimizer.bin").optimizer.count)
  end)


  it("is read row by row by its history, and says whether it can go on", function()
    local Run = require "cq.run"
    assert.equal(false, Run.can_resume(out()))
    assert.error_matches(function() Run.read_history(out()) end, "there is no history: .*history.csv")
    cqlua { script(loop), "--out", out(), "--iterations", "3" }
    assert.equal(true, Run.can_resume(out()))
    local text = process.read(out() .. "/history.csv")
    process.write(out() .. "/history.csv", text .. "4,,a word,4\n5,0.")          -- and a line that is not whole yet
    assert.same({
      { iteration = 1, loss = 1, ["w.1"] = 1, ["w.2"] = 1 }, { iteration = 2, loss = 0.5, ["w.1"] = 2, ["w.2"] = 2 },
      { iteration = 3, loss = 1 / 3, ["w.1"] = 3, ["w.2"] = 3 }, { iteration = 4, ["w.1"] = "a word", ["w.2"] = 4 },
    }, Run.read_history(out()))
  end)

  it("goes to runs/<name of the script> without --out", function()
    local path = script(loop)
    assert.equal(0, cqlua({ path }, { before = "cd " .. folder .. " &&" }).code)
    has(process.read(folder .. "/runs/script/history.csv"), "iteration,loss")
  end)

  it("tells its progress in lines, and nothing with --quiet", function()
    has(cqlua { script(loop), "--out", out() }.err, "5/5  loss 0.2")
    assert.equal("", cqlua { script(loop), "--out", out() .. "2", "--quiet" }.err)
  end)

  it("draws a bar over itself on a terminal, and makes room for notes", function()
    local content = [[
      local progress = require("cq.run.progress").new(4)
      progress.columns = 60
      for i = 1, 4 do
        progress.drawn = 0
        progress:update(i, 1 / i)
        if i == 2 then require("cq.base.message").note "half" end
      end
      progress:close()]]
    local seen = cqlua({ script(content) }).err
    has(seen, "\r[============            ] 2/4  loss 0.5")
    has(seen, "\r\27[Khalf\n")
    assert.matches("\r%[========================%] 4/4  loss 0.25[^\r\n]*\27%[K\n$", seen)
    for line in seen:gmatch "[^\r\n]+" do assert(#line <= 60 + 3, line) end
  end)

  it("tells the time that a plan still takes by the work of its stages", function()
    local progress = require("cq.run.progress").new(30)
    progress.drawn = math.huge                    -- no line of its own
    local function tell(name, done, work, left)
      progress.part = { name = name, number = 1, of = 2, done = done, total = 15, work = work, left = left }
      progress.done = done - 1
      progress:update(done)
      progress.began = require("cq.base.engine").C.cq_clock() - 10 * progress.worked
      return progress:text()
    end
    assert.matches("left 2:20, plan 22:20$", tell("coarse", 1, 1, 14 + 15 * 8))
    assert.matches("left 18:40, plan 18:40$", tell("fine", 1, 8, 14 * 8))
  end)

  it("goes on with --resume as if it had never stopped", function()
    cqlua { script(loop), "--out", out() .. "whole", "--iterations", "6" }
    local first = cqlua { script(loop), "--out", out(), "--iterations", "6", "--fail", "4" }
    assert.equal(1, first.code)
    has(process.read(out() .. "/manifest.json"), '"status": "failed"')
    has(process.read(out() .. "/manifest.json"), "the end")
    local second = cqlua { script(loop), "--out", out(), "--iterations", "6", "--resume" }
    assert.equal(0, second.code, second.err)
    assert.equal("6\t6\t6\n", second.out)
    has(second.err, "going on after iteration 4")
    assert.equal(process.read(out() .. "whole/history.csv"), process.read(out() .. "/history.csv"))
  end)

  it("drops lines after the saved iteration, and a torn one, when it goes on", function()
    cqlua { script(loop), "--out", out(), "--iterations", "3" }
    local path = out() .. "/history.csv"
    process.write(path, process.read(path) .. "4,0.25,4,4\n5,0.2,5")
    local result = cqlua { script(loop), "--out", out(), "--iterations", "4", "--resume" }
    assert.equal(0, result.code, result.err)
    assert.equal("iteration,loss,w.1,w.2\n1,1,1,1\n2,0.5,2,2\n3,0.3333333333333333,3,3\n4,0.25,4,4\n",
      process.read(path))
  end)

  it("warns of a history that lacks iterations, and refuses one that no run has written", function()
    local path = out() .. "/history.csv"
    local function go_on_with(content)
      cqlua { script(loop), "--out", out(), "--iterations", "5" }
      process.write(path, content(process.read(path)))
      local result = cqlua { script(loop), "--out", out(), "--iterations", "6", "--resume" }
      local made = process.read(path)
      process.remove(out())
      return result, made
    end
    local result, made = go_on_with(function(all) return all:sub(1, all:find("\n3,", 1, true) + 5) end)
    has(result.err, "history.csv ends within a line; it lacks what came after iteration 2 up to 5, where the run goes on")
    assert.equal("iteration,loss,w.1,w.2\n1,1,1,1\n2,0.5,2,2\n6,0.16666666666666666,6,6\n", made)
    has(go_on_with(function() return "" end).err, "history.csv was lost or emptied; it lacks what came after iteration 0")
    local function refused(content, why)
      local it = go_on_with(content)
      assert.equal(1, it.code)
      has(it.err, "script.lua:2: " .. path .. " " .. why .. "; take it away or mend it, or start without --resume\n")
    end
    refused(function(all) return (all:gsub("\n2,", "\n2,7,")) end,
      "is damaged: line 3 has 5 cells, and its first line 4 columns")
    refused(function(all) return (all:gsub("\n2,", "\nx,")) end,
      'is damaged: line 3 has no number of an iteration but "x"')
    refused(function(all) return (all:gsub("\n2,0.5", "\n2,half")) end, 'is damaged: line 3 has the loss "half"')
    -- line ends of Windows
    local _, whole = go_on_with(function(all) return (all:gsub("\n", "\r\n")) end)
    has(whole, "iteration,loss,w.1,w.2\n1,1,1,1\n2,0.5,2,2\n")
    refused(function() return "epoch,loss\n1,2\n" end,
      "is no history of a run: its first line must begin with iteration,loss")
    assert.equal(0, cqlua { script(loop), "--out", out() }.code)
    os.remove(path)
    require("cq.host").make_folder(path)
    local again = cqlua { script(loop), "--out", out(), "--resume", "--iterations", "6" }
    has(again.err, path .. " cannot be read: Is a directory")
  end)

  it("has nothing to resume in an empty folder", function()
    local result = cqlua { script(loop), "--out", out(), "--resume" }
    assert.equal(1, result.code)
    has(result.err, "script.lua:2: there is nothing to resume in " .. out())
  end)

  it("stops when asked to, saves, and gives 130", function()
    local result = cqlua { script(loop), "--out", out(), "--interrupt", "2" }
    assert.equal(130, result.code)
    assert.equal("2\t2\t2\n", result.out)
    has(process.read(out() .. "/manifest.json"), '"status": "interrupted"')
    assert.equal(2, require("cq.tensor").load(out() .. "/optimizer.bin").iteration)
  end)

  it("stops at the next iteration after a signal, and at once after the second", function()
    local slow = loop:gsub("w = w %+ 1\n", function(line)
      return line .. "  if i == 2 then io.open(run:path 'ready', 'w'):close() end\n  os.execute 'sleep 0.1'\n"
    end)
    local path = script(slow)
    local result = cqlua({ path, "--out", out(), "--iterations", "1000" },
      { after = ("& pid=$!; %s; kill -TERM $pid; wait $pid"):format(wait_ready()) })
    assert.equal(130, result.code)
    has(result.err, "cqlua: stopping; once more to quit at once")
    has(process.read(out() .. "/manifest.json"), '"status": "interrupted"')

    -- a terminal that is closed; nohup lets the run go on
    local function hang_up(before, iterations)
      return cqlua({ path, "--out", out(), "--overwrite", "--iterations", iterations },
        { before = before, after = ("& pid=$!; %s; kill -HUP $pid; wait $pid"):format(wait_ready()) })
    end
    os.remove(out() .. "/ready")
    assert.equal(130, hang_up("", "1000").code)
    has(process.read(out() .. "/manifest.json"), '"status": "interrupted"')
    os.remove(out() .. "/ready")
    assert.equal(0, hang_up("nohup", "6").code)
    has(process.read(out() .. "/manifest.json"), '"status": "finished"')

    os.remove(out() .. "/ready")
    local deaf = process.write(folder .. "/deaf.lua", "io.open('" .. out()
      .. "/ready', 'w'):close()\nlocal x = 0\nwhile true do x = x + 1 end")
    result = cqlua({ deaf }, { after = ("& pid=$!; %s; kill -TERM $pid; sleep 0.2; kill -TERM $pid; wait $pid"):format(
      wait_ready()) })
    assert.equal(128 + 15, result.code)
  end)

  it("keeps another process out of its folder while it goes on, however it ends", function()
    local slow = loop:gsub("w = w %+ 1\n", function(line)
      return line .. "  if i == 2 then io.open(run:path 'ready', 'w'):close() end\n  os.execute 'sleep 0.1'\n"
    end)
    local second = process.write(folder .. "/second.lua", loop)
    local meanwhile = ("& pid=$!; %s; %s %s --out %s >%s/said 2>&1; kill -KILL $pid; wait $pid"):format(
      wait_ready(), require("cq.host").executable, second, out(), folder)
    cqlua({ script(slow), "--out", out(), "--iterations", "1000" }, { after = meanwhile })
    has(process.read(folder .. "/said"), "second.lua:2: another run is at work in the folder " .. out()
      .. "; choose another with --out")
    assert.is_nil(require("cq.host").kind(out() .. "-earlier-1"))
    assert.equal(0, cqlua({ second, "--out", out() }).code)
  end)

  it("clears away what a killed one was writing, and nothing of others", function()
    local mine = tonumber(io.popen("echo $PPID"):read "*a")
    local stale, kept = { "params.bin.999999999.part", "walk.mp4.999999999.part", "walk.mp4.log.999999999.part" },
      { "data.zip.999999999.part", ("params.bin.%d.part"):format(mine), "a.part", "part" }
    require("cq.host").make_folder(out())
    for _, name in ipairs(stale) do process.write(out() .. "/" .. name, "") end
    for _, name in ipairs(kept) do process.write(out() .. "/" .. name, "") end
    assert.equal(0, cqlua({ script(loop), "--out", out() }).code)
    for _, name in ipairs(stale) do assert.is_nil(require("cq.host").kind(out() .. "/" .. name), name) end
    for _, name in ipairs(kept) do assert.equal("file", require("cq.host").kind(out() .. "/" .. name), name) end
  end)

  it("makes its folder again when that is removed, with its whole history", function()
    cqlua { script(loop), "--out", out() .. "whole" }
    local removing = loop:gsub("  run:record", "  if i == 3 then os.execute('rm -r ' .. run.folder) end\n%0")
    local result = cqlua { script(removing), "--out", out(), "--quiet" }
    assert.equal(0, result.code, result.err)
    assert.equal("cqlua: warning: the folder " .. out() .. " was removed while its run went on; it was made again\n",
      result.err)
    for _, name in ipairs { "history.csv", "params.bin", "optimizer.bin" } do
      assert.equal(process.read(out() .. "whole/" .. name), process.read(out() .. "/" .. name))
    end
    has(process.read(out() .. "/manifest.json"), '"iterations_done": 5')
    assert.equal(removing, process.read(out() .. "/script.lua"))
    -- also where it is removed after the last record, and where only the history is
    local at_end = loop:gsub("run:finish", "os.execute('rm -r ' .. run.folder) %0")
    assert.equal(0, cqlua({ script(at_end), "--out", out() .. "2" }).code)
    local file = loop:gsub("  run:record", "  if i == 3 then os.remove(run:path 'history.csv') end\n%0")
    assert.equal(0, cqlua({ script(file), "--out", out() .. "3" }).code)
    for _, name in ipairs { "2", "3" } do
      assert.equal(process.read(out() .. "whole/history.csv"), process.read(out() .. name .. "/history.csv"))
    end
  end)

  it("says at once that it cannot save where its folder is removed for good", function()
    local removing = loop:gsub("  run:record",
      "  if i == 3 then os.execute('rm -r ' .. run.folder .. '; touch ' .. run.folder) end\n%0")
    local result = cqlua { script(removing), "--out", out() }
    assert.equal(1, result.code)
    has(result.err, ("script.lua:9: the folder %s cannot be written: Not a directory"):format(out()))
    assert.equal("", result.out)
  end)

  it("that goes on with a script that does not read what was saved is an error, and leaves it as it was", function()
    cqlua { script(loop), "--out", out(), "--iterations", "3" }
    local before = { process.read(out() .. "/history.csv"), process.read(out() .. "/optimizer.bin") }
    local deaf = loop:gsub("run.saved and [^\n]* or ", "")
    local anew = deaf:gsub("run.done %+ 1", "1")
    local without, logging, idle = anew:gsub("  run:record[^\n]*\n", ""), anew:gsub("  run:record", "  Run.log"),
      deaf:gsub("for i =.-\nend", "")
    for _, content in ipairs { deaf, anew, without, logging, (idle) } do
      local result = cqlua { script(content), "--out", out(), "--iterations", "6", "--resume" }
      assert.equal(1, result.code)
      assert.matches("script.lua:%d+: %S+: this run goes on after iteration 3, and the script has not read what was saved; begin with run.saved.params",
        result.err)
      assert.same(before, { process.read(out() .. "/history.csv"), process.read(out() .. "/optimizer.bin") })
    end
    local result = cqlua { script((loop:gsub("run.done %+ 1", "1"))), "--out", out(), "--iterations", "6", "--resume" }
    has(result.err, "run:record: iteration 1 is recorded already, this run goes on after iteration 3; count from run.done + 1")
    assert.equal(0, cqlua({ script(loop), "--out", out(), "--iterations", "6", "--resume" }).code)
  end)

  it("cannot go on from a file that no run has saved", function()
    local T = require "cq.tensor"
    require("cq.host").make_folder(out())
    for problem, saved in pairs {
      ["iteration must be a whole number at least 0, got nil"] = { params = {} },
      ['iteration must be a whole number at least 0, got "3"'] = { iteration = "3", params = {} },
      ["iteration must be a whole number at least 0, got -1"] = { iteration = -1, params = {} },
      ["params must be a table, got nil"] = { iteration = 3 },
    } do
      T.save(out() .. "/optimizer.bin", saved)
      local result = cqlua { script(loop), "--out", out(), "--resume" }
      assert.equal(1, result.code)
      has(result.err, ("script.lua:2: %s/optimizer.bin is not what a run has saved: %s; start without --resume"):format(
        out(), problem))
    end
    -- a file cut short, and iterations that were kept
    process.write(out() .. "/optimizer.bin", (process.read(out() .. "/optimizer.bin"):sub(1, 40)))
    require("cq.run.checkpoint").write(out(), { iteration = 2, params = {} })
    has(cqlua({ script(loop), "--out", out(), "--resume" }).err, ("is cut short: it ends after 40 bytes; start without "
      .. "--resume, or go on from an iteration that was kept: cqlua resume %s --at 2 --as FOLDER"):format(out()))
  end)

  it("tells how a rollout ended that Ctrl-C stopped, where no run has begun", function()
    local content = [[
local scene = require "tests.scene"
local world = scene.world(scene.robot())
world:rollout { steps = 9, on_step = function() require("cq.base.engine").C.cq_interrupt(1) end }
]]
    local result = cqlua { script(content) }
    assert.same({ 130, "interrupted at control step 0\n" }, { result.code, result.err })
  end)

  it("is over after finish, and says so", function()
    local late = "local Run, T = require 'cq.run', require 'cq.tensor'\nlocal run = Run.open { iterations = 1 }\nrun:finish()\n"
    for call, name in pairs { ["record { loss = 1 }"] = "record", ["checkpoint(1, {})"] = "checkpoint",
      ["save(1, {})"] = "save", ["finish()"] = "finish" } do
      local result = cqlua { script(late .. "run:" .. call), "--out", out() }
      assert.equal(1, result.code)
      has(result.err, ("script.lua:4: run:%s: this run is finished"):format(name))
    end
  end)

  it("refuses to save a bare tensor, before it writes anything", function()
    local start = "local Run, T = require 'cq.run', require 'cq.tensor'\nlocal run = Run.open { iterations = 2 }\n"
      .. "run:record { loss = 1 }\nrun:save(1, { w = T.ones { 1 } })\nrun:record { loss = 0.5 }\n"
    for _, name in ipairs { "save", "checkpoint" } do
      local result = cqlua { script(start .. ("run:%s(2, T.ones { 2 })"):format(name)), "--out", out() }
      assert.equal(1, result.code)
      has(result.err, ("script.lua:6: run:%s: params must be a table such as { w = tensor }, got a cq.Tensor"):format(name))
      assert.equal(1, require("cq.tensor").load(out() .. "/optimizer.bin").iteration)
    end
  end)

  it("counts and weighs by numbers", function()
    for fields, problem in pairs {
      ["iteration = 'one'"] = 'iteration must be a number, got "one"',
      ["loss = true"] = "loss must be a number, got true",
    } do
      local result = cqlua { script(("require('cq.run').open { iterations = 2 }:record { %s }"):format(fields)),
        "--out", out() }
      assert.equal(1, result.code)
      has(result.err, "script.lua:1: run:record: " .. problem)
    end
  end)

  it("does not say --resume where that does nothing", function()
    local content = loop:gsub("notes =", "resume = false, notes =")
    local result = cqlua { script(content), "--out", out(), "--interrupt", "2" }
    assert.equal(130, result.code)
    has(result.err, "interrupted after iteration 2; what was computed is kept in " .. out() .. "\n")
  end)

  it("prints what it logs after Ctrl-C, and opens no folder for it", function()
    local content = [[require("cq.base.engine").C.cq_interrupt(1) require("cq").log { error = 3 }]]
    local result = cqlua { script(content), "--out", out() }
    assert.same({ 130, "error 3\n" }, { result.code, result.out })
    assert.is_nil(process.read(out() .. "/manifest.json"))
  end)

  it("moves the folder of an earlier run away with all that is in it", function()
    cqlua { script(loop), "--out", out() }
    process.write(out() .. "/film.mp4", "a film of yesterday")
    assert.equal(0, os.execute(("touch -d yesterday %s/film.mp4"):format(out())))
    local before = process.read(out() .. "/history.csv")
    local result = cqlua { script(loop), "--out", out() .. "/", "--iterations", "2" }
    has(result.err, "is now in " .. out() .. "-earlier-1\n")
    assert.equal(before, process.read(out() .. "-earlier-1/history.csv"))
    assert.equal("a film of yesterday", process.read(out() .. "-earlier-1/film.mp4"))
    assert.is_nil(process.read(out() .. "/film.mp4"))
    assert.equal("iteration,loss,w.1,w.2\n1,1,1,1\n2,0.5,2,2\n", process.read(out() .. "/history.csv"))
    -- an interrupted one as well
    assert.equal(130, cqlua({ script(loop), "--out", out(), "--interrupt", "3" }).code)
    cqlua { script(loop), "--out", out() }
    has(process.read(out() .. "-earlier-3/manifest.json"), '"status": "interrupted"')
    -- and what goes on stays
    cqlua { script(loop), "--out", out(), "--resume", "--iterations", "6" }
    assert.is_nil(require("cq.host").kind(out() .. "-earlier-4"))
  end)

  it("keeps when it began, and adds up the time of all sessions, of one that was killed that of its iterations", function()
    local json = require "cq.base.json"
    local slow = loop:gsub("loss = 1 / i", "loss = 1 / i, seconds = 10")
    local path = out() .. "/manifest.json"
    local function manifest() return json.decode(process.read(path)) end
    cqlua { script(slow), "--out", out(), "--iterations", "2" }
    local first = manifest()
    assert.is_true(first.seconds >= 0 and first.seconds < 10)
    first.started, first.seconds = "2026-01-02T03:04:05Z", 100
    process.write(path, json.encode(first))
    cqlua { script(slow), "--out", out(), "--iterations", "5", "--resume" }
    local second = manifest()
    assert.equal(first.started, second.started)
    assert.is_true(second.seconds >= 100 and second.seconds < 110, second.seconds)
    has(cqlua({ "compare", out(), out() }).out, "\ntime                  1:4")
    local function time_of()
      return json.decode(cqlua({ "compare", out(), out(), "--json" }).out:match "[^\n]+").time
    end
    assert.is_true(time_of() >= 100 and time_of() < 110)
    second.finished, second.status, second.seconds = nil, nil, 100            -- as if it had been killed
    process.write(path, json.encode(second))
    assert.is_nil(time_of())
    has(cqlua({ "compare", out(), out() }).out, "\ntime                  -")
    cqlua { script(slow), "--out", out(), "--iterations", "6", "--resume" }
    assert.is_true(manifest().seconds >= 130 and manifest().seconds < 140, manifest().seconds)
    -- of an earlier program
    second.started, second.finished, second.seconds = "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z", nil
    process.write(path, json.encode(second))
    cqlua { script(slow), "--out", out(), "--iterations", "7", "--resume" }
    assert.is_true(manifest().seconds >= 60 and manifest().seconds < 70, manifest().seconds)
  end)

  it("tells what was changed in the script of a run that goes on, and keeps what it was", function()
    cqlua { script(loop), "--out", out(), "--iterations", "3" }
    local same = cqlua { script(loop), "--out", out(), "--iterations", "4", "--resume" }
    assert.is_nil(same.err:find("was changed", 1, true), same.err)
    local other = loop:gsub("loss = 1 / i", "loss = 2 / i")
    local result = cqlua { script(other), "--out", out(), "--iterations", "5", "--resume" }
    assert.equal(0, result.code, result.err)
    has(result.err, "the script was changed since iteration 4 of the run in " .. out()
      .. ': line 8 was "run:record { iteration = i, loss = 1 / i, w = w }" and is "run:record { iteration = i, loss = 2')
    assert.equal(loop, process.read(out() .. "/script-4.lua"))
    assert.equal(other, process.read(out() .. "/script.lua"))
  end)

  it("replaces an earlier run with --overwrite, all of it", function()
    cqlua { script(loop), "--out", out() }
    local other = script "local run = require('cq.run').open { iterations = 1 }\nrun:record { loss = 1 }"
    local result = cqlua { "--out", out(), "--overwrite", other }
    assert.equal(0, result.code, result.err)
    assert.equal("iteration,loss\n1,1\n", process.read(out() .. "/history.csv"))
    -- nothing of the earlier one is left that --resume could take for the new one's
    assert.is_nil(process.read(out() .. "/optimizer.bin"))
    assert.is_nil(require("cq.host").kind(out() .. "-earlier-1"))
  end)

  it("keeps what its script wrote into the folder before it, and runs within", function()
    local text = [[
      local Run, option = require "cq.run", require "cq.option"
      local folder = option("out", "")
      require("cq.host").make_folder(folder .. "/first")
      local file = io.open(folder .. "/start.png", "w")
      file:write(option("word", "old"))
      file:close()
      for _, place in ipairs { folder .. "/first", folder } do
        Run.open { folder = place, iterations = 1 }:record { loss = option("loss", 1) }
      end
    ]]
    cqlua { script(text), "--out", out() }
    local again = cqlua { script(text), "--out", out(), "--word", "new", "--loss", "2" }
    assert.equal(0, again.code, again.err)
    assert.equal("new", process.read(out() .. "/start.png"))
    assert.equal("iteration,loss\n1,2\n", process.read(out() .. "/first/history.csv"))
    assert.equal("iteration,loss\n1,1\n", process.read(out() .. "-earlier-1/first-earlier-1/history.csv"))
    assert.equal("iteration,loss\n1,1\n", process.read(out() .. "-earlier-1/history.csv"))
  end)

  it("does not move the folder that the program was started in, or that has the script", function()
    local path = script(loop)
    cqlua { path, "--out", folder }
    local before = process.read(folder .. "/history.csv")
    local result = cqlua { path, "--out", folder, "--iterations", "2" }
    assert.equal(1, result.code)
    has(result.err, "script.lua:2: the folder " .. folder .. " has an earlier run and cannot be moved to " .. folder
      .. "-earlier-1: the script lies in it; choose another folder with --out, or give --overwrite to lose the earlier run")
    assert.equal(before, process.read(folder .. "/history.csv"))
    result = cqlua({ path, "--out", "." }, { before = "cd " .. folder .. " &&" })
    has(result.err, "the program was started in it")
    assert.equal(0, cqlua({ path, "--out", ".", "--overwrite" }, { before = "cd " .. folder .. " &&" }).code)
  end)
end)

describe("a folder", function()
  it("that cannot be made or written is an error before the run", function()
    process.write(folder .. "/file", "")
    for _, place in ipairs { folder .. "/file", folder .. "/file/below", "/proc/cqlua" } do
      local result = cqlua { script(loop), "--out", place }
      assert.equal(1, result.code)
      has(result.err, "script.lua:2: the folder " .. place .. " cannot be written: ")
      has(result.err, "choose another with --out")
      assert.equal("", result.out)
    end
    -- --out does not change one that the script names
    local named = loop:gsub("Run.open {", ("%%0 folder = %q,"):format(folder .. "/file"))
    has(cqlua({ script(named) }).err, "cannot be written: Not a directory; choose another\n")
  end)

  it("that is full is told, and what was written is kept", function()
    local many = loop:gsub("  run:save%b()\n", "")
    local result = cqlua({ script(many), "--out", out(), "--iterations", "2000" }, { before = "ulimit -f 8;" })
    assert.equal(1, result.code)
    has(result.err, "history.csv cannot be written: File too large; what was written before is kept")
    local history = process.read(out() .. "/history.csv")
    has(history, "\n100,0.01,100,100\n")
    assert(#history <= 8 * 1024, #history)
  end)

  it("that is full ends the run all the same: what can be written is, and the rest is told", function()
    local content = loop:gsub('if i == option%("fail", 0%) then error "the end" end', [[
      if i == 3 then
        -- no file can take the place of a folder
        for _, name in ipairs { "manifest.json", "params.bin" } do
          os.remove(run:path(name))
          require("cq.host").make_folder(run:path(name))
        end
      end]])
    local result = cqlua { script(content), "--out", out() }
    assert.equal(1, result.code)
    has(result.err, "params.bin cannot be replaced: Is a directory")
    has(result.err, "kept in " .. out() .. ": the run up to iteration 4; the same command with --resume goes on from there")
  end)

  it("says of no iteration that it was kept", function()
    local result = cqlua { script([[
      package.path = "./?.lua;" .. package.path
      local cq, scene = require "cq", require "tests.scene"
      local run = cq.Experiment { world = scene.world(scene.robot()), steps = 2, controller = cq.Controller.sines {},
        optimizer = cq.Optimizer.adam { rate = 1e-3 }, objective = function() error "the end" end }
      run:optimize { iterations = 2 }
    ]]), "--out", out() }
    assert.equal(1, result.code)
    has(result.err, "the end")
    assert.is_nil(result.err:find("kept in", 1, true), result.err)
  end)
end)

describe("cq.log", function()
  local log = "local Run, T = require 'cq.run', require 'cq.tensor'\n"

  it("prints its values, loss first, and writes them with --out", function()
    local content = log .. "for i = 1, 2 do Run.log { epoch = i, loss = i / 4, young = T.tensor(i), tag = 'a,b', flags = T.tensor { 1, 2 } } end"
    local result = cqlua { script(content), "--out", out() }
    assert.equal(0, result.code, result.err)
    assert.equal("epoch 1  loss 0.25  flags.1 1  flags.2 2  tag a,b  young 1\nepoch 2  loss 0.5  flags.1 1  flags.2 2  tag a,b  young 2\n", result.out)
    assert.equal("iteration,loss,epoch,flags.1,flags.2,tag,young\n1,0.25,1,1,2,a b,1\n2,0.5,2,1,2,a b,2\n",
      process.read(out() .. "/history.csv"))
    has(process.read(out() .. "/manifest.json"), '"status": "finished"')
  end)

  it("widens the history when a new column comes", function()
    cqlua { script(log .. "Run.log { loss = 1 }\nRun.log { loss = 2, extra = 7 }"), "--out", out() }
    assert.equal("iteration,loss,extra\n1,1,\n2,2,7\n", process.read(out() .. "/history.csv"))
  end)

  it("sums up a large tensor", function()
    local result = cqlua { script(log .. "Run.log { loss = 1, w = T.arange(1, 100) }") }
    assert.equal("loss 1  w.max 100  w.mean 50.5  w.min 1\n", result.out)
  end)

  it("refuses what cannot be a cell", function()
    local result = cqlua { script(log .. "Run.log { loss = {} }") }
    assert.equal(1, result.code)
    has(result.err, "script.lua:2: cq.log: loss must be a number, a string, true or false, or a tensor, got an empty table")
  end)

  it("leaves a run that is finished where it is", function()
    local result = cqlua { script(log
      .. "local run = Run.open {}\nrun:record { loss = 2 }\nrun:finish()\nRun.log { loss = 1 }"), "--out", out() }
    assert.same({ code = 0, out = "loss 1\n", err = "" }, result)
    assert.equal("iteration,loss\n1,2\n", process.read(out() .. "/history.csv"))
    assert.is_nil(require("cq.host").kind(out() .. "-earlier-1"))
  end)

  it("writes nothing without --out", function()
    assert.equal(0, cqlua({ script(log .. "Run.log { loss = 1 }") }, { before = "cd " .. folder .. " &&" }).code)
    assert.is_nil(require("cq.host").kind(folder .. "/runs"))
  end)
end)

describe("json", function()
  local json = require "cq.base.json"

  it("writes values that read back", function()
    assert.equal('{"b": 1, "a": [1, 0.1, "x\\n\\"", true], "c": {"d": null}}',
      json.encode({ a = { 1, 0.1, 'x\n"', true }, b = 1, c = { d = 0 / 0 } }, { "b" }))
    assert.equal(1 / 3, tonumber(json.encode(1 / 3)))
  end)
end)
