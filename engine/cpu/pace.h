// pace: how many threads one kind of work should have. Small scenes, and machines whose cores others use, are faster with one:
// what was quicker lately is taken, and the other is tried now and then. Results are the same bits either way.
#ifndef CQ_PACE_H
#define CQ_PACE_H

#include <stdint.h>

typedef struct cq_pace {
  double together, alone;   // [s] that a unit of the work took lately; 0: not known yet
  double credit;            // [s] saved up for trying the slower way; below zero after it went badly
  int64_t calls;
  int32_t tries;            // left of a trial
} cq_pace;

// The quicker of 1 and most.
int cq_pace_quicker(const cq_pace *p, int most);
// The same, or the other one for a trial: to be followed by a note of what it took.
int cq_pace_choose(cq_pace *p, int most);
void cq_pace_note(cq_pace *p, int threads, double work, double seconds);

#endif
