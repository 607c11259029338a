-- type: LuaCATS types as text: where one ends, the parts of a union, the fields of a table type.
local types = {}

local opens = { ["{"] = true, ["("] = true, ["<"] = true, ["["] = true }
local closes = { ["}"] = true, [")"] = true, [">"] = true, ["]"] = true }

-- Calls visit(character, position) for every character outside of brackets and quotes, until it returns true; returns
-- that position, nil if it never does.
local function outside(text, visit)
  local depth, quoted = 0, false
  for at = 1, #text do
    local c = text:sub(at, at)
    if c == '"' then quoted = not quoted
    elseif not quoted then
      if closes[c] then depth = depth - 1 end
      if depth == 0 and not closes[c] and not opens[c] and visit(c, at) then return at end
      if opens[c] then depth = depth + 1 end
    end
  end
end

---Splits the LuaCATS type off the beginning of a text: the type, and the rest. The results of a function type belong
---to it.
---@param text string        "fun(x: number): number   what it gives"
---@return string type, string rest
function types.take(text)
  text = text:match "^%s*(.-)%s*$"
  local word, after = text:match '^([^%s{(<"]+)%s*(.*)$'
  if word and not text:find('^["{(<]', #word + 1) and not word:find ",$" then return word, after end
  local stop = outside(text, function(c) return c:find "%s" ~= nil end)
  local first, rest = text:sub(1, (stop or #text + 1) - 1), text:sub(stop or #text + 1)
  -- "fun(x: number):" and "number," go on
  if (first:find "%):$" or first:find ",$") and rest ~= "" then
    local more
    more, rest = types.take(rest)
    return first .. " " .. more, rest
  end
  return first, (rest:match "^%s*(.*)$")
end

---A list of the parts of a union.
---@param text string        "number|number[]"
---@return string[]
function types.split(text)
  if text:find "^fun%(" and text:find "%):" then return { text } end      -- the results of a function may be a union
  local parts, from = {}, 1
  outside(text, function(c, at)
    if c == "|" then
      parts[#parts + 1] = text:sub(from, at - 1)
      from = at + 1
      if text:find("^fun%(", from) then return true end
    end
  end)
  parts[#parts + 1] = text:sub(from)
  local out = {}
  for _, part in ipairs(parts) do
    local inner = part:match "^%((.*)%)$"
    for _, piece in ipairs(inner and types.split(inner) or { part }) do out[#out + 1] = piece end
  end
  return out
end

---The parts of a union type as a set, without nil; "x.def" is "x".
---@param text string
---@return table<string, true>
function types.set(text)
  local set = {}
  for _, part in ipairs(types.split((text:gsub("%?$", "")))) do set[part:gsub("%.def$", "")] = true end
  set["nil"] = nil
  return set
end

---The fields of a table type, in their order; nil for any other type.
---@param text string        "{ young: number, poisson?: number }"
---@return { name: string, type: string, optional: boolean, text: string }[]?
function types.fields(text)
  local body = text:match "^{(.*)}$"
  if not body then return nil end
  local fields, from = {}, 1
  -- Parses one field of a table type, "name?: type", and adds it.
  local function add(piece)
    local name, mark, kind = piece:match "^%s*([%w_]+)(%??)%s*:%s*(.-)%s*$"
    local optional = mark == "?" or (kind or ""):find "%?$" ~= nil
    if name then fields[#fields + 1] = { name = name, optional = optional, type = kind, text = "" } end
  end
  outside(body, function(c, at)
    if c == "," then
      add(body:sub(from, at - 1))
      from = at + 1
    end
  end)
  add(body:sub(from))
  return fields
end

---A type as readers of the reference see it: classes of named fields, which are shown beneath, become "table".
---@param text string
---@return string
function types.shown(text)
  text = text:gsub("%?$", ""):gsub("%f[%w][%w_]+%.[%w_%.]+%.def%f[^%w_]", "table"):gsub("cq%.[%w_%.]+Options", "table")
  return text
end

---An iterator over the names of the classes that a type mentions, such as "cq.State".
---@param text string
---@return fun(): string?
function types.classes(text) return text:gmatch "%f[%w_][%l_]+%.[%w_%.]*[%w_]" end

return types
