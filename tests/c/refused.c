// Every definition and argument that is refused: a row for each, with words of the sentence, which name the thing and
// what it was. s is a good scene in 3D that one statement spoils.
#include "rollout.h"

// what               words of the sentence                       what spoils a good scene
#define WORLDS(F)                                                                                                      \
  F(cookie,           "cq_world_def_init",                        d->cookie = 0)                                       \
  F(dim,              "dim is 4",                                 d->dim = 4)                                          \
  F(precision,        "precision is 5",                           d->precision = 5)                                    \
  F(threads,          "threads is -1",                            d->threads = -1)                                     \
  F(simd,             "simd level 2",                             d->simd = 2)                                         \
  F(cells_few,        "cells[2] is 3",                            d->cells[1] = 3)                                     \
  F(cells_many,       "cells[3] is 20000",                        d->cells[2] = 20000)                                 \
  F(dx,               "dx is 0",                                  d->dx = 0)                                           \
  F(dx_infinite,      "dx is inf",                                d->dx = INFINITY)                                    \
  F(dt,               "dt is -1",                                 d->dt = -1)                                          \
  F(dt_nan,           "dt is ",                                   d->dt = NAN)                                         \
  F(substeps,         "substeps is 0",                            d->substeps = 0)                                     \
  F(gravity,          "gravity[2] is inf",                        d->gravity[1] = INFINITY)                            \
  F(empty,            "no particles",                             d->particle_count = 0)                               \
  F(too_many,         "more than 1e9",                            d->particle_count = 2000000000)                      \
  F(no_volume,        "position, volume and mass",                  d->volume = NULL)                                  \
  F(position,         "particle 4 starts outside the world",      s->position[10] = NAN)                               \
  F(velocity,         "velocity[12] is inf",                      s->velocity[11] = INFINITY)                          \
  F(affine,           "affine[27] is ",                           s->affine[26] = NAN)                                 \
  F(deformation,      "deformation[19] is ",                      s->deformation[18] = NAN)                            \
  F(volume,           "volume[6] is 0; it must be positive",         s->volume[5] = 0)                                 \
  F(mass,             "mass[7] is -1",                            s->mass[6] = -1)                                     \
  F(young,            "young[8] is -2; it must not be negative",     s->young[7] = -2)                                 \
  F(poisson,          "poisson[9] is 0.5; it must be above -1",     s->poisson[8] = 0.5)                               \
  F(poisson_low,      "poisson[9] is -1; it must be above -1 and",     s->poisson[8] = -1)                             \
  F(poisson_nan,      "poisson[9] is ",                            s->poisson[8] = NAN)                                \
  F(outside,          "particle 5 starts outside the world: coordinate 3 is -0.1", s->position[14] = -0.1)             \
  F(beyond,           "particle 5 starts outside the world: coordinate 1 is 100",  s->position[12] = 100)              \
  F(materials,        "0 materials",                              d->material_count = 0)                               \
  F(materials_many,   "33 materials",                             d->material_count = 33)                              \
  F(mooney,           "c10 + c01 of particle 9 is 1 + -1;",                                                            \
    take(s, CQ_MATERIAL_MOONEY_RIVLIN, CQ_FIELD_C10, 1, CQ_FIELD_C01, -1))                                             \
  F(yeoh,             "c10 of particle 9 is 0;",                                                                       \
    take(s, CQ_MATERIAL_YEOH, CQ_FIELD_C10, 0, CQ_FIELD_C20, 1))                                                       \
  F(ogden,            "of particle 9 is -1.6",                                                                         \
    take(s, CQ_MATERIAL_OGDEN, CQ_FIELD_MU_1, 0, CQ_FIELD_MU_2, -0.8))                                                 \
  F(fibre,            "fibre of particle 9 has no length",                                                             \
    take(s, CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, CQ_FIELD_FIBRE, 0, CQ_FIELD_K1, 1))                                    \
  F(matrix,           "shear of particle 9 is 0;",                                                                     \
    take(s, CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, CQ_FIELD_SHEAR, 0, CQ_FIELD_K1, 1))                                    \
  F(fibres_push,      "k1[9] is -1; it must not be negative",                                                          \
    take(s, CQ_MATERIAL_TRANSVERSELY_ISOTROPIC, CQ_FIELD_K1, -1, CQ_FIELD_K2, 0))                                      \
  F(no_constant,      "bulk is needed for every particle",        s->materials[0].kind = CQ_MATERIAL_YEOH)             \
  F(material_kind,    "material 2 has the unknown kind 99",       s->materials[1].kind = 99)                           \
  F(power_odd,        "incompressible is 3",                      s->materials[0].incompressible = 3)                  \
  F(not_viscous,      "viscous is 2; it must be 0 or 1",          s->materials[0].viscous = 2)                         \
  F(many_branches,    "4 Maxwell branches; a material has 0 to 3", s->materials[0].branches = 4)                       \
  F(linear_branches,  "1 Maxwell branches beside the law linear; they need a hyperelastic law",                        \
    s->materials[2].branches = 1)                                                                                      \
  F(snow_power,       "incompressible is 2; the law snow has no such term",                                            \
    s->materials[0].kind = CQ_MATERIAL_SNOW, s->materials[0].incompressible = 2)                                       \
  F(power_high,       "incompressible is 10",                     s->materials[0].incompressible = 10)                 \
  F(material_of,      "material of particle 10 is 5",              s->material[9] = 4)                                 \
  F(walls_many,       "65 walls",                                 d->wall_count = 65)                                  \
  F(walls_negative,   "-1 walls",                                 d->wall_count = -1)                                  \
  F(wall_kind,        "wall 2 has an unknown shape or kind",      s->walls[1].kind = CQ_CONTACT_HOLD + 1)              \
  F(wall_shape,       "wall 2 has an unknown shape or kind",      s->walls[1].shape = -1)                              \
  F(friction,         "friction of wall 1 is -0.1",               s->walls[0].friction = -0.1)                         \
  F(damping,          "damping is -2",                            s->def.damping = -2)                                 \
  F(damping_nan,      "damping is ",                              s->def.damping = NAN)                                \
  F(friction_nan,     "friction of wall 1 is ",                   s->walls[0].friction = NAN)                          \
  F(normal,           "normal of wall 1 has no length",           s->walls[0].normal[1] = 0)                           \
  F(wall_point,       "point of wall 1",                          s->walls[0].point[1] = NAN)                          \
  F(wall_velocity,    "velocity of wall 3",                       s->walls[2].velocity[0] = INFINITY)                  \
  F(radius,           "radius of wall 3 is -1",                   s->walls[2].radius = -1)                             \
  F(box,              "box of wall 3 is empty along axis 2",                                                           \
    s->walls[2].shape = CQ_WALL_BOX; s->walls[2].upper[0] = 1)                                                         \
  F(no_heights,       "height field of wall 1 needs",             s->walls[0].shape = CQ_WALL_HEIGHT_FIELD)            \
  F(height_spacing,   "height field of wall 1 needs",             use_heights(s); s->walls[0].height_spacing[1] = 0)   \
  F(height,           "height of wall 1, sample 2, is ",          use_heights(s); heights[2] = NAN)                    \
  F(too_many_at_once, "more than 8 walls hold the grid node",     crowd(s))                                            \
  F(pin,              "pin 1 is particle 0",                     test_scene_add_pins(s); s->pins[0] = -1)              \
  F(pin_group,        "pin 2 is of group 3; there are 2",         test_scene_add_pin_groups(s); s->pin_group[1] = 2)   \
  F(pin_group_count,  "9 groups of pins; there are 2 pins",       test_scene_add_pin_groups(s); d->pin_group_count = 9)\
  F(pins_negative,    "-1 pins",                                  d->pin_count = -1)                                   \
  F(actuators,        "count of actuators is negative",           d->actuator_count = -1)                              \
  F(entries,          "count of actuators is negative",           d->actuation_count = -1)                             \
  F(entry_particle,   "actuator entry 4 is (particle 0, actuator", s->entry_particle[3] = -1)                          \
  F(entry_actuator,   "actuator 4); there are",                   s->entry_actuator[2] = 3)                            \
  F(entry_weight,     "weight of actuator entry 2 is ",           s->entry_weight[1] = NAN)                            \
  F(asymmetric,       "direction of actuator 3 is not symmetric", s->direction[2 * 9 + 1] = 3)                         \
  F(direction,        "direction of actuator 1 is ",              s->direction[4] = INFINITY)                          \
  F(force_particle,   "force 3 is on particle 1000001",           s->force_particle[2] = 1000000)                      \
  F(force_twice,      "forces 1 and 4 are on the same particle",  s->force_particle[3] = s->force_particle[0])         \
  F(forces_negative,  "-1 forces",                                d->force_count = -1)

