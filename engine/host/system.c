// What Lua's own library lacks of the operating system: folders, terminals, names.
#include "host.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

// cq.h as LuaJIT reads it: preprocessed, as bytes, by the Makefile
static const char declarations[] = {
#include "cdef.inc"
};

// For functions of Lua that failed: pushes nil and the text of errno.
static int failure(lua_State *lua) {
  const int number = errno;
  lua_pushnil(lua);
  lua_pushstring(lua, strerror(number));
  return 2;
}

// For functions of Lua that only do something: pushes true.
static int success(lua_State *lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

// Makes one folder. Returns 0 if the folder exists afterwards, else -1, with errno.
static int make_one(const char *path) {
  struct stat status;
  if (mkdir(path, 0777) == 0) return 0;
  if (errno != EEXIST) return -1;
  if (stat(path, &status) != 0) return -1;
  if (S_ISDIR(status.st_mode)) return 0;
  errno = ENOTDIR;
  return -1;
}

// Lua: make_folder(path) makes a folder with its parents. Returns true, or nil and the reason.
static int make_folder(lua_State *lua) {
  char path[PATH_MAX];
  size_t length;
  const char *wanted = luaL_checklstring(lua, 1, &length);
  if (length >= sizeof path) {
    errno = ENAMETOOLONG;
    return failure(lua);
  }
  memcpy(path, wanted, length + 1);
  for (char *slash = path + 1; length > 0 && (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    if (make_one(path) != 0) return failure(lua);
    *slash = '/';
  }
  return make_one(path) != 0 ? failure(lua) : success(lua);
}

// Lua: kind(path) returns "file", "folder" or "other", or nil and the reason.
static int kind(lua_State *lua) {
  struct stat status;
  if (stat(luaL_checkstring(lua, 1), &status) != 0) return failure(lua);
  lua_pushstring(lua, S_ISREG(status.st_mode) ? "file" : S_ISDIR(status.st_mode) ? "folder" : "other");
  return 1;
}

// When the program began, by the clock that file systems stamp their files with: it ticks every few milliseconds.
static struct timespec began;

// Lua: changed(path): was the file written since the program began? Returns true or false, or nil and the reason.
static int changed(lua_State *lua) {
  struct stat status;
  if (lstat(luaL_checkstring(lua, 1), &status) != 0) return failure(lua);
  const struct timespec at = status.st_mtim;
  lua_pushboolean(lua, at.tv_sec != began.tv_sec ? at.tv_sec > began.tv_sec : at.tv_nsec > began.tv_nsec);
  return 1;
}

// Lua: resolve(path) returns the absolute path, without links and dots, or nil and the reason.
static int resolve(lua_State *lua) {
  char path[PATH_MAX];
  if (!realpath(luaL_checkstring(lua, 1), path)) return failure(lua);
  lua_pushstring(lua, path);
  return 1;
}

// Lua: entries(folder) returns a list of the names in it, in no order, or nil and the reason.
static int entries(lua_State *lua) {
  DIR *folder = opendir(luaL_checkstring(lua, 1));
  if (!folder) return failure(lua);
  lua_newtable(lua);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    lua_pushstring(lua, entry->d_name);
    lua_rawseti(lua, -2, ++count);
  }
  closedir(folder);
  return 1;
}

// Lua: lock(folder) keeps other processes out until unlock(number), or until this one ends. Returns the number; false
// if another process has the lock; nil and the reason where that cannot be known.
static int lock(lua_State *lua) {
  const int folder = open(luaL_checkstring(lua, 1), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failure(lua);
  if (flock(folder, LOCK_EX | LOCK_NB) == 0) {
    lua_pushinteger(lua, folder);
    return 1;
  }
  const int number = errno;
  close(folder);
  errno = number;
  if (number != EWOULDBLOCK) return failure(lua);
  lua_pushboolean(lua, 0);
  return 1;
}

// Lua: unlock(number) gives up the lock for which lock(folder) returned this number.
static int unlock(lua_State *lua) {
  close((int)luaL_checkinteger(lua, 1));
  return 0;
}

// Lua: terminal(fd) returns the columns of a terminal, or nothing if the file is none.
static int terminal(lua_State *lua) {
  const int file = (int)luaL_checkinteger(lua, 1);
  struct winsize size = { 0 };
  if (!isatty(file)) return 0;
  if (ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  lua_pushinteger(lua, size.ws_col);
  return 1;
}

// Lua: system() returns a text such as "Linux 6.1.0 x86_64", and the host name.
static int operating_system(lua_State *lua) {
  struct utsname names;
  if (uname(&names) != 0) return failure(lua);
  lua_pushfstring(lua, "%s %s %s", names.sysname, names.release, names.machine);
  lua_pushstring(lua, names.nodename);
  return 2;
}

// Lua: processors() returns the number of processors that this program may use.
static int processors(lua_State *lua) {
  lua_pushinteger(lua, cq_processors());
  return 1;
}

// Lua: listen() takes back an interruption, and the next Ctrl-C is again the first.
static int listen_again(lua_State *lua) {
  (void)lua;
  cq_interrupt(0);
  cq_host_catch_signals();
  return 0;
}

// Pushes the name of the compiler that built this program, "gcc 12.2.0".
static void push_compiler(lua_State *lua) {
#ifdef __clang__
  lua_pushfstring(lua, "clang %d.%d.%d", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  lua_pushfstring(lua, "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

// Pushes the table of require "cq.host": functions of the machine, declarations of the engine, version, compiler,
// executable and root. Its call counts as the program's beginning for `changed`.
void cq_host_push(lua_State *lua, const char *executable, const char *root) {
  static const luaL_Reg functions[] = {
      {"make_folder", make_folder}, {"kind", kind},         {"entries", entries},         {"lock", lock},
      {"unlock", unlock},           {"terminal", terminal}, {"system", operating_system}, {"processors", processors},
      {"listen", listen_again},     {"changed", changed},   {"resolve", resolve},         {NULL, NULL},
  };
  clock_gettime(CLOCK_REALTIME_COARSE, &began);
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  cq_host_push_listener(lua);
  lua_setfield(lua, -2, "listener");
  lua_pushlstring(lua, declarations, sizeof declarations);
  lua_setfield(lua, -2, "cdef");
  lua_pushstring(lua, CQ_VERSION);
  lua_setfield(lua, -2, "version");
  push_compiler(lua);
  lua_setfield(lua, -2, "compiler");
  lua_pushstring(lua, executable);
  lua_setfield(lua, -2, "executable");
  lua_pushstring(lua, root);
  lua_setfield(lua, -2, "root");
}
