// A batch of scenes is as many single rollouts, bit for bit; and readouts of it with their adjoints.
#include "rollout.h"
#include "world/state.h"

enum { STEPS = 15, BATCH = 3 };   // with a sorting on the way

// ---- scenes ---------------------------------------------------------------------------------------------------------

// what scene s of the batch has for a field: near what the world has, but its own
static double *own_value(const test_run *t, int32_t field, int s) {
  double walls[16] = {0};
  const double *value = test_scene_value(&t->scene, field, walls);
  const int64_t count = cq_field_count(t->world, field);
  double *own = test_array(count);
  for (int64_t k = 0; k < count; k++)
    own[k] =
        field == CQ_FIELD_POSITION ? value[k] + 1e-3 * s * sin((double)k) : value[k] * (1 + 0.02 * s * sin((double)k));
  return own;
}

static void set_all(const test_run *t, int first, int count) {
  TEST_FIELDS_EACH(f) {
    const int64_t width = cq_field_count(t->world, f);
    double *data = test_array(width * count);
    for (int s = 0; s < count; s++) {
      double *own = own_value(t, f, first + s);
      memcpy(data + s * width, own, (size_t)width * sizeof *own);
      free(own);
    }
    REQUIRE(cq_rollout_set(t->rollout, f, data, 1) == CQ_OK);
    free(data);
  }
}

// what a GPU may differ by, of the largest of an array
static double rounding = 1e-11;

// Bit for bit on the CPU; a GPU sorts the scenes of a batch together, not when each alone would
// be: sums have another order.
static int same(const double *a, const double *b, int64_t count) {
  if (test_device() == CQ_DEVICE_CPU) return !memcmp(a, b, (size_t)count * sizeof *a);
  double size = 0, worst = 0;
  for (int64_t k = 0; k < count; k++) size = fmax(size, fabs(b[k]));
  for (int64_t k = 0; k < count; k++) worst = check_worst(worst, fabs(a[k] - b[k]));
  return worst <= rounding * size;
}

