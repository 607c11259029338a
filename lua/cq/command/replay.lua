-- replay: trained robots that come with the program: what each does beside what it is claimed to do, and a film.
--   cqlua replay                      what there is
--   cqlua replay biped                runs it again, prints its figure, and draws runs/replay/biped.mp4
--   cqlua replay --all                all figures, without films
--   cqlua replay NAME --keep DIR      puts the best of a run's folder into zoo/NAME.bin; zoo/README.md says what else
local host = require "cq.host"
local is = require "cq.base.schema"
local option = require "cq.option"
local scripts = require "cq.base.script"

-- one after the other in columns
local function list(zoo)
  for _, entry in ipairs(zoo.entries()) do
    print(("%-12s %s; cqlua %s"):format(entry.name, entry.says:format(entry.claimed), entry.made))
  end
end

local function replay(zoo, entry)
  local figure, saved = zoo.measure(entry)
  print(("%s: %s; claimed %.2f (cqlua %s)"):format(entry.name, entry.says:format(figure), entry.claimed, entry.made))
  return saved
end

local function film(entry, saved)
  local folder = option.program.out or "./runs/replay"
  host.make_folder(folder)
  saved.made_world:render(("%s/%s.mp4"):format(folder, entry.name), {
    steps = saved.steps, controller = saved.controller, observer = saved.observer,
  })
end

return {
  summary = "trained robots that come with the program, run again and filmed",
  arguments = "[NAME]",
  options = {
    all = is.boolean { default = false, help = "the figures of all" },
    keep = is.string { optional = true, help = "a run's folder, whose best takes the place of NAME" },
    render = is.one_of { "yes", "no", default = "yes", help = "no: without the film" },
  },
  run = function(options, words)
    local zoo, name = require "cq.zoo", words[1]
    if #words > 1 then scripts.misuse("replay takes one name, got %s", table.concat(words, " ")) end
    if options.keep and not name then scripts.misuse "replay --keep needs the name that it is to have" end
    if options.keep then
      local path, bytes = zoo.keep(name, options.keep)
      return print(("%s: %d kB, from %s"):format(path, math.ceil(bytes / 1000), options.keep))
    elseif options.all then
      for _, entry in ipairs(zoo.entries()) do replay(zoo, entry) end
      return
    elseif not name then
      return list(zoo)
    end
    local entry = zoo.entry(name)
    local saved = replay(zoo, entry)
    if options.render ~= "no" then film(entry, saved) end
  end,
}
