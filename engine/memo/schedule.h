// schedule: where to put checkpoints, so that a rollout is reversed with the fewest steps made again.
// Binomial checkpointing: Griewank and Walther, Algorithm 799, ACM TOMS 26(1), 2000.
#ifndef CQ_SCHEDULE_H
#define CQ_SCHEDULE_H

#include "../base/base.h"

// To reverse length blocks from a checkpoint, with so many free checkpoints: blocks to advance before the next one, in
// 1 .. length - 1. Needs length >= 2 and free >= 1.
int64_t cq_schedule_split(int64_t length, int64_t free);

// Blocks advanced in all while length blocks are reversed from a checkpoint with so many free ones, the passes
// that record a block not counted.
int64_t cq_schedule_cost(int64_t length, int64_t free);

#endif
