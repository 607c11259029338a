-- prose: comments as paragraphs and as text that keeps its lines, broken to a width; for every form of the reference.
local prose = {}

---The lines of a comment as blocks: { kind = "paragraph" | "lines", lines }. Indented lines are kept as they are
---("lines").
---@param lines string[]
---@return { kind: string, lines: string[] }[]
function prose.blocks(lines)
  local blocks, last = {}, nil
  for _, line in ipairs(lines) do
    -- what may go wrong is told apart
    if line:find "^Errors: " then last = nil end
    local kind = line:find "^%s*$" and "empty" or line:find "^%s%s" and "lines" or "paragraph"
    if kind == "empty" then
      if last and last.kind == "lines" then last.lines[#last.lines + 1] = "" end
      if last and last.kind == "paragraph" then last = nil end
    elseif last and last.kind == kind then
      last.lines[#last.lines + 1] = line
    else
      last = { kind = kind, lines = { line } }
      blocks[#blocks + 1] = last
    end
  end
  for _, block in ipairs(blocks) do
    while block.lines[#block.lines] == "" do block.lines[#block.lines] = nil end
  end
  return blocks
end

-- Appends the words of a line to `out`, broken before `width`: the first line behind `indent`, later ones behind
-- `hanging`.
local function break_line(out, line, width, indent, hanging)
  local current, empty = indent, true
  for gap, word in line:gmatch "(%s*)(%S+)" do
    gap = empty and "" or #gap > 0 and gap or " "
    if not empty and #current + #gap + #word > width then
      out[#out + 1] = current
      current, gap = hanging, ""
    end
    current, empty = current .. gap .. word, false
  end
  out[#out + 1] = current
end

---A text as lines broken to a width: each line behind `indent`, those after the first behind `hanging`.
---@param text string
---@param width integer
---@param indent? string
---@param hanging? string
---@return string[]
function prose.wrap(text, width, indent, hanging)
  local out = {}
  break_line(out, (text:gsub("%s+", " ")), width, indent or "", hanging or indent or "")
  return out
end

-- Appends an indented line to out. One that is too long is broken, and continues in the column of its last gap, or a
-- little further in.
local function wrap_kept(out, line, width, indent)
  if #indent + #line <= width then
    out[#out + 1] = indent .. line
    return
  end
  local lead = line:match "^%s*"
  local column = #lead + 3
  for gap in line:gmatch "%S%s%s+()%S" do
    if gap < 0.75 * width then column = gap end
  end
  break_line(out, line:sub(#lead + 1), width, indent .. lead, indent .. (" "):rep(column - 1))
end

---The lines of a comment, broken to a width: paragraphs are filled, indented lines are kept.
---@param lines string[]
---@param width integer
---@param indent? string
---@return string[]
function prose.fill(lines, width, indent)
  local out = {}
  indent = indent or ""
  for k, block in ipairs(prose.blocks(lines)) do
    if k > 1 then out[#out + 1] = "" end
    if block.kind == "paragraph" then
      break_line(out, (table.concat(block.lines, " "):gsub("%s+", " ")), width, indent, indent)
    else
      for _, line in ipairs(block.lines) do wrap_kept(out, line, width, indent) end
    end
  end
  return out
end

---The first sentence of a comment, without the name that a file's comment begins with ("world: a grid").
---@param lines string[]
---@return string
function prose.summary(lines)
  local blocks = prose.blocks(lines)
  local first = blocks[1] and table.concat(blocks[1].lines, " "):gsub("%s+", " ") or ""
  first = first:gsub("^[%l_]+: ", ""):gsub("([^%.])%.$", "%1")
  local at = 1
  while true do
    local stop = first:find("%.%f[%s%z]", at)
    -- "e.g. x" and "eq. 13" end no sentence
    if not stop then return first end
    local ends = first:find("^%s+[%u`\"]", stop + 1) and not first:sub(1, stop):find "%f[%w]eq%.$"
    if ends then return first:sub(1, stop - 1) end
    at = stop + 1
  end
end

---The lines of the comment at the head of a file, without the name that it begins with, in a new list.
---@param lines string[]
---@return string[]
function prose.about(lines)
  local out = {}
  for k, line in ipairs(lines) do out[k] = line end
  if out[1] then out[1] = out[1]:gsub("^[%l_]+: ", ""):gsub("^%l", string.upper) end
  return out
end

return prose
