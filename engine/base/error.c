// error: the sentence of a thread's last failure.
#include "base.h"
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[1024];

// Leaves the sentence, made as by printf, for cq_error() in this thread, and returns code.
cq_status cq_fail(cq_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  return code;
}

// The sentence of this thread's last failure, "" if there was none.
const char *cq_error(void) { return last_error; }
