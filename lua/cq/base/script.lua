-- script: the script that the program runs. Its path and its arguments, how a script is loaded, and how the program
-- ends when its command line is wrong.
local globals = require "cq.base.globals"
local host = require "cq.host"
local message = require "cq.base.message"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local schema = require "cq.base.schema"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

---@class cq.Script
---@field path string?           of the script; "-" for standard input
---@field arguments string[]?    of the whole command line
---@field explain fun(problem: any): string    the program's message handler: the message and the frames that help
---@field prompt fun(globals: table): string[]   reads and runs lines until the input ends, and gives those that were run
---@field folders table<string, string|false>   that runs of the script have taken (run/taken.lua), with their names
---@field copies string?         the folder sources/ of a run, where the script is the copy in that run's folder
---@field original string?       the folder of the script that was copied there, with a slash, or ""
local script = { folders = {} }

local commands = host.root .. "/lua/cq/command/"

---Ends the program with exit code 2 and a sentence about a wrong command line: raises { misuse = sentence }, which the
---program catches and prints.
---@param format string
---@param ... any       for string.format
function script.misuse(format, ...)
  error({ misuse = format:format(...) }, 0)
end

---A sorted list of the names of the program's subcommands.
---@return string[]
function script.commands()
  local names = {}
  for _, entry in ipairs(host.entries(commands) or {}) do names[#names + 1] = entry:match "^([%w_]+)%.lua$" end
  table.sort(names)
  return names
end

---Ends the program by script.misuse if the path is no file.
---@param path string
function script.require(path)
  local kind, problem = host.kind(path)
  if kind == "file" or kind == "other" then return end
  script.misuse("cannot open %s: %s%s", path, kind and "it is a folder" or problem,
    text.suggestion(path, script.commands()))
end

---Lets require find Lua files in a folder from then on, after the library.
---@param folder string
function script.search(folder)
  package.path = package.path:gsub("^(" .. ("[^;]*;"):rep(3) .. ")",
    function(library) return library .. folder .. "/?.lua;" end)
end

-- Lets require find Lua files beside a script. Where the script is the copy in a run's folder, its modules are the
-- copies there too, and so are files that it runs by dofile and that are not where they were.
local function search_beside(path)
  local folder = path:match "^(.*)/[^/]*$" or "."
  script.search(folder)
  local manifest = path:match "[^/]*$" == "script.lua" and read_file(folder .. "/manifest.json")
  script.copies = manifest and folder .. "/sources" or nil
  script.original = manifest and (manifest:match '"script": ?"([^"]*/)[^/"]*"' or "")
  if script.copies then script.search(script.copies) end
end

-- Lua files that the script has run by dofile or loadfile: { path, bytes } by the name of the copy in a run's folder;
-- texts that take the place of such files, and one that takes that of the script's own.
local files, held_files, held_text = {}, {}, nil

-- The name of a file's copy in a run's folder: its path, in a folder beside the modules, inside of which it stays.
local function copy_of(path)
  return "files/" .. path:gsub("^/", "=root/"):gsub("%.%./", "=up/"):gsub("%./", "")
end

-- The copy of a file in the run's folder, where the script is the copy of that run's: by its path, or by where it lay
-- beside the script. nil: there is none.
local function find_copy(path)
  if not script.copies then return nil end
  local here, names = script.path:match "^(.*/)[^/]*$" or "", { copy_of(path) }
  if here ~= "" and path:sub(1, #here) == here then names[2] = copy_of(script.original .. path:sub(#here + 1)) end
  for _, name in ipairs(names) do
    if host.kind(script.copies .. "/" .. name) == "file" then return script.copies .. "/" .. name end
  end
end

local load_any = loadfile

-- Is the function at this level of the stack, counted from the caller, one of the library's? The first of a coroutine
-- has none above it.
local function is_of_library(level)
  local info = debug.getinfo(level + 1, "S")
  return info ~= nil and info.source:find("@" .. host.root .. "/lua/", 1, true) == 1
end

-- Loads a file that the script asks for by its path, or its copy, and remembers it as one of the script's.
local function load_own(path, ...)
  local name = copy_of(path)
  if held_files[name] then
    files[name] = { path = path, bytes = held_files[name] }
    return load(held_files[name], "@" .. path, ...)
  end
  if host.kind(path) ~= "file" then path = find_copy(path) or path end
  files[name] = { path = path, bytes = read_file(path) }
  return load_any(path, ...)
end

-- loadfile, by load_own for scripts.
local function loadfile_of_scripts(path, ...)
  local load = (type(path) ~= "string" or is_of_library(2)) and load_any or load_own
  return load(path, ...)
end

-- dofile, by load_own for scripts.
local function dofile_of_scripts(path)
  local load = (type(path) ~= "string" or is_of_library(2)) and load_any or load_own
  local chunk, problem = load(path)
  if not chunk then error(problem, 0) end
  return chunk()
end

---Lets dofile, loadfile and script.sources give these texts in the place of the files that the script has run, and
---script.text one in the place of its own; nil: the files again.
---@param own string?
---@param texts table<string, string>?     by names as script.sources has them
function script.hold(own, texts) held_text, held_files = own, texts or {} end

---Loads a script file, and makes it the current script, with the global `arg`; require finds Lua files beside it from
---then on, and for the script.lua of a run's folder those in sources/. Its code reads no global that nothing has
---assigned. nil and a sentence where it is no Lua. A path
---that is no file ends the program.
---@param path string
---@param words string[]      its arguments
---@return function? chunk, string? problem
function script.load(path, words)
  if path ~= "-" then
    script.require(path)
    search_beside(path)
  end
  local chunk, problem = loadfile(path ~= "-" and path or nil)
  if not chunk then return nil, problem end
  rawset(_G, "arg", { [0] = path, unpack(words) })
  rawset(_G, "loadfile", loadfile_of_scripts)
  rawset(_G, "dofile", dofile_of_scripts)
  script.path, schema.script, script.folders, files = path, path, {}, {}
  globals.guard(path)
  return chunk
end

---Runs a script and gives what it returns; its errors are raised.
---@param path string
---@return any
function script.value(path)
  local chunk, problem = script.load(path, {})
  if not chunk then error(problem, 0) end
  return (chunk())
end

---The text of the current script; nil when it is standard input or cannot be read.
---@return string?
function script.text()
  return held_text or script.path and script.path ~= "-" and read_file(script.path) or nil
end

-- Is this a module of Lua itself or of the library, and not one of the user's?
local function is_own(name) return name:match "^cq$" or name:match "^cq%." or name == "_G" end

-- The Lua files that the script has loaded with require, dofile or loadfile, without those of the library, as tables of
-- path and bytes by the names of their copies in a run's folder.
local function loaded()
  local out = tables.merged(files)
  for name in pairs(package.loaded) do
    local path = not is_own(name) and package.searchpath(name, package.path)
    local copy = name:gsub("%.", "/") .. ".lua"
    if path then out[copy] = { path = path, bytes = held_files[copy] or read_file(path) } end
  end
  return out
end

---The Lua files that the script has loaded with require, dofile or loadfile, without those of the library: their texts
---by the names of their copies in a run's folder.
---@param earlier? table<string, string>   texts by path, in the place of those that the files have now
---@return table<string, string> files     bytes
function script.sources(earlier)
  local out = {}
  for name, file in pairs(loaded()) do out[name] = earlier and earlier[file.path] or file.bytes end
  return out
end

---Where the files of script.sources are, in any order.
---@return string[]
function script.paths()
  local out = {}
  for _, file in pairs(loaded()) do out[#out + 1] = file.path end
  return out
end

-- The modules that the script's text names in a require, and those that these name in turn, even if they were not run;
-- without those of the library: { path, bytes } by name. And the files that these texts name in a dofile: texts by the
-- names of their copies.
local function named_modules()
  local out, named = {}, {}
  -- Adds the modules that a Lua text requires to `out`, and the files that it runs to `named`, then those that these
  -- require and run.
  local function look(bytes)
    for path in bytes:gmatch "dofile%s*%(?%s*[\"']([^\"'\n]+)[\"']" do
      local name = copy_of(path)
      local read = not named[name] and read_file(path)
      if read then
        named[name] = read
        look(read)
      end
    end
    for name in bytes:gmatch "require%s*%(?%s*[\"']([%w_.]+)[\"']" do
      local path = not is_own(name) and not out[name] and package.searchpath(name, package.path)
      local read = path and read_file(path)
      if read then
        out[name] = { path = path, bytes = read }
        look(read)
      end
    end
  end
  look(script.text() or "")
  return out, named
end

---The Lua files that the script's text names in a require or a dofile, and the files that these name in turn, even if
---they were not run; without those of the library: their texts by the names of their copies in a run's folder.
---@return table<string, string> files     bytes
function script.required()
  local modules, out = named_modules()
  for name, module in pairs(modules) do out[name:gsub("%.", "/") .. ".lua"] = module.bytes end
  return out
end

-- of package.loaders: the one that finds Lua files along package.path
local load_file = package.loaders[2]

---Lets the files of modules that the script's text names be loaded later as they are now. Which file a name means is
---determined when it is required, as the script may have changed package.path or the loaders by then.
function script.hold_modules()
  local held = {}
  for _, module in pairs((named_modules())) do
    local chunk = loadstring(module.bytes, "@" .. module.path)
    held[module.path], held[host.resolve(module.path) or module.path] = chunk, chunk
  end
  -- A loader for require: the held text of the first file along package.path that is there, or was.
  local function load_held(name)
    for template in package.path:gmatch "[^;]+" do
      local path = template:gsub("%?", (name:gsub("[.%%]", { ["."] = "/", ["%"] = "%%" })))
      local chunk = held[path] or held[host.resolve(path) or path]
      if chunk then return chunk end
      if host.kind(path) then break end
    end
    return load_file(name)
  end
  for k, loader in ipairs(package.loaders) do
    if loader == load_file then package.loaders[k] = load_held end
  end
end

---Warns of options that were typed on the command line and that the script did not read.
function script.tell_unused()
  for _, sentence in ipairs(option.unused()) do message.warn("%s", sentence) end
end

return script
