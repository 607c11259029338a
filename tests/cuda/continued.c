// Rollouts that go on from a state, on CUDA as on the CPU: some scenes go on, one of them twice, one begins. And where
// all of them go on, two rollouts are one.
#include "outcome.h"
#include "scenes.h"

enum { STEPS = 3, FIRST = 3, SECOND = 4 };   // control steps of both rollouts; scenes of each

typedef struct {
  const char *name;
  test_choice choice;
  int records;               // that the memo of the second rollout may keep; 0: all
} row;

#define D2 .dim = 2, .precision = CQ_FLOAT64
#define D3 .dim = 3, .precision = CQ_FLOAT64
#define SHAKEN .contact = 1, .shaking = 1
static const row rows[] = {
    {"2D", {D2, .side = 9, .running = 1}, 0},
    {"2D walls at one speed", {D2, .side = 9, .contact = 1, .change = moving_walls}, 0},
    {"3D pins and a mover", {D3, .side = 5, .change = mover_and_pins}, 0},
    {"2D shaken walls", {D2, .side = 8, SHAKEN, .change = moving_walls}, 0},
    {"2D plastic", {D2, .side = 8, .running = 1, .change = test_scene_plastic}, 0},
    {"3D viscous", {D3, .side = 5, .change = test_scene_viscous}, 0},
    {"2D cables", {D2, .side = 8, .change = test_scene_add_drives}, 0},
    {"2D fast", {D2, .side = 10, .substeps = 24, .change = fast}, 0},
    {"2D checkpoints", {D2, .side = 8}, 2},
    {"3D float32", {.dim = 3, .precision = CQ_FLOAT32, .side = 5, .change = all_walls}, 0},
    {"2D reference", {D2, .side = 12, .running = 1, .change = test_scene_reference}, 0},
    {"2D reference at one speed", {D2, .side = 9, .contact = 1, .change = reference_moving}, 0},
    {"3D reference shaken", {D3, .side = 5, SHAKEN, .change = reference_moving}, 0},
    {"2D reference drives", {D2, .side = 9, .change = reference_drives}, 0},
    {"3D reference rubbing", {D3, .side = 6, .change = test_scene_rubbing}, 0},
    {"3D reference float32", {.dim = 3, .precision = CQ_FLOAT32, .side = 6, .change = reference_walls}, 0},
};

// ---- some scenes go on ----------------------------------------------------------------------------------------------

// the first rollout, and one more in its world
static void open_both(test_run *first, test_run *second, const row *r, int device) {
  test_choice choice = r->choice;
  choice.steps = STEPS;
  choice.batch = FIRST;
  choice.threads = 1;
  choice.device = device;
  test_run_open(first, &choice);
  *second = (test_run){.choice = choice, .scene = first->scene, .world = first->world};
  second->choice.batch = SECOND;
  test_run_make(second);
  if (!r->records) return;
  cq_plan plan;
  cq_rollout_plan(second->rollout, &plan);
  test_run_free(second);
  second->choice.memory = test_memory_of(&plan, r->records, 2);
  test_run_make(second);
}

// velocities and stiffnesses of their own for the scenes of a rollout
static void set_own(const test_run *t) {
  static const int32_t fields[] = {CQ_FIELD_VELOCITY, CQ_FIELD_YOUNG};
  for (int f = 0; f < 2; f++) {
    double walls[64];
    const double *value = test_scene_value(&t->scene, fields[f], walls);
    const int64_t count = cq_field_count(t->world, fields[f]);
    double *own = test_array(count * t->choice.batch);
    for (int64_t k = 0; k < count * t->choice.batch; k++)
      own[k] = value[k % count] * (1 + 0.05 * (double)(k / count) * sin((double)k));
    REQUIRE(cq_rollout_set(t->rollout, fields[f], own, 1) == CQ_OK);
    free(own);
  }
}

