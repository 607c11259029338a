// The CUDA device against the CPU: states, readouts and gradients of the same rollouts, over all that a scene can
// have. Needs cq.h and nothing of Lua. Each case runs in every way that a run of substeps has over the GPU, on an
// emulated one with its threads in three orders, on a real one twice: the same bits each time. On an emulated GPU
// that looks for races, which does not depend on the order, once. From way to way the bits are the same on an
// emulated GPU only: nvcc joins a product and a sum in one kernel, and not in another that makes the same of them.
// The hash of the bits is shown for each way.
//   parity [part of a case's name]          CQLUA_CUDA_RUN: only in this way
#include "outcome.h"
#include "scenes.h"

// ---- cases ----------------------------------------------------------------------------------------------------------

typedef struct {
  const char *name;
  test_choice choice;
  int records;               // that the memo may keep; 0: all
  int own;                   // 1: the scenes of a batch have values of their own
  int laws;                  // 1: differs from others by what is computed of one particle alone: in one order is enough
  int twin;                  // 1: the same kernels as another row, in float32 or with more scenes: in one order, too
} row;

#define D2 .dim = 2, .precision = CQ_FLOAT64
#define D3 .dim = 3, .precision = CQ_FLOAT64
static const row rows[] = {
    {"2D", {D2, .side = 14, .steps = 5, .running = 1}, 0, 0, 0, 0},
    {"3D", {D3, .side = 7, .steps = 5, .running = 1}, 0, 0, 0, 0},
    {"2D neo-Hookean", {D2, .side = 9, .steps = 3, .change = neo_hookean}, 0, 0, 1, 0},
    {"3D neo-Hookean", {D3, .side = 5, .steps = 3, .change = neo_hookean}, 0, 0, 1, 0},
    {"2D corotated", {D2, .side = 9, .steps = 3, .change = corotated}, 0, 0, 1, 0},
    {"3D corotated", {D3, .side = 5, .steps = 3, .change = corotated}, 0, 0, 1, 0},
    {"2D linear", {D2, .side = 9, .steps = 3, .change = linear}, 0, 0, 1, 0},
    {"3D linear", {D3, .side = 5, .steps = 3, .change = linear}, 0, 0, 1, 0},
    {"2D incompressible", {D2, .side = 9, .steps = 3, .change = incompressible}, 0, 0, 1, 0},
    {"3D incompressible", {D3, .side = 5, .steps = 3, .change = incompressible}, 0, 0, 1, 0},
    {"2D viscous", {D2, .side = 12, .steps = 5, .change = test_scene_viscous, .running = 1}, 0, 0, 1, 0},
    {"3D viscous", {D3, .side = 6, .steps = 3, .change = test_scene_viscous}, 0, 0, 1, 0},
    {"2D viscous fast", {D2, .side = 10, .steps = 4, .substeps = 24, .change = fast_viscous}, 2, 0, 1, 0},
    {"3D viscous float32",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 6, .steps = 3, .change = test_scene_viscous}, 0, 0, 1, 0},
    {"2D rubber", {D2, .side = 12, .steps = 5, .change = test_scene_rubber, .running = 1}, 0, 0, 1, 0},
    {"3D rubber", {D3, .side = 6, .steps = 3, .change = test_scene_rubber}, 0, 0, 1, 0},
    {"2D mixed batch", {D2, .side = 7, .steps = 7, .batch = 2, .change = test_scene_mixed}, 2, 1, 1, 0},
    {"3D mixed", {D3, .side = 6, .steps = 3, .change = test_scene_mixed}, 0, 0, 1, 0},
    {"3D rubber float32",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 6, .steps = 3, .change = test_scene_rubber}, 0, 0, 1, 0},
    {"2D plastic", {D2, .side = 12, .steps = 5, .change = test_scene_plastic, .running = 1}, 0, 0, 1, 0},
    {"3D plastic", {D3, .side = 6, .steps = 3, .change = test_scene_plastic}, 0, 0, 1, 0},
    {"2D plastic batch", {D2, .side = 7, .steps = 7, .batch = 2, .change = test_scene_plastic}, 2, 1, 0, 0},
    {"3D plastic float32",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 6, .steps = 3, .change = test_scene_plastic},
     0,
     0,
     1,
     0},
    {"2D all walls", {D2, .side = 14, .steps = 4, .change = all_walls}, 0, 0, 0, 0},
    {"3D all walls", {D3, .side = 7, .steps = 4, .change = all_walls}, 0, 0, 0, 0},
    {"2D moving walls", {D2, .side = 14, .steps = 4, .change = moving_walls}, 0, 0, 0, 0},
    {"3D moving walls", {D3, .side = 7, .steps = 4, .change = moving_walls}, 0, 0, 0, 0},
    {"2D mover and pins", {D2, .side = 12, .steps = 4, .change = mover_and_pins}, 0, 0, 0, 0},
    {"3D mover and pins", {D3, .side = 7, .steps = 4, .change = mover_and_pins}, 0, 0, 0, 0},
    {"2D damped", {D2, .side = 9, .steps = 3, .change = damped}, 0, 0, 1, 0},
    {"3D damped", {D3, .side = 5, .steps = 3, .change = damped}, 0, 0, 1, 0},
    {"2D bare", {D2, .side = 9, .steps = 3, .change = bare}, 0, 0, 0, 0},
    {"3D bare", {D3, .side = 5, .steps = 3, .change = bare}, 0, 0, 0, 0},
    {"2D one particle", {D2, .side = 1, .steps = 3, .change = lonely}, 0, 0, 0, 0},
    {"3D one particle", {D3, .side = 1, .steps = 3, .change = lonely}, 0, 0, 0, 0},
    {"2D fast", {D2, .side = 10, .steps = 2, .substeps = 24, .change = fast}, 0, 0, 0, 0},
    {"3D fast", {D3, .side = 6, .steps = 2, .substeps = 24, .change = fast}, 0, 0, 0, 0},
    {"3D apart", {D3, .side = 6, .steps = 3, .change = apart}, 0, 0, 0, 0},
    {"2D corners", {D2, .side = 4, .steps = 1, .change = corners}, 0, 0, 0, 0},
    {"2D crowded", {D2, .side = 30, .steps = 2, .change = crowded}, 0, 0, 0, 0},
    {"3D crowded", {D3, .side = 10, .steps = 2, .change = crowded}, 0, 0, 0, 0},
    {"2D batch", {D2, .side = 9, .steps = 6, .batch = 3}, 0, 1, 0, 0},
    {"3D batch", {D3, .side = 5, .steps = 4, .batch = 3, .running = 1}, 0, 1, 0, 0},
    {"2D many scenes", {D2, .side = 3, .steps = 1, .batch = 60, .change = all_walls}, 0, 1, 0, 1},
    {"2D checkpoints", {D2, .side = 10, .steps = 11, .batch = 2}, 2, 1, 0, 0},
    {"3D checkpoints", {D3, .side = 5, .steps = 9, .substeps = 3}, 2, 0, 0, 0},
    {"2D fast checkpoints", {D2, .side = 10, .steps = 5, .substeps = 24, .change = fast}, 2, 0, 0, 0},
    {"2D cables", {D2, .side = 12, .steps = 4, .change = test_scene_add_drives}, 0, 0, 0, 0},
    {"3D cables", {D3, .side = 6, .steps = 4, .batch = 2, .change = test_scene_add_drives}, 0, 1, 0, 0},
    {"2D cables fast", {D2, .side = 10, .steps = 2, .substeps = 24, .change = fast_cables}, 0, 0, 0, 0},
    {"2D cables checkpoints", {D2, .side = 10, .steps = 9, .batch = 2, .change = test_scene_add_drives}, 2, 1, 0, 0},
    {"3D float32 cables",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 6, .steps = 4, .change = test_scene_add_drives},
     0,
     0,
     0,
     1},
    {"2D contacts", {D2, .side = 9, .steps = 4, .contact = 1, .change = mover_and_pins}, 0, 0, 0, 0},
    {"3D contacts", {D3, .side = 5, .steps = 3, .contact = 1, .change = all_walls}, 0, 0, 0, 0},
    {"2D shaking", {D2, .side = 9, .steps = 4, .contact = 1, .shaking = 1, .change = moving_walls}, 0, 0, 0, 0},
    {"3D shaking batch",
     {D3, .side = 4, .steps = 2, .batch = 2, .contact = 1, .shaking = 1, .change = mover_and_pins},
     0,
     1,
     0,
     0},
    {"2D sliding long",
     {D2, .side = 6, .steps = 3, .substeps = 70, .contact = 1, .shaking = 1, .change = sliding},
     0,
     0,
     0,
     0},
    {"2D sliding checkpoints",
     {D2, .side = 8, .steps = 6, .substeps = 12, .batch = 2, .contact = 1, .shaking = 1, .change = sliding},
     2,
     1,
     0,
     0},
    {"2D cables contacts",
     {D2, .side = 9, .steps = 3, .contact = 1, .shaking = 1, .change = test_scene_add_drives},
     0,
     0,
     0,
     0},
    {"2D reference", {D2, .side = 14, .steps = 5, .running = 1, .change = test_scene_reference}, 0, 0, 0, 0},
    {"3D reference", {D3, .side = 7, .steps = 5, .running = 1, .change = test_scene_reference}, 0, 0, 0, 0},
    {"2D reference lattice", {D2, .side = 40, .steps = 3, .change = test_scene_lattice}, 0, 0, 0, 0},
    {"3D reference lattice", {D3, .side = 12, .steps = 3, .change = test_scene_lattice}, 0, 0, 0, 0},
    {"2D reference walls", {D2, .side = 14, .steps = 4, .change = reference_walls}, 0, 0, 0, 0},
    {"3D reference walls", {D3, .side = 7, .steps = 4, .contact = 1, .change = reference_walls}, 0, 0, 0, 0},
    {"2D reference shaking",
     {D2, .side = 12, .steps = 4, .contact = 1, .shaking = 1, .change = reference_moving},
     0,
     0,
     0,
     0},
    {"3D reference pins batch",
     {D3, .side = 5, .steps = 4, .batch = 3, .contact = 1, .change = reference_pins},
     0,
     1,
     0,
     0},
    {"2D reference viscous", {D2, .side = 12, .steps = 4, .change = reference_viscous, .running = 1}, 0, 0, 1, 0},
    {"3D reference viscous", {D3, .side = 5, .steps = 3, .change = reference_viscous}, 0, 0, 1, 0},
    {"2D reference drives", {D2, .side = 12, .steps = 4, .change = reference_drives}, 0, 0, 0, 0},
    {"3D reference drives", {D3, .side = 6, .steps = 4, .batch = 2, .change = reference_drives}, 0, 1, 0, 0},
    {"2D reference checkpoints",
     {D2, .side = 10, .steps = 9, .batch = 2, .substeps = 70, .change = test_scene_reference},
     2,
     1,
     0,
     0},
    {"2D reference colliding", {D2, .side = 14, .steps = 4, .change = test_scene_colliding}, 0, 0, 0, 0},
    {"3D reference rubbing batch",
     {D3, .side = 6, .steps = 4, .batch = 2, .contact = 1, .change = test_scene_rubbing},
     0,
     1,
     0,
     0},
    {"2D reference rubbing checkpoints",
     {D2, .side = 10, .steps = 9, .batch = 2, .substeps = 70, .change = test_scene_rubbing},
     2,
     1,
     0,
     1},
    {"3D reference rubbing float32",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 8, .steps = 4, .change = test_scene_rubbing},
     0,
     0,
     0,
     1},
    {"3D reference float32",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 12, .steps = 4, .change = reference_walls},
     0,
     0,
     0,
     1},
    {"2D float32", {.dim = 2, .precision = CQ_FLOAT32, .side = 14, .steps = 4}, 0, 0, 0, 1},
    {"3D float32", {.dim = 3, .precision = CQ_FLOAT32, .side = 7, .steps = 4, .batch = 2}, 0, 1, 0, 1},
    {"3D float32 all walls",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 7, .steps = 4, .change = all_walls},
     0,
     0,
     0,
     1},
    {"2D float32 shaking",
     {.dim = 2, .precision = CQ_FLOAT32, .side = 12, .steps = 4, .contact = 1, .shaking = 1, .change = moving_walls},
     0,
     0,
     0,
     1},
    {"3D float32 shaking",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 5, .steps = 2, .contact = 1, .shaking = 1, .change = mover_and_pins},
     0,
     0,
     0,
     1},
    {"3D float32 fast",
     {.dim = 3, .precision = CQ_FLOAT32, .side = 7, .steps = 2, .substeps = 24, .change = fast},
     0,
     0,
     0,
     1},
};

