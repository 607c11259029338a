// A rollout that begins again: what nobody changed lies on the GPU already, and whatever was changed is what a new
// rollout would have begun with.
#include "../c/rollout.h"
#include "emulation/machine.h"
#include <dlfcn.h>

enum { STEPS = 2 };

static cq_emulation *machine;

static const test_choice choice = {
    .dim = 2, .side = 8, .precision = CQ_FLOAT64, .steps = STEPS, .substeps = 4, .batch = 2, .device = CQ_DEVICE_CUDA};

// near what the world has, and different for scenes
static void set(const test_run *t, int32_t field, double amount) {
  double walls[16] = {0};
  const double *value = test_scene_value(&t->scene, field, walls);
  const int64_t count = cq_field_count(t->world, field);
  double *data = test_array(choice.batch * count);
  for (int64_t k = 0; k < choice.batch * count; k++) {
    const double by = amount * (1 + 0.3 * sin((double)k));
    data[k] =
        field == CQ_FIELD_POSITION || !value[k % count] ? value[k % count] + 0.1 * by : value[k % count] * (1 + by);
  }
  REQUIRE(cq_rollout_set(t->rollout, field, data, 1) == CQ_OK);
  free(data);
}

static uint64_t hash_of_new(int32_t field, double amount) {
  test_run t;
  test_run_open(&t, &choice);
  set(&t, field, amount);
  const uint64_t hash = test_run_hash(&t, STEPS);
  test_run_close(&t);
  return hash;
}

static void check_unchanged(test_run *t, uint64_t first) {
  const int64_t before = machine->kernels, calls = machine->calls;
  REQUIRE(cq_rollout_begin(t->rollout) == CQ_OK);
  CHECK(machine->kernels == before && machine->calls == calls,
        "nothing was changed, and it began with %d kernels, %d calls", (int)(machine->kernels - before),
        (int)(machine->calls - calls));
  CHECK(test_run_hash(t, STEPS) == first, "it began again, and has other bits");
}

static void check_changed(test_run *t) {
  TEST_FIELDS_EACH(f) {
    const double amount = f == CQ_FIELD_POSITION || f == CQ_FIELD_DEFORMATION ? 0.01 : 0.1;
    const uint64_t before = test_run_hash(t, STEPS);
    set(t, f, amount);
    const uint64_t after = test_run_hash(t, STEPS);
    CHECK(after != before, "field %d was changed, and the bits are the same", f);
    set(t, f, 0);
    const uint64_t back = test_run_hash(t, STEPS);
    set(t, f, amount);
    CHECK(test_run_hash(t, STEPS) == after, "field %d was changed back and again, and has other bits", f);
    set(t, f, 0);
    CHECK(test_run_hash(t, STEPS) == back, "field %d was changed back, and has other bits", f);
    CHECK(after == hash_of_new(f, amount), "field %d was changed, and a new rollout has other bits", f);
  }
}

// a start that failed is not kept, nor is what was there before
static void check_failure(test_run *t) {
  const int64_t count = cq_field_count(t->world, CQ_FIELD_POSITION);
  double *outside = test_array(count);
  for (int64_t k = 0; k < count; k++) outside[k] = t->scene.position[k] - 100;
  const uint64_t first = test_run_hash(t, STEPS);
  REQUIRE(cq_rollout_set(t->rollout, CQ_FIELD_POSITION, outside, 0) == CQ_OK);
  CHECK(cq_rollout_begin(t->rollout) == CQ_UNSTABLE, "particles outside of the world: %s", cq_error());
  CHECK(cq_rollout_begin(t->rollout) == CQ_UNSTABLE, "they are outside as they were: %s", cq_error());
  REQUIRE(cq_rollout_set(t->rollout, CQ_FIELD_POSITION, t->scene.position, 0) == CQ_OK);
  CHECK(test_run_hash(t, STEPS) == first, "it began again after it had failed, and has other bits");
  free(outside);
}

// so fast that particles are sorted again within a control step, and the start is nothing but a start then
static void fly(test_scene *s) {
  s->def.wall_count = 0;
  for (int i = 0; i < 3; i++) s->def.cells[i] = 64;
  for (int64_t p = 0; p < s->n; p++) s->velocity[p * s->def.dim] += 0.3 * s->def.dx / (s->def.dt / s->def.substeps);
}

// A rollout that runs and begins again in so many bytes of the GPU; adds to whether its start was
// kept, if there was room to run.
static void run_within(int64_t bytes, double *loss, int *kept, int *given_up) {
  const test_choice flight = {.dim = 2,
                              .side = 24,
                              .precision = CQ_FLOAT64,
                              .steps = STEPS,
                              .substeps = 8,
                              .device = CQ_DEVICE_CUDA,
                              .forward_only = 1,
                              .change = fly};
  test_run t;
  machine->others = machine->memory - bytes;
  test_run_open(&t, &flight);
  cq_status status = cq_rollout_begin(t.rollout);
  if (!status) status = test_run_steps(&t, 0, STEPS);
  const int64_t before = machine->kernels;
  const int ran = !status;
  if (!status) status = cq_rollout_begin(t.rollout);
  if (ran && machine->kernels == before) ++*kept;
  if (ran && machine->kernels > before) ++*given_up;
  CHECK(status == CQ_OK || status == CQ_MEMORY, "%lld bytes: %s", (long long)bytes, cq_error());
  machine->others = 0;
  const double now = test_run_forward(&t, STEPS);
  CHECK(!*loss || now == *loss, "%lld bytes: other bits", (long long)bytes);
  *loss = now;
  test_run_close(&t);
}

// Other programs leave little memory: where it is just enough to run, the start is given up for
// that, and with more of it kept.
static void check_memory(void) {
  int kept = 0, given_up = 0;
  double loss = 0;
  for (int64_t bytes = 400 << 10; !kept && bytes < 4 << 20; bytes += 16 << 10)
    run_within(bytes, &loss, &kept, &given_up);
  CHECK(kept && given_up, "the start was kept %d times, and given up %d times", kept, given_up);
}

int main(void) {
  const char *object = getenv("CQLUA_CUDA");
  void *handle = object ? dlopen(object, RTLD_NOW) : NULL;
  REQUIRE(handle);
  cq_emulation *(*find)(void);
  *(void **)&find = dlsym(handle, "cq_emulation_machine");
  REQUIRE(find);
  machine = find();
  test_run t;
  test_run_open(&t, &choice);
  check_unchanged(&t, test_run_hash(&t, STEPS));
  check_changed(&t);
  check_failure(&t);
  test_run_close(&t);
  check_memory();
  CHECK(machine->faults == 0 && machine->memory_used == 0, "%lld bytes are left; %s", (long long)machine->memory_used,
        machine->fault);
  return check_report();
}
