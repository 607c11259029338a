-- study_shards: parts of a study on many machines: each into its own file, joined later, started by Slurm or over ssh.
-- Programs that stand for sbatch and parallel show what would be run; tests/study/slurm.sh and GNU parallel itself run
-- it in make study-check.
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
return cq.Study { name = "s", trials = 5, repeats = 2, process = "job", space = { x = cq.Space.uniform(0, 1) }, %s
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

describe("parts of a study", function()
  it("are together what one study is", function()
    script()
    for part = 1, 3 do fine(study("run", "--shard", part .. "/3", "--jobs", "2")) end
    local said = fine(study "status")
    has(said, "10 of 10 trials, 3 of 3 parts")
    has(said, "all done")
    has(study("plot").err, "cqlua study merge")
    has(fine(study "merge"), "10 trials of 3 parts joined")
    has(fine(study "merge"), "0 trials of 3 parts joined")
    local function rows() return (fine(study "export"):gsub(",1,[%d.e-]+,\n", ",\n")) end
    local joined, curves = rows(), fine(study("export", "--curves"))
    fine(study("run", "--force-new"))
    assert.equal(rows(), joined)
    assert.equal(fine(study("export", "--curves")), curves)
    has(joined, "\n10,5,2,2,done,")
  end)

  it("are refused where points depend on results", function()
    script 'sampler = "tpe",'
    has(study("run", "--shard", "1/2").err, 'the sampler "tpe" draws by all results')
    script "pruner = cq.Pruner.median {},"
    has(study("run", "--shard", "1/2").err, "a pruner compares all trials")
    local refused = study("run", "--launch", "slurm", "--workers", "3").err
    has(refused, "a pruner compares all trials")
    has(refused, "or on many with --store postgresql://user@host/database")
    has(study("run", "--shard", "3/2").err, "--shard is a part of all, from 1/4 to 4/4, got 3/2")
    has(study("merge").err, "there is nothing to merge")
  end)

  it("of another study are not joined", function()
    script()
    fine(study("run", "--shard", "1/2"))
    script "seed = 9,"
    has(study("merge").err, "is a part of another study: seed was 1 and is 9")
  end)
end)

describe("a server", function()
  it("that is none, or not there, is told as a sentence", function()
    script()
    local result = study("run", "--store", "mysql://here")
    assert.equal(2, result.code)
    has(result.err, "--store takes the address of a PostgreSQL server")
    local away = study("run", "--store", "postgresql://me:secret@/none?host=" .. folder).err
    has(away, pcall(require("ffi").load, "libpq.so.5") and "cannot be used: " or "install the package libpq5")
    assert.is_nil(away:find("secret", 1, true))
  end)
end)

-- a PATH with a shell alone
local function no_programs()
  return ("mkdir %s/none; ln -s $(command -v sh) %s/none/sh; PATH=%s/none"):format(folder, folder, folder)
end

describe("a launch", function()
  it("writes arrays of long workers for Slurm, cut where the site's limit is", function()
    script()
    program("sbatch", ('for last; do :; done; echo "$last" >> %s/submitted; wc -l < %s/submitted'):format(folder,
      folder))
    program("scontrol", "echo 'MaxArraySize            = 4'")
    local said = fine(study("run", "--launch", "slurm", "--workers", "5", "--jobs", "2",
      "--sbatch=--time=1:00:00 --partition=short"))
    has(said, "submitted job 1")
    has(said, "submitted job 2")
    local counts = {}
    for path in process.read(folder .. "/submitted"):gmatch "[^\n]+" do
      local job = process.read(path)
      has(job, "#SBATCH --time=1:00:00\n#SBATCH --partition=short\n")
      has(job, "#SBATCH --cpus-per-task=2\n")
      local last = tonumber(job:match "%-%-array=1%-(%d+)\n")
      counts[#counts + 1] = last
      -- as Slurm would run them
      for task = 1, last do assert.equal(0, os.execute(("SLURM_ARRAY_TASK_ID=%d sh %s 2>/dev/null"):format(task,
        path))) end
    end
    assert.same({ 3, 2 }, counts)
    has(fine(study "status"), "10 of 10 trials, 5 of 5 parts")
    has(study("run", "--launch", "slurm").err, "--launch slurm needs --workers")
    has(study("run", "--launch", "slurm", "--workers", "2", "--force-new").err, "--force-new goes with --launch where")
  end)

  -- launches workers on a server's study; what workers must find is made when "made" is said
  local function launch_on_server(before)
    return process.cqlua({ process.write(folder .. "/launch.lua", ([[
      local launch = require "cq.study.launch"
      local desk = { address = "postgresql://me@server/studies", script = "s.lua", folder = %q, study = { name = "s" } }
      local function ready() print "made" end
      for _, start in ipairs {
        function() print(launch.slurm(desk, { workers = 3, jobs = 2, ["go-on"] = true }, ready)[1]) end,
        function() launch.ssh(desk, { workers = 2, jobs = 2 }, "one,two", ready) end,
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
    for _, text in ipairs { job, process.read(folder .. "/said") } do assert.is_nil(text:find("--shard", 1, true)) end
  end)

  it("touches no study where there is nothing that starts workers", function()
    local said = fine(launch_on_server(no_programs()))
    has(said, "no scheduler is at hand: sbatch was not found")
    has(said, "GNU parallel was not found")
    assert.is_nil(said:find("made", 1, true))
  end)

  it("starts a worker for each host over ssh, and tells when one fails", function()
    script()
    program("parallel", 'echo "$@" > ' .. folder .. "/said; exit 3")
    local result = study("run", "--launch", "ssh", "one,two,me@three")
    assert.equal(1, result.code)
    has(result.err, "not all workers came to their end")
    local said = process.read(folder .. "/said")
    has(said, "--sshlogin one,two,me@three --wd ")
    has(said, "--shard {}/3")
    has(said, "::: 1 2 3\n")
    has(study("run", "--launch", "ssh").err, "--launch ssh needs the hosts")
  end)

  it("says what is not at hand", function()
    script()
    local words = { "study", "run", folder .. "/s.lua", "--out", folder .. "/out", "--launch" }
    local function without(kind, ...)
      local all = { unpack(words) }
      for _, word in ipairs { kind, ... } do all[#all + 1] = word end
      return cqlua(all, { before = no_programs() })
    end
    has(without("slurm", "--workers", "2").err, "no scheduler is at hand: sbatch was not found")
    has(process.read(folder .. "/out/launch/slurm-1.sh"), "--shard $((SLURM_ARRAY_TASK_ID + 0))/2")
    has(without("ssh", "a,b").err, "GNU parallel was not found")
  end)
end)
