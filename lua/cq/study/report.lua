-- report: results of a study as text: status, one trial, a table.
local csv = require "cq.base.csv"
local json = require "cq.base.json"
local host = require "cq.host"
local is = require "cq.base.schema"
local importance = require "cq.study.importance"
local message = require "cq.base.message"
local option = require "cq.option"
local process = require "cq.study.process"
local progress = require "cq.study.progress"
local read_file = require "cq.base.read_file"
local stores = require "cq.study.store"
local summary = require "cq.study.summary"
local text = require "cq.base.text"
local tables = require "cq.base.tables"
local duration = require("cq.run.progress").duration

local report = {}

-- ---- status --------------------------------------------------------------------------------------------------------

-- A list of lines, one for each process that runs trials of the study: its name, and the time since its last heartbeat.
local function workers(store)
  local out, now = {}, process.now()
  for _, row in ipairs(store.base:rows [[SELECT worker, count(*) AS trials, max(beat) AS beat FROM trial
    WHERE state = 'running' GROUP BY worker]]) do
    local where, pid = row.worker:match "^([^/]*)/[^/]*/(%d+)/"
    out[#out + 1] = ("process %s on %s: %s, last heard of %s ago%s"):format(pid or "?", where or "?",
      text.count(row.trials, "trial"),
      duration(now - row.beat), process.is_gone(row.worker) and ", it is gone; run takes up what it had" or "")
  end
  return out
end

