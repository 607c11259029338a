// A small scene with everything in it, for the C tests: two materials and more, friction and other walls, actuators
// with several weights for a particle, forces, pins if wanted. Deterministic.
#ifndef TEST_SCENE_H
#define TEST_SCENE_H

#include "cq.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  cq_world_def def;
  int64_t n;
  double *position, *velocity, *affine, *deformation, *volume, *mass, *young, *poisson;
  int32_t *material, *entry_particle, *entry_actuator, *force_particle;
  double *entry_weight, *direction;
  double *constant[CQ_FIELD_COUNT];   // of materials that test_scene_take gave
  cq_material materials[4];
  cq_wall walls[4];
  int32_t pins[2], pin_group[2];
  cq_chamber chamber;
  int64_t chamber_start[5];
  int32_t chamber_particle[8];
  double chamber_weight[8];
  cq_cable cables[4];
  int64_t cable_start[4][6];
  int32_t cable_particle[4][8], *surface_particle, *surface_actuator;
  double cable_weight[4][8], cable_anchor[4][15], cable_stiffness[4], cable_length[4], cable_friction[4], *surface_area;
} test_scene;

// one variable for all objects of a program
#define TEST_SHARED __attribute__((weak))

TEST_SHARED int test_cables;      // of the scene that was made last
TEST_SHARED uint64_t test_seed = 88172645463325252u;
static inline double test_random(void) {   // xorshift, uniform in [-1, 1]
  test_seed ^= test_seed << 13;
  test_seed ^= test_seed >> 7;
  test_seed ^= test_seed << 17;
  return (double)(test_seed >> 11) * (2.0 / 9007199254740992.0) - 1;
}

// The constants that the scene made last has: test_scene_take adds those of its materials.
TEST_SHARED uint64_t test_constants;

static inline double *test_array(int64_t count) { return (double *)calloc((size_t)count + 1, sizeof(double)); }

// the tests run once more with CQLUA_TEST_DEVICE=cuda (tests/run.lua)
static inline int32_t test_device(void) {
  const char *name = getenv("CQLUA_TEST_DEVICE");
  return name && !strcmp(name, "cuda") ? CQ_DEVICE_CUDA : CQ_DEVICE_CPU;
}
// of a size or a number of times: an emulated GPU is slow
static inline int test_of(int cpu, int cuda) { return test_device() == CQ_DEVICE_CUDA ? cuda : cpu; }

