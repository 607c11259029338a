-- sqlite: SQL on a file, by the system's libsqlite3, which is loaded when a study asks for it.
--
--   local base = sqlite.open("study.sqlite")
--   base:run("UPDATE trial SET state = ? WHERE number = ?", "done", 3)       --> rows that were changed
-- base:rows("SELECT number, state FROM trial WHERE number > ?", 5)          --> { { number = 6, state = "done" }, ... }
--   base:transaction(function() ... end)                                      all of it or nothing
local ffi = require "ffi"
local is = require "cq.base.schema"
local library = require "cq.base.library"

local declarations = [[
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
const char *sqlite3_libversion(void);
int sqlite3_libversion_number(void);
int sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);
int sqlite3_close_v2(sqlite3 *base);
int sqlite3_file_control(sqlite3 *base, const char *name, int operation, void *out);
int sqlite3_busy_timeout(sqlite3 *base, int milliseconds);
const char *sqlite3_errmsg(sqlite3 *base);
int sqlite3_errcode(sqlite3 *base);
int sqlite3_prepare_v2(sqlite3 *base, const char *sql, int bytes, sqlite3_stmt **out, const char **tail);
int sqlite3_step(sqlite3_stmt *statement);
int sqlite3_reset(sqlite3_stmt *statement);
int sqlite3_finalize(sqlite3_stmt *statement);
int sqlite3_bind_double(sqlite3_stmt *statement, int index, double value);
int sqlite3_bind_int64(sqlite3_stmt *statement, int index, int64_t value);
int sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *value, int bytes, void *keep);
int sqlite3_bind_null(sqlite3_stmt *statement, int index);
int sqlite3_column_count(sqlite3_stmt *statement);
int sqlite3_column_type(sqlite3_stmt *statement, int column);
const char *sqlite3_column_name(sqlite3_stmt *statement, int column);
double sqlite3_column_double(sqlite3_stmt *statement, int column);
int64_t sqlite3_column_int64(sqlite3_stmt *statement, int column);
const char *sqlite3_column_text(sqlite3_stmt *statement, int column);
int sqlite3_column_bytes(sqlite3_stmt *statement, int column);
int sqlite3_changes(sqlite3 *base);
]]

local OK, BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB, ROW, DONE = 0, 5, 6, 8, 10, 11, 13, 14, 26,
  100, 101
local READ_ONLY, READ_WRITE, CREATE, URI = 1, 2, 4, 64
local HAS_MOVED = 20           -- an operation of sqlite3_file_control
local INTEGER, FLOAT, NULL = 1, 2, 5
local WHOLE = 2 ^ 53
local RETURNING = 3035000            -- the version that knows UPDATE ... RETURNING
local TRANSIENT = ffi.cast("void *", -1)
local PATIENCE = 60                  -- [s] that a write waits for those of other processes

---@class cq.Sqlite
---@field path string
local Sqlite = { __name = "cq.Sqlite", skip_locked = "", reconnects = 0 }
Sqlite.__index = Sqlite

local sqlite = {}

local S                              ---@type ffi.namespace*  once it is loaded

-- Loads libsqlite3 when it is first used; an error if it is missing or older than 3.35.
local function load()
  S = S or library.load { names = { "libsqlite3.so.0" }, declarations = declarations, package = "libsqlite3-0",
    purpose = "a study on this machine is kept by SQLite" }
  if S.sqlite3_libversion_number() < RETURNING then
    is.fail("a study needs SQLite 3.35 or later; libsqlite3.so.0 here is %s", ffi.string(S.sqlite3_libversion()))
  end
end