static double heights[4];
static void use_heights(test_scene *s) {
  memset(heights, 0, sizeof heights);
  s->walls[0].shape = CQ_WALL_HEIGHT_FIELD;
  s->walls[0].height = heights;
  s->walls[0].height_count[0] = s->walls[0].height_count[1] = 2;
  s->walls[0].height_spacing[0] = s->walls[0].height_spacing[1] = 1;
}

// particles of one law, of which number 8 has two constants of its own
static void take(test_scene *s, int32_t kind, int32_t first, double value, int32_t second, double other) {
  const cq_material kinds[4] = {{kind, 0, 0, 0, 0}, {kind, 0, 0, 0, 0}, {kind, 0, 0, 0, 0}, {kind, 0, 0, 0, 0}};
  const int32_t field[2] = {first, second};
  test_scene_take(s, kinds);
  for (int32_t k = CQ_FIELD_ALPHA_1; k <= CQ_FIELD_ALPHA_3 && kind == CQ_MATERIAL_OGDEN; k++)
    for (int64_t p = 0; p < s->n; p++) s->constant[k][p] = k == CQ_FIELD_ALPHA_2 ? 2 : 0;
  for (int f = 0; f < 2; f++) {
    const int width = cq_field_describe(field[f])->rank ? s->def.dim : 1;
    for (int i = 0; i < width; i++) s->constant[field[f]][8 * width + i] = f ? other : value;
  }
}

