-- mpi: ranks that mpirun has started, by cqlua-mpi.so, which is loaded when a script asks for it. Each operation waits
-- for the other ranks without taking their cores, and gives up when the user asks to stop.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local host = require "cq.host"
local is = require "cq.base.schema"

ffi.cdef [[
typedef struct cq_mpi_place { int32_t rank, size, local, cores; char host[256], library[256]; } cq_mpi_place;
int32_t cq_mpi_abi(void);
const char *cq_mpi_error(void);
int32_t cq_mpi_begin(cq_mpi_place *place);
int32_t cq_mpi_end(void);
void cq_mpi_leave(void);
uint64_t cq_mpi_hash(const void *data, int64_t bytes, uint64_t seed);
int32_t cq_mpi_minimum(uint64_t *values, int32_t count);
int32_t cq_mpi_gather(const void *mine, void *all, int32_t bytes);
int32_t cq_mpi_broadcast(void *data, int32_t bytes, int32_t from);
int32_t cq_mpi_send(const double *data, int32_t count, int32_t to);
int32_t cq_mpi_receive(double *data, int32_t count, int32_t from);
int32_t cq_mpi_test(int32_t *done);
int sched_yield(void);
int usleep(unsigned int microseconds);
int open(const char *path, int flags, ...);
int dup2(int from, int to);
int close(int file);
void (*signal(int number, void (*handler)(int)))(int);
]]

local ABI = 1
local EAGER = 2000           -- tests without a pause, some hundred microseconds
-- [microseconds] between later ones: a transfer goes on in them, and a long wait leaves the core to others
local SHORT, LONG_PAUSE, MANY = 50, 1000, 10000
-- [s] that the first rank waits for the others once the user has asked to stop: mpirun gives all of them a second, in
-- which it must save. The others stay until it has gone: mpirun ends the job with the first that goes.
local PATIENCE, LONG = 0.2, 60
local PIECE = 2 ^ 30         -- bytes sent at once

---@class cq.Ranks.Mpi
---@field rank integer          from 0
---@field size integer          ranks in all
---@field machine integer       ranks on this machine
---@field cores integer         that these may use together
---@field host string           the machine
---@field library string        "Open MPI v4.1.4"
---@field broken boolean        the others cannot be waited for any more
local Mpi = {}
Mpi.__index = Mpi

local mpi = {}

-- ---- the object ----------------------------------------------------------------------------------------------------

-- The path of cqlua-mpi.so: as CQLUA_MPI says, else beside the program. Errors: there is none.
local function path_of_object()
  local given = os.getenv "CQLUA_MPI"
  if given and host.kind(given) ~= "file" then
    is.fail("cq.Ranks.mpi: CQLUA_MPI names %s, which cannot be read: name the cqlua-mpi.so that `make mpi` builds", given)
  end
  if given then return given end
  local folder = host.executable:match "^(.*/)" or "./"
  for _, place in ipairs { "", "../", "../lib/cqlua/" } do
    local path = folder .. place .. "cqlua-mpi.so"
    if host.kind(path) == "file" then return path end
  end
  is.fail("cq.Ranks.mpi: this cqlua was built without MPI, there is no cqlua-mpi.so beside it: install the Debian packages "
    .. "libopenmpi-dev and openmpi-bin, and build it with `make mpi`")
end

-- Loads cqlua-mpi.so and returns it. Errors, with how it is built: it is missing, cannot be loaded, or belongs to
-- another build.
local function load_object()
  local path = path_of_object()
  local found, object = pcall(ffi.load, path, true)          -- MPI loads parts of itself that look for its functions
  if not found then
    is.fail("cq.Ranks.mpi: %s cannot be loaded (%s); install the Debian package libopenmpi3, or build it again with "
      .. "`make mpi`", path, tostring(object))
  end
  local asked, abi = pcall(function() return object.cq_mpi_abi() end)
  if not asked or abi ~= ABI then
    is.fail("cq.Ranks.mpi: %s belongs to another build of cqlua; build both again with `make` and `make mpi`", path)
  end
  return object
end

