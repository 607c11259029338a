-- postgres: SQL on a PostgreSQL server, by the system's libpq, which is loaded when a study asks for it. The same calls
-- as those of sqlite.lua. Each study has a schema of its own.
--
--   local base = postgres.open("postgresql://user@host/database", { schema = "stiffness" })
--
-- A connection that is lost is made again until the server comes back; what was being done is done once more. Commits
-- do not wait for the server's disk: trials that ended in the last second before its machine failed are running again
-- for the store then, and are tried again.
local ffi = require "ffi"
local C = require("cq.base.engine").C
local is = require "cq.base.schema"
local library = require "cq.base.library"
local message = require "cq.base.message"
local process = require "cq.study.process"

local declarations = [[
typedef struct PGconn PGconn;
typedef struct PGresult PGresult;
PGconn *PQconnectdb(const char *address);
int PQstatus(const PGconn *connection);
char *PQerrorMessage(const PGconn *connection);
void PQreset(PGconn *connection);
void PQfinish(PGconn *connection);
PGresult *PQexecParams(PGconn *connection, const char *sql, int count, const unsigned *types, const char *const *values,
  const int *lengths, const int *formats, int result_format);
PGresult *PQprepare(PGconn *connection, const char *name, const char *sql, int count, const unsigned *types);
PGresult *PQexecPrepared(PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
  const int *formats, int result_format);
int PQresultStatus(const PGresult *result);
char *PQresultErrorMessage(const PGresult *result);
int PQntuples(const PGresult *result);
int PQnfields(const PGresult *result);
char *PQfname(const PGresult *result, int field);
unsigned PQftype(const PGresult *result, int field);
int PQgetisnull(const PGresult *result, int row, int field);
char *PQgetvalue(const PGresult *result, int row, int field);
int PQgetlength(const PGresult *result, int row, int field);
char *PQcmdTuples(PGresult *result);
void PQclear(PGresult *result);
]]

local CONNECTED, COMMAND, TUPLES = 0, 1, 2
-- types of pg_type that are numbers
local numeric = { [20] = true, [21] = true, [23] = true, [700] = true, [701] = true, [1700] = true }
local PATIENCE = 600                 -- [s] that a server which is gone is waited for
local TURN = 7271                    -- the lock for what must happen one after the other

---@class cq.Postgres
---@field path string                its address, without a password
---@field reconnects integer         how often the connection was lost
local Postgres = { __name = "cq.Postgres", skip_locked = " FOR UPDATE SKIP LOCKED" }
Postgres.__index = Postgres

local postgres = {}

local P                              ---@type ffi.namespace*  once it is loaded

