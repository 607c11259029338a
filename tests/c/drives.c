// Cables and pressures in a world: the same bits for any number of threads, memory and batch; float32 as float64;
// momentum; the Courant number against what blows up; and what is refused.
#include "cpu/kernels.h"
#include "rollout.h"

enum { STEPS = 12 };

static void check_bits(int dim, int side, int precision) {
  test_choice choice = {
      .dim = dim, .side = side, .precision = precision, .threads = 1, .steps = STEPS, .change = test_scene_add_drives};
  cq_plan whole, plan;
  const uint64_t one = test_hash_of(&choice, &whole);
  for (int threads = 2; threads <= 4; threads++) {
    choice.threads = threads;
    CHECK(test_hash_of(&choice, NULL) == one, "%dD float%d: %d threads give other bits than one", dim, 8 * precision,
          threads);
  }
  choice.threads = 2;
  choice.memory = test_memory_of(&whole, 4, 0);
  CHECK(test_hash_of(&choice, &plan) == one && plan.records < STEPS && plan.checkpoints > 0,
        "%dD float%d: other bits with %d records and %d checkpoints", dim, 8 * precision, plan.records,
        plan.checkpoints);
}

// a scene of a batch has the gradients that it has alone
static void check_batch(int dim, int side) {
  const test_choice both = {
      .dim = dim, .side = side, .precision = 8, .steps = STEPS, .batch = 3, .change = test_scene_add_drives};
  test_run all;
  test_run_open(&all, &both);
  test_run_forward(&all, STEPS);
  test_run_backward(&all);
  for (int scene = 0; scene < 3; scene++) {
    test_choice single = both;
    single.batch = 1;
    single.first = scene;
    test_run t;
    test_run_open(&t, &single);
    test_run_forward(&t, STEPS);
    test_run_backward(&t);
    for (int i = 0; i < STEPS; i++)
      CHECK(!memcmp(t.grad_signals + i * t.signal_count,
                    all.grad_signals + i * all.signal_count + scene * t.signal_count,
                    (size_t)t.signal_count * sizeof(double)),
            "%dD scene %d: other gradients of signals at step %d", dim, scene, i);
    for (int32_t f = CQ_FIELD_CABLE_STIFFNESS; f <= CQ_FIELD_CABLE_FRICTION; f++) {
      double *own = test_run_gradient(&t, f, 0), *shared = test_run_gradient(&all, f, 1);
      CHECK(!memcmp(own, shared + scene * 4, 4 * sizeof *own) && own[0] != 0,
            "%dD scene %d: other gradients of field %d", dim, scene, f);
      free(own);
      free(shared);
    }
    test_run_close(&t);
  }
  test_run_close(&all);
}

static void check_precision(int dim, int side) {
  double *gradient[2][3];
  for (int k = 0; k < 2; k++) {
    const test_choice choice = {
        .dim = dim, .side = side, .precision = k ? 4 : 8, .steps = STEPS, .change = test_scene_add_drives};
    test_run t;
    test_run_open(&t, &choice);
    test_run_forward(&t, STEPS);
    test_run_backward(&t);
    for (int f = 0; f < 3; f++) gradient[k][f] = test_run_gradient(&t, CQ_FIELD_CABLE_STIFFNESS + f, 0);
    test_run_close(&t);
  }
  for (int f = 0; f < 3; f++) {
    double off = 0, size = 0;
    for (int c = 0; c < 4; c++) {
      off = check_worst(off, fabs(gradient[0][f][c] - gradient[1][f][c]));
      size = fmax(size, fabs(gradient[0][f][c]));
    }
    CHECK(size > 0 && off < 1e-4 * size, "%dD: float32 gives the gradient of %s with an error of %.1e of %.1e", dim,
          cq_field_describe(CQ_FIELD_CABLE_STIFFNESS + f)->name, off, size);
    free(gradient[0][f]);
    free(gradient[1][f]);
  }
}

// ---- momentum -------------------------------------------------------------------------------------------------------

// cables and a chamber alone, free in space
static void leave_cables(test_scene *s) {
  test_scene_add_drives(s);
  s->def.cable_count = 3;
  s->def.surface_count = 0;
  s->def.wall_count = 0;
  s->def.force_count = 0;
  memset(s->def.gravity, 0, sizeof s->def.gravity);
}

static void momentum(const test_run *t, double sum[3]) {
  double *state = test_array(t->offset[4]), *v = state + t->offset[1];
  test_run_state(t, state);
  memset(sum, 0, 3 * sizeof *sum);
  for (int64_t p = 0; p < t->scene.n; p++)
    for (int i = 0; i < t->choice.dim; i++) sum[i] += t->scene.mass[p] * v[p * t->choice.dim + i];
  free(state);
}