// A jittered block of side^dim particles, two an axis in a cell, above a floor with friction, beside a slope.
static inline void test_scene_make(test_scene *s, int dim, int side, int precision, int materials) {
  memset(s, 0, sizeof *s);
  test_cables = 0;
  test_seed = 88172645463325252u;
  test_constants = (uint64_t)1 << CQ_FIELD_YOUNG | (uint64_t)1 << CQ_FIELD_POISSON;
  cq_world_def_init(&s->def);
  cq_world_def *d = &s->def;
  const int64_t n = dim == 3 ? (int64_t)side * side * side : (int64_t)side * side;
  const int dd = dim * dim, cells = side / 2 + 14;
  const double dx = 1.0 / 32, h = dx / 2;
  s->n = n;
  d->dim = dim;
  d->precision = precision;
  d->device = test_device();
  d->dx = dx;
  d->dt = 2e-3;
  d->substeps = 2;
  for (int i = 0; i < 3; i++) d->cells[i] = cells;
  d->gravity[1] = -3;
  d->gravity[0] = 0.3;
  s->position = test_array(n * dim);
  s->velocity = test_array(n * dim);
  s->affine = test_array(n * dd);
  s->deformation = test_array(n * dd);
  s->volume = test_array(n);
  s->mass = test_array(n);
  s->young = test_array(n);
  s->poisson = test_array(n);
  s->material = (int32_t *)calloc((size_t)n, sizeof(int32_t));
  for (int64_t p = 0; p < n; p++) {
    int64_t k = p;
    for (int i = dim - 1; i >= 0; i--, k /= side) {
      const double start = i == 1 ? 4.6 * dx : 5 * dx;
      s->position[p * dim + i] = start + ((double)(k % side) + 0.5 + 0.3 * test_random()) * h;
      s->velocity[p * dim + i] = (i == 1 ? -1.2 : i == 0 ? 0.6 : 0.25) + 0.05 * test_random();
      for (int j = 0; j < dim; j++) {
        s->affine[p * dd + i * dim + j] = 0.3 * test_random();
        s->deformation[p * dd + i * dim + j] = (i == j) + 0.05 * test_random();
      }
    }
    s->volume[p] = pow(h, dim) * (1 + 0.1 * test_random());
    s->mass[p] = s->volume[p] * (1 + 0.3 * test_random());
    s->young[p] = 12 + 4 * test_random();
    s->poisson[p] = 0.3 + 0.05 * test_random();
    s->material[p] = (int32_t)(p % materials);
  }
  static const cq_material kinds[4] = {{CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 2, 0, 0},
                                       {CQ_MATERIAL_LINEAR, 0, 0, 0, 0},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 4, 0, 0}};
  memcpy(s->materials, kinds, sizeof kinds);
  d->material_count = materials;
  d->materials = s->materials;
  d->material = s->material;
  d->particle_count = n;
  d->position = s->position;
  d->velocity = s->velocity;
  d->affine = s->affine;
  d->deformation = s->deformation;
  d->volume = s->volume;
  d->mass = s->mass;
  d->young = s->young;
  d->poisson = s->poisson;

  for (int w = 0; w < 4; w++) {
    cq_wall_init(&s->walls[w]);
    s->walls[w].friction = 0.1;
  }
  s->walls[0].kind = CQ_CONTACT_FRICTION;   // floor that runs under the block
  s->walls[0].point[1] = 4 * dx;
  s->walls[0].friction = 0.3;
  s->walls[0].velocity[0] = 0.1;
  s->walls[1].kind = CQ_CONTACT_SEPARATE;   // slope to the right
  s->walls[1].normal[0] = -0.8;
  s->walls[1].normal[1] = 0.6;
  s->walls[1].point[0] = (5.5 + side / 2) * dx;
  s->walls[1].point[1] = 5 * dx;
  s->walls[2].kind = CQ_CONTACT_SLIP;       // ball below the left corner
  s->walls[2].shape = CQ_WALL_SPHERE;
  s->walls[2].radius = 2.5 * dx;
  s->walls[2].point[0] = 5 * dx;
  s->walls[2].point[1] = 3 * dx;
  s->walls[2].point[2] = 6 * dx;
  d->wall_count = 3;
  d->walls = s->walls;

  // three actuators: along an axis, isotropic, sheared; every second particle takes two of them
  d->actuator_count = 3;
  s->direction = test_array(3 * dd);
  s->direction[dim + 1] = 1;
  for (int i = 0; i < dim; i++) s->direction[dd + i * dim + i] = 0.7;
  s->direction[2 * dd + 1] = s->direction[2 * dd + dim] = 0.5;
  s->entry_particle = (int32_t *)calloc((size_t)n * 2, sizeof(int32_t));
  s->entry_actuator = (int32_t *)calloc((size_t)n * 2, sizeof(int32_t));
  s->entry_weight = test_array(n * 2);
  int64_t entries = 0;
  for (int64_t p = 0; p < n; p += 2)
    for (int k = 0; k < 2; k++, entries++) {
      s->entry_particle[entries] = (int32_t)p;
      s->entry_actuator[entries] = (int32_t)((p / 2 + k) % 3);
      s->entry_weight[entries] = 0.8 + 0.4 * test_random();
    }
  // every fifth particle that is actuated has one actuator twice
  for (int64_t k = 0; k < entries; k += 10) s->entry_actuator[k + 1] = s->entry_actuator[k];
  d->actuation_count = entries;
  d->actuation_particle = s->entry_particle;
  d->actuation_actuator = s->entry_actuator;
  d->actuation_weight = s->entry_weight;
  d->actuator_direction = s->direction;

  d->force_count = 5;
  s->force_particle = (int32_t *)calloc(5, sizeof(int32_t));
  for (int k = 0; k < 5; k++) s->force_particle[k] = (int32_t)(k * (n / 5) + 1);
  d->force_particle = s->force_particle;
}

