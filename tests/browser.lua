-- browser: Debian's chromium without a window, told what to do over the pipe of its DevTools protocol: pages, scripts
-- in them, mouse and keys, and pictures. Its time is real.
local ffi = require "ffi"
local json = require "cq.base.json"
local process = require "tests.process"

local browser = { is_there = os.execute "command -v chromium > /dev/null 2>&1" == 0 }

local COMMAND = "timeout %d chromium --headless=new --no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader "
  .. "--hide-scrollbars --no-first-run --disable-extensions --disable-background-networking --window-size=%d,%d "
  .. "--user-data-dir=%s/profile --remote-debugging-pipe 3< %s/to 4> %s/from 2> %s/log &"
local LIMIT = 300                -- [s] that a browser lives

local Browser = {}
Browser.__index = Browser

-- a message ends with a zero
local function read_message(file)
  local parts = {}
  while true do
    local byte = file:read(1)
    if not byte then error("the browser has closed its pipe", 0) end
    if byte == "\0" then return json.decode(table.concat(parts)) end
    parts[#parts + 1] = byte
  end
end

---Starts a browser.
---@param width? integer      of its window, 800 unless given [pixel]
---@param height? integer     600 unless given [pixel]
---@return table
function browser.open(width, height)
  local folder = process.folder()
  assert(os.execute(("mkfifo %s/to %s/from"):format(folder, folder)) == 0)
  os.execute(COMMAND:format(LIMIT, width or 800, height or 600, folder, folder, folder, folder))
  local self = setmetatable({ folder = folder, number = 0, width = width or 800, height = height or 600,
    asked = {}, problems = {} }, Browser)
  self.to, self.from = assert(io.open(folder .. "/to", "w")), assert(io.open(folder .. "/from", "r"))
  local target = self:send("Target.createTarget", { url = "about:blank" })
  self.session = self:send("Target.attachToTarget", { targetId = target.targetId, flatten = true }).sessionId
  for _, domain in ipairs { "Page", "Runtime", "Network", "Log" } do self:send(domain .. ".enable") end
  self:send("Page.setLifecycleEventsEnabled", { enabled = true })
  self:send("Emulation.setDeviceMetricsOverride", { width = self.width, height = self.height, deviceScaleFactor = 1,
    mobile = false })
  return self
end

-- what the page asks of the network, and what its console says
function Browser:note(message)
  local params = message.params
  if message.method == "Network.requestWillBeSent" then
    self.asked[#self.asked + 1] = params.request.url
  elseif message.method == "Runtime.exceptionThrown" then
    self.problems[#self.problems + 1] = params.exceptionDetails.text
  elseif message.method == "Log.entryAdded" and params.entry.level == "error" then
    self.problems[#self.problems + 1] = params.entry.text
  elseif message.method == "Page.lifecycleEvent" and params.name == "load" then
    self.loaded = params.loaderId
  end
end

---Sends a command of the protocol; its answer.
---@param method string
---@param params? table
---@return table
function Browser:send(method, params)
  self.number = self.number + 1
  local id = self.number
  local message = json.encode { id = id, method = method, params = params, sessionId = self.session }
  self.to:write(message, "\0")
  self.to:flush()
  while true do
    local answer = read_message(self.from)
    if answer.id == id then
      if answer.error then error(("%s: %s"):format(method, answer.error.message), 2) end
      return answer.result
    end
    self:note(answer)
  end
end

---Opens an address, or a file by its path; returns when it has been loaded.
---@param address string
function Browser:visit(address)
  if address:sub(1, 1) == "/" then address = "file://" .. address end
  -- a page that differs by its # alone would not be loaded again
  for _, url in ipairs { "about:blank", address } do
    self.asked, self.problems = {}, {}
    local loader = self:send("Page.navigate", { url = url }).loaderId
    while self.loaded ~= loader do self:note(read_message(self.from)) end
  end
end

---The value of an expression, or of a promise.
---@param expression string
---@return any
function Browser:value(expression)
  local told = self:send("Runtime.evaluate", { expression = expression, awaitPromise = true, returnByValue = true })
  if told.exceptionDetails then
    local problem = told.exceptionDetails.exception
    error(problem and problem.description or told.exceptionDetails.text, 2)
  end
  return told.result.value
end

---Waits until an expression is true.
---@param expression string
---@param seconds? number
function Browser:await(expression, seconds)
  local done = self:value(([[new Promise((resolve) => {
    const end = performance.now() + %d;
    (function look() {
      if (%s) resolve(true);
      else if (performance.now() > end) resolve(false);
      else setTimeout(look, 10);
    })();
  })]]):format(1000 * (seconds or 60), expression))
  if not done then error("the page does not come to: " .. expression, 2) end
end

---What a report says of itself, after it is ready or has told a problem.
---@return table
function Browser:state()
  self:await "shown.ready || shown.errors.length > 0"
  return json.decode(self:value "document.documentElement.dataset.state")
end

---Saves a picture of the window.
---@param path string         .png
function Browser:shoot(path)
  local told = self:send("Page.captureScreenshot", { format = "png" })
  process.write(path .. ".txt", told.data)
  assert(os.execute(("base64 -d %s.txt > %s && rm %s.txt"):format(path, path, path)) == 0)
end

---Presses, moves and releases the mouse along places { x, y } of the window.
---@param places number[][]
function Browser:drag(places)
  local function tell(kind, place, buttons)
    self:send("Input.dispatchMouseEvent", { type = kind, x = place[1], y = place[2], button = "left", buttons = buttons,
      clickCount = 1 })
  end
  tell("mousePressed", places[1], 1)
  for k = 2, #places do tell("mouseMoved", places[k], 1) end
  tell("mouseReleased", places[#places], 0)
end

---Presses a key by its name, as "End" or " ".
---@param key string
function Browser:press(key)
  for _, kind in ipairs { "keyDown", "keyUp" } do self:send("Input.dispatchKeyEvent", { type = kind, key = key }) end
end

---Ends the browser, and removes what it has kept.
function Browser:close()
  pcall(self.send, self, "Browser.close")
  self.to:close()
  -- its children still write for a moment
  self.from:read "*a"
  self.from:close()
  os.execute "sleep 0.2"
  process.remove(self.folder)
end

-- a browser that is gone must not end the test with a signal
ffi.cdef "void (*signal(int number, void (*act)(int)))(int);"
ffi.C.signal(13, ffi.cast("void (*)(int)", 1))

return browser
