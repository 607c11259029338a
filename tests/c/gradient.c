// Gradients of whole rollouts against central differences, for every field, in 2D and 3D; and the promises about them:
// the same bits for any memory budget and any number of threads.
#include "rollout.h"

enum { STEPS = 12 };

// what the adjoint may be off by, relative to the gradient
static const double TOLERANCE = 2e-6;

// the first of several central differences along a direction that is within the tolerance, else the best; steps are
// relative to the direction
static double best_difference(test_run *t, double along, void move(test_run *, double), double *error) {
  static const double steps[] = {1e-5, 1e-6, 1e-4};
  double best = 0;
  *error = 1e9;
  for (int k = 0; k < 3 && *error >= TOLERANCE; k++) {
    double loss[2];
    for (int side = 0; side < 2; side++) {
      move(t, side ? -steps[k] : steps[k]);
      loss[side] = test_run_forward(t, STEPS);
      move(t, side ? steps[k] : -steps[k]);
    }
    const double d = (loss[0] - loss[1]) / (2 * steps[k]), off = fabs(d - along) / fmax(fabs(along), 1e-12);
    if (off >= *error) continue;
    *error = off;
    best = d;
  }
  return best;
}

static void check(test_run *t, const char *name, double along, void move(test_run *, double)) {
  double error;
  const double difference = best_difference(t, along, move, &error);
  CHECK(fabs(along) > 1e-9, "%dD %s has a gradient: %g", t->choice.dim, name, along);
  CHECK(error < TOLERANCE, "%dD %s: adjoint %.12g, central difference %.12g, relative error %.1e", t->choice.dim, name,
        along, difference, error);
}

// ---- fields ---------------------------------------------------------------------------------------------------------

static struct {
  int32_t field;
  int64_t count;
  const double *value;
  double *direction;
} moved;

static void move_field(test_run *t, double step) {
  double *value = test_array(moved.count);
  for (int64_t k = 0; k < moved.count; k++) value[k] = moved.value[k] + step * moved.direction[k];
  REQUIRE(cq_rollout_set(t->rollout, moved.field, value, 0) == CQ_OK);
  free(value);
}

// a random direction in a field, scaled to its values; the gradient is freed
static void check_field(test_run *t, int32_t field, double *gradient) {
  double walls[16] = {0}, along = 0;
  moved.field = field;
  moved.count = cq_field_count(t->world, field);
  moved.value = test_scene_value(&t->scene, field, walls);
  moved.direction = test_array(moved.count);
  for (int64_t k = 0; k < moved.count; k++) {
    const double scale = field == CQ_FIELD_POSITION ? 0.01 : moved.value[k] != 0 ? fabs(moved.value[k]) : 0.05;
    moved.direction[k] = test_random() * scale;
    along += gradient[k] * moved.direction[k];
  }
  check(t, cq_field_describe(field)->name, along, move_field);
  REQUIRE(cq_rollout_set(t->rollout, field, moved.value, 0) == CQ_OK);
  free(gradient);
  free(moved.direction);
}

// ---- signals and forces ---------------------------------------------------------------------------------------------

static double toward_signal(int64_t k) { return cos(0.8 * (double)k); }
static double toward_force(int64_t k) { return 0.01 * sin(0.7 * (double)k); }
static void move_signals(test_run *t, double step) {
  for (int64_t k = 0; k < STEPS * t->signal_count; k++) t->signals[k] += step * toward_signal(k);
}
static void move_forces(test_run *t, double step) {
  for (int64_t k = 0; k < STEPS * t->force_count; k++) t->forces[k] += step * toward_force(k);
}

// at zero it has one side only
static void damp(test_scene *s) { s->def.damping = 2; }

static void damp_and_keep(test_scene *s) {
  damp(s);
  test_scene_keep(s);
}

static void check_dimension(int dim, int side, void (*change)(test_scene *)) {
  test_run t;
  const test_choice choice = {
      .dim = dim, .side = side, .precision = CQ_FLOAT64, .threads = 1, .steps = STEPS, .change = change};
  test_run_open(&t, &choice);
  test_run_forward(&t, STEPS);
  test_run_backward(&t);
  double *gradient[CQ_FIELD_COUNT];
  TEST_FIELDS_EACH(f) gradient[f] = test_run_gradient(&t, f, 0);
  TEST_FIELDS_EACH(f) check_field(&t, f, gradient[f]);
  double along = 0;
  for (int64_t k = 0; k < STEPS * t.signal_count; k++) along += t.grad_signals[k] * toward_signal(k);
  check(&t, "signals", along, move_signals);
  along = 0;
  for (int64_t k = 0; k < STEPS * t.force_count; k++) along += t.grad_forces[k] * toward_force(k);
  check(&t, "forces", along, move_forces);
  test_run_close(&t);
}

// ---- bits -----------------------------------------------------------------------------------------------------------

static void check_bits(int dim, int side, int precision, void (*change)(test_scene *)) {
  cq_plan all, plan;
  test_choice choice = {
      .dim = dim, .side = side, .precision = precision, .threads = 1, .steps = STEPS, .change = change};
  const uint64_t one = test_hash_of(&choice, &all);
  CHECK(all.recompute == 1 && all.records == STEPS, "%dD: everything is kept by default", dim);
  // a GPU has none, and is asked once more
  for (choice.threads = 2; choice.threads <= test_of(8, 2); choice.threads += choice.threads < 4 ? 1 : 4)
    CHECK(test_hash_of(&choice, &plan) == one, "%dD float%d: %d threads give the bits of one", dim, 8 * precision,
          choice.threads);
  choice.threads = 2;
  for (int records = 1; records <= 5; records += test_of(2, 4)) {
    choice.memory = test_memory_of(&all, records, 2);
    CHECK(test_hash_of(&choice, &plan) == one,
          "%dD float%d: %d records and %d checkpoints give the bits of everything kept", dim, 8 * precision,
          plan.records, plan.checkpoints);
    CHECK(plan.bytes <= choice.memory && plan.recompute > 1, "%dD: the plan holds the budget", dim);
  }
}

int main(void) {
  check_dimension(2, test_of(16, 10), damp);
  check_dimension(3, test_of(9, 5), damp);
  check_bits(2, test_of(64, 24), CQ_FLOAT32, NULL);
  check_bits(3, test_of(17, 9), CQ_FLOAT64, NULL);
  check_bits(2, test_of(48, 16), CQ_FLOAT32, test_scene_viscous);
  if (test_device() != CQ_DEVICE_CUDA) {
    check_bits(2, 48, CQ_FLOAT32, test_scene_liquid);
    check_dimension(2, 16, damp_and_keep);
    check_dimension(3, 9, damp_and_keep);
    check_bits(2, 64, CQ_FLOAT32, test_scene_keep);
    check_bits(3, 17, CQ_FLOAT64, test_scene_keep);
  }
  check_bits(2, test_of(48, 16), CQ_FLOAT32, test_scene_plastic);
  check_bits(3, test_of(10, 6), CQ_FLOAT64, test_scene_plastic);
  return check_report();
}
