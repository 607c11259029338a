// What the engine asks of the machine: clock and the wish to stop.
#define _POSIX_C_SOURCE 200809L
#include "base.h"
#include <stdatomic.h>
#include <time.h>

static atomic_int interrupt_wanted;

void cq_interrupt(int32_t on) { atomic_store(&interrupt_wanted, on); }
int32_t cq_interrupted(void) { return atomic_load(&interrupt_wanted); }

double cq_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int32_t cq_abi(void) { return CQ_ABI; }
