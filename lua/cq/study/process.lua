-- process: children that try trials. A child is the same program on the same script; lines come and go through two
-- pipes, which it knows as the files 3 (what to do) and 4 (what came of it). A child ends with its parent, however that
-- ends.
local bit = require "bit"
local ffi = require "ffi"
local host = require "cq.host"
local is = require "cq.base.schema"

ffi.cdef [[
typedef struct { int fd; short events; short revents; } cq_pollfd;
typedef struct { long seconds; long nanoseconds; } cq_timespec;
int clock_gettime(int clock, cq_timespec *out);
int poll(cq_pollfd *files, unsigned long count, int milliseconds);
int pipe2(int *files, int flags);
int fcntl(int file, int command, ...);
int open(const char *path, int flags, ...);
int dup2(int from, int to);
int close(int file);
long read(int file, void *out, size_t bytes);
long write(int file, const void *from, size_t bytes);
int setenv(const char *name, const char *value, int replace);
extern char **environ;
int posix_spawn(int *pid, const char *path, void *actions, void *attributes, const char *const *words,
  char **environment);
int posix_spawn_file_actions_init(void *actions);
int posix_spawn_file_actions_destroy(void *actions);
int posix_spawn_file_actions_adddup2(void *actions, int from, int to);
int posix_spawn_file_actions_addopen(void *actions, int file, const char *path, int flags, unsigned mode);
int posix_spawnattr_init(void *attributes);
int posix_spawnattr_destroy(void *attributes);
int posix_spawnattr_setflags(void *attributes, short flags);
int waitpid(int pid, int *status, int options);
int kill(int pid, int signal);
int getpid(void);
int getppid(void);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
long readlink(const char *path, char *out, size_t bytes);
char *strerror(int number);
void *signal(int number, void *handler);
int fork(void);
int mkdir(const char *path, unsigned mode);
void _exit(int code);
]]

local F = ffi.C
local EINTR = 4
local O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_CLOEXEC = 1, 64, 512, 1024, 524288
local F_DUPFD_CLOEXEC, FREE = 1030, 10       -- pipes lie above the files that a child is given
local SETPGROUP = 2                          -- Ctrl-C on the terminal reaches the parent alone
local POLLIN, POLLHUP, POLLERR = 1, 16, 8
local PR_SET_PDEATHSIG = 1
local SIGKILL, SIGPIPE, SIGTERM = 9, 13, 15
local DEFAULT, IGNORE = ffi.cast("void *", 0), ffi.cast("void *", 1)
local IN, OUT = 3, 4

local process = { SIGKILL = SIGKILL, SIGTERM = SIGTERM }

---Seconds since 1970.
---@return number
function process.now()
  local out = ffi.new "cq_timespec"
  F.clock_gettime(0, out)
  return tonumber(out.seconds) + tonumber(out.nanoseconds) * 1e-9
end

-- ---- who is who ----------------------------------------------------------------------------------------------------

