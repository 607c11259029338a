// Gradients of whole rollouts against central differences, for every field, in 2D and 3D; and the promises about them: the
// same bits for any memory budget and any number of threads.
#include "check.h"
#include "scene.h"

enum { STEPS = 12 };

typedef struct {
  test_scene scene;
  cq_world *world;
  cq_rollout *rollout;
  double *weights;           // of the final state in the loss, {n, width} for each state field
  int64_t offset[4], count;
} setup;

static const int32_t state_field[4] = {CQ_FIELD_POSITION, CQ_FIELD_VELOCITY, CQ_FIELD_AFFINE, CQ_FIELD_DEFORMATION};

static void readout_all(const setup *t, int32_t field, cq_readout *r, int64_t start[2], int32_t *particles) {
  cq_readout_init(r);
  r->kind = CQ_READOUT_GATHER;
  r->field = field;
  r->group_count = 1;
  start[0] = 0;
  start[1] = t->scene.n;
  for (int64_t p = 0; p < t->scene.n; p++) particles[p] = (int32_t)p;
  r->group_start = start;
  r->particles = particles;
}

static void open_setup(setup *t, int dim, int side, int precision, int threads, int64_t memory) {
  test_scene_make(&t->scene, dim, side, precision, 4);
  t->scene.def.threads = threads;
  REQUIRE(cq_world_create(&t->scene.def, &t->world) == CQ_OK);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = STEPS;
  def.memory = memory;
  REQUIRE(cq_rollout_create(t->world, &def, &t->rollout) == CQ_OK);
  t->count = 0;
  for (int f = 0; f < 4; f++) {
    t->offset[f] = t->count;
    t->count += cq_field_count(t->world, state_field[f]);
  }
  t->weights = test_array(t->count);
  for (int64_t k = 0; k < t->count; k++) t->weights[k] = test_random() / (double)t->scene.n;
}

static void close_setup(setup *t) {
  cq_world_destroy(t->world);
  test_scene_free(&t->scene);
  free(t->weights);
}

static double forward(setup *t) {
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
  for (int i = 0; i < STEPS; i++) {
    double u[3], f[15];
    for (int a = 0; a < 3; a++) u[a] = test_signal(i, a);
    for (int k = 0; k < 15; k++) f[k] = test_force(i, k);
    REQUIRE(cq_rollout_step(t->rollout, u, f) == CQ_OK);
  }
  double loss = 0, *out = test_array(t->count);
  int32_t *particles = malloc((size_t)t->scene.n * sizeof *particles);
  for (int f = 0; f < 4; f++) {
    cq_readout r;
    int64_t start[2];
    readout_all(t, state_field[f], &r, start, particles);
    REQUIRE(cq_rollout_read(t->rollout, &r, out) == CQ_OK);
    for (int64_t k = 0; k < cq_readout_count(t->world, &r); k++) loss += t->weights[t->offset[f] + k] * out[k];
  }
  free(out);
  free(particles);
  return loss;
}

// gradients of the last forward, of signals {STEPS, 3} and forces {STEPS, 15}
static void backward(setup *t, double *grad_u, double *grad_f) {
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  int32_t *particles = malloc((size_t)t->scene.n * sizeof *particles);
  for (int f = 0; f < 4; f++) {
    cq_readout r;
    int64_t start[2];
    readout_all(t, state_field[f], &r, start, particles);
    REQUIRE(cq_rollout_read_adjoint(t->rollout, &r, t->weights + t->offset[f]) == CQ_OK);
  }
  for (int i = STEPS - 1; i >= 0; i--) REQUIRE(cq_rollout_step_adjoint(t->rollout, grad_u + 3 * i, grad_f + 15 * i) == CQ_OK);
  free(particles);
}

// a random direction in a field, scaled to its values
static void check_field(setup *t, int32_t field, const char *name) {
  const int64_t count = cq_field_count(t->world, field);
  double walls[16] = {0}, best = 1e9;
  const double *value = test_scene_value(&t->scene, field, walls);
  double *gradient = test_array(count), *direction = test_array(count), *moved = test_array(count);
  REQUIRE(cq_rollout_gradient(t->rollout, field, gradient, 0) == CQ_OK);
  double along = 0;
  for (int64_t k = 0; k < count; k++) {
    const double scale = field == CQ_FIELD_POSITION ? 0.01 : value[k] != 0 ? fabs(value[k]) : 0.05;
    direction[k] = test_random() * scale;
    along += gradient[k] * direction[k];
  }
  double difference = 0;
  for (double step = 1e-4; step > 2e-7; step /= 10) {
    double loss[2];
    for (int side = 0; side < 2; side++) {
      for (int64_t k = 0; k < count; k++) moved[k] = value[k] + (side ? -step : step) * direction[k];
      REQUIRE(cq_rollout_set(t->rollout, field, moved, 0) == CQ_OK);
      loss[side] = forward(t);
    }
    const double d = (loss[0] - loss[1]) / (2 * step), error = fabs(d - along) / fmax(fabs(along), 1e-12);
    if (error < best) {
      best = error;
      difference = d;
    }
  }
  REQUIRE(cq_rollout_set(t->rollout, field, value, 0) == CQ_OK);
  CHECK(fabs(along) > 1e-9, "%dD %s has a gradient: %g", t->scene.def.dim, name, along);
  CHECK(best < 2e-6, "%dD %s: adjoint %.12g, central difference %.12g, relative error %.1e", t->scene.def.dim, name, along,
        difference, best);
  free(gradient);
  free(direction);
  free(moved);
}

