-- write: every writer of the library into the folder of the run, on a disk that is full, into a path that cannot be,
-- and through a link.
local host = require "cq.host"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- a script's first lines: `write` holds each writer by the name of its file
local writers = [[
local cq = require "cq"
package.path = cq.option("root", "") .. "/?.lua;" .. package.path
local block_design = require "tests.block_design"
local folder = cq.option("folder", "")
local design = block_design.make()
local p = design:start(2)
local solid = design:extract(block_design.variables(design))
local film = function(path)
  local canvas = cq.Picture.canvas { width = 320, height = 240 }
  local video = cq.Picture.video { path = path }
  for k = 1, 20 do
    for j = 1, 40 do canvas:disc(8 * j, (j * j * k) % 240, 3, ("#%06x"):format(40000 * j + k)) end
    video:add(canvas)
  end
  video:close()
end
local robot = cq.Creature.biped { count = 4 }
local controller = cq.Controller.mlp { hidden = { 16 } }
local world = cq.World { cells = { 40, 40 }, dx = 1 / 32, dt = 1e-3, robot:at { 0.3, 0.3 } }
local roll = world:rollout { steps = 2, controller = controller, observer = cq.Observer.kmeans { clusters = 3 } }
local write = {
  ["body_passive.stl"] = function(path) solid:save_surface((path:gsub("_passive", "")), { thickness = 0.1 }) end,
  ["block.csv"] = function(path) design:save(p, path) end,
  ["picture.png"] = function(path)
    local canvas = cq.Picture.canvas { width = 200, height = 200 }
    for k = 1, 300 do canvas:disc((k * 37) % 200, (k * k) % 200, 4, ("#%06x"):format(50000 * k)) end
    canvas:write(path)
  end,
  ["film.mp4"] = film,
  ["tensors.bin"] = function(path) cq.save(path, { x = cq.zeros(10000) }) end,
  ["words.json"] = function(path) require("cq.base.atomic_file").write(path, ("word "):rep(3000)) end,
  ["table.csv"] = function(path) cq.csv.save(path, { { "x", cq.range(1, 10000) } }) end,
  ["frames.npz"] = function(path) roll:export { path = path } end,
  ["gait.h"] = function(path) controller:export(path) end,
  ["state.vtp"] = function(path) roll.state:save(path) end,
  ["start.png"] = function(path) world:render(path) end,
  ["last.png"] = function(path) roll:render(path) end,
  ["page.html"] = function(path) roll:report(path) end,
}
]]

local names = { "body_passive.stl", "block.csv", "picture.png", "film.mp4", "tensors.bin", "words.json", "table.csv",
  "frames.npz", "gait.h", "state.vtp", "start.png", "last.png", "page.html" }
-- what cq.load and cq.csv read again, and what is no function of the library's
local in_current = { ["tensors.bin"] = true, ["table.csv"] = true, ["words.json"] = true }

local function run(body, shell)
  local path = process.write(folder .. "/script.lua", writers .. body)
  local words = { path, "--folder", folder, "--root", host.root, unpack(shell and shell.words or {}) }
  if shell and shell.command then table.insert(words, 1, shell.command) end
  return process.cqlua(words, shell)
end

-- the entries of a folder, sorted, without those of a run
local function entries(path)
  local out = {}
  for _, name in ipairs(host.entries(path) or {}) do
    if host.kind(path .. "/" .. name) == "file" and not name:find "^%." then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

