-- store: the state of a study, in one SQLite file or on a PostgreSQL server, shared by any number of processes.
--
--   study    one row for each part of the definition, as JSON: what the study was begun with
--   trial    one row for each trial
--   report   what trials have reported: a value by name and step
--   rung     values at the steps where a pruner compares
--
-- A trial is waiting -> running -> done, failed, pruned or lost. Whoever makes it running by one UPDATE ... RETURNING
-- has it, as its attempt number n; a result is taken from nobody else. A worker beats for what it runs; what has no
-- beat for LOST seconds, or whose process is gone from this machine, waits again, or is lost when it was tried too
-- often.
local definition = require "cq.study.definition"
local json = require "cq.base.json"
local is = require "cq.base.schema"
local sqlite = require "cq.study.sqlite"
local text = require "cq.base.text"

local LARGEST = 2 ^ 31 - 1   -- number of a trial

---@class cq.Store
---@field path string
---@field last integer      number of the last trial that is looked at. A study may have grown since this process began
local Store = { __name = "cq.Store" }
Store.__index = Store

local LOST = 60              -- [s] without a beat

local tables = {
  "CREATE TABLE IF NOT EXISTS study (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
  [[CREATE TABLE IF NOT EXISTS trial (number INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'waiting',
    point TEXT, attempts INTEGER NOT NULL DEFAULT 0, worker TEXT, began DOUBLE PRECISION,
    beat DOUBLE PRECISION, ended DOUBLE PRECISION, result TEXT, problem TEXT, step DOUBLE PRECISION,
    value DOUBLE PRECISION, serial INTEGER)]],
  "CREATE INDEX IF NOT EXISTS trial_state ON trial (state, number)",
  "CREATE INDEX IF NOT EXISTS trial_serial ON trial (serial)",
  [[CREATE TABLE IF NOT EXISTS report (trial INTEGER, name TEXT, step DOUBLE PRECISION, value DOUBLE PRECISION,
    PRIMARY KEY (trial, name, step))]],
  [[CREATE TABLE IF NOT EXISTS rung (step DOUBLE PRECISION, trial INTEGER, value DOUBLE PRECISION,
    PRIMARY KEY (step, trial))]],
}

local store = { LOST = LOST }

-- ---- what cells may hold -------------------------------------------------------------------------------------------

-- SQLite keeps anything in any column: what must be true of each row, by table and column
local real = "typeof(%s) IN ('null', 'real', 'integer')"
local time = "typeof(%s) IN ('null', 'real', 'integer') AND abs(coalesce(%s, 0)) < 1e12"
local sound = { trial = {
  { "number", "typeof(number) = 'integer' AND number BETWEEN 1 AND 2147483647" },
  { "state", "typeof(state) = 'text' AND state IN ('waiting', 'running', 'done', 'failed', 'pruned', 'lost')" },
  { "attempts", "typeof(attempts) = 'integer' AND attempts BETWEEN 0 AND 1000000" },
  { "worker", "typeof(worker) = 'text' OR typeof(worker) = 'null' AND state <> 'running'" },
  { "beat", time:format("beat", "beat") .. " AND (beat IS NOT NULL OR state <> 'running')" },
  { "began", time:format("began", "began") }, { "ended", time:format("ended", "ended") },
  { "step", real:format "step" },
  { "value", "typeof(value) IN ('real', 'integer') OR typeof(value) = 'null' AND state <> 'done'" },
  { "serial", "typeof(serial) = 'integer' OR typeof(serial) = 'null' AND state NOT IN ('done', 'failed', 'pruned', 'lost')" },
  { "problem", "typeof(problem) = 'text' OR typeof(problem) = 'null' AND state NOT IN ('failed', 'lost')" },
  { "point", "typeof(point) = 'text' OR typeof(point) = 'null' AND state <> 'done'" },
  { "result", "typeof(result) = 'text' OR typeof(result) = 'null' AND state <> 'done'" },
}, report = {
  { "trial", "typeof(trial) = 'integer'" }, { "name", "typeof(name) = 'text'" },
  { "step", "typeof(step) IN ('real', 'integer')" }, { "value", real:format "value" },
}, rung = {
  { "trial", "typeof(trial) = 'integer'" }, { "step", "typeof(step) IN ('real', 'integer')" },
  { "value", "typeof(value) IN ('real', 'integer', 'null')" },            -- null: SQLite's NaN
} }

