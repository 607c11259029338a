// schedule: where to put checkpoints, so that a rollout is reversed with the fewest steps made again.
// Binomial checkpointing: Griewank and Walther, Algorithm 799, ACM TOMS 26(1), 2000.
#ifndef CQ_SCHEDULE_H
#define CQ_SCHEDULE_H

#include "../base/base.h"

// Binomial schedule: how many blocks to advance, 1 to length - 1, from a checkpoint before making the next one, where
// `length` blocks are to be reversed and `free` checkpoints are left beside the one at the start. Needs length >= 2 and
// free >= 1.
int64_t cq_schedule_split(int64_t length, int64_t free);

// How many blocks are advanced in all while `length` blocks are reversed from a checkpoint with `free` others left.
// Passes that record a block are not counted.
int64_t cq_schedule_cost(int64_t length, int64_t free);

#endif
