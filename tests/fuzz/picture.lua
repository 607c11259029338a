-- picture: PNG files. Most changed ones get right checksums again, or no change would pass them.
local bit = require "bit"
local image = require "cq.base.image"
local mutate = require "tests.fuzz.mutate"
local verdict = require "tests.fuzz.verdict"

local bxor, band, rshift = bit.bxor, bit.band, bit.rshift
local crc_of_byte = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = bxor(rshift(c, 1), band(c, 1) == 1 and 0xedb88320 or 0) end
  crc_of_byte[i] = c
end

local function big_endian(n)
  return string.char(band(rshift(n, 24), 255), band(rshift(n, 16), 255), band(rshift(n, 8), 255), band(n, 255))
end

local function checksum(s)
  local crc = -1
  for i = 1, #s do crc = bxor(rshift(crc, 8), crc_of_byte[band(bxor(crc, s:byte(i)), 255)]) end
  return big_endian(bit.bnot(crc))
end

local signature = "\137PNG\r\n\26\n"

local function chunk(name, data) return big_endian(#data) .. name .. data .. checksum(name .. data) end

local function with_checksums(s)
  local parts, at = { s:sub(1, 8) }, 9
  while at + 11 <= #s do
    local a, b, c, d = s:byte(at, at + 3)
    local length = ((a * 256 + b) * 256 + c) * 256 + d
    if at + 11 + length > #s then break end
    parts[#parts + 1] = s:sub(at, at + 7 + length) .. checksum(s:sub(at + 4, at + 7 + length))
    at = at + 12 + length
  end
  parts[#parts + 1] = s:sub(at)
  return table.concat(parts)
end

-- rows as they are, in one stored block of deflate
local function stored(rows)
  local low, high = #rows % 256, math.floor(#rows / 256)
  return "\120\1\1" .. string.char(low, high, 255 - low, 255 - high) .. rows .. "\0\0\0\1"
end

-- size, bits of a channel, kind of colours, interlaced; chunks between header and pixels
local function picture(width, height, bits, colours, interlaced, rows, between)
  local header = big_endian(width) .. big_endian(height) .. string.char(bits, colours, 0, 0, interlaced)
  return signature .. chunk("IHDR", header) .. (between or "") .. chunk("IDAT", stored(rows)) .. chunk("IEND", "")
end

local palette = chunk("PLTE", "\255\0\0\0\255\0\0\0\255\9\9\9") .. chunk("tRNS", "\255\0\128")

-- packed as the program writes them
local function packed(folder)
  local path = folder .. "/seed.png"
  image.write { path = path, width = 9, height = 7, pixel = function(x, y) return x * 20, y * 30, x * y, 255 - x end }
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

local function read(path)
  local fine, result = pcall(image.read, path, "cq.Shape.image")
  if not fine then return false, verdict.of_error(result, "image", path) end
  local sum, count = 0, 4 * result.width * result.height
  for k = 0, count - 1, math.max(1, math.floor(count / 64)) do sum = sum + result.pixels[k] end
  return true, sum > 255 * 129 and "pixels beyond 255" or nil
end

return {
  png = {
    ending = "png", read = read, repair = function(s) return mutate.below(8) > 1 and with_checksums(s) or s end,
    seeds = function(folder)
      return {
        packed(folder),
        picture(2, 2, 8, 6, 0, ("\0" .. ("\1\2\3\4"):rep(2)):rep(2)),
        picture(4, 3, 8, 2, 0, "\1\9\8\7\6\5\4\3\2\1\0\1\2" .. "\2\9\8\7\6\5\4\3\2\1\0\1\2"
          .. "\4\9\8\7\6\5\4\3\2\1\0\1\2"),
        picture(9, 2, 1, 3, 0, "\0\85\128\3\85\128", palette),
        picture(5, 2, 4, 0, 0, "\0\18\52\80\4\18\52\80", chunk("tRNS", "\0\5")),
        picture(2, 2, 16, 4, 0, "\0\1\2\3\4\5\6\7\8\3\1\2\3\4\5\6\7\8"),
        picture(3, 3, 8, 0, 1, "\0\1\0\2\0\3\0\4\5\0\6\0\7\8\9"),
        picture(3, 3, 2, 3, 1, "\0\0\0\64\0\128\0\0\0\64\0\1\0\2\0\3\0\4", palette),
      }
    end,
    tokens = { "IDAT", "IHDR", "PLTE", "tRNS", "IEND", "CgBI", "\0\0\0\0IDAT", "\0\0\0\13", "\0\0\64\0", "\0\0\0\1",
      "\120\156", "\0\0\255\255", "\3\0" },
  },
}
