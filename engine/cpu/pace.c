// pace: chooses between one thread and all of them by what both took lately.
#include "pace.h"
#include <math.h>

enum {
  TURNS = 8,                  // first calls, which take turns: they touch new memory, and tell little
  TURNS_LONG = 4,             // of long ones
  TRIAL_CALLS = 3,            // of a trial, unless it is hopeless; its first one wakes sleeping threads: not counted
};

static const double waking = 1e-3;         // [s] more than it takes to wake
static const double window_length = 20e-3; // [s] several time slices of a system, which are of 3 or 4 ms
static const double wait_first = 10e-3;    // [s] until the first trial: a first impression may be wrong
static const double wait_most = 0.1;       // [s] from one trial to the next, unless they cost more than
static const double patience = 30;         // [s] until the next trial, for each that the last one has lost
static const double trial_share = 0.015;   // of all time
static const double trial_length = 1 / 32.0;   // of the time since the last one
static const double clearly = 1.05;        // as slow: worth a switch
static const double hopeless = 1.5;        // as slow: a trial ends

static double *pace_of(cq_pace *p, int way) { return way ? &p->together : &p->alone; }

static void tally_add(cq_tally *t, double work, double seconds) {
  t->work += work;
  t->seconds += seconds;
  t->calls++;
}

static double tally_take(cq_tally *t) {
  const double mean = t->seconds / t->work;
  *t = (cq_tally){0};
  return mean;
}

int cq_pace_quicker(const cq_pace *p, int most) {
  const int together = p->wait == 0 ? p->together <= p->alone : p->taken;
  return together ? most : 1;
}

int cq_pace_choose(cq_pace *p, int most) {
  if (most == 1) return 1;
  const int64_t call = p->calls++;
  if (p->wait == 0) return call % 2 ? 1 : most;
  return p->taken != (p->trying > 0) ? most : 1;
}

// The first calls, in turns. The best of each way counts, for the others touched new memory.
static void note_turn(cq_pace *p, int way, double pace, double seconds) {
  double *best = pace_of(p, way);
  if (*best == 0 || pace < *best) *best = pace;
  p->since_trial += seconds;
  if (p->calls < (p->since_trial > TURNS * waking ? TURNS_LONG : TURNS)) return;
  p->taken = p->together <= p->alone;
  p->since_trial = 0;
  p->wait = wait_first;
}

static void take(cq_pace *p, int way) {
  p->taken = way;
  p->windows = 0;
  p->window = (cq_tally){0};
  p->since_trial = 0;
}

// the median of three; of two the smaller, for the other may have been disturbed
static double middle(const double *mean, int32_t count) {
  if (count < CQ_PACE_WINDOWS) return count < 2 ? mean[0] : fmin(mean[0], mean[1]);
  return fmax(fmin(mean[0], mean[1]), fmin(fmax(mean[0], mean[1]), mean[2]));
}

static void note_window(cq_pace *p) {
  if (p->window.seconds < window_length) return;
  p->means[p->windows++ % CQ_PACE_WINDOWS] = tally_take(&p->window);
  *pace_of(p, p->taken) = middle(p->means, p->windows < CQ_PACE_WINDOWS ? p->windows : CQ_PACE_WINDOWS);
  if (*pace_of(p, p->taken) > clearly * *pace_of(p, !p->taken)) take(p, !p->taken);
}

// Of the other way. While it is slower it is a loss, and ends soon; it is only taken after a whole window.
static void note_trial(cq_pace *p, double work, double seconds) {
  const double pace = *pace_of(p, p->taken);
  p->cost += seconds - pace * work;
  const int told = p->trying++ > 1 || p->cost > waking;
  if (told) tally_add(&p->trial, work, seconds);
  const double slower = p->trial.seconds / (pace * p->trial.work), allowed = trial_length * p->since_trial;
  const int over = p->trial.calls >= TRIAL_CALLS && p->trial.seconds > allowed;
  const int lost = told && (slower > hopeless || (slower > 1 && over));
  if (!lost && p->trial.seconds < window_length) return;
  *pace_of(p, !p->taken) = tally_take(&p->trial);
  p->trying = 0;
  p->since_trial = 0;
  p->wait = fmin(fmax(2 * p->wait, patience * p->cost), fmax(wait_most, p->cost / trial_share));
  if (slower * clearly < 1) take(p, !p->taken);
}

void cq_pace_note(cq_pace *p, int threads, double work, double seconds) {
  const int way = threads > 1;
  if (p->wait == 0) {
    note_turn(p, way, seconds / work, seconds);
    return;
  }
  p->since_trial += seconds;
  if (p->trying) {
    note_trial(p, work, seconds);
    return;
  }
  tally_add(&p->window, work, seconds);
  note_window(p);
  if (p->since_trial < p->wait) return;
  p->trying = 1;
  p->cost = 0;
}
