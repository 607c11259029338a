// Whole rollouts over dual numbers: the kernels of the CPU once more with real = dual, marched by the
// product's own scenes for a hundred engine steps, against the gradients that the float64 engine returns for
// every field, signals and forces.
#include "rollout_dual.h"

int main(void) {
  plane::check_scene(24, false);
  plane::check_scene(40, true);    // so many particles that several ranges of them share grid columns
  space::check_scene(7, false);
  plane::check_scene(16, false, test_scene_viscous);
  space::check_scene(6, false, test_scene_viscous);
  plane::check_scene(12, false, test_scene_rubber);
  space::check_scene(4, false, test_scene_rubber);
  plane::check_scene(10, false, test_scene_mixed);
  space::check_scene(4, false, test_scene_mixed);
  plane::check_scene(16, false, test_scene_plastic);
  space::check_scene(6, false, test_scene_plastic);
  plane::check_scene(24, false, test_scene_add_drives);
  plane::check_scene(40, true, test_scene_add_drives);
  space::check_scene(7, false, test_scene_add_drives);
  plane::check_movers();
  space::check_movers();
  plane::check_shakers();
  space::check_shakers();
  if (test_device() != CQ_DEVICE_CUDA) {
    plane::check_scene(16, false, test_scene_liquid);
    space::check_scene(6, false, test_scene_liquid);
    plane::check_scene(16, false, test_scene_averaged);
    plane::check_scene(40, true, test_scene_averaged);
    space::check_scene(6, false, test_scene_averaged);
  }
  return check_report();
}