-- The number of processes that the launcher says it has started; nil: no launcher does. The mpirun of another MPI
-- starts each of them as a single rank.
local function launched()
  for _, name in ipairs { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS" } do
    local count = tonumber(os.getenv(name) or "")
    if count then return count end
  end
end

---The rank, from 0, that a launcher has given this process in its environment; 0 without one. Needs no MPI.
---@return integer
function mpi.launched_as()
  for _, name in ipairs { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID" } do
    local rank = tonumber(os.getenv(name) or "")
    if rank then return rank end
  end
  return 0
end

-- Starts MPI in this process; returns the cq.Ranks.Mpi. Errors: the launcher is of another MPI.
local function begin(object)
  local place = ffi.new "cq_mpi_place"
  if object.cq_mpi_begin(place) ~= 0 then is.fail("cq.Ranks.mpi: %s", ffi.string(object.cq_mpi_error())) end
  local count, library = launched(), ffi.string(place.library)
  if count and count > 1 and place.size == 1 then
    is.fail("cq.Ranks.mpi: %d processes were started, and each finds itself alone: the launcher is not that of %s, for "
      .. "which cqlua-mpi.so was built", count, library)
  end
  return setmetatable({
    object = object, rank = place.rank, size = place.size, machine = place["local"], cores = place.cores,
    host = ffi.string(place.host), library = library, launched = count ~= nil, broken = false,
    done = ffi.new "int32_t[1]",
  }, Mpi)
end

---Begins MPI in this process. To be called once.
---@return cq.Ranks.Mpi
function mpi.begin() return begin(load_object()) end

local SIGHUP, SIGINT, SIGTERM = 1, 2, 15

-- Installs a handler for the signals by which the launcher ends a job: this process stops after its iteration, without
-- printing anything.
local function hush_signals()
  for _, number in ipairs { SIGHUP, SIGINT, SIGTERM } do
    ffi.C.signal(number, ffi.cast("void (*)(int)", engine.C.cq_interrupt))
  end
end

---Silences this process, also when it is asked to stop: its standard output is discarded. For all ranks but the first.
function mpi.hush()
  hush_signals()
  io.stdout:flush()
  local nowhere = ffi.C.open("/dev/null", 1)
  if nowhere < 0 then return end
  ffi.C.dup2(nowhere, 1)
  ffi.C.close(nowhere)
end

-- ---- operations ----------------------------------------------------------------------------------------------------

-- Raises the error of an MPI call that failed, by its code, and sets self.broken.
local function check(self, code)
  if code == 0 then return end
  self.broken = true
  is.fail("MPI: %s", ffi.string(self.object.cq_mpi_error()))
end

-- Waits for the MPI operation that was begun; after Ctrl-C only for a limited time, since another rank may have ended.
-- Errors: the operation failed; Ctrl-C.
local function wait(self)
  local object, done, since, tests = self.object, self.done, nil, 0
  while true do
    check(self, object.cq_mpi_test(done))
    if done[0] ~= 0 then return end
    tests = tests + 1
    if tests < EAGER then ffi.C.sched_yield() else ffi.C.usleep(tests < MANY and SHORT or LONG_PAUSE) end
    if engine.C.cq_interrupted() ~= 0 then
      since = since or engine.C.cq_clock()
      if engine.C.cq_clock() - since > (self.rank == 0 and PATIENCE or LONG) then
        self.broken = true
        engine.interruption = "stopped while waiting for the other ranks"
        is.fail("%s", engine.interruption)
      end
    end
  end
end

-- Checks the error code of a non-blocking MPI call, and waits for its operation.
local function run(self, code)
  check(self, code)
  wait(self)
end

---Replaces each number by the least of all ranks, in place.
---@param values ffi.cdata*      uint64_t {count}
---@param count integer
function Mpi:minimum(values, count) run(self, self.object.cq_mpi_minimum(values, count)) end

---Gathers `bytes` bytes of each rank into `all` on every rank, in the order of ranks.
---@param mine ffi.cdata*
---@param all ffi.cdata*         {size, bytes}
---@param bytes integer
function Mpi:gather(mine, all, bytes) run(self, self.object.cq_mpi_gather(mine, all, bytes)) end

---Sends the first rank's data to all others, whose data is overwritten.
---@param data ffi.cdata*
---@param bytes integer
function Mpi:broadcast(data, bytes)
  local at = ffi.cast("char *", data)
  for from = 0, bytes - 1, PIECE do
    run(self, self.object.cq_mpi_broadcast(at + from, math.min(PIECE, bytes - from), 0))
  end
end

-- Sends `count` doubles to rank `to`; waits until they are on their way.
function Mpi:send(data, count, to) run(self, self.object.cq_mpi_send(data, count, to)) end

-- Receives `count` doubles from rank `from` into data; waits until they are there.
function Mpi:receive(data, count, from) run(self, self.object.cq_mpi_receive(data, count, from)) end

---A hash of bytes, to compare ranks. seed: 0, or the hash of the bytes before, to go on with it.
function Mpi:hash(data, bytes, seed) return self.object.cq_mpi_hash(data, bytes, seed) end

---Ends MPI; every rank must call it. After a failure this process leaves without waiting for the others.
function Mpi:close()
  -- mpirun sends one to those that are still here when the first of a failed job has gone
  hush_signals()
  -- who was asked to stop just goes: mpirun, which has asked, ends the others
  if self.broken and engine.C.cq_interrupted() ~= 0 then return end
  if self.broken then return self.object.cq_mpi_leave() end
  check(self, self.object.cq_mpi_end())
end

return mpi
