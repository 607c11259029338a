// schedule: where to put checkpoints, so that a rollout is reversed with the fewest steps made again.
// Binomial checkpointing: Griewank and Walther, Algorithm 799, ACM TOMS 26(1), 2000.
#ifndef CQ_SCHEDULE_H
#define CQ_SCHEDULE_H

#include "../base/base.h"

// To reverse `length` blocks from a checkpoint with `free` other checkpoints: the number of blocks to advance before
// the next one, in 1 .. length - 1. Needs length >= 2 and free >= 1.
int64_t cq_schedule_split(int64_t length, int64_t free);

// The number of blocks that are advanced while `length` blocks are reversed from a checkpoint with `free` other ones.
// Passes that record a block are not counted.
int64_t cq_schedule_cost(int64_t length, int64_t free);

#endif