// A usual value of a constant in this scene, where Young's modulus is 12 and engine steps take 1e-3.
static inline double test_usual(int32_t field) {
  switch (field) {
    case CQ_FIELD_BULK: return 10;
    case CQ_FIELD_EXPONENT: return 5;
    case CQ_FIELD_TENSION: return 0.1;
    case CQ_FIELD_VISCOSITY: return 0.03;
    case CQ_FIELD_YIELD_STRESS: return 0.4;
    case CQ_FIELD_HARDENING: return 2;
    // it flows, but is not pulled apart: there stretches are equal, where numbers with a
    // slope have none (rollout_dual.cc)
    case CQ_FIELD_FRICTION_ANGLE: return 0.1;
    case CQ_FIELD_COHESION: return 0.4;
    case CQ_FIELD_SNOW_HARDENING: return 3;
    case CQ_FIELD_CRITICAL_COMPRESSION: return 0.03;
    case CQ_FIELD_CRITICAL_STRETCH: return 0.02;
    case CQ_FIELD_RELAXATION_TIME_1: return 0.005;
    case CQ_FIELD_RELAXATION_TIME_2: return 0.02;
    case CQ_FIELD_RELAXATION_TIME_3: return 0.1;
    case CQ_FIELD_SHEAR: return 4;
    case CQ_FIELD_C10: return 1.8;
    case CQ_FIELD_C20: return -0.1;
    case CQ_FIELD_C30: return 0.2;
    case CQ_FIELD_MU_1: case CQ_FIELD_K1: return 3;
    case CQ_FIELD_MU_2: return 0.1;
    case CQ_FIELD_MU_3: return -0.4;
    case CQ_FIELD_ALPHA_1: return 1.7;
    case CQ_FIELD_ALPHA_2: return 4;
    case CQ_FIELD_ALPHA_3: return -2;
    default: return 0.5;
  }
}

// Four other materials, of the particles in turn, with what they need of constants.
static inline void test_scene_take(test_scene *s, const cq_material materials[4]) {
  memcpy(s->materials, materials, sizeof s->materials);
  s->def.material_count = 4;
  test_constants = 0;
  for (int64_t p = 0; p < s->n; p++) s->material[p] = (int32_t)(p % 4);
  for (int k = 0; k < 4; k++) {
    int32_t fields[16];
    const int32_t count = cq_material_fields(&materials[k], fields, 16);
    for (int32_t i = 0; i < count; i++) {
      const int32_t f = fields[i];
      test_constants |= (uint64_t)1 << f;
      if (s->def.value[f]) continue;
      const int64_t numbers = s->n * (cq_field_describe(f)->rank ? s->def.dim : 1);
      s->def.value[f] = s->constant[f] = test_array(numbers);
      for (int64_t p = 0; p < numbers; p++) s->constant[f][p] = test_usual(f) * (1 + 0.2 * test_random());
    }
  }
}

// a fluid, and solids with what may stand beside a law
static inline void test_scene_viscous(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_FLUID, 0, 0, 1, 0}, {CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 1},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 1, 3}, {CQ_MATERIAL_LINEAR, 0, 0, 1, 0}};
  test_scene_take(s, kinds);
}

// two liquids whose volumes are averaged, and solids
static inline void test_scene_liquid(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_FLUID, 0, 0, 1, 0}, {CQ_MATERIAL_FLUID, 0, 0, 0, 0},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0}, {CQ_MATERIAL_FLUID, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
  s->def.pressure_smoothing = 0.4 / s->def.dt;
}

// solids whose dilatation is averaged, all of it and a part, and a fluid beside them
static inline void test_scene_averaged(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_NEO_HOOKEAN, 0, 2, 0, 0}, {CQ_MATERIAL_YEOH, 0, 0, 1, 0},
                                       {CQ_MATERIAL_COROTATED, 0, 0, 0, 0}, {CQ_MATERIAL_FLUID, 0, 0, 1, 0}};
  static const double averaging[4] = {1, 1, 0.5, 0};
  test_scene_take(s, kinds);
  s->def.f_bar = averaging;
}

// Particles keep what the grid does not resolve of their motion, whatever else a scene has.
static inline void test_scene_keep(test_scene *s) { s->def.residual_decay = 60; }

// hyperelastic laws, and some of them beside fused ones and with what may stand beside them
static inline void test_scene_rubber(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_MOONEY_RIVLIN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_YEOH, 0, 0, 0, 0},
                                       {CQ_MATERIAL_OGDEN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
}
static inline void test_scene_mixed(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_SAINT_VENANT_KIRCHHOFF, 0, 2, 0, 0},
                                       {CQ_MATERIAL_OGDEN, 0, 0, 1, 1},
                                       {CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 0, 0},
                                       {CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
}