local advice = {
  [BUSY] = "it was locked by another program for %d s; end that program, or wait, and start again",
  [LOCKED] = "it was locked by another program for %d s; end that program, or wait, and start again",
  [READONLY] = "it cannot be written; look at its rights, or choose another place with --out",
  [IOERR] = "it cannot be read or written; the disk may be full or broken. What was stored before is kept",
  [CORRUPT] = "it is damaged; restore a copy, or begin anew with --force-new",
  [FULL] = "the disk is full; what was stored before is kept. Make room and start again",
  [CANTOPEN] = "it cannot be opened; look at its folder and its rights",
  [NOTADB] = "it is no SQLite file; choose another place with --out",
}

-- Raises the error of a failed SQLite call, with advice. code: SQLite's, whose last byte says the kind of error.
local function fail(self, code)
  local said = ffi.string(S.sqlite3_errmsg(self.handle))
  local known = advice[code % 256]
  is.fail("the study's file %s: %s (SQLite: %s)", self.path, known and known:format(self.patience)
    or "SQLite refused a statement", said)
end

---@class cq.Sqlite.def
---@field create? boolean        make the file if it is missing
---@field read_only? boolean
---@field patience? number       [s] that a write waits for others

-- Opens the file of a Sqlite, under a name and with flags of SQLite.
local function connect(self, name, flags)
  local out = ffi.new "sqlite3 *[1]"
  local code = S.sqlite3_open_v2(name, out, flags, nil)
  self.handle, self.statements = out[0], {}
  if code ~= OK then fail(self, code) end
  S.sqlite3_busy_timeout(self.handle, self.patience * 1000)
end

-- Connects again, without locks, to a file that is only read, if SQLite cannot make its files for locks beside it: a
-- finished study on a read-only disk or of another user. Changes in a file -wal would not be seen.
local function connect_without_locks(self)
  if pcall(self.value, self, "SELECT 1 FROM sqlite_master LIMIT 1") then return end
  local code, log = S.sqlite3_errcode(self.handle) % 256, io.open(self.path .. "-wal")
  local is_logged = log and log:seek "end" > 0
  if log then log:close() end
  if is_logged or code ~= READONLY and code ~= CANTOPEN then return end
  self:close()
  local name = self.path:gsub("[%%?#]", function(c) return ("%%%02x"):format(c:byte()) end)
  connect(self, "file:" .. name .. "?immutable=1", READ_ONLY + URI)
end

---Opens a database; creates the file if def.create. Errors: no libsqlite3, or an old one; a file that is missing,
---damaged, or locked for longer than def.patience [s].
---@param path string
---@param def? cq.Sqlite.def
---@return cq.Sqlite
function sqlite.open(path, def)
  def = def or {}
  load()
  local self = setmetatable({ path = path, patience = def.patience or PATIENCE }, Sqlite)
  connect(self, path, def.read_only and READ_ONLY or READ_WRITE + (def.create and CREATE or 0))
  if def.read_only then connect_without_locks(self) end
  if not def.read_only then
    self:rows "PRAGMA journal_mode = WAL"
    self:rows "PRAGMA synchronous = NORMAL"
  end
  return self
end

