-- build: what `make` chooses to build, on made-up machines.
local host = require "cq.host"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function output(command)
  local pipe = io.popen(("cd '%s' && { %s; } 2>&1"):format(host.root, command))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

-- a program of the made-up machine
local function program(name, script)
  local path = process.write(folder .. "/" .. name, "#!/bin/sh\n" .. script .. "\n")
  os.execute("chmod +x '" .. path .. "'")
  return path
end

describe("cuda/archs.sh", function()
  -- known: architectures of nvcc; gpus: what nvidia-smi prints, or nil where there is none
  local function archs(known, gpus, choice)
    local nvcc = program("nvcc", "for a in " .. known .. "; do echo sm_$a; done")
    program("nvidia-smi", gpus and "printf '" .. gpus .. "'" or "echo 'no devices were found' >&2; exit 9")
    return output(("PATH='%s':\"$PATH\" sh cuda/archs.sh '%s' %s"):format(folder, nvcc, choice or ""))
  end
  local cuda12, cuda13 = "50 61 70 75 80 86 89 90", "75 80 86 87 89 90 100 110 103 120 121"

  it("takes the GPU at hand", function()
    assert.equal("86", archs(cuda13, "8.6\\n"))
    assert.equal("120", archs(cuda13, "12.0\\n"))
  end)

  it("takes each sort of GPU at hand once, lowest first", function()
    assert.equal("80 90", archs(cuda13, "9.0\\n8.0\\n9.0\\n"))
  end)

  it("takes one architecture where there is no GPU", function()
    assert.equal("90", archs(cuda13, nil))
    assert.equal("90", archs(cuda12, nil))
    assert.equal("86", archs("75 80 86", nil))
  end)

  it("takes the last that nvcc knows for a GPU that is newer, and the first for one that is older", function()
    assert.equal("90", archs(cuda12, "12.0\\n"))
    assert.equal("86", archs("75 80 86 90", "8.9\\n"))
    assert.equal("75", archs(cuda13, "6.1\\n"))
  end)

  it("takes what is chosen, lowest first, for its PTX is that of the last", function()
    assert.equal("75 90", archs(cuda13, "8.6\\n", "90 75"))
    assert.equal("75 80 86 89 90 100 120", archs(cuda13, "8.6\\n", "all"))
    assert.equal("75 80 86 89 90", archs(cuda12, nil, "all"))
  end)
end)

describe("make install", function()
  local function sh(command)
    local pipe = io.popen(("cd / && { %s; } 2>&1; echo \"code $?\""):format(command))
    local said = pipe:read "*a"
    pipe:close()
    return said
  end
  local build = host.executable:match "^(.*)/"

  it("gives a program that needs no source tree, wherever its folder is moved", function()
    local prefix, moved = folder .. "/first", folder .. "/moved"
    -- what an earlier version had is gone
    assert(host.make_folder(prefix .. "/share/cqlua/lua/cq"))
    process.write(prefix .. "/share/cqlua/lua/cq/gone.lua", "")
    -- -o: the program is what it is, and is not built again
    local said = output(("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory -o '%s/cqlua' install BUILD='%s' PREFIX='%s'")
      :format(build, build, prefix))
    assert.matches("installed " .. prefix .. "/bin/cqlua", said, 1, true)
    assert(os.rename(prefix, moved))
    assert.is_nil(host.kind(moved .. "/share/cqlua/lua/cq/gone.lua"))
    local cqlua = ("env -i PATH=\"$PATH\" HOME='%s' '%s/bin/cqlua'"):format(folder, moved)
    assert.equal(moved .. "/share/cqlua\ncode 0\n", sh(cqlua .. " -e 'print(require(\"cq.host\").root)'"))
    assert.equal("0.6 0.8\ncode 0\n",
      sh(cqlua .. " -e 'local t = cq.tensor { 3, 4 } / 5 print(t:get(1) .. \" \" .. t:get(2))'"))
    assert.matches("code 0\n$", sh(cqlua .. " help cq.World"))
    assert.matches("nothing wrong was found\ncode 0\n$", sh(("%s check '%s/share/cqlua/examples/crawler.lua'"):format(cqlua,
      moved)))
    local version = process.read(host.root .. "/VERSION"):match "%S+"
    assert.matches(version, sh(cqlua .. " --version"), 1, true)
    for _, name in ipairs { "README.md", "CHANGELOG.md", "LICENSE", "docs/first_robot.md" } do
      assert.equal("file", host.kind(moved .. "/share/cqlua/" .. name), name)
    end
  end)
end)

