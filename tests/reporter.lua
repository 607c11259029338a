-- reporter: busted's output handler for tests/run.lua: failures in full, then one line of counts that is read back.
-- A test that ends well without having asserted anything is counted as failed: it cannot fail.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local passed, failed, pending, seen = 0, 0, 0, {}

  -- every use of assert goes through its metatable: assert(x), assert.same(...)
  local asserted = 0
  local meta = getmetatable(require "luassert")
  local index, call = meta.__index, meta.__call
  meta.__index = function(self, key)
    asserted = asserted + 1
    if type(index) == "function" then return index(self, key) end
    return index[key]
  end
  meta.__call = function(self, ...)
    asserted = asserted + 1
    return call(self, ...)
  end

  local function tell(name, message)
    failed = failed + 1
    io.write("FAILED  ", name, "\n    ", (tostring(message):gsub("\n", "\n    ")), "\n")
  end

  local function sentence(message)
    if type(message) == "string" then return message end
    if type(message) == "table" and message.message then return tostring(message.message) end
    return tostring(message)
  end

  -- failures of a test and of what stands around it (a file that does not load, a broken setup)
  local function on_problem(element, _, message, trace)
    if seen[element] then return nil, true end
    seen[element] = true
    local place = type(trace) == "table" and trace.short_src and ("%s:%s: "):format(trace.short_src, trace.currentline)
      or ""
    local text = sentence(message)
    if text:sub(1, #place) == place then place = "" end
    tell(handler.getFullName(element), place .. text)
    return nil, true
  end

  function handler.test_start()
    asserted = 0
    return nil, true
  end

  function handler.test_end(element, _, status)
    if status == "success" and asserted == 0 then
      tell(handler.getFullName(element), "it asserted nothing")
    elseif status == "success" then
      passed = passed + 1
    elseif status == "pending" then
      pending = pending + 1
      io.write("pending ", handler.getFullName(element), "\n")
    elseif not seen[element] then
      seen[element] = true
      tell(handler.getFullName(element), status)
    end
    return nil, true
  end

  function handler.finish()
    io.write(("%d passed, %d failed, %d pending\n"):format(passed, failed, pending))
    io.flush()
    return nil, true
  end

  busted.subscribe({ "test", "start" }, handler.test_start)
  busted.subscribe({ "test", "end" }, handler.test_end)
  busted.subscribe({ "failure" }, on_problem)
  busted.subscribe({ "error" }, on_problem)
  busted.subscribe({ "exit" }, handler.finish)
  handler.options = options
  return handler
end