describe("what the library writes", function()
  it("is told where the disk is full, and what stood there is unchanged", function()
    for _, name in ipairs(names) do process.write(folder .. "/" .. name, "old") end
    local result = run([[
      for name, f in pairs(write) do
        local fine, problem = pcall(f, folder .. "/" .. name)
        print(name, fine, fine and "" or problem:match "script%.lua:%d+: .*")
      end]], { before = "trap '' XFSZ; ulimit -f 4;" })
    assert.equal(0, result.code, result.err)
    for _, name in ipairs(names) do
      local said = result.out:match(name:gsub("%.", "%%.") .. "\t(%a+\t[^\n]*)")
      assert.is_truthy(said and said:find("^false\t.*script%.lua:%d+: .*File too large"), ("%s: %s\n%s"):format(name,
        tostring(said), result.out .. result.err))
      assert.equal("old", process.read(folder .. "/" .. name))
    end
    for _, entry in ipairs(host.entries(folder)) do assert.is_nil(entry:match "%.part$", entry) end
  end)

  it("is not told to be unchanged where nothing stood there", function()
    local result = run([[print(pcall(write["words.json"], folder .. "/words.json"))]],
      { before = "trap '' XFSZ; ulimit -f 4;" })
    assert.is_truthy(result.out:find("File too large", 1, true), result.out .. result.err)
    assert.is_nil(result.out:find("what stood there", 1, true))
    process.write(folder .. "/words.json", "old")
    result = run([[print(pcall(write["words.json"], folder .. "/words.json"))]],
      { before = "trap '' XFSZ; ulimit -f 4;" })
    assert.is_truthy(result.out:find("File too large; what stood there is unchanged", 1, true), result.out .. result.err)
  end)

  it("is refused where the path has a NUL byte", function()
    local result = run [[
      for name, f in pairs(write) do
        if name ~= "words.json" then print(name, pcall(f, folder .. "/a\0." .. name)) end
      end
      local Run = require "cq.run"
      print("run", pcall(Run.open, { folder = folder .. "/a\0b" }))
      print("load", pcall(cq.load, folder .. "/a\0b"))
      print("shape", pcall(cq.Shape.mesh, { path = folder .. "/a\0b.obj" }))
      print("history", pcall(Run.read_history, folder .. "/a\0b"))
    ]]
    assert.equal(0, result.code, result.err)
    local count = 0
    for line in result.out:gmatch "[^\n]+" do
      count = count + 1
      assert.is_truthy(line:find "\tfalse\t" and line:find "with a NUL byte at position %d+", line)
    end
    assert.equal(#names + 3, count)
    assert.is_nil(host.kind(folder .. "/a"))
  end)

  it("is in the folder of the run where it has a name without a slash", function()
    assert(host.make_folder(folder .. "/here/sub"))
    local result = run([[
      for name, f in pairs(write) do
        f(name)
        f("sub/" .. name)
      end]], { before = ("cd %s/here;"):format(folder), words = { "--out", folder .. "/run" } })
    assert.equal(0, result.code, result.err)
    for _, name in ipairs(names) do
      local path = (in_current[name] and "/here/" or "/run/") .. name
      assert.equal("file", host.kind(folder .. path), name)
      assert.equal("file", host.kind(folder .. "/here/sub/" .. name), name)
    end
    assert.same({ "table.csv", "tensors.bin", "words.json" }, entries(folder .. "/here"))
    assert.is_nil(host.kind(folder .. "/run/sub"))
  end)

  it("is in the folder of the run that is open, made again where it was removed, then in the script's", function()
    assert(host.make_folder(folder .. "/here"))
    local result = run([[
      local run = cq.Run.open { folder = "own" }
      print(roll.state:save "one.vtp", cq.Plot { series = { { y = { 1, 2 } } } }:write "one.png")
      run:finish()
      print(roll.state:save "two.vtp")
      os.execute "rm -r runs/script"
      print(roll:export { format = "npz" })]], { before = ("cd %s/here;"):format(folder) })
    assert.equal(0, result.code, result.err)
    assert.equal("own/one.vtp\town/one.png\nruns/script/two.vtp\nruns/script/frames.npz\n", result.out)
    assert.equal("file", host.kind(folder .. "/here/own/one.vtp"))
    assert.equal("file", host.kind(folder .. "/here/runs/script/frames.npz"))
    assert.same({}, entries(folder .. "/here"))
  end)

  it("is in runs/cqlua where the script has no name", function()
    process.write(folder .. "/script", 'print(require("cq").Picture.canvas():write "a.png")')
    for _, word in ipairs { "-", "-e" } do
      local words = word == "-" and { "-" } or { "-e", process.read(folder .. "/script") }
      local result = process.cqlua(words, { before = ("cd %s;"):format(folder), after = "< " .. folder .. "/script" })
      assert.equal("runs/cqlua/a.png\n", result.out, result.err)
    end
  end)

  it("is refused in a folder that is not there, and in one that cannot be", function()
    process.write(folder .. "/file", "old")
    local result = run([[
      for name, f in pairs(write) do
        print("missing", name, pcall(f, "none/" .. name))
        print("name", name, pcall(f, name))
      end]], { before = ("cd %s;"):format(folder), words = { "--out", "file/run" } })
    assert.equal(0, result.code, result.err)
    for _, name in ipairs(names) do
      local stem = name:gsub("%.", "%%.")
      local said = result.out:match("missing\t" .. stem .. "\t([^\n]*)")
      assert.is_truthy(said and said:find "^false\t.*script%.lua:%d+: .*none/.*there is no folder none", ("%s: %s"):format(name,
        tostring(said)))
      said = result.out:match("name\t" .. stem .. "\t([^\n]*)")
      assert.is_truthy(said and (in_current[name] and said:find "^true"
        or said:find "^false\t.*script%.lua:%d+: .*file/run/.* cannot be made: Not a directory; choose another with %-%-out"),
        ("%s: %s"):format(name, tostring(said)))
    end
    assert.is_nil(host.kind(folder .. "/none"))
    assert.equal("old", process.read(folder .. "/file"))
  end)

  it("is left out where the script is only checked", function()
    assert(host.make_folder(folder .. "/here"))
    local result = run([[
      for name, f in pairs(write) do
        if not ("tensors.bin table.csv words.json"):find(name, 1, true) then f(name) end
      end]], { before = ("cd %s/here;"):format(folder), command = "check" })
    assert.equal(0, result.code, result.err)
    assert.same({}, host.entries(folder .. "/here"))
  end)

  it("replaces what a link leads to, and writes to a device as it is", function()
    local atomic_file = require "cq.base.atomic_file"
    process.write(folder .. "/real.csv", "old")
    os.execute(("ln -s real.csv %s/link.csv; mkfifo %s/pipe"):format(folder, folder))
    atomic_file.write(folder .. "/link.csv", "new")
    assert.equal("new", process.read(folder .. "/real.csv"))
    assert.is_truthy(io.popen(("readlink %s/link.csv"):format(folder)):read "*l")
    local fine, problem = pcall(atomic_file.write, "/dev/full", "new")
    assert.is_false(fine)
    assert.is_truthy(problem:find("/dev/full cannot be written: No space left on device", 1, true), problem)
    assert.equal("other", host.kind "/dev/full")
  end)

  it("is told when standard output is full, however early", function()
    local result = process.cqlua({ "-e", "print(('x'):rep(100000)) io.stdout:setvbuf 'no'" }, { after = "> /dev/full" })
    assert.equal(1, result.code)
    assert.is_truthy(result.err:find("cqlua: standard output", 1, true), result.err)
  end)
end)
