-- tensor_file: what is saved comes back to the bit, and damaged files are refused with a sentence.
local ffi = require "ffi"
local T = require "cq.tensor"
local unchecked = require "tests.unchecked"

local path

before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function refused(f, ...)
  local ok, message = pcall(f)
  assert(not ok, "no error")
  message = tostring(message)
  assert(message:find "^[^\n]*tensor_file_spec.lua:%d+: ", "not at the user's line: " .. message)
  for _, words in ipairs { ... } do
    assert(message:find(words, 1, true), ("no %q in: %s"):format(words, message))
  end
end

local function read()
  local handle = assert(io.open(path, "rb"))
  local bytes = handle:read "*a"
  handle:close()
  return bytes
end

local function write(bytes)
  local handle = assert(io.open(path, "wb"))
  handle:write(bytes)
  handle:close()
end

local sample = {
  w = T.param({ { 1, 2 }, { 3, 4 / 3 } }, { min = 0, max = 10 }), free = T.param(2), text = "a\0b", yes = true,
  no = false,
  list = { 1, 2.5, { T { 7 } } }, empty = {}, nothing = T.zeros { 0, 3 }, strange = T { 0 / 0, math.huge, -0.0 },
  big = T.arange(1, 300000), ["a b"] = -1e300,
}

describe("a file of tensors", function()
  it("comes back to the bit", function()
    T.save(path, sample)
    local back = T.load(path)
    assert(back.w:equal(sample.w))
    assert(back.w.trainable and back.w.requires_grad)
    assert.equal(0, back.w.bounds.min)
    assert.equal(10, back.w.bounds.max)
    assert.is_nil(back.free.bounds.max)
    assert.equal("a\0b", back.text)
    assert.equal(true, back.yes)
    assert.equal(false, back.no)
    assert.equal(2.5, back.list[2])
    assert(back.list[3][1]:equal(T { 7 }))
    assert(not back.list[3][1].trainable)
    assert.same({}, back.empty)
    assert.same({ 0, 3 }, back.nothing:shape())
    assert(back.strange:equal(sample.strange))
    assert.equal(-math.huge, 1 / back.strange:get(3))
    assert(back.big:equal(sample.big))
    assert.equal(-1e300, back["a b"])
  end)

  it("has the same bytes when saved again", function()
    T.save(path, sample)
    local first = read()
    T.save(path, T.load(path))
    assert.equal(first, read())
  end)

  it("is refused wherever it is cut short", function()
    T.save(path, { a = T { 1, 2, 3 }, b = { c = "text", d = T.param(4) }, e = true })
    local bytes = read()
    for length = 0, #bytes - 1 do
      write(bytes:sub(1, length))
      refused(function() T.load(path) end, path)
    end
    write(bytes .. "x")
    refused(function() T.load(path) end, "it has 1 byte after its end")
  end)

  it("is refused, and does not crash, wherever a byte is damaged in its structure", function()
    T.save(path, { a = T { 1, 2, 3 }, b = { c = "text" } })
    local bytes = read()
    for at = 1, #bytes do
      write(bytes:sub(1, at - 1) .. string.char((bytes:byte(at) + 129) % 256) .. bytes:sub(at + 1))
      local ok, message = pcall(T.load, path)
      assert(ok or tostring(message):find(path, 1, true) or tostring(message):find("shape", 1, true), tostring(message))
    end
  end)

  -- LuaJIT takes a NaN with these bits for a value of another type
  local forged = "\1\2\3\4\5\128\253\255"

  -- the file with these bytes in place of those of a number
  local function put(number, bytes)
    local all, wanted = read(), ffi.string(ffi.new("double[1]", number), 8)
    local from, to = all:find(wanted, 1, true)
    assert(from, "the file does not hold " .. number)
    write(all:sub(1, from - 1) .. bytes .. all:sub(to + 1))
  end

  it("gives a NaN of any bits as a NaN", function()
    T.save(path, { number = 17, list = { w = T { 1, 18, 3 } } })
    write(unchecked(read()))
    put(17, forged)
    put(18, forged)
    local back = T.load(path)
    assert.equal("number", type(back.number))
    assert(back.number ~= back.number)
    assert(back.list.w:get(2) ~= back.list.w:get(2))
    assert.equal("number", type(back.list.w:data()[1]))
    T.save(path, { w = T { 1, 18, 3 } }, "float32")
    local all, wanted = unchecked(read()), ffi.string(ffi.new("float[1]", 18), 4)
    local at = all:find(wanted, 1, true)
    write(all:sub(1, at - 1) .. "\255\255\255\255" .. all:sub(at + 4))
    back = T.load(path).w
    assert(back:get(2) ~= back:get(2) and back:get(1) == 1 and back:get(3) == 3)
    collectgarbage()
    T.save(path, { [17] = 1 })
    put(17, forged)
    refused(function() T.load(path) end, path, "a key that is nan")
  end)

  it("names itself and the param that is NaN or beyond its bounds", function()
    local function saved() T.save(path, { net = { w = T.param({ 1, 17 }, { min = 0.5, max = 40 }) } }) end
    saved()
    put(17, forged)
    refused(function() T.load(path) end, path, "param net.w: element 2 is nan")
    saved()
    put(17, ffi.string(ffi.new("double[1]", 41), 8))
    refused(function() T.load(path) end, path, "param net.w: element 2 is 41, outside its bounds 0.5 to 40")
    saved()
    put(0.5, forged)
    refused(function() T.load(path) end, path, "a bound that is nan")
    saved()
    put(40, ffi.string(ffi.new("double[1]", 0.25), 8))
    refused(function() T.load(path) end, path, "min 0.5 is above max 0.25")
  end)

  it("has no table within a hundred others, and no entry twice", function()
    local deep = {}
    for _ = 1, 98 do deep = { deep } end
    T.save(path, { deep })
    T.load(path)
    refused(function() T.save(path, { { deep } }) end, "lies within 100 tables")
    local head, tail = "cqtensor\1\0\0\0", ("\1\0\0\0\4\0\0\0\0\5"):rep(20000) .. "\0\0\0\0"
    write(head .. tail .. ffi.string(ffi.new("uint64_t[1]", #head + #tail), 8))
    refused(function() T.load(path) end, path, "more than 100 tables")
    T.save(path, { a = 1, b = 2 })
    write((read():gsub("b", "a")))
    refused(function() T.load(path) end, path, "a second entry a")
  end)

  it("in float32 takes half of the bytes, and next to none of equal numbers", function()
    local third = T.param({ 0.7, 1.1, 20 }, { min = 0.7, max = 20 })         -- 0.7 is rounded down
    T.save(path, { third = third, equal = T.full({ 100, 100 }, 0.1), free = T.param { 1, 2 },
      odd = T { 0 / 0, 1, -0.0 }, none = T.zeros { 0, 2 }, big = T.arange(1, 10000) }, "float32")
    local bytes = read()
    assert(#bytes < 41000, #bytes)
    local back = T.load(path)
    assert.equal(0.1, back.equal:get(77, 3))
    -- what was at a bound is there still
    assert.equal(0.7, back.third:get(1))
    assert(math.abs(back.third:get(2) - 1.1) < 1e-7 and back.third:get(2) ~= 1.1)
    assert.equal(20, back.third.bounds.max)
    assert(back.free.trainable and back.free.bounds.min == nil)
    assert(back.odd:get(1) ~= back.odd:get(1) and 1 / back.odd:get(3) == -math.huge)
    assert.same({ 0, 2 }, back.none:shape())
    assert(back.big:equal(T.arange(1, 10000)))
    for count = 1, #bytes - 1, 13 do
      write(bytes:sub(1, count))
      refused(function() T.load(path) end, path)
    end
    -- few bytes cannot ask for much memory
    T.save(path, { equal = T.full({ 3, 3 }, 0.1) }, "float32")
    local three = "\3" .. ("\0"):rep(7)
    write((unchecked(read()):gsub(three .. three, ("\0\0\0\64\0\0\0\0"):rep(2))))
    refused(function() T.load(path) end, "equal numbers at byte")
    refused(function() T.save(path, {}, "float16") end, "precision must be one of")
  end)

  it("is refused with a single byte changed, and read as earlier programs wrote it", function()
    local value = { w = T { 1, 2, 3 }, deep = { name = "walker", on = true, rate = 0.1 } }
    T.save(path, value)
    local bytes = read()
    for at = 1, #bytes do
      for _, by in ipairs { 1, 128 } do
        write(bytes:sub(1, at - 1) .. string.char((bytes:byte(at) + by) % 256) .. bytes:sub(at + 1))
        -- a version of 1 or 2 has no checksum, but its length is wrong then
        refused(function() T.load(path) end, path)
      end
    end
    write(unchecked(bytes))
    assert.same({ "walker", true, 0.1 }, { T.load(path).deep.name, T.load(path).deep.on, T.load(path).deep.rate })
    assert(T.load(path).w:equal(value.w))
  end)

  it("is of whole words, whatever its memory held before", function()
    for length = 1, 16 do
      T.full({ 3000 }, 7)
      collectgarbage()
      T.save(path, { name = ("x"):rep(20000 + length) })
      assert.equal(20000 + length, #T.load(path).name)
    end
  end)

  it("has no ending of another format, and what reads such a file is named", function()
    for ending, words in pairs {
      npz = { "would be no .npz file, for its format is cqlua's own", "rollout:export and state:save write .npz" },
      csv = { "cq.csv.save writes columns of numbers" }, JSON = { "would be no .json file", "the ending .bin" },
    } do
      refused(function() T.save(path .. "." .. ending, { x = T.ones { 2 } }) end, unpack(words))
    end
    os.remove(path)
    path = path .. ".csv"
    write "a,b\n1,2\n3,4\n"
    refused(function() T.load(path) end, "does not begin with cqtensor; cq.csv reads columns of numbers")
    os.remove(path)
    path = path:gsub("csv$", "npz")
    write "PK\3\4 and more"
    refused(function() T.load(path) end, "does not begin with cqtensor; of NumPy's files it reads .npy, one array each")
  end)

  it("says what it is when it is something else", function()
    write("a text that is no tensor at all")
    refused(function() T.load(path) end, "not a file of tensors")
    T.save(path, {})
    write((read():gsub("^cqtensor\3", "cqtensor\9")))
    refused(function() T.load(path) end, "version 9", "version 1 to 3")
    refused(function() T.load(path .. ".absent") end, "No such file")
    refused(function() T.load "tests" end, "tests")
  end)

  it("refuses what it cannot hold", function()
    refused(function() T.save(path, { f = print }) end, "the table.f", "a function")
    refused(function() T.save(path, T { 1 }) end, "needs a table")
    local loop = {}
    loop.again = loop
    refused(function() T.save(path, loop) end, "contains itself")
    refused(function() T.save(path, { [true] = 1 }) end, "keys")
  end)

  it("is replaced whole or not at all", function()
    T.save(path, { a = 1 })
    local before = read()
    refused(function() T.save(path .. "/below", { a = 2 }) end, "cannot be opened", "Not a directory")
    assert.equal(before, read())
    T.save(path, { a = 3 })
    assert.equal(3, T.load(path).a)
  end)

  it("is left as it was when the disk is full", function()
    T.save(path, { a = 1 })
    local before = read()
    -- files of this process may have 8 blocks, as on a disk with no more room
    local script = ("local T = require [[cq.tensor]] print(pcall(T.save, [[%s]], { x = T.zeros(100000) }))"):format(
      path)
    local command = ("trap '' XFSZ; ulimit -f 8; '%s' -e '%s' 2>&1"):format(require("cq.host").executable, script)
    local pipe = io.popen(command)
    local said = pipe:read "*a"
    pipe:close()
    assert(said:find "^false" and said:find("cannot be written", 1, true), said)
    assert.equal(before, read())
    assert.is_nil(io.popen(("ls '%s'.*.part 2>/dev/null"):format(path)):read "*l")
  end)
end)

describe("memory of a tensor that C code filled with NaNs of any bits", function()
  it("is read as numbers", function()
    local t = T.zeros { 2, 2 }
    local pointer = t:data()
    ffi.copy(pointer, ("\1\2\3\4\5\128\253\255"):rep(4), 32)   -- without a length a zero is copied too
    local one = T.zeros { 1 }
    ffi.copy(one:data(), pointer, 8)
    assert.equal("number", type(one:item()))
    assert.equal("number", type(t:get(1, 2)))
    assert.equal("number", type(t:totable()[2][1]))
    assert(tostring(t):find "nan")
    assert.is_true(t:equal(t:copy()))
    assert.is_false(t:finite())
    assert.is_false(one < T(1))
    refused(function() T.param(t) end, "element 1 is nan")
    assert.equal("number", type(t:data()[3]))
    collectgarbage()
  end)
end)
