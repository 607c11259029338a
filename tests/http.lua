-- http: requests to a port of this machine, for tests of what listens there.
local ffi = require "ffi"

ffi.cdef [[
int socket(int domain, int type, int protocol);
int connect(int socket, const void *address, unsigned int length);
long send(int socket, const void *bytes, unsigned long size, int flags);
long recv(int socket, void *bytes, unsigned long size, int flags);
int setsockopt(int socket, int level, int name, const void *value, unsigned int length);
int close(int file);
]]

local C = ffi.C
local INET, STREAM, SOCKET, TIMEOUT = 2, 1, 1, 20

local http = {}

-- a connection to a port, whose reads end after some seconds
local function open(port, seconds)
  local socket = C.socket(INET, STREAM, 0)
  local limit = ffi.new("long[2]", seconds, 0)
  C.setsockopt(socket, SOCKET, TIMEOUT, limit, ffi.sizeof(limit))
  local address = ffi.new("uint8_t[16]", { INET, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
  if C.connect(socket, address, 16) ~= 0 then
    C.close(socket)
    return nil
  end
  return socket
end

---Sends a request; what comes until the other side closes, until `enough` is in it, or until nothing comes for some
---seconds.
---@param port integer
---@param line string             "GET /?token=..."
---@param headers? table<string, string>   beside Host
---@param enough? string
---@return string
function http.ask(port, line, headers, enough)
  local socket, parts = assert(open(port, 30), "nobody listens"), { line .. " HTTP/1.1\r\n" }
  local all = { Host = "127.0.0.1:" .. port }
  for name, value in pairs(headers or {}) do all[name] = value end
  for name, value in pairs(all) do parts[#parts + 1] = ("%s: %s\r\n"):format(name, value) end
  local request = table.concat(parts) .. "\r\n"
  C.send(socket, request, #request, 0)
  local buffer, out = ffi.new "uint8_t[65536]", ""
  repeat
    local got = tonumber(C.recv(socket, buffer, 65536, 0))
    if got > 0 then out = out .. ffi.string(buffer, got) end
  until got <= 0 or enough and out:find(enough, 1, true)
  C.close(socket)
  return out
end

return http