-- Raises the error that the store is damaged: `where` (a row) has column = value.
local function damaged(self, where, column, value)
  is.fail("%s is damaged: %s has %s = %s; cqlua study run --force-new begins anew, and keeps what is there", self.path,
    where, column, text.describe(value))
end

-- Raises an error if a cell of any table holds a value of the wrong type or out of range (`sound`). For SQLite.
local function require_sound(self)
  for name, columns in pairs(sound) do
    for _, one in ipairs(columns) do
      local row = self.base:rows(("SELECT rowid AS at, %s AS cell FROM %s WHERE NOT (%s) LIMIT 1"):format(one[1], name,
        one[2]))[1]
      if row then damaged(self, ("row %s of %s"):format(tostring(row.at), name), one[1], row.cell) end
    end
  end
end

local unusual = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }       -- numbers that JSON lacks

-- Decodes a cell of the table trial, JSON of numbers by name. Errors: a damaged cell, with row and column.
local function numbers_of(self, row, column)
  local fine, numbers = pcall(json.decode, row[column])
  fine = fine and type(numbers) == "table"
  for name, value in pairs(fine and numbers or {}) do
    numbers[name] = unusual[value] or value
    fine = fine and type(name) == "string" and type(numbers[name]) == "number"
  end
  if not fine then damaged(self, "trial " .. row.number, column, row[column]) end
  return numbers
end

-- Raises an error if the point of a trial, numbers by the names of parameters, is none of the study's space. row: of
-- the table trial, for the error.
local function require_point(self, row, numbers)
  for _, entry in ipairs(self.study and self.study.space or {}) do
    if not entry.parameter:holds(numbers[entry.name]) then
      damaged(self, "trial " .. row.number, "point", json.encode(numbers))
    end
  end
end

---Is this the address of a server, and not the path of a file?
---@param path string
---@return boolean
function store.is_server(path) return path:find "^postgres%a*://" ~= nil end

---@class cq.Store.def: cq.Sqlite.def
---@field schema? string        of the study on a server

---Opens the store of a study, and creates its tables if they are missing, unless it is only read. Errors: those of
---sqlite.open and postgres.open; a damaged store.
---@param path string           of a file, or the address of a server
---@param def? cq.Store.def
---@return cq.Store
function store.open(path, def)
  local driver = store.is_server(path) and require "cq.study.postgres" or sqlite
  local self = setmetatable({ base = driver.open(path, def) }, Store)
  self.path, self.last = self.base.path, LARGEST
  if not (def and def.read_only) and not self.base:has_table "rung" then
    self.base:transaction(function()
      self.base:turn()
      for _, sql in ipairs(tables) do self.base:run(sql) end
    end)
  elseif driver == sqlite and self.base:has_table "rung" then
    require_sound(self)
  end
  return self
end

---Sets the study whose trials are read from now on: trials of more points than it has are passed over, and the points
---and results of all others must be its own.
---@param study cq.Study
function Store:follow(study) self.study, self.last = study, study:count() end

-- Closes the database.
function Store:close() self.base:close() end

---Was the store's file removed? Writes are then lost, unless keep_anew restores the file.
---@return boolean
function Store:is_removed() return self.base:is_removed() end

---Has any trial reported a value at a step where the pruner compares?
---@return boolean
function Store:has_compared() return self.base:value "SELECT 1 FROM rung LIMIT 1" ~= nil end

---After the store's file was removed: writes its content to a new file at the same path, unless another file is there.
---@return string sentence      on the result, for the user
function Store:keep_anew()
  local host = require "cq.host"
  host.make_folder(self.path:match "^(.*)/" or ".")
  if host.kind(self.path) then return ("%s is another one by now, and was left alone"):format(self.path) end
  self.base:copy_to(self.path)
  return ("what is known of its trials is in %s again, without their files; the same command goes on"):format(self.path)
