// The choice of threads, on made-up machines with a clock of their own: how much longer work takes than with the
// better number of threads in each call.
#include "check.h"
#include "cpu/thread_choice.h"

// A call begins at some time; when it ends, with two threads or with one [s].
typedef struct machine {
  const char *name;
  double (*together)(double time);
  double (*alone)(double time);
} machine;

static double quick(double time) { return time + 125e-6; }
static double slow(double time) { return time + 220e-6; }
static double crowded(double time) { return time + 3e-3; }
static double late(double time) { return time + (time < 0.05 ? 3e-3 : 125e-6); }
static double disturbed(double time) { return time + (time > 1 && time < 2 ? 3e-3 : 125e-6); }
static double large(double time) { return time + 70e-3; }
static double larger(double time) { return time + 140e-3; }

// work that takes so long, while the second core is lent to a neighbour every other slice, from one second to the third
static double beside_neighbour(double time, double seconds) {
  const double slice = 3e-3;
  while (time > 1 && time < 3) {
    const double begin = 2 * slice * floor(time / (2 * slice)), left = begin + slice - time;
    if (seconds <= left) return time + seconds;
    if (left > 0) seconds -= left;
    time = begin + 2 * slice + 1e-9;
  }
  return time + seconds;
}
// 1,600 particles: most calls take as long as ever
static double lent(double time) { return beside_neighbour(time, 280e-6); }
static double own(double time) { return time + 364e-6; }

// both ways stop for a moment once in a second, as on a machine that is lent itself
static double stopped(double time, double seconds) {
  return time + seconds + (floor(time + seconds) > floor(time) ? 0.03 : 0);
}
static double quick_stopped(double time) { return stopped(time, 280e-6); }
static double slow_stopped(double time) { return stopped(time, 364e-6); }

// share of time lost over three seconds from a moment on; calls with one thread among all of them
static double lost(const machine *m, double from, double until, double *share_alone) {
  cq_thread_choice choice = {0};
  double time = 0, best = 0, spent = 0, calls = 0, alone = 0;
  while (time < until) {
    const double ends[2] = {m->alone(time), m->together(time)};
    const int threads = cq_thread_choice_next(&choice, 2), sooner = ends[1] < ends[0];
    const double seconds = ends[threads - 1] - time;
    cq_thread_choice_record(&choice, threads, 1, seconds);
    if (time >= from) {
      spent += seconds;
      best += ends[sooner] - time;
      calls++;
      alone += threads == 1;
    }
    time += seconds;
  }
  *share_alone = alone / calls;
  return spent / best - 1;
}

static void check_lost(void) {
  const struct { machine machine; double from, at_most; } cases[] = {
      {{"two threads are quicker", quick, slow}, 0, 0.02},
      {{"one thread is quicker", slow, quick}, 0, 0.02},
      {{"both are as quick", quick, quick}, 0, 1e-9},
      {{"the cores are taken", crowded, slow}, 0.2, 0.05},
      {{"the second core is late", late, slow}, 0.1, 0.05},
      {{"the cores are taken for a second", disturbed, slow}, 0, 0.05},
      {{"calls are long", large, larger}, 3, 0.05},
      {{"calls are long, and alone shorter", larger, large}, 3, 0.05},
      {{"all stops now and then", quick_stopped, slow_stopped}, 0, 0.02},
  };
  for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
    double alone;
    const double share = lost(&cases[k].machine, cases[k].from, cases[k].from + 3, &alone);
    CHECK(share <= cases[k].at_most, "%s: %.1f %% of the time is lost, at most %.1f %% may be", cases[k].machine.name,
          100 * share, 100 * cases[k].at_most);
  }
}

// One who knows takes one thread while the neighbour is there; call by call it cannot be known.
static void check_neighbour(void) {
  const machine m = {"a neighbour comes and goes", lent, own};
  const struct { const char *when; double from, until, least, most; } parts[] = {
      {"before", 0.1, 1, 0, 0.05}, {"while it is there", 1.2, 3, 0.9, 1}, {"after", 4.1, 7, 0, 0.05},
  };
  for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++) {
    double alone;
    lost(&m, parts[k].from, parts[k].until, &alone);
    CHECK(alone >= parts[k].least && alone <= parts[k].most,
          "%s: %.1f %% of the calls %s have one thread; it must be %.0f to %.0f %%", m.name, 100 * alone, parts[k].when,
          100 * parts[k].least, 100 * parts[k].most);
  }
}

int main(void) {
  check_lost();
  check_neighbour();
  cq_thread_choice one = {0};
  CHECK(cq_thread_choice_next(&one, 1) == 1 && one.calls == 0, "work for one thread was given %lld calls",
        (long long)one.calls);
  return check_report();
}