static void check_scenes(int dim, int side, int precision, int threads, int records, void (*change)(test_scene *)) {
  rounding = precision == CQ_FLOAT32 ? 1e-4 : 1e-11;
  test_choice choice = {.dim = dim,
                        .side = side,
                        .precision = precision,
                        .threads = threads,
                        .steps = STEPS,
                        .batch = BATCH,
                        .change = change};
  cq_plan plan;
  test_run all;
  if (records) {
    test_hash_of(&choice, &plan);
    choice.memory = test_memory_of(&plan, records, 2);
  }
  test_run_open(&all, &choice);
  set_all(&all, 0, BATCH);
  test_run_forward(&all, STEPS);
  const int64_t size = all.offset[4];
  double *states = test_array(BATCH * size), *state = test_array(size);
  test_run_state(&all, states);
  test_run_backward(&all);
  choice.batch = 1;
  choice.memory = 0;
  for (int s = 0; s < BATCH; s++) {
    test_run one;
    choice.first = s;
    test_run_open(&one, &choice);
    set_all(&one, s, 1);
    test_run_forward(&one, STEPS);
    test_run_state(&one, state);
    test_run_backward(&one);
    CHECK(same(states + s * size, state, size), "%dD: scene %d of a batch has another state than alone", dim, s);
    CHECK(s == 0 || !same(states, state, size), "%dD: scene %d is scene 0", dim, s);
    for (int i = 0; i < STEPS; i++) {
      CHECK(same(all.grad_signals + i * all.signal_count + s * one.signal_count,
                 one.grad_signals + i * one.signal_count, one.signal_count),
            "%dD: scene %d: other gradients of the signals of step %d", dim, s, i);
      CHECK(same(all.grad_forces + i * all.force_count + s * one.force_count, one.grad_forces + i * one.force_count,
                 one.force_count), "%dD: scene %d: other gradients of the forces of step %d", dim, s, i);
    }
    TEST_FIELDS_EACH(f) {
      const int64_t count = cq_field_count(one.world, f);
      double *each = test_run_gradient(&all, f, 1), *alone = test_run_gradient(&one, f, 0);
      CHECK(same(each + s * count, alone, count), "%dD: scene %d: other gradients of %s", dim, s,
            cq_field_describe(f)->name);
      free(each);
      free(alone);
    }
    test_run_close(&one);
  }
  // the gradient of what scenes share is the sum over them
  TEST_FIELDS_EACH(f) {
    const int64_t count = cq_field_count(all.world, f);
    double *each = test_run_gradient(&all, f, 1), *shared = test_run_gradient(&all, f, 0), size_of = 0;
    for (int s = 1; s < BATCH; s++)
      for (int64_t k = 0; k < count; k++) each[k] += each[s * count + k];
    for (int64_t k = 0; k < count; k++) size_of = fmax(size_of, fabs(each[k]));
    CHECK(same(each, shared, count) && size_of > 0, "%dD: the shared gradient of %s is no sum", dim,
          cq_field_describe(f)->name);
    free(each);
    free(shared);
  }
  // what was set for each scene can be set for all again
  double *first = own_value(&all, CQ_FIELD_VELOCITY, 0);
  TEST_FIELDS_EACH(f) {
    double *own = own_value(&all, f, 0);
    REQUIRE(cq_rollout_set(all.rollout, f, own, 0) == CQ_OK);
    free(own);
  }
  memcpy(all.signals + all.signal_count / BATCH, all.signals, (size_t)(all.signal_count / BATCH) * sizeof(double));
  memcpy(all.forces + all.force_count / BATCH, all.forces, (size_t)(all.force_count / BATCH) * sizeof(double));
  test_run_forward(&all, 1);
  test_run_state(&all, states);
  CHECK(same(states, states + size, size), "%dD: scenes with shared fields and equal controls differ", dim);
  free(first);
  free(states);
  free(state);
  test_run_close(&all);
}

// ---- readouts -------------------------------------------------------------------------------------------------------

enum { GROUPS = 3 };

typedef struct {
  cq_readout readout;
  int64_t start[GROUPS + 1];
  int32_t *particles;
} groups;

// groups that overlap: every third, every second and the first quarter of the particles,
// the last one in a jumbled order
static void make_groups(groups *g, int64_t n, int kind, int field, int weighting) {
  g->particles = malloc((size_t)(2 * n) * sizeof *g->particles);
  int64_t count = 0;
  g->start[0] = 0;
  for (int64_t p = 0; p < n; p += 3) g->particles[count++] = (int32_t)p;
  g->start[1] = count;
  for (int64_t p = 0; p < n; p += 2) g->particles[count++] = (int32_t)p;
  g->start[2] = count;
  for (int64_t p = 0; p < n / 4; p++) g->particles[count++] = (int32_t)((p * 7 + 3) % n);
  g->start[3] = count;
  cq_readout_init(&g->readout);
  g->readout.kind = kind;
  g->readout.fields = 1u << field;
  g->readout.weighting = weighting;
  g->readout.group_count = GROUPS;
  g->readout.group_start = g->start;
  g->readout.particles = g->particles;
}

static double reading_loss(test_run *t, const groups *g, const double *weights, double *out, int steps) {
  const int64_t count = cq_readout_count(t->world, &g->readout) * t->choice.batch;
  double loss = 0;
  test_run_forward(t, steps);
  REQUIRE(cq_rollout_read(t->rollout, &g->readout, out) == CQ_OK);
  for (int64_t k = 0; k < count; k++) loss += weights[k] * out[k];
  return loss;
}

// what the adjoint of a readout may be off by, relative to the difference
static const double NEAR = 3e-6;