// ---- one rollout ----------------------------------------------------------------------------------------------------

// values of their own for the scenes of a batch
static void set_own(const test_run *t) {
  static const int32_t fields[] = {CQ_FIELD_POSITION,         CQ_FIELD_VELOCITY, CQ_FIELD_MASS,    CQ_FIELD_YOUNG,
                                   CQ_FIELD_ACTUATION_WEIGHT, CQ_FIELD_GRAVITY,  CQ_FIELD_FRICTION};
  for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
    double walls[64];
    const double *value = test_scene_value(&t->scene, fields[f], walls);
    const int64_t count = cq_field_count(t->world, fields[f]);
    double *own = test_array(count * t->choice.batch);
    for (int64_t k = 0; k < count * t->choice.batch; k++) {
      const double s = (double)(k / count % 5);
      own[k] = value[k % count] +
               (fields[f] == CQ_FIELD_POSITION ? 1e-3 : 0.02 * fabs(value[k % count])) * s * sin((double)k);
    }
    REQUIRE(cq_rollout_set(t->rollout, fields[f], own, 1) == CQ_OK);
    free(own);
  }
}

// A readout of three groups: values, and adjoints added.
static void read_one(const test_run *t, outcome *o, const char *name, cq_readout *q) {
  const int64_t size = cq_readout_count(t->world, q) * t->choice.batch;
  double *out = add_part(o, name, size), *grad = test_array(size);
  REQUIRE(cq_rollout_read(t->rollout, q, out) == CQ_OK);
  for (int64_t k = 0; k < size; k++) grad[k] = 1e-3 * sin((double)k + q->kind);
  REQUIRE(cq_rollout_read_adjoint(t->rollout, q, grad) == CQ_OK);
  free(grad);
}