static void add_gradients(const test_run *t, outcome *o) {
  const int64_t signals = STEPS * t->signal_count, forces = STEPS * t->force_count;
  memcpy(add_part(o, "gradient of signals", signals), t->grad_signals, (size_t)signals * sizeof(double));
  memcpy(add_part(o, "gradient of forces", forces), t->grad_forces, (size_t)forces * sizeof(double));
  TEST_FIELDS_EACH(f) {
    const int64_t size = cq_field_count(t->world, f) * t->choice.batch;
    double *g = test_run_gradient(t, f, 1);
    memcpy(add_part(o, cq_field_describe(f)->name, size), g, (size_t)size * sizeof *g);
    free(g);
  }
}

static void add_impulses(const test_run *t, outcome *o) {
  const int64_t size = STEPS * t->choice.batch * cq_contact_count(&t->scene.def) * cq_contact_width(t->choice.dim);
  if (t->choice.contact)
    memcpy(add_part(o, "impulses", size), cq_rollout_contact(t->rollout), (size_t)size * sizeof(double));
}

// All that both rollouts give. passes: the adjoint goes on to the first one, else to nowhere.
static void go_on(const row *r, int device, int passes, outcome *o) {
  static const int32_t scene[SECOND] = {2, 0, -1, 0};
  test_run first, second;
  open_both(&first, &second, r, device);
  set_own(&first);
  add_part(o, "first loss", 1)[0] = test_run_forward(&first, STEPS);
  REQUIRE(cq_rollout_begin_from(second.rollout, first.rollout, scene) == CQ_OK);
  add_part(o, "second loss", 1)[0] = test_run_on(&second, STEPS);
  add_impulses(&second, o);
  test_run_state(&second, add_part(o, "state", SECOND * second.offset[4]));
  REQUIRE(cq_rollout_begin_adjoint(first.rollout) == CQ_OK);
  test_run_backward(&second);
  REQUIRE(cq_rollout_pass_adjoint(second.rollout, passes ? first.rollout : NULL, scene) == CQ_OK);
  add_gradients(&second, o);
  test_run_back(&first);
  add_gradients(&first, o);
  test_run_free(&second);
  test_run_close(&first);
}

static void compare(const row *r, cq_emulation *machine) {
  const double tolerance = r->choice.precision == CQ_FLOAT64 ? 1e-10 : 2e-4;
  for (int passes = 0; passes < 2; passes++) {
    outcome cpu = {0};
    uint64_t hash = 0;
    go_on(r, CQ_DEVICE_CPU, passes, &cpu);
    for (int order = 0; order < 1 + 2 * passes; order += 2) {   // threads and blocks in order, and by lot
      outcome cuda = {0};
      const char *where = "nothing";
      if (machine) machine->thread_order = machine->block_order = order;
      go_on(r, CQ_DEVICE_CUDA, passes, &cuda);
      const double off = difference(&cpu, &cuda, &where);
      if (!order) printf("%-26s %.1e in %s\n", r->name, off, where);
      CHECK(off <= tolerance, "%s, passes %d: %s is off by %.2e of its size", r->name, passes, where, off);
      CHECK(!order || hash_of(&cuda) == hash, "%s, passes %d, order %d: other bits", r->name, passes, order);
      hash = hash_of(&cuda);
      free_outcome(&cuda);
    }
    free_outcome(&cpu);
  }
}

// ---- all go on ------------------------------------------------------------------------------------------------------

// The rows of the second half of a run as the controls of another one.
static void take_controls(const test_run *from, test_run *to) {
  memcpy(to->signals, from->signals + STEPS * to->signal_count, (size_t)(STEPS * to->signal_count) * sizeof(double));
  memcpy(to->forces, from->forces + STEPS * to->force_count, (size_t)(STEPS * to->force_count) * sizeof(double));
}

