// host: the cqlua program. Sees cq.h and Lua only.
#ifndef CQ_HOST_H
#define CQ_HOST_H

#include "../cq.h"
#include <lua.h>

// Pushes the table that Lua code gets from require "cq.host".
void cq_host_push(lua_State *lua, const char *executable, const char *root);
// Replaces the globals pairs and next by functions of C, which LuaJIT never compiles (pairs.c).
void cq_host_open_pairs(lua_State *lua);
// Pushes the table of functions by which Lua serves one page on this machine (listen.c).
void cq_host_push_listener(lua_State *lua);
// Starts the program again with better kernels of OpenBLAS, if OpenBLAS does not know the processor (blas.c).
void cq_host_choose_blas(const char *executable, char **argv);
// Handles Ctrl-C, SIGTERM and SIGHUP: the first asks running loops to stop and save, the second ends the program.
void cq_host_catch_signals(void);

#endif
