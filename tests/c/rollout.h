// A rollout of the test scene with a random linear loss of its last state, forward and back, for the C tests.
#ifndef TEST_ROLLOUT_H
#define TEST_ROLLOUT_H

#include "check.h"
#include "scene.h"

typedef struct {
  int dim, side, precision, threads, simd, substeps, steps, batch;
  int first;                 // scene of a batch that the first one stands for: signals, forces and weights are its own
  int forward_only;
  int contact, shaking;      // 1: impulses are read; walls change their velocity at each control step, and gravity does
  int running;               // 1: the loss is of all states but the first, each as the last
  int stride;                // control steps in a call, where the loss is of the last state only; 0: one
  int64_t memory;
  int device;                // another one than that of the tests: cq_device_kind
  void (*change)(test_scene *scene);   // before its world is made
} test_choice;

typedef struct {
  test_choice choice;
  test_scene scene;
  cq_world *world;
  cq_rollout *rollout;
  double *weights;           // {batch, offset[4]}: of each state field in turn, {n, width}
  int64_t offset[5];
  double *signals, *forces;            // {steps, batch, actuators}, {steps, batch, forces, dim}
  double *grad_signals, *grad_forces;  // of the same shape
  int64_t signal_count, force_count;   // of one step, all scenes
} test_run;

static const int32_t test_state_field[4] = {CQ_FIELD_POSITION, CQ_FIELD_VELOCITY, CQ_FIELD_AFFINE,
                                            CQ_FIELD_DEFORMATION};

// velocities of walls {batch, steps, walls, dim} and gravity {batch, steps, dim}, near those of the scene
static inline void test_run_shake(test_run *t) {
  const int64_t steps = t->choice.steps, numbers = (int64_t)t->scene.def.wall_count * t->choice.dim;
  double *velocity = test_array(t->choice.batch * steps * numbers);
  for (int64_t k = 0; k < t->choice.batch * steps * numbers; k++) {
    const int64_t of = k % numbers, step = k / numbers % steps;
    velocity[k] = t->scene.def.walls[of / t->choice.dim].velocity[of % t->choice.dim] +
                  0.1 * sin(0.9 * (double)step + (double)of + 0.3 * (double)(k / numbers / steps));
  }
  REQUIRE(cq_rollout_set_walls(t->rollout, velocity, 1) == CQ_OK);
  free(velocity);
  const int64_t dim = t->choice.dim, width = t->choice.batch * steps * dim;
  double *gravity = test_array(width);
  for (int64_t k = 0; k < width; k++)
    gravity[k] = t->scene.def.gravity[k % dim] + 0.4 * sin(1.3 * (double)(k / dim) + (double)k);
  REQUIRE(cq_rollout_set_gravity(t->rollout, gravity, 1) == CQ_OK);
  free(gravity);
}

// makes the rollout of a run whose choice, scene and world are there, and what it is run with
static inline void test_run_make(test_run *t) {
  const test_choice *c = &t->choice;
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = c->steps;
  def.batch = c->batch;
  def.memory = c->memory;
  def.differentiable = !c->forward_only;
  def.contact = c->contact;
  REQUIRE(cq_rollout_create(t->world, &def, &t->rollout) == CQ_OK);
  if (c->shaking) test_run_shake(t);
  for (int f = 0; f < 4; f++) t->offset[f + 1] = t->offset[f] + cq_field_count(t->world, test_state_field[f]);
  t->weights = test_array(c->batch * t->offset[4]);
  // as many draws for each scene as it has numbers: those of scene k do not depend on the batch
  for (int64_t k = -c->first * t->offset[4]; k < c->batch * t->offset[4]; k++) {
    const double w = test_random() / (double)t->scene.n;
    if (k >= 0) t->weights[k] = w;
  }
  const int64_t actuators = t->scene.def.actuator_count, components = t->scene.def.force_count * c->dim;
  t->signal_count = c->batch * actuators;
  t->force_count = c->batch * components;
  t->signals = test_array(c->steps * t->signal_count);
  t->forces = test_array(c->steps * t->force_count);
  t->grad_signals = test_array(c->steps * t->signal_count);
  t->grad_forces = test_array(c->steps * t->force_count);
  for (int i = 0; i < c->steps; i++) {
    for (int64_t k = 0; k < t->signal_count; k++)
      t->signals[i * t->signal_count + k] = test_signal(i, (int)(k + c->first * actuators));
    for (int64_t k = 0; k < t->force_count; k++)
      t->forces[i * t->force_count + k] = test_force(i, k + c->first * components);
  }
}

// zeros in a choice mean: the default of the scene or the engine
static inline void test_run_open(test_run *t, const test_choice *choice) {
  memset(t, 0, sizeof *t);
  t->choice = *choice;
  test_choice *c = &t->choice;
  if (!c->batch) c->batch = 1;
  test_scene_make(&t->scene, c->dim, c->side, c->precision, 4);
  t->scene.def.threads = c->threads;
  t->scene.def.simd = c->simd;
  if (c->substeps) t->scene.def.substeps = c->substeps;
  if (c->device) t->scene.def.device = c->device;
  if (c->change) c->change(&t->scene);
  REQUIRE(cq_world_create(&t->scene.def, &t->world) == CQ_OK);
  test_run_make(t);
}

static inline void test_run_free(test_run *t) {
  double *owned[] = {t->weights, t->signals, t->forces, t->grad_signals, t->grad_forces};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) free(owned[k]);
}

static inline void test_run_close(test_run *t) {
  cq_world_destroy(t->world);
  test_scene_free(&t->scene);
  test_run_free(t);
}

