-- plot: the losses of runs as a picture, also of one that is still at work.
--   cqlua plot runs/walk                          writes runs/walk/loss.png
--   cqlua plot runs/walk runs/slow --file both.png
local is = require "cq.base.schema"
local message = require "cq.base.message"
local scripts = require "cq.base.script"
local summary = require "cq.run.summary"

-- A column of a run's history over its iterations; nil where it has no number.
local function series_of(run, column)
  local x, y = {}, {}
  for _, row in ipairs(run.rows) do
    if type(row[column]) == "number" and type(row.iteration) == "number" then
      x[#x + 1], y[#y + 1] = row.iteration, row[column]
    end
  end
  return #x > 0 and { name = run.folder, x = x, y = y } or nil
end

return {
  summary = "the losses of runs as a picture, also of those at work",
  arguments = "RUN ...",
  options = {
    file = is.string { optional = true,
      help = "of the picture, .png; loss.png in the folder of the first run unless given" },
    column = is.string { default = "loss", help = "of history.csv" },
    ["log-y"] = is.boolean { default = false, help = "a logarithmic axis" },
  },
  run = function(options, words)
    if #words == 0 then scripts.misuse "plot takes the folders of runs, got none" end
    local series, column = {}, options.column or "loss"
    for _, folder in ipairs(words) do
      local run = summary.of(folder, "cqlua plot")
      local one = series_of(run, column)
      if not one then is.fail("cqlua plot: the history of %s has no numbers %s yet", run.folder, column) end
      series[#series + 1] = one
      print(("%s: %s, iteration %d, loss %.6g, best %.6g of iteration %d"):format(run.folder, run.status,
        run.last.iteration, run.last.loss, run.best.loss, run.best.iteration))
    end
    local path = options.file or words[1] .. "/" .. column:gsub("[^%w_]", "_") .. ".png"
    if not path:match "%.png$" then scripts.misuse("--file must end in .png, got %s", path) end
    require "cq.plot" { title = column, series = series, x_label = "iteration", log_y = options["log-y"] or false }
      :write(path:find("/", 1, true) and path or "./" .. path)
    message.note("%s", path)
  end,
}
