-- agreement: where all ranks come together, so that each knows whether they do the same, and whether one has failed.
-- One reduction of few numbers when all is well; the details are gathered only when it is not.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local is = require "cq.base.schema"

ffi.cdef [[
typedef struct cq_rank_report {
  uint64_t purpose, hash, scenes, interrupted; char host[256], problem[2016];
} cq_rank_report;
]]

local agreement = {}

local LONGEST, NAME = 2015, 255          -- bytes of a problem that others are told, and of a machine's name
local ALL_ONES = 0xffffffffffffffffULL

-- what ranks come together for, by number
local purposes = { "to begin", "to compute gradients", "to evaluate scenes", "to read a file", "to its end" }
local number_of = {}
for k, name in ipairs(purposes) do number_of[name] = k end

-- This rank's report to the other ranks, a cq_rank_report, from `mine` (agreement.reach) and its machine's name.
local function report_of(ranks, mine)
  local report = ffi.new "cq_rank_report"
  report.purpose, report.hash, report.scenes = number_of[mine.purpose], mine.hash or 0, mine.scenes or 0
  report.interrupted = engine.C.cq_interrupted()
  ffi.copy(report.host, ranks.host:sub(1, NAME))
  ffi.copy(report.problem, (mine.problem or ""):sub(1, LONGEST))
  return report
end

-- Has the rank of a report had an error?
local function failed(report) return report.problem[0] ~= 0 end

-- Do all ranks report the same purpose, hash and number of scenes, and has none failed or been interrupted? Each number
-- and its complement are compared by their least over all ranks.
local function all_alike(ranks, report)
  local fine = not failed(report) and report.interrupted == 0
  local values = ffi.new("uint64_t[7]", report.purpose, ALL_ONES - report.purpose, report.hash, ALL_ONES - report.hash,
    report.scenes, ALL_ONES - report.scenes, fine and 1 or 0)
  ranks:minimum(values, 7)
  for k = 0, 4, 2 do
    if values[k] ~= ALL_ONES - values[k + 1] then return false end
  end
  return values[6] == 1
end

-- The name of a rank for error sentences: "rank 2 of 4 (node7)".
local function name_of(ranks, report, rank)
  local machine = ffi.string(report.host)
  return ("rank %d of %d%s"):format(rank, ranks.size, machine ~= "" and (" (%s)"):format(machine) or "")
end

local differ = {
  ["to begin"] = "%s runs another script than rank 0, or has other options: start the same on every rank",
  ["to compute gradients"] = "the parameters of %s are not those of rank 0: begin with the same seed on every rank, and "
    .. "change them by the same gradients; on machines of several kinds start with --simd avx2",
  ["to evaluate scenes"] = "the parameters of %s are not those of rank 0",
}

-- A sentence on how a rank differs from the first rank: another operation, number of scenes or parameters; nil: it does
-- not. first, other: their reports.
local function difference(ranks, first, other, rank)
  local who, to = name_of(ranks, other, rank), purposes[tonumber(first.purpose)]
  if other.purpose ~= first.purpose then
    return ("%s has come %s and rank 0 %s: every rank must take the same way through the script"):format(who,
      purposes[tonumber(other.purpose)], to)
  elseif other.scenes ~= first.scenes then
    return ("%s has %d scenes and rank 0 has %d"):format(who, tonumber(other.scenes), tonumber(first.scenes))
  elseif other.hash ~= first.hash then
    return differ[to]:format(who)
  end
end

-- A sentence on what went wrong on a rank, or in what ranks disagree; nil where all is well. all: their reports.
local function problem_of(ranks, all)
  for rank = 0, ranks.size - 1 do
    if failed(all[rank]) then return name_of(ranks, all[rank], rank) .. ": " .. ffi.string(all[rank].problem) end
  end
  for rank = 1, ranks.size - 1 do
    local problem = difference(ranks, all[0], all[rank], rank)
    if problem then return problem end
  end
end

-- Has any rank been interrupted, and has any come to the end of its script? Two booleans. all: the reports.
local function notices(ranks, all)
  local interrupted, over = false, false
  for rank = 0, ranks.size - 1 do
    interrupted = interrupted or all[rank].interrupted ~= 0
    over = over or purposes[tonumber(all[rank].purpose)] == "to its end"
  end
  return interrupted, over
end

---Waits until all ranks have come to the same point. A problem of one is returned on all, in the same words; Ctrl-C on
---one interrupts all, which is then the problem, but not at the end. mine: what this rank is here for, a hash of its
---parameters, its number of scenes, and its problem.
---@param ranks table            with the operations of cq.Ranks.Mpi, or cq.Ranks.Alone
---@param mine { purpose: string, hash: integer?, scenes: integer?, problem: string? }
---@return string? problem, boolean over     over: a rank is at its end, and cannot come again
function agreement.reach(ranks, mine)
  local report = report_of(ranks, mine)
  if all_alike(ranks, report) then return nil, mine.purpose == "to its end" end
  local all = ffi.new("cq_rank_report[?]", ranks.size)
  ranks:gather(report, all, ffi.sizeof "cq_rank_report")
  local interrupted, over = notices(ranks, all)
  if not interrupted then return problem_of(ranks, all), over end
  engine.C.cq_interrupt(1)
  engine.interruption = engine.interruption or "stopped, as the user asked"
  return mine.purpose ~= "to its end" and engine.interruption or nil, over
end

---Raises the problem that agreement.reach returned, if there is one.
---@param problem string?
function agreement.raise(problem)
  if not problem then return end
  error(is.remember(problem), 0)         -- the frames of this rank say nothing of it
end

return agreement
