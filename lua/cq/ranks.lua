-- ranks: the scenes of one experiment spread over many processes, on one machine or on many, that mpirun has started.
--
--   local ranks = cq.Ranks.mpi()                                   -- at the top; mpirun -n 4 cqlua train.lua
--   local step  = ranks:value_and_grad(64, function(p, scene)      -- the mean of 64 scenes, and its gradient
--     local roll = world:rollout { ..., observer = sees(goals[scene]), controller = controller:with(p) }
--     return (roll.state:center "head" - goals[scene]):square():sum(), roll
--   end)
--   for i = 1, iterations do adam:update(params, (select(2, step(params)))) end
--
-- Every rank runs the whole script and has all parameters; each computes its own scenes. Sums are made in an order that
-- does not depend on the number of ranks (ranks/tree.lua), so that all have the same bits on any number of them, and
-- with one alone.
local method = require "cq.base.method"
local ffi = require "ffi"
local is = require "cq.base.schema"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"
local text = require "cq.base.text"
local T = require "cq.tensor"
local gradient = require "cq.tensor.gradient"
local message = require "cq.base.message"
local agreement = require "cq.ranks.agreement"
local option = require "cq.option"
local tree = require "cq.ranks.tree"

---@class cq.Ranks
---@field rank integer          of this process, from 0; the first one alone writes files, pictures and the terminal
---@field size integer          processes in all
local Ranks = { __name = "cq.Ranks" }
Ranks.__index = Ranks

---@class cq.RanksModule
local ranks = { class = Ranks }

---@type cq.Ranks?              of this process
local current

---@internal
---A cq.Ranks over processes that are already connected.
---@param processes table       with the operations of cq.Ranks.Mpi
---@return cq.Ranks
function ranks.of(processes)
  return setmetatable({ processes = processes, rank = processes.rank, size = processes.size }, Ranks)
end

-- ---- beginning and ending -------------------------------------------------------------------------------------------

