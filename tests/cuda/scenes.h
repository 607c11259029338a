// scenes: what parity.c makes of the scene of the C tests.
#ifndef TEST_CUDA_SCENES_H
#define TEST_CUDA_SCENES_H

#include "../c/rollout.h"

static inline void one_material(test_scene *s, int32_t kind, int32_t incompressible) {
  s->def.material_count = 1;
  s->def.material = NULL;
  s->materials[0] = (cq_material){.kind = kind, .incompressible = incompressible};
}
static inline void neo_hookean(test_scene *s) { one_material(s, CQ_MATERIAL_NEO_HOOKEAN, 0); }
static inline void corotated(test_scene *s) { one_material(s, CQ_MATERIAL_COROTATED, 0); }
static inline void linear(test_scene *s) { one_material(s, CQ_MATERIAL_LINEAR, 0); }
static inline void incompressible(test_scene *s) {
  for (int k = 0; k < 4; k++) s->materials[k].incompressible = 2 * k + 2;
}

static inline void fast(test_scene *s);
static inline void fast_viscous(test_scene *s) {
  test_scene_viscous(s);
  fast(s);
}
static inline void damped(test_scene *s) { s->def.damping = 4; }

static inline void bare(test_scene *s) {
  s->def.wall_count = 0;
  s->def.actuator_count = 0;
  s->def.actuation_count = 0;
  s->def.force_count = 0;
}

static inline void lonely(test_scene *s) {
  s->def.force_count = 0;
  s->def.material_count = 1;
}

// Walls of all shapes and laws: the block lies in a box, on a bumpy ground, against a ball that moves.
static inline void all_walls(test_scene *s) {
  static double height[7 * 7];
  const double dx = s->def.dx;
  for (int k = 0; k < 49; k++) height[k] = (4.2 + 0.3 * sin(1.7 * k)) * dx;
  for (int w = 0; w < 4; w++) cq_wall_init(&s->walls[w]);
  cq_wall *box = &s->walls[0], *ground = &s->walls[1], *ball = &s->walls[2], *belt = &s->walls[3];
  box->shape = CQ_WALL_BOX;
  box->kind = CQ_CONTACT_STICKY;
  box->hollow = 1;
  for (int i = 0; i < 3; i++) {
    box->lower[i] = 5.2 * dx;
    box->upper[i] = s->def.cells[i] * dx - 3 * dx;
  }
  box->lower[1] = 3 * dx;
  ground->shape = CQ_WALL_HEIGHT_FIELD;
  ground->kind = CQ_CONTACT_FRICTION;
  ground->friction = 0.4;
  ground->height = height;
  ground->height_count[0] = 7;
  ground->height_count[1] = s->def.dim == 3 ? 7 : 1;
  for (int i = 0; i < 2; i++) ground->height_spacing[i] = 4 * dx;
  ball->shape = CQ_WALL_SPHERE;
  ball->kind = CQ_CONTACT_SLIP;
  ball->moves = 1;
  ball->radius = 3 * dx;
  for (int i = 0; i < 3; i++) ball->point[i] = 10 * dx;
  ball->velocity[0] = -0.4;
  belt->kind = CQ_CONTACT_SEPARATE;
  belt->point[0] = 5.6 * dx;
  belt->normal[0] = 1;
  belt->normal[1] = 0;
  belt->velocity[1] = 0.2;
  s->def.wall_count = 4;
}

// the same in a box that holds what presses against it, on a ground that moves
static inline void moving_walls(test_scene *s) {
  all_walls(s);
  s->walls[0].kind = CQ_CONTACT_HOLD;
  s->walls[1].moves = 1;
  s->walls[1].velocity[0] = 0.3;
  s->walls[1].velocity[2] = 0.2;
}

static inline void mover_and_pins(test_scene *s) {
  test_scene_add_mover(s);
  test_scene_add_pin_groups(s);
}

// so fast that particles leave their tile in the middle of a control step, which nobody foresees in the first one
static inline void fast(test_scene *s) {
  s->def.dt = 6e-3;
  for (int i = 0; i < 3; i++) s->def.cells[i] = 64;
  for (int64_t p = 0; p < s->n; p++)
    for (int i = 0; i < s->def.dim; i++) s->velocity[p * s->def.dim + i] += i == 1 ? 1 : 9 - 3 * (double)i;
}

// so fast along the floor, on which it presses
static inline void sliding(test_scene *s) {
  test_scene_add_mover(s);
  test_scene_add_pins(s);
  s->def.dt = 6e-3;
  for (int i = 0; i < 3; i++) s->def.cells[i] = 64;
  for (int64_t p = 0; p < s->n; p++) s->velocity[p * s->def.dim] += 9;
}

static inline void fast_cables(test_scene *s) {
  fast(s);
  test_scene_add_drives(s);
}

// two blocks far from each other
static inline void apart(test_scene *s) {
  for (int i = 0; i < 3; i++) s->def.cells[i] = 60;
  for (int64_t p = s->n / 2; p < s->n; p++)
    for (int i = 0; i < s->def.dim; i++) s->position[p * s->def.dim + i] += (20 + 3 * i) * s->def.dx;
}

// so far from each other that the window between them takes one block several turns to sum up
static inline void corners(test_scene *s) {
  bare(s);   // the map of walls would be as large
  for (int i = 0; i < 2; i++) s->def.cells[i] = 6144;
  for (int64_t p = s->n / 2; p < s->n; p++)
    for (int i = 0; i < 2; i++) s->position[p * 2 + i] += 6100 * s->def.dx;
}

// so close that a tile takes several rounds
static inline void crowded(test_scene *s) {
  const double middle[3] = {7 * s->def.dx, 6.5 * s->def.dx, 7 * s->def.dx};
  const double shrink = s->def.dim == 3 ? 0.5 : 0.3, volume = pow(shrink, s->def.dim);
  for (int64_t p = 0; p < s->n; p++) {
    for (int i = 0; i < s->def.dim; i++) {
      double *x = &s->position[p * s->def.dim + i];
      *x = middle[i] + shrink * (*x - middle[i]);
    }
    s->volume[p] *= volume;
    s->mass[p] *= volume;
  }
}

// total Lagrangian steps
static inline void reference_walls(test_scene *s) {
  all_walls(s);
  test_scene_lattice(s);
}
static inline void reference_moving(test_scene *s) {
  moving_walls(s);
  test_scene_reference(s);
}
static inline void reference_pins(test_scene *s) {
  mover_and_pins(s);
  test_scene_lattice(s);
}
static inline void reference_viscous(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_YEOH, 0, 0, 1, 0},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 1, 0},
                                       {CQ_MATERIAL_LINEAR, 0, 0, 1, 0}};
  test_scene_take(s, kinds);
  test_scene_lattice(s);
}
static inline void reference_drives(test_scene *s) {
  test_scene_add_drives(s);
  test_scene_reference(s);
}

#endif
