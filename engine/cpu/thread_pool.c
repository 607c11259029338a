// thread_pool: threads that wait for a function to run together, and the barrier where they meet.
#define _GNU_SOURCE
#include "thread_pool.h"
#include "../base/denormal.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
  PAUSES = 64,                // between looks at the clock
  THREADS_MAX = 256,
};

// [s] A waiting thread spins for this time before it sleeps. At a barrier: longer than an ordinary wait, about as long
// as waking takes, and shorter than a time slice, because the thread that is waited for may need this core. Between
// runs: longer, because the next run usually follows soon.
static const double spin_at_barrier = 50e-6, spin_between_runs = 300e-6;

// a number that one thread changes and others wait for
typedef struct gate {
  _Alignas(64) atomic_uint turn;   // it may wrap around
  atomic_int sleepers;
  pthread_mutex_t lock;
  pthread_cond_t changed;
} gate;

struct cq_barrier {
  _Alignas(64) atomic_int waiting;
  int size;
  gate gate;
};

typedef struct pool_thread {
  cq_thread_pool *pool;
  pthread_t thread;
  int rank;
  gate go;
} pool_thread;

struct cq_thread_pool {
  int size;
  cq_thread_pool_function *function;      // NULL: threads end
  void *argument;
  struct cq_barrier barrier;
  cpu_set_t allowed;               // cores, empty if not known
  atomic_int core[THREADS_MAX];    // of each rank, in the running run
  pool_thread thread[THREADS_MAX];
};

// ---- waiting --------------------------------------------------------------------------------------------------------

// Tells the processor that this thread waits in a loop, which leaves its core's time to others.
static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Initialises a gate: a turn number that one thread raises, and for whose change other threads wait.
static void gate_init(gate *g) {
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
}

// Releases the lock of a gate at which no thread waits.
static void gate_destroy(gate *g) {
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
}

// Raises the turn of a gate: all threads that wait at it go on. A thread about to sleep is not missed: opener and
// sleeper each write their own word before they read the other's.
static void gate_open(gate *g) {
  atomic_fetch_add(&g->turn, 1);
  if (!atomic_load(&g->sleepers)) return;
  pthread_mutex_lock(&g->lock);
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

// Waits until the turn of a gate is no longer `turn`: spins in a loop for `spin` seconds, then sleeps.
static void gate_wait(gate *g, unsigned turn, double spin) {
  double start = 0;
  for (int k = 1; atomic_load_explicit(&g->turn, memory_order_acquire) == turn; k++) {
    pause_cpu();
    if (k % PAUSES) continue;
    const double now = cq_clock();
    if (start == 0) start = now;
    if (now - start > spin) break;
  }
  if (atomic_load_explicit(&g->turn, memory_order_acquire) != turn) return;
  pthread_mutex_lock(&g->lock);
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->turn) == turn) pthread_cond_wait(&g->changed, &g->lock);
  atomic_fetch_sub(&g->sleepers, 1);
  pthread_mutex_unlock(&g->lock);
}

// Waits until all threads of a barrier have called this; the last one to call lets the others go on.
static void barrier_wait(struct cq_barrier *b) {
  const unsigned turn = atomic_load_explicit(&b->gate.turn, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&b->waiting, 1, memory_order_acq_rel) == b->size - 1) {
    atomic_store_explicit(&b->waiting, 0, memory_order_relaxed);
    gate_open(&b->gate);
  } else {
    gate_wait(&b->gate, turn, spin_at_barrier);
  }
}

// ---- pool -----------------------------------------------------------------------------------------------------------

// Moves the calling thread, number `rank` of the pool, off a core that a thread of lower rank uses, before it runs a
// function. The kernel may wake a thread on the core of the thread that woke it, and leave both there for tens of
// milliseconds although another core is idle. The thread is then free to run on all cores again.
static void leave_shared_core(cq_thread_pool *pool, int rank) {
  const int core = sched_getcpu();
  atomic_store_explicit(&pool->core[rank], core, memory_order_relaxed);
  cpu_set_t others = pool->allowed;
  int shared = 0;
  for (int k = 0; k < rank; k++) {
    const int taken = atomic_load_explicit(&pool->core[k], memory_order_relaxed);
    if (taken < 0 || taken >= CPU_SETSIZE) continue;
    shared |= taken == core;
    CPU_CLR((unsigned)taken, &others);
  }
  if (!shared || CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others)) return;
  sched_setaffinity(0, sizeof pool->allowed, &pool->allowed);
  atomic_store_explicit(&pool->core[rank], sched_getcpu(), memory_order_relaxed);
}