static cq_wall many[9];
static void crowd(test_scene *s) {
  for (int k = 0; k < 9; k++) many[k] = s->walls[0];
  s->def.walls = many;
  s->def.wall_count = 9;
}

#define SPOIL(name, words, ...)                        \
  static void spoil_##name(test_scene *s) {            \
    cq_world_def *d = &s->def;                         \
    (void)d;                                           \
    __VA_ARGS__;                                       \
  }
WORLDS(SPOIL)

static void check_worlds(void) {
#define ROW(name, words, ...) {#name, words, spoil_##name},
  static const struct { const char *name, *words; void (*spoil)(test_scene *); } rows[] = {WORLDS(ROW)};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    for (int spoilt = 0; spoilt < 2; spoilt++) {
      test_scene s;
      cq_world *world = NULL;
      test_scene_make(&s, 3, 5, CQ_FLOAT32, 4);
      s.def.threads = 1;
      if (spoilt) rows[k].spoil(&s);
      const cq_status status = cq_world_create(&s.def, &world);
      if (spoilt)
        CHECK(status == CQ_INVALID && !world && strstr(cq_error(), rows[k].words), "%s: status %d, \"%s\"",
              rows[k].name, status, cq_error());
      else
        CHECK(status == CQ_OK, "%s: the good scene is refused: %s", rows[k].name, cq_error());
      cq_world_destroy(world);
      test_scene_free(&s);
    }
}

// ---- rollouts -------------------------------------------------------------------------------------------------------

static void check_rollout_defs(cq_world *world) {
  cq_rollout *rollout = NULL;
  cq_rollout_def def;
#define REFUSED(words, ...)                                                                  \
  do {                                                                                       \
    cq_rollout_def_init(&def);                                                               \
    __VA_ARGS__;                                                                             \
    CHECK_FAILS(cq_rollout_create(world, &def, &rollout), CQ_INVALID, words);                \
    CHECK(!rollout, "a refused definition made a rollout");                                  \
  } while (0)
  REFUSED("cq_rollout_def_init", def.cookie = 0);
  REFUSED("batch is 0", def.batch = 0);
  REFUSED("batch is 65537; it must be 1 to 65536", def.batch = CQ_BATCH_MAX + 1);
  REFUSED("steps is 0", def.steps = 0);
  REFUSED("memory is -5", def.memory = -5);
#undef REFUSED
}