// Readouts of state fields and of each derived quantity, of groups with particles that are listed twice. all: of every
// kind, and by every weight. Else each kind and each quantity once: the kernels that read do not see how a step was
// launched, nor its walls and drives. Second moments of matrices have many components, and are few.
static void read_groups(const test_run *t, outcome *o, int all) {
  const int32_t n = (int32_t)t->scene.n;
  int32_t *list = (int32_t *)malloc(((size_t)n + 8) * sizeof *list);
  int64_t start[4] = {0, 4, 4 + n, 0}, count = 0;
  for (int k = 0; k < 4; k++) list[count++] = k % 2 ? 0 : n - 1;
  for (int32_t p = 0; p < n; p++) list[count++] = (int32_t)((int64_t)p * 7 % n);
  for (int k = 0; k < 3; k++) list[count++] = n / 2;
  start[3] = count;
  static const char *const names[4] = {"means", "second moments", "gathered particles", "sums"};
  cq_readout q;
  cq_readout_init(&q);
  q.group_count = 3;
  q.group_start = start;
  q.particles = list;
  for (q.kind = CQ_READOUT_MEAN; q.kind <= CQ_READOUT_SUM; q.kind++) {
    const int moments = q.kind == CQ_READOUT_SECOND_MOMENT;
    for (q.weighting = CQ_WEIGHT_MASS; q.weighting <= CQ_WEIGHT_VOLUME; q.weighting++) {
      if (!all && q.weighting != q.kind % 3) continue;
      q.fields = 1u << CQ_FIELD_POSITION | 1u << CQ_FIELD_VELOCITY | 1u << CQ_FIELD_DEFORMATION;
      if (moments && !(all && q.weighting == CQ_WEIGHT_MASS)) q.fields = 1u << CQ_FIELD_VELOCITY;
      read_one(t, o, names[q.kind], &q);
    }
    for (int k = CQ_DERIVED_PIOLA; k < CQ_QUANTITY_COUNT; k++) {
      // both stresses are gathered, and numbers are read by all kinds
      const int32_t once = k <= CQ_DERIVED_CAUCHY ? CQ_READOUT_GATHER : k % 4;
      if (!all && q.kind != once) continue;
      // with another one, so that each has its place in a row
      q.fields = 1u << k;
      if (!moments) q.fields |= 1u << (k == CQ_DERIVED_PIOLA ? CQ_FIELD_VELOCITY : k - 1);
      q.weighting = (k + q.kind) % 3;
      read_one(t, o, cq_quantity_describe(k)->name, &q);
    }
  }
  free(list);
}

