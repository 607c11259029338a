-- report: one HTML file of runs or of a study, to open from disk: bodies to turn and scrub, curves, what differs.
--   cqlua report runs/biped                              runs/biped/report.html
--   cqlua report runs/a runs/b --out compare.html        curves of both, their bodies, and the options that differ
--   cqlua report zoo/quadruped.bin --out gait.html       a saved result alone
--   cqlua report runs/my_study                           its table of trials, and the bodies of the best
local host = require "cq.host"
local is = require "cq.base.schema"
local option = require "cq.option"
local scripts = require "cq.base.script"

-- Does a folder hold a study (its store)?
local function is_study(path) return host.kind(path .. "/study.sqlite") ~= nil end

return {
  summary = "writes one HTML file of runs or of a study: bodies to turn and scrub, curves, tables",
  arguments = "RUN [RUN ...]",
  options = {
    frames = is.integer { min = 2, max = 100000, default = 120, help = "moments of a body, evenly spaced" },
    colour = is.list(is.string(), { default = { "signal" },
      help = "what particles can be coloured by beside groups and speed, as signal,von_mises" }),
    particles = is.one_of { "auto", "all", "surface", default = "auto",
      help = "auto: of large bodies those of the surface" },
    bodies = is.integer { min = 0, max = 100, default = 4,
      help = "of how many runs, or of the best trials, the body is shown" },
  },
  -- The subcommand: writes the page of the runs, or the one study, of `paths`.
  run = function(options, paths)
    if #paths == 0 then scripts.misuse "report needs the folder of a run or of a study, as cqlua report runs/biped" end
    for _, path in ipairs(paths) do
      local kind, problem = host.kind(path)
      if not kind then is.fail("there is no run %s: %s", path, problem) end
    end
    local pages = require "cq.report.page"
    local def = { frames = options.frames or 120, colour = options.colour or { "signal" },
      particles = options.particles or "auto" }
    local out = option.program.out
    if not out then
      if host.kind(paths[1]) == "file" then
        require("cq.report.folder").require_result(paths[1])
        scripts.misuse "report of a file needs --out, as --out gait.html"
      end
      out = paths[1]:gsub("(.)/+$", "%1") .. "/report.html"
    end
    if not out:match "%.html$" then scripts.misuse("report --out must end in .html, got %s", out) end
    pages.require_writable(out, "cqlua report", not option.program.out and "--out page.html writes it elsewhere" or nil)
    local visuals = require "cq.picture.visuals"
    visuals.name = "cqlua report"
    for _, given in ipairs(def.colour) do visuals.colour(given) end          -- before a page is replaced
    local page = pages.new(paths[1]:gsub("/+$", ""):match "([^/]+)$":gsub("%.bin$", ""))
    if is_study(paths[1]) then
      if #paths > 1 then scripts.misuse("report takes one study, got %d folders", #paths) end
      require("cq.study.page")(paths[1], def, page, options.bodies or 4)
    else
      require("cq.report.folder").add(page, paths, def, options.bodies or 4)
    end
    page:write(out, "cqlua report")
  end,
}