-- The prepared statement of an SQL text, kept for later calls. Errors: SQL that SQLite refuses.
function Sqlite:statement(sql)
  local known = self.statements[sql]
  if known then return known end
  local out = ffi.new "sqlite3_stmt *[1]"
  local code = S.sqlite3_prepare_v2(self.handle, sql, #sql, out, nil)
  if code ~= OK then fail(self, code) end
  self.statements[sql] = out[0]
  return out[0]
end

-- Sets value number `index`, from 1, of a prepared statement: nil, a text or a number.
local function bind(statement, index, value)
  local kind = type(value)
  if value == nil then return S.sqlite3_bind_null(statement, index) end
  if kind == "string" then return S.sqlite3_bind_text(statement, index, value, #value, TRANSIENT) end
  if value % 1 == 0 and math.abs(value) <= WHOLE then return S.sqlite3_bind_int64(statement, index, value) end
  return S.sqlite3_bind_double(statement, index, value)
end

-- The value in column k, from 0, of the present row of a statement: nil for NULL, a number or a string.
local function column(statement, k)
  local kind = S.sqlite3_column_type(statement, k)
  if kind == NULL then return nil end
  if kind == INTEGER then return tonumber(S.sqlite3_column_int64(statement, k)) end
  if kind == FLOAT then return S.sqlite3_column_double(statement, k) end
  return ffi.string(S.sqlite3_column_text(statement, k), S.sqlite3_column_bytes(statement, k))
end

-- Runs an SQL statement with its values (...), and calls each(names, count, statement) for every row, with the names of
-- the count columns. each: nil for none. Errors: SQLite refuses it.
local function each_row(self, sql, each, ...)
  local statement = self:statement(sql)
  for k = 1, select("#", ...) do bind(statement, k, (select(k, ...))) end
  local count, names = S.sqlite3_column_count(statement), {}
  for k = 0, count - 1 do names[k] = ffi.string(S.sqlite3_column_name(statement, k)) end
  local code = S.sqlite3_step(statement)
  while code == ROW do
    if each then each(names, count, statement) end
    code = S.sqlite3_step(statement)
  end
  S.sqlite3_reset(statement)
  if code ~= DONE then fail(self, code) end
end

---Runs an SQL statement with its values; returns the number of rows that it changed.
---@param sql string     with a ? for each value
---@param ... any        numbers, strings, nil
---@return integer
function Sqlite:run(sql, ...)
  each_row(self, sql, nil, ...)
  return S.sqlite3_changes(self.handle)
end

---A list of all rows that an SQL statement returns, as tables by the names of the columns.
---@return table[]
function Sqlite:rows(sql, ...)
  local out = {}
  each_row(self, sql, function(names, count, statement)
    local row = {}
    for k = 0, count - 1 do row[names[k]] = column(statement, k) end
    out[#out + 1] = row
  end, ...)
  return out
end

---The first value in the first column of the rows that an SQL statement returns; nil: no row, or NULL in all.
function Sqlite:value(sql, ...)
  local value
  each_row(self, sql, function(_, _, statement)
    if value == nil then value = column(statement, 0) end
  end, ...)
  return value
end

---Calls f within a transaction and returns its value: all changes of f are made, or none. A nested transaction is part
---of the outer one.
---@param f fun(): any
---@return any
function Sqlite:transaction(f)
  if self.inside then return f() end
  self:run "BEGIN IMMEDIATE"
  self.inside = true
  local fine, result = pcall(f)
  self.inside = false
  if fine then fine, result = pcall(function()
    self:run "COMMIT"
    return result
  end) end
  if not fine then
    pcall(self.run, self, "ROLLBACK")
    error(result, 0)
  end
  return result
end

---Was the database file removed or moved since it was opened? Writes would then be lost.
---@return boolean
function Sqlite:is_removed()
  local out = ffi.new "int[1]"
  return S.sqlite3_file_control(self.handle, nil, HAS_MOVED, out) == OK and out[0] ~= 0
end

---Writes the whole database into a new file. Errors: the file is there already.
---@param path string
function Sqlite:copy_to(path) self:run("VACUUM INTO ?", path) end

---Makes what was committed so far survive a power cut; other commits may be taken back by one.
function Sqlite:settle() self:rows "PRAGMA wal_checkpoint(PASSIVE)" end

---Does nothing, since a transaction has the whole file for itself. The counterpart of Postgres:turn, a lock.
function Sqlite:turn() end

-- Is there a table of this name?
function Sqlite:has_table(name) return self:value("SELECT 1 FROM sqlite_master WHERE name = ?", name) ~= nil end

-- Frees all statements and closes the file.
function Sqlite:close()
  if not self.handle then return end
  for _, statement in pairs(self.statements) do S.sqlite3_finalize(statement) end
  S.sqlite3_close_v2(self.handle)
  self.handle, self.statements = nil, {}
end

return sqlite
