// Whole rollouts over dual numbers: the kernels of the CPU once more with real = dual, marched by the product's own scenes
// for a hundred engine steps, against the gradients that the float64 engine returns for every field, signals and forces.
extern "C" {
#include "api/world.h"
#include "cpu/kernels.h"
}

#include "check.h"
#include "dual_lame.h"
#include "scene.h"
#include <vector>

#define CQ_REAL_DUAL
#define CQ_REAL_BYTES 16
#define CQ_SIMD 1

#define CQ_DIM 2
namespace plane {
#include "rollout_dual.inl"
}
#undef CQ_DIM
#undef CQ_LANES_H
#undef CQ_ROWS_H
#undef CQ_REAL_H
#define CQ_DIM 3
namespace space {
#include "rollout_dual.inl"
}

int main(void) {
  plane::check_scene(24, false);
  plane::check_scene(40, true);    // so many particles that several ranges of them share grid columns
  space::check_scene(7, false);
  plane::check_scene(24, false, true);
  plane::check_scene(40, true, true);
  space::check_scene(7, false, true);
  plane::check_movers();
  space::check_movers();
  return check_report();
}
