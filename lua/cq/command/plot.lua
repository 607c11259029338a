-- plot: the losses of runs as a picture, also of one that is still at work.
--   cqlua plot runs/walk                          writes runs/walk/loss.png
--   cqlua plot runs/walk runs/slow --file both.png      or --out both.png
local atomic_file = require "cq.base.atomic_file"
local history = require "cq.picture.history"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local option = require "cq.option"
local scripts = require "cq.base.script"
local summary = require "cq.run.summary"
local text = require "cq.base.text"

-- A column of a run's history over its iterations as a list of series: one with the run's name, or if it is `alone`,
-- one for each stage of a plan; nil where it has no finite number.
local function series_of(run, column, alone)
  local x, y, any = history.column(run.rows, column)
  if not any then return nil end
  if not (alone and (run.rows[1].stage or run.rows[1].start)) then return { { name = run.folder, x = x, y = y } } end
  return history.by_stage(run.rows, column, history.dropped_in(run.rows, run.folder))
end

-- Raises an error about a column that cannot be drawn: it has no numbers, or there is none of this name, and then which
-- there are.
local function refuse(run, column)
  local seen, names = {}, {}
  for _, row in ipairs(run.rows) do
    for name in pairs(row) do seen[name] = true end
  end
  for name in pairs(seen) do names[#names + 1] = name end
  table.sort(names)
  if seen[column] or #names == 0 then
    is.fail("cqlua plot: the history of %s has no finite number in its column %s", run.folder, column)
  end
  is.fail("cqlua plot: the history of %s has no column %s%s; it has %s", run.folder, column,
    text.suggestion(column, names), table.concat(names, ", "))
end

-- A text on how far a run is: its last iteration and loss, and the best, where there are any.
local function line_of(run)
  local line = ("%s: %s, iteration %d"):format(run.folder, run.status, run.last.iteration)
  if run.last.loss then line = ("%s, loss %.6g"):format(line, run.last.loss) end
  return run.best and ("%s, best %.6g of iteration %d"):format(line, run.best.loss, run.best.iteration) or line
end

return {
  summary = "the losses of runs as a picture, also of those at work",
  arguments = "RUN ...",
  options = {
    file = is.string { optional = true,
      help = "of the picture, .png, as --out; loss.png in the folder of the first run unless given" },
    column = is.string { default = "loss", help = "of history.csv" },
    ["log-y"] = is.boolean { default = false, help = "a logarithmic axis" },
  },
  -- The subcommand: draws the histories of the folders `words` and prints how far the runs are.
  run = function(options, words)
    if #words == 0 then scripts.misuse "plot takes the folders of runs, got none" end
    local out = option.program.out
    if options.file and out then scripts.misuse "plot takes --file or --out, which are the same, not both" end
    local given = options.file or out
    if given and not given:match "%.png$" then
      scripts.misuse("plot --%s must end in .png, got %s", options.file and "file" or "out", given)
    end
    local series, column = {}, options.column or "loss"
    for _, folder in ipairs(words) do
      local run = summary.of(folder, "cqlua plot")
      for _, one in ipairs(series_of(run, column, #words == 1) or refuse(run, column)) do series[#series + 1] = one end
      print(line_of(run))
    end
    local path = given or words[1] .. "/" .. column:gsub("[^%w_]", "_") .. ".png"
    local problem = not given and atomic_file.problem(path)
    if problem then
      is.fail("cqlua plot: %s cannot be written: %s; --out plot.png writes it elsewhere", path, problem)
    end
    require "cq.plot" { title = column, series = series, x_label = "iteration", log_y = options["log-y"] or false }
      :write(path:find("/", 1, true) and path or "./" .. path)
    message.note("%s", path)
  end,
}
