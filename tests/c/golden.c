// Golden bits: a rollout with walls of every law, pins, three materials, actuation and forces gives the bits
// that it gave when these numbers were written, states and gradients alike. A change that is meant to change no
// result is held to it; one that is meant to prints the new table with `build/tests/golden print`. Bits are
// those of one compiler: Debian's gcc 12.
#include "cpu/kernels.h"
#include "rollout.h"

enum { STEPS = 12 };

static void add_all(test_scene *scene) {
  test_scene_add_mover(scene);
  test_scene_add_pins(scene);
}

typedef struct {
  int dim, precision, simd;
  uint64_t hash;
} golden;

static const golden table[] = {
#include "golden.inc"
};

// the fields whose gradients are in the hash
static const int32_t hashed[] = {CQ_FIELD_POSITION,         CQ_FIELD_VELOCITY, CQ_FIELD_AFFINE,  CQ_FIELD_DEFORMATION,
                                 CQ_FIELD_VOLUME,           CQ_FIELD_MASS,     CQ_FIELD_YOUNG,   CQ_FIELD_POISSON,
                                 CQ_FIELD_ACTUATION_WEIGHT, CQ_FIELD_GRAVITY,  CQ_FIELD_FRICTION};

static uint64_t hash_of(const golden *g) {
  const test_choice choice = {.dim = g->dim,
                              .side = g->dim == 3 ? 6 : 16,
                              .precision = g->precision,
                              .simd = g->simd,
                              .steps = STEPS,
                              .threads = 1,
                              .running = 1,
                              .device = CQ_DEVICE_CPU,
                              .change = add_all};
  test_run t;
  test_run_open(&t, &choice);
  const double loss = test_run_forward(&t, STEPS);
  test_run_backward(&t);
  uint64_t hash = test_hash(1469598103934665603u, &loss, sizeof loss);
  hash = test_hash(hash, t.grad_signals, (size_t)(STEPS * t.signal_count) * sizeof(double));
  hash = test_hash(hash, t.grad_forces, (size_t)(STEPS * t.force_count) * sizeof(double));
  for (size_t k = 0; k < sizeof hashed / sizeof *hashed; k++) {
    double *gradient = test_run_gradient(&t, hashed[k], 0);
    hash = test_hash(hash, gradient, (size_t)cq_field_count(t.world, hashed[k]) * sizeof *gradient);
    free(gradient);
  }
  test_run_close(&t);
  return hash;
}

int main(int argc, char **argv) {
  const int print = argc > 1 && !strcmp(argv[1], "print");
#if defined(__clang__) || __GNUC__ != 12 || !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) || defined(CQ_LANES)
  if (!print) {
    printf("golden bits are those of gcc 12 on x86-64, optimised\n1 passed, 0 failed\n");
    return 0;
  }
#endif
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    const golden *g = &table[k];
    if (!cq_kernels_find(g->dim, g->precision, g->simd)) continue;
    const uint64_t hash = hash_of(g);
    if (print)
      printf("    {%d, %d, %d, 0x%016llxu},\n", g->dim, g->precision, g->simd, (unsigned long long)hash);
    else
      CHECK(hash == g->hash, "%dD float%d, simd level %d: the hash is %016llx, it was %016llx", g->dim,
            8 * g->precision, g->simd, (unsigned long long)hash, (unsigned long long)g->hash);
  }
  return print ? 0 : check_report();
}
