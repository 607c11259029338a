// thread_pool: the threads of a world, which run one function together.
#ifndef CQ_THREAD_POOL_H
#define CQ_THREAD_POOL_H

#include "worker.h"

typedef struct cq_thread_pool cq_thread_pool;
typedef void cq_thread_pool_function(void *argument, int rank, int size);

cq_thread_pool *cq_thread_pool_create(int threads);   // 0: one for each core that this process may use
void cq_thread_pool_destroy(cq_thread_pool *pool);
int cq_thread_pool_size(const cq_thread_pool *pool);
// Runs a function on `count` threads, of which the caller is the first, and waits for all.
// They flush denormals meanwhile.
void cq_thread_pool_run(cq_thread_pool *pool, int count, cq_thread_pool_function *function, void *argument);
// The barrier of a run of `count` threads; NULL for one thread.
struct cq_barrier *cq_thread_pool_barrier(cq_thread_pool *pool, int count);

#endif