// impulses of all control steps, and the adjoint of half of them
static void read_contacts(const test_run *t, outcome *o) {
  const int64_t width = t->choice.batch * cq_contact_count(&t->scene.def) * cq_contact_width(t->choice.dim),
                steps = t->choice.steps;
  const int64_t first = steps / 2, count = (steps - first) * width;
  double *grad = test_array(count);
  memcpy(add_part(o, "impulses", steps * width), cq_rollout_contact(t->rollout),
         (size_t)(steps * width) * sizeof *grad);
  for (int64_t k = 0; k < count; k++) grad[k] = sin((double)k);
  REQUIRE(cq_rollout_contact_adjoint(t->rollout, (int32_t)first, (int32_t)(steps - first), grad) == CQ_OK);
  free(grad);
}

static void run_on(int device, const row *r, int64_t memory, int stride, outcome *o, cq_plan *plan) {
  test_run t;
  test_choice choice = r->choice;
  choice.device = device;
  choice.memory = memory;
  choice.stride = stride;
  choice.threads = 1;
  test_run_open(&t, &choice);
  CHECK(cq_world_device_kind(t.world) == device, "%s took %s", r->name, cq_world_device(t.world));
  if (r->own) set_own(&t);
  add_part(o, "loss", 1)[0] = test_run_forward(&t, choice.steps);
  cq_rollout_plan(t.rollout, plan);
  test_run_state(&t, add_part(o, "state", t.choice.batch * t.offset[4]));
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  read_groups(&t, o, !choice.change && !r->records && (r->twin || choice.batch < 2));
  if (choice.contact) read_contacts(&t, o);
  for (int i = choice.steps, count; i > 0; i -= count) {
    if (choice.running || i == choice.steps) test_run_seed(&t);
    count = test_run_stride(&t, i);
    REQUIRE(cq_rollout_run_adjoint(t.rollout, count, t.grad_signals + (i - count) * t.signal_count,
                                   t.grad_forces + (i - count) * t.force_count) == CQ_OK);
  }
  const int64_t signals = choice.steps * t.signal_count, forces = choice.steps * t.force_count;
  memcpy(add_part(o, "gradient of signals", signals), t.grad_signals, (size_t)signals * sizeof(double));
  memcpy(add_part(o, "gradient of forces", forces), t.grad_forces, (size_t)forces * sizeof(double));
  TEST_FIELDS_EACH(f) {
    const int64_t size = cq_field_count(t.world, f) * t.choice.batch;
    double *g = test_run_gradient(&t, f, 1);
    memcpy(add_part(o, cq_field_describe(f)->name, size), g, (size_t)size * sizeof *g);
    free(g);
  }
  if (choice.shaking) {
    double *g = add_part(o, "velocities of walls",
                         t.choice.batch * choice.steps * cq_field_count(t.world, CQ_FIELD_WALL_VELOCITY));
    REQUIRE(cq_rollout_walls_gradient(t.rollout, g, 1) == CQ_OK);
    g = add_part(o, "gravity of control steps", t.choice.batch * choice.steps * choice.dim);
    REQUIRE(cq_rollout_gravity_gradient(t.rollout, g, 1) == CQ_OK);
  }
  test_run_close(&t);
}

