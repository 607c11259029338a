-- papers: what the rows of tests/papers/results.csv name, and the papers' experiments in full.
local host = require "cq.host"
local process = require "tests.process"
local results = require "tests.pages.results"

describe("tests/papers/results.csv", function()
  local rows = results.read()

  it("names scripts that exist", function()
    for _, row in ipairs(rows) do
      local script = row.command:match "^cqlua (examples/[%w_]+%.lua)"
        or row.command:match "^cqlua study run (examples/[%w_/]+%.lua)"
        or row.command:match "^cqlua study run (tests/papers/[%w_]+%.lua)"
        or row.command:match "^cqlua (tests/papers/[%w_]+%.lua)"
        or row.command:match "^python3 (tests/python/[%w_]+%.py)"
      assert(script and host.kind(script) == "file", row.experiment .. ": " .. row.command)
    end
  end)

  it("has the median, best and worst of several runs, and a figure in every row", function()
    for _, row in ipairs(rows) do
      local several = tonumber(row.runs) > 1
      assert(row.ours ~= "" or (several and row.best ~= "" and row.worst ~= ""), row.experiment .. ": " .. row.quantity)
      assert((row.best == "") == (row.worst == ""), row.experiment .. ": best and worst stand together")
      assert(several or row.median == "", row.experiment .. ": a median of one run")
      for _, name in ipairs { "median", "best", "worst" } do
        assert(row[name] == "" or tonumber(row[name]), ("%s: %s %s"):format(row.experiment, name, row[name]))
      end
    end
  end)

  it("names artefacts of the zoo, or none", function()
    local known = { none = true }
    for _, entry in ipairs(require("cq.zoo").entries()) do known[entry.name] = true end
    for _, row in ipairs(rows) do assert(known[row.artefact], row.experiment .. ": " .. row.artefact) end
  end)

  it("has the conditions of every row that compares with a paper, and what is kept of every artefact", function()
    local theory = { sloshing = true, dam_break = true, floating_block = true, locking = true }
    local kept = {}
    for _, row in ipairs(rows) do
      local here, there = results.conditions(row)
      local compares = row.paper ~= "" and not theory[row.experiment]
      assert((here ~= "") == compares and (there ~= "") == compares, row.experiment .. ": " .. row.quantity)
      local measured = row.kept_dt ~= ""
      assert((row.kept_grid ~= "") == measured and (row.kept_5pct ~= "") == measured, row.experiment)
      local measures = row.command:find("tests/papers/", 1, true) or row.command:find("; cqlua robust ", 1, true)
      assert(not measured or row.artefact ~= "none" or measures,
        row.experiment .. ": kept of no artefact, by a command that does not measure it")
      kept[row.artefact] = kept[row.artefact] or measured
    end
    for _, entry in ipairs(require("cq.zoo").entries()) do
      assert(kept[entry.name], entry.name .. ": what it keeps was not measured")
    end
  end)

  it("has minutes of all runs, or of each of several", function()
    for _, row in ipairs(rows) do
      local each = row.minutes:match "^[%d.]+ each$" ~= nil
      assert(each and tonumber(row.runs) > 1 or tonumber(row.minutes), row.experiment .. ": " .. row.minutes)
    end
  end)
end)

