-- zlib: bytes made smaller, by the system's libz, which is loaded when a report asks for it.
local ffi = require "ffi"
local is = require "cq.base.schema"
local library = require "cq.base.library"

local declarations = [[
typedef struct cq_z_stream {
  const uint8_t *next_in; unsigned int avail_in; unsigned long total_in;
  uint8_t *next_out; unsigned int avail_out; unsigned long total_out;
  const char *message; void *state, *alloc, *release, *opaque;
  int data_type; unsigned long adler, reserved;
} cq_z_stream;
int deflateInit2_(cq_z_stream *stream, int level, int method, int bits, int memory, int strategy, const char *version,
                  int size);
int deflate(cq_z_stream *stream, int flush);
int deflateParams(cq_z_stream *stream, int level, int strategy);
int deflateEnd(cq_z_stream *stream);
unsigned long deflateBound(cq_z_stream *stream, unsigned long count);
const char *zlibVersion(void);
]]

local LEVEL, METHOD, WINDOW, MEMORY = 6, 8, 15, 9      -- level 9 takes three times as long for one percent
local DEFAULT, HUFFMAN_ONLY = 0, 2                     -- find repetitions, or only give frequent bytes few bits
local CONTINUE, FINISH, STREAM_END = 0, 4, 1
local MARGIN = 4096                                    -- bytes that a change of the strategy may take

local Z                              ---@type ffi.namespace*  once it is loaded

-- `count` bytes compressed by deflate, as a string: the first `noisy` of them by the given strategy, the rest by the
-- default one.
local function deflated(bytes, count, noisy, strategy)
  Z = Z or library.load { names = { "z", "libz.so.1" }, declarations = declarations, package = "zlib1g",
    purpose = "a report" }
  local stream = ffi.new "cq_z_stream"
  -- Raises an error unless zlib returned the wanted status.
  local function check(status, wanted)
    if status ~= wanted then is.fail("zlib could not compress %d bytes: status %d", count, status) end
  end
  check(Z.deflateInit2_(stream, LEVEL, METHOD, WINDOW, MEMORY, strategy, Z.zlibVersion(), ffi.sizeof(stream)), 0)
  local room = tonumber(Z.deflateBound(stream, count)) + MARGIN
  local out = ffi.new("uint8_t[?]", room)
  stream.next_in, stream.avail_in, stream.next_out, stream.avail_out = bytes, noisy, out, room
  if noisy > 0 then
    check(Z.deflate(stream, CONTINUE), 0)
    check(Z.deflateParams(stream, LEVEL, DEFAULT), 0)
  end
  stream.avail_in = stream.avail_in + (count - noisy)
  local status = Z.deflate(stream, FINISH)
  local size = tonumber(stream.total_out)
  Z.deflateEnd(stream)
  check(status, STREAM_END)
  return ffi.string(out, size)
end

local zlib = {}

---Compresses bytes into the format of RFC 1950, which browsers call "deflate".
---@param bytes ffi.cdata*     uint8_t[count]
---@param count integer
---@param noisy? integer       number of first bytes in which repetitions are chance: they are also tried without a
---  search for repetitions, and the shorter result is taken
---@return string
function zlib.compress(bytes, count, noisy)
  local plain = deflated(bytes, count, 0, DEFAULT)
  if not noisy then return plain end
  local other = deflated(bytes, count, noisy, HUFFMAN_ONLY)
  return #other < #plain and other or plain
end

return zlib
