-- text: values as they stand in error sentences, and suggestions for misspelt names.
local text = {}

---A number as text with up to ten digits: 3, 0.25, 1e-09.
function text.number(value)
  if value ~= value then return "nan" end
  return ("%.10g"):format(value)
end

---A word as it is typed into a shell, in quotes where it needs them.
---@param word string
---@return string
function text.quoted(word)
  return word:match "^[%w_./=:,+@%%-]+$" and word or "'" .. word:gsub("'", "'\\''") .. "'"
end

---The shortest text that reads back as the same number.
function text.exact(value)
  if value ~= value then return "nan" end
  if value == math.huge or value == -math.huge then return value > 0 and "inf" or "-inf" end
  for digits = 15, 17 do
    local short = ("%." .. digits .. "g"):format(value)
    if tonumber(short) == value then return short end
  end
end

---Name of an object's class, from its metatable's __name; nil for plain values.
---@return string?
function text.class_of(value)
  local kind = type(value)
  if kind ~= "table" and kind ~= "userdata" and kind ~= "cdata" then return nil end
  local meta = getmetatable(value)
  local name = type(meta) == "table" and rawget(meta, "__name") or nil
  return type(name) == "string" and name or nil
end

---Is a value an object of the class of this name, or of a family that its class declares in __is?
function text.is_instance(value, name)
  local class = text.class_of(value)
  if not class then return false end
  local families = rawget(getmetatable(value), "__is")
  return class == name or (families ~= nil and families[name] == true)
end

---Is a value a function, or a table with __call?
function text.is_callable(value)
  if type(value) == "function" then return true end
  local meta = type(value) == "table" and getmetatable(value)
  return type(meta) == "table" and meta.__call ~= nil
end

---Are the keys of this table exactly 1..n?
function text.is_list(value)
  local count = 0
  for key in pairs(value) do
    if type(key) ~= "number" then return false end
    count = count + 1
  end
  return count == #value
end

---A noun behind its article, as text: "a thing", "an edge".
function text.article(noun)
  return (noun:match "^[aeiouAEIOU]" and "an " or "a ") .. noun
end

---A number, or numbers in nested lists, as text: 3, {1, 2}.
---@param value number|table
---@return string
function text.numbers(value)
  if type(value) == "number" then return text.number(value) end
  local parts = {}
  for k, part in ipairs(value) do parts[k] = text.numbers(part) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

---A place as a script writes it, as text: "{ 0.5, 2 }".
---@param place number[]
function text.place(place)
  local parts = {}
  for k, x in ipairs(place) do parts[k] = text.number(x) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

---A number with its noun in the singular or the plural: "1 particle", "2 particles".
function text.count(number, noun) return ("%d %s%s"):format(number, noun, number == 1 and "" or "s") end

---The first line of a caught error, without the place in the script that stands before its sentence.
---@param problem any
---@return string
function text.sentence(problem) return (tostring(problem):gsub("^[^:\n]+:%d+: ", ""):match "^[^\n]*") end

---Words joined for a sentence: "a", "a and b", "a, b and c"; empty for none.
---@param words string[]
---@return string
function text.join(words)
  if #words < 2 then return words[1] or "" end
  return table.concat(words, ", ", 1, #words - 1) .. " and " .. words[#words]
end

---A value as text for errors: 3, "a cq.Robot", "an empty table".
---@return string
function text.describe(value)
  local kind, class = type(value), text.class_of(value)
  if class then return text.article(class) end
  if kind == "number" then return text.number(value) end
  if value == "" then return "an empty string" end
  if kind == "string" then
    local short = #value > 60 and value:sub(1, 57) .. "..." or value
    return ('"%s"'):format((short:gsub("\t", "\\t"):gsub("%c", "?")))
  end
  if kind == "table" then
    if next(value) == nil then return "an empty table" end
    if text.is_list(value) then return ("a list of %d"):format(#value) end
    return "a table"
  end
  if kind == "nil" or kind == "boolean" then return tostring(value) end
  if kind == "cdata" then return ("a C value (%s)"):format(tostring(value)) end
  return "a " .. kind
end

---The number of edits (insert, delete, replace, swap of neighbours) between two words.
---@return integer
function text.distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

---The nearest of the known words, nil when none is near.
---@param word string
---@param known any[]        entries that are not strings are passed over
---@return string?
function text.suggest(word, known)
  local best, least
  for _, candidate in ipairs(known) do
    if type(candidate) == "string" then
      local edits = text.distance(word:lower(), candidate:lower())
      local near = math.max(1, math.floor(math.max(#word, #candidate) / 3))
      -- an abbreviation is near as well: iter, iterations
      local starts = #word >= 2 and candidate:sub(1, #word) == word
      if starts then edits = math.min(edits, 1) end
      if edits <= near and (not least or edits < least) then best, least = candidate, edits end
    end
  end
  return best
end

---Words as text with commas between them, `count` words in each line.
---@param words string[]
---@param count integer
---@param indent string        before each line
---@return string
function text.wrapped(words, count, indent)
  local lines = {}
  for k = 1, #words, count do
    lines[#lines + 1] = indent .. table.concat(words, ", ", k, math.min(k + count - 1, #words))
  end
  return table.concat(lines, ",\n")
end

---A text " (did you mean x?)" with the nearest of the known words; empty where none is near.
function text.suggestion(word, known)
  local best = text.suggest(word, known)
  return best and (" (did you mean %s?)"):format(best) or ""
end

return text