static void check_momentum(int dim, int side) {
  const test_choice choice = {
      .dim = dim, .side = side, .precision = 8, .steps = 50, .forward_only = 1, .change = leave_cables};
  test_run t;
  double before[3], after[3];
  test_run_open(&t, &choice);
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  momentum(&t, before);
  for (int i = 0; i < choice.steps; i++) REQUIRE(test_run_step(&t, i) == CQ_OK);
  momentum(&t, after);
  for (int i = 0; i < dim; i++)
    CHECK(fabs(after[i] - before[i]) < 1e-13 * (1 + fabs(before[i])),
          "%dD: momentum along axis %d was %.15g and is %.15g", dim, i, before[i], after[i]);
  test_run_close(&t);
}

// ---- stability ------------------------------------------------------------------------------------------------------

static double stiffness;
static const double TAUT = 0.02;      // of its length, by which the cable is too short

// one stiff cable that is a little too long for its path, on a soft body at rest
static void pull_hard(test_scene *s) {
  leave_cables(s);
  s->def.cable_count = 1;
  s->def.chamber_count = 0;
  memset(s->velocity, 0, (size_t)(s->n * s->def.dim) * sizeof *s->velocity);
  memset(s->affine, 0, (size_t)(s->n * s->def.dim * s->def.dim) * sizeof *s->affine);
  for (int64_t p = 0; p < s->n; p++) s->young[p] = 1;
  for (int64_t k = 0; k < s->n * s->def.dim * s->def.dim; k++)
    s->deformation[k] = k % (s->def.dim * s->def.dim) % (s->def.dim + 1) == 0;
  s->def.actuation_count = 0;
  s->cables[0] = s->cables[1];   // whose points are particles
  s->cable_length[0] = s->cable_length[1];
  s->cables[0].offset = 1 - TAUT;
  s->cables[0].slope = 0;
  s->cable_stiffness[0] = stiffness;
  s->cable_friction[0] = 0;
}

static double kinetic_energy(const test_run *t) {
  double *state = test_array(t->offset[4]), *v = state + t->offset[1], sum = 0;
  test_run_state(t, state);
  for (int64_t k = 0; k < t->scene.n * t->choice.dim; k++) sum += 0.5 * t->scene.mass[k / t->choice.dim] * v[k] * v[k];
  free(state);
  return sum;
}

// Is there ten times the motion that the energy of the cable can give, within some steps? courant: what the world says
static int blows_up(int dim, double *courant) {
  const test_choice choice = {.dim = dim,
                              .side = dim == 3 ? 8 : 16,
                              .precision = 8,
                              .steps = 100,
                              .forward_only = 1,
                              .substeps = 1,
                              .change = pull_hard};
  test_run t;
  test_run_open(&t, &choice);
  *courant = cq_world_courant(t.world, 0);
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  // it may swing somewhat higher
  const double stretch = TAUT * t.scene.cable_length[0], most = 5 * stiffness * stretch * stretch;
  int up = 0;
  for (int i = 0; i < choice.steps && !up; i++) up = test_run_step(&t, i) != CQ_OK || kinetic_energy(&t) > most;
  test_run_close(&t);
  return up;
}

// The stiffness at which it blows up lies where the Courant number is somewhat above 1.
static void check_courant(int dim) {
  double courant = 0;
  stiffness = dim == 3 ? 0.1 : 1;
  while (!blows_up(dim, &courant) && stiffness < 1e9) stiffness *= 1.25;
  printf("%dD: a cable blows up at a Courant number of %.3g\n", dim, courant);
  CHECK(courant > 1 && courant < 2.5, "%dD: a cable of stiffness %g blows up, the Courant number is %g", dim, stiffness,
        courant);
}

// ---- what is refused ------------------------------------------------------------------------------------------------

