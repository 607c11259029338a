#include "pace.h"
#include <math.h>

enum {
  TURNS = 8,                  // first calls, which take turns: they touch new memory, and tell little
  SPACING = 32,               // calls from one trial to the next, at least
  TRIES = 3,                  // of a trial: the first one wakes sleeping threads
};

static const double trial_share = 0.01;    // of all time, for trials
static const double debt_max = 0.05;       // [s] however badly trials went, they come again

int cq_pace_quicker(const cq_pace *p, int most) { return p->together <= p->alone ? most : 1; }

int cq_pace_choose(cq_pace *p, int most) {
  if (most == 1) return 1;
  const int64_t call = p->calls++;
  if (call < TURNS) return call % 2 ? 1 : most;
  // when enough was saved for it; and soon after the start, for a first impression may be wrong
  const int early = (call & (call - 1)) == 0, saved = p->credit > 0 && call % SPACING == 0;
  if (early || saved) p->tries = TRIES;
  const int quicker = cq_pace_quicker(p, most);
  return p->tries == 0 ? quicker : quicker == 1 ? most : 1;
}

void cq_pace_note(cq_pace *p, int threads, double work, double seconds) {
  double *mean = threads > 1 ? &p->together : &p->alone;
  const double pace = seconds / work, other = threads > 1 ? p->alone : p->together;
  if (p->calls > TURNS) p->credit = fmax(p->credit + trial_share * seconds - fmax(seconds - other * work, 0), -debt_max);
  // a trial ends early when it is hopeless, and when it showed the quicker way
  if (p->tries > 0) p->tries = pace > 2 * other || pace < other ? 0 : p->tries - 1;
  // good news counts at once; bad news may have been a neighbour's, and only counts when it keeps coming
  if (*mean == 0 || pace < *mean)
    *mean = pace;
  else
    *mean += 0.25 * (fmin(pace, 2 * *mean) - *mean);
}
