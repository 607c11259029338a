// schedule: where a given number of checkpoints lie, and how many control steps are computed again with them.
#include "schedule.h"

static const int64_t MANY = INT64_MAX / 4;   // more than any rollout makes

// C(s + r, s): the length of the longest chain of blocks that s checkpoints, the one at its start included, reverse
// while no block is advanced more than r times; at most MANY. 0 if s or r is negative.
static int64_t reach(int64_t s, int64_t r) {
  if (r < 0 || s < 0) return 0;
  int64_t b = 1;
  const int64_t k = s < r ? s : r;
  for (int64_t i = 1; i <= k; i++) {
    if (b > MANY / (s + r - k + i)) return MANY;
    b = b * (s + r - k + i) / i;
  }
  return b;
}

// The smallest number r such that `length` blocks can be reversed with s checkpoints while no block is advanced more
// than r times.
static int64_t repetitions(int64_t length, int64_t s) {
  int64_t r = 0;
  while (reach(s, r) < length) r++;
  return r;
}

// Binomial schedule: how many blocks to advance, 1 to length - 1, from a checkpoint before making the next one, where
// `length` blocks are to be reversed and `free` checkpoints are left beside the one at the start. Needs length >= 2 and
// free >= 1.
int64_t cq_schedule_split(int64_t length, int64_t free) {
  const int64_t s = free + 1, r = repetitions(length, s);
  int64_t split = length - reach(s - 1, r);
  if (split < reach(s, r - 2)) split = reach(s, r - 2);
  if (split < 1) split = 1;
  return split < length ? split : length - 1;
}

// How many blocks are advanced in all while `length` blocks are reversed from a checkpoint with `free` others left.
// Passes that record a block are not counted.
int64_t cq_schedule_cost(int64_t length, int64_t free) {
  if (free == 0) return length * (length - 1) / 2;
  const int64_t s = free + 1, r = repetitions(length, s);
  return r * length - reach(s + 1, r - 1);
}
