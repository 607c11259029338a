// thread_choice: chooses between one thread and all of them by their last measurements.
#include "thread_choice.h"
#include <math.h>

enum {
  TURNS = 8,                  // first calls, which take turns: they touch new memory, so their times say little
  TURNS_LONG = 4,             // first calls if they are long
  TRIAL_CALLS = 3,            // calls of a trial, unless it is hopeless; the first one wakes threads and is not counted
};

static const double waking = 1e-3;         // [s] more than it takes to wake
static const double window_length = 20e-3; // [s] several time slices of a system, which are of 3 or 4 ms
static const double wait_first = 10e-3;    // [s] until the first trial: the first calls may have chosen wrongly
static const double wait_most = 0.1;       // [s] from one trial to the next, unless trials cost more than trial_share
static const double patience = 30;         // [s] until the next trial for each second that the last one has lost
static const double trial_share = 0.015;   // of all time, lost in trials
static const double trial_length = 1 / 32.0;   // of the time since the last trial
static const double clearly = 1.05;        // times as slow: worth a switch
static const double hopeless = 1.5;        // times as slow: the trial ends

// Returns where the measured time [s] of a unit of work is stored: of all threads together (together 1), or of one (0).
static double *time_of(cq_thread_choice *c, int together) { return together ? &c->together : &c->alone; }

// Adds a call, with its amount of work and its time, to a tally of calls that are measured as one.
static void tally_add(cq_tally *t, double work, double seconds) {
  t->work += work;
  t->seconds += seconds;
  t->calls++;
}

// Returns the mean time of a unit of work in a tally [s], and clears the tally.
static double tally_take(cq_tally *t) {
  const double mean = t->seconds / t->work;
  *t = (cq_tally){0};
  return mean;
}

// Returns the number of threads that was faster so far, 1 or `most` (all). Starts no trial; nothing to record.
int cq_thread_choice_best(const cq_thread_choice *c, int most) {
  const int together = c->wait == 0 ? c->together <= c->alone : c->is_together;
  return together ? most : 1;
}

// Returns the number of threads, 1 or `most`, with which to run the next call: mostly the faster one, from time to time
// the other one for a trial. The caller then passes the time of that call to cq_thread_choice_record, unless most is 1.
int cq_thread_choice_next(cq_thread_choice *c, int most) {
  if (most == 1) return 1;
  const int64_t call = c->calls++;
  if (c->wait == 0) return call % 2 ? 1 : most;
  return c->is_together != (c->trial_calls > 0) ? most : 1;
}

// Records one of the first calls, which take turns between one thread and all. together: 1 if all threads ran it; time:
// of a unit of its work [s]; seconds: of the call. Of each the best call counts, as others may have touched new memory.
// After some calls, makes the first choice.
static void record_turn(cq_thread_choice *c, int together, double time, double seconds) {
  double *best = time_of(c, together);
  if (*best == 0 || time < *best) *best = time;
  c->since_trial += seconds;
  if (c->calls < (c->since_trial > TURNS * waking ? TURNS_LONG : TURNS)) return;
  c->is_together = c->together <= c->alone;
  c->since_trial = 0;
  c->wait = wait_first;
}

// Makes all threads (together 1) or one (0) the present choice, and starts to measure it from scratch.
static void switch_to(cq_thread_choice *c, int together) {
  c->is_together = together;
  c->windows = 0;
  c->window = (cq_tally){0};
  c->since_trial = 0;
}

// The median of three means; of two the smaller one, because the other may have been disturbed; a single one as it is.
// count: how many means there are.
static double median_of(const double *mean, int32_t count) {
  if (count < CQ_CHOICE_WINDOWS) return count < 2 ? mean[0] : fmin(mean[0], mean[1]);
  return fmax(fmin(mean[0], mean[1]), fmin(fmax(mean[0], mean[1]), mean[2]));
}

// Ends the present choice's window of calls if that is long enough, and switches to the other number of threads if the
// median of the last windows is clearly slower than that one's last measurement.
static void record_window(cq_thread_choice *c) {
  if (c->window.seconds < window_length) return;
  c->means[c->windows++ % CQ_CHOICE_WINDOWS] = tally_take(&c->window);
  *time_of(c, c->is_together) = median_of(c->means, c->windows < CQ_CHOICE_WINDOWS ? c->windows : CQ_CHOICE_WINDOWS);
  if (*time_of(c, c->is_together) > clearly * *time_of(c, !c->is_together)) switch_to(c, !c->is_together);
}

// Records a call of a trial, run with the other number of threads than the present choice. A trial that turns out
// slower ends soon, for it costs time; one that leads to a switch takes a whole window. At the end sets the time until
// the next trial, and switches if the trial was clearly faster.
static void record_trial(cq_thread_choice *c, double work, double seconds) {
  const double time = *time_of(c, c->is_together);
  c->cost += seconds - time * work;
  const int counted = c->trial_calls++ > 1 || c->cost > waking;
  if (counted) tally_add(&c->trial, work, seconds);
  const double slower = c->trial.seconds / (time * c->trial.work), allowed = trial_length * c->since_trial;
  const int over = c->trial.calls >= TRIAL_CALLS && c->trial.seconds > allowed;
  const int lost = counted && (slower > hopeless || (slower > 1 && over));
  if (!lost && c->trial.seconds < window_length) return;
  *time_of(c, !c->is_together) = tally_take(&c->trial);
  c->trial_calls = 0;
  c->since_trial = 0;
  c->wait = fmin(fmax(2 * c->wait, patience * c->cost), fmax(wait_most, c->cost / trial_share));
  if (slower * clearly < 1) switch_to(c, !c->is_together);
}

// Records a call that ran with `threads` threads: its amount of work, in any unit, and the time that it took.
void cq_thread_choice_record(cq_thread_choice *c, int threads, double work, double seconds) {
  const int together = threads > 1;
  if (c->wait == 0) {
    record_turn(c, together, seconds / work, seconds);
    return;
  }
  c->since_trial += seconds;
  if (c->trial_calls) {
    record_trial(c, work, seconds);
    return;
  }
  tally_add(&c->window, work, seconds);
  record_window(c);
  if (c->since_trial < c->wait) return;
  c->trial_calls = 1;
  c->cost = 0;
}