-- A list of the rows of finished trials on the Pareto front: no other trial dominates them over all objectives.
local function front(study, store)
  local tpe, list = require "cq.study.tpe", {}
  for _, row in ipairs(store:trials "state = 'done'") do
    local values = {}
    for m, objective in ipairs(study.objectives) do values[m] = objective.sign * row.result[objective.name] end
    list[#list + 1] = { number = row.number, values = values, row = row }
  end
  local out, rank = {}, tpe.fronts(list)
  for _, entry in ipairs(list) do
    if rank[entry] == 1 then out[#out + 1] = entry.row end
  end
  return out
end

-- A sentence with the share of the variance that each parameter explains alone, over the means of points; nil if there
-- are too few points.
local function importances(study, store)
  local points, words = study:by_point(store:trials "state = 'done'"), {}
  for _, point in ipairs(points) do
    point.value = 0
    for _, row in ipairs(point.rows) do point.value = point.value + row.value / #point.rows end
  end
  for d, share in ipairs(importance.of(study.space, points) or {}) do
    words[d] = ("%s %.2f"):format(study.space[d].name, share)
  end
  return #words > 0 and "share of the variance that each explains alone: " .. table.concat(words, ", ") or nil
end

-- Prints the best trial with the share of each parameter; with several objectives the Pareto front.
local function print_best(study, store)
  if #study.objectives == 1 then
    local line, best = progress.best(study, store)
    if not line then return end
    print(line)
    print("  " .. progress.point(study, store:trial(best.number).point))
    for _, words in ipairs(summary(study, store)) do print(words) end
    local shares = importances(study, store)
    if shares then print(shares) end
    return
  end
  local rows = front(study, store)
  print(("%s that no other is better than in everything:"):format(text.count(#rows, "trial")))
  for k, row in ipairs(rows) do
    if k > 12 then print(("  and %d more"):format(#rows - 12)) break end
    local words = {}
    for m, objective in ipairs(study.objectives) do words[m] = ("%s %.6g"):format(objective.name,
      row.result[objective.name]) end
    print(("  %6d  %s  %s"):format(row.number, table.concat(words, "  "), progress.point(study, row.point)))
  end
end

---Prints the progress of a study: counts, the best, processes at work and failed trials; or, as_json, one JSON object.
---@param session cq.Session
---@param as_json? boolean
function report.status(session, as_json)
  local store, study = session:look()
  local counts = store:counts()
  if as_json then
    local best = store:best(study.repeats)
    local object = { study = study.name, trials = study:count(), best = best and best.value * study.objectives[1].sign,
      point = best and best.k }
    for state, count in pairs(counts) do object[state] = count end
    print(json.encode(object, { "study", "trials" }))
    return
  end
  print(("%s in %s"):format(tostring(study), session.folder))
  local more = session.study.points - study.points
  if more > 0 and #session.study:changes(session.stored) == 0 then
    print(("the script has %s more now, which cqlua study run with these options begins"):format(text.count(more,
      "point")))
  end
  print(progress.counts(counts, study:count()) .. (counts.waiting > 0 and ("  waiting %d"):format(counts.waiting)
    or ""))
  print_best(study, store)
  for _, line in ipairs(workers(store)) do print(line) end
  for _, row in ipairs(store:trials [[number IN (SELECT number FROM trial WHERE state IN ('failed', 'lost')
    ORDER BY number LIMIT 5)]]) do
    print(("trial %d %s: %s"):format(row.number, row.state, row.problem))
  end
end

-- ---- one trial -----------------------------------------------------------------------------------------------------

-- The path of a trial's folder.
local function folder_of(session, number) return ("%s/trials/%06d"):format(session.folder, number) end

-- What a trial was run with, for Session:changed: the script and the options of its trial.json, or else those of the
-- stored study.
local function origin_of(session, number)
  local bytes = read_file(folder_of(session, number) .. "/trial.json")
  local fine, manifest = pcall(json.decode, bytes or "")
  fine = fine and type(manifest) == "table" and type(manifest.options) == "table"
  return tables.merged(session.stored, fine and { script = manifest.script_hash, options = manifest.options,
    all_options = manifest.all_options == true })
end

---Prints all that is known of a trial: state, point, results, curves, time, and the command that runs it alone.
---@param session cq.Session
function report.show(session, number)
  local store, study = session:look()
  local row = store:trial(number)
  local k, replicate = study:place(number)
  print(("trial %d: %s%s"):format(number, row.state, row.problem and ", " .. row.problem or ""))
  print(("point %d, replicate %d, seed %d%s"):format(k, replicate, study:seed_of(row.point or {}, replicate),
    row.attempts > 1 and (", attempt %d"):format(row.attempts) or ""))
  if row.point then print("  " .. progress.point(study, row.point)) end
  local names = tables.names(row.result)
  for _, name in ipairs(names) do print(("  %s = %s"):format(name, text.number(row.result[name]))) end
  for name, curve in pairs(store:curves(number)) do
    print(("  %s: %s, at step %g %.6g"):format(name, text.count(#curve.x, "step"), curve.x[#curve.x],
      curve.y[#curve.y]))
  end
  if row.ended and row.began then print("took " .. duration(row.ended - row.began)) end
  if host.kind(folder_of(session, number)) then print("folder " .. folder_of(session, number)) end
  if row.point or not study:adapts() then
    print("alone: " .. session:command("rerun", tostring(number), origin_of(session, number).options))
  end
end

-- Raises an error if the script lacks the point of a trial: its list of values is shorter than that of the study as it
-- was begun.
local function require_point(session, study, number, point)
  for d, entry in ipairs(session.study.space) do
    local x = point[entry.name]
    if not entry.parameter:holds(x) then
      is.fail("the script has no such point: trial %d has %s = %s, which is none of the script's values now", number,
        entry.name, study.space[d].parameter:label(x))
    end
  end
end

-- Warns if script, modules or options are not those of a trial. may: what may come of that.
local function tell_changed(session, number, may)
  local changed = session:changed(origin_of(session, number))
  if changed then
    message.warn("%s since the study %s began: trial %d may %s", changed, session.study.name, number, may)
  end
end

---Runs a trial again, alone and outside of the study, and prints its result; also before the study has begun. Point and
---seed are those of the stored study. Errors: no such trial; one whose point the sampler has yet to choose, or
---that the script lacks; a script with other parameters or objectives.
---@param session cq.Session
---@return integer? code      1: the trial failed
function report.rerun(session, number)
  local study, store, row = session.study, nil, { attempts = 0 }
  if session:has_begun() then
    store, study = session:look()
    session:require_trials()
    row = store:trial(number)
  end
  if number > study:count() then is.fail("the study has no trial %d; it has %d", number, study:count()) end
  local k, replicate = study:place(number)
  if not row.point and study:adapts() then is.fail("trial %d has no point yet: the sampler draws it when the trial "
    .. "begins", number) end
  local point = row.point or study:draw(k)
  require_point(session, study, number, point)
  local job = {
    number = number, attempts = row.attempts, point = point, replicate = replicate, script = session:hash(),
    seed = study:seed_of(point, replicate), folder = ("%s/rerun/%06d"):format(session.folder, number),
    options = option.of_results(), command = session:rerun_command(number, option.of_results()),
    began = process.now(),
  }
  if store then
    tell_changed(session, number, "give other numbers than its row")
    store:close()
  end
  local state, result = require("cq.study.trial").alone(session.study, job)
  if state == "failed" or state == "refused" then
    print(("trial %d failed: %s"):format(number, result))
    return 1
  end
  print(("trial %d: %s%s; its folder is %s"):format(number, state, result and " " .. json.encode(result) or "",
    job.folder))
end

---Renders a finished trial as trial.mp4 in its folder, without training: its function runs, in which run:optimize
---loads the saved result. Prints the path, and warns if the script or its options were changed. Errors: a trial that is
---not done, or that has optimized no experiment, or whose point the script lacks; a script with other parameters or
---objectives.
---@param session cq.Session
---@param number integer
function report.render(session, number)
  local store, study = session:look()
  session:require_trials()
  local row, folder = store:trial(number), folder_of(session, number)
  if row.state ~= "done" then is.fail("trial %d is %s: it has no result to draw", number, row.state) end
  if not host.kind(folder) then is.fail("trial %d cannot be drawn: its folder %s is gone", number, folder) end
  require_point(session, study, number, row.point)
  tell_changed(session, number, "move otherwise than it did")
  local _, replicate = study:place(number)
  local job = { number = number, point = row.point, replicate = replicate, folder = folder,
    seed = study:seed_of(row.point, replicate) }
  local run = require("cq.study.trial").replay(session.study, job)
  if not run then is.fail("trial %d has optimised no experiment: there is nothing to draw", number) end
  run:render "trial.mp4"
  print(folder .. "/trial.mp4")
end

-- ---- tables --------------------------------------------------------------------------------------------------------

-- A value as the text of a cell of a CSV file; "" for nil.
local function cell(value)
  if value == nil then return "" end
  return csv.cell(((type(value) == "number" and text.exact(value) or tostring(value)):gsub("\n", " ")))
end

-- Prints the first `count` cells of a list as a line of a CSV file; changes the list.
local function print_line(cells, count)
  for k = 1, count do cells[k] = cell(cells[k]) end
  print(table.concat(cells, ",", 1, count))
end

-- Prints all reported values of all trials as CSV.
local function export_curves(store)
  print "trial,name,step,value"
  for _, row in ipairs(store.base:rows "SELECT trial, name, step, value FROM report ORDER BY trial, name, step") do
    print_line({ row.trial, row.name, row.step, row.value }, 4)
  end
end

---Prints CSV with a header: a line for each trial, or, with curves, for each reported value.
---@param session cq.Session
---@param curves? boolean
---@param states? string[]      of trials; all unless given
function report.export(session, curves, states)
  local store, study = session:look()
  if curves then return export_curves(store) end
  local wanted, rows = {}, {}
  for _, state in ipairs(states or {}) do wanted[state] = true end
  for _, row in ipairs(store:trials()) do
    if not states or wanted[row.state] then rows[#rows + 1] = row end
  end
  local results = stores.result_names(rows, study.objectives)
  -- a parameter called seed stands in the place of the study's own
  local has_seed = false
  for _, entry in ipairs(study.space) do has_seed = has_seed or entry.name == "seed" end
  local head = { "trial", "point", "replicate", "state" }
  if not has_seed then table.insert(head, 4, "seed") end
  for _, entry in ipairs(study.space) do head[#head + 1] = entry.name end
  for _, name in ipairs(results) do head[#head + 1] = name end
  for _, name in ipairs { "step", "attempts", "seconds", "problem" } do head[#head + 1] = name end
  local count = #head
  print_line(head, count)
  for _, row in ipairs(rows) do
    local k, replicate = study:place(row.number)
    local cells, at = { row.number, k, replicate, row.state }, 4
    if not has_seed then
      table.insert(cells, 4, study.seed + replicate - 1)
      at = 5
    end
    for _, entry in ipairs(study.space) do
      local x = row.point and row.point[entry.name]
      at = at + 1
      cells[at] = x and entry.parameter:exact(x)
    end
    for _, name in ipairs(results) do
      at = at + 1
      cells[at] = row.result and row.result[name]
    end
    cells[at + 1], cells[at + 2], cells[at + 3], cells[at + 4] = row.step, row.attempts,
      row.ended and row.began and row.ended - row.began or nil, row.problem
    print_line(cells, count)
  end
end

return report