end

-- ---- the definition ------------------------------------------------------------------------------------------------

---The stored parts of the study's definition by name; nil: none is stored yet. Errors: a part that is damaged or lacks.
---@return table<string, any>?
function Store:definition()
  local out
  for _, row in ipairs(self.base:rows "SELECT key, value FROM study WHERE key LIKE 'def.%'") do
    local fine, value = pcall(json.decode, row.value)
    if not fine then damaged(self, "the definition", tostring(row.key), row.value) end
    out = out or {}
    out[row.key:sub(5)] = value
  end
  local flaw = out and definition.flaw(out)
  if flaw then
    damaged(self, "the definition", flaw, out[flaw] == nil and "nothing" or json.encode(out[flaw]))
  end
  return out
end

---Stores the parts of a study's definition.
---@param parts table<string, any>
function Store:define(parts)
  self.base:transaction(function()
    for key, value in pairs(parts) do
      self.base:run("INSERT INTO study (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
        .. "excluded.value",
        "def." .. key, json.encode(value))
    end
  end)
end

---The value of a flag of the study that all workers read, such as "stop"; nil: it is not set.
function Store:flag(key) return self.base:value("SELECT value FROM study WHERE key = ?", key) end

-- Sets a flag of the study that all workers read; nil removes it.
function Store:set_flag(key, value)
  if value == nil then return self.base:run("DELETE FROM study WHERE key = ?", key) end
  self.base:run("INSERT INTO study (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key, value)
end

-- ---- trials --------------------------------------------------------------------------------------------------------

local add_trial = "INSERT INTO trial (number) VALUES (?) ON CONFLICT (number) DO NOTHING"

---Adds the missing trials up to number `count`, as waiting. Errors: the store has more.
---@param count integer
function Store:fill(count)
  self.base:transaction(function()
    local first = (self.base:value "SELECT max(number) FROM trial" or 0) + 1
    if first > count + 1 then damaged(self, "a trial", "number", first - 1) end
    for number = first, count do self.base:run(add_trial, number) end
  end)
end

local take = [[UPDATE trial SET state = 'running', worker = ?1, began = ?3, beat = ?3, attempts = attempts + 1,
  ended = NULL, result = NULL, problem = NULL, step = NULL, value = NULL, serial = NULL
  WHERE number = (SELECT number FROM trial WHERE state = 'waiting' AND number <= ?2 ORDER BY number LIMIT 1%s)
  RETURNING number, attempts, point]]

---Claims the first waiting trial for a worker: its state becomes running. nil: none is waiting.
---@param worker string
---@param limit integer      largest number of a trial to claim
---@param now number         [s]
---@return { number: integer, attempts: integer, point: string? }?
function Store:claim(worker, limit, now)
  local claimed = self.base:rows((take):format(self.base.skip_locked), worker, limit, now)[1]
  if claimed and claimed.point then require_point(self, claimed, numbers_of(self, claimed, "point")) end
  return claimed
end

---Stores the point, JSON, of a claimed trial, and removes the reports of its earlier attempts. claimed: from claim.
function Store:begin(claimed, point)
  if claimed.point ~= point then self.base:run("UPDATE trial SET point = ? WHERE number = ?", point, claimed.number) end
  -- those of the first attempt, too: another attempt may have been given back, or be tried again by `retry`
  self.base:run("DELETE FROM report WHERE trial = ?", claimed.number)
  self.base:run("DELETE FROM rung WHERE trial = ?", claimed.number)
end

local keep_report = [[INSERT INTO report (trial, name, step, value) VALUES (?, ?, ?, ?)
  ON CONFLICT (trial, name, step) DO UPDATE SET value = excluded.value]]
local keep_rung = [[INSERT INTO rung (step, trial, value) VALUES (?, ?, ?)
  ON CONFLICT (step, trial) DO UPDATE SET value = excluded.value]]

-- is this attempt still the worker's?
local mine = "number = ? AND attempts = ? AND worker = ? AND state = 'running'"

---Undoes a worker's claim: the trial waits again, as if it had not been claimed; returns whether it was still the
---worker's.
function Store:give_back(number, attempts, worker)
  return self.base:run("UPDATE trial SET state = 'waiting', worker = NULL, attempts = attempts - 1 WHERE " .. mine,
    number, attempts, worker) > 0
end

---Undoes claims of a worker that it does not know of, because the connection was lost before the answer.
---@param worker string
---@param known table<integer, any>     numbers of the trials that it works on
function Store:give_back_unknown(worker, known)
  for _, row in ipairs(self.base:rows("SELECT number, attempts FROM trial WHERE state = 'running' AND worker = ?",
    worker)) do
    if not known[row.number] then self:give_back(row.number, row.attempts, worker) end
  end
end

---Makes a trial that this worker works on its running trial again, if a server that failed has forgotten the claim.
---claimed: from claim, with its point.
function Store:claim_again(claimed, worker, now)
  self.base:run([[UPDATE trial SET state = 'running', worker = ?, began = ?, beat = ?, attempts = ?, point = ?
    WHERE number = ? AND state = 'waiting' AND attempts < ?]], worker, now, now, claimed.attempts, claimed.point,
    claimed.number, claimed.attempts)
end

-- Is the attempt at a claimed trial still this worker's?
local function is_mine(self, claimed, worker)
  return self.base:value("SELECT 1 FROM trial WHERE " .. mine, claimed.number, claimed.attempts, worker) ~= nil
end

---Stores reported values of a trial, if the attempt is still this worker's. claimed: from claim.
---@param rows { [1]: string, [2]: number, [3]: number }[]     name, step, value
function Store:report(claimed, worker, rows)
  if not is_mine(self, claimed, worker) then return end
  for _, row in ipairs(rows) do
    self.base:run(keep_report, claimed.number, row[1], row[2], row[3])
  end
end

---Stores a trial's value at a rung (a step at which the pruner compares), if the attempt is still this worker's, and
---returns the values of other trials there. claimed: from claim.
---@return number[]
function Store:compare(claimed, worker, step, value)
  local others, number = {}, claimed.number
  for _, row in ipairs(self.base:rows("SELECT value FROM rung WHERE step = ? AND trial <> ?", step, number)) do
    others[#others + 1] = row.value == row.value and row.value or math.huge        -- NaN is worse than all
  end
  if is_mine(self, claimed, worker) then self.base:run(keep_rung, step, number, value) end
  return others
end

-- Stores the end of a trial, within the caller's transaction, if the attempt is still this worker's; returns whether it
-- was. Trials get serial numbers in the order in which they end. ended: cq.Store.end.
local function finish(self, claimed, worker, ended, now)
  local changed = self.base:run([[UPDATE trial SET state = ?, result = ?, problem = ?, step = ?, value = ?, ended = ?,
    serial = (SELECT coalesce(max(serial), 0) + 1 FROM trial) WHERE ]] .. mine, ended.state,
    ended.result and json.encode(ended.result), ended.problem, ended.step, ended.value, now, claimed.number,
    claimed.attempts, worker)
  if changed > 0 or self.base.reconnects == 0 then return changed > 0 end
  -- with the connection the answer may have been lost, and not what was to be done
  return self.base:value("SELECT 1 FROM trial WHERE number = ? AND attempts = ? AND worker = ? AND state = ?",
    claimed.number, claimed.attempts, worker, ended.state) ~= nil
end

---@class cq.Store.end
---@field state "done"|"failed"|"pruned"
---@field result? table<string, number>
---@field problem? string
---@field step? number         of the last report
---@field value? number        the less the better: of the first objective, or, of a pruned trial, what the pruner compared

---Stores the end of an attempt at a trial; returns false if the attempt was no longer this worker's: its result is
---then dropped. claimed: from claim.
---@param ended cq.Store.end
---@return boolean
function Store:finish(claimed, worker, ended, now)
  return self.base:transaction(function()
    self.base:turn()
    return finish(self, claimed, worker, ended, now)
  end)
end

-- a trial whose worker is gone waits again; one that was tried too often is lost
local give_up = [[UPDATE trial SET state = CASE WHEN attempts > ?1 THEN 'lost' ELSE 'waiting' END, problem = ?2,
  ended = CASE WHEN attempts > ?1 THEN CAST(?3 AS DOUBLE PRECISION) END,
  serial = CASE WHEN attempts > ?1 THEN (SELECT coalesce(max(serial), 0) + 1 FROM trial) END
  WHERE state = 'running' AND ]]

---Ends the attempt at a trial whose process ended without a result: the trial waits again, or is lost after more than
---`retries` attempts. Returns the number of changed rows: 0 if the attempt was no longer this worker's. claimed: from
---claim; problem: a sentence on the cause.
---@return integer changed
function Store:lose(claimed, worker, retries, problem, now)
  return self.base:transaction(function()
    self.base:turn()
    return self.base:run(give_up .. "number = ?4 AND attempts = ?5 AND worker = ?6", retries, problem, now,
      claimed.number, claimed.attempts, worker)
  end)
end

---Ends, as `lose` does, the attempts at running trials whose workers have ended or give no heartbeat; returns their
---number.
---@param retries integer
---@param now number                             [s]
---@param is_gone fun(worker: string): boolean   a worker of this machine whose process ended
---@return integer found
function Store:reap(retries, now, is_gone)
  local found = 0
  -- Ends the attempts at running trials that an SQL condition on `value` selects.
  local function take_back(condition, problem, value)
    found = found + self.base:transaction(function()
      self.base:turn()
      return self.base:run(give_up .. condition, retries, problem, now, value)
    end)
  end
  if self.base:value("SELECT 1 FROM trial WHERE state = 'running' AND beat < ? LIMIT 1", now - LOST) then
    take_back("beat < ?4", ("no heartbeat for %d s"):format(LOST), now - LOST)
  end
  for _, row in ipairs(self.base:rows "SELECT DISTINCT worker FROM trial WHERE state = 'running'") do
    if is_gone(row.worker) then take_back("worker = ?4", "its worker was ended", row.worker) end
  end
  return found
end

---Writes the heartbeat of a worker, the time `now`, to its running trials. What was stored before survives a power cut.
function Store:beat(worker, now)
  self.base:run("UPDATE trial SET beat = ? WHERE state = 'running' AND worker = ?", now, worker)
  self.base:settle()
end

---Makes all trials in these states wait to be tried again, with no attempts counted and nothing reported; returns their
---number.
---@param states string[]
---@return integer changed
function Store:retry(states)
  local changed = 0
  self.base:transaction(function()
    for _, state in ipairs(states) do
      for _, reported in ipairs { "report", "rung" } do
        self.base:run(("DELETE FROM %s WHERE trial IN (SELECT number FROM trial WHERE state = ?)"):format(reported), state)
      end
      changed = changed + self.base:run([[UPDATE trial SET state = 'waiting', attempts = 0, worker = NULL,
        serial = NULL, began = NULL, beat = NULL, ended = NULL, result = NULL, problem = NULL, step = NULL, value = NULL
        WHERE state = ?]], state)
    end
  end)
  return changed
end

---The best point by the mean of its replicates, among the points with the most finished replicates.
---@param repeats integer
---@return { k: integer, value: number, count: integer, number: integer, trial: integer }?    number: the first trial of the
---  point, trial: the best of them; value: the less the better
function Store:best(repeats)
  local best = self.base:rows([[SELECT (number - 1) / ?1 + 1 AS k, avg(value) AS value, count(*) AS count,
    min(number) AS number FROM trial WHERE state = 'done' AND number <= ?2 GROUP BY k
    ORDER BY count DESC, value LIMIT 1]], repeats, self.last)[1]
  if not best then return nil end
  best.trial = self.base:value([[SELECT number FROM trial WHERE state = 'done' AND number BETWEEN ? AND ?
    ORDER BY value, number LIMIT 1]], (best.k - 1) * repeats + 1, best.k * repeats)
  return best
end

---The points that cannot be the best, since too many of their replicates have failed or were lost, in their order.
---@param repeats integer
---@param count integer       finished replicates of the best point
---@return { k: integer, count: integer }[]     count: of replicates that failed or were lost
function Store:left_out(repeats, count)
  return self.base:rows([[SELECT (number - 1) / ?1 + 1 AS k, count(*) AS count FROM trial
    WHERE state IN ('failed', 'lost') AND number <= ?2 GROUP BY k HAVING count(*) > ?3 ORDER BY k]], repeats,
    self.last, repeats - count)
end

-- ---- looking -------------------------------------------------------------------------------------------------------

---The number of trials in each state, by the state's name.
---@return table<string, integer>
function Store:counts()
  local out = { waiting = 0, running = 0, done = 0, failed = 0, pruned = 0, lost = 0 }
  for _, row in ipairs(self.base:rows("SELECT state, count(*) AS count FROM trial WHERE number <= ? GROUP BY state",
    self.last)) do
    out[row.state] = row.count
  end
  return out
end

-- Returns a row of the table trial with its JSON (point, result) decoded, in place, and checked. Errors: a damaged
-- store.
local function decoded(self, row)
  local point, study = row.point, self.study
  row.point, row.result = point and numbers_of(self, row, "point"), row.result and numbers_of(self, row, "result")
  if point then require_point(self, row, row.point) end
  for _, entry in ipairs(row.state == "done" and study and study.objectives or {}) do
    if not row.result[entry.name] then damaged(self, "trial " .. row.number, "result", json.encode(row.result)) end
  end
  return row
end

-- A list of the rows of the table trial, decoded, up to the last trial of the study, that an SQL condition with its
-- values (...) selects, in an order.
local function select(self, order, where, ...)
  local rows = self.base:rows(("SELECT * FROM trial WHERE number <= ? AND (%s) ORDER BY %s"):format(where, order),
    self.last, ...)
  for _, row in ipairs(rows) do decoded(self, row) end
  return rows
end

---A list of the rows of trials, decoded, in the order of their numbers.
---@param where? string    SQL condition; its values follow
---@return table[]
function Store:trials(where, ...)
  return select(self, "number", where or "0 = 0", ...)
end

---A list of the rows of finished trials, the best first by their first objective.
---@return table[]
function Store:ranking() return select(self, "value, number", "state = 'done'") end

---A trial's row, decoded: number, state, point, result, ... Errors: no such number.
---@param number integer
---@return table
function Store:trial(number)
  local row = self:trials("number = ?", number)[1]
  return row or is.fail("the study has no trial %d; it has %d", number, self.base:value "SELECT count(*) FROM trial")
end

---A list of the rows of trials that have ended after the one with this serial number, in the order in which they
---ended.
---@param serial integer
---@return table[]
function Store:ended(serial) return select(self, "serial", "serial > ?", serial) end

---The values that a trial has reported, as curves over steps by name; NaN where none was stored.
---@return table<string, { x: number[], y: number[] }>
function Store:curves(number)
  local out = {}
  for _, row in ipairs(self.base:rows("SELECT name, step, value FROM report WHERE trial = ? ORDER BY name, step",
    number)) do
    local curve = out[row.name] or { x = {}, y = {} }
    out[row.name] = curve
    curve.x[#curve.x + 1], curve.y[#curve.y + 1] = row.step, row.value or 0 / 0
  end
  return out
end

---The names of all numbers that trials returned, objectives first, then in alphabetic order.
---@param rows table[]
---@param objectives { name: string }[]
---@return string[]
function store.result_names(rows, objectives)
  local names, known, others = {}, {}, {}
  for _, objective in ipairs(objectives) do names[#names + 1], known[objective.name] = objective.name, true end
  for _, row in ipairs(rows) do
    for name in pairs(row.result or {}) do
      if not known[name] then known[name], others[#others + 1] = true, name end
    end
  end
  table.sort(others)
  for _, name in ipairs(others) do names[#names + 1] = name end
  return names
end

return store
