// The program: finds its Lua library, starts LuaJIT and hands over to lua/cq/program.lua.
#include "host.h"
#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_BROKEN = 1 };                       // program.lua gives all other exit codes
enum { PARENTS_SEARCHED = 4 };                  // build/cqlua lies one below the tree, build/check/gcc/cqlua three

// Does this folder hold the Lua library? 1 yes, 0 no.
static int has_library(const char *root) {
  char path[PATH_MAX];
  const int length = snprintf(path, sizeof path, "%s/lua/cq/program.lua", root);
  return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

// Sets root to the folder that holds lua/cq: CQLUA_ROOT alone where it is set, else a parent of the executable, or
// where make install put the library. Returns 1, or 0 if none of them holds it.
static int find_root(const char *executable, char root[PATH_MAX]) {
  const char *chosen = getenv("CQLUA_ROOT");
  if (chosen && *chosen) {
    snprintf(root, PATH_MAX, "%s", chosen);
    return has_library(root);
  }
  snprintf(root, PATH_MAX, "%s", executable);
  for (int i = 0; i < PARENTS_SEARCHED; i++) {
    char *slash = strrchr(root, '/');
    if (!slash) break;
    *slash = 0;
    if (has_library(root)) return 1;
  }
  // beside a program that was installed and then moved with its prefix
  char *bin = strrchr(executable, '/');
  if (bin && bin - executable > 4 && strncmp(bin - 4, "/bin", 4) == 0) {
    const int length = snprintf(root, PATH_MAX, "%.*s/share/cqlua", (int)(bin - 4 - executable), executable);
    if (length > 0 && length < PATH_MAX && has_library(root)) return 1;
  }
  snprintf(root, PATH_MAX, "%s", CQ_SHARE);
  return has_library(root);
}

// Lua: the handler of errors in program.lua itself, which reports errors of scripts: returns the message with the
// stack.
static int add_traceback(lua_State *lua) {
  const char *message = lua_tostring(lua, 1);
  luaL_traceback(lua, lua, message ? message : "an error that is not a string", 1);
  return 1;
}

// Lua: the loader of the module "cq.host", the machine's functions. Its upvalues: the paths of executable and root.
static int open_library(lua_State *lua) {
  const char *executable = lua_tostring(lua, lua_upvalueindex(1));
  const char *root = lua_tostring(lua, lua_upvalueindex(2));
  cq_host_push(lua, executable, root);
  return 1;
}

// Sets Lua's package.path so that the library in root comes first, and makes "cq.host" a module without a file.
static void set_paths(lua_State *lua, const char *executable, const char *root) {
  lua_getglobal(lua, "package");
  lua_getfield(lua, -1, "path");
  lua_pushfstring(lua, "%s/lua/?.lua;%s/lua/?/init.lua;%s/?.lua;%s", root, root, root, lua_tostring(lua, -1));
  lua_setfield(lua, -3, "path");
  lua_getfield(lua, -2, "preload");
  lua_pushstring(lua, executable);
  lua_pushstring(lua, root);
  lua_pushcclosure(lua, open_library, 2);
  lua_setfield(lua, -2, "cq.host");
  lua_pop(lua, 3);
}

// Calls main of cq.program with the words of the command line, a table from index 0; returns the exit code. If it
// fails, prints the error and returns EXIT_BROKEN.
static int run_program(lua_State *lua, int argc, char **argv) {
  lua_pushcfunction(lua, add_traceback);
  const int handler = lua_gettop(lua);
  lua_getglobal(lua, "require");
  lua_pushliteral(lua, "cq.program");
  int failed = lua_pcall(lua, 1, 1, handler);
  if (!failed) {
    lua_getfield(lua, -1, "main");
    lua_createtable(lua, argc, 0);
    for (int i = 0; i < argc; i++) {
      lua_pushstring(lua, argv[i]);
      lua_rawseti(lua, -2, i);
    }
    failed = lua_pcall(lua, 1, 1, handler);
  }
  if (failed) {
    const char *message = lua_tostring(lua, -1);
    fprintf(stderr, "cqlua: %s\n", message ? message : "the program failed without a message");
    return EXIT_BROKEN;
  }
  return (int)lua_tointeger(lua, -1);
}

// The program: finds its Lua library, runs main of cq.program, and returns its exit code; EXIT_BROKEN without a
// library, or if the output could not be written.
int main(int argc, char **argv) {
  char executable[PATH_MAX], root[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
  if (length > 0) executable[length] = 0;
  else snprintf(executable, sizeof executable, "%s", argv[0]);
  cq_host_choose_blas(executable, argv);

  if (!find_root(executable, root)) {
    fprintf(stderr,
            "cqlua: its Lua library (lua/cq) was not found near %s nor in %s; set CQLUA_ROOT to the folder that holds "
            "lua/cq\n",
            executable, getenv("CQLUA_ROOT") ? getenv("CQLUA_ROOT") : CQ_SHARE);
    return EXIT_BROKEN;
  }
  lua_State *lua = luaL_newstate();
  if (!lua) {
    fprintf(stderr, "cqlua: no memory to start Lua\n");
    return EXIT_BROKEN;
  }
  luaL_openlibs(lua);
  cq_host_open_pairs(lua);
  set_paths(lua, executable, root);
  cq_host_catch_signals();
  const int code = run_program(lua, argc, argv);
  lua_close(lua);
  // a full disk shows in any write, and when the last bytes go out
  const int failed_before = ferror(stdout);
  if ((fflush(stdout) != 0 || failed_before) && code == 0) {
    if (failed_before) fprintf(stderr, "cqlua: standard output could not be written, as on a full disk\n");
    else perror("cqlua: standard output");
    return EXIT_BROKEN;
  }
  return code;
}
