// An HTTP server on this machine for one page, as a live view of a run: it serves the page, sends events to the
// browsers that show it, and takes commands. Nothing blocks: sockets are read and written when Lua polls.
//
//   GET  /?token=T           the page
//   GET  /events?token=T     server-sent events: the last of each kind at once, then all that follow
//   POST /NAME?token=T       the command NAME, which poll gives to Lua
//
// It answers only requests that have the token, ask for 127.0.0.1 or localhost, and come from no page of another site.
#include "host.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  CLIENTS = 32,                     // connections at a time
  REQUEST = 8192,                   // [byte] a request has at most
  WORD = 64,                        // [byte] of a token, and of names of commands and events
  KINDS = 8,                        // of events
  BEHIND = 256 << 20                // [byte] that may be queued for a slow reader; then its connection is closed
};

typedef struct client {
  int socket;
  int listens;                      // to events
  int ends;                         // once all is sent
  char request[REQUEST + 1];
  size_t had;
  char *out;                        // what is still to be sent
  size_t size, sent;
} client;

static struct {
  int socket, port;
  char token[WORD + 1];
  client *clients[CLIENTS];
  char *page;
  size_t page_size;
  struct { char name[WORD + 1]; char *text; size_t size; } last[KINDS];
} here = { .socket = -1 };

// Closes the connection of client k (its index in here.clients) and drops what was not sent yet.
static void leave(int k) {
  client *c = here.clients[k];
  close(c->socket);
  free(c->out);
  free(c);
  here.clients[k] = NULL;
}

// Appends bytes to the send queue of a client. Returns 1, or 0: there is no memory, or the reader is too far behind.
// answer, refuse, send_event and begin_events return the same.
static int queue(client *c, const char *bytes, size_t size) {
  if (c->sent > 0) {
    memmove(c->out, c->out + c->sent, c->size - c->sent);
    c->size -= c->sent;
    c->sent = 0;
  }
  if (c->size + size > BEHIND) return 0;
  char *grown = realloc(c->out, c->size + size + 1);
  if (!grown) return 0;
  memcpy(grown + c->size, bytes, size);
  c->out = grown;
  c->size += size;
  return 1;
}

