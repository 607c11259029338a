// pace: how many threads one kind of work should have, one or all. Small scenes, and machines whose cores others use,
// are faster with one. Results are the same bits either way.
//
// A neighbour on one of the cores does not make every call slower: most take as long as before, but some wait for a
// thread that has lost its core, for a time slice of milliseconds. So what counts is the mean over windows of several
// time slices. A way whose windows keep being slower than what the other one took last is left; the other one is tried
// now and then, for only that shows that a neighbour has gone.
#ifndef CQ_PACE_H
#define CQ_PACE_H

#include <stdint.h>

enum { CQ_PACE_WINDOWS = 3 };   // of which the median counts: one that was disturbed tells nothing

// calls that are looked at together
typedef struct cq_tally {
  double seconds, work;
  int32_t calls;
} cq_tally;

typedef struct cq_pace {
  double alone, together;            // [s] that a unit of the work took lately; 0: not known yet
  int64_t calls;
  int32_t taken;                     // the way: 1 all threads, 0 one
  int32_t trying;                    // calls of the running trial of the other way, with the next one; 0: there is none
  cq_tally window, trial;            // of the way that is taken, and of the other one
  double means[CQ_PACE_WINDOWS];     // [s] of a unit in the last windows since this way was taken
  int32_t windows;                   // that there were
  double since_trial;                // [s] of this work since the last trial or switch
  double wait;                       // [s] from one trial to the next; 0: the first calls still take turns
  double cost;                       // [s] that the running trial has lost so far
} cq_pace;

// The quicker of 1 and most.
int cq_pace_quicker(const cq_pace *p, int most);
// The same, or the other one for a trial: to be followed by a note of what it took.
int cq_pace_choose(cq_pace *p, int most);
void cq_pace_note(cq_pace *p, int threads, double work, double seconds);

#endif
