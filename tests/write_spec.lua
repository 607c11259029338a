-- write: every writer of the library on a disk that is full, into a path that cannot be, and through a link.
local host = require "cq.host"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- a script's first lines: `write` holds each writer by the name of its file
local writers = [[
package.path = "./?.lua;" .. package.path
local cq, block_design = require "cq", require "tests.block_design"
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
local roll = cq.World { cells = { 40, 40 }, dx = 1 / 32, dt = 1e-3, robot:at { 0.3, 0.3 } }:rollout { steps = 2,
  controller = controller, observer = cq.Observer.kmeans { clusters = 3 } }
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
}
]]

local names = { "body_passive.stl", "block.csv", "picture.png", "film.mp4", "tensors.bin", "words.json", "table.csv",
  "frames.npz", "gait.h" }

local function run(body, shell)
  local path = process.write(folder .. "/script.lua", writers .. body)
  return process.cqlua({ path, "--folder", folder }, shell)
end

describe("what the library writes", function()
  it("is told where the disk is full, and what stood there is unchanged", function()
    for _, name in ipairs(names) do process.write(folder .. "/" .. name, "old") end
    local result = run([[
      for name, f in pairs(write) do
        print(name, pcall(f, folder .. "/" .. name))
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
    assert.equal(12, count)
    assert.is_nil(host.kind(folder .. "/a"))
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