// ---- comparing ------------------------------------------------------------------------------------------------------

// sums of another order round differently: in double by some 1e-13, in float32 by what a few steps make of 1e-7
static double tolerance(const row *r) { return r->choice.precision == CQ_FLOAT64 ? 1e-10 : 2e-4; }

// The ways that this GPU has: launches, which come first, and a cooperative grid.
enum { WAYS = 2 };
static const char *ways[WAYS];
static int way_count;

static void find_ways(void) {
  static const char *const names[WAYS] = {"launches", "grid"};
  const char *only = getenv("CQLUA_CUDA_RUN");
  if (only) ways[way_count++] = only;
  for (int k = 0; k < WAYS && !only; k++) {
    test_scene s;
    cq_world *world = NULL;
    setenv("CQLUA_CUDA_RUN", names[k], 1);
    test_scene_make(&s, 2, 1, CQ_FLOAT64, 4);
    lonely(&s);
    s.def.device = CQ_DEVICE_CUDA;
    if (cq_world_create(&s.def, &world) == CQ_OK)
      ways[way_count++] = names[k];
    else
      printf("%s: %s\n", names[k], cq_error());
    cq_world_destroy(world);
    test_scene_free(&s);
  }
}

// a case in one way and order against the CPU, and bit for bit against what came before; 0: nothing did
static uint64_t compare_one(const row *r, const outcome *cpu, int64_t memory, const char *name, uint64_t before) {
  outcome cuda = {0};
  cq_plan used;
  // first step by step, then all control steps in one call
  run_on(CQ_DEVICE_CUDA, r, memory, before ? r->choice.steps : 1, &cuda, &used);
  const char *where = "nothing";
  const double off = difference(cpu, &cuda, &where);
  const uint64_t hash = hash_of(&cuda);
  if (!before) printf("%-22s %-19s %016llx  %.1e in %s\n", r->name, name, (unsigned long long)hash, off, where);
  CHECK(off <= tolerance(r), "%s, %s: %s is off by %.2e of its size", r->name, name, where, off);
  CHECK(!before || hash == before, "%s, %s: other bits than before", r->name, name);
  CHECK(!r->records || used.recompute > 1, "%s: nothing was made again", r->name);
  free_outcome(&cuda);
  return hash;
}

