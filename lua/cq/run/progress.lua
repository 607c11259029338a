-- progress: one line about a loop. On a terminal it is a bar that is drawn over itself; else plain lines, now and then.
local engine = require "cq.base.engine"
local host = require "cq.host"
local message = require "cq.base.message"
local option = require "cq.option"

---@class cq.Progress
---@field total integer
---@field done integer
---@field best number?         the least loss so far, where its user says it
---@field part table?          of a plan of several stages: name, number, of, done, total, start and starts of a
---  tournament, the work of an iteration, and that which is left of the plan
local Progress = {}
Progress.__index = Progress
Progress.__name = "cq.Progress"

local REDRAW = 0.05          -- [s] between two pictures of the bar
local REPEAT = 2             -- [s] between two plain lines
local BAR = 24               -- [columns]
local SHORT_BAR = 12         -- of a stage

-- Seconds as text such as "1:02:03" or "0:07".
local function duration(seconds)
  if seconds ~= seconds or seconds > 359999 then return "-" end
  local whole = math.floor(seconds + 0.5)
  local hours, minutes = math.floor(whole / 3600), math.floor(whole / 60) % 60
  if hours > 0 then return ("%d:%02d:%02d"):format(hours, minutes, whole % 60) end
  return ("%d:%02d"):format(minutes, whole % 60)
end

---@internal
Progress.duration = duration

---The progress line of a training; its clock starts now. Off a terminal, or with --quiet, it draws no bar.
---@param total integer       iterations of the loop
---@param done? integer       already made, by a run that is resumed
---@return cq.Progress
function Progress.new(total, done)
  local now = engine.C.cq_clock()
  return setmetatable({
    total = total, done = done or 0, first = done or 0, began = now, drawn = -math.huge, worked = 0,
    columns = not option.program.quiet and host.terminal(2) or nil,
  }, Progress)
end

-- The speed of a training as text, from iterations a second: "2.5/s", or "3.0 s each" below one a second.
local function rate_text(rate)
  if rate >= 1 then return ("%.1f/s"):format(rate) end
  return ("%.1f s each"):format(1 / rate)
end

-- The best loss and the gradient's norm as text, "best -0.33  gradient 0.02"; nil: neither is known.
local function standing(self, gradient)
  local best = self.best and ("best %.6g"):format(self.best)
  local norm = gradient and ("gradient %.3g"):format(gradient)
  return best and norm and best .. "  " .. norm or best or norm
end

-- The progress of a plan as one line of text: "binary 4/5 [===  ] 37/80 loss -0.312  left 0:21, plan 1:40".
local function part_text(self, loss, elapsed, gradient)
  local part = self.part
  local name = ("%s %d/%d"):format(part.name, part.number, part.of)
  if part.start then name = ("%s, start %d/%d"):format(name, part.start, part.starts) end
  local full = math.floor(SHORT_BAR * part.done / math.max(1, part.total) + 0.5)
  local words = { ("%s [%s%s] %d/%d"):format(name, ("="):rep(full), (" "):rep(SHORT_BAR - full), part.done,
    part.total) }
  if loss then words[1] = ("%s loss %.6g"):format(words[1], loss) end
  words[2] = standing(self, gradient)
  if self.worked > 0 and elapsed > 0 then
    local each = elapsed / self.worked
    words[#words + 1] = ("left %s, plan %s"):format(duration((part.total - part.done) * part.work * each),
      duration(part.left * each))
  end
  return table.concat(words, "  ")
end

-- The line of progress as text: iterations, loss, gradient, speed and time left.
function Progress:text(loss, gradient)
  local elapsed = engine.C.cq_clock() - self.began
  local made = self.done - self.first
  if self.part then return part_text(self, loss, elapsed, gradient) end
  local words = { ("%d/%d"):format(self.done, self.total) }
  if loss then words[#words + 1] = ("loss %.6g"):format(loss) end
  words[#words + 1] = standing(self, gradient)
  if made > 0 and elapsed > 0 then
    words[#words + 1] = rate_text(made / elapsed)
    local left = (self.total - self.done) * elapsed / made
    words[#words + 1] = self.done < self.total and "left " .. duration(left) or "took " .. duration(elapsed)
  end
  return table.concat(words, "  ")
end

-- The text of a progress bar, full to a fraction from 0 to 1.
local function bar(fraction)
  local full = math.floor(BAR * math.min(1, math.max(0, fraction)) + 0.5)
  return "[" .. ("="):rep(full) .. (" "):rep(BAR - full) .. "]"
end

---Notes that `done` iterations are made, and draws the bar or prints a line, unless the last one is too recent.
---@param done integer
---@param loss? number
---@param gradient? number    its norm
function Progress:update(done, loss, gradient)
  if self.part then self.worked = self.worked + (done - self.done) * self.part.work end
  self.done = done
  if option.program.quiet then return end
  local now = engine.C.cq_clock()
  local last = done >= self.total
  if self.columns then
    if now - self.drawn < REDRAW and not last then return end
    local line = self:text(loss, gradient)
    if not self.part then line = bar(done / math.max(1, self.total)) .. " " .. line end
    io.stderr:write("\r", line:sub(1, self.columns - 1), "\27[K")
    io.stderr:flush()
    message.wipe = function()
      io.stderr:write "\r\27[K"
      message.wipe = nil
    end
  elseif now - self.drawn >= REPEAT or last then
    io.stderr:write(self:text(loss, gradient), "\n")
  else
    return
  end
  self.drawn = now
end

---Leaves the last bar on the screen and goes to the next line.
function Progress:close()
  if message.wipe then io.stderr:write "\n" end
  message.wipe = nil
end

-- The progress in one line: iterations made and in all.
function Progress:__tostring()
  return ("cq.Progress %d/%d"):format(self.done, self.total)
end

return Progress
