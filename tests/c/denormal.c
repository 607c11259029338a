// Numbers too small for their full digits: the engine flushes them in every thread that works for it, so that neither
// states nor adjoints hold one, whatever the number of threads; and each call gives its caller the floating-point mode
// back.
#include "base/denormal.h"
#include "rollout.h"

enum { STEPS = 6, SIDE = 56 };   // particles for several ranges, and a wave that needs more steps to the other end

// the smallest normal number of a precision
static double least_normal(int precision) { return precision == CQ_FLOAT32 ? 0x1p-126 : 0x1p-1022; }

// a block at rest without weight or walls: nothing moves unless a signal or a velocity says so
static void lay_down(test_scene *s) {
  cq_world_def *d = &s->def;
  const int dim = d->dim;
  memset(s->velocity, 0, (size_t)(s->n * dim) * sizeof(double));
  memset(s->affine, 0, (size_t)(s->n * dim * dim) * sizeof(double));
  for (int64_t k = 0; k < s->n * dim * dim; k++) s->deformation[k] = k % (dim * dim) % (dim + 1) == 0;
  d->gravity[0] = d->gravity[1] = 0;
  d->wall_count = d->force_count = 0;
}

// of which one end is actuated, so faintly that the wave need not go far until it is lost
static double faint(int precision) { return precision == CQ_FLOAT32 ? 1e-22 : 1e-292; }

static void actuate_end(test_scene *s) {
  cq_world_def *d = &s->def;
  lay_down(s);
  int64_t kept = 0;
  for (int64_t k = 0; k < d->actuation_count; k++) {
    if (s->position[s->entry_particle[k] * d->dim] > 7 * d->dx) continue;
    s->entry_particle[kept] = s->entry_particle[k];
    s->entry_actuator[kept] = s->entry_actuator[k];
    s->entry_weight[kept++] = faint(d->precision) * s->entry_weight[k];
  }
  d->actuation_count = kept;
}

// of which all moves, next to not at all
static void push_gently(test_scene *s) {
  lay_down(s);
  s->def.actuator_count = s->def.actuation_count = 0;
  const double speed = s->def.precision == CQ_FLOAT32 ? 1e-38 : 1e-308;
  for (int64_t k = 0; k < s->n * s->def.dim; k++) s->velocity[k] = (k % 3 ? 1 : -0.7) * speed;
}

// the loss is of the end that nothing drives, and as faint
static void keep_far_weights(test_run *t) {
  const int dim = t->choice.dim;
  for (int f = 0; f < 4; f++) {
    const int64_t width = (t->offset[f + 1] - t->offset[f]) / t->scene.n;
    for (int64_t p = 0; p < t->scene.n; p++)
      for (int64_t k = 0; k < width; k++)
        t->weights[t->offset[f] + p * width + k] *=
            t->scene.position[p * dim] < (t->choice.side / 2 + 3) * t->scene.def.dx ? 0 : faint(t->choice.precision);
  }
}

static int64_t denormals_in(const double *number, int64_t count, int precision) {
  int64_t found = 0;
  for (int64_t k = 0; k < count; k++) found += number[k] != 0 && fabs(number[k]) < least_normal(precision);
  return found;
}

typedef struct {
  uint64_t hash;
  int64_t in_state, in_gradient;   // numbers of states, and of gradients of the first one, that are denormal
  int64_t moved, reached;          // of the last state and of the gradient, that are not 0
} seen;

static seen look(const test_choice *choice) {
  test_run t;
  test_run_open(&t, choice);
  keep_far_weights(&t);
  seen s = {.hash = 1469598103934665603u};
  double *state = test_array(t.offset[4]);
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  for (int i = 0; i < choice->steps; i++) {
    REQUIRE(test_run_step(&t, i) == CQ_OK);
    test_run_state(&t, state);
    s.hash = test_hash(s.hash, state, (size_t)t.offset[4] * sizeof *state);
    s.in_state += denormals_in(state, t.offset[4], choice->precision);
  }
  for (int64_t k = t.offset[1]; k < t.offset[2]; k++) s.moved += state[k] != 0;
  test_run_backward(&t);
  for (int f = 0; f < 4; f++) {
    const int64_t count = t.offset[f + 1] - t.offset[f];
    double *gradient = test_run_gradient(&t, test_state_field[f], 0);
    s.hash = test_hash(s.hash, gradient, (size_t)count * sizeof *gradient);
    s.in_gradient += denormals_in(gradient, count, choice->precision);
    for (int64_t k = 0; f == 1 && k < count; k++) s.reached += gradient[k] != 0;
    free(gradient);
  }
  free(state);
  test_run_close(&t);
  return s;
}

static void check_none(int dim, int precision, void (*change)(test_scene *), const char *name) {
  test_choice choice = {.dim = dim, .side = dim == 3 ? 12 : SIDE, .precision = precision, .steps = STEPS, .threads = 1,
                        .change = change};
  const seen alone = look(&choice);
  choice.threads = 2;
  const seen together = look(&choice);
  // a GPU does not flush float64, nor does it lose time by it
  if (CQ_FLUSHES && (test_device() == CQ_DEVICE_CPU || precision == CQ_FLOAT32)) {
    CHECK(alone.in_state == 0, "%s, %dD, float%d: %lld numbers of states are denormal", name, dim, 8 * precision,
          (long long)alone.in_state);
    CHECK(alone.in_gradient == 0, "%s, %dD, float%d: %lld numbers of gradients are denormal", name, dim, 8 * precision,
          (long long)alone.in_gradient);
  }
  CHECK(alone.hash == together.hash, "%s, %dD, float%d: other bits with two threads", name, dim, 8 * precision);
  const int64_t all = (dim == 3 ? 12 * 12 * 12 : SIDE * SIDE) * dim;
  if (change != actuate_end || dim == 3) return;
  // the wave, and the adjoint, are on their way
  CHECK(alone.moved > 0 && alone.moved < all, "%s: %lld numbers of %lld move", name, (long long)alone.moved,
        (long long)all);
  CHECK(alone.reached > 0 && alone.reached < all, "%s: the adjoint is not 0 in %lld of %lld", name,
        (long long)alone.reached, (long long)all);
}