// constants that a law refuses together, when the rollout begins; then others, and it does
static void mooney(test_scene *s) { take(s, CQ_MATERIAL_MOONEY_RIVLIN, CQ_FIELD_C10, 1, CQ_FIELD_C01, 1); }
static void check_law_values(void) {
  test_run t;
  const test_choice choice = {.dim = 2, .side = 8, .precision = CQ_FLOAT32, .threads = 1, .steps = 1, .change = mooney};
  test_run_open(&t, &choice);
  double *value = test_array(t.scene.n);
  CHECK(cq_rollout_set(t.rollout, CQ_FIELD_C10, value, 0) == CQ_OK, "%s", cq_error());
  CHECK(cq_rollout_begin(t.rollout) == CQ_OK, "%s", cq_error());
  for (int64_t p = 0; p < t.scene.n; p++) value[p] = p == 5 ? -3 : 1;
  CHECK(cq_rollout_set(t.rollout, CQ_FIELD_C10, value, 0) == CQ_OK, "%s", cq_error());
  for (int k = 0; k < 2; k++) CHECK_FAILS(cq_rollout_begin(t.rollout), CQ_INVALID, "c10 + c01 of particle 6 is -3 + ");
  value[5] = 1;
  CHECK(cq_rollout_set(t.rollout, CQ_FIELD_C10, value, 0) == CQ_OK && cq_rollout_begin(t.rollout) == CQ_OK, "%s",
        cq_error());
  free(value);
  test_run_close(&t);
}

static void check_values(test_run *t) {
  static const struct { int32_t field; double value; const char *words;
  } rows[] = {{CQ_FIELD_POSITION, NAN, "position[4] is "},
              {CQ_FIELD_VELOCITY, INFINITY, "velocity[4] is inf"},
              {CQ_FIELD_AFFINE, NAN, "affine[4] is "},
              {CQ_FIELD_DEFORMATION, NAN, "deformation[4] is "},
              {CQ_FIELD_VOLUME, 0, "volume[4] is 0"},
              {CQ_FIELD_MASS, -1, "mass[4] is -1"},
              {CQ_FIELD_YOUNG, -1, "young[4] is -1"},
              {CQ_FIELD_POISSON, 0.5, "poisson[4] is 0.5"},
              {CQ_FIELD_FRICTION, -1, "friction[1] is -1"},
              {CQ_FIELD_GRAVITY, NAN, "gravity[1] is "},
              {CQ_FIELD_DAMPING, -1, "damping[1] is -1"},
              {CQ_FIELD_WALL_VELOCITY, NAN, "wall_velocity[4] is "},
              {CQ_FIELD_ACTUATION_WEIGHT, NAN, "actuation_weight[4] is "}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    double walls[16] = {0};
    const int64_t count = cq_field_count(t->world, rows[k].field);
    double *value = test_array(count);
    memcpy(value, test_scene_value(&t->scene, rows[k].field, walls), (size_t)count * sizeof *value);
    value[count > 3 && rows[k].words[0] != 'g' ? 3 : 0] = rows[k].value;
    CHECK_FAILS(cq_rollout_set(t->rollout, rows[k].field, value, 0), CQ_INVALID, rows[k].words);
    free(value);
  }
  double zero = 0;
  check_law_values();
  CHECK_FAILS(cq_rollout_set(t->rollout, CQ_FIELD_COUNT, &zero, 0), CQ_INVALID, "there is no field ");
  CHECK_FAILS(cq_rollout_set(t->rollout, -1, &zero, 0), CQ_INVALID, "no field -1");
}