// Two rollouts and one of twice the length end in the same state, bit for bit, and have the same gradients.
static void halve(const row *r) {
  static const int32_t all[FIRST] = {0, 1, 2};
  test_run whole, first, second;
  test_choice choice = r->choice;
  if (choice.shaking || r->records) return;
  choice.running = 0;
  choice.device = CQ_DEVICE_CUDA;
  choice.batch = FIRST;
  choice.steps = 2 * STEPS;
  test_run_open(&whole, &choice);
  choice.steps = STEPS;
  first = second = (test_run){.choice = choice, .scene = whole.scene, .world = whole.world};
  test_run_make(&first);
  test_run_make(&second);
  take_controls(&whole, &second);
  memcpy(first.signals, whole.signals, (size_t)(STEPS * first.signal_count) * sizeof(double));
  memcpy(first.forces, whole.forces, (size_t)(STEPS * first.force_count) * sizeof(double));
  memcpy(second.weights, whole.weights, (size_t)(FIRST * whole.offset[4]) * sizeof(double));
  const double loss = test_run_forward(&whole, 2 * STEPS);
  test_run_forward(&first, STEPS);
  REQUIRE(cq_rollout_begin_from(second.rollout, first.rollout, all) == CQ_OK);
  const double halves = test_run_on(&second, STEPS);
  CHECK(halves == loss, "%s: two halves give %.17g, and the whole %.17g", r->name, halves, loss);
  test_run_backward(&whole);
  REQUIRE(cq_rollout_begin_adjoint(first.rollout) == CQ_OK);
  test_run_backward(&second);
  REQUIRE(cq_rollout_pass_adjoint(second.rollout, first.rollout, all) == CQ_OK);
  for (int i = STEPS; i > 0; i--)
    REQUIRE(cq_rollout_run_adjoint(first.rollout, 1, first.grad_signals + (i - 1) * first.signal_count,
                                   first.grad_forces + (i - 1) * first.force_count) == CQ_OK);
  double off = 0, size = 0;
  for (int64_t k = 0; k < 2 * STEPS * whole.signal_count; k++) {
    const int64_t middle = STEPS * whole.signal_count;
    const double half = k < middle ? first.grad_signals[k] : second.grad_signals[k - middle];
    off = check_worst(off, fabs(half - whole.grad_signals[k]));
    size = fmax(size, fabs(whole.grad_signals[k]));
  }
  CHECK(off == 0 && (size > 0 || !whole.signal_count), "%s: gradients of signals differ by %g of %g", r->name, off,
        size);
  test_run_free(&first);
  test_run_free(&second);
  test_run_close(&whole);
}

// ---- what is refused ------------------------------------------------------------------------------------------------

static void refuse(void) {
  const row r = {"refused", {D2, .side = 8, .change = test_scene_reference}, 0};
  static const int32_t scene[SECOND] = {0, 1, -1, 2};
  test_run first, second;
  open_both(&first, &second, &r, CQ_DEVICE_CUDA);
  test_run_forward(&first, STEPS);
  double *moved = test_array(first.scene.n * 2);
  for (int64_t k = 0; k < first.scene.n * 2; k++) moved[k] = first.scene.position[k] + 1e-3 * first.scene.def.dx;
  REQUIRE(cq_rollout_set(second.rollout, CQ_FIELD_POSITION, moved, 0) == CQ_OK);
  CHECK(cq_rollout_begin_from(second.rollout, first.rollout, scene) == CQ_INVALID &&
            strstr(cq_error(), "of the same undeformed shape"), "another shape: %s", cq_error());
  free(moved);
  test_run_free(&second);
  test_run_close(&first);
}

int main(int argc, char **argv) {
  cq_gpu gpu;
  REQUIRE(cq_gpu_find(0, &gpu) == CQ_OK);
  cq_emulation *machine = find_machine();
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (argc > 1 && !strstr(rows[k].name, argv[1])) continue;
    compare(&rows[k], machine);
    halve(&rows[k]);
  }
  refuse();
  if (machine)
    CHECK(machine->faults == 0 && machine->memory_used == 0, "%lld bytes are left; %s",
          (long long)machine->memory_used, machine->fault);
  return check_report();
}
