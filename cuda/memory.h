// memory: device memory from a pool that all rollouts of a world share, and pinned memory of the host. All work is on
// one stream, so that a freed block may be taken again at once.
#ifndef CQ_CUDA_MEMORY_H
#define CQ_CUDA_MEMORY_H

#include "launch.h"

typedef struct cq_piece cq_piece;

typedef struct cq_memory {
  void *data;                // not zeroed
  size_t bytes;              // as many as were asked for, or a few more
  int32_t bin;
  cq_piece *piece;
  struct cq_memory *next;    // of its size, in the pool
} cq_memory;

enum { CQ_POOL_BINS = 16 * 48 };   // sizes: eight between a power of two and the next

typedef struct cq_pool {
  cq_piece *pieces;
  cq_memory *bins[CQ_POOL_BINS];
  size_t bytes, used;        // of the device's; handed out
} cq_pool;

// what: for the sentence, e.g. "state slice"
cq_status cq_pool_take(cq_pool *pool, size_t bytes, const char *what, cq_memory **out);
// Returns a block to the pool, which keeps it for later requests. NULL: does nothing.
void cq_pool_give(cq_pool *pool, cq_memory *memory);
// Memory of at least `bytes` bytes, whose contents are lost when it grows.
cq_status cq_pool_reserve(cq_pool *pool, cq_memory **memory, size_t bytes, const char *what);
void cq_pool_close(cq_pool *pool);

cq_status cq_pinned_take(size_t bytes, const char *what, void **out);
void cq_pinned_give(void *memory);

#endif
