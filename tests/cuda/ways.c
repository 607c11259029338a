// How a run of substeps goes over the GPU: which way is taken of itself, that a way can be asked for, and that a run
// which must end before its time, for sorting or because it fails, ends there in every way.
#include "../c/rollout.h"
#include "emulation/machine.h"
#include <dlfcn.h>

enum { STEPS = 3, SUBSTEPS = 8 };

static cq_emulation *machine;
static void (*reset)(void);

static cq_status create(const char *way, int side) {
  test_scene s;
  cq_world *world = NULL;
  setenv("CQLUA_CUDA_RUN", way, 1);
  test_scene_make(&s, 2, side, CQ_FLOAT64, 4);
  s.def.device = CQ_DEVICE_CUDA;
  const cq_status status = cq_world_create(&s.def, &world);
  cq_world_destroy(world);
  test_scene_free(&s);
  return status;
}

static void check_names(void) {
  reset();
  CHECK(create("auto", 8) == CQ_OK && create("launches", 8) == CQ_OK && create("grid", 8) == CQ_OK, "%s",
        cq_error());
  CHECK_FAILS(create("", 8), CQ_INVALID, "it must be auto, launches or grid");
  machine->cooperative = 0;
  CHECK_FAILS(create("grid", 8), CQ_DEVICE, "this GPU cannot launch blocks as one");
  CHECK(create("auto", 8) == CQ_OK, "%s", cq_error());
}

// what a rollout there and back runs: kernels, of these in cooperative grids
typedef struct {
  int64_t kernels, grids;
} tally;

static tally count(const char *way, int dim, int side) {
  const test_choice choice = {
      .dim = dim, .side = side, .precision = CQ_FLOAT32, .steps = 1, .substeps = 4, .device = CQ_DEVICE_CUDA};
  test_run t;
  setenv("CQLUA_CUDA_RUN", way, 1);
  test_run_open(&t, &choice);
  tally before = {machine->kernels, machine->grids};
  test_run_forward(&t, 1);
  test_run_backward(&t);
  test_run_close(&t);
  return (tally){machine->kernels - before.kernels, machine->grids - before.grids};
}

// A grid where it fits, else launches; backward in 3D always launches.
static void check_rule(void) {
  const int small = 14, large = 60;
  reset();
  machine->processors = 4;
  tally t = count("auto", 2, small);
  CHECK(t.grids == 2, "a few tiles: %d grids", (int)t.grids);
  t = count("auto", 2, large);
  CHECK(!t.grids, "more than there is room for: %d grids", (int)t.grids);
  t = count("grid", 2, large);
  CHECK(t.grids == 2, "a grid that is asked for: %d grids", (int)t.grids);
  t = count("auto", 3, 4);
  CHECK(t.grids == 1, "a few tiles in 3D: %d grids", (int)t.grids);
  t = count("grid", 3, 4);
  CHECK(t.grids == 1, "a grid that is asked for in 3D: %d grids", (int)t.grids);
  t = count("launches", 2, small);
  CHECK(!t.grids, "launches that are asked for: %d grids", (int)t.grids);
  machine->cooperative = 0;
  const tally old = count("auto", 2, small);
  CHECK(old.kernels == t.kernels && !old.grids, "an old GPU: %d kernels, %d by launches", (int)old.kernels,
        (int)t.kernels);
}

// A kernel that stays forward, and launches backward, in 3D: the bits are those of launches both ways.
static void check_mixture(void) {
  const test_choice choice = {
      .dim = 3, .side = 9, .precision = CQ_FLOAT32, .steps = 2, .substeps = 5, .device = CQ_DEVICE_CUDA};
  uint64_t launches = 0;
  int mixed = 0;
  for (int processors = 0; processors < 7; processors++) {
    reset();
    setenv("CQLUA_CUDA_RUN", processors ? "auto" : "launches", 1);
    machine->processors = processors ? processors : 1;
    test_run t;
    test_run_open(&t, &choice);
    const double loss = test_run_forward(&t, choice.steps);
    const int64_t forward = machine->grids;
    test_run_backward(&t);
    mixed += forward && machine->grids == forward;
    uint64_t hash = test_hash(1469598103934665603u, &loss, sizeof loss);
    hash = test_hash(hash, t.grad_signals, (size_t)(choice.steps * t.signal_count) * sizeof(double));
    if (!processors) launches = hash;
    CHECK(hash == launches, "%d processors, %d grids forward, %d in all: other bits than by launches", processors,
          (int)forward, (int)machine->grids);
    test_run_close(&t);
  }
  CHECK(mixed > 0 && mixed < 6, "%d of 6 runs were by a kernel that stays forward and by launches backward", mixed);
}

// the gradient of a field, where no other is wanted or all are
static uint64_t hash_of_gradient(test_run *t, int32_t field, uint64_t wanted) {
  cq_rollout_want(t->rollout, wanted);
  test_run_forward(t, t->choice.steps);
  test_run_backward(t);
  double *g = test_run_gradient(t, field, 0);
  const uint64_t hash = test_hash(1469598103934665603u, g, (size_t)cq_field_count(t->world, field) * sizeof *g);
  free(g);
  return hash;
}