// Queues an HTTP response to a client, after which the connection closes. status: as "200 OK"; kind: the content type.
// Returns 1, or 0 if it cannot be queued.
static int answer(client *c, const char *status, const char *kind, const char *body, size_t size) {
  char head[512];
  const int length = snprintf(head, sizeof head,
    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n", status, kind, size);
  c->ends = 1;
  return queue(c, head, (size_t)length) && queue(c, body, size);
}

// Queues an HTTP response with an error status, such as "404 Not Found". Returns 1, or 0 if it cannot be queued.
static int refuse(client *c, const char *status) { return answer(c, status, "text/plain", status, strlen(status)); }

// Sets *value to the value of a header of a request; returns its length, -1 if it is not there.
static int header(const char *request, const char *name, const char **value) {
  const size_t length = strlen(name);
  for (const char *line = strstr(request, "\r\n"); line && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
    *value = line + 3 + length;
    while (**value == ' ') ++*value;
    return (int)strcspn(*value, "\r");
  }
  return -1;
}

// Are the first `length` characters of `value` the whole text `wanted`? 1 yes, 0 no.
static int equals(const char *value, int length, const char *wanted) {
  return length == (int)strlen(wanted) && strncmp(value, wanted, (size_t)length) == 0;
}

// Does a request name this machine as its host, and come from no page of another site? 1 yes, 0 no.
static int is_ours(const char *request) {
  static const char *const names[] = { "127.0.0.1", "localhost" };
  const char *host, *origin;
  const int host_length = header(request, "Host", &host), origin_length = header(request, "Origin", &origin);
  for (int k = 0; k < 2; k++) {
    char own[64], site[80];
    snprintf(own, sizeof own, "%s:%d", names[k], here.port);
    snprintf(site, sizeof site, "http://%s", own);
    if (host_length >= 0 && equals(host, host_length, own)
        && (origin_length < 0 || equals(origin, origin_length, site))) return 1;
  }
  return 0;
}

// Queues a server-sent event of this name to a client. Returns 1, or 0 if it cannot be queued.
static int send_event(client *c, const char *name, const char *text, size_t size) {
  char head[2 * WORD];
  const int length = snprintf(head, sizeof head, "event: %s\ndata: ", name);
  return queue(c, head, (size_t)length) && queue(c, text, size) && queue(c, "\n\n", 2);
}

// Answers a client that asks for events: from now on it gets them, beginning with the last event of each kind. Returns
// 1, or 0 if they cannot be queued.
static int begin_events(client *c) {
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                             "X-Content-Type-Options: nosniff\r\n\r\n";
  c->listens = 1;
  if (!queue(c, head, sizeof head - 1)) return 0;
  for (int k = 0; k < KINDS && here.last[k].text; k++) {
    if (!send_event(c, here.last[k].name, here.last[k].text, here.last[k].size)) return 0;
  }
  return 1;
}

// Answers a complete request in c->request. command: set to the name of a command that was posted, else left as it is.
// Returns 1, or 0 if the answer cannot be queued.
static int serve(client *c, char command[WORD + 1]) {
  char method[8], path[WORD + 2], token[WORD + 1], wanted[4 * WORD];
  if (sscanf(c->request, "%7s %65[^? ]?token=%64[0-9a-f]", method, path, token) != 3 || path[0] != '/'
      || strcmp(token, here.token) != 0 || !is_ours(c->request)) return refuse(c, "403 Forbidden");
  snprintf(wanted, sizeof wanted, "%s %s?token=%s HTTP/1.", method, path, token);
  if (strncmp(c->request, wanted, strlen(wanted)) != 0) return refuse(c, "400 Bad Request");
  if (strcmp(method, "POST") == 0) {
    snprintf(command, WORD + 1, "%.*s", WORD, path + 1);
    return answer(c, "204 No Content", "text/plain", "", 0);
  }
  if (strcmp(method, "GET") != 0) return refuse(c, "405 Method Not Allowed");
  if (strcmp(path, "/") == 0) return answer(c, "200 OK", "text/html; charset=utf-8", here.page, here.page_size);
  return strcmp(path, "/events") == 0 ? begin_events(c) : refuse(c, "404 Not Found");
}

// Reads the bytes of a request that a client has sent so far, and answers the request once it is complete; command: as
// in serve. Returns 1, or 0: the connection is over.
static int take(client *c, char command[WORD + 1]) {
  const ssize_t got = recv(c->socket, c->request + c->had, REQUEST - c->had, 0);
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  if (c->listens || c->ends) return 1;                  // nothing more is asked on this connection
  c->had += (size_t)got;
  c->request[c->had] = 0;
  if (strstr(c->request, "\r\n\r\n")) {
    const int fine = serve(c, command);
    c->had = 0;
    return fine;
  }
  return c->had < REQUEST || refuse(c, "431 Request Header Fields Too Large");
}

// Sends as much of a client's queue as the socket takes now. Returns 1, or 0: the connection is over.
static int give(client *c) {
  while (c->sent < c->size) {
    const ssize_t sent = send(c->socket, c->out + c->sent, c->size - c->sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    c->sent += (size_t)sent;
  }
  return !c->ends;
}

// Accepts the connections that wait, while there are free entries in here.clients.
static void welcome(void) {
  for (int k = 0; k < CLIENTS; k++) {
    if (here.clients[k]) continue;
    const int socket = accept(here.socket, NULL, NULL);
    if (socket < 0) return;
    client *c = calloc(1, sizeof *c);
    if (!c) {
      close(socket);
      return;
    }
    fcntl(socket, F_SETFL, O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    c->socket = socket;
    here.clients[k] = c;
  }
}

// Closes the listener and all connections, and frees the page and the kept events.
static void end_all(void) {
  for (int k = 0; k < CLIENTS; k++) {
    if (here.clients[k]) leave(k);
  }
  for (int k = 0; k < KINDS; k++) free(here.last[k].text);
  memset(here.last, 0, sizeof here.last);
  if (here.socket >= 0) close(here.socket);
  here.socket = -1;
  free(here.page);
  here.page = NULL;
}

// Lua: open(port, token, page) ends an earlier listener and begins to listen; token: 1 to 64 digits 0-9a-f, page: the
// HTML text to serve. Returns the port, which the system chooses for 0, or nil and the reason.
static int open_listener(lua_State *lua) {
  size_t token_size, page_size;
  const int port = (int)luaL_checkinteger(lua, 1);
  const char *token = luaL_checklstring(lua, 2, &token_size), *page = luaL_checklstring(lua, 3, &page_size);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
  socklen_t length = sizeof address;
  const int one = 1;
  luaL_argcheck(lua, token_size > 0 && token_size <= WORD, 2, "a token has 1 to 64 digits");
  end_all();
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  here.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (here.socket >= 0) setsockopt(here.socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  here.page = malloc(page_size + 1);
  if (here.socket < 0 || !here.page || bind(here.socket, (struct sockaddr *)&address, length) != 0
      || listen(here.socket, 8) != 0 || getsockname(here.socket, (struct sockaddr *)&address, &length) != 0) {
    const int number = errno;
    end_all();
    lua_pushnil(lua);
    lua_pushstring(lua, strerror(number));
    return 2;
  }
  here.port = ntohs(address.sin_port);
  memcpy(here.token, token, token_size + 1);
  memcpy(here.page, page, page_size);
  here.page_size = page_size;
  lua_pushinteger(lua, here.port);
  return 1;
}

// Lua: poll(milliseconds) waits at most so long (0 unless given) for clients, accepts them, answers their requests and
// sends what is queued. Returns the command that one of them posted, or nothing; further commands wait for later calls.
static int poll_listener(lua_State *lua) {
  char command[WORD + 1] = "";
  struct pollfd wanted[CLIENTS + 1] = { { .fd = here.socket, .events = POLLIN } };
  if (here.socket < 0) return 0;
  for (int k = 0; k < CLIENTS; k++) {
    const client *c = here.clients[k];
    wanted[k + 1].fd = c ? c->socket : -1;
    wanted[k + 1].events = (short)(POLLIN | (c && c->sent < c->size ? POLLOUT : 0));
  }
  if (poll(wanted, CLIENTS + 1, (int)luaL_optinteger(lua, 1, 0)) <= 0) return 0;
  for (int k = 0; k < CLIENTS && !command[0]; k++) {
    if (!here.clients[k] || !wanted[k + 1].revents) continue;
    const int comes = wanted[k + 1].revents & (POLLIN | POLLHUP | POLLERR);
    if ((comes && !take(here.clients[k], command)) || !give(here.clients[k])) leave(k);
  }
  if (wanted[0].revents) welcome();
  if (!command[0]) return 0;
  lua_pushstring(lua, command);
  return 1;
}

// Lua: send(name, text) sends an event of one line to all clients that asked for events; returns how many. The last
// event of each name, of up to KINDS names, is kept for those who come later.
static int send_to_all(lua_State *lua) {
  size_t size;
  const char *name = luaL_checkstring(lua, 1), *text = luaL_checklstring(lua, 2, &size);
  int k = 0, listeners = 0;
  luaL_argcheck(lua, strlen(name) <= WORD && !memchr(text, '\n', size), 2, "an event is one line");
  while (k < KINDS - 1 && here.last[k].text && strcmp(here.last[k].name, name) != 0) k++;
  char *kept = malloc(size + 1);
  if (kept) {
    memcpy(kept, text, size);
    free(here.last[k].text);
    here.last[k].text = kept;
    here.last[k].size = size;
    snprintf(here.last[k].name, sizeof here.last[k].name, "%s", name);
  }
  for (int j = 0; j < CLIENTS; j++) {
    if (!here.clients[j] || !here.clients[j]->listens) continue;
    listeners++;
    if (!send_event(here.clients[j], name, text, size) || !give(here.clients[j])) leave(j);
  }
  lua_pushinteger(lua, listeners);
  return 1;
}

// Lua: close() closes the listener and its connections.
static int close_listener(lua_State *lua) {
  (void)lua;
  end_all();
  return 0;
}

// Pushes the table of functions by which Lua serves one page on this machine: open, poll, send, close.
void cq_host_push_listener(lua_State *lua) {
  static const luaL_Reg functions[] = {
    { "open", open_listener }, { "poll", poll_listener }, { "send", send_to_all }, { "close", close_listener },
    { NULL, NULL },
  };
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
}