// solids that flow, and a fluid without viscosity
static inline void test_scene_plastic(test_scene *s) {
  static const cq_material kinds[4] = {{CQ_MATERIAL_VON_MISES, 0, 2, 0, 0}, {CQ_MATERIAL_DRUCKER_PRAGER, 0, 0, 1, 0},
                                       {CQ_MATERIAL_SNOW, 0, 0, 0, 0}, {CQ_MATERIAL_FLUID, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
}

// a fourth wall: a ball that moves and rubs against the left side
static inline void test_scene_add_mover(test_scene *s) {
  cq_wall *w = &s->walls[s->def.wall_count++];
  const double dx = s->def.dx;
  w->shape = CQ_WALL_SPHERE;
  w->kind = CQ_CONTACT_FRICTION;
  w->friction = 0.2;
  w->moves = 1;
  w->radius = 3 * dx;
  w->point[0] = 2.5 * dx;
  w->point[1] = w->point[2] = 7.3 * dx;
  w->velocity[0] = 0.3;
  w->velocity[1] = 0.1;
  w->velocity[2] = -0.05;
}

// total Lagrangian steps, of particles anywhere in their cells
static inline void test_scene_reference(test_scene *s) { s->def.formulation = CQ_FORMULATION_TOTAL_LAGRANGIAN; }

// implicit steps, converged to rounding, for slopes are those of the exact solution
static inline void test_scene_implicit(test_scene *s) {
  s->def.integrator.kind = CQ_INTEGRATOR_IMPLICIT;
  s->def.integrator.tolerance = 1e-14;
  s->def.integrator.adjoint_tolerance = 1e-14;
  s->def.integrator.newton_iterations = 400;
  s->def.dt = 2e-2;
}

// the same of particles that lie on a lattice, as most bodies are made
static inline void test_scene_lattice(test_scene *s) {
  const int dim = s->def.dim;
  const double h = s->def.dx / 2;
  for (int64_t k = 0; k < s->n * dim; k++) {
    const double start = k % dim == 1 ? 4.6 * s->def.dx : 5 * s->def.dx;
    s->position[k] = start + (floor((s->position[k] - start) / h) + 0.5) * h;
  }
  for (int64_t p = 0; p < s->n; p++) s->volume[p] = pow(h, dim);
  test_scene_reference(s);
}

// Two bodies, so near that their surfaces push each other apart.
static inline void test_scene_colliding(test_scene *s) {
  static int32_t body[4096];
  test_scene_lattice(s);
  const int dim = s->def.dim;
  double middle = 0;
  for (int64_t p = 0; p < s->n; p++) middle += s->position[p * dim] / (double)s->n;
  middle = 5 * s->def.dx + floor((middle - 5 * s->def.dx) / s->def.dx) * s->def.dx;
  for (int64_t p = 0; p < s->n; p++) {
    body[p] = s->position[p * dim] > middle;
    if (body[p]) s->position[p * dim] += 0.2 * s->def.dx;
    s->velocity[p * dim] += body[p] ? -0.5 : 0.5;
  }
  s->def.body = body;
  s->def.body_count = 2;
  s->def.collision_stiffness = 0.5;
}
// and rub on each other
// The left half with a grid of its own shape, the right one on the grid of the world: it flows or is plastic.
static inline void test_scene_both(test_scene *s) {
  static int32_t body[4096];
  static const cq_material kinds[4] = {{CQ_MATERIAL_NEO_HOOKEAN, 0, 0, 1, 0}, {CQ_MATERIAL_VON_MISES, 0, 2, 0, 0},
                                       {CQ_MATERIAL_FLUID, 0, 0, 1, 0}, {CQ_MATERIAL_COROTATED, 0, 0, 0, 0}};
  test_scene_take(s, kinds);
  test_scene_reference(s);
  const int dim = s->def.dim;
  double middle = 0;
  for (int64_t p = 0; p < s->n; p++) middle += s->position[p * dim] / (double)s->n;
  for (int64_t p = 0; p < s->n; p++) {
    body[p] = s->position[p * dim] > middle ? -1 : 0;
    s->material[p] = body[p] < 0 ? 1 + (int32_t)(p % 3) : 3 * (int32_t)(p & 1);
    s->velocity[p * dim] += body[p] ? -0.3 : 0.3;
  }
  s->def.body = body;
  s->def.body_count = 1;
  s->def.pressure_smoothing = 0.4 / s->def.dt;
}

static inline void test_scene_rubbing(test_scene *s) {
  test_scene_colliding(s);
  s->def.collision_friction = 0.4;
  for (int64_t p = 0; p < s->n; p++) s->velocity[p * s->def.dim + 1] += s->def.body[p] ? -0.3 : 0.2;
}

// the last particle, which is in the corner farthest from the first, is held
static inline void test_scene_add_pins(test_scene *s) {
  s->pins[0] = (int32_t)s->n - 1;
  s->def.pin_count = 1;
  s->def.pins = s->pins;
}

// and one a little before it, in a group of its own, which touches some of the same nodes
static inline void test_scene_add_pin_groups(test_scene *s) {
  test_scene_add_pins(s);
  s->pins[1] = (int32_t)s->n - 3;
  s->pin_group[1] = 1;
  s->def.pin_count = s->def.pin_group_count = 2;
  s->def.pin_group = s->pin_group;
}

// A cable through these particles, numbers of a group joined by a negative one: {3, 5, -6, 9} has three points,
// the second the mean of 5 and 6.
static inline cq_cable *test_scene_add_cable(test_scene *s, int32_t actuator, int32_t count, const int64_t *path) {
  const int32_t c = s->def.cable_count++;
  test_cables++;
  cq_cable *cable = &s->cables[c];
  cable->actuator = actuator;
  cable->point_start = s->cable_start[c];
  cable->particle = s->cable_particle[c];
  cable->weight = s->cable_weight[c];
  cable->anchor = s->cable_anchor[c];
  for (int32_t k = 0; k < count; k++) {
    if (path[k] >= 0) cable->point_count++;
    s->cable_particle[c][k] = (int32_t)(path[k] < 0 ? -path[k] : path[k]);
    s->cable_weight[c][k] = 1;
    if (path[k] < 0) {
      s->cable_weight[c][k - 1] = 0.4;
      s->cable_weight[c][k] = 0.6;
    }
    s->cable_start[c][cable->point_count] = k + 1;
  }
  s->def.cables = s->cables;
  s->def.cable_stiffness = s->cable_stiffness;
  s->def.cable_length = s->cable_length;
  s->def.cable_friction = s->cable_friction;
  return cable;
}

// A chamber in the block, each of whose corners lies beyond a particle, as seen from a second one.
static inline void test_scene_add_chamber(test_scene *s, int32_t actuator) {
  static const int32_t plane[] = {0, 1, 1, 2, 2, 3, 3, 0}, space[] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
  const int64_t n = s->n;
  const int64_t of[8] = {n / 5, n / 2, n / 5 + 2, n / 2 - 1, n - n / 4, n / 2 + 1, n - n / 5, n / 2};
  for (int k = 0; k < 8; k++) {
    s->chamber_particle[k] = (int32_t)of[k];
    s->chamber_weight[k] = k % 2 ? -0.3 : 1.3;
    if (k % 2) s->chamber_start[k / 2 + 1] = k + 1;
  }
  cq_chamber *chamber = &s->chamber;
  chamber->actuator = actuator;
  chamber->point_count = chamber->face_count = 4;
  chamber->point_start = s->chamber_start;
  chamber->particle = s->chamber_particle;
  chamber->weight = s->chamber_weight;
  chamber->face = s->def.dim == 2 ? plane : space;
  s->def.chamber_count = 1;
  s->def.chambers = &s->chamber;
}

// Four cables, of which two share particles, one is slack and one hangs from the world; a chamber; and pressures on
// every seventh particle, on some two.
static inline void test_scene_add_drives(test_scene *s) {
  cq_world_def *d = &s->def;
  const int64_t n = s->n, dim = d->dim;
  double *direction = test_array(6 * dim * dim);
  memcpy(direction, s->direction, (size_t)(3 * dim * dim) * sizeof *direction);
  free(s->direction);
  d->actuator_direction = s->direction = direction;
  d->actuator_count = 6;
  const int64_t across[] = {n / 9, n / 3, n / 2, -(n / 2 + 1), n - n / 9}, down[] = {n / 3, n - 2 - n / 4, n - 2},
                rest[] = {1, n / 2};
  const int64_t hung[] = {n - 2, n / 2, -(n / 2 + 3)};
  cq_cable *cable = test_scene_add_cable(s, 3, 5, across);
  cable->offset = 1;
  cable->slope = -0.2;
  cable = test_scene_add_cable(s, 4, 3, down);
  cable->offset = 0.7;
  cable->slope = 0.1;
  cable = test_scene_add_cable(s, 0, 2, rest);   // with a stress; slack, for it is long
  cable->slope = 1;
  cable->offset = 2;
  // the last point is moved into the world
  cable = test_scene_add_cable(s, 4, 3, hung);
  cable->point_count = 3;
  s->cable_start[3][3] = 3;
  cable->offset = 0.8;
  cable->slope = 0.1;
  for (int i = 0; i < 3; i++) s->cable_anchor[3][2 * dim + i] = (i == 1 ? 13 : 7) * d->dx;
  for (int c = 0; c < 4; c++) {
    const double *x = s->position + s->cable_particle[c][0] * dim;
    double span = 0;
    for (int32_t k = 1; k < s->cable_start[c][s->cables[c].point_count]; k++) {
      const double *next = s->position + s->cable_particle[c][k] * dim;
      double square = 0;
      for (int i = 0; i < dim; i++) square += (next[i] - x[i]) * (next[i] - x[i]);
      span += sqrt(square);
      x = next;
    }
    s->cable_stiffness[c] = (dim == 3 ? 0.01 : 0.3) * (1 + 0.2 * c);
    s->cable_length[c] = span;
    s->cable_friction[c] = 0.1 * c;
  }

  test_scene_add_chamber(s, 5);
  s->surface_particle = (int32_t *)calloc((size_t)n, sizeof(int32_t));
  s->surface_actuator = (int32_t *)calloc((size_t)n, sizeof(int32_t));
  s->surface_area = test_array(n * dim);
  for (int64_t p = 0; p < n; p += 7)
    for (int twice = 0; twice <= (p % 3 == 0); twice++) {
      const int64_t k = d->surface_count++;
      s->surface_particle[k] = (int32_t)p;
      s->surface_actuator[k] = twice ? 1 : 5;
      for (int i = 0; i < dim; i++) s->surface_area[k * dim + i] = pow(d->dx / 2, (double)dim - 1) * test_random();
    }
  d->surface_particle = s->surface_particle;
  d->surface_actuator = s->surface_actuator;
  d->surface_area = s->surface_area;
}

// The fields that the scene made last has: all but constants of other materials, and those
// of cables that are not there.
static inline int test_has_field(int32_t field) {
  if (cq_field_describe(field)->owner == CQ_OWNER_CABLE) return test_cables > 0;
  return cq_field_describe(field)->owner != CQ_OWNER_CONSTANT || (test_constants >> field & 1);
}

#define TEST_FIELDS_EACH(f) \
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) \
    if (test_has_field(f))

// what the world of a scene has for a field; walls takes those of walls
static inline const double *test_scene_value(const test_scene *s, int32_t field, double *walls) {
  const cq_world_def *d = &s->def;
  if (field < CQ_FIELD_GRAVITY) return d->value[field];
  if (field == CQ_FIELD_GRAVITY) return d->gravity;
  if (field == CQ_FIELD_DAMPING) return &d->damping;
  for (int w = 0; w < d->wall_count; w++) {
    if (field == CQ_FIELD_FRICTION) walls[w] = d->walls[w].friction;
    for (int i = 0; i < d->dim && field == CQ_FIELD_WALL_VELOCITY; i++) walls[w * d->dim + i] = d->walls[w].velocity[i];
  }
  return walls;
}

static inline void test_scene_free(test_scene *s) {
  void *owned[] = {s->position, s->velocity, s->affine, s->deformation, s->volume, s->mass, s->young, s->poisson,
                   s->material, s->entry_particle, s->entry_actuator, s->force_particle, s->entry_weight, s->direction,
                   s->surface_particle, s->surface_actuator, s->surface_area};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) free(owned[k]);
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) free(s->constant[f]);
}

// signal a at control step i; force component k
static inline double test_signal(int i, int a) { return sin(0.7 * i + 1.3 * a); }
static inline double test_force(int i, int64_t k) { return 2e-3 * cos(0.3 * i + 0.9 * (double)k); }

// nothing after a failure would make sense
#define REQUIRE(condition)                                                                    \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      printf("FAILED  %s:%d: %s: %s\n", __FILE__, __LINE__, #condition, cq_error());          \
      printf("%d passed, %d failed\n", check_passed, check_failed + 1);                       \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

// A call that must fail with a status, and a sentence that holds these words.
#define CHECK_FAILS(call, wanted, words)                                                                              \
  do {                                                                                                                \
    const cq_status status_ = (call);                                                                                 \
    CHECK(status_ == (wanted) && strstr(cq_error(), words), "status %d (%d wanted), the sentence is \"%s\" (\"%s\" wanted)", \
          (int)status_, (int)(wanted), cq_error(), words);                                                            \
  } while (0)

// FNV-1a
static inline uint64_t test_hash(uint64_t hash, const void *data, size_t bytes) {
  for (size_t k = 0; k < bytes; k++) hash = (hash ^ ((const unsigned char *)data)[k]) * 1099511628211u;
  return hash;
}

#endif
