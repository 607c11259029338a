// Memory that runs out at any allocation of a rollout is reported, leaks nothing, and a rollout
// begun again gives the same bits.
#include "base/base.h"
#include "rollout.h"

enum { STEPS = 6 };

// the Makefile links every cq_alloc and calloc to the ones here
void *__real_cq_alloc(size_t count, size_t size, const char *what);
void *__wrap_cq_alloc(size_t count, size_t size, const char *what);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int allocations, starved;   // so far; the one that fails, 0: none
static int refuse;                 // the next calloc

void *__wrap_cq_alloc(size_t count, size_t size, const char *what) {
  refuse = ++allocations == starved;
  return __real_cq_alloc(count, size, what);
}

void *__wrap_calloc(size_t count, size_t size) {
  if (!refuse) return __real_calloc(count, size);
  refuse = 0;
  return NULL;
}

// as test_run_hash, but up to a failure
static cq_status run(test_run *t, uint64_t *hash) {
  cq_status status = cq_rollout_begin(t->rollout);
  for (int i = 0; i < STEPS && !status; i++) status = test_run_step(t, i);
  if (!status) status = cq_rollout_begin_adjoint(t->rollout);
  if (!status) test_run_seed(t);
  for (int i = STEPS - 1; i >= 0 && !status; i--)
    status = cq_rollout_run_adjoint(t->rollout, 1, t->grad_signals + i * t->signal_count, NULL);
  if (status) return status;
  *hash = test_hash(1469598103934665603u, t->grad_signals, (size_t)(STEPS * t->signal_count) * sizeof(double));
  double *g = test_run_gradient(t, CQ_FIELD_POSITION, 1);
  *hash = test_hash(*hash, g, (size_t)(cq_field_count(t->world, CQ_FIELD_POSITION) * t->choice.batch) * sizeof *g);
  free(g);
  return CQ_OK;
}

// the world and the rollout of a run made anew
static cq_status make_again(test_run *t, const cq_rollout_def *def) {
  cq_world_destroy(t->world);
  t->world = NULL;
  const cq_status status = cq_world_create(&t->scene.def, &t->world);
  return status ? status : cq_rollout_create(t->world, def, &t->rollout);
}

static void check(int dim, int side, int batch, int records, void (*change)(test_scene *)) {
  const test_choice choice = {
      .dim = dim, .side = side, .precision = CQ_FLOAT64, .threads = 2, .steps = STEPS, .batch = batch,
      .change = change};
  test_run t;
  test_run_open(&t, &choice);
  uint64_t wanted = 0, hash = 0;
  REQUIRE(run(&t, &wanted) == CQ_OK);
  cq_plan plan;
  cq_rollout_plan(t.rollout, &plan);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = STEPS;
  def.batch = batch;
  def.memory = records ? records * plan.record_bytes + 2 * plan.slice_bytes : 0;
  int failures = 0, told = 0, recovered = 0;
  cq_status status = CQ_MEMORY;
  for (int k = 1; status == CQ_MEMORY && k < 10000; k++) {
    allocations = 0;
    starved = k;
    status = make_again(&t, &def);
    const int made = !status;
    if (made) status = run(&t, &hash);
    starved = 0;
    if (!status) break;
    failures++;
    told += status == CQ_MEMORY && strstr(cq_error(), "out of memory: ") != NULL;
    if (!made) REQUIRE(make_again(&t, &def) == CQ_OK);
    hash = 0;
    recovered += run(&t, &hash) == CQ_OK && hash == wanted;
  }
  CHECK(status == CQ_OK && hash == wanted, "with all its memory: status %d", (int)status);
  CHECK(failures > 50 && told == failures && recovered == failures,
        "%d scenes, %d records: of %d failures %d were told and %d recovered from", batch, records, failures, told,
        recovered);
  test_run_close(&t);
}

// steps of backward Euler, which keep vectors of the grid, and in 2D a matrix, in 3D a coarse lattice
static void implicit(test_scene *s) {
  s->def.integrator.kind = CQ_INTEGRATOR_IMPLICIT;
  s->def.integrator.tolerance = 1e-8;
  s->def.integrator.adjoint_tolerance = 1e-8;
}
static void averaged(test_scene *s) {
  test_scene_averaged(s);
  implicit(s);
}

static void check_sentence(size_t count, size_t size, const char *wanted) {
  allocations = 0;
  starved = 1;
  void *memory = cq_alloc(count, size, "a list");
  starved = 0;
  CHECK(!memory && !strcmp(cq_error(), wanted), "%s", cq_error());
  cq_free(memory);
}

int main(void) {
  check_sentence(1, 1, "out of memory: a list needs 1 byte");
  check_sentence(5, 100, "out of memory: a list needs 500 bytes");
  check_sentence(300, 10, "out of memory: a list needs 2.93 KiB");
  check_sentence(1020, 1 << 20, "out of memory: a list needs 0.996 GiB");
  check(2, 8, 1, 0, NULL);
  check(2, 8, 3, 1, NULL);
  check(2, 8, 2, 1, test_scene_add_drives);
  check(2, 40, 1, 2, NULL);   // two threads share the scene
  check(2, 8, 1, 1, implicit);
  check(3, 4, 1, 1, implicit);
  check(3, 4, 1, 1, averaged);
  check(2, 8, 2, 1, test_scene_keep);
  return check_report();
}