describe("the papers' experiments in full", function()
  local full = require "tests.papers.full"
  local function run_of(command)
    for _, run in ipairs(full.runs) do
      if run.command == command then return run end
    end
    error("no run has the command " .. command)
  end

  it("are commands whose results are kept", function()
    local kept = {}
    for _, row in ipairs(results.read()) do kept[#kept + 1] = row.command end
    local all = table.concat(kept, "\n"):gsub("%-%-seed 1 to 5", "--seed 1\ncqlua examples/cable_finger.lua --seed 2\n"
      .. "cqlua examples/cable_finger.lua --seed 3\ncqlua examples/cable_finger.lua --seed 4\n"
      .. "cqlua examples/cable_finger.lua --seed 5")
    for _, run in ipairs(full.runs) do
      assert(("\n" .. all):find("\ncqlua " .. run.command, 1, true), run.command .. " is not in results.csv")
    end
  end)

  it("are held to what they are to reach", function()
    local finger = run_of "examples/cable_finger.lua --seed 1"
    local reached, lines = full.judge(finger, "E 20.004, nu 0.2501, density 2.3300: within 0.05 % of the truth\n")
    assert.same({ true, "  reached error of E, nu and density [%]: 0.05, at most 0.5" }, { reached, lines })
    assert.equal(false, (full.judge(finger, "E 21, nu 0.25, density 2.33: within 5.00 % of the truth\n")))
    reached, lines = full.judge(finger, "nothing\n")
    assert.same({ false, "  FAILED  error of E, nu and density [%]: it does not say, at most 0.5" }, { reached, lines })
  end)

  it("compare an arm that learns its stiffness with the better of those that rest at all", function()
    local arm = run_of "examples/arm3d.lua --full"
    local function said(first, second, own)
      local function line(name, rest)
        return ("%-10s %s, 0.0100 from the goal, speed 0.0310\n"):format(name, rest or "never at rest at the goal; effort 1")
      end
      return line("E 10", first) .. line("E 13.3", second) .. line("co-design", own)
    end
    local rest = "at rest at the goal from evaluation %d on; effort %g"
    local reached, lines = full.judge(arm, said(rest:format(129, 2), rest:format(100, 4), rest:format(75, 1)))
    assert(reached and lines:find(": 0.75, at most 0.99\n.*: 0.5, at most 0.75$"), lines)
    assert(full.judge(arm, said(nil, nil, rest:format(75, 1))))
    assert(not full.judge(arm, said(rest:format(70, 2), nil, rest:format(75, 1))))
    assert(not full.judge(arm, said(rest:format(129, 2), nil, nil)))
  end)

  it("compare what a biped learns of its body with one that learns nothing of it", function()
    local biped = run_of "study run examples/studies/codesign.lua --seed 0 --fine"
    local function said(young)
      local out = ""
      for _, row in ipairs { { "false", "false", "false", 2 }, { "false", "false", "true", young },
        { "false", "true", "false", 3 }, { "true", "false", "false", 3 }, { "true", "true", "true", 5 } } do
        out = out .. ("density %s  poisson %s  young %s (10): at 9, 90 %% from 1 to 2; lengths %g, 90 %% from 1 to 7\n"):format(
          row[1], row[2], row[3], row[4])
      end
      return out
    end
    local reached, lines = full.judge(biped, said(2.5))
    assert(reached and lines:find(": 1.25, at least 1\n.*: 2.5, at least 1.3$"), lines)
    assert(not full.judge(biped, said(1.9)))
    assert(not full.judge(biped, "density false  poisson false  young false (10): lengths 2, 90 % from 1 to 7\n"))
  end)

  it("are run once with the same options, and again with others", function()
    local kept, folder = full.folder, process.folder()
    full.folder = folder .. "/papers"
    assert(host.make_folder(full.folder))
    local script = process.write(folder .. "/walk.lua", "local cq = require 'cq'\nio.open(" .. ("%q"):format(folder
      .. "/made") .. ", 'a'):write 'x'\nprint(cq.option('rate', 2), cq.option('threads', 0))\n")
    local said = {}
    for k, with in ipairs { "", "--rate 1", "--rate -1 --threads 1", "", "--rate 1", " --rate  1 " } do
      said[k] = full.said_by({ command = script, reach = {} }, with)
    end
    local made = process.read(folder .. "/made")
    full.folder = kept
    process.remove(folder)
    assert.same({ "2\t0\n", "1\t0\n", "-1\t1\n", "2\t0\n", "1\t0\n", "1\t0\n" }, said)
    assert.equal(3, #made)                             -- a letter for each time that the script ran
  end)
end)
