-- launch: puts workers of a study on other machines, all on one store of a PostgreSQL server (--store). Slurm gets an
-- array of long workers, never a job for each trial; hosts that ssh reaches are given theirs by GNU parallel. All of
-- them see the study's folder under the same path.
local atomic_file = require "cq.base.atomic_file"
local first_line = require "cq.base.first_line"
local host = require "cq.host"
local is = require "cq.base.schema"
local option = require "cq.option"
local text = require "cq.base.text"

local launch, quoted = {}, text.quoted

-- The absolute path of a path in the current folder.
local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  return first_line "pwd -P" .. "/" .. path
end

-- The text that a shell command prints, including errors.
local function output_of(command)
  local pipe = io.popen(command .. " 2>&1")
  local said = pipe and pipe:read "*a" or ""
  if pipe then pipe:close() end
  return said
end

-- Can the shell find this program?
local function is_there(program) return output_of("command -v " .. program) ~= "" end

-- The command line of a launched worker, quoted for a shell, with the options of this program that it must share.
local function command_of(session, options)
  local words = { quoted(host.executable), "study run", quoted(session.script), "--store " .. quoted(session.address) }
  if session.seeds then words[#words + 1] = "--seeds " .. session.seeds end
  if options["go-on"] then words[#words + 1] = "--go-on" end
  words[#words + 1] = ("--jobs %d --out %s"):format(options.jobs, quoted(session.folder))
  if option.program.quiet then words[#words + 1] = "--quiet" end
  if option.program.threads > 0 then words[#words + 1] = "--threads " .. option.program.threads end
  for _, word in ipairs(option.words(option.of_results())) do words[#words + 1] = quoted(word) end
  return table.concat(words, " ")
end

-- Creates the folder for the scripts and logs of launched workers; returns its absolute path. Errors: it cannot be
-- created.
local function make_folder(session)
  local folder = absolute(session.folder) .. "/launch"
  local made, problem = host.make_folder(folder)
  if not made then is.fail("the folder %s cannot be made: %s", folder, tostring(problem)) end
  return folder
end

---Was this process started by a launch? Warnings were then printed to the user before.
---@return boolean
function launch.is_launched() return (os.getenv "SLURM_ARRAY_TASK_ID" or os.getenv "PARALLEL_SEQ") ~= nil end

-- ---- Slurm ----------------------------------------------------------------------------------------------------------

local SLURM_DEFAULT = 1001       -- MaxArraySize where a site says nothing; the largest index is one less

-- The text of the job script of a Slurm array of `count` workers. Errors: a folder whose name #SBATCH cannot hold.
local function job_script(session, options, count)
  local cores = option.program.threads > 0 and option.program.threads or options.jobs
  local folder = absolute(session.folder)
  -- a line of #SBATCH ends at its end, and Slurm reads words with % in its own way
  if folder:find "[%c\"\\%%]" then
    is.fail("the folder %s has a character that #SBATCH --output cannot hold; choose another with --out",
      text.describe(folder))
  end
  local lines = {
    "#!/bin/sh", "#SBATCH --job-name=" .. session.study.name, ("#SBATCH --array=1-%d"):format(count),
    "#SBATCH --ntasks=1", "#SBATCH --cpus-per-task=" .. cores,
    ('#SBATCH --output="%s/launch/%%A-%%a.log"'):format(folder),
  }
  for word in (options.sbatch or ""):gmatch "%S+" do lines[#lines + 1] = "#SBATCH " .. word end
  lines[#lines + 1] = "cd " .. quoted(absolute ".":gsub("/%.$", "")) .. " || exit 1"
  lines[#lines + 1] = "exec " .. command_of(session, options)
  return table.concat(lines, "\n") .. "\n"
end

-- The largest number of jobs in one Slurm array, from scontrol, else Slurm's default.
local function array_limit()
  local size = tonumber(output_of("scontrol show config"):match "MaxArraySize%s*=%s*(%d+)")
  return math.max(1, (size or SLURM_DEFAULT) - 1)
end

---Writes and submits Slurm arrays of workers, several if the site's limit needs that. Errors: no sbatch on the path;
---sbatch refuses.
---@param session cq.Session
---@param options { workers: integer, jobs: integer, sbatch: string? }
---@param ready fun()           prepares the store for the workers; not called without sbatch
---@return string[] lines       "submitted job 12: PATH" each
function launch.slurm(session, options, ready)
  local folder, limit = make_folder(session), array_limit()
  local paths, lines, first = {}, {}, 0
  while first < options.workers do
    local count = math.min(limit, options.workers - first)
    paths[#paths + 1] = ("%s/slurm-%d.sh"):format(folder, #paths + 1)
    atomic_file.write(paths[#paths], job_script(session, options, count))
    first = first + count
  end
  if not is_there "sbatch" then
    is.fail("no scheduler is at hand: sbatch was not found. What would be submitted is in %s; submit it where Slurm "
      .. "is, or work here with %s --jobs N", text.join(paths), session:command "run")
  end
  ready()
  for _, path in ipairs(paths) do
    local said = output_of("sbatch --parsable " .. quoted(path))
    local job = said:match "^(%d+)"
    if not job then is.fail("sbatch refused %s: %s", path, (said:gsub("%s+$", ""))) end
    lines[#lines + 1] = ("submitted job %s: %s"):format(job, path)
  end
  return lines
end

-- ---- ssh ------------------------------------------------------------------------------------------------------------

---Runs workers on hosts by GNU parallel, and waits for them. options.workers becomes one for each host unless given.
---Errors: no GNU parallel.
---@param session cq.Session
---@param options { workers: integer?, jobs: integer }
---@param hosts string          as GNU parallel takes them: "a,b,user@c"; ":" is this machine
---@param ready fun()           prepares the store for the workers; not called without GNU parallel
---@return integer failed        workers that ended with an error
function launch.ssh(session, options, hosts, ready)
  local count = 0
  for _ in hosts:gmatch "[^,]+" do count = count + 1 end
  options.workers = options.workers or count
  if not is_there "parallel" then
    is.fail("GNU parallel was not found, which starts workers over ssh: install the package parallel, or start one "
      .. "on each host by hand: %s", session:command "run")
  end
  local folder = make_folder(session)
  local numbers = {}
  for k = 1, options.workers do numbers[k] = tostring(k) end
  -- a worker for each host at a time; --wd: in this folder there; -N0: the numbers only count the workers
  local here, worker = absolute ".":gsub("/%.$", ""), command_of(session, options)
  local command = ("parallel --will-cite --jobs 1 -N0 --sshlogin %s --wd %s --joblog %s %s ::: %s"):format(quoted(hosts),
    quoted(here), quoted(folder .. "/ssh.log"), quoted(worker), table.concat(numbers, " "))
  atomic_file.write(folder .. "/ssh.sh", "#!/bin/sh\n" .. command .. "\n")
  ready()
  return os.execute("sh " .. quoted(folder .. "/ssh.sh"))
end

return launch
