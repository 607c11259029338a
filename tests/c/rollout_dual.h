// rollout_dual: whole rollouts against those over dual numbers, in 2D and in 3D (over_dual/rollout.cc).
#ifndef TEST_ROLLOUT_DUAL_H
#define TEST_ROLLOUT_DUAL_H

#include "scene.h"

// check_scene: each field and each wall by itself, or all of them together; change: of the scene
#define TEST_ROLLOUTS_DUAL                                                         \
  extern int control_steps;                                                        \
  extern uint64_t unwanted;                                                        \
  void check_scene(int side, bool together, void (*change)(test_scene *) = NULL);  \
  void check_movers(void);                                                         \
  void check_shakers(void);

namespace plane { TEST_ROLLOUTS_DUAL }
namespace space { TEST_ROLLOUTS_DUAL }

// prints the checks that were made, for main to return
int dual_report(void);

#endif