-- A message of the server, a C string, on one line.
local function first_line(said) return (ffi.string(said):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")) end

-- raised within a transaction whose connection was lost, so that it begins again
local Again = setmetatable({}, { __tostring = function() return "the connection to the server was lost" end })

-- Sets the options of a new connection, which has no prepared statements yet, and creates the study's schema if needed;
-- returns the server's error, nil if there is none.
local function set_up(self)
  self.prepared, self.count = {}, 0
  local schema = '"' .. self.schema .. '"'
  for _, sql in ipairs { "SET client_min_messages = error", "SET synchronous_commit = off",
    "CREATE SCHEMA IF NOT EXISTS " .. schema,
    "SET search_path = " .. schema } do
    local result = P.PQexecParams(self.handle, sql, 0, nil, nil, nil, nil, 0)
    local fine = P.PQresultStatus(result) == COMMAND
    local said = first_line(P.PQresultErrorMessage(result))
    P.PQclear(result)
    -- two that make the schema at once: one of them is told that it is there
    if not fine and not said:find("pg_namespace", 1, true) then return said end
  end
end

---Connects to a server and the study's schema. Errors: no libpq; a server that cannot be reached or that refuses.
---@param address string       postgresql://user@host/database
---@param def { schema: string, patience?: number }     patience: longest wait for a lost server [s]
---@return cq.Postgres
function postgres.open(address, def)
  P = P or library.load { names = { "libpq.so.5" }, declarations = declarations, package = "libpq5",
    purpose = "--store names a PostgreSQL server" }
  local handle = P.PQconnectdb(address)
  local self = setmetatable({
    address = address, path = address:gsub("://([^:/@]*):[^@]*@", "://%1@"), handle = handle, schema = def.schema,
    reconnects = 0, patience = def.patience or PATIENCE,
  }, Postgres)
  local problem = P.PQstatus(handle) ~= CONNECTED and first_line(P.PQerrorMessage(handle)) or set_up(self)
  if problem then
    P.PQfinish(handle)
    is.fail("the server %s cannot be used: %s. Look at the address, and at the server", self.path, problem)
  end
  return self
end

-- Waits until the server is back, and connects again. Errors: it does not come back in time; Ctrl-C.
local function reconnect(self)
  local began = process.now()
  message.note("the connection to %s was lost; trying again", self.path)
  while true do
    P.PQreset(self.handle)
    if P.PQstatus(self.handle) == CONNECTED and not set_up(self) then break end
    local said = first_line(P.PQerrorMessage(self.handle))
    if process.now() - began > self.patience then
      is.fail("the server %s did not come back within %d s: %s. What was stored is kept; start again when it is there",
        self.path, self.patience, said)
    end
    if C.cq_interrupted() ~= 0 then is.fail("interrupted while the server %s was gone", self.path) end
    process.poll({}, 0.5)
  end
  self.reconnects = self.reconnects + 1
  message.note("the server %s is back", self.path)
end

-- SQL with PostgreSQL's placeholders, $1 and $3, in the place of SQLite's ? and ?3.
local function own_sql(sql)
  local k = 0
  return (sql:gsub("%?(%d*)", function(digits)
    k = digits == "" and k + 1 or tonumber(digits)
    return "$" .. k
  end))
end

-- A number as text with all its digits; any other value as it is.
local function word(value)
  if type(value) == "number" then return value % 1 == 0 and ("%.0f"):format(value) or ("%.17g"):format(value) end
  return value
end

-- Runs an SQL statement with its values; each statement is prepared once for a connection. Returns libpq's result,
-- whatever its status; the caller clears it.
local function execute(self, sql, ...)
  local count = select("#", ...)
  local values, keep = ffi.new("const char *[?]", math.max(count, 1)), {}
  for k = 1, count do
    keep[k] = word((select(k, ...)))
    values[k - 1] = keep[k]
  end
  local name = self.prepared[sql]
  if not name then
    name = "s" .. self.count
    local made = P.PQprepare(self.handle, name, own_sql(sql), 0, nil)
    if P.PQresultStatus(made) ~= COMMAND then return made end
    P.PQclear(made)
    self.prepared[sql], self.count = name, self.count + 1
  end
  return P.PQexecPrepared(self.handle, name, count, values, nil, nil, 0)
end

-- The result of an SQL statement that succeeded; the caller clears it. A lost connection is made again, and the
-- statement repeated; within a transaction the error Again is raised instead. Errors: the server refuses the statement.
local function result_of(self, sql, ...)
  while true do
    local result = execute(self, sql, ...)
    local status = P.PQresultStatus(result)
    if status == COMMAND or status == TUPLES then return result end
    local said = first_line(P.PQresultErrorMessage(result))
    P.PQclear(result)
    if P.PQstatus(self.handle) == CONNECTED then
      is.fail("the server %s refused a statement: %s", self.path, said)
    end
    reconnect(self)
    if self.inside then error(Again, 0) end
  end
end

---Runs an SQL statement with its values (... for its ?); returns the number of rows that it changed.
function Postgres:run(sql, ...)
  local result = result_of(self, sql, ...)
  local changed = tonumber(ffi.string(P.PQcmdTuples(result))) or 0
  P.PQclear(result)
  return changed
end

---A list of all rows that an SQL statement returns, as tables by the names of the columns: numbers, texts, nil.
function Postgres:rows(sql, ...)
  local result, out = result_of(self, sql, ...), {}
  local names, types = {}, {}
  for f = 0, P.PQnfields(result) - 1 do
    names[f], types[f] = ffi.string(P.PQfname(result, f)), P.PQftype(result, f)
  end
  for r = 0, P.PQntuples(result) - 1 do
    local row = {}
    for f = 0, P.PQnfields(result) - 1 do
      if P.PQgetisnull(result, r, f) == 0 then
        local text = ffi.string(P.PQgetvalue(result, r, f), P.PQgetlength(result, r, f))
        row[names[f]] = numeric[types[f]] and tonumber(text) or text
      end
    end
    out[#out + 1] = row
  end
  P.PQclear(result)
  return out
end

---The value of the first row that an SQL statement of one column returns; nil: no row, or NULL.
function Postgres:value(sql, ...)
  local row = self:rows(sql, ...)[1]
  if row then return select(2, next(row)) end
end

---Calls f within a transaction and returns its value: all changes of f are made, or none. A nested transaction is part
---of the outer one. If the connection is lost, f is called again.
function Postgres:transaction(f)
  if self.inside then return f() end
  while true do
    self:run "BEGIN"
    self.inside = true
    local fine, result = pcall(function()
      local value = f()
      self:run "COMMIT"
      return value
    end)
    self.inside = false
    if fine then return result end
    if result ~= Again then
      pcall(self.run, self, "ROLLBACK")
      error(result, 0)
    end
  end
end

---Takes a lock on the study, and holds it until the end of this transaction: for steps that only one process may do at
---a time.
function Postgres:turn() self:rows("SELECT pg_advisory_xact_lock(?, hashtext(?))", TURN, self.schema) end

---Does nothing, since the server writes what was committed within a second. The counterpart of Sqlite:settle.
function Postgres:settle() end

---Was the database removed? Always false: it is on a server, and in no folder that somebody could remove.
---@return boolean
function Postgres:is_removed() return false end

-- Is there a table of this name in the study's schema?
function Postgres:has_table(name)
  return self:value("SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = ?", self.schema, name) ~= nil
end

---Renames the study's schema, with all tables, to NAME_earlier_1 (or _2, _3 ..., the first unused name), and makes an
---empty schema. For --force-new.
---@return string schema      new name of the old schema
function Postgres:move_away()
  local count = 1
  while self:value("SELECT 1 FROM pg_namespace WHERE nspname = ?", self.schema .. "_earlier_" .. count) do
    count = count + 1
  end
  self:run(('ALTER SCHEMA "%s" RENAME TO "%s_earlier_%d"'):format(self.schema, self.schema, count))
  local problem = set_up(self)
  if problem then is.fail("the server %s: %s", self.path, problem) end
  return ("%s_earlier_%d"):format(self.schema, count)
end

-- Closes the connection.
function Postgres:close()
  if self.handle then P.PQfinish(self.handle) end
  self.handle = nil
end

return postgres
