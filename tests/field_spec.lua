-- field: the engine's lists reach scripts as they stand there: every law and constant of engine/lists.h, also those
-- that are added to it after this was written.
local cq = require "cq"
local T = require "cq.tensor"
local field = require "cq.base.field"
local is = require "cq.base.schema"
local book = require("cq.reference.book").new()

-- numbers within the bounds of a field, of one particle
local function values_of(entry, dim)
  local number = 1
  if entry.upper < math.huge then number = (math.max(entry.lower, -1) + entry.upper) / 2
  elseif entry.lower > -math.huge then number = entry.lower + 1.5 end
  if entry.rank == 0 then return number end
  local row, rows = {}, {}
  for i = 1, dim do row[i] = number end
  for i = 1, dim do rows[i] = row end
  return entry.rank == 1 and row or rows
end

local function each_choice(visit)
  for _, law in ipairs(field.laws) do
    for _, choice in ipairs(law.choices) do
      local given = {}
      for _, constant in ipairs(choice.constants) do given[constant.name] = values_of(constant, 2) end
      visit(law, choice, given)
    end
  end
end

local function robot(material)
  return cq.Robot { shape = cq.Shape.box { name = "block", size = { 0.1, 0.1 }, count = { 3, 3 } },
    material = material }
end

-- the numbers of all particles that have the same value
local function repeated(value)
  local one = T.as_tensor(value)
  local shape = one:shape()
  table.insert(shape, 1, 9)
  return one:expand(shape)
end

describe("a law of the engine's list", function()
  it("has a constructor that takes its constants, and prints them", function()
    local count = 0
    each_choice(function(law, choice, given)
      local material = cq.Material[law.name](given)
      local shown = tostring(material)
      for _, constant in ipairs(choice.constants) do assert.truthy(shown:find(constant.name .. " ", 1, true), shown) end
      assert.same(choice.constants, material.constants)
      count = count + 1
    end)
    assert.is_true(count > #field.laws and #field.laws >= 3)
  end)

  it("needs each constant that has no default", function()
    each_choice(function(law, choice, given)
      for _, constant in ipairs(choice.constants) do
        local less = {}
        for name, value in pairs(given) do less[name] = name ~= constant.name and value or nil end
        -- the halves of a term come together
        local half = constant.name:match "^mu_%d" and constant.name:gsub("mu", "alpha")
          or constant.name:match "^alpha_%d" and constant.name:gsub("alpha", "mu")
        local optional = constant.default ~= nil and not (half and given[half] ~= nil)
        assert.equal(optional, (pcall(cq.Material[law.name], less)), law.name .. " without " .. constant.name)
      end
    end)
  end)

  it("has an array of each constant in a robot, with, and trainable", function()
    each_choice(function(law, choice, given)
      local body = robot(cq.Material[law.name](given)):at { 0.4, 0.4 }
      local world = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-3, substeps = "auto", precision = "float64",
        body }
      for _, constant in ipairs(choice.constants) do
        local name, value = constant.name, given[constant.name]
        assert.is_true(world.robot[name]:equal(repeated(value)), law.name .. " " .. name)
        local run = cq.Experiment {
          world = world, steps = 1, objective = function(s) return s:center("block"):sum() end,
          trainable = { [name] = { per = "particle" } },
        }
        assert.is_true(run.params.robot[name]:equal(repeated(value)))
        assert.equal(1, world:rollout({ steps = 1, robot = world.robot:with { [name] = value } }).steps)
        if constant.lower > -math.huge then
          local fine, problem = pcall(function()
            return world.robot:with { [name] = repeated(value) * 0 + (constant.lower - 1) }
          end)
          assert.is_false(fine)
          assert.truthy(problem:find("robot:with: " .. name .. " must be ", 1, true), problem)
        end
      end
      world:close()
    end)
  end)
end)

describe("the reference", function()
  -- what help says of a field of an entry
  local function said(entry, name)
    for _, given in ipairs(book.by_name[entry].tables) do
      for _, candidate in ipairs(given.fields) do
        if candidate.name == name then return candidate.text end
      end
    end
  end

  it("tells meaning and unit of every field from the engine's list", function()
    local function check(entry, of)
      local text = said(entry, of.name)
      assert.equal(("%s [%s]"):format(of.meaning, of.unit), text and text:sub(1, #of.meaning + #of.unit + 3),
        entry .. " " .. of.name)
    end
    for _, entry in ipairs(field.of_robot) do check("robot:with", entry) end
    for _, entry in ipairs(field.of_world) do check("world:rollout", entry) end
    for _, law in ipairs(field.laws) do
      for _, choice in ipairs(law.choices) do
        for _, constant in ipairs(choice.constants) do check("cq.material." .. law.name, constant) end
      end
    end
  end)

  it("has every field of the list among those that are checked", function()
    for _, entry in ipairs(field.list) do
      local name = entry.name == "mass" and "density" or entry.name
      assert.truthy(is.registry["robot:with"].fields[name] or is.registry["world:rollout"].fields[name], name)
    end
  end)
end)
