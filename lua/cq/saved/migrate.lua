-- migrate: files of earlier versions as the present one has them.
--
--   1   until fields of worlds, materials and implicit steps took the names of the field
local migrate = {}

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

-- from a version to the next
local steps = {
  [1] = function(data)
    if not data.world then return end
    rename(data.world.fields, of_world)
    rename(data.world.integrator, of_integrator)
    for _, robot in ipairs(data.robots) do
      for _, material in ipairs(robot.laws) do rename(material, of_material) end
    end
  end,
}

---Brings the data of a file to a version.
---@param data table
---@param version integer
function migrate.to(data, version)
  for from = data.version, version - 1 do
    if steps[from] then steps[from](data) end
  end
end

return migrate