// against central differences toward a direction in everything of a state, in the weights, and in the constants
static void check_readout(test_run *t, int kind, int field, int weighting) {
  static const char *const kinds[] = {"mean", "second moment", "gather", "sum"};
  groups g;
  make_groups(&g, t->scene.n, kind, field, weighting);
  const int64_t count = cq_readout_count(t->world, &g.readout) * t->choice.batch;
  double *out = test_array(count), *weights = test_array(count);
  for (int64_t k = 0; k < count; k++) weights[k] = test_random();
  const int steps = 2;
  reading_loss(t, &g, weights, out, steps);
  REQUIRE(cq_rollout_begin_adjoint(t->rollout) == CQ_OK);
  REQUIRE(cq_rollout_read_adjoint(t->rollout, &g.readout, weights) == CQ_OK);
  for (int i = 0; i < steps; i++) REQUIRE(cq_rollout_run_adjoint(t->rollout, 1, NULL, NULL) == CQ_OK);
  static const int32_t moved[] = {CQ_FIELD_VELOCITY, CQ_FIELD_DEFORMATION, CQ_FIELD_MASS,
                                  CQ_FIELD_VOLUME,   CQ_FIELD_YOUNG,       CQ_FIELD_POISSON};
  enum { MOVED = sizeof moved / sizeof *moved };
  double *gradient[MOVED];
  for (int f = 0; f < MOVED; f++) gradient[f] = test_run_gradient(t, moved[f], 0);
  for (int f = 0; f < MOVED; f++) {
    const int64_t width = cq_field_count(t->world, moved[f]);
    const double *value = test_scene_value(&t->scene, moved[f], NULL);
    double *direction = test_array(width), *at = test_array(width), along = 0, terms = 0, best = 1e9;
    for (int64_t k = 0; k < width; k++) {
      direction[k] = test_random() * fabs(value[k]);
      along += gradient[f][k] * direction[k];
      terms += fabs(gradient[f][k] * direction[k]);
    }
    // the first difference that is near enough will do
    static const double step[] = {1e-4, 1e-5, 1e-3};
    for (int tried = 0; tried < 3 && best >= NEAR; tried++) {
      double loss[2];
      for (int side = 0; side < 2; side++) {
        for (int64_t k = 0; k < width; k++) at[k] = value[k] + (side ? -step[tried] : step[tried]) * direction[k];
        REQUIRE(cq_rollout_set(t->rollout, moved[f], at, 0) == CQ_OK);
        loss[side] = reading_loss(t, &g, weights, out, steps);
      }
      best = fmin(best, fabs((loss[0] - loss[1]) / (2 * step[tried]) - along) / fmax(fabs(along), 0.01 * terms));
    }
    REQUIRE(cq_rollout_set(t->rollout, moved[f], value, 0) == CQ_OK);
    CHECK(fabs(along) > 1e-12 && best < NEAR, "%dD %s of %s, weighting %d, toward %s: adjoint %g, off by %.1e",
          t->choice.dim, kinds[kind], cq_quantity_describe(field)->name, weighting, cq_field_describe(moved[f])->name,
          along, best);
    free(gradient[f]);
    free(direction);
    free(at);
  }
  free(out);
  free(weights);
  free(g.particles);
}

