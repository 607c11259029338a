-- program: the command line of cqlua. main(arguments) gives the exit code:
-- 0 the script finished, 1 it failed, 2 the command line was wrong, 130 it was interrupted.
local failure = require "cq.program.failure"
local host = require "cq.host"
local message = require "cq.base.message"
local option = require "cq.option"
local script = require "cq.base.script"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

local program = {}

local FINISHED, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

local commands = host.root .. "/lua/cq/command/"

local misuse = script.misuse
script.explain = failure.handle

-- ---- the command line -----------------------------------------------------------------------------------------------

local flags = { e = "code", i = "interactive", h = "help", v = "version" }
local program_words = { help = true, version = true, interactive = true, quiet = true, watch = true }

-- A list of the names of the program's own options, for suggestions.
local function program_names()
  local names = { "help", "version", "interactive" }
  for _, declared in ipairs(option.declared) do names[#names + 1] = declared.name end
  return names
end

-- Reads an option, "--name=value", "--name value" or "--name", at position `at` of the arguments: returns its name, its
-- value as text or true, and the number of arguments read. is_switch(name, following): does the option take no value?
local function long_option(arguments, at, is_switch)
  local name, value = arguments[at]:match "^%-%-([%w_-]+)=(.*)$"
  if name then return name, value, 1 end
  name = arguments[at]:match "^%-%-([%w_-]+)$"
  if not name then misuse("%s is no option; options are --name value or --name=value", arguments[at]) end
  local following = arguments[at + 1]
  if name == "serve" and not (following or ""):match "^%d+$" then return name, "0", 1 end      -- any port
  if is_switch(name, following) or following == nil or following:match "^%-%-%a" then return name, true, 1 end
  return name, following, 2
end

-- Sets one of the program's own options and returns true; false: the name is none of them. A wrong value ends the
-- program.
local function take_program_option(parsed, name, value)
  if name == "help" or name == "version" or name == "interactive" then
    parsed[name] = true
    return true
  end
  local problem = option.set_program(name, value)
  if problem then misuse("%s", problem) end
  return problem == nil
end

-- Is this one of the program's options that take no value?
local function is_program_switch(name) return program_words[name] == true end

-- Is this one of the program's options of true or false, before a word that is neither, as the name of a script?
local function is_alone(name, following)
  for _, declared in ipairs(option.declared) do
    if declared.name == name and declared.kind.cats == "boolean" then
      return option.read(name, following, declared.kind) == nil
    end
  end
  return false
end

-- Sets an option that the subcommand declares, in parsed.options. For a subcommand that runs a script, an undeclared
-- option goes to the script (parsed.given); else it ends the program with an error.
local function take_command_option(parsed, name, value)
  local kind = parsed.command.options[name]
  if not kind and parsed.command.runs_script then
    parsed.given[name] = value
    return
  end
  if not kind then
    local names = program_names()
    for declared in pairs(parsed.command.options) do names[#names + 1] = declared end
    table.sort(names)
    misuse("%s has no option --%s%s; its options are --%s", parsed.name, name, text.suggestion(name, names),
      table.concat(names, ", --"))
  end
  local read, problem = option.read(name, value, kind)
  if problem then misuse("%s", problem) end
  local before = parsed.options[name]
  parsed.options[name] = before and (parsed.command.joins or {})[name] and before .. "," .. read or read
end

-- The module of the subcommand with this name; nil: there is none.
local function load_command(name)
  if not name:match "^[%w_]+$" or host.kind(commands .. name .. ".lua") ~= "file" then return nil end
  local command = require("cq.command." .. name)
  command.options = command.options or {}
  return command
end

-- Takes the first word that is no option as parsed.name: a subcommand, whose module becomes parsed.command, else a
-- script.
local function take_target(parsed, word)
  parsed.name = word
  parsed.command = word ~= "-" and load_command(word) or nil
  if parsed.command then parsed.options = {} end
end

-- Ends the program with an error if a word that is to be one for the script, or for the pieces of Lua of -e, seems to
-- be something else: an option that would be read by nobody, or a script beside -e.
local function check_word(parsed, word)
  if word:match "^%-%a$" and flags[word:sub(2)] and not parsed.command then
    misuse("%s is an option of cqlua and stands before a script (a word that begins with - stands behind a --)", word)
  elseif word:match "^%-%a[%w_-]+$" then             -- -iterations 5 would else be two words that nobody reads
    misuse("%s is no option; options of a script are --name value (words that begin with - stand behind a --)", word)
  elseif #parsed.code > 0 and #parsed.positional == 0 and word:match "%.lua$" then
    misuse("-e runs its code alone, without the script %s; run the script, or dofile(%q) in the code (a word for the "
      .. "code stands behind a --)", word, word)
  end
end

-- Splits the command line: { name: of subcommand or script, command: the module, options: of the subcommand,
-- positional: other arguments, given: options of the script, code: pieces of -e, help, version, interactive }.
local function parse(arguments)
  local parsed = { code = {}, given = {}, positional = {} }
  -- Is this an option without a value? following: the word after it.
  local function is_switch(name, following)
    local kind = parsed.command and parsed.command.options[name]
    return is_program_switch(name) or (kind ~= nil and kind.cats == "boolean")
      or not parsed.name and following ~= nil and is_alone(name, following)
  end
  local at = 1
  while at <= #arguments do
    local word, taken = arguments[at], 1
    if word == "--" and not parsed.plain then
      parsed.plain = true                       -- what follows is the script's, as it stands
    elseif not parsed.plain and word:match "^%-%-" then
      local name, value
      name, value, taken = long_option(arguments, at, is_switch)
      if take_program_option(parsed, name, value) then parsed.touched = true
      elseif parsed.command then take_command_option(parsed, name, value)
      elseif parsed.name or #parsed.code > 0 then parsed.given[name] = value
      else
        misuse("unknown option --%s%s; cqlua --help lists them, options of a script stand after its name",
          name, text.suggestion(name, program_names()))
      end
    elseif not parsed.plain and not parsed.name and word:match "^%-%a$" then
      local flag = flags[word:sub(2)] or misuse("unknown option %s; cqlua --help lists them", word)
      if flag == "code" then
        parsed.code[#parsed.code + 1] = arguments[at + 1] or misuse("-e needs a piece of Lua, got nothing")
        taken = 2
      else
        parsed[flag] = true
      end
    elseif not parsed.name and #parsed.code == 0 then
      take_target(parsed, word)
    else
      if not parsed.plain then check_word(parsed, word) end
      parsed.positional[#parsed.positional + 1] = word
    end
    at = at + taken
  end
  return parsed
end

-- ---- help -----------------------------------------------------------------------------------------------------------

-- Prints a line of help about an option. kind: its checker.
local function print_option(name, kind, help)
  local value = kind.cats == "boolean" and "" or " " .. name:sub(1, 1):upper()
  print(("  --%-16s %s"):format(name .. value, help))
end

-- Prints the help of the program: options and commands.
local function print_help()
  print "usage: cqlua [options] script.lua [options of the script]\n       cqlua command [options]\n"
  print "  -e CODE            run a piece of Lua, without a script; cq is there already\n  -i                 a prompt, after the script or alone"
  for _, declared in ipairs(option.declared) do print_option(declared.name, declared.kind, declared.help) end
  print "  --version, --help\n\ncommands"
  for _, name in ipairs(script.commands()) do print(("  %-18s %s"):format(name, load_command(name).summary)) end
  print [[

Scripts that train take
  --iterations N     that many, where the script has cq.option("iterations", ...), as all examples do
  --budget 0.1       a tenth of all iterations
  --resume           go on where the run in the folder stopped
  --keep N           checkpoints of every N iterations, from which cqlua resume --at forks
  --from DIR         begin with the parameters of the run in DIR
  --render no        no films
]]
  print "cqlua script.lua --help shows what a script says of itself."
end

-- Prints the help of the subcommand in parsed.
local function print_command_help(parsed)
  print(("usage: cqlua %s %s[options]\n%s\n"):format(parsed.name, parsed.command.arguments and parsed.command.arguments
    .. " " or "", parsed.command.summary))
  local names = tables.names(parsed.command.options)
  for _, name in ipairs(names) do
    print_option(name, parsed.command.options[name], parsed.command.options[name].help)
  end
  print "\nand those of the program, such as --device and --threads: cqlua --help"
end

-- Prints the comment at the head of a script as its help.
local function print_script_help(path)
  script.require(path)
  local file, problem = io.open(path)
  if not file then misuse("cannot open %s", problem) end
  local said = false
  for line in file:lines() do
    local comment = line:match "^%-%-%s?(.*)"
    if not comment then break end
    print(comment)
    said = true
  end
  file:close()
  if not said then print(("%s says nothing of itself: it begins with no comment"):format(path)) end
end

-- ---- running --------------------------------------------------------------------------------------------------------

-- A table of globals for -e and -i: Lua's, and cq, which is loaded when it is first used.
local function convenient_globals()
  return setmetatable({}, { __index = function(_, key)
    if key == "cq" then return require "cq" end
    return _G[key]
  end })
end

-- Runs a prompt whose globals are the given ones, cq, and Lua's; returns a list of the statements that were typed. For
-- run/pause.lua, after Ctrl-C at a terminal.
function script.prompt(globals)
  return require("cq.program.prompt").run(setmetatable(globals, { __index = convenient_globals() }))
end

-- Has Ctrl-C been pressed, in a program that has loaded the engine?
local function interrupted()
  local engine = package.loaded["cq.base.engine"]
  return engine ~= nil and engine.C.cq_interrupted() ~= 0
end

-- Is this the error of a rollout that stopped because of Ctrl-C? A script that ends so has not failed.
local function gave_up(problem)
  local sentence = interrupted() and package.loaded["cq.base.engine"].interruption
  return sentence and problem:find(sentence, 1, true) ~= nil
end

-- Message handler of xpcall: leaves an error about wrong use of the command line as it is; any other error gets its
-- traceback.
local function explain(problem)
  return type(problem) == "table" and problem.misuse and problem or failure.handle(problem)
end

-- Closes the run that a script left open, with the problem that ended the script (nil: none); returns false if closing
-- failed.
local function close_run(problem)
  local Run = package.loaded["cq.run"]
  if not Run then return true end
  local closed, why = pcall(Run.close_open, problem)
  if not closed then message.fault("%s", tostring(why)) end
  return closed
end

-- Waits for all MPI ranks to end. problem: by which this one ended. Returns true; or false and, when another rank
-- failed, its error, which the first rank has printed.
local function close_ranks(problem)
  local Ranks = package.loaded["cq.ranks"]
  if not Ranks then return true end
  local fine, failed = pcall(Ranks.finish, problem)
  if failed then message.fault("%s", tostring(failed)) end
  return fine and not failed, failed
end

-- Prints, after Ctrl-C, how the program ended, unless a run has printed that.
local function tell_interruption()
  message.interruption("%s", package.loaded["cq.base.engine"].interruption or "interrupted")
end

-- Did the script end because --watch is to run its new version?
local function wants_reload()
  local watch = package.loaded["cq.base.watch"]
  return watch ~= nil and watch.wanted
end

-- Runs a chunk of Lua with arguments, and closes the run that it left open. Returns success, or false and the first
-- line of its error, which was printed. script.misuse passes through.
local function attempt(chunk, ...)
  local finished, problem = xpcall(chunk, explain, ...)
  if finished or wants_reload() then return close_run() end
  if type(problem) == "table" then error(problem, 0) end
  if gave_up(problem) then
    close_run()
    return false, "interrupted"
  end
  -- who asked to stop needs no traceback
  local sentence = problem:match "^[^\n]*"
  message.fault("%s", interrupted() and sentence or problem)
  close_run(sentence)
  return false, sentence
end

-- Runs a script's chunk with its arguments, then closes its runs and ranks; returns success, or false and the problem.
local function run(chunk, ...)
  local finished, problem = attempt(chunk, ...)
  local all, other = close_ranks(not finished and (problem or "its run could not be closed") or nil)
  return finished and all, problem or other
end

-- Runs the pieces of Lua of -e as one chunk; returns what `run` returns.
local function run_code(parsed)
  local chunk, problem = loadstring(table.concat(parsed.code, "\n"), "=(command line)")
  if not chunk then
    message.fault("%s", problem)
    return false
  end
  return run(setfenv(chunk, convenient_globals()), unpack(parsed.positional))
end

-- Runs a script, with --watch again whenever it is saved; returns what `run` returns. words: its arguments.
local function run_file(path, words)
  if option.program.watch then return require("cq.program.watched").run(path, words, run) end
  local chunk, problem = script.load(path, words)
  if not chunk then
    message.fault("%s", problem)
    return false, problem
  end
  return run(chunk, unpack(words))
end

---Runs a script as the command line does, with the live page of --serve; also for subcommands that run one.
---@param path string
---@param words string[]      its arguments
---@return boolean finished, string? problem     false and its error, which has been printed, where it failed
function program.run_script(path, words)
  -- of ranks the first one alone listens
  if not option.program.serve or require("cq.ranks.mpi").launched_as() > 0 then return run_file(path, words) end
  local live = require "cq.report.live"
  live.start(option.program.serve, path)
  local finished, why = run_file(path, words)
  live.finish(finished)
  return finished, why
end

-- Runs a subcommand; returns its exit code: what the command returns, 0 if that is nothing, 130 after Ctrl-C, 1 if it
-- failed.
local function run_command(parsed)
  local code, stray = FAILED, not parsed.command.arguments and parsed.positional[1]
  if stray then
    misuse("%s takes options alone, got %s; cqlua %s --help lists them", parsed.name, stray, parsed.name)
  end
  option.set_given(parsed.given)
  local finished = run(function() code = parsed.command.run(parsed.options, parsed.positional) or FINISHED end)
  if not finished then code = FAILED end
  if code == FINISHED or not interrupted() then return code end
  tell_interruption()
  return INTERRUPTED
end

-- Ends the program if the device of --device is missing, before any work is done.
local function check_device()
  if option.program.device ~= "cuda" then return end
  local ffi, C = require "ffi", require("cq.base.engine").C
  if tonumber(C.cq_gpu_find(0, ffi.new "cq_gpu")) ~= C.CQ_OK then
    misuse("--device cuda: %s", ffi.string(C.cq_error()))
  end
end

-- Carries out the command line: version, help, code, command, script or prompt. Returns the exit code.
local function dispatch(parsed, arguments)
  if parsed.version then
    print(("cqlua %s (%s)"):format(host.version, jit.version))
    return FINISHED
  elseif parsed.help then
    if parsed.command then print_command_help(parsed)
    elseif parsed.name then print_script_help(parsed.name)
    else print_help() end
    return FINISHED
  end
  check_device()
  if option.program.serve and (parsed.command or not parsed.name) then
    misuse "--serve shows the training of a script, as cqlua --serve examples/biped.lua"
  end
  if parsed.command then return run_command(parsed) end
  if not parsed.name and #parsed.code == 0 and not parsed.interactive then
    misuse("nothing to run: name a script, a command (%s), or -i; cqlua --help says more",
      table.concat(script.commands(), ", "))
  end
  option.set_given(parsed.given)
  script.arguments = arguments
  local finished = true
  if #parsed.code > 0 then
    finished = run_code(parsed)
  elseif parsed.name then
    finished = program.run_script(parsed.name, parsed.positional)
  end
  if parsed.interactive then require("cq.program.prompt").run(convenient_globals()) end
  if interrupted() then
    tell_interruption()
    return INTERRUPTED
  end
  if finished then script.tell_unused() end
  return finished and FINISHED or FAILED
end

---Runs the program and returns its exit code. arguments[0] is its own name.
---@param arguments string[]
---@return integer exit code
function program.main(arguments)
  local fine, result = xpcall(function() return dispatch(parse(arguments), arguments) end, explain)
  if fine then return result end
  if type(result) == "table" then
    message.fault("%s", result.misuse)
    return MISUSED
  end
  message.fault("%s", result)
  return FAILED
end

return program
