-- columns: fields of particles as columns of numbers with a name and a unit each, for formats of tables and records.
local columns = {}

local AXES = { "x", "y", "z" }

-- A list of the endings of column names for the components of a quantity of these sizes: a number, a vector, or a
-- matrix {dim, dim}.
local function endings(dims, dim)
  local out = {}
  if #dims == 0 or #dims == 1 and dims[1] == 1 then return { "" } end
  for i = 1, dims[1] do
    if #dims == 1 then
      out[i] = dims[1] == dim and "_" .. AXES[i] or "_" .. i
    else
      for j = 1, dims[2] do out[#out + 1] = "_" .. AXES[i] .. AXES[j] end
    end
  end
  return out
end

---A list of names of the components of a field, "velocity_x" and so on; of the position "x", "y" and "z".
---@param field cq.export.Field
---@param dim integer
---@return string[]
function columns.names(field, dim)
  local shape, out = field.values:shape(), {}
  for k, ending in ipairs(endings({ unpack(shape, 2) }, dim)) do
    out[k] = (field.name == "position" and ending:sub(2) or field.name .. ending):gsub("[^%w_]", "_")
  end
  return out
end

---A unit in the words of the user, { length = "m" }: "length/time" as "m/time". Without a word for force, this is "mass
---length/time^2".
---@param unit string
---@param units? table<string, string>
---@return string
function columns.unit(unit, units)
  local words = units or {}
  if unit == "force" and not words.force then unit = "mass length/time^2" end
  return (unit:gsub("%a+", words))
end

return columns
