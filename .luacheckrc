-- luacheck: LuaJIT's globals and no others
std = "luajit"
max_line_length = false
codes = true
self = false
exclude_files = { "build" }
-- not (a < b) is meant where a may be nan; a method keeps its self
ignore = { "581", "212/self" }
files["tests/**/*_spec.lua"] = { std = "luajit+busted" }
files["tests/style.lua"] = { std = "luajit+busted" }
files["tests/trainings.lua"] = { std = "luajit+busted" }
-- scripts are given their arguments in arg
files["examples"] = { std = "luajit" }
