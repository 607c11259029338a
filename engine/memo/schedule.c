// schedule: where a given number of checkpoints lie, and how many control steps are computed again with them.
#include "schedule.h"

static const int64_t MANY = INT64_MAX / 4;   // more than any rollout makes

// C(s + r, s): the length of the longest chain of blocks that s checkpoints, the one at its start included, reverse
// while no block is advanced more than r times.
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

// To reverse `length` blocks from a checkpoint with `free` other checkpoints: the number of blocks to advance before
// the next one, in 1 .. length - 1. Needs length >= 2 and free >= 1.
int64_t cq_schedule_split(int64_t length, int64_t free) {
  const int64_t s = free + 1, r = repetitions(length, s);
  int64_t split = length - reach(s - 1, r);
  if (split < reach(s, r - 2)) split = reach(s, r - 2);
  if (split < 1) split = 1;
  return split < length ? split : length - 1;
}

// The number of blocks that are advanced while `length` blocks are reversed from a checkpoint with `free` other ones.
// Passes that record a block are not counted.
int64_t cq_schedule_cost(int64_t length, int64_t free) {
  if (free == 0) return length * (length - 1) / 2;
  const int64_t s = free + 1, r = repetitions(length, s);
  return r * length - reach(s + 1, r - 1);
}
