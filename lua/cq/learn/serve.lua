-- serve: an environment for another program, over standard input and output (cqlua env). docs/python.md has the frames.
--
-- A frame is a name of 8 bytes, filled up with spaces, the number of bytes that follow as uint64, and these. All is
-- little-endian. Each request gets one reply, of its own name, or "error" with a sentence.
local ffi = require "ffi"
local host = require "cq.host"
local json = require "cq.base.json"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

ffi.cdef [[
long read(int file, void *out, size_t bytes);
long write(int file, const void *from, size_t bytes);
int dup(int file);
int dup2(int from, int to);
char *strerror(int number);
void *signal(int number, void *handler);
]]

local F = ffi.C
local IN, OUT, ERR, EINTR = 0, 1, 2, 4
local SIGHUP, SIGINT, SIGTERM = 1, 2, 15
local LARGEST = 2 ^ 30             -- bytes of a frame; more is none

local serve = { PROTOCOL = 1 }

-- Raises an error for the other program, without a position in the script. ...: as string.format takes it.
local function refuse(...) error(schema.remember("cqlua env: " .. (...):format(select(2, ...))), 0) end

-- The operating system's words for the last failure.
local function why() return ffi.string(F.strerror(ffi.errno())) end

-- ---- frames ---------------------------------------------------------------------------------------------------------

---@class cq.Frames
---@field out integer           what replies are written to
local Frames = {}
Frames.__index = Frames

---Frames over standard input and output. What the script prints goes to standard error from now on. Nothing is there to
---be saved, so Ctrl-C, SIGTERM and SIGHUP end the program at once.
---@return cq.Frames
function serve.frames()
  for _, number in ipairs { SIGHUP, SIGINT, SIGTERM } do F.signal(number, nil) end
  io.stdout:flush()
  local out = F.dup(OUT)
  if out < 0 or F.dup2(ERR, OUT) < 0 then
    refuse("standard output cannot be taken: %s", why())
  end
  return setmetatable({ out = out }, Frames)
end

local header = ffi.typeof "struct { char name[8]; uint64_t bytes; }"

-- Reads `bytes` bytes from the input into memory and returns true. false: the input ends before the first of them.
-- Errors: it ends within them.
local function fill(memory, bytes)
  local done = 0
  while done < bytes do
    local got = tonumber(F.read(IN, ffi.cast("char *", memory) + done, bytes - done))
    if got == 0 and done == 0 then return false end
    if got == 0 then refuse "the input ends within a frame" end
    if got < 0 and ffi.errno() ~= EINTR then
      refuse("the input cannot be read: %s", why())
    end
    done = done + math.max(got, 0)
  end
  return true
end

---The next request; nil where the input ends. Errors: bytes that are no frame.
---@return string? name, string? body
function Frames:receive()
  local head = header()
  if not fill(head, ffi.sizeof(head)) then return nil end
  local name, bytes = ffi.string(head.name, 8), tonumber(head.bytes)
  if not name:find "^%l+ *$" or bytes > LARGEST then
    refuse("%s is the head of no frame", text.describe(ffi.string(head, 16)))
  end
  local body = ffi.new("char[?]", bytes)
  if bytes > 0 and not fill(body, bytes) then refuse "the input ends within a frame" end
  return name:match "^%l+", ffi.string(body, bytes)
end

-- Writes all bytes to a file descriptor. Errors: it cannot be written.
local function put(file, memory, bytes)
  local done = 0
  while done < bytes do
    local put_now = tonumber(F.write(file, ffi.cast("const char *", memory) + done, bytes - done))
    if put_now < 0 and ffi.errno() ~= EINTR then
      refuse("the output cannot be written: %s", why())
    end
    done = done + math.max(put_now, 0)
  end
end

---Writes one message: a head with name and length, then the body. Errors: the other program is gone.
---@param name string             at most 8 characters
---@param body string
function Frames:send(name, body)
  local head = header()
  ffi.copy(head.name, name .. (" "):rep(8 - #name), 8)
  head.bytes = #body
  put(self.out, ffi.string(head, ffi.sizeof(head)) .. body, ffi.sizeof(head) + #body)
end

-- ---- requests -------------------------------------------------------------------------------------------------------

-- The numbers of a tensor, float64, as a string of bytes.
local function bytes_of(tensor) return ffi.string(tensor.pointer, tensor.count * 8) end

local requests = {}

-- Answers the first frame, whose body is the version of the protocol: JSON that describes the environment. Errors:
-- another version.
function requests.hello(env, body)
  local asked = #body == 8 and tonumber(ffi.cast("const uint64_t *", body)[0])
  if asked ~= serve.PROTOCOL then
    refuse("this is cqlua %s, which speaks version %d of the frames, and %s was asked for; take the "
      .. "cqlua_env.py that came with this cqlua", host.version, serve.PROTOCOL, asked and "version " .. asked
      or text.count(#body, "byte"))
  end
  return json.encode {
    protocol = serve.PROTOCOL, cqlua = host.version, scenes = env.scenes, steps = env.steps,
    observations = env.observation_space.shape[1], actions = env.action_space.shape[1],
  }
end

-- Answers a reset, whose body is a seed or empty: returns the observations of all scenes as bytes of float64. Errors: a
-- body of a wrong length.
function requests.reset(env, body)
  if #body ~= 0 and #body ~= 8 then
    refuse("reset takes a seed of 8 bytes, or nothing, got %d bytes", #body)
  end
  local seed = #body == 8 and tonumber(ffi.cast("const int64_t *", body)[0]) or nil
  return bytes_of(env:reset { seed = seed })
end

-- Answers a step of all scenes, whose body is actions as float64: returns observations, rewards, terminated, truncated,
-- last observations, failed, returns and lengths of episodes, in this order, as bytes of float64. Errors: a body of a
-- wrong length.
function requests.step(env, body)
  local width = env.action_space.shape[1]
  if #body ~= env.scenes * width * 8 then
    refuse("step takes actions {%d, %d} as %d bytes of float64, got %d bytes", env.scenes, width,
      env.scenes * width * 8, #body)
  end
  local actions = T.empty { env.scenes, width }
  ffi.copy(actions.pointer, body, #body)
  local z, reward, terminated, truncated, info = env:step(actions)
  local parts = {}
  for k, part in ipairs { z, reward, terminated, truncated, info.final_observation, info.failed, info.episode_return,
    info.episode_length } do parts[k] = bytes_of(part) end
  return table.concat(parts)
end

---Answers requests until the input ends. The first must be hello. Requests that are wrong are answered with an error,
---and the next one is read.
---@param frames cq.Frames
---@param env cq.Env
function serve.run(frames, env)
  local greeted = false
  for name, body in function() return frames:receive() end do
    local answer = requests[name]
    local fine, reply = pcall(function()
      if not answer then refuse("%s is none of hello, reset and step", text.describe(name)) end
      if not greeted and name ~= "hello" then refuse("the first frame must be hello, got %s", name) end
      return answer(env, body)
    end)
    greeted = greeted or fine and name == "hello"
    frames:send(fine and name or "error", fine and reply or tostring(reply))
  end
end

return serve
