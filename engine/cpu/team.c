#define _GNU_SOURCE
#include "team.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum {
  SPINS = 1000,               // of a barrier before it yields: about 10 us, more than a fair wait, less than a time slice
  SPINS_MORE = 50,            // between further yields, when others want the core
  THREADS_MAX = 256,
};

typedef struct worker {
  cq_team *team;
  pthread_t thread;
  int rank;
} worker;

struct cq_team {
  int size;
  _Alignas(64) atomic_uint go;   // jobs given out; it may wrap around
  _Alignas(64) atomic_int done;
  atomic_int quit;
  cq_team_function *function;
  void *argument;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  worker workers[THREADS_MAX];
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static void barrier_wait(cq_barrier *b) {
  const int sense = atomic_load_explicit(&b->sense, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&b->waiting, 1, memory_order_acq_rel) == b->size - 1) {
    atomic_store_explicit(&b->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&b->sense, sense + 1, memory_order_release);
    return;
  }
  for (int k = 0; atomic_load_explicit(&b->sense, memory_order_acquire) == sense; k++) {
    pause_cpu();
    if (k >= SPINS) {
      sched_yield();
      k = SPINS - SPINS_MORE;
    }
  }
}

// workers spin a little after each job, since the next one is usually near, then sleep
static void *work(void *argument) {
  worker *w = argument;
  cq_team *team = w->team;
  for (unsigned turn = 0;; turn++) {
    for (int k = 0; k < 20 * SPINS && atomic_load_explicit(&team->go, memory_order_acquire) == turn; k++) pause_cpu();
    if (atomic_load_explicit(&team->go, memory_order_acquire) == turn) {
      pthread_mutex_lock(&team->lock);
      while (atomic_load(&team->go) == turn) pthread_cond_wait(&team->wake, &team->lock);
      pthread_mutex_unlock(&team->lock);
    }
    if (atomic_load(&team->quit)) return NULL;
    team->function(team->argument, w->rank, team->size);
    atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
  }
}

static void start_turn(cq_team *team) {
  pthread_mutex_lock(&team->lock);
  atomic_fetch_add_explicit(&team->go, 1, memory_order_release);
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->lock);
}

cq_team *cq_team_create(int threads) {
  if (threads <= 0) {
    cpu_set_t set;
    threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
  }
  if (threads > THREADS_MAX) threads = THREADS_MAX;
  cq_team *team = cq_alloc(1, sizeof *team, "threads");
  if (!team) return NULL;
  team->size = 1;
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->wake, NULL);
  for (int k = 1; k < threads; k++) {
    team->workers[k] = (worker){.team = team, .rank = k};
    if (pthread_create(&team->workers[k].thread, NULL, work, &team->workers[k])) break;
    team->size++;
  }
  return team;
}

void cq_team_destroy(cq_team *team) {
  if (!team) return;
  atomic_store(&team->quit, 1);
  start_turn(team);
  for (int k = 1; k < team->size; k++) pthread_join(team->workers[k].thread, NULL);
  pthread_cond_destroy(&team->wake);
  pthread_mutex_destroy(&team->lock);
  cq_free(team);
}

int cq_team_size(const cq_team *team) { return team->size; }

void cq_team_run(cq_team *team, cq_team_function *function, void *argument) {
  if (team->size == 1) {
    function(argument, 0, 1);
    return;
  }
  team->function = function;
  team->argument = argument;
  atomic_store(&team->done, 0);
  start_turn(team);
  function(argument, 0, team->size);
  for (int k = 0; atomic_load_explicit(&team->done, memory_order_acquire) != team->size - 1; k++) {
    pause_cpu();
    if (k >= SPINS) {
      sched_yield();
      k = SPINS - SPINS_MORE;
    }
  }
}

void cq_crew_wait(cq_crew *crew) {
  if (crew->barrier) barrier_wait(crew->barrier);
}

void cq_crew_phase(cq_crew *crew, int phase) {
  if (!crew->timers) return;
  const double now = cq_ticks();
  crew->timers[phase] += crew->weight * (now - crew->last);
  crew->last = now;
}

void cq_crew_share(const cq_crew *crew, int count, int *begin, int *end) {
  *begin = (int)((int64_t)count * crew->rank / crew->size);
  *end = (int)((int64_t)count * (crew->rank + 1) / crew->size);
}
