-- served env: cqlua env: frames over standard input and output, what they hold beside an environment of this process,
-- and what mangled ones get. tests/python has the other side for Gymnasium.
local ffi = require "ffi"
local cq = require "cq"
local json = require "cq.base.json"
local process = require "tests.process"
local says = require("tests.sentence").says

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function bytes_of(kind, ...)
  local numbers = ffi.new(kind, select("#", ...), { ... })
  return ffi.string(numbers, ffi.sizeof(numbers))
end

local function frame(name, body)
  return name .. (" "):rep(8 - #name) .. bytes_of("uint64_t[?]", #body) .. body
end

local HELLO = frame("hello", bytes_of("uint64_t[?]", 1))

-- the frames that cqlua env answers
local function serve(path, requests, words)
  process.write(folder .. "/requests", table.concat(requests))
  local arguments = { "env", path }
  for _, word in ipairs(words or {}) do arguments[#arguments + 1] = word end
  local result = process.cqlua(arguments, { after = "< " .. folder .. "/requests" })
  local replies, at = {}, 1
  while at <= #result.out do
    local count = tonumber(ffi.cast("const uint64_t *", result.out:sub(at + 8, at + 15))[0])
    replies[#replies + 1] = { name = result.out:sub(at, at + 7):match "^%l+",
      body = result.out:sub(at + 16, at + 15 + count) }
    at = at + 16 + count
  end
  return replies, result
end

local function script(body)
  return process.write(folder .. "/script.lua", [[
local cq, scene = require "cq", require "tests.scene"
print "of the script"
io.write "and more\n"
local env = cq.Env { world = scene.world(scene.robot()), steps = 2, scenes = cq.option("scenes", 3),
  observer = function(state) return state:motion { "foot", "trunk" } end,
  reset = function(random) return nil, random:uniform { 1 } end,
  reward = function(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end }
]] .. (body or "return env"))
end

local function numbers_of(bytes)
  local from, out = ffi.cast("const double *", bytes), {}
  for k = 1, #bytes / 8 do out[k] = from[k - 1] end
  return out
end

describe("cqlua env", function()
  it("answers as the environment does", function()
    local path, actions = script(), { 0.1, -0.5, 0.2, 0.3, 0.9, -1 }
    local step = frame("step", bytes_of("double[?]", unpack(actions)))
    local replies, result = serve(path, { HELLO, frame("reset", bytes_of("int64_t[?]", 5)), step, step,
      frame("reset", "") })
    assert.equal(0, result.code)
    assert.equal("of the script\nand more\n", result.err)
    assert.same({ protocol = 1, cqlua = require("cq.host").version, scenes = 3, steps = 2, observations = 9,
      actions = 2 }, json.decode(replies[1].body))

    local chunk = assert(loadfile(path))
    local silent = setmetatable({ print = function() end, io = { write = function() end } }, { __index = _G })
    local env = setfenv(chunk, silent)()
    local function same(reply, name, ...)
      assert.equal(name, reply.name)
      local wanted = {}
      for _, part in ipairs { ... } do
        for _, number in ipairs(part:flatten():totable()) do wanted[#wanted + 1] = number end
      end
      assert.same(wanted, numbers_of(reply.body))
    end
    same(replies[2], "reset", env:reset { seed = 5 })
    local u = cq.tensor(actions):reshape { 3, 2 }
    for k = 1, 2 do
      local z, reward, terminated, truncated, info = env:step(u)
      same(replies[2 + k], "step", z, reward, terminated, truncated, info.final_observation, info.failed,
        info.episode_return, info.episode_length)
      assert.equal(k == 2 and 3 or 0, truncated:sum():item())
    end
    same(replies[5], "reset", env:reset())
    assert.equal(5, #replies)
  end)

  it("gives the script its options, and its errors to the other side", function()
    assert.equal(1, json.decode(serve(script(), { HELLO }, { "--scenes", "1" })[1].body).scenes)
    local replies, result = serve(script "error 'no such body'", { HELLO })
    assert.equal(1, result.code)
    assert.equal("error", replies[1].name)
    says(replies[1].body, "script.lua:8: no such body")
    says(result.err, "script.lua:8: no such body")
    for body, got in pairs { ["return 3"] = "3", [""] = "nothing", ["return env.world"] = "a cq.World" } do
      replies, result = serve(script(body), { HELLO })
      assert.equal(2, result.code)
      says(replies[1].body, "script.lua must return the cq.Env that is to be served, as return env; it returned "
        .. got)
    end
    replies, result = serve(folder .. "/none.lua", { HELLO })
    assert.equal(2, result.code)
    says(replies[1].body, "none.lua: No such file")
  end)

  it("refuses requests in a sentence, and goes on", function()
    local step = frame("step", bytes_of("double[?]", 0, 0, 0, 0, 0, 0))
    local replies, result = serve(script(), { step, HELLO, step, frame("reset", ""), frame("step", "12345678"),
      frame("step", bytes_of("double[?]", 0, 0, 0, 0, 0 / 0, 0)), frame("reset", "123"), frame("jump", ""), step })
    assert.equal(0, result.code)
    says(replies[1].body, "the first frame must be hello, got step")
    assert.equal("hello", replies[2].name)
    says(replies[3].body, "the scenes have not begun; call env:reset() first")
    assert.equal("reset", replies[4].name)
    says(replies[5].body, "step takes actions {3, 2} as 48 bytes of float64, got 8 bytes")
    says(replies[6].body, "actions must be finite, got nan in scene 3")
    says(replies[7].body, "reset takes a seed of 8 bytes, or nothing, got 3 bytes")
    says(replies[8].body, "\"jump\" is none of hello, reset and step")
    assert.equal("step", replies[9].name)
  end)

  it("refuses other versions and other input", function()
    local replies = serve(script(), { frame("hello", bytes_of("uint64_t[?]", 2)) })
    says(replies[1].body, "speaks version 1 of the frames, and version 2 was asked for; take the cqlua_env.py")
    local function ends(input, sentence)
      local _, result = serve(script(), { HELLO, input })
      assert.equal(1, result.code)
      says(result.err, sentence)
      assert.is_nil(result.err:find("traceback", 1, true), result.err)
    end
    ends("step", "the input ends within a frame")
    ends(frame("step", "123456789"):sub(1, -2), "the input ends within a frame")
    ends("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is the head of no frame")
    assert.equal(0, select(2, serve(script(), {})).code)
    says(process.cqlua({ "env" }).err, "env needs the script that returns a cq.Env, got nothing")
  end)

  it("ends at once when it is asked to", function()
    for name, number in pairs { INT = 2, TERM = 15 } do
      local path = script(('io.popen("kill -%s $PPID"):close() return env'):format(name))
      assert.equal(128 + number, process.cqlua({ "env", path }, { after = "</dev/zero" }).code)
    end
  end)
end)
