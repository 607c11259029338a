// The choice of threads, on made-up machines: how much longer work takes than it would in the hands of one who knows.
#include "check.h"
#include "cpu/pace.h"

// [s] that a call at some time takes with two threads, and with one
typedef struct machine {
  const char *name;
  double (*together)(double time);
  double (*alone)(double time);
} machine;

static double quick(double time) { return (void)time, 125e-6; }
static double slow(double time) { return (void)time, 220e-6; }
static double crowded(double time) { return (void)time, 3e-3; }
static double late(double time) { return time < 0.05 ? 3e-3 : 125e-6; }
static double disturbed(double time) { return time > 1 && time < 2 ? 3e-3 : 125e-6; }

// share of time lost from a moment on, over three seconds
static double lost(const machine *m, double from) {
  cq_pace pace = {0};
  double time = 0, best = 0, spent = 0;
  while (time < from + 3) {
    const double together = m->together(time), alone = m->alone(time);
    const int threads = cq_pace_choose(&pace, 2);
    const double seconds = threads == 2 ? together : alone;
    cq_pace_note(&pace, threads, 1, seconds);
    if (time >= from) {
      spent += seconds;
      best += fmin(together, alone);
    }
    time += seconds;
  }
  return spent / best - 1;
}

int main(void) {
  const struct { machine machine; double from, at_most; } cases[] = {
      {{"two threads are quicker", quick, slow}, 0, 0.02},
      {{"one thread is quicker", slow, quick}, 0, 0.02},
      {{"both are as quick", quick, quick}, 0, 1e-9},
      {{"the cores are taken", crowded, slow}, 0.2, 0.05},
      {{"the second core is late", late, slow}, 0.1, 0.05},
      {{"the cores are taken for a second", disturbed, slow}, 0, 0.05},
  };
  for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
    const double share = lost(&cases[k].machine, cases[k].from);
    CHECK(share <= cases[k].at_most, "%s: %.1f %% of the time is lost, at most %.1f %% may be", cases[k].machine.name, 100 * share,
          100 * cases[k].at_most);
  }
  cq_pace one = {0};
  CHECK(cq_pace_choose(&one, 1) == 1 && one.calls == 0, "work for one thread was given %lld calls", (long long)one.calls);
  return check_report();
}
