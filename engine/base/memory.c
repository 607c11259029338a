#include "base.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *cq_alloc(size_t count, size_t size, const char *what) {
  if (size && count > (SIZE_MAX - CQ_ALIGNMENT) / size) {
    cq_fail(CQ_MEMORY, "%s: %zu elements of %zu bytes are more than an address can hold", what, count, size);
    return NULL;
  }
  // aligned_alloc wants a multiple of the alignment, and a size above zero
  size_t bytes = (count * size + CQ_ALIGNMENT) & ~(size_t)(CQ_ALIGNMENT - 1);
  void *memory = aligned_alloc(CQ_ALIGNMENT, bytes);
  if (!memory) {
    cq_fail(CQ_MEMORY, "out of memory: %s needs %.1f MiB", what, (double)bytes / (1 << 20));
    return NULL;
  }
  memset(memory, 0, bytes);
  return memory;
}

void cq_free(void *memory) { free(memory); }

int64_t cq_memory_available(void) {
  FILE *file = fopen("/proc/meminfo", "r");
  if (!file) return (int64_t)1 << 30;
  char line[256];
  long long kib = 0;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1) break;
  fclose(file);
  return kib > 0 ? (int64_t)kib * 1024 : (int64_t)1 << 30;
}
