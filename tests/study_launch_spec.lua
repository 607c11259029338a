-- study_launch: workers of a study on many machines, on one server, started by Slurm or over ssh.
-- Programs that stand for sbatch and parallel show what would be run; tests/study/slurm.sh and postgres.sh run it in
-- make study-check.
local host = require "cq.host"
local process = require "tests.process"
local has = require("tests.sentence").says
local cqlua = process.cqlua

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function study(action, ...)
  return cqlua({ "study", action, folder .. "/s.lua", "--out", folder .. "/out", ... },
    { before = ("PATH=%s/bin:$PATH"):format(folder) })
end

local function fine(result)
  assert(result.code == 0, result.err .. result.out)
  return result.out
end

local function script(more)
  process.write(folder .. "/s.lua", ([[
local cq = require "cq"
return cq.Study { name = "s", trials = 5, process = "job", space = { x = cq.Space.uniform(0, 1) }, %s
  run = function(p, trial)
    trial.report(1, p.x)
    return p.x + trial.seed
  end }]]):format(more or ""))
end

-- a program in the PATH
local function program(name, text)
  host.make_folder(folder .. "/bin")
  process.write(folder .. "/bin/" .. name, "#!/bin/sh\n" .. text .. "\n")
  os.execute("chmod +x " .. folder .. "/bin/" .. name)
end

describe("a server", function()
  it("that is none, or not there, is told as a sentence", function()
    script()
    local result = study("run", "--store", "mysql://here")
    assert.equal(2, result.code)
    has(result.err, "--store takes the address of a PostgreSQL server")
    local away = study("run", "--store", "postgresql://me:secret@/none?host=" .. folder).err
    has(away, pcall(require("ffi").load, "libpq.so.5") and "cannot be used: " or "install the Debian package libpq5")
    assert.is_nil(away:find("secret", 1, true))
  end)
end)

-- a PATH with a shell alone
local function no_programs()
  return ("mkdir %s/none; ln -s $(command -v sh) %s/none/sh; PATH=%s/none"):format(folder, folder, folder)
end

describe("a launch", function()
  -- launches workers on a server's study; what workers must find is made when "made" is said
  local function launch_on_server(before)
    return process.cqlua({ process.write(folder .. "/launch.lua", ([[
      local launch = require "cq.study.launch"
      local session = setmetatable({ address = "postgresql://me@server/studies", script = "s.lua", folder = %q,
        study = { name = "s" } }, require("cq.study.session").class)
      local function ready() print "made" end
      for _, start in ipairs {
        function() print(launch.slurm(session, { workers = 3, jobs = 2, ["go-on"] = true }, ready)[1]) end,
        function() launch.ssh(session, { workers = 2, jobs = 2 }, "one,two", ready) end,
      } do
        local fine, problem = pcall(start)
        if not fine then print(problem) end
      end]]):format(folder .. "/out")) }, { before = before })
  end

  it("puts workers on a server's study, which is not split", function()
    program("sbatch", "echo 12")
    program("parallel", 'echo "$@" > ' .. folder .. "/said")
    local said = fine(launch_on_server(("PATH=%s/bin:$PATH"):format(folder)))
    assert(said:match "^made\nsubmitted job 12: [^\n]*\nmade\n$", said)
    local job = process.read(folder .. "/out/launch/slurm-1.sh")
    has(job, "#SBATCH --array=1-3\n")
    has(job, " study run s.lua --store postgresql://me@server/studies --go-on --jobs 2 --out ")
    has(process.read(folder .. "/said"), "--jobs 1 -N0 --sshlogin one,two --wd ")
    has(process.read(folder .. "/said"), "--store postgresql://me@server/studies --jobs 2")
  end)

  it("touches no study where there is nothing that starts workers", function()
    local said = fine(launch_on_server(no_programs()))
    has(said, "no scheduler is at hand: sbatch was not found")
    has(said, "GNU parallel was not found")
    assert.is_nil(said:find("made", 1, true))
  end)

  it("says what is not at hand, or not given", function()
    script()
    local address = "postgresql://me@server/studies"
    has(study("run", "--launch", "slurm", "--workers", "2").err, "--launch needs --store, a PostgreSQL server")
    has(study("run", "--launch", "slurm", "--store", address).err, "--launch slurm needs --workers")
    has(study("run", "--launch", "ssh", "--store", address).err, "--launch ssh needs the hosts")
  end)

  it("cuts arrays where the site's limit is, and quotes the folder of their logs", function()
    program("sbatch", ('for last; do :; done; echo "$last" >> %s/submitted; wc -l < %s/submitted'):format(folder,
      folder))
    program("scontrol", "echo 'MaxArraySize            = 4'")
    local function launch_in(place)
      return process.cqlua({ process.write(folder .. "/launch.lua", ([[
        local session = { address = "postgresql://me@server/x", script = "s.lua", folder = %q, study = { name = "s" } }
        for _, line in ipairs(require("cq.study.launch").slurm(session, { workers = 5, jobs = 2,
          sbatch = "--time=1:00:00 --partition=short" }, function() end)) do print(line) end]]):format(place)) },
        { before = ("PATH=%s/bin:$PATH"):format(folder) })
    end
    has(fine(launch_in(folder .. "/my runs")), "submitted job 2")
    local counts = {}
    for path in process.read(folder .. "/submitted"):gmatch "[^\n]+" do
      local job = process.read(path)
      has(job, "#SBATCH --time=1:00:00\n#SBATCH --partition=short\n")
      has(job, "#SBATCH --cpus-per-task=2\n")
      has(job, ('#SBATCH --output="%s/my runs/launch/%%A-%%a.log"\n'):format(folder))
      counts[#counts + 1] = tonumber(job:match "%-%-array=1%-(%d+)\n")
    end
    assert.same({ 3, 2 }, counts)
    for _, name in ipairs { "a\nb", 'a"b', "a%b" } do
      has(launch_in(folder .. "/" .. name).err, "has a character that #SBATCH --output cannot hold")
    end
  end)
end)