// Main function of a pool's thread: waits for a function, runs it, and so on until the pool's function is NULL.
// argument: its pool_thread. Returns NULL.
static void *thread_main(void *argument) {
  pool_thread *w = argument;
  cq_thread_pool *pool = w->pool;
  cq_denormals_flush();
  for (unsigned turn = 0;; turn++) {
    gate_wait(&w->go, turn, spin_between_runs);
    if (!pool->function) return NULL;
    leave_shared_core(pool, w->rank);
    pool->function(pool->argument, w->rank, pool->barrier.size);
    barrier_wait(&pool->barrier);
  }
}

// Starts a pool of `threads` threads, the caller included; 0: one for each core that this process may use. The pool has
// at most 256, and fewer if the system cannot start them all (cq_thread_pool_size). NULL without memory.
cq_thread_pool *cq_thread_pool_create(int threads) {
  if (threads <= 0) threads = cq_processors();
  if (threads > THREADS_MAX) threads = THREADS_MAX;
  cq_thread_pool *pool = cq_alloc(1, sizeof *pool, "threads");
  if (!pool) return NULL;
  pool->size = 1;
  if (sched_getaffinity(0, sizeof pool->allowed, &pool->allowed)) CPU_ZERO(&pool->allowed);
  gate_init(&pool->barrier.gate);
  for (int k = 1; k < threads; k++) {
    pool_thread *w = &pool->thread[k];
    w->pool = pool;
    w->rank = k;
    gate_init(&w->go);
    if (pthread_create(&w->thread, NULL, thread_main, w)) {
      gate_destroy(&w->go);
      break;
    }
    pool->size++;
  }
  return pool;
}

// Ends the threads of a pool and frees it; NULL: nothing.
void cq_thread_pool_destroy(cq_thread_pool *pool) {
  if (!pool) return;
  pool->function = NULL;
  for (int k = 1; k < pool->size; k++) {
    gate_open(&pool->thread[k].go);
    pthread_join(pool->thread[k].thread, NULL);
    gate_destroy(&pool->thread[k].go);
  }
  gate_destroy(&pool->barrier.gate);
  cq_free(pool);
}

// The number of threads of a pool, the caller included.
int cq_thread_pool_size(const cq_thread_pool *pool) { return pool->size; }

// Returns the barrier where the threads of a run of `count` threads can wait for each other; NULL for one thread.
struct cq_barrier *cq_thread_pool_barrier(cq_thread_pool *pool, int count) { return count > 1 ? &pool->barrier : NULL; }

// Calls function(argument, rank, count) on `count` threads, of which the caller is rank 0, and returns when all have
// ended. Meanwhile they flush denormal numbers to zero.
void cq_thread_pool_run(cq_thread_pool *pool, int count, cq_thread_pool_function *function, void *argument) {
  if (count > 1) {
    pool->function = function;
    pool->argument = argument;
    pool->barrier.size = count;
    atomic_store_explicit(&pool->core[0], sched_getcpu(), memory_order_relaxed);
    for (int k = 1; k < count; k++) gate_open(&pool->thread[k].go);
  }
  const cq_float_mode before = cq_denormals_flush();
  function(argument, 0, count);
  cq_float_mode_set(before);
  if (count > 1) barrier_wait(&pool->barrier);
}

// ---- worker ---------------------------------------------------------------------------------------------------------

// Waits until all workers (threads that share a scene) have called this; returns at once for a worker alone.
void cq_worker_wait(cq_worker *worker) {
  if (worker->barrier) barrier_wait(worker->barrier);
}

// Adds the time since the last call, times worker->weight, to a phase's timer (CQ_PHASE_...), if the worker has timers.
void cq_worker_phase(cq_worker *worker, int phase) {
  if (!worker->timers) return;
  const double now = cq_ticks();
  worker->timers[phase] += worker->weight * (now - worker->last);
  worker->last = now;
}

// Splits `count` items among the workers of a scene: sets begin and end (exclusive) to the contiguous block of this
// worker's rank, the same in every call.
void cq_worker_share(const cq_worker *worker, int count, int *begin, int *end) {
  *begin = (int)((int64_t)count * worker->rank / worker->size);
  *end = (int)((int64_t)count * (worker->rank + 1) / worker->size);
}
