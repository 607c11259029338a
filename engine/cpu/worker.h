// worker: one of the threads that share a scene. C++ reads this too, for tests of the kernels.
#ifndef CQ_WORKER_H
#define CQ_WORKER_H

#include "../base/base.h"

struct cq_barrier;

typedef struct cq_worker {
  int rank, size;
  struct cq_barrier *barrier; // NULL when alone
  double *timers;             // {CQ_PHASE_COUNT} ticks, NULL for all ranks but the first of a pool
  double last;                // ticks at the end of the last phase
  double weight;              // of the times that are charged
} cq_worker;

// Waits until all workers (threads that share a scene) have called this; returns at once for a worker alone.
void cq_worker_wait(cq_worker *worker);
// Adds the time since the last call, times worker->weight, to a phase's timer (CQ_PHASE_...), if the worker has timers.
void cq_worker_phase(cq_worker *worker, int phase);
// Splits `count` items among the workers of a scene: sets begin and end (exclusive) to the contiguous block of this
// worker's rank, the same in every call.
void cq_worker_share(const cq_worker *worker, int count, int *begin, int *end);

#endif
