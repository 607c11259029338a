// Whole rollouts over dual numbers: the kernels of the CPU once more with real = dual, marched by the
// product's own scenes for a hundred engine steps, against the gradients that the float64 engine returns for
// every field, signals and forces.
#include "rollout_dual.h"

// scenes whose particles keep unresolved motion
static void kept_viscous(test_scene *s) { test_scene_viscous(s), test_scene_keep(s); }
static void kept_mixed(test_scene *s) { test_scene_mixed(s), test_scene_keep(s); }
static void kept_plastic(test_scene *s) { test_scene_plastic(s), test_scene_keep(s); }
static void kept_liquid(test_scene *s) { test_scene_liquid(s), test_scene_keep(s); }
static void kept_averaged(test_scene *s) { test_scene_averaged(s), test_scene_keep(s); }
static void kept_drives(test_scene *s) { test_scene_add_drives(s), test_scene_keep(s); }

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
    plane::check_scene(12, false, test_scene_keep);
    space::check_scene(5, false, test_scene_keep);
    plane::check_scene(many, true, kept_drives);
    space::check_scene(5, false, kept_drives);
    void (*const kept[])(test_scene *) = {kept_viscous, kept_mixed, kept_plastic, kept_liquid, kept_averaged};
    for (auto change : kept) {
      // of 10 x 10 grains one comes to the tip of its cone: its stretches are equal, where dual numbers fail
      plane::check_scene(9, false, change);
      space::check_scene(4, true, change);
    }
  }
  return dual_report();
}
