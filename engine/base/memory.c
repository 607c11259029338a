// memory: allocations that are aligned and zeroed, and fail with a sentence.
#include "base.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Zeroed memory for `count` elements of `size` bytes, aligned for vectors; NULL, with a sentence that names `what`,
// when memory is exhausted. It is calloc's, whose fresh pages cost nothing until they are touched, as a large and
// mostly empty grid needs; calloc's own pointer is kept just below the aligned one.
void *cq_alloc(size_t count, size_t size, const char *what) {
  const size_t extra = CQ_ALIGNMENT + sizeof(void *);
  if (size && count > (SIZE_MAX - extra) / size) {
    cq_fail(CQ_MEMORY, "%s: %zu elements of %zu bytes are more than an address can hold", what, count, size);
    return NULL;
  }
  char *base = calloc(1, count * size + extra);
  if (!base) {
    const cq_amount needed = cq_amount_of((double)(count * size));
    cq_fail(CQ_MEMORY, "out of memory: %s needs %.3g %s", what, needed.number, needed.unit);
    return NULL;
  }
  char *memory = base + sizeof(void *);
  memory += CQ_ALIGNMENT - (uintptr_t)memory % CQ_ALIGNMENT;
  memcpy(memory - sizeof(void *), &base, sizeof base);
  return memory;
}

// Frees memory of cq_alloc; NULL: does nothing.
void cq_free(void *memory) {
  if (!memory) return;
  char *base;
  memcpy(&base, (char *)memory - sizeof(void *), sizeof base);
  free(base);
}

// A number of bytes in the unit (byte, bytes, KiB, ... TiB) that leaves a number below 999.5, for people to read.
cq_amount cq_amount_of(double bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == 1) return (cq_amount){bytes, "byte"};
  int unit = 0;
  for (; bytes >= 999.5 && unit < 4; unit++) bytes /= 1024;
  return (cq_amount){bytes, units[unit]};
}
