-- read: arrays that NumPy has written, in all of its types and both orders.
--   cqlua tests/export/read.lua --folder DIR
local cq = require "cq"

local folder = cq.option("folder", "export")
local base = cq.arange(0, 23):reshape { 2, 3, 4 }

local function same(name, expected)
  local got = cq.load(("%s/%s.npy"):format(folder, name))
  assert(table.concat(got:shape(), " ") == table.concat(expected:shape(), " "), name)
  assert((got - expected):abs():max():item() == 0, name)
end

same("c", base / 7)
same("fortran", base / 7)
same("zero", cq.tensor(2.5))
for _, name in ipairs { "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64" } do
  same(name, base)
end
same("bool", base:greater(0))
local fine, problem = pcall(cq.load, folder .. "/complex.npy")
assert(not fine and problem:find("of the type '<c16'; a tensor takes", 1, true), problem)
print "ok   npy of NumPy"
