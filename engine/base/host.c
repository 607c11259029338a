// What the engine asks of the machine: clock and the wish to stop.
#define _POSIX_C_SOURCE 200809L
#include "base.h"
#include <stdatomic.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static atomic_int interrupt_wanted;

// Asks running rollouts to stop at the next control step (on = 1), or takes that wish back (0).
void cq_interrupt(int32_t on) { atomic_store(&interrupt_wanted, on); }
// Are running rollouts asked to stop?
int32_t cq_interrupted(void) { return atomic_load(&interrupt_wanted); }

// A wall clock that never goes back [s].
double cq_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The counter of the processor takes a third of the time of the system's clock. It serves if it runs at one pace on all
// cores, also while they sleep; what a tick is shows since the program began.
static double clock_begun, ticks_begun;
static int counts;

// The present count of the fastest clock: processor cycles (the time stamp counter) where they have one constant rate,
// else seconds of cq_clock.
static double count(void) {
#if defined(__x86_64__)
  if (counts) return (double)__builtin_ia32_rdtsc();
#endif
  return cq_clock();
}

// Runs when the program is loaded: chooses the fastest clock, and notes its count and the time, from which cq_tick
// finds how long a count takes.
__attribute__((constructor)) static void begin_ticks(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  counts = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#endif
  clock_begun = cq_clock();
  ticks_begun = count();
}

// The count of the fastest clock there is. Timers take differences of it, times cq_tick for seconds.
double cq_ticks(void) { return count(); }

// The time of one count of cq_ticks [s], the more precise the longer the program runs.
double cq_tick(void) {
  const double now = cq_clock(), ticks = count() - ticks_begun;
  return counts && ticks > 0 ? (now - clock_begun) / ticks : 1;
}

// CQ_ABI of the built engine, by which a caller knows that its cq.h fits.
int32_t cq_abi(void) { return CQ_ABI; }
