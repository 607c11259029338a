// Whole rollouts over dual numbers: the kernels of the CPU once more with real = dual, marched by the
// product's own scenes for a hundred engine steps, against the gradients that the float64 engine returns for
// every field, signals and forces.
#include "rollout_dual.h"

int main(void) {
  // what an emulated GPU gives for each field is compared with the CPU by tests/cuda/parity.c
  const bool all = test_device() == CQ_DEVICE_CUDA;
  const int many = test_of(40, 12);
  plane::control_steps = space::control_steps = test_of(50, 20);
  plane::check_scene(12, all);
  plane::check_scene(many, true);    // on the CPU several ranges of particles share grid columns
  space::check_scene(5, all);
  plane::check_scene(10, all, test_scene_viscous);
  space::check_scene(4, all, test_scene_viscous);
  plane::check_scene(10, all, test_scene_rubber);
  space::check_scene(4, all, test_scene_rubber);
  plane::check_scene(10, all, test_scene_mixed);
  space::check_scene(4, all, test_scene_mixed);
  plane::check_scene(10, all, test_scene_plastic);
  space::check_scene(4, all, test_scene_plastic);
  plane::check_scene(12, all, test_scene_add_drives);
  plane::check_scene(many, true, test_scene_add_drives);
  space::check_scene(5, all, test_scene_add_drives);
  plane::check_movers();
  space::check_movers();
  plane::check_shakers();
  space::check_shakers();
  if (test_device() != CQ_DEVICE_CUDA) {
    plane::check_scene(10, false, test_scene_liquid);
    space::check_scene(4, false, test_scene_liquid);
    plane::check_scene(10, false, test_scene_averaged);
    plane::check_scene(many, true, test_scene_averaged);
    space::check_scene(4, false, test_scene_averaged);
  }
  return dual_report();
}
