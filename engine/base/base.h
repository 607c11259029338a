// base: status and last error, memory. Every room may include this; it includes nothing but cq.h.
#ifndef CQ_BASE_H
#define CQ_BASE_H

#include "../cq.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CQ_ALIGNMENT = 128 };   // of every engine array: two cache lines, and any vector register

// Leaves the sentence for cq_error() and returns code, so that a failure is one line: return cq_fail(CQ_INVALID,
// "...").
cq_status cq_fail(cq_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Zeroed and aligned memory for `count` elements of `size` bytes; NULL, with a sentence, when memory is exhausted.
// what: for the sentence, e.g. "particle state".
void *cq_alloc(size_t count, size_t size, const char *what);
// Frees memory of cq_alloc; NULL: does nothing.
void cq_free(void *memory);

// Bytes as people write them, for "%.3g %s".
typedef struct { double number; const char *unit; } cq_amount;
// A number of bytes in the unit (byte, bytes, KiB, ... TiB) that leaves a number below 999.5, for people to read.
cq_amount cq_amount_of(double bytes);

// Bytes that control groups let a process take beside those it has, and processors that they give it time for;
// INT64_MAX and INT32_MAX where they do not limit it. groups: the file /proc/self/cgroup; root: where groups are
// mounted.
int64_t cq_group_memory(const char *groups, const char *root);
int32_t cq_group_processors(const char *groups, const char *root);

#ifdef __cplusplus
}
#endif

#endif