static void compare(const row *r, cq_emulation *machine) {
  outcome cpu = {0}, cuda = {0};
  cq_plan plan;
  run_on(CQ_DEVICE_CPU, r, 0, 1, &cpu, &plan);
  int64_t memory = 0;
  if (r->records) {
    run_on(CQ_DEVICE_CUDA, r, 0, 1, &cuda, &plan);
    free_outcome(&cuda);
    memory = r->records * plan.record_bytes + 2 * plan.slice_bytes;
  }
  uint64_t hash = 0;
  int64_t kernels[WAYS] = {0};
  const int orders = !machine ? 2 : machine->looks_for_races || r->laws || r->twin ? 1 : 3;
  for (int w = 0; w < way_count; w++)
    for (int order = 0; order < orders; order++) {
      char name[40];
      snprintf(name, sizeof name, "%s, order %d", ways[w], order);
      setenv("CQLUA_CUDA_RUN", ways[w], 1);
      if (machine) {
        machine->thread_order = machine->block_order = order;
        machine->processors = order == 2 ? 1 : order == 1 ? 4 : 2;   // fewer blocks, that take more tiles in turn
        kernels[w] -= machine->kernels;
      } else if (!order) {
        hash = 0;
      }
      hash = compare_one(r, &cpu, memory, name, hash);
      if (machine) kernels[w] += machine->kernels;
    }
  // worlds with cables, and total Lagrangian steps, are launched pass by pass, whatever is asked for
  const int stays = r->choice.change != test_scene_add_drives && r->choice.change != fast_cables &&
                    !strstr(r->name, "reference");
  for (int w = 1; w < way_count && machine; w++)
    CHECK(stays ? kernels[w] < kernels[0] : kernels[w] == kernels[0], "%s, %s: %lld kernels ran, without it %lld",
          r->name, ways[w], (long long)kernels[w], (long long)kernels[0]);
  free_outcome(&cpu);
}

