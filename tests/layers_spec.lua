-- layers: what the rooms of the Lua library may require: those above them in the list, requires within functions and
-- looks into package.loaded included. lua/README.md draws it.
local host = require "cq.host"
local source = require "tests.source"

-- Each room with what it holds: a module and the folder of its name, or one module of such a folder, which then belongs
-- to this room alone.
local ROOMS = {
  { "base", "base", "option" },
  { "tensor", "tensor", "random", "sparse", "csv" },
  { "field", "base.field", "robot.other_names" },
  { "export", "export" },
  { "model", "shape", "material", "boundary", "actuator", "robot", "creature" },
  { "policy", "state.readout", "observer", "controller" },
  { "simulation", "world", "state", "rollout", "implicit" },
  { "record", "run", "ranks", "saved", "load" },
  { "optimize", "optimizer", "schedule", "uncertainty" },
  { "learn", "env", "learner", "learn" },
  { "picture", "picture", "plot" },
  { "report", "report" },
  { "topology", "topology" },
  { "experiment", "experiment", "plan", "robustness" },
  { "study", "study" },
  { "program", "program", "command", "reference", "measure", "zoo" },
}

local level, name_of, exact = {}, {}, {}
for k, room in ipairs(ROOMS) do
  name_of[k] = room[1]
  for j = 2, #room do (room[j]:find(".", 1, true) and exact or level)[room[j]] = k end
end

-- the room of a module, by its number; cq itself hands out everything
local function room_of(module)
  local name = module:match "^cq%.(.+)$"
  if not name then return #ROOMS end
  return exact[name] or level[name:match "^[^.]+"]
end

local function modules()
  local out = {}
  local function walk(folder, prefix)
    for _, entry in ipairs(host.entries(folder)) do
      local path = folder .. "/" .. entry
      if host.kind(path) == "folder" then walk(path, prefix .. entry .. ".")
      elseif entry:match "%.lua$" then
        out[(prefix .. entry:gsub("%.lua$", "")):gsub("%.init$", "")] = path
      end
    end
  end
  walk("lua/cq", "cq.")
  return out
end

describe("the Lua library", function()
  local all = modules()

  it("has a room for every module", function()
    local without = {}
    for module, path in pairs(all) do
      if not room_of(module) then without[#without + 1] = path end
    end
    assert.same({}, without)
  end)

  it("requires no room below", function()
    local wrong = {}
    for module, path in pairs(all) do
      local number = 0
      for line in (source.read(path) .. "\n"):gmatch "([^\n]*)\n" do
        number = number + 1
        if not line:match "^%s*%-%-" then
          for needed in line:gmatch '[%[%(%s]"(cq[%w_.]*)"' do
            local from, to = room_of(module), all[needed] and room_of(needed)
            if to and to > from and line:match "require" then
              wrong[#wrong + 1] = ("%s:%d: %s requires %s, which is below in %s"):format(path, number, name_of[from],
                needed, name_of[to])
            end
          end
        end
      end
    end
    table.sort(wrong)
    assert.same({}, wrong)
  end)
end)