static void check_signals(setup *t, const double *grad_u, const double *grad_f) {
  const double step = 1e-5;
  double along = 0, loss[2], force_along = 0, force_loss[2];
  for (int side = 0; side < 4; side++) {
    const double h = side % 2 ? -step : step;
    REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
    for (int i = 0; i < STEPS; i++) {
      double u[3], f[15];
      for (int a = 0; a < 3; a++) u[a] = test_signal(i, a) + (side < 2 ? h * cos(2 * i + a) : 0);
      for (int k = 0; k < 15; k++) f[k] = test_force(i, k) + (side >= 2 ? 0.01 * h * sin(2 * i + k) : 0);
      REQUIRE(cq_rollout_step(t->rollout, u, f) == CQ_OK);
    }
    double sum = 0, *out = test_array(t->count);
    int32_t *particles = malloc((size_t)t->scene.n * sizeof *particles);
    for (int f = 0; f < 4; f++) {
      cq_readout r;
      int64_t start[2];
      readout_all(t, state_field[f], &r, start, particles);
      REQUIRE(cq_rollout_read(t->rollout, &r, out) == CQ_OK);
      for (int64_t k = 0; k < cq_readout_count(t->world, &r); k++) sum += t->weights[t->offset[f] + k] * out[k];
    }
    free(out);
    free(particles);
    (side < 2 ? loss : force_loss)[side % 2] = sum;
  }
  for (int i = 0; i < STEPS; i++) {
    for (int a = 0; a < 3; a++) along += grad_u[3 * i + a] * cos(2 * i + a);
    for (int k = 0; k < 5 * t->scene.def.dim; k++) force_along += grad_f[5 * t->scene.def.dim * i + k] * 0.01 * sin(2 * i + k);
  }
  const double d = (loss[0] - loss[1]) / (2 * step), fd = (force_loss[0] - force_loss[1]) / (2 * step);
  CHECK(fabs(d - along) < 1e-6 * fabs(along), "%dD signals: adjoint %.12g, difference %.12g", t->scene.def.dim, along, d);
  CHECK(fabs(fd - force_along) < 1e-6 * fabs(force_along), "%dD forces: adjoint %.12g, difference %.12g", t->scene.def.dim,
        force_along, fd);
}

static void check_dimension(int dim, int side) {
  setup t;
  double grad_u[3 * STEPS], grad_f[15 * STEPS];
  open_setup(&t, dim, side, CQ_FLOAT64, 1, 0);
  forward(&t);
  backward(&t, grad_u, grad_f);
  for (int f = 0; f < CQ_FIELD_COUNT; f++) {
    forward(&t);
    backward(&t, grad_u, grad_f);
    check_field(&t, f, test_field_name[f]);
  }
  double packed_f[15 * STEPS];
  forward(&t);
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  {
    int32_t *particles = malloc((size_t)t.scene.n * sizeof *particles);
    for (int f = 0; f < 4; f++) {
      cq_readout r;
      int64_t start[2];
      readout_all(&t, state_field[f], &r, start, particles);
      REQUIRE(cq_rollout_read_adjoint(t.rollout, &r, t.weights + t.offset[f]) == CQ_OK);
    }
    for (int i = STEPS - 1; i >= 0; i--)
      REQUIRE(cq_rollout_step_adjoint(t.rollout, grad_u + 3 * i, packed_f + 5 * dim * i) == CQ_OK);
    free(particles);
  }
  check_signals(&t, grad_u, packed_f);
  close_setup(&t);
}

// hash of everything that comes back from one forward and backward pass
static uint64_t fingerprint(int dim, int side, int precision, int threads, int64_t memory, cq_plan *plan) {
  setup t;
  double grad_u[3 * STEPS], grad_f[15 * STEPS];
  open_setup(&t, dim, side, precision, threads, memory);
  const double loss = forward(&t);
  cq_rollout_plan(t.rollout, plan);
  backward(&t, grad_u, grad_f);
  uint64_t hash = 1469598103934665603u;
  hash = test_hash(hash, &loss, sizeof loss);
  hash = test_hash(hash, grad_u, sizeof grad_u);
  for (int f = 0; f < CQ_FIELD_COUNT; f++) {
    const int64_t count = cq_field_count(t.world, f);
    double *g = test_array(count);
    REQUIRE(cq_rollout_gradient(t.rollout, f, g, 0) == CQ_OK);
    hash = test_hash(hash, g, (size_t)count * sizeof *g);
    free(g);
  }
  close_setup(&t);
  return hash;
}

static void check_bits(int dim, int side, int precision) {
  cq_plan all, plan;
  const uint64_t one = fingerprint(dim, side, precision, 1, 0, &all);
  CHECK(all.recompute == 1 && all.records == STEPS, "%dD: everything is kept by default", dim);
  for (int threads = 2; threads <= 8; threads += threads < 4 ? 1 : 4)
    CHECK(fingerprint(dim, side, precision, threads, 0, &plan) == one, "%dD float%d: %d threads give the bits of one", dim,
          8 * precision, threads);
  for (int records = 1; records <= 5; records += 2) {
    const int64_t memory = records * all.record_bytes + 2 * all.slice_bytes;
    CHECK(fingerprint(dim, side, precision, 2, memory, &plan) == one,
          "%dD float%d: %d records and %d checkpoints give the bits of everything kept", dim, 8 * precision, plan.records,
          plan.checkpoints);
    CHECK(plan.bytes <= memory && plan.recompute > 1, "%dD: the plan holds the budget", dim);
  }
}

int main(void) {
  check_dimension(2, 16);
  check_dimension(3, 9);
  check_bits(2, 64, CQ_FLOAT32);
  check_bits(3, 17, CQ_FLOAT64);
  return check_report();
}
