// Whole rollouts of total Lagrangian steps over dual numbers, as rollout_dual.cc has those on the spatial grid.
#include "rollout_dual.h"
extern "C" {
#include "backend/backend.h"
}

// all of one law, which has loops of its own
static void one(test_scene *s) {
  test_scene_lattice(s);
  for (int64_t p = 0; p < s->n; p++) s->material[p] = 0;
}
static void neo_hookean(test_scene *s) { one(s); }
static void corotated(test_scene *s) {
  one(s);
  s->materials[0].kind = CQ_MATERIAL_COROTATED;
  s->materials[0].incompressible = 2;
}
static void linear(test_scene *s) {
  one(s);
  s->materials[0].kind = CQ_MATERIAL_LINEAR;
}

static void viscous(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_YEOH, 0, 0, 1, 0}, {CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 1, 0}, {CQ_MATERIAL_LINEAR, 0, 0, 1, 0}};
  test_scene_take(s, kinds);
  test_scene_lattice(s);
}
// A viscosity beside a law that has loops of its own: of every other particle along the last axis, and of the others
// too if that is asked.
static void take_viscous(test_scene *s, int32_t kind, int32_t incompressible, int32_t others) {
  const cq_material with = {kind, 0, incompressible, 1, 0}, beside = {kind, 0, incompressible, others, 0},
                    kinds[4] = {with, beside, with, beside};
  test_scene_take(s, kinds);
  test_scene_reference(s);
  for (int64_t p = 0; p < s->n; p++) s->material[p] = (int32_t)(p & 1);
}
static void viscous_anywhere(test_scene *s) { take_viscous(s, CQ_MATERIAL_COROTATED, 2, 1); }
static void partly_viscous(test_scene *s) {
  take_viscous(s, CQ_MATERIAL_NEO_HOOKEAN, 2, 0);
  test_scene_lattice(s);
}
static void viscous_neo_hookean(test_scene *s) {
  take_viscous(s, CQ_MATERIAL_NEO_HOOKEAN, 0, 1);
  one(s);
}
static void viscous_corotated(test_scene *s) {
  take_viscous(s, CQ_MATERIAL_COROTATED, 2, 1);
  one(s);
}
static void viscous_linear(test_scene *s) {
  take_viscous(s, CQ_MATERIAL_LINEAR, 0, 1);
  one(s);
}

static void rubber(test_scene *s) {
  test_scene_rubber(s);
  test_scene_lattice(s);
}
static void mixed(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_SAINT_VENANT_KIRCHHOFF, 0, 2, 0, 0},
                                       {CQ_MATERIAL_OGDEN, 0, 0, 1, 0},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
  test_scene_reference(s);
}
static void driven(test_scene *s) {
  test_scene_add_drives(s);
  test_scene_reference(s);
}
static void driven_lattice(test_scene *s) {
  one(s);
  test_scene_add_drives(s);
}

static void both_kept(test_scene *s) {
  test_scene_both(s);
  test_scene_keep(s);
}

static void implicit_lattice(test_scene *s) {
  test_scene_lattice(s);
  test_scene_implicit(s);
}
static void implicit_mixed(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_SAINT_VENANT_KIRCHHOFF, 0, 2, 0, 0},
                                       {CQ_MATERIAL_OGDEN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
  test_scene_reference(s);
  test_scene_implicit(s);
}
static void midpoint(test_scene *s) {
  implicit_mixed(s);
  s->def.integrator.midpoint = 1;
}
// laws with a viscosity and without, on lattices and anywhere
static void implicit_viscous(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_YEOH, 0, 0, 1, 0}, {CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 1, 0}, {CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 1, 0}};
  test_scene_take(s, kinds);
  test_scene_reference(s);
  test_scene_implicit(s);
}
static void midpoint_viscous(test_scene *s) {
  implicit_viscous(s);
  s->def.integrator.midpoint = 1;
}
static void implicit_viscous_lattice(test_scene *s) {
  viscous_neo_hookean(s);
  test_scene_implicit(s);
}
// cables whose pull is that of the end of a step
static void cabled(test_scene *s) {
  implicit_mixed(s);
  test_scene_add_drives(s);
  s->def.surface_count = 0;
  s->def.integrator.cables = 1;
  for (int c = 0; c < 4; c++) s->cable_friction[c] = 0;
}
static void settled(test_scene *s) {
  implicit_viscous(s);
  s->walls[0].kind = CQ_CONTACT_STICKY;
  s->def.integrator.statics = 1;
}

int main(void) {
  plane::control_steps = space::control_steps = 50;
  plane::check_scene(12, false, test_scene_reference);
  space::check_scene(5, false, test_scene_reference);
  plane::check_scene(12, false, test_scene_lattice);
  space::check_scene(6, false, test_scene_lattice);
  plane::check_scene(40, true, test_scene_lattice);   // several ranges
  plane::check_scene(12, false, viscous);
  space::check_scene(4, false, viscous);
  plane::check_scene(12, false, viscous_anywhere);
  space::check_scene(4, false, viscous_anywhere);
  plane::check_scene(12, false, rubber);
  space::check_scene(4, false, rubber);
  plane::check_scene(10, false, mixed);
  space::check_scene(4, false, mixed);
  plane::check_scene(12, false, test_scene_colliding);
  space::check_scene(6, false, test_scene_colliding);
  plane::check_scene(12, false, test_scene_rubbing);
  space::check_scene(6, false, test_scene_rubbing);
  plane::check_scene(12, false, driven);
  space::check_scene(5, false, driven);
  plane::check_scene(12, false, test_scene_both);
  space::check_scene(5, false, test_scene_both);
  plane::check_scene(40, true, test_scene_both);
  plane::check_scene(12, false, both_kept);
  space::check_scene(5, false, both_kept);
  // without these the loops of a lattice go back too
  plane::unwanted = space::unwanted = cq_bit(CQ_FIELD_POSITION);
  void (*const laws[])(test_scene *) = {neo_hookean,         corotated,         linear,         rubber, driven_lattice,
                                        viscous_neo_hookean, viscous_corotated, viscous_linear, partly_viscous};
  for (auto law : laws) {
    plane::check_scene(12, false, law);
    space::check_scene(6, false, law);
  }
  plane::check_scene(40, true, neo_hookean);
  plane::unwanted = space::unwanted = 0;
  plane::control_steps = 4;
  space::control_steps = 2;
  plane::check_scene(8, false, implicit_lattice);
  plane::check_scene(8, false, implicit_mixed);
  plane::check_scene(8, false, midpoint);
  plane::check_scene(8, false, cabled);
  space::check_scene(3, false, implicit_mixed);
  space::check_scene(3, false, midpoint);
  plane::check_scene(8, false, implicit_viscous);
  plane::check_scene(8, false, midpoint_viscous);
  space::check_scene(3, false, implicit_viscous);
  space::check_scene(3, false, midpoint_viscous);
  plane::unwanted = space::unwanted = cq_bit(CQ_FIELD_POSITION);
  plane::check_scene(8, false, implicit_viscous_lattice);
  space::control_steps = 8;   // until it is on the wall
  space::check_scene(4, false, implicit_viscous_lattice);
  space::control_steps = 2;
  plane::unwanted = space::unwanted = 0;
  plane::control_steps = 1;
  plane::check_scene(6, true, settled);
  return dual_report();
}
