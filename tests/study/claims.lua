-- claims: many processes claim the trials of one store at once.     build/cqlua tests/study/claims.lua [--workers 8]
-- [--claims 10000]. Each trial must be claimed by one of them alone, and no claim may fail for a lock. Called by
-- tests/study_spec.lua with few, and by make check-all with ten thousand.
local host = require "cq.host"
local option = require "cq.option"
local process = require "tests.process"
local stores = require "cq.study.store"
local clock = require("cq.base.engine").C.cq_clock

local path, workers, claims = option("store", ""), option("workers", 8), option("claims", 10000)

if path ~= "" then
  local store, name, count = stores.open(path), require("cq.study.process").name(), 0
  while true do
    local claimed = store:claim(name, claims, 0)
    if not claimed then break end
    assert(store:finish(claimed, name, { state = "done", result = { loss = 1 }, value = 1 }, 0))
    count = count + 1
  end
  print(count)
  return
end

local folder = process.folder()
path = folder .. "/study.sqlite"
local store = stores.open(path, { create = true })
store:fill(claims)
local began = clock()
local pipe = assert(io.popen(("for i in $(seq %d); do %s tests/study/claims.lua --store %s --claims %d 2>&1 & done; "
  .. "wait")
  :format(workers, host.executable, path, claims)))
local sum, busy = 0, 0
for line in pipe:lines() do
  local count = assert(tonumber(line), line)
  sum, busy = sum + count, busy + (count > 0 and 1 or 0)
end
pipe:close()
local seconds = clock() - began
assert(sum == claims, ("%d claims of %d trials"):format(sum, claims))
local row = store.base:rows [[SELECT count(*) AS count, max(attempts) AS most, min(state) AS state,
  count(DISTINCT serial) AS serials FROM trial]][1]
assert(row.count == claims and row.most == 1 and row.state == "done" and row.serials == claims)
store:close()
process.remove(folder)
print(("%d claims by %d processes of %d, none twice, %.0f a second"):format(claims, busy, workers, claims / seconds))
