-- params: files of tensors. What is read is made of whole values, params lie within their bounds, and it can be saved
-- and read again to the same bytes.
local T = require "cq.tensor"
local mutate = require "tests.fuzz.mutate"
local unchecked = require "tests.unchecked"
local verdict = require "tests.fuzz.verdict"

local function bytes_of(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

local function look(value, path)
  if T.is_tensor(value) then
    local count, data = 1, value:data()
    for _, size in ipairs(value:shape()) do count = count * size end
    if count ~= value:size() then return path .. " has a shape that is not its size" end
    local least, most = -math.huge, math.huge
    if value.trainable then least, most = value.bounds.min or least, value.bounds.max or most end
    for k = 0, count - 1 do
      local x = data[k]
      if type(x) ~= "number" then return path .. " holds an element that is no number" end
      if value.trainable and not (x >= least and x <= most) then return path .. " is a param beyond its bounds" end
    end
    return nil, tostring(value)
  elseif type(value) == "table" then
    for key, entry in pairs(value) do
      if type(key) ~= "number" and type(key) ~= "string" then return path .. " has a key that is no name" end
      local problem = look(entry, path .. "." .. tostring(key))
      if problem then return problem end
    end
  elseif type(value) ~= "number" and type(value) ~= "string" and type(value) ~= "boolean" then
    return path .. " is a " .. type(value)
  end
end

local function read(path)
  local fine, result = pcall(T.load, path)
  if not fine then return false, verdict.of_error(result, "cq.load", path) end
  local problem = look(result, "the table")
  if problem then return true, problem end
  if mutate.below(4) > 1 then return true end
  local again = path .. ".again"
  T.save(again, result)
  local first = bytes_of(again)
  T.save(again, T.load(again))
  return true, first ~= bytes_of(again) and "what was read and saved is not what it is when read and saved again" or nil
end

-- a file ends with its length
local function with_length(s)
  if #s < 8 or mutate.below(8) == 1 then return s end
  local size = #s - 8
  return s:sub(1, size) .. string.char(size % 256, math.floor(size / 256)) .. ("\0"):rep(6)
end

return {
  params = {
    ending = "bin", read = read, repair = with_length,
    seeds = function(folder)
      local samples = {
        { a = T { 1, 2, 3 }, b = { c = "text", d = T.param(4, { min = 0, max = 9 }) }, e = true, f = 0.5 },
        { w = T.param({ { 1, 2 }, { 3, 4 } }), nothing = T.zeros { 0, 3 }, strange = T { 0 / 0, math.huge, -0.0 },
          list = { 1, 2, { {} } } },
        { [1] = 0 / 0, [-0.5] = false, [""] = "", deep = { { { { { { T(1) } } } } } } },
        {},
      }
      for i, sample in ipairs(samples) do
        local path = folder .. "/seed.bin"
        T.save(path, sample)
        samples[i] = unchecked(bytes_of(path))
      end
      return samples
    end,
    tokens = {
      "cqtensor", "\2\0\0\0", "\2\1", "\3", "\4\1\0\0\0a", "\5\1\0\0\0", "\6\0", "\6\1\1\0\0\0\0\0\0\0", "\7",
      "\5\0\0\0\0", "\3\0\0\0\0\0\0\248\127",
    },
  },
}
