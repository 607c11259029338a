-- glb: glTF 2.0 in one binary file, for browsers, Blender and slides: surfaces, which move through frames as morph
-- targets that an animation blends, each frame into the next.
local bytes = require "cq.export.bytes"
local json = require "cq.base.json"

-- the accessors' types and targets of buffers, by the numbers of the format
local FLOAT, UNSIGNED, VERTICES, INDICES, TRIANGLES = 5126, 5125, 34962, 34963, 4

local glb = { name = "glb", most = 32,
  summary = "glTF binary for browsers and Blender, surfaces; all frames: one file of morph targets" }

local Buffer = {}
Buffer.__index = Buffer

-- Appends bytes with a view and an accessor, a table of glTF, of them; returns the accessor's number, from 0.
function Buffer:add(raw, accessor, target)
  self.parts[#self.parts + 1] = bytes.padded(raw, 4)
  self.views[#self.views + 1] = { buffer = 0, byteOffset = self.size, byteLength = #raw, target = target }
  self.size = self.size + #self.parts[#self.parts]
  accessor.bufferView = #self.views - 1
  self.accessors[#self.accessors + 1] = accessor
  return #self.accessors - 1
end

-- Appends places {v, 3}, with the least and the most of each axis in the digits of the file, as the format wants it;
-- returns the accessor's number.
function Buffer:places(values)
  local raw = bytes.of("float32", values)
  local single = require("ffi").cast("const float *", raw)
  local least, most = {}, {}
  for d = 1, 3 do least[d], most[d] = math.huge, -math.huge end
  for k = 0, values.count - 1 do
    local d = k % 3 + 1
    least[d], most[d] = math.min(least[d], single[k]), math.max(most[d], single[k])
  end
  return self:add(raw, { componentType = FLOAT, count = values:size(1), type = "VEC3", min = least, max = most },
    VERTICES)
end

-- Appends a list of numbers to the buffer; returns the accessor's number.
function Buffer:numbers(list)
  local least, most = math.min(unpack(list)), math.max(unpack(list))
  return self:add(bytes.of("float32", list), { componentType = FLOAT, count = #list, type = "SCALAR", min = { least },
    max = { most } })
end

-- Appends the weights of morph targets by frame: 1 for the frame's own target, else 0. Returns the accessor's number.
-- count: of targets.
local function weights(buffer, count)
  local list = {}
  for frame = 0, count do
    for target = 1, count do list[#list + 1] = target == frame and 1 or 0 end
  end
  return buffer:add(bytes.of("float32", list), { componentType = FLOAT, count = #list, type = "SCALAR" })
end

-- The glTF mesh of body k, a table, with a morph target for each later frame.
local function mesh(buffer, frames, k)
  local body = frames[1].bodies[k]
  local count = #body.triangles
  local primitive = { mode = TRIANGLES, attributes = { POSITION = buffer:places(body.vertices) },
    indices = buffer:add(bytes.of("uint32", body.triangles),
      { componentType = UNSIGNED, count = count, type = "SCALAR" }, INDICES), targets = #frames > 1 and {} or nil }
  for f = 2, #frames do
    primitive.targets[f - 1] = { POSITION = buffer:places(frames[f].bodies[k].vertices - body.vertices) }
  end
  return { name = body.name, primitives = { primitive } }
end

-- The glTF animation, a table, that blends the morph targets over time. nodes: their number.
local function animation(buffer, frames, nodes)
  local times, out = {}, { samplers = {}, channels = {} }
  for f, frame in ipairs(frames) do times[f] = frame.time - frames[1].time end
  local input, output = buffer:numbers(times), weights(buffer, #frames - 1)
  out.samplers[1] = { input = input, output = output, interpolation = "LINEAR" }
  for k = 1, nodes do out.channels[k] = { sampler = 0, target = { node = k - 1, path = "weights" } } end
  return out
end

-- A chunk of a GLB file as bytes: length, kind, content.
local function chunk(kind, content) return bytes.of("uint32", { #content }) .. kind .. content end

---Frames whose surfaces have the same triangles, as the bytes of one binary glTF file that moves.
---@param frames cq.export.Surface[]
---@return string
function glb.moving(frames)
  local buffer = setmetatable({ parts = {}, views = {}, accessors = {}, size = 0 }, Buffer)
  local meshes, nodes, roots = {}, {}, {}
  for k, body in ipairs(frames[1].bodies) do
    meshes[k] = mesh(buffer, frames, k)
    nodes[k], roots[k] = { mesh = k - 1, name = body.name }, k - 1
  end
  local document = {
    asset = { version = "2.0", generator = "cqlua" }, scene = 0, scenes = { { nodes = roots } }, nodes = nodes,
    meshes = meshes, animations = #frames > 1 and { animation(buffer, frames, #nodes) } or nil,
    accessors = buffer.accessors, bufferViews = buffer.views, buffers = { { byteLength = buffer.size } },
  }
  local body = chunk("JSON", bytes.padded(json.encode(document), 4, " ")) .. chunk("BIN\0", table.concat(buffer.parts))
  return "glTF" .. bytes.of("uint32", { 2, 12 + #body }) .. body
end

---Surfaces as binary glTF that does not move.
---@param surface cq.export.Surface
---@return string
function glb.surface(surface) return glb.moving { surface } end

return glb
