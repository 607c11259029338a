-- migrate: files of earlier versions as the present one has them.
--
--   1   until fields of worlds, materials and implicit steps took the names of the field
--   2   until gradients had a table of their own: gradient_decay was adjoint_decay
--   3   until networks had scales of their observations, an output of their own, and elu
local migrate = {}

-- Renames keys of a table in place; names: { old name = new name }. table may be nil.
local function rename(table, names)
  for before, now in pairs(table and names or {}) do
    if table[before] ~= nil then table[now], table[before] = table[before], nil end
  end
end

local of_world = { volume_averaging = "pressure_smoothing" }
local of_material = { dilatation_averaging = "f_bar" }
local of_integrator = {
  newton = "newton_iterations", linear = "linear_iterations", gradient = "adjoint_tolerance", slide = "stick_velocity",
}

-- fields of a world that came within a version, and what there was before
local came_later = { transfer = "apic", formulation = "updated" }

local of_options = { adjoint_decay = "gradient_decay" }

-- from a version to the next
local steps = {
  -- In place, from version 1: fields of the world, its integrator and the materials take their present names.
  [1] = function(data)
    if not data.world then return end
    rename(data.world.fields, of_world)
    rename(data.world.integrator, of_integrator)
    for _, robot in ipairs(data.robots) do
      for _, material in ipairs(robot.laws) do rename(material, of_material) end
    end
  end,
  -- In place, from version 2: the option adjoint_decay of a stage becomes gradient_decay.
  [2] = function(data)
    for _, name in ipairs { "options", "cut" } do rename(data.stage and data.stage[name], of_options) end
  end,
}

local of_records = { ["options.adjoint_decay"] = "options.gradient_decay" }

---Renames, in place, keys of a state that an earlier program saved to resume a training from, as these files have no
---version. Other values are left alone.
---@param state any          the optimizer's part of optimizer.bin
function migrate.training(state)
  if type(state) ~= "table" or type(state.plan) ~= "table" or type(state.starts) ~= "table" then return end
  for _, record in pairs(state.plan) do rename(type(record) == "table" and record, of_records) end
  for _, start in pairs(state.starts) do
    local signature = type(start) == "table" and type(start.solver) == "table" and start.solver.signature
    local manner = type(signature) == "table" and signature.manner
    if type(manner) == "table" then
      rename(manner, of_records)
      if manner.adjoint_decay then
        manner.gradient, manner.adjoint_decay = "decay " .. manner.adjoint_decay, nil
      end
    end
  end
end

---Converts the data of a saved run from data.version to a later version, in place, step by step, and adds fields of
---the world that came later.
---@param data table
---@param version integer
function migrate.to(data, version)
  for from = data.version, version - 1 do
    if steps[from] then steps[from](data) end
  end
  local fields = data.world and data.world.fields
  for name, value in pairs(fields and came_later or {}) do
    if fields[name] == nil then fields[name] = value end
  end
end

return migrate
