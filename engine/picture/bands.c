// bands: rows of a picture shared out to threads. A band is written by one thread, and what it holds depends on nothing
// that another thread writes meanwhile, so that pictures do not depend on the number of threads.
#include "picture.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS_MAX = 16 };       // more than this wait for memory

typedef struct share {
  band_function *function;
  void *context;
  int32_t rows, band;
  _Atomic int32_t next;          // first row that nobody has taken
} share;

// The body of a drawing thread. argument: a `share`, which all threads have in common; takes one band of rows after
// another from it and calls its function on the band, until no rows are left. Returns NULL.
static void *work(void *argument) {
  share *s = argument;
  for (;;) {
    int32_t first = atomic_fetch_add(&s->next, s->band);
    if (first >= s->rows) return NULL;
    s->function(s->context, first, first + s->band < s->rows ? first + s->band : s->rows);
  }
}

// The number of threads to draw with, at most THREADS_MAX: `wanted`; if below 1, one for each core of this process.
int32_t thread_count(int32_t wanted) {
  const int32_t count = wanted < 1 ? cq_processors() : wanted;
  return count < THREADS_MAX ? count : THREADS_MAX;
}

// Calls function(context, first, last) for all rows 0 to rows - 1, in bands of `band` rows that up to `threads` threads
// share; returns when all are done.
void in_bands(int32_t threads, int32_t rows, int32_t band, band_function *function, void *context) {
  share s = { .function = function, .context = context, .rows = rows, .band = band };
  pthread_t helper[THREADS_MAX];
  int32_t started = 0;
  // a thread that cannot be had is not missed: the others take its bands
  while (started + 1 < threads && (int64_t)(started + 1) * band < rows &&
         !pthread_create(&helper[started], NULL, work, &s))
    started++;
  work(&s);
  for (int32_t k = 0; k < started; k++) pthread_join(helper[k], NULL);
}
