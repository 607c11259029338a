-- leaves: the tensors in nested tables with a name for each: net.layers[1].w. Tables with a metatable, and everything
-- that is no table, are passed over.
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"

---@class cq.Leaf
---@field path string       as a user would write it; "parameter" for a tensor that stands alone
---@field tensor cq.Tensor

local leaves = {}

-- Does key a come before key b? Numbers come first, then names, so that parameters have the same order in every run.
local function before(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

-- LuaJIT specialises loops over pairs and over what is named next. When its compiler gives one up, that may pass over
-- an entry (LuaJIT bug 1510, mended in 2026): no parameter may be lost so.
local following = next

---The keys of a table that are numbers or strings: numbers ascending, then strings by the alphabet.
---@param t table
---@return any[] keys
---@return integer others     keys that are neither numbers nor strings
function leaves.sorted_keys(t)
  local keys, others = {}, 0
  for key in following, t do
    if type(key) == "number" or type(key) == "string" then keys[#keys + 1] = key else others = others + 1 end
  end
  table.sort(keys, before)
  return keys, others
end

-- The path of an entry, "a.b" or "a[1]", from the path of its table and its key.
local function join(path, key)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then return path == "" and key or path .. "." .. key end
  return ("%s[%s]"):format(path, type(key) == "string" and ("%q"):format(key) or tostring(key))
end

-- Is this a plain table, which may hold tensors?
local function is_branch(value)
  return type(value) == "table" and getmetatable(value) == nil
end

-- Appends { path, tensor } of each tensor in nested tables to `out`, each tensor once. seen: tables and tensors that
-- were met.
local function collect(value, path, out, seen)
  if class.is_tensor(value) then
    -- one tensor in two places is one leaf
    if not seen[value] then out[#out + 1] = { path = path == "" and "parameter" or path, tensor = value } end
    seen[value] = true
  elseif is_branch(value) and not seen[value] then
    seen[value] = true
    for _, key in ipairs(leaves.sorted_keys(value)) do collect(value[key], join(path, key), out, seen) end
  end
end

---All tensors of nested tables, each once, in a fixed order.
---@param value any
---@return cq.Leaf[]
function leaves.list(value)
  local out = {}
  collect(value, "", out, {})
  return out
end

---The tensors of nested tables by their paths, and the paths in the order of leaves.list.
---@param value any
---@return table<string, cq.Tensor> tensors
---@return string[] paths
function leaves.by_path(value)
  local out, paths = {}, {}
  for k, leaf in ipairs(leaves.list(value)) do out[leaf.path], paths[k] = leaf.tensor, leaf.path end
  return out, paths
end

---The params of nested tables; all tensors if there is no param. Errors: no tensor.
---@param value any
---@param what string      for errors
---@return cq.Leaf[]
function leaves.trainable(value, what)
  local all, params = leaves.list(value), {}
  for _, leaf in ipairs(all) do
    if leaf.tensor.trainable then params[#params + 1] = leaf end
  end
  local out = #params > 0 and params or all
  if #out == 0 then
    schema.fail("%s: needs a tensor or tables of tensors to differentiate by, got %s", what, schema.describe(value))
  end
  return out
end

---A table of the same shape with f(tensor) in the place of each tensor, nothing where that is nil. Branches that stay
---empty are kept, other values are not.
---@param value any
---@param f fun(tensor: cq.Tensor): any
---@return any
function leaves.map(value, f)
  local made = {}
  -- A nested table with f applied to each tensor; nil for other values.
  local function build(part)
    if class.is_tensor(part) then return f(part) end
    if not is_branch(part) then return nil end
    if made[part] then return made[part] end
    local out = {}
    made[part] = out
    for _, key in ipairs(leaves.sorted_keys(part)) do out[key] = build(part[key]) end
    return out
  end
  return build(value)
end

---A copy of nested tables with f(tensor) in the place of each tensor, all else as it is.
---@param value any
---@param f fun(tensor: cq.Tensor): any
---@return any
function leaves.copy(value, f)
  local made = {}
  -- A copy of nested tables with f applied to each tensor; other values unchanged.
  local function build(part)
    if class.is_tensor(part) then
      made[part] = made[part] or f(part)
    elseif is_branch(part) and not made[part] then
      made[part] = {}
      for key, other in pairs(part) do made[part][key] = build(other) end
    end
    return made[part] or part
  end
  return build(value)
end

---A copy of nested tables: tensors in memory of their own, params with their bounds, all else as it is.
---@param value any
---@return any
function leaves.snapshot(value) return leaves.copy(value, class.twin) end

---For each tensor of nested tables the value at the same place of another table.
---@param params any
---@param others any        a table of the same shape
---@return table<cq.Tensor, any>
function leaves.pair(params, others)
  local found, seen = {}, {}
  -- Adds the tensors of a nested table and the values at their places in another one to `found`.
  local function walk(part, other)
    if class.is_tensor(part) then
      found[part] = found[part] or other
    elseif is_branch(part) and is_branch(other) and not seen[part] then
      seen[part] = true
      for _, key in ipairs(leaves.sorted_keys(part)) do walk(part[key], other[key]) end
    end
  end
  walk(params, others)
  return found
end

-- A tensor's shape as text, "none" for another value.
local function shape_text(tensor) return class.is_tensor(tensor) and class.shape_text(tensor.dims) or "none" end

---Copies saved tensors into the trainable ones of the same names and shapes. Errors: a name or a shape does not fit;
---then no tensor is changed.
---@param params any
---@param saved any         a table of the same shape
---@param what string       for errors
function leaves.load(params, saved, what)
  local list, found, known = leaves.trainable(params, what), leaves.pair(params, saved), {}
  for _, leaf in ipairs(leaves.list(params)) do known[leaf.path] = true end
  for _, leaf in ipairs(list) do
    local own, other = shape_text(leaf.tensor), shape_text(found[leaf.tensor])
    if own ~= other then
      schema.fail("%s: the saved parameters do not fit: %s has the shape %s here and %s there", what, leaf.path, own,
        other)
    end
  end
  for _, leaf in ipairs(leaves.list(saved)) do
    if not known[leaf.path] then
      schema.fail("%s: the saved parameters do not fit: %s has the shape none here and %s there", what, leaf.path,
        shape_text(leaf.tensor))
    end
  end
  for _, leaf in ipairs(list) do leaf.tensor:copy_from(found[leaf.tensor]) end
end

return leaves