-- The time at which a process began, in ticks since the machine did, as text; nil: it has ended. Numbers of processes
-- (pid) are used again, but number and beginning together name one process.
local function beginning(pid)
  local file = io.open(("/proc/%d/stat"):format(pid))
  if not file then return nil end
  local line = file:read "*a" or ""
  file:close()
  local words, state = {}, line:match "%) (%a)"
  for word in (line:match "%) (.*)" or ""):gmatch "%S+" do words[#words + 1] = word end
  return state ~= "Z" and state ~= "X" and words[20] or nil
end

-- A text that names the machine or container in which this process runs, since each container numbers its processes.
local function place()
  local buffer = ffi.new "char[128]"
  local length = tonumber(F.readlink("/proc/self/ns/pid", buffer, 127))
  local _, name = host.system()
  return ("%s/%s"):format(name, length > 0 and ffi.string(buffer, length):match "%d+" or "0")
end

---Waits until there is a file, a second at most: an editor that saves a file may take it away for a moment.
---@param path string
---@return boolean      is it there?
function process.await(path)
  local until_then = process.now() + 1
  while not host.kind(path) and process.now() < until_then do F.poll(nil, 0, 20) end
  return host.kind(path) ~= nil
end

---A name for this process that no other process has, on any machine. By it the store knows who runs a trial.
---@return string
function process.name()
  local pid = F.getpid()
  return ("%s/%d/%s"):format(place(), pid, beginning(pid) or "0")
end

---Did this process (name: of process.name) run on this machine, and has it ended? False for processes of other
---machines.
---@param name string
function process.is_gone(name)
  local where, pid, began = name:match "^(.*)/(%d+)/(%d+)$"
  return where == place() and beginning(tonumber(pid)) ~= began
end

-- ---- starting and ending -------------------------------------------------------------------------------------------

-- The operating system's message for an error number; nil: for errno.
local function problem_of(number) return ffi.string(F.strerror(number or ffi.errno())) end

-- Makes a pipe that later programs do not inherit; returns the file numbers of its ends for reading and writing.
-- Errors: the system makes none.
local function pipe()
  local files = ffi.new "int[2]"
  if F.pipe2(files, O_CLOEXEC) ~= 0 then is.fail("no pipe to a trial's process can be made: %s", problem_of()) end
  local ends = {}
  for k = 0, 1 do
    ends[k + 1] = F.fcntl(files[k], F_DUPFD_CLOEXEC, ffi.cast("int", FREE))
    F.close(files[k])
    if ends[k + 1] < 0 then is.fail("no pipe to a trial's process can be made: %s", problem_of()) end
  end
  return ends[1], ends[2]
end

---@class cq.Child
---@field pid integer
local Child = { __name = "cq.Child" }
Child.__index = Child

---Starts a child process, this program on the study's script, with pipes to and from it. Errors: the system starts no
---process.
---@param words string[]       its arguments
---@param threads integer      of OpenBLAS; with 1 the child can be forked (process.in_a_fork)
---@param log string           a file for what it prints
---@return cq.Child
function process.start(words, threads, log)
  F.signal(SIGPIPE, IGNORE)            -- a child that has ended is told by its end of the pipe
  local theirs_in, ours_out = pipe()
  local ours_in, theirs_out = pipe()
  local actions, attributes = ffi.new "char[512]", ffi.new "char[1024]"
  F.posix_spawn_file_actions_init(actions)
  F.posix_spawn_file_actions_addopen(actions, 0, "/dev/null", 0, 0)
  F.posix_spawn_file_actions_addopen(actions, 1, log, bit.bor(O_WRONLY, O_CREAT, O_APPEND), 438)
  F.posix_spawn_file_actions_adddup2(actions, 1, 2)
  F.posix_spawn_file_actions_adddup2(actions, theirs_in, IN)
  F.posix_spawn_file_actions_adddup2(actions, theirs_out, OUT)
  F.posix_spawnattr_init(attributes)
  F.posix_spawnattr_setflags(attributes, SETPGROUP)
  F.setenv("OPENBLAS_NUM_THREADS", tostring(threads), 1)
  F.setenv("CQLUA_STUDY_PARENT", tostring(F.getpid()), 1)
  local list = ffi.new("const char *[?]", #words + 2)
  list[0] = host.executable
  for k, word in ipairs(words) do list[k] = word end
  local pid = ffi.new "int[1]"
  local failed = F.posix_spawn(pid, host.executable, actions, attributes, list, F.environ)
  F.posix_spawn_file_actions_destroy(actions)
  F.posix_spawnattr_destroy(attributes)
  F.close(theirs_in)
  F.close(theirs_out)
  if failed ~= 0 then is.fail("no process for a trial can be started: %s", problem_of(failed)) end
  return setmetatable({ pid = pid[0], input = ours_in, output = ours_out, rest = "" }, Child)
end

-- Writes a whole line to a file number; returns false if the other end of the pipe is closed.
local function write_all(file, line)
  local at = 0
  while at < #line do
    local written = tonumber(F.write(file, ffi.cast("const char *", line) + at, #line - at))
    if written < 0 and ffi.errno() ~= EINTR then return false end
    at = at + math.max(written, 0)
  end
  return true
end

---Sends a line to the child; returns false if it has ended.
function Child:send(line) return write_all(self.output, line .. "\n") end

local BLOCK = 65536
local buffer = ffi.new("char[?]", BLOCK)

---Reads the lines that the child has sent; call it after process.poll has returned the child. ended: true when the
---pipe is closed and no more will come.
---@return string[] lines, boolean ended
function Child:receive()
  local count = tonumber(F.read(self.input, buffer, BLOCK))
  if count < 0 then return {}, ffi.errno() ~= EINTR end
  if count == 0 then return {}, true end
  local lines = {}
  local all = self.rest .. ffi.string(buffer, count)
  local from = 1
  while true do
    local stop = all:find("\n", from, true)
    if not stop then break end
    lines[#lines + 1], from = all:sub(from, stop - 1), stop + 1
  end
  self.rest = all:sub(from)
  return lines, false
end

---Closes the pipe to the child, which then ends after its present trial.
function Child:dismiss()
  if self.output then F.close(self.output) end
  self.output = nil
end

---Sends a signal to the child and all processes of its group.
function Child:signal(number) F.kill(-self.pid, number) end

-- Waits until a child process has ended. Returns its exit code, or nil and the signal that ended it.
local function wait_for(pid)
  local status = ffi.new "int[1]"
  repeat local got = F.waitpid(pid, status, 0) until got == pid or ffi.errno() ~= EINTR
  local signal = bit.band(status[0], 127)
  if signal == 0 then return bit.band(bit.rshift(status[0], 8), 255) end
  return nil, signal
end

---Waits for the child's end and closes its pipes; returns its exit code, or nil and the signal that ended it.
---@return integer? code, integer? signal
function Child:wait()
  local code, signal = wait_for(self.pid)
  self:dismiss()
  F.close(self.input)
  return code, signal
end

---Waits at most `seconds` until children have sent something or closed their pipes; returns those children.
---@param children cq.Child[]
---@param seconds number
---@return cq.Child[]
function process.poll(children, seconds)
  local files, out = ffi.new("cq_pollfd[?]", math.max(#children, 1)), {}
  for k, child in ipairs(children) do files[k - 1].fd, files[k - 1].events = child.input, POLLIN end
  if F.poll(files, #children, math.ceil(seconds * 1000)) <= 0 then return out end
  for k, child in ipairs(children) do
    if bit.band(files[k - 1].revents, POLLIN + POLLHUP + POLLERR) ~= 0 then out[#out + 1] = child end
  end
  return out
end

-- ---- in the child --------------------------------------------------------------------------------------------------

local inbox = ""

---In a child: the next line from the parent; nil when there are no more.
---@return string?
function process.read_line()
  while true do
    local line, after = inbox:match "^([^\n]*)\n()"
    if line then
      inbox = inbox:sub(after)
      return line
    end
    local count = tonumber(F.read(IN, buffer, BLOCK))
    if count == 0 or count < 0 and ffi.errno() ~= EINTR then return nil end
    if count > 0 then inbox = inbox .. ffi.string(buffer, count) end
  end
end

---In a child: sends a line to the parent; returns false if the parent has ended.
function process.tell(line) return write_all(OUT, line .. "\n") end

---The number of threads of this process.
---@return integer
function process.threads() return #(host.entries "/proc/self/task" or { 0, 0 }) end

---Calls f in a forked copy of this process, and waits for its end. f must flush its output. Returns the fork's exit
---code (0, or 1 after an error in f, which is not printed), or nil and the signal that ended it.
---@param f fun()
---@return integer? code, integer? signal
function process.in_a_fork(f)
  local own = F.getpid()
  local pid = F.fork()
  if pid < 0 then is.fail("no process for a trial can be started: %s", problem_of()) end
  if pid > 0 then return wait_for(pid) end
  F.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
  local fine = F.getppid() == own and pcall(f)
  F._exit(fine and 0 or 1)
end

---In a child: makes this process end when its parent ends, and keeps processes that it starts from inheriting the
---pipes. Returns false if the parent has ended already.
---@return boolean
function process.join_parent()
  F.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
  F.signal(SIGPIPE, DEFAULT)
  local parent = tonumber(os.getenv "CQLUA_STUDY_PARENT" or "")
  -- what this process starts has no use for the pipes
  F.fcntl(IN, 2, ffi.cast("int", 1))
  F.fcntl(OUT, 2, ffi.cast("int", 1))
  return parent == F.getppid()
end

---Creates a folder in an existing one; returns false if it cannot.
---@param path string
---@return boolean
function process.make_folder(path) return F.mkdir(path, 511) == 0 end

---Redirects the output and errors of this process to a file, which is emptied. Errors: the file cannot be written.
---@param path string
function process.print_to(path)
  io.stdout:flush()
  local file = F.open(path, bit.bor(O_WRONLY, O_CREAT, O_TRUNC, O_APPEND), ffi.cast("int", 438))
  if file < 0 then is.fail("%s cannot be written: %s", path, problem_of()) end
  F.dup2(file, 1)
  F.dup2(file, 2)
  F.close(file)
end

return process
