// thread_pool: the threads of a world, which run one function together.
#ifndef CQ_THREAD_POOL_H
#define CQ_THREAD_POOL_H

#include "worker.h"

typedef struct cq_thread_pool cq_thread_pool;
typedef void cq_thread_pool_function(void *argument, int rank, int size);

// Starts a pool of `threads` threads, the caller included; 0: one for each core that this process may use. The pool has
// at most 256, and fewer if the system cannot start them all (cq_thread_pool_size). NULL without memory.
cq_thread_pool *cq_thread_pool_create(int threads);
// Ends the threads of a pool and frees it; NULL: nothing.
void cq_thread_pool_destroy(cq_thread_pool *pool);
// The number of threads of a pool, the caller included.
int cq_thread_pool_size(const cq_thread_pool *pool);
// Calls function(argument, rank, count) on `count` threads, of which the caller is rank 0, and returns when all have
// ended. Meanwhile they flush denormal numbers to zero.
void cq_thread_pool_run(cq_thread_pool *pool, int count, cq_thread_pool_function *function, void *argument);
// Returns the barrier where the threads of a run of `count` threads can wait for each other; NULL for one thread.
struct cq_barrier *cq_thread_pool_barrier(cq_thread_pool *pool, int count);

#endif
