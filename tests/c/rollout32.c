// Single precision and instruction sets: float32 gives the gradients of float64 to its rounding, all instruction sets
// of this machine give the same to rounding, and each of them the same bits for any number of threads.
#include "cpu/kernels.h"
#include "rollout.h"

enum { STEPS = 10, LEVELS = 3 };
static const int level[LEVELS] = {1, 3, 4};

static int has(int dim, int precision, int simd) { return cq_kernels_find(dim, precision, simd) != NULL; }

// gradients of all fields, signals and forces, one after another
typedef struct {
  int64_t start[CQ_FIELD_COUNT + 3];
  double *gradient, *state;
} outcome;

enum { SIGNALS = CQ_FIELD_COUNT, FORCES, PARTS };
static const char *part_name(int part) {
  return part == SIGNALS ? "signals" : part == FORCES ? "forces" : cq_field_describe(part)->name;
}

static outcome run(int dim, int side, int precision, int simd, void (*change)(test_scene *)) {
  test_run t;
  outcome o = {.start = {0}};
  const test_choice choice = {
      .dim = dim, .side = side, .precision = precision, .simd = simd, .threads = 2, .steps = STEPS, .change = change};
  test_run_open(&t, &choice);
  o.state = test_array(t.offset[4]);
  test_run_forward(&t, STEPS);
  test_run_state(&t, o.state);
  test_run_backward(&t);
  for (int k = 0; k < PARTS; k++)
    o.start[k + 1] = o.start[k] + (k == SIGNALS  ? STEPS * t.signal_count
                                   : k == FORCES ? STEPS * t.force_count
                                   : test_has_field(k) ? cq_field_count(t.world, k) : 0);
  o.gradient = test_array(o.start[PARTS]);
  for (int k = 0; k < PARTS; k++) {
    double *g = k < SIGNALS && test_has_field(k) ? test_run_gradient(&t, k, 0) : NULL;
    const size_t count = (size_t)(o.start[k + 1] - o.start[k]);
    if (count)
      memcpy(o.gradient + o.start[k],
             k == SIGNALS  ? t.grad_signals
             : k == FORCES ? t.grad_forces
                           : g,
             count * sizeof *g);
    free(g);
  }
  test_run_close(&t);
  return o;
}

static void drop(outcome *o) {
  free(o->gradient);
  free(o->state);
}

// |a - b| / |b| of each part
static void compare(const outcome *got, const outcome *wanted, double limit, int dim, const char *what) {
  for (int k = 0; k < PARTS; k++) {
    if (wanted->start[k + 1] == wanted->start[k]) continue;   // a constant of other materials
    double off = 0, size = 0;
    for (int64_t i = got->start[k]; i < got->start[k + 1]; i++) {
      off += (got->gradient[i] - wanted->gradient[i]) * (got->gradient[i] - wanted->gradient[i]);
      size += wanted->gradient[i] * wanted->gradient[i];
    }
    // one number, whose terms v . dL/dv of all nodes and steps cancel but for a little
    const double times = k == CQ_FIELD_DAMPING ? 5 : 1;
    CHECK(size > 0 && sqrt(off / size) <= times * limit, "%dD %s: gradient of %s is off by %.1e of %.1e", dim, what,
          part_name(k), sqrt(off), sqrt(size));
  }
}

// single: what float32 may be off by
static void check_precision(int dim, int side, double single, void (*change)(test_scene *)) {
  outcome reference = run(dim, side, CQ_FLOAT64, 1, change);
  for (int k = 0; k < LEVELS; k++) {
    char what[64];
    if (has(dim, CQ_FLOAT64, level[k]) && level[k] != 1) {
      outcome o = run(dim, side, CQ_FLOAT64, level[k], change);
      snprintf(what, sizeof what, "float64, simd level %d", level[k]);
      compare(&o, &reference, 1e-11, dim, what);
      drop(&o);
    }
    if (has(dim, CQ_FLOAT32, level[k])) {
      outcome o = run(dim, side, CQ_FLOAT32, level[k], change);
      snprintf(what, sizeof what, "float32, simd level %d", level[k]);
      compare(&o, &reference, single, dim, what);
      drop(&o);
    }
  }
  drop(&reference);
}

// the golden property: results are a function of the scene, the precision and the instruction set alone
static void check_threads(int dim, int side, int precision, int simd) {
  if (!has(dim, precision, simd)) return;
  static const int threads[] = {2, 3, 4, 8};
  test_choice choice = {.dim = dim, .side = side, .precision = precision, .simd = simd, .threads = 1, .steps = 4};
  const uint64_t one = test_hash_of(&choice, NULL);
  for (int k = 0; k < 4; k++) {
    choice.threads = threads[k];
    CHECK(test_hash_of(&choice, NULL) == one, "%dD float%d, simd level %d: %d threads give other bits than one", dim,
          8 * precision, simd, threads[k]);
  }
}

// A state larger than the caches is written past them, where the instruction set can: the same state as without.
static void check_large(int dim, int side, int precision, double limit) {
  if (test_device() != CQ_DEVICE_CPU) return;
  double *wanted = NULL;
  for (int k = 0; k < LEVELS; k++) {
    if (!has(dim, precision, level[k])) continue;
    test_run t;
    const test_choice choice = {
        .dim = dim, .side = side, .precision = precision, .simd = level[k], .steps = 1, .forward_only = 1};
    test_run_open(&t, &choice);
    CHECK(t.offset[4] * precision > CQ_STREAM_BYTES, "%dD float%d: a state of %lld bytes is not large", dim,
          8 * precision, (long long)t.offset[4] * precision);
    double *state = test_array(t.offset[4]), off = 0, size = 0;
    test_run_forward(&t, 1);
    test_run_state(&t, state);
    for (int64_t i = 0; wanted && i < t.offset[4]; i++) {
      off = check_worst(off, fabs(state[i] - wanted[i]));
      size = fmax(size, fabs(wanted[i]));
    }
    CHECK(off <= limit * size, "%dD float%d, simd level %d: a large state is off by %.1e of %.1e", dim, 8 * precision,
          level[k], off, size);
    test_run_close(&t);
    if (wanted)
      free(state);
    else
      wanted = state;
  }
  free(wanted);
}

int main(void) {
  check_precision(2, 24, 3e-5, NULL);
  check_precision(3, 9, 3e-5, NULL);
  check_precision(2, 12, 1e-4, test_scene_viscous);
  check_precision(3, 7, 1e-4, test_scene_viscous);
  // in float32 one stretch within rounding of its kink lies on the other side
  check_precision(2, 12, 1e-2, test_scene_plastic);
  check_precision(3, 7, 1e-4, test_scene_plastic);
  for (int k = 0; k < LEVELS; k++) {
    check_threads(2, 56, CQ_FLOAT32, level[k]);   // two ranges of particles, and four
    check_threads(2, 40, CQ_FLOAT64, level[k]);
    check_threads(3, 15, CQ_FLOAT32, level[k]);
    check_threads(3, 12, CQ_FLOAT64, level[k]);
  }
  check_large(3, 60, CQ_FLOAT32, 1e-5);
  check_large(3, 48, CQ_FLOAT64, 1e-13);
  return check_report();
}