static void check_controls(test_run *t) {
  test_run_forward(t, 1);
  double kept = t->signals[t->signal_count + 1];
  t->signals[t->signal_count + 1] = NAN;
  CHECK_FAILS(test_run_step(t, 1), CQ_INVALID, "signal 2 is ");
  CHECK(strstr(cq_error(), "at control step 2"), "\"%s\"", cq_error());
  t->signals[t->signal_count + 1] = kept;
  kept = t->forces[t->force_count + 4];
  t->forces[t->force_count + 4] = INFINITY;
  CHECK_FAILS(test_run_step(t, 1), CQ_INVALID, "force component 5 is inf");
  t->forces[t->force_count + 4] = kept;
  cq_interrupt(1);
  CHECK_FAILS(test_run_step(t, 1), CQ_INTERRUPTED, "interrupted at control step 1");
  cq_interrupt(0);
  CHECK(test_run_step(t, 1) == CQ_OK && cq_rollout_at(t->rollout) == 2, "a refused step is not made: %s", cq_error());
}

// a policy that sees a change goes all the way, there and back
static void check_changes(test_run *t, cq_policy *p) {
  double y[64];
  p->change = p->observation;
  p->observation = NULL;
  p->interval = 1;
  test_run_forward(t, 1);
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  CHECK_FAILS(cq_rollout_run_policy_adjoint(t->rollout, p, 1, NULL), CQ_INVALID,
              "the control steps before 1 were not made by a policy");
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
  CHECK(cq_rollout_run_policy(t->rollout, p, 2, y) == CQ_OK && cq_rollout_run_policy(t->rollout, p, 1, y) == CQ_OK,
        "%s", cq_error());
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  CHECK(cq_rollout_run_policy_adjoint(t->rollout, p, 1, NULL) == CQ_OK, "%s", cq_error());
  CHECK_FAILS(cq_rollout_run_adjoint(t->rollout, 1, NULL, NULL), CQ_INVALID,
              "a policy that sees a change went back to control step 2");
  p->observation = p->change;
  p->change = NULL;
  CHECK_FAILS(cq_rollout_run_policy_adjoint(t->rollout, p, 1, NULL), CQ_INVALID,
              "it must go on, or the adjoint begin again");
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  CHECK(cq_rollout_run_adjoint(t->rollout, 1, NULL, NULL) == CQ_OK, "%s", cq_error());
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
}

static void check_policies(test_run *t) {
  int64_t start[2] = {0, 2};
  int32_t particles[2] = {0, 1}, output[8] = {0};
  double numbers[64] = {0}, y[64];
  cq_readout q;
  cq_policy p;
  cq_readout_init(&q);
  q.group_count = 1;
  q.group_start = start;
  q.particles = particles;
  cq_layer layers[17];
  test_run_forward(t, 1);
#define REFUSED(words, ...)                                                                  \
  do {                                                                                       \
    for (int l = 0; l < 17; l++) layers[l] = (cq_layer){2, 2, CQ_UNARY_TANH, numbers, numbers, y, y}; \
    cq_policy_init(&p);                                                                      \
    p.layer_count = 2;                                                                       \
    p.layers = layers;                                                                       \
    p.observation = &q;                                                                      \
    p.output = output;                                                                       \
    p.scale = p.shift = numbers;                                                             \
    __VA_ARGS__;                                                                             \
    CHECK_FAILS(cq_rollout_run_policy(t->rollout, &p, 1, y), CQ_INVALID, words);                 \
    output[0] = 0;                                                                           \
    numbers[0] = 0;                                                                          \
    q.group_count = 1;                                                                       \
  } while (0)
  REFUSED("not filled by cq_policy_init", p.cookie = 0);
  REFUSED("has 0 layers; it must have 1 to 16", p.layer_count = 0);
  REFUSED("has 17 layers", p.layer_count = 17);
  REFUSED("at least one group", q.group_count = 0);
  REFUSED("a policy sees nothing", p.observation = NULL);
  REFUSED("the interval of a policy is 0", p.change = &q);
  REFUSED("the interval of a policy is inf", p.change = &q; p.interval = INFINITY);
  REFUSED("takes 2 numbers and gives 2; it is given 4", p.change = &q; p.interval = 1);
  REFUSED("must give the signals from the first control step on; this one begins at 1", p.change = &q;
          p.observation = NULL; p.interval = 1);
  REFUSED("layer 1 of a policy takes 3 numbers and gives 2; it is given 2", layers[0].in = 3);
  REFUSED("layer 2 of a policy takes 2 numbers and gives 2; it is given 4", layers[0].out = 4);
  REFUSED("layer 2 of a policy has activation 6", layers[1].activation = CQ_UNARY_SIN);
  REFUSED("actuator 1 takes output 2 of a policy that gives 2", output[0] = 2);
  REFUSED("a policy gave nan for signal 1 at control step 2", numbers[0] = NAN);
#undef REFUSED
  test_run_forward(t, 1);
  CHECK_FAILS(cq_rollout_run_policy(t->rollout, &p, -1, y), CQ_INVALID, "-1 control steps");
  CHECK_FAILS(cq_rollout_run_policy(t->rollout, &p, 1000, y), CQ_INVALID, "cannot make 1000 more");
  CHECK_FAILS(cq_rollout_run_policy_adjoint(t->rollout, &p, 1, NULL), CQ_INVALID, "begin the adjoint");
  CHECK(cq_rollout_run_policy(t->rollout, &p, 1, y) == CQ_OK && cq_rollout_at(t->rollout) == 2,
        "it is not followed: %s", cq_error());
  check_changes(t, &p);
}