// the mean and the moment of what gather gives, by their definition
static void check_meaning(test_run *t, int32_t field) {
  groups g;
  const int64_t n = t->scene.n;
  const int width = cq_quantity_width(field, t->choice.dim);
  test_run_forward(t, 1);
  for (int weighting = CQ_WEIGHT_MASS; weighting <= CQ_WEIGHT_VOLUME; weighting++) {
    double worst = 0;
    make_groups(&g, n, CQ_READOUT_GATHER, field, weighting);
    const int64_t gathered = g.start[GROUPS] * width;
    double *q = test_array(t->choice.batch * gathered), *mean = test_array(t->choice.batch * GROUPS * width);
    double *sum = test_array(t->choice.batch * GROUPS * width);
    double *moment = test_array(t->choice.batch * GROUPS * width * width),
           *whole = test_array(t->choice.batch * n * width);
    REQUIRE(cq_rollout_read(t->rollout, &g.readout, q) == CQ_OK);
    test_run_gather(t, field, 0, whole);
    g.readout.kind = CQ_READOUT_MEAN;
    REQUIRE(cq_rollout_read(t->rollout, &g.readout, mean) == CQ_OK);
    g.readout.kind = CQ_READOUT_SUM;
    REQUIRE(cq_rollout_read(t->rollout, &g.readout, sum) == CQ_OK);
    g.readout.kind = CQ_READOUT_SECOND_MOMENT;
    REQUIRE(cq_rollout_read(t->rollout, &g.readout, moment) == CQ_OK);
    for (int s = 0; s < t->choice.batch; s++)
      for (int k = 0; k < GROUPS; k++)
        for (int i = 0; i < width; i++)
          for (int j = 0; j < width; j++) {
            double total = 0, first = 0, second = 0;
            for (int64_t e = g.start[k]; e < g.start[k + 1]; e++) {
              const int32_t p = g.particles[e];
              const double w = weighting == CQ_WEIGHT_MASS     ? t->scene.mass[p]
                               : weighting == CQ_WEIGHT_VOLUME ? t->scene.volume[p]
                                                               : 1;
              const double *at = q + s * gathered + e * width, *user = whole + (s * n + g.particles[e]) * width;
              worst = check_worst(worst, fabs(at[i] - user[i]));
              total += w;
              first += w * at[i];
              second += w * at[i] * at[j];
            }
            worst = check_worst(worst, fabs(mean[(s * GROUPS + k) * width + i] - first / total));
            worst = check_worst(worst, fabs(sum[(s * GROUPS + k) * width + i] - first) / fmax(1, fabs(first)));
            const double off = moment[((s * GROUPS + k) * width + i) * width + j] - second / total;
            worst = check_worst(worst, fabs(off) / fmax(1, fabs(second / total)));
          }
    CHECK(worst < 1e-13, "%dD readouts of %s, weighting %d are off by %g", t->choice.dim,
          cq_quantity_describe(field)->name, weighting, worst);
    free(q);
    free(mean);
    free(sum);
    free(moment);
    free(whole);
    free(g.particles);
  }
}

static void check_readouts(int dim, int side, int batch, int fields) {
  test_run t;
  const test_choice choice = {
      .dim = dim, .side = side, .precision = CQ_FLOAT64, .threads = 2, .steps = 2, .batch = batch};
  test_run_open(&t, &choice);
  for (int f = 0; f < fields; f++) {
    check_meaning(&t, test_state_field[f]);
    for (int kind = CQ_READOUT_MEAN; kind <= CQ_READOUT_SUM; kind++)
      for (int weighting = CQ_WEIGHT_MASS; weighting <= CQ_WEIGHT_VOLUME; weighting++)
        check_readout(&t, kind, test_state_field[f], weighting);
  }
  for (int q = CQ_DERIVED_PIOLA; q < CQ_QUANTITY_COUNT; q++) {
    check_meaning(&t, q);
    for (int kind = CQ_READOUT_MEAN; kind <= CQ_READOUT_SUM; kind++) check_readout(&t, kind, q, (q + kind) % 3);
  }
  test_run_close(&t);
}