#define ROWS(F)                                                                                                        \
  F("one point", "cable 1 has 1 point; it must have 2 or more", s->cables[0].point_count = 1)                          \
  F("an actuator", "cable 2 follows actuator 10; there are 6", s->cables[1].actuator = 9)                               \
  F("a particle", "point 1 of cable 1 is particle 0", s->cable_particle[0][0] = -1)                                    \
  F("a weight",  "a weight in point 3 of cable 1 is 0", s->cable_weight[0][3] = 0)                                     \
  F("the weights", "the weights in point 3 of cable 1 sum to 0.9", s->cable_weight[0][3] = 0.5)                        \
  F("an anchor", "point 3 of cable 4 has neither particles nor a place", s->cable_anchor[3][2 * s->def.dim] = NAN)     \
  F("no anchors", "point 3 of cable 4 has neither particles nor a place", s->cables[3].anchor = NULL)                  \
  F("one place", "points 1 and 2 of cable 1 are at the same place", s->cable_particle[0][1] = s->cable_particle[0][0]) \
  F("the law",   "the free length of cable 3 is R (2 + inf u)", s->cables[2].slope = INFINITY)                         \
  F("stiffness", "cable_stiffness[2] is -1; it must not be negative", s->cable_stiffness[1] = -1)                      \
  F("no stiffness", "cable_stiffness is needed for every cable", s->def.cable_stiffness = NULL)                        \
  F("length",    "cable_length[1] is -0.5; it must not be negative", s->cable_length[0] = -0.5)                        \
  F("friction",  "cable_friction[3] is ", s->cable_friction[2] = NAN)                                                  \
  F("no cables", "-1 cables",  s->def.cable_count = -1)                                                                \
  F("three points less", "chamber 1 has 1 point; it must have 2 or more", s->chamber.point_count = 1)                  \
  F("its signal", "chamber 1 follows actuator 8; there are 6", s->chamber.actuator = 7)                                \
  F("a far particle", "point 1 of chamber 1 is particle 0", s->chamber_particle[0] = -1)                               \
  F("no particle", "point 4 of chamber 1 has neither particles", s->chamber_start[4] = 6)                              \
  F("no weight", "a weight in point 2 of chamber 1 is nan; it must be finite", s->chamber_weight[2] = NAN)             \
  F("its weights", "the weights in point 2 of chamber 1 sum to 2.7", s->chamber_weight[2] = 3)                         \
  F("a face", "of chamber 1 has point 5; there are 4", s->chamber.face = far_face(s->def.dim))                         \
  F("few faces", "chamber 1 has 1 face; it must have", s->chamber.face_count = 1)                                     \
  F("an open one", "chamber 1 is open: the area vectors of its faces sum to", s->chamber.face = open_face(s->def.dim)) \
  F("no chambers", "-1 chambers", s->def.chamber_count = -1)                                                           \
  F("a surface", "surface entry 3 is (particle -2, actuator", s->surface_particle[2] = -3)                             \
  F("its actuator", "surface entry 1 is (particle 1, actuator 7)", s->surface_actuator[0] = 6)                         \
  F("its area",  "area of surface entry 2 is ", s->surface_area[s->def.dim] = INFINITY)                                \
  F("no surfaces", "-1 surface entries", s->def.surface_count = -1)

static const int32_t *far_face(int dim) {
  static const int32_t plane[] = {0, 1, 1, 2, 2, 3, 3, 4}, space[] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 4};
  return dim == 2 ? plane : space;
}

static const int32_t *open_face(int dim) {
  static const int32_t plane[] = {0, 1, 1, 2, 2, 3, 3, 1}, space[] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 0};
  return dim == 2 ? plane : space;
}

static void fix_everything(test_scene *s) {   // no particle: a cable of anchors alone
  cq_cable *c = &s->cables[3];
  s->cable_start[3][1] = s->cable_start[3][2] = s->cable_start[3][3] = 0;
  c->point_count = 2;
  s->cable_anchor[3][0] = s->cable_anchor[3][s->def.dim] = 0.1;
}

static void check_refused(int dim) {
#define ROW(what, words, spoil)                                            \
  {                                                                        \
    test_scene scene, *s = &scene;                                         \
    cq_world *world;                                                       \
    test_scene_make(s, dim, 6, CQ_FLOAT64, 1);                             \
    test_scene_add_drives(s);                                              \
    spoil;                                                                 \
    CHECK_FAILS(cq_world_create(&s->def, &world), CQ_INVALID, words);      \
    test_scene_free(s);                                                    \
  }
  ROWS(ROW)
  ROW("anchors alone", "cable 4 pulls at no particle", fix_everything(s))
}

int main(void) {
  check_bits(2, 40, CQ_FLOAT64);
  check_bits(2, 56, CQ_FLOAT32);
  check_bits(3, 12, CQ_FLOAT64);
  check_batch(2, 16);
  check_batch(3, 6);
  check_precision(2, 24);
  check_precision(3, 8);
  check_momentum(2, 16);
  check_momentum(3, 7);
  if (test_device() == CQ_DEVICE_CPU) {   // an emulated GPU is slow
    check_courant(2);
    check_courant(3);
  }
  check_refused(2);
  check_refused(3);
  return check_report();
}
