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

// What the control groups of a process let it take: bytes of memory beside those it has, and processors.
typedef struct cq_limits { int64_t memory; int32_t processors; } cq_limits;
// The limits of a process's control groups; INT64_MAX and INT32_MAX where there are none. groups: the file
// /proc/self/cgroup; root: where groups are mounted.
cq_limits cq_group_limits(const char *groups, const char *root);

#ifdef __cplusplus
}
#endif

#endif