// Several fields in one readout are those of each alone; long lists are read alike by one thread and by several, which
// take turns in the first calls.
static void check_together(int dim, int side, int kind, int threads, double *gradient) {
  test_run t;
  groups g;
  const test_choice choice = {.dim = dim, .side = side, .precision = CQ_FLOAT32, .threads = threads, .steps = 1};
  test_run_open(&t, &choice);
  make_groups(&g, t.scene.n, kind, 0, CQ_WEIGHT_MASS);
  g.readout.fields = (1u << CQ_QUANTITY_COUNT) - 1;
  const int64_t count = cq_readout_count(t.world, &g.readout), size = t.scene.n * dim;
  double *out = test_array(count), *again = test_array(count), *weights = test_array(count),
         *separate = test_array(size);
  for (int64_t k = 0; k < count; k++) weights[k] = test_random();
  test_run_forward(&t, 1);
  REQUIRE(cq_rollout_read(t.rollout, &g.readout, out) == CQ_OK);
  for (int turn = 0; turn < 4; turn++) {
    REQUIRE(cq_rollout_read(t.rollout, &g.readout, again) == CQ_OK);
    CHECK(same(out, again, count), "%dD: kind %d is read otherwise by other threads of %d", dim, kind, threads);
  }
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  REQUIRE(cq_rollout_read_adjoint(t.rollout, &g.readout, weights) == CQ_OK);
  REQUIRE(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL) == CQ_OK);
  REQUIRE(cq_rollout_gradient(t.rollout, CQ_FIELD_VELOCITY, gradient, 0) == CQ_OK);
  REQUIRE(cq_rollout_gradient(t.rollout, CQ_FIELD_MASS, gradient + size, 0) == CQ_OK);
  test_run_forward(&t, 1);
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  int64_t at = 0;
  for (int q = 0; q < CQ_QUANTITY_COUNT; q++) {
    g.readout.fields = 1u << q;
    REQUIRE(cq_rollout_read(t.rollout, &g.readout, again) == CQ_OK);
    REQUIRE(cq_rollout_read_adjoint(t.rollout, &g.readout, weights + at) == CQ_OK);
    const int64_t own = cq_readout_count(t.world, &g.readout);
    CHECK(same(out + at, again, own), "%dD: kind %d of %s is another one among all quantities", dim, kind,
          cq_quantity_describe(q)->name);
    at += own;
  }
  REQUIRE(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL) == CQ_OK);
  REQUIRE(cq_rollout_gradient(t.rollout, CQ_FIELD_VELOCITY, separate, 0) == CQ_OK);
  // derived quantities give to the fields that others give to: then the order of the sums counts
  double size_of = 0, apart = 0;
  for (int64_t k = 0; k < size; k++) {
    size_of = fmax(size_of, fabs(gradient[k]));
    apart = check_worst(apart, fabs(gradient[k] - separate[k]));
  }
  CHECK(at == count && apart <= 1e-5 * size_of, "%dD: the adjoint of kind %d is off by %g of %g among all quantities",
        dim, kind, apart, size_of);
  free(out);
  free(again);
  free(weights);
  free(separate);
  free(g.particles);
  test_run_close(&t);
}

static void check_threads(int dim, int side) {
  const int64_t size = (int64_t)pow(side, dim) * (dim + 1);
  double *one = test_array(size), *three = test_array(size);
  for (int kind = CQ_READOUT_MEAN; kind <= CQ_READOUT_SUM; kind++) {
    check_together(dim, side, kind, 1, one);
    check_together(dim, side, kind, 3, three);   // to a GPU the same again
    CHECK(same(one, three, size), "%dD: the adjoint of readouts of kind %d depends on threads", dim, kind);
  }
  free(one);
  free(three);
}

int main(void) {
  const int side = test_of(12, 9);
  check_scenes(2, side, CQ_FLOAT32, 2, 0, NULL);
  check_scenes(2, side, CQ_FLOAT32, 1, 4, NULL);
  check_scenes(2, side, CQ_FLOAT64, 2, 4, test_scene_viscous);
  check_scenes(2, side, CQ_FLOAT64, 1, 4, test_scene_plastic);
  if (test_device() != CQ_DEVICE_CUDA) check_scenes(2, side, CQ_FLOAT64, 2, 4, test_scene_keep);
  check_scenes(3, test_of(7, 5), CQ_FLOAT64, 2, 0, NULL);   // the last one, so that what follows is held to double
  check_readouts(2, test_of(12, 8), 2, 4);
  check_readouts(3, test_of(6, 4), 1, 4);
  // enough particles that the threads share the reading, and that groups have several portions on a GPU
  check_threads(2, test_of(130, 70));
  check_threads(3, test_of(25, 16));
  return check_report();
}
