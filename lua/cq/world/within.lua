-- within: which coroutines are inside the functions of a world's rollouts. One that was left there with coroutine.yield
-- keeps nobody out: its rollout has a state of its own and goes on with it when it is resumed.
local Within = {}
Within.__index = Within

local within = {}

local MAIN = "main"               -- what runs in no coroutine

-- Notes of which threads are inside of a rollout's own functions; none yet.
---@return table                the Within
function within.new()
  -- a coroutine that nobody can resume any more is forgotten
  return setmetatable({ threads = setmetatable({}, { __mode = "k" }) }, Within)
end

---Notes that the running coroutine is inside of a rollout's functions.
---@return thread|string      what leave takes
function Within:enter()
  local thread = coroutine.running() or MAIN
  self.threads[thread] = true
  return thread
end

-- Notes that a thread, as enter returned it, has left the functions of a rollout.
function Within:leave(thread) self.threads[thread] = nil end

---Is the running coroutine inside of a rollout's functions, or one of those that have resumed it?
---@return boolean
function Within:is_inside()
  if next(self.threads) == nil then return false end
  if self.threads[MAIN] or self.threads[coroutine.running()] then return true end
  for thread in pairs(self.threads) do
    if coroutine.status(thread) == "normal" then return true end
  end
  return false
end

---Does a coroutine wait inside of a rollout's functions that may still be resumed? Collects garbage first.
---@return boolean
function Within:is_awaited()
  if next(self.threads) == nil then return false end
  collectgarbage()
  for thread in pairs(self.threads) do
    if thread ~= MAIN and coroutine.status(thread) == "suspended" then return true end
  end
  return false
end

return within