-- A hash of the script and its command line, which must be equal on all ranks, since otherwise they would wait for
-- each other forever. processes: of ranks/mpi.lua or ranks/alone.lua, which compute it.
local function hash_of_script(processes)
  local parts = { script.text() or "" }
  for _, word in ipairs(script.arguments or {}) do parts[#parts + 1] = word end
  local all = table.concat(parts, "\0")
  return processes:hash(all, #all, 0)
end

-- Divides a machine among its ranks: sets the number of threads of this process, unless --threads gave it, and its
-- share of the memory.
local function share_machine(processes)
  if option.program.threads == 0 then
    option.program.threads = math.max(1, math.floor(processes.cores / processes.machine))
  end
  option.program.share = processes.machine
end

---All processes that mpirun has started, for scripts that ask at their top, before a world is made: cores and memory
---are split between the ranks of one machine. From here on only the first rank writes: the run's folder, files,
---pictures, and the terminal. Started without mpirun, this process is the only one, and says so.
---Errors: no MPI at hand, with the Debian package; an mpirun of another MPI; ranks with other scripts or options; a
---world that was made before. A second call gives the same ranks.
---@return cq.Ranks
function ranks.mpi()
  if current then return current end
  local World = package.loaded["cq.world"]
  if World and World.class.made then
    is.fail("cq.Ranks.mpi: a world was made before, with all cores of the machine; ask for ranks at the top of the script")
  end
  local mpi = require "cq.ranks.mpi"
  local processes = mpi.begin()
  current = ranks.of(processes)
  if processes.rank > 0 then
    option.program.follows, option.program.quiet = true, true
    mpi.hush()
  end
  share_machine(processes)
  agreement.raise((agreement.reach(processes, { purpose = "to begin", hash = hash_of_script(processes) })))
  if processes.size == 1 and not processes.launched then
    message.note("not started by mpirun: this process computes all scenes; mpirun -n 4 cqlua ... starts four")
  end
  return current
end

---A cq.Ranks of this process alone, for code that works on any number of ranks.
---@return cq.Ranks
function ranks.alone() return ranks.of(require "cq.ranks.alone") end

---@internal
---The ranks that the script has asked for; nil if it has not.
---@return cq.Ranks?
function ranks.current() return current end

---@internal
---Waits at the end of the script for all ranks. Returns the error of another rank, unless this one has failed itself.
---@param problem string?       that this one has ended with
---@return string? problem      of another rank
function ranks.finish(problem)
  if not current then return nil end
  local self, failed = current, nil
  current = nil
  if not self.over and not self.processes.broken then
    failed = agreement.reach(self.processes, { purpose = "to its end", problem = problem })
  end
  self.processes:close()
  return not problem and failed or nil
end

-- ---- scenes ---------------------------------------------------------------------------------------------------------

-- Waits until all ranks are here; a problem of any of them is raised as an error on all. mine: this rank's report for
-- agreement.reach.
local function meet(self, mine)
  if self.over then is.fail "cq.Ranks: the other ranks have ended" end
  local problem, over = agreement.reach(self.processes, mine)
  self.over = over
  agreement.raise(problem)
end

-- Warns if there are more ranks than scenes.
local function tell_idle(self, count)
  if self.size > count then
    message.warn("%s for %s: %d have nothing to do; start at most %d", text.count(self.size, "rank"),
      text.count(count, "scene"), self.size - count, count)
  end
end

-- Calls each(scene) for this rank's share of `count` scenes, counted from 1, and meets the other ranks. An error of
-- `each` is raised on all ranks. mine: this rank's report for agreement.reach.
local function each_scene(self, count, mine, each)
  local first, last = tree.scenes(count, self.rank, self.size)
  for scene = first + 1, last + 1 do
    local fine, problem = pcall(each, scene)
    if not fine then
      if type(problem) == "string" then problem = is.with_more(problem, " (scene %d of %d)", scene, count) end
      if self.size == 1 then error(problem, 0) end
      mine.problem = tostring(problem)
      break
    end
  end
  if self.size > 1 then meet(self, mine) end
end

-- Releases the rollouts among its arguments: the results of a user's function behind the first.
local function release(...)
  for k = 1, select("#", ...) do
    local value = select(k, ...)
    if text.is_instance(value, "cq.Rollout") then value:release() end
  end
end

-- A list of the numbers of all scenes, on all ranks, from the numbers of this rank's scenes, own = { [scene] = number
-- }.
local function gather(self, count, own)
  local most = math.ceil(count / self.size)
  local mine, all = ffi.new("double[?]", most), ffi.new("double[?]", most * self.size)
  local first, last = tree.scenes(count, self.rank, self.size)
  for scene = first, last do mine[scene - first] = own[scene + 1] end
  self.processes:gather(mine, all, most * 8)
  local out = {}
  for rank = 0, self.size - 1 do
    first, last = tree.scenes(count, rank, self.size)
    for scene = first, last do out[scene + 1] = all[rank * most + scene - first] end
  end
  return out
end

-- The length of one scene's vector in the sum over scenes: the objective, two marks for each parameter of a list
-- (reached, moves the result), and the gradients.
local function length_of(list)
  local length = 1 + 2 * #list
  for _, leaf in ipairs(list) do length = length + leaf.tensor.count end
  return length
end

-- Writes the value and the gradients of one scene into the vector, double[], that is summed over scenes. adjoints:
-- double* or nil for each parameter.
local function fill(vector, list, value, adjoints)
  local at = 1 + 2 * #list
  vector[0] = value
  for k, leaf in ipairs(list) do
    local g, count, moved = adjoints[k], leaf.tensor.count, 0
    for i = 0, count - 1 do
      local gi = g and g[i] or 0
      vector[at + i] = gi
      if gi ~= 0 then moved = 1 end
    end
    vector[2 * k - 1], vector[2 * k], at = g and 1 or 0, moved, at + count
  end
end

-- The mean over `count` scenes from the summed vector: the value, a number, and the gradients, nested as p.
local function mean(vector, list, p, count)
  local grads, at = {}, 1 + 2 * #list
  for _, leaf in ipairs(list) do
    local g = T.empty(leaf.tensor:shape())
    local data = g:data()
    for i = 0, g.count - 1 do data[i] = vector[at + i] / count end
    grads[leaf.tensor], at = g, at + g.count
  end
  return vector[0] / count, T.leaves.map(p, function(t) return grads[t] end)
end

-- Checks for each parameter whether any of several numbers depends on it, and whether its gradient is anywhere
-- non-zero; raises the errors of gradient.judge. vector: the summed vectors of these numbers, one after another.
local function judge(vector, list, names)
  local length = length_of(list)
  for k, leaf in ipairs(list) do
    local reached, moved = false, false
    for n = 0, #names - 1 do
      reached = reached or vector[n * length + 2 * k - 1] > 0
      moved = moved or vector[n * length + 2 * k] > 0
    end
    gradient.judge(leaf, reached, moved, gradient.goal(names))
  end
end

-- A hash of all numbers of a list of parameters, to see whether ranks agree.
local function hash_of(self, list)
  local hash = 0
  for _, leaf in ipairs(list) do
    hash = self.processes:hash(leaf.tensor.pointer, leaf.tensor.count * 8, hash)
  end
  return hash
end

-- The sum of the vectors of all scenes, double[], on every rank. sums: a cq.Ranks.Tree that has this rank's vectors.
local function sum_of(self, sums)
  local total = sums:sum() or sums:vector()
  self.processes:broadcast(total, sums.length * 8)
  return total
end

local whole = is.integer { min = 1, max = 2 ^ 31 - 1 }

---Returns a function of the parameters p: the mean of f(p, scene, ...) over the scenes 1 to count, its gradient by p,
---and the value of f for each scene; as cq.value_and_grad does for one. Each rank computes its share of the scenes, and
---all ranks get the same results, whose bits do not depend on the number of ranks. A scene may be a batch of several,
---if f takes `scene` for the number of a batch. Rollouts that f returns behind the objective are released.
---Errors: those of f, with the scene and the rank, on all ranks; other parameters on one rank than on another; a
---parameter that no scene reaches.
---@param count integer         scenes
---@param f fun(p: any, scene: integer, ...): cq.Tensor, ...   of the parameters, and of what else its callers give
---@return fun(p: any, ...): number, any, number[]
function Ranks:value_and_grad(count, f)
  count = is.argument("ranks:value_and_grad", "count", whole, count)
  is.argument("ranks:value_and_grad", "f", is.callable(), f)
  tell_idle(self, count)
  return function(p, ...)
    local list, own, more = T.leaves.trainable(p, "ranks:value_and_grad"), {}, { n = select("#", ...), ... }
    local sums = tree.new(count, length_of(list), self.processes)
    -- f of a scene, with the further arguments of the caller. For gradient.part.
    local function scene_of(q, scene) return f(q, scene, unpack(more, 1, more.n)) end
    -- Keeps value and adjoints of a scene for the sum, and releases the rollouts among the further results of f.
    local function keep(scene, value, adjoints, ...)
      local vector = sums:vector()
      fill(vector, list, value, adjoints)
      sums:put(scene - 1, vector)
      own[scene] = value
      release(...)
    end
    each_scene(self, count, { purpose = "to compute gradients", hash = hash_of(self, list), scenes = count },
      function(scene) keep(scene, gradient.part(scene_of, list, p, scene)) end)
    local total = sum_of(self, sums)
    judge(total, list, { "objective" })
    local value, grads = mean(total, list, p, count)
    return value, grads, gather(self, count, own)
  end
end

---@internal
---As value_and_grad, for several named numbers of f: the mean of each over scenes, and its gradient. One backward pass
---is made for each number of each scene.
---@param count integer         scenes
---@param names string[]        of all numbers that f gives
---@param f fun(p: any, scene: integer): table<string, cq.Tensor>, ...
---@return fun(p: any): table<string, number>, table<string, any>, table<string, boolean>    reached: has a parameter a
---  part in the number?
function Ranks:values_and_grads(count, names, f)
  tell_idle(self, count)
  return function(p)
    local list = T.leaves.trainable(p, "ranks:values_and_grads")
    local length = length_of(list)
    local sums = tree.new(count, #names * length, self.processes)
    -- Keeps numbers and adjoints of a scene for the sum, and releases the rollouts among the further results of f.
    local function keep(scene, numbers, adjoints, ...)
      local vector = sums:vector()
      for n, name in ipairs(names) do fill(vector + (n - 1) * length, list, numbers[name], adjoints[n]) end
      sums:put(scene - 1, vector)
      release(...)
    end
    each_scene(self, count, { purpose = "to compute gradients", hash = hash_of(self, list), scenes = count },
      function(scene) keep(scene, gradient.parts("ranks:values_and_grads", f, list, names, p, scene)) end)
    local total, values, grads, reached = sum_of(self, sums), {}, {}, {}
    judge(total, list, names)
    for n, name in ipairs(names) do
      local vector = total + (n - 1) * length
      values[name], grads[name] = mean(vector, list, p, count)
      reached[name] = false
      for k = 1, #list do reached[name] = reached[name] or vector[2 * k - 1] > 0 end
    end
    return values, grads, reached
  end
end

---Calls f(scene) for each scene, and returns the numbers of all scenes on all ranks; without gradients. Errors: f
---gives no number.
---@param count integer         scenes
---@param f fun(scene: integer): cq.Tensor|number, ...   rollouts that it gives behind the number are released
---@return number[] values, number mean     the mean in the order of additions of value_and_grad
function Ranks:map(count, f)
  count = is.argument("ranks:map", "count", whole, count)
  is.argument("ranks:map", "f", is.callable(), f)
  tell_idle(self, count)
  local own, sums = {}, tree.new(count, 1, self.processes)
  -- Keeps a scene's value for the sum, and releases the rollouts among the further results of f.
  local function keep(scene, value, ...)
    if T.is_tensor(value) and value.count == 1 then value = value:item() end
    if type(value) ~= "number" then is.fail("ranks:map: f must give one number, got %s", text.describe(value)) end
    local vector = sums:vector()
    vector[0], own[scene] = value, value
    sums:put(scene - 1, vector)
    release(...)
  end
  each_scene(self, count, { purpose = "to evaluate scenes", scenes = count }, function(scene)
    keep(scene, f(scene))
  end)
  return gather(self, count, own), sum_of(self, sums)[0] / count
end

---@internal
---For each of `count` numbers that every rank has, the largest over all ranks. Numbers below 0 count as 0.
---@param list number[]        {count}; empty on a rank that has nothing to do
---@param count integer
---@return number[]
function Ranks:largest(list, count)
  local mine, all, out = ffi.new("double[?]", count), ffi.new("double[?]", count * self.size), {}
  for k = 1, count do mine[k - 1] = list[k] or 0 end
  self.processes:gather(mine, all, 8 * count)
  for k = 0, count * self.size - 1 do out[k % count + 1] = math.max(out[k % count + 1] or 0, all[k]) end
  return out
end

---@internal
---A path at which this rank can read a file of the first rank; nil where there is no such file. Other ranks get a copy,
---which the caller removes. Errors: the copy cannot be written.
---@param path string
---@return string?
function Ranks:fetch(path)
  local bytes = self.rank == 0 and read_file(path) or nil
  meet(self, { purpose = "to read a file" })
  local size = ffi.new("double[1]", bytes and #bytes or -1)
  self.processes:broadcast(size, 8)
  if size[0] < 0 then return nil end
  local data = ffi.new("char[?]", size[0])
  if bytes then ffi.copy(data, bytes, #bytes) end
  self.processes:broadcast(data, size[0])
  if self.rank == 0 then return path end
  local copy, fine = os.tmpname(), nil
  local to, why = io.open(copy, "wb")
  if to then
    fine, why = to:write(ffi.string(data, size[0]))
    local closed, late = to:close()
    if fine then fine, why = closed, late end
  end
  if not fine then
    os.remove(copy)
    is.fail("cq.Ranks: a copy of %s cannot be written on rank %d: %s", path, self.rank, tostring(why))
  end
  return copy
end

-- The ranks in one line: this rank and how many there are.
function Ranks:__tostring() return ("cq.Ranks: rank %d of %d"):format(self.rank, self.size) end

method.guard(Ranks, "ranks")

return ranks
