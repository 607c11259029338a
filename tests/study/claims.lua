-- claims: many processes claim the trials of one store at once.     build/cqlua tests/study/claims.lua [--workers 8]
-- [--claims 10000]. Each trial must be claimed by one of them alone, and no claim may fail for a lock. Called by
-- tests/study_spec.lua with few, and by make check-all with ten thousand.
local host = require "cq.host"
local option = require "cq.option"
local process = require "tests.process"
local stores = require "cq.study.store"
local clock = require("cq.base.engine").C.cq_clock

local path, workers, claims = option("store", ""), option("workers", 8), option("claims", 10000)
local server = option("server", "")              -- postgresql://..., in the place of a file
local SCHEMA = "cqlua_claims"

if path ~= "" then
  local store, name = stores.open(path, { schema = SCHEMA }), require("cq.study.process").name()
  local claimed, began = {}, clock()
  while true do
    local one = store:claim(name, claims, 0)
    if not one then break end
    claimed[#claimed + 1] = one
  end
  local seconds = clock() - began
  for _, one in ipairs(claimed) do
    -- a worker that opens the store only now refuses trials that are done without a point
    store:begin(one, "{}")
    assert(store:finish(one, name, { state = "done", result = { loss = 1 }, value = 1 }, 0))
  end
  print(#claimed, seconds)
  return
end

local folder = process.folder()
path = server ~= "" and server or folder .. "/study.sqlite"
local store = stores.open(path, { create = true, schema = SCHEMA })
store:fill(claims)
local pipe = assert(io.popen(("for i in $(seq %d); do %s tests/study/claims.lua --store '%s' --claims %d 2>&1 & done; "
  .. "wait")
  :format(workers, host.executable, path, claims)))
local sum, busy, longest = 0, 0, 0
for line in pipe:lines() do
  local count, seconds = line:match "^(%d+)%s+(%S+)$"
  assert(count, line)
  sum, busy, longest = sum + count, busy + (tonumber(count) > 0 and 1 or 0), math.max(longest, tonumber(seconds))
end
pipe:close()
assert(sum == claims, ("%d claims of %d trials"):format(sum, claims))
local row = store.base:rows [[SELECT count(*) AS count, max(attempts) AS most, min(state) AS state,
  count(DISTINCT serial) AS serials FROM trial]][1]
assert(row.count == claims and row.most == 1 and row.state == "done" and row.serials == claims)
store:close()
process.remove(folder)
print(("%d claims by %d processes of %d, none twice, %.0f a second"):format(claims, busy, workers, claims / longest))
