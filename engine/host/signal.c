// Ctrl-C, SIGTERM and SIGHUP: the first asks running loops to stop at the next iteration and save, the second ends the
// program.
#include "host.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

// The handler of Ctrl-C, SIGTERM and SIGHUP: says so on stderr, asks running loops to stop, and restores the default
// action of this signal, so that a second one of its kind ends the program.
static void on_signal(int number) {
  static const char text[] = "\ncqlua: stopping; once more to quit at once\n";
  const int before = errno;      // of what it breaks into
  // the second one finds the default action
  signal(number, SIG_DFL);
  cq_interrupt(1);
  // only functions that are safe in a handler; nobody can be told when this write fails
  const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  (void)written;
  errno = before;
}

// Makes on_signal the handler of Ctrl-C, SIGTERM and, unless it is ignored, SIGHUP; ignores SIGXFSZ.
void cq_host_catch_signals(void) {
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  // a terminal that is closed, as by a lost connection; nohup has it ignored
  struct sigaction before;
  if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
  // a file that grows over its limit is an error of that write, not a core dump
  signal(SIGXFSZ, SIG_IGN);
}
