-- read_file: a whole file.

---The bytes of a file; nil and a sentence where it cannot be read.
---@param path string
---@return string? bytes, string? problem
return function(path)
  local file, problem = io.open(path, "rb")
  if not file then return nil, problem end
  local bytes, why = file:read "*a"
  file:close()
  return bytes, why
end