// ---- the caller's own mode ------------------------------------------------------------------------------------------

// but for the bits that say what has happened so far
#if defined(__SSE2__)
static const cq_float_mode upward = 0x1f80 | 2 << 13, controls = 0xffc0;
#elif defined(__aarch64__)
static const cq_float_mode upward = 1 << 22, controls = UINT64_MAX;
#else
static const cq_float_mode upward = 0, controls = 0;
#endif

#define CHECK_MODE(call)                                                                                              \
  do {                                                                                                                \
    cq_float_mode_set(upward);                                                                                        \
    const int status_ = (call);                                                                                       \
    const cq_float_mode after_ = cq_float_mode_get() & controls;                                                      \
    cq_float_mode_set(usual);                                                                                         \
    CHECK(status_ == CQ_OK && after_ == upward, #call " left status %d and mode %llx; it was %llx", status_,          \
          (unsigned long long)after_, (unsigned long long)upward);                                                    \
  } while (0)

static void check_mode(int threads) {
  const test_choice choice = {.dim = 2, .side = SIDE, .precision = CQ_FLOAT64, .steps = 2, .threads = threads,
                              .change = actuate_end};
  const cq_float_mode usual = cq_float_mode_get();
  test_run t;
  test_run_open(&t, &choice);
  double *state = test_array(t.offset[4]), *gradient = test_array(t.offset[4]);
  int64_t start[2] = {0, t.scene.n};
  int32_t *all = (int32_t *)calloc((size_t)t.scene.n, sizeof *all);
  for (int64_t p = 0; p < t.scene.n; p++) all[p] = (int32_t)p;
  cq_readout mean;
  cq_readout_init(&mean);
  mean.group_count = 1;
  mean.group_start = start;
  mean.particles = all;
  CHECK_MODE(cq_rollout_begin(t.rollout));
  CHECK_MODE(test_run_step(&t, 0));
  CHECK_MODE(test_run_step(&t, 1));
  CHECK_MODE(cq_rollout_read(t.rollout, &mean, state));
  CHECK_MODE(cq_rollout_begin_adjoint(t.rollout));
  CHECK_MODE(cq_rollout_read_adjoint(t.rollout, &mean, state));
  CHECK_MODE(cq_rollout_run_adjoint(t.rollout, 2, t.grad_signals, t.grad_forces));
  CHECK_MODE(cq_rollout_gradient(t.rollout, CQ_FIELD_VELOCITY, gradient, 0));
  free(all);
  free(state);
  free(gradient);
  test_run_close(&t);
}

// also where the simulation fails
static void blow_up(test_scene *s) {
  actuate_end(s);
  s->velocity[0] = 1e9;
}

static void check_mode_of_failure(void) {
  const test_choice choice = {.dim = 2, .side = SIDE, .precision = CQ_FLOAT32, .steps = 2, .threads = 2,
                              .change = blow_up};
  test_run t;
  test_run_open(&t, &choice);
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  const cq_float_mode before = cq_float_mode_get();
  const cq_status status = test_run_step(&t, 0);
  CHECK(status == CQ_UNSTABLE && ((cq_float_mode_get() ^ before) & controls) == 0,
        "status %d and mode %llx; it was %llx", (int)status, (unsigned long long)cq_float_mode_get(),
        (unsigned long long)before);
  test_run_close(&t);
}

// the caller's rounding reaches no result
static uint64_t hash_of_steps(cq_float_mode mode) {
  const test_choice choice = {.dim = 2, .side = SIDE, .precision = CQ_FLOAT32, .steps = 4, .threads = 2};
  const cq_float_mode usual = cq_float_mode_get();
  test_run t;
  test_run_open(&t, &choice);
  double *state = test_array(t.offset[4]);
  cq_float_mode_set(mode);
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  for (int i = 0; i < choice.steps; i++) REQUIRE(test_run_step(&t, i) == CQ_OK);
  test_run_state(&t, state);
  cq_float_mode_set(usual);
  const uint64_t hash = test_hash(1469598103934665603u, state, (size_t)t.offset[4] * sizeof *state);
  free(state);
  test_run_close(&t);
  return hash;
}

int main(void) {
  static const int precisions[2] = {CQ_FLOAT32, CQ_FLOAT64};
  for (int k = 0; k < 2; k++)
    for (int dim = 2; dim <= 3; dim++) {
      check_none(dim, precisions[k], actuate_end, "a bar at rest whose end is actuated");
      check_none(dim, precisions[k], push_gently, "a block that hardly moves");
    }
  check_mode(1);
  check_mode(2);
  check_mode_of_failure();
  const cq_float_mode usual = cq_float_mode_get();
  CHECK(hash_of_steps(usual) == hash_of_steps(upward), "other bits where the caller rounds upward");
  return check_report();
}
