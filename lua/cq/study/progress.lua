-- progress: the progress of a study: on a terminal a table that is redrawn, in a log a line from time to time.
local host = require "cq.host"
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local process = require "cq.study.process"
local duration = require("cq.run.progress").duration

local Progress = { __name = "cq.StudyProgress" }
Progress.__index = Progress

local REDRAW, REPEAT = 0.5, 10       -- [s] between two pictures of the table, and two lines of a log
local ROWS = 16                      -- running trials that the table shows
local BAR = 20                       -- [columns]

local progress = {}

---The progress of a study on the terminal; its clock starts now.
---@param study cq.Study
---@param store cq.Store
---@return table                the Progress
function progress.new(study, store)
  return setmetatable({
    study = study, store = store, began = process.now(), made = 0, drawn = 0, lines = 0,
    columns = not option.program.quiet and host.terminal(2) or nil,
  }, Progress)
end

---A point as one line: "net mlp  young 1.2e+03".
---@param study cq.Study
---@param point table<string, number>
---@return string
function progress.point(study, point)
  local words = {}
  for k, entry in ipairs(study.space) do
    local x = point[entry.name]
    words[k] = ("%s %s"):format(entry.name, x and entry.parameter:label(x) or "-")
  end
  return table.concat(words, "  ")
end

---The best point in words, and its row from Store:best; nil before any trial is done.
---@return string?
function progress.best(study, store)
  local best = store:best(study.repeats)
  if not best then return nil end
  local first = study.objectives[1]
  local of = study.repeats > 1 and ("point %d, mean of %d, the best of them trial %d"):format(best.k, best.count,
    best.trial) or ("trial %d"):format(best.number)
  return ("best %s %.6g (%s)"):format(first.name, best.value * first.sign, of), best
end

local states = { "running", "failed", "pruned", "lost" }

---A text on the number of trials in each state, "12/256  done 10  running 2", and the number of trials that have
---ended. counts: of Store:counts; total: trials of the study.
function progress.counts(counts, total)
  local ended = counts.done + counts.failed + counts.pruned + counts.lost
  local words = { ("%d/%d"):format(ended, total), ("done %d"):format(counts.done) }
  for _, state in ipairs(states) do
    if counts[state] > 0 then words[#words + 1] = ("%s %d"):format(state, counts[state]) end
  end
  return table.concat(words, "  "), ended
end

-- The summary line of the display: counts, best trial, rate and time left; and the share of the study that has ended,
-- from 0 to 1.
function Progress:head()
  local counts = self.store:counts()
  local line, ended = progress.counts(counts, self.study:count())
  local words = { line, (progress.best(self.study, self.store)) }
  local elapsed, left = process.now() - self.began, counts.waiting + counts.running
  if self.made > 0 then
    local rate = self.made / elapsed
    words[#words + 1] = rate >= 1 and ("%.1f/s"):format(rate) or ("%.1f s each"):format(1 / rate)
    words[#words + 1] = left > 0 and "left " .. duration(left / rate) or "took " .. duration(elapsed)
  end
  return table.concat(words, "  "), ended / math.max(self.study:count(), 1)
end

---Counts a trial that has ended, for the rate; prints the problem of one that failed. claimed: { number }; ended: {
---state, problem }.
function Progress:ended(claimed, ended)
  self.made = self.made + 1
  if ended.state == "failed" then
    message.note("trial %d failed: %s", claimed.number, ended.problem)
  end
end

-- Clears the progress display, so that other lines can be printed.
function Progress:clear()
  message.wipe = nil
  if self.lines == 0 then return end
  io.stderr:write(("\27[%dA\r\27[J"):format(self.lines))
  self.lines = 0
end

-- A list of lines, one for each running trial, at most ROWS: number, time, last report, point.
local function table_rows(self, children)
  local rows, now = {}, process.now()
  for _, child in ipairs(children) do
    if child.claimed and #rows < ROWS then
      local last = child.last
      rows[#rows + 1] = ("%8d  %7s  %-8s  %-12s  %s"):format(child.claimed.number, duration(now - child.began),
        last.step and ("step %g"):format(last.step) or "", last.value and ("%.6g"):format(last.value) or "",
        progress.point(self.study, json.decode(child.claimed.point)))
    end
  end
  return rows
end

---Draws the summary line and the running trials again; off a terminal prints the summary line only. Does nothing with
-----quiet, or too soon after the last time.
---@param children cq.Child[]
function Progress:update(children)
  if option.program.quiet then return end
  local now = process.now()
  if now - self.drawn < (self.columns and REDRAW or REPEAT) then return end
  self.drawn = now
  local head, share = self:head()
  if not self.columns then
    io.stderr:write(head, "\n")
    return
  end
  local full = math.floor(BAR * share + 0.5)
  local lines = table_rows(self, children)
  table.insert(lines, 1, ("[%s%s] %s"):format(("="):rep(full), (" "):rep(BAR - full), head))
  self:clear()
  for _, line in ipairs(lines) do io.stderr:write(line:sub(1, self.columns - 1), "\n") end
  io.stderr:flush()
  self.lines = #lines
  message.wipe = function() self:clear() end
end

---Clears the display and prints its summary line once more.
function Progress:close()
  if option.program.quiet then return end
  self:clear()
  io.stderr:write((self:head()), "\n")
end

return progress
