// pairs: pairs and next as functions of C, which LuaJIT interprets.
//
// LuaJIT compiles its own: lj_vm_next gives a pointer in rax and a number in edx. Where the register allocator wants
// them the other way around, the LuaJIT of Debian 12 (2.1.0-beta3 of 2022-03-20) exchanges them by an instruction of 32
// bits, which leaves the lower half of the pointer, and the next compare reads from there: a segmentation fault in one
// run of a script and none in the next, as registers differ with the addresses. No loop over pairs here is a hot one.
#include "host.h"
#include <lauxlib.h>

// Lua: next(table, key) returns the next key and its value, or nil after the last.
static int next_pair(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (lua_next(lua, 1)) return 2;
  lua_pushnil(lua);
  return 1;
}

// Lua: pairs(table), for plain tables, returns next, the table and nil.
static int pairs_of(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

// Sets the globals pairs and next to functions of C, which LuaJIT never compiles.
void cq_host_open_pairs(lua_State *lua) {
  lua_pushcfunction(lua, next_pair);
  lua_pushvalue(lua, -1);
  lua_setglobal(lua, "next");
  lua_pushcclosure(lua, pairs_of, 1);
  lua_setglobal(lua, "pairs");
}