static void check_readouts(test_run *t) {
  int64_t start[3] = {0, 2, 4};
  int32_t particles[4] = {0, 1, 2, 3};
  double out[64];
  cq_readout r;
#define REFUSED(words, ...)                                                                  \
  do {                                                                                       \
    cq_readout_init(&r);                                                                     \
    r.group_count = 2;                                                                       \
    r.group_start = start;                                                                   \
    r.particles = particles;                                                                 \
    __VA_ARGS__;                                                                             \
    CHECK_FAILS(cq_rollout_read(t->rollout, &r, out), CQ_INVALID, words);                    \
  } while (0)
  REFUSED("cq_readout_init", r.cookie = 0);
  REFUSED("no readout 7", r.kind = 7);
  REFUSED("no weighting 5", r.weighting = 5);
  REFUSED("field 20 is not one of a state", r.fields = 1u << 20);
  REFUSED("at least one group", r.group_count = 0);
  REFUSED("group 2 of a readout is empty", start[2] = 2);
  start[2] = 4;
  REFUSED("wants particle 0", particles[3] = -1);
  REFUSED("wants particle 1000001", particles[3] = 1000000);
  particles[3] = 3;
  cq_readout_init(&r);
  r.group_count = 2;
  r.group_start = start;
  r.particles = particles;
  CHECK(cq_rollout_read(t->rollout, &r, out) == CQ_OK, "%s", cq_error());
  memset(out, 0, sizeof out);
  CHECK_FAILS(cq_rollout_read_adjoint(t->rollout, &r, out), CQ_INVALID, "begin the adjoint");
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK && cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  CHECK(cq_rollout_read_adjoint(t->rollout, &r, out) == CQ_OK, "%s", cq_error());
  double *gradient = test_array(cq_field_count(t->world, CQ_FIELD_POSITION));
  CHECK(cq_rollout_gradient(t->rollout, CQ_FIELD_POSITION, gradient, 0) == CQ_OK, "%s", cq_error());
  free(gradient);
  CHECK_FAILS(cq_rollout_read_adjoint(t->rollout, &r, out), CQ_INVALID, "asked for already");
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
}

int main(void) {
  check_worlds();
  test_run t;
  const test_choice choice = {.dim = 2, .side = 8, .precision = CQ_FLOAT32, .threads = 1, .steps = 4};
  test_run_open(&t, &choice);
  int64_t start[2] = {0, 1};
  int32_t first = 0;
  double out[4];
  cq_readout r;
  cq_readout_init(&r);
  r.group_count = 1;
  r.group_start = start;
  r.particles = &first;
  CHECK_FAILS(cq_rollout_read(t.rollout, &r, out), CQ_INVALID, "no live state");
  check_rollout_defs(t.world);
  check_values(&t);
  check_controls(&t);
  check_policies(&t);
  check_readouts(&t);
  test_run_close(&t);
  return check_report();
}