// The GPU's time by phase, over more laps than the ring of the timers holds: all that was done
// is in it, and nothing twice.
static void check_timers(void) {
  const test_choice choice = {.dim = 2,
                              .side = 10,
                              .precision = CQ_FLOAT32,
                              .steps = 40,
                              .substeps = 8,
                              .device = CQ_DEVICE_CUDA,
                              .change = fast};
  const int worked[] = {CQ_PHASE_SORT, CQ_PHASE_P2G, CQ_PHASE_P2G_ADJ, CQ_PHASE_READOUT, CQ_PHASE_ACTUATION};
  double seconds[CQ_PHASE_COUNT], all = 0;
  test_run t;
  unsetenv("CQLUA_CUDA_RUN");
  test_run_open(&t, &choice);
  cq_world_timers(t.world, seconds, 1);
  const double start = cq_clock();
  test_run_forward(&t, choice.steps);
  test_run_backward(&t);
  cq_world_timers(t.world, seconds, 1);
  const double wall = cq_clock() - start;
  for (int f = 0; f < CQ_PHASE_COUNT; f++) all += seconds[f];
  for (size_t k = 0; k < sizeof worked / sizeof *worked; k++)
    CHECK(seconds[worked[k]] > 0, "%s took %g s", cq_phase_name(worked[k]), seconds[worked[k]]);
  CHECK(all > 0.2 * wall && all <= wall, "all phases together took %g s of %g", all, wall);
  cq_world_timers(t.world, seconds, 0);
  for (int f = 0; f < CQ_PHASE_COUNT; f++)
    CHECK(seconds[f] == 0, "%s took %g s once more", cq_phase_name(f), seconds[f]);
  test_run_close(&t);
}

// To who looks for races: the accesses are those of another row. Laws differ by what is computed of one particle;
// plain scenes are there in float32, and with checkpoints.
static int is_other(const row *r) { return r->laws || (r->choice.change && (r->twin || r->records)); }

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);   // what was compared before a GPU hangs
  cq_gpu gpu;
  if (cq_gpu_find(0, &gpu) != CQ_OK) {
    printf("there is no GPU to compare with: %s\n", cq_error());
    return 1;
  }
  printf(
      "%s, driver of CUDA %d.%d\nlargest difference between CPU and GPU, relative to the largest number of its kind\n",
      gpu.name, gpu.driver / 1000, gpu.driver % 1000 / 10);
  find_ways();
  cq_emulation *machine = find_machine();
  const int races = machine && machine->looks_for_races;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (argc < 2 ? !(races && is_other(&rows[k])) : strstr(rows[k].name, argv[1]) != NULL) compare(&rows[k], machine);
  if (argc < 2 && !races) check_timers();
  if (machine) CHECK(machine->faults == 0, "%lld faults, the first: %s", (long long)machine->faults, machine->fault);
  if (machine)
    CHECK(machine->memory_used == 0 && machine->pinned_used == 0,
          "%lld bytes of the device and %lld of the host were not given back", (long long)machine->memory_used,
          (long long)machine->pinned_used);
  return check_report();
}
