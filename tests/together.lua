-- together: several ranks in one process, each a coroutine, with the operations of cq.Ranks.Mpi; for tests without
-- mpirun.
local ffi = require "ffi"

local together = {}

local Process = {}
Process.__index = Process

-- All ranks leave an operation when the last one has come; act(all) is what it does, by rank.
local function join(self, mine, act)
  local room = self.room
  local round = room.round
  room.came[self.rank] = mine
  room.count = room.count + 1
  if room.count == self.size then
    act(room.came)
    room.came, room.count, room.round = {}, 0, round + 1
  end
  while room.round == round do coroutine.yield() end
end

function Process:minimum(values, count)
  join(self, values, function(all)
    for k = 0, count - 1 do
      local least = all[0][k]
      for rank = 1, self.size - 1 do
        if all[rank][k] < least then least = all[rank][k] end
      end
      for rank = 0, self.size - 1 do all[rank][k] = least end
    end
  end)
end

function Process:gather(mine, out, bytes)
  join(self, { mine = mine, out = out }, function(all)
    for to = 0, self.size - 1 do
      for from = 0, self.size - 1 do
        ffi.copy(ffi.cast("char *", all[to].out) + from * bytes, all[from].mine, bytes)
      end
    end
  end)
end

function Process:broadcast(data, bytes)
  join(self, data, function(all)
    for to = 1, self.size - 1 do ffi.copy(all[to], all[0], bytes) end
  end)
end

function Process:send(data, count, to)
  local copy = ffi.new("double[?]", count)
  ffi.copy(copy, data, count * 8)
  local post = self.room.post
  post[#post + 1] = { from = self.rank, to = to, data = copy, count = count }
end

function Process:receive(data, count, from)
  while true do
    for k, letter in ipairs(self.room.post) do
      if letter.from == from and letter.to == self.rank then
        assert(letter.count == count, "a vector of another length")
        ffi.copy(data, letter.data, count * 8)
        return table.remove(self.room.post, k)
      end
    end
    coroutine.yield()
  end
end

function Process:hash(data, bytes, seed)
  local hash, at = seed + 1, ffi.cast("const unsigned char *", data)
  for k = 0, bytes - 1 do hash = (hash * 31 + at[k]) % 2 ^ 40 end
  return hash
end

---What each(processes) gives on every rank, and what it fails with; both by rank from 0.
---@param size integer
---@param each fun(processes: table): any
---@return table results, table problems
function together.run(size, each)
  local room, threads = { came = {}, count = 0, round = 0, post = {} }, {}
  local results, problems = {}, {}
  for rank = 0, size - 1 do
    local process = setmetatable({ rank = rank, size = size, host = "node" .. rank, room = room }, Process)
    threads[rank] = coroutine.create(function()
      local fine, value = pcall(each, process)
      if fine then results[rank] = value else problems[rank] = value end
    end)
  end
  for _ = 1, 1e5 do
    local living = false
    for rank = 0, size - 1 do
      if coroutine.status(threads[rank]) ~= "dead" then
        living = true
        assert(coroutine.resume(threads[rank]))
      end
    end
    if not living then return results, problems end
  end
  error "the ranks wait for each other"
end

return together
