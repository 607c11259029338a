// Whole rollouts of implicit steps over dual numbers, as rollout_dual.cc has those of explicit ones: steps of ten and
// more times the length, converged to rounding, for the slopes are those of the exact solution.
#include "rollout_dual.h"

// steps of backward Euler
static void implicit(test_scene *s) {
  test_scene_implicit(s);
  // Normals of three walls in a plane would leave one of them without a say, at the kink of letting go.
  for (int i = 0; i < 3; i++) s->walls[2].point[i] += (0.13 + 0.11 * i) * s->def.dx;
  // and room beside the ball to slide on the floor
  if (s->def.dim == 2) s->walls[2].point[0] -= 1.5 * s->def.dx;
}
static void viscous(test_scene *s) {
  test_scene_viscous(s);
  implicit(s);
}
static void rubber(test_scene *s) {
  test_scene_rubber(s);
  implicit(s);
}
static void mixed(test_scene *s) {
  test_scene_mixed(s);
  implicit(s);
  s->walls[0].kind = CQ_CONTACT_HOLD;
}
static void plastic(test_scene *s) {
  test_scene_plastic(s);
  implicit(s);
}
static void driven(test_scene *s) {
  test_scene_add_drives(s);
  implicit(s);
}

// pressure at the end of a step
static void followed(test_scene *s) {
  driven(s);
  s->def.integrator.pressure = 1;
}

// cables whose pull is that of the end of a step: stiff ones, and without friction
static void cabled(test_scene *s) {
  driven(s);
  s->def.integrator.cables = 1;
  for (int c = 0; c < 4; c++) {
    s->cable_friction[c] = 0;
    s->cable_stiffness[c] *= 20;
  }
}

// dilatations that are averaged, within the stress of a step as well; and with a pressure at its end
static void averaged(test_scene *s) {
  test_scene_averaged(s);
  implicit(s);
}
static void averaged_driven(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0}, {CQ_MATERIAL_YEOH, 0, 0, 1, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 0, 0}, {CQ_MATERIAL_MOONEY_RIVLIN, 0, 0, 0, 0}};
  static const double averaging[4] = {1, 1, 0.5, 0};
  test_scene_take(s, kinds);
  s->def.f_bar = averaging;
  driven(s);
  s->def.integrator.pressure = 1;
}

// equilibrium, and that under a pressure that follows
static void still(test_scene *s) {
  implicit(s);
  s->walls[0].kind = CQ_CONTACT_STICKY;
  s->def.integrator.statics = 1;
}
static void pressed(test_scene *s) {
  driven(s);
  s->def.integrator.statics = 1;
}
static void averaged_pressed(test_scene *s) {
  averaged_driven(s);
  s->def.integrator.statics = 1;
}

// Bodies under a gravity that would take them two cells in a step, were there no floor: starts are halved. Much stiffer
// ones have light nodes whose slopes conjugate gradients over dual numbers do not bring to rounding.
static int32_t floor_kind;
static void heavy(test_scene *s) {
  implicit(s);
  s->def.gravity[1] = -600;
  for (int64_t p = 0; p < s->n; p++) s->young[p] *= 30;
  s->walls[0].kind = floor_kind;
  if (floor_kind == CQ_CONTACT_SEPARATE) s->walls[2].kind = CQ_CONTACT_SEPARATE;
}

// a ball that moves and a floor that does not, on the same nodes
static int32_t ball_kind;
static void paired(test_scene *s) {
  implicit(s);
  s->walls[0].kind = floor_kind;
  s->walls[2].kind = ball_kind;
  s->walls[2].moves = 1;
  for (int i = 0; i < 3; i++) s->walls[2].velocity[i] = 0.1 - 0.07 * i;
}

int main(void) {
  plane::control_steps = space::control_steps = 4;
  plane::check_scene(5, false, implicit);
  plane::check_scene(5, false, driven);
  void (*const scenes[])(test_scene *) = {viscous, rubber, mixed, plastic, followed, cabled, averaged,
                                          averaged_driven};
  for (void (*scene)(test_scene *) : scenes) {
    plane::check_scene(6, true, scene);
    space::check_scene(3, true, scene);
  }
  space::check_scene(3, true, implicit);
  space::check_scene(4, true, driven);
  plane::control_steps = space::control_steps = 1;
  for (floor_kind = CQ_CONTACT_STICKY; floor_kind <= CQ_CONTACT_HOLD; floor_kind++) {
    plane::check_scene(6, true, heavy);
    space::check_scene(3, true, heavy);
  }
  plane::control_steps = space::control_steps = 2;
  const int32_t pairs[][2] = {{CQ_CONTACT_STICKY, CQ_CONTACT_SLIP}, {CQ_CONTACT_FRICTION, CQ_CONTACT_SLIP},
                              {CQ_CONTACT_SEPARATE, CQ_CONTACT_FRICTION}, {CQ_CONTACT_HOLD, CQ_CONTACT_SEPARATE}};
  for (const auto &pair : pairs) {
    floor_kind = pair[0];
    ball_kind = pair[1];
    plane::check_scene(4, true, paired);
    space::check_scene(3, true, paired);
  }
  plane::control_steps = space::control_steps = 1;
  plane::check_scene(6, false, averaged);
  plane::check_scene(6, true, pressed);
  plane::check_scene(6, true, averaged_pressed);
  plane::check_scene(6, true, still);
  return dual_report();
}
