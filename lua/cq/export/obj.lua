-- obj: Wavefront's text files of surfaces, an object for each body.
local obj = { name = "obj", summary = "Wavefront OBJ, surfaces; all frames: a file each" }

---Surfaces as OBJ, an object for each body.
---@param surface cq.export.Surface
---@return string
function obj.surface(surface)
  local lines, first = { ("# cqlua, time %.9g"):format(surface.time) }, 0
  for _, body in ipairs(surface.bodies) do
    lines[#lines + 1] = "o " .. body.name:gsub("%s", "_")
    local x = body.vertices:data()
    for v = 0, body.vertices:size(1) - 1 do
      lines[#lines + 1] = ("v %.9g %.9g %.9g"):format(x[3 * v], x[3 * v + 1], x[3 * v + 2])
    end
    local t = body.triangles
    for k = 1, #t, 3 do
      lines[#lines + 1] = ("f %d %d %d"):format(t[k] + first + 1, t[k + 1] + first + 1, t[k + 2] + first + 1)
    end
    first = first + body.vertices:size(1)
  end
  return table.concat(lines, "\n") .. "\n"
end

return obj