// A kernel that stays leaves out what only gradients of gravity and walls need.
static void check_wanted(void) {
  const test_choice choice = {
      .dim = 2, .side = 10, .precision = CQ_FLOAT64, .steps = 1, .substeps = 4, .device = CQ_DEVICE_CUDA};
  const int32_t fields[] = {CQ_FIELD_GRAVITY, CQ_FIELD_FRICTION, CQ_FIELD_WALL_VELOCITY, CQ_FIELD_VELOCITY};
  test_run t;
  reset();
  setenv("CQLUA_CUDA_RUN", "grid", 1);
  test_run_open(&t, &choice);
  for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
    CHECK(hash_of_gradient(&t, fields[k], 1ull << fields[k]) == hash_of_gradient(&t, fields[k], UINT64_MAX),
          "the gradient of field %d is another one where no other is wanted", (int)fields[k]);
  test_run_close(&t);
}

// ---- runs that end before their time --------------------------------------------------------------------------------

static const char *const ways[2] = {"launches", "grid"};

// so fast that particles leave their tiles' regions in the middle of a run, and are sorted
static void fly(test_scene *s) {
  s->def.wall_count = 0;
  for (int i = 0; i < 3; i++) s->def.cells[i] = 64;
  for (int64_t p = 0; p < s->n; p++)
    for (int i = 0; i < s->def.dim; i++)
      s->velocity[p * s->def.dim + i] += (0.3 - 0.1 * i) * s->def.dx / (s->def.dt / SUBSTEPS);
}

// Where only the live state is kept two slices take turns, and a step too many writes over the last good one.
static void check_stops(int dim, int forward_only) {
  uint64_t hash[2];
  for (int w = 0; w < 2; w++) {
    const test_choice choice = {.dim = dim,
                                .side = dim == 2 ? 12 : 6,
                                .precision = CQ_FLOAT64,
                                .steps = STEPS,
                                .substeps = SUBSTEPS,
                                .device = CQ_DEVICE_CUDA,
                                .forward_only = forward_only,
                                .change = fly};
    test_run t;
    reset();
    machine->thread_order = machine->block_order = w;
    setenv("CQLUA_CUDA_RUN", ways[w], 1);
    test_run_open(&t, &choice);
    const double loss = test_run_forward(&t, STEPS);
    CHECK(!w || machine->grids > STEPS, "%dD, %s: %d runs for %d control steps: none stopped", dim, ways[w],
          (int)machine->grids, STEPS);
    hash[w] = test_hash(1469598103934665603u, &loss, sizeof loss);
    if (!forward_only) hash[w] = test_run_hash(&t, STEPS);
    CHECK(hash[w] == hash[0] && machine->faults == 0, "%dD, %s: other bits than by launches; %s", dim, ways[w],
          machine->fault);
    test_run_close(&t);
  }
}

// ---- failures -------------------------------------------------------------------------------------------------------

// a particle far from the others that leaves the world at the top, in the middle of a run
static void throw_one(test_scene *s) {
  const double dx = s->def.dx;
  for (int i = 0; i < 2; i++) s->position[i] = s->def.cells[i] * dx - 2.5 * dx;
  s->velocity[0] = 0;
  s->velocity[1] = 0.4 * dx / (s->def.dt / SUBSTEPS);
}

static void check_failure(void) {
  char words[2][1024];
  for (int w = 0; w < 2; w++) {
    const test_choice choice = {.dim = 2,
                                .side = 12,
                                .precision = CQ_FLOAT64,
                                .steps = STEPS,
                                .substeps = SUBSTEPS,
                                .device = CQ_DEVICE_CUDA,
                                .forward_only = 1,
                                .change = throw_one};
    test_run t;
    reset();
    machine->thread_order = machine->block_order = w;
    setenv("CQLUA_CUDA_RUN", ways[w], 1);
    test_run_open(&t, &choice);
    REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
    cq_status status = CQ_OK;
    for (int i = 0; i < STEPS && !status; i++) status = test_run_step(&t, i);
    cq_health health;
    cq_rollout_health(t.rollout, &health);
    snprintf(words[w], sizeof words[w], "%s", cq_error());
    CHECK(status == CQ_UNSTABLE && health.particle == 0 && health.step % SUBSTEPS,
          "%s: status %d, particle %d, step %d", ways[w], (int)status, (int)health.particle, (int)health.step);
    CHECK(!strcmp(words[w], words[0]), "%s: \"%s\", but \"%s\"", ways[w], words[w], words[0]);
    test_run_close(&t);
    CHECK(machine->faults == 0 && machine->memory_used == 0, "%s: %lld bytes are left; %s", ways[w],
          (long long)machine->memory_used, machine->fault);
  }
}

int main(void) {
  const char *object = getenv("CQLUA_CUDA");
  void *handle = object ? dlopen(object, RTLD_NOW) : NULL;
  REQUIRE(handle);
  cq_emulation *(*find)(void);
  *(void **)&find = dlsym(handle, "cq_emulation_machine");
  *(void **)&reset = dlsym(handle, "cq_emulation_reset");
  REQUIRE(find && reset);
  machine = find();
  check_names();
  check_rule();
  check_mixture();
  check_wanted();
  for (int dim = 2; dim <= 3; dim++)
    for (int forward_only = 0; forward_only < 2; forward_only++) check_stops(dim, forward_only);
  check_failure();
  return check_report();
}