// a whole state field of all scenes, {batch, n, width}: read to data, or its adjoint added from data
static inline void test_run_gather(const test_run *t, int32_t field, int adjoint, double *data) {
  const int64_t start[2] = {0, t->scene.n};
  int32_t *particles = (int32_t *)malloc((size_t)t->scene.n * sizeof *particles);
  for (int64_t p = 0; p < t->scene.n; p++) particles[p] = (int32_t)p;
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_GATHER;
  r.fields = 1u << field;
  r.group_count = 1;
  r.group_start = start;
  r.particles = particles;
  REQUIRE((adjoint ? cq_rollout_read_adjoint(t->rollout, &r, data) : cq_rollout_read(t->rollout, &r, data)) == CQ_OK);
  free(particles);
}

// the live state, {batch, offset[4]} as the weights
static inline void test_run_state(const test_run *t, double *state) {
  for (int f = 0; f < 4; f++) {
    const int64_t count = t->offset[f + 1] - t->offset[f];
    double *out = test_array(t->choice.batch * count);
    test_run_gather(t, test_state_field[f], 0, out);
    for (int s = 0; s < t->choice.batch; s++)
      memcpy(state + s * t->offset[4] + t->offset[f], out + s * count, (size_t)count * sizeof *out);
    free(out);
  }
}

// adds the weights to the adjoint of the live state
static inline void test_run_seed(const test_run *t) {
  for (int f = 0; f < 4; f++) {
    const int64_t count = t->offset[f + 1] - t->offset[f];
    double *weights = test_array(t->choice.batch * count);
    for (int s = 0; s < t->choice.batch; s++)
      memcpy(weights + s * count, t->weights + s * t->offset[4] + t->offset[f], (size_t)count * sizeof *weights);
    test_run_gather(t, test_state_field[f], 1, weights);
    free(weights);
  }
}

static inline cq_status test_run_steps(test_run *t, int i, int count) {
  return cq_rollout_run(t->rollout, count, t->signals + i * t->signal_count, t->forces + i * t->force_count);
}
static inline cq_status test_run_step(test_run *t, int i) { return test_run_steps(t, i, 1); }

// control steps in the next call, of those that are left
static inline int test_run_stride(const test_run *t, int left) {
  const int stride = t->choice.running || !t->choice.stride ? 1 : t->choice.stride;
  return stride < left ? stride : left;
}

// the loss of the first steps of a rollout that has begun
static inline double test_run_on(test_run *t, int steps) {
  double loss = 0, *state = test_array(t->choice.batch * t->offset[4]);
  for (int i = 0, count; i < steps; i += count) {
    count = test_run_stride(t, steps - i);
    REQUIRE(test_run_steps(t, i, count) == CQ_OK);
    if (!t->choice.running && i + count < steps) continue;
    test_run_state(t, state);
    for (int64_t k = 0; k < t->choice.batch * t->offset[4]; k++) loss += t->weights[k] * state[k];
  }
  free(state);
  return loss;
}

// the loss of the first steps
static inline double test_run_forward(test_run *t, int steps) {
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
  return test_run_on(t, steps);
}

// back over the last forward, after its adjoint has begun
static inline void test_run_back(test_run *t) {
  const int steps = cq_rollout_at(t->rollout);
  for (int i = steps, count; i > 0; i -= count) {
    if (t->choice.running || i == steps) test_run_seed(t);
    count = test_run_stride(t, i);
    REQUIRE(cq_rollout_run_adjoint(t->rollout, count, t->grad_signals + (i - count) * t->signal_count,
                                   t->grad_forces + (i - count) * t->force_count) == CQ_OK);
  }
}

// gradients of the last forward
static inline void test_run_backward(test_run *t) {
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  test_run_back(t);
}

static inline double *test_run_gradient(const test_run *t, int32_t field, int per_scene) {
  double *g = test_array(cq_field_count(t->world, field) * (per_scene ? t->choice.batch : 1));
  REQUIRE(cq_rollout_gradient(t->rollout, field, g, per_scene) == CQ_OK);
  return g;
}

// hash of a loss and of all gradients of the last forward, which made so many steps
static inline uint64_t test_run_hash_back(test_run *t, int steps, double loss) {
  test_run_backward(t);
  uint64_t hash = test_hash(1469598103934665603u, &loss, sizeof loss);
  hash = test_hash(hash, t->grad_signals, (size_t)(steps * t->signal_count) * sizeof(double));
  hash = test_hash(hash, t->grad_forces, (size_t)(steps * t->force_count) * sizeof(double));
  TEST_FIELDS_EACH(f) {
    double *g = test_run_gradient(t, f, 1);
    hash = test_hash(hash, g, (size_t)(cq_field_count(t->world, f) * t->choice.batch) * sizeof *g);
    free(g);
  }
  return hash;
}

// hash of the loss after the first steps and of all gradients
static inline uint64_t test_run_hash(test_run *t, int steps) {
  return test_run_hash_back(t, steps, test_run_forward(t, steps));
}

// The memory of some records and checkpoints in a rollout that by default keeps all its records: `all` is that plan,
// whose other bytes are the forces of all control steps.
static inline int64_t test_memory_of(const cq_plan *all, int64_t records, int64_t checkpoints) {
  return all->bytes + (records - all->records) * all->record_bytes + checkpoints * all->slice_bytes;
}

static inline uint64_t test_hash_of(const test_choice *choice, cq_plan *plan) {
  test_run t;
  test_run_open(&t, choice);
  const uint64_t hash = test_run_hash(&t, choice->steps);
  if (plan) cq_rollout_plan(t.rollout, plan);
  test_run_close(&t);
  return hash;
}

#endif