describe("make", function()
  local function make(words)
    return output(("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory BUILD='%s' %s")
      :format(folder, words))
  end

  -- the objects that it would compile, one a line
  local function kernels(words)
    local found = {}
    for name in make("-n " .. words):gmatch "engine/cpu/(kernels%.[%d.]+)o\n" do found[#found + 1] = name:sub(9, -2) end
    return found
  end

  it("builds all kernels, or those of the dimensions and precisions that are named", function()
    local level = output "sh engine/cpu/level.sh":match "%d"
    assert.is_true(#kernels "NVCC=" % 4 == 0)
    assert.same({ "2.4." .. level }, kernels "KERNELS=2.4")
    assert.same({ "2.4.1", "3.8.1" }, kernels "KERNELS='2.4 3.8' SIMD_LEVELS=1")
  end)

  it("says which kernels there are", function()
    assert.matches("KERNELS is \"2.5\"; it must hold some of 2.4 2.8 3.4 3.8", make "KERNELS=2.5", 1, true)
    assert.matches("KERNELS is \"\"; it must hold", make "KERNELS=", 1, true)
  end)

  it("writes down what is linked, so that other kernels are linked again and the same ones are not", function()
    local path = folder .. "/objects"
    local function written(words)
      make(path .. " NVCC= SIMD_LEVELS=1 " .. words)
      return process.read(path)
    end
    local some = written "KERNELS=2.4"
    assert.matches("kernels.2.4.1.o", some, 1, true)
    assert.is_nil(some:find("kernels.3", 1, true))
    assert.equal(some, written "KERNELS=2.4")
    assert.matches("kernels.3.8.1.o", written "", 1, true)
    assert.matches("cqlua: .*objects", output("grep -F '$(BUILD)/cqlua: ' Makefile"))
  end)

  it("takes the CUDA device along where nvcc is, for one GPU, but not to a build of some kernels", function()
    local nvcc = program("nvcc", "echo sm_80; echo sm_90")
    program("nvidia-smi", "exit 9")
    local path = ("NVCC='%s' PATH='%s':\"$PATH\""):format(nvcc, folder)
    local all = make("-n " .. path)
    assert.matches("-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90", all, 1, true)
    assert.is_nil(all:find("compute_80", 1, true))
    assert.matches("-gencode arch=compute_80,code=sm_80", make("-n CUDA_ARCHS=all " .. path), 1, true)
    assert.is_nil(make("-n KERNELS=2.4 " .. path):find("gencode", 1, true))
  end)
end)

describe("The Makefile", function()
  it("calls cqlua with commands and options that there are", function()
    local calls = 0
    for line in io.lines(host.root .. "/Makefile") do
      for name, words in line:gmatch "%$%(BUILD%)/cqlua (%l+)([^|;)]*)" do
        local path = ("%s/lua/cq/command/%s.lua"):format(host.root, name)
        if not host.kind(path) then assert.is_truthy(words:match "^/", "no command " .. name) end
        local command = host.kind(path) and require("cq.command." .. name)
        for option in words:gmatch "%-%-([%l-]+)" do
          if command then assert.is_truthy(command.options[option], ("%s --%s"):format(name, option)) end
        end
        calls = calls + (command and 1 or 0)
      end
    end
    assert.is_true(calls >= 5)
  end)
end)
