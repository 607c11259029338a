// What goes wrong with a GPU is told in a sentence that says what to do, nothing is lost or
// leaks, and the next world works.
#include "../c/rollout.h"
#include "emulation/machine.h"
#include <dlfcn.h>

enum { STEPS = 3 };
// as in the toolkit
enum {
  MEMORY = 2,
  BUSY = 46,
  NO_KERNEL = 209,
  ECC = 214,
  ILLEGAL_ADDRESS = 700,
  OUT_OF_RESOURCES = 701,
  TIMEOUT = 702,
  HARDWARE_STACK = 714,
  MISALIGNED = 716,
  NOT_READY = 802,
  DRIVER_MISMATCH = 803,
  MPS_FULL = 808,
  UNKNOWN = 999
};

static cq_emulation *machine;
static void (*reset)(void);

static void make_def(test_scene *s, int side, int device) {
  test_scene_make(s, 2, side, CQ_FLOAT64, 4);
  s->def.device = device;
}

// ---- loading --------------------------------------------------------------------------------------------------------

static void check_files(const char *stranger) {
  test_scene s;
  cq_world *world = NULL;
  make_def(&s, 4, CQ_DEVICE_CUDA);
  setenv("CQLUA_CUDA", "/nowhere/cqlua-cuda.so", 1);
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_DEVICE,
              "CQLUA_CUDA names /nowhere/cqlua-cuda.so, which cannot be read");
  setenv("CQLUA_CUDA", "/proc/self/exe", 1);
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_DEVICE, "cannot be loaded");
  setenv("CQLUA_CUDA", stranger, 1);
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_DEVICE, "belongs to another build of cqlua");
  CHECK(!world, "a world was made");
  s.def.device = 7;
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_INVALID, "device is 7");
  test_scene_free(&s);
}

// ---- choosing -------------------------------------------------------------------------------------------------------

static void check_auto(int side, int32_t kind, const char *words) {
  test_scene s;
  cq_world *world = NULL;
  make_def(&s, side, CQ_DEVICE_AUTO);
  REQUIRE(cq_world_create(&s.def, &world) == CQ_OK);
  CHECK(cq_world_device_kind(world) == kind && strstr(cq_world_device(world), words),
        "%d particles: \"%s\" (\"%s\" wanted)", (int)s.n, cq_world_device(world), words);
  cq_world_destroy(world);
  test_scene_free(&s);
}

// what this device does not do: it says so, and "auto" takes the other one
static void check_averaging(void) {
  test_scene s;
  cq_world *world = NULL;
  make_def(&s, 160, CQ_DEVICE_CUDA);
  test_scene_liquid(&s);
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_UNSUPPORTED, "pressure_smoothing is not there on CUDA; take device \"cpu\"");
  test_scene_free(&s);
  make_def(&s, 160, CQ_DEVICE_AUTO);
  test_scene_liquid(&s);
  REQUIRE(cq_world_create(&s.def, &world) == CQ_OK);
  CHECK(cq_world_device_kind(world) == CQ_DEVICE_CPU && strstr(cq_world_device(world), "pressure_smoothing"),
        "a liquid whose volumes are averaged: \"%s\"", cq_world_device(world));
  cq_world_destroy(world);
  test_scene_free(&s);
  make_def(&s, 160, CQ_DEVICE_CUDA);
  test_scene_averaged(&s);
  CHECK_FAILS(cq_world_create(&s.def, &world), CQ_UNSUPPORTED,
              "f_bar is not there on CUDA; take device \"cpu\"");
  test_scene_free(&s);
}

// ---- failures -------------------------------------------------------------------------------------------------------

// a network of one layer from the mean position of a readout, and its change, to three signals
typedef struct {
  double weight[12], bias[3], grad_weight[12], grad_bias[3], scale[3], shift[3];
  int32_t output[3];
  cq_layer layer;
  cq_policy policy;
} network;

static void make_network(network *n, const cq_readout *q) {
  *n = (network){.weight = {0.3, -0.2, 0.1, 0.2, 0.4, -0.1, 0.2, 0.1, -0.3, 0.1, 0.2, 0.4}, .bias = {0.1, 0, -0.1},
                 .scale = {0.5, 0.4, 0.3}, .output = {2, 0, 1}};
  n->layer = (cq_layer){4, 3, CQ_UNARY_TANH, n->weight, n->bias, n->grad_weight, n->grad_bias};
  cq_policy_init(&n->policy);
  n->policy.layer_count = 1;
  n->policy.layers = &n->layer;
  n->policy.observation = n->policy.change = q;
  n->policy.interval = 0.1;
  n->policy.output = n->output;
  n->policy.scale = n->scale;
  n->policy.shift = n->shift;
}

static cq_status create(test_run *t, const test_choice *choice) {
  *t = (test_run){.choice = *choice};
  t->choice.dim = 2;
  t->choice.steps = STEPS;
  t->choice.batch = 1;
  make_def(&t->scene, choice->side, CQ_DEVICE_CUDA);
  if (choice->change) choice->change(&t->scene);
  cq_status status = cq_world_create(&t->scene.def, &t->world);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = STEPS;
  def.differentiable = !choice->forward_only;
  def.contact = t->scene.def.wall_count > 0;
  if (!status) status = cq_rollout_create(t->world, &def, &t->rollout);
  if (!status && def.contact) test_run_shake(t);
  return status;
}

static void destroy(test_run *t) {
  cq_world_destroy(t->world);
  test_scene_free(&t->scene);
}

// what walls give at all control steps, and the adjoint of it; how their velocities act on it
static cq_status pass_contact(test_run *t, int adjoint, uint64_t *hash) {
  enum { MOST = 8 * STEPS * 5 };
  const int64_t walls = t->scene.def.wall_count, count = STEPS * cq_contact_count(&t->scene.def) * cq_contact_width(2);
  double grad[MOST] = {0}, one[MOST];
  if (!walls) return CQ_OK;
  if (!adjoint) *hash = test_hash(*hash, cq_rollout_contact(t->rollout), (size_t)count * sizeof(double));
  for (int64_t k = 0; k < count; k++) one[k] = sin((double)k);
  if (adjoint == 1) return cq_rollout_contact_adjoint(t->rollout, 0, STEPS, one);
  const cq_status status = adjoint ? cq_rollout_walls_gradient(t->rollout, grad, 0) : CQ_OK;
  *hash = test_hash(*hash, grad, sizeof grad);
  return status;
}

// Forward and back up to the first failure: control steps with signals from a network, the last one with signals and
// forces, with a readout of each kind.
static cq_status pass(test_run *t, uint64_t *hash) {
  enum { READOUTS = 3 };
  double u[3] = {0.3, -0.2, 0.1}, forces[10] = {1e-3, 2e-3}, grad_u[3], out[READOUTS][6] = {{0}}, one[6] = {1, 2},
         g[2] = {0}, y[3 * STEPS];
  int64_t start[2] = {0, 3};
  int32_t particles[3] = {0, 5, 5};
  cq_readout q[READOUTS];
  for (int k = 0; k < READOUTS; k++) {
    cq_readout_init(&q[k]);
    q[k].group_count = 1;
    q[k].group_start = start;
    q[k].particles = particles;
  }
  q[1].weighting = CQ_WEIGHT_PARTICLE;
  q[2].kind = CQ_READOUT_GATHER;
  network n;
  make_network(&n, &q[0]);
  cq_status status = cq_rollout_begin(t->rollout);
  if (!status) status = cq_rollout_run_policy(t->rollout, &n.policy, STEPS - 1, y);
  if (!status) status = cq_rollout_run(t->rollout, 1, u, forces);
  for (int k = 0; k < READOUTS && !status; k++) status = cq_rollout_read(t->rollout, &q[k], out[k]);
  *hash = test_hash(1469598103934665603u, out, sizeof out);
  if (!status) status = pass_contact(t, 0, hash);
  if (status || t->choice.forward_only) return status;
  status = cq_rollout_begin_adjoint(t->rollout);
  if (!status) status = pass_contact(t, 1, hash);
  for (int k = 0; k < READOUTS && !status; k++) status = cq_rollout_read_adjoint(t->rollout, &q[k], one);
  if (!status) status = cq_rollout_run_adjoint(t->rollout, 1, grad_u, NULL);
  if (!status) status = cq_rollout_run_policy_adjoint(t->rollout, &n.policy, STEPS - 1, NULL);
  if (!status) *hash = test_hash(test_hash(*hash, n.grad_weight, sizeof n.grad_weight), grad_u, sizeof grad_u);
  if (!status) status = cq_rollout_gradient(t->rollout, CQ_FIELD_GRAVITY, g, 0);
  *hash = test_hash(*hash, g, sizeof g);
  return status ? status : pass_contact(t, 2, hash);
}

// a whole run up to its first failure, with a world of its own
static cq_status run(int side, uint64_t *hash) {
  const test_choice choice = {.side = side};
  test_run t;
  cq_status status = create(&t, &choice);
  *hash = 0;
  if (!status) status = pass(&t, hash);
  destroy(&t);
  return status;
}

static void fail(const char *call, int after, int error, int lost) {
  reset();
  machine->calls = 0;
  snprintf(machine->fail_call, sizeof machine->fail_call, "%s", call);
  machine->fail_after = after;
  machine->fail_error = error;
  machine->fail_lost = lost;
}

// nothing of the run that failed is left
static void check_left(const char *what, int k) {
  CHECK(machine->memory_used == 0 && machine->pinned_used == 0 && machine->faults == 0,
        "%s %d: %lld and %lld bytes are left; %s", what, k, (long long)machine->memory_used,
        (long long)machine->pinned_used, machine->fault);
}

static void check_sentence(const char *call, int error, int lost, cq_status wanted, const char *words) {
  uint64_t hash;
  fail(call, 0, error, lost);
  const cq_status status = run(4, &hash);
  CHECK(status == wanted && strstr(cq_error(), words), "%s fails with %d: status %d, \"%s\" (\"%s\" wanted)", call,
        error, (int)status, cq_error(), words);
  check_left(call, 0);
}

static void check_sentences(void) {
  check_sentence("cudaSetDevice", BUSY, 0, CQ_DEVICE, "busy");
  check_sentence("cudaStreamCreateWithFlags", BUSY, 0, CQ_DEVICE, "take the device \"cpu\"");
  check_sentence("cudaSetDevice", MPS_FULL, 0, CQ_DEVICE, "busy");
  check_sentence("cudaSetDevice", MEMORY, 0, CQ_MEMORY,
                 "none left for opening the GPU: end other programs that use it, or take the device \"cpu\"");
  check_sentence("cudaGetDeviceCount", DRIVER_MISMATCH, 0, CQ_DEVICE,
                 "restart the machine, or take the device \"cpu\"");
  check_sentence("cudaGetDeviceCount", NOT_READY, 0, CQ_DEVICE,
                 "does nvidia-smi show it as well? Or take the device \"cpu\"");
  check_sentence("launch", NO_KERNEL, 1, CQ_DEVICE,
                 "no kernels for the GPU (no kernel image is available for execution on the device): build for it");
  check_sentence("launch", NO_KERNEL, 0, CQ_DEVICE, "no kernels for the GPU, Emulated GPU of compute capability 7.5");
  check_sentence("launch", NO_KERNEL, 0, CQ_DEVICE, "`make cuda CUDA_ARCHS=75` builds them");
  check_sentence("launch", OUT_OF_RESOURCES, 1, CQ_DEVICE, "cudaErrorLaunchOutOfResources");
  check_sentence("kernel", ILLEGAL_ADDRESS, 1, CQ_DEVICE, "lost");
  check_sentence("kernel", MISALIGNED, 1, CQ_DEVICE, "lost");
  check_sentence("kernel", ECC, 1, CQ_DEVICE, "lost");
  check_sentence("kernel", HARDWARE_STACK, 1, CQ_DEVICE, "lost");
  check_sentence("kernel", TIMEOUT, 1, CQ_DEVICE, "display");
  check_sentence("cudaMallocHost", MEMORY, 0, CQ_MEMORY, "out of memory: the host has no ");
  uint64_t hash;
  cq_gpu gpu;
  reset();
  machine->devices = 0;
  CHECK(run(4, &hash) == CQ_DEVICE && strstr(cq_error(), "no GPU was found"), "no GPU: \"%s\"", cq_error());
  CHECK(cq_gpu_find(0, &gpu) == CQ_DEVICE && strstr(cq_error(), "CUDA_VISIBLE_DEVICES"), "no GPU: \"%s\"", cq_error());
  check_auto(160, CQ_DEVICE_CPU, "no GPU was taken: no GPU was found");
  reset();
  machine->driver = 11040;
  CHECK(run(4, &hash) == CQ_DEVICE && strstr(cq_error(), "serves CUDA 11.4; this build needs 13.0: update the driver"),
        "\"%s\"", cq_error());
  machine->driver = 0;
  CHECK(run(4, &hash) == CQ_DEVICE && strstr(cq_error(), "no NVIDIA driver was found"), "\"%s\"", cq_error());
  reset();
  CHECK(cq_gpu_find(0, &gpu) == CQ_OK && gpu.count == 1 && !strcmp(gpu.name, "Emulated GPU") &&
            gpu.memory == machine->memory,
        "%s", gpu.name);
  CHECK_FAILS(cq_gpu_find(1, &gpu), CQ_DEVICE, "there is no GPU 1; this machine has 1");
}

// Other programs leave more and more memory, until there is enough to keep all steps: before, it
// does not do, or is planned with.
static void check_memory(void) {
  const test_choice choice = {.side = 6};
  uint64_t whole, hash = 0;
  reset();
  REQUIRE(run(6, &whole) == CQ_OK);
  int failures = 0, squeezed = 0;
  cq_plan plan = {0};
  for (int64_t bytes = 1000; !plan.records || plan.recompute > 1; bytes += bytes / 4) {
    reset();
    machine->others = machine->memory - bytes;
    test_run t;
    cq_status status = create(&t, &choice);
    if (!status) status = pass(&t, &hash);
    if (!status) cq_rollout_plan(t.rollout, &plan);
    CHECK(!status ? hash == whole
                  : status == CQ_MEMORY && strstr(cq_error(), "memory") && strstr(cq_error(), "end other programs"),
          "%lld bytes: status %d, \"%s\"", (long long)bytes, (int)status, cq_error());
    failures += status != CQ_OK;
    squeezed += !status && plan.recompute > 1;
    destroy(&t);
    check_left("bytes of the device, thousands:", (int)(bytes / 1000));
  }
  CHECK(failures > 5 && squeezed > 0, "%d failures, %d with steps made again", failures, squeezed);
}

// Every call of a run fails once. Some may: the run then goes on as if nothing had been.
static void check_every_call(const char *call, int error, int lost, cq_status wanted) {
  uint64_t whole, hash;
  reset();
  machine->calls = 0;
  REQUIRE(run(6, &whole) == CQ_OK);
  const int calls = (int)machine->calls;
  int told = 0, failed = 0, fine = 0;
  for (int k = 0; k < calls; k++) {
    fail(call, k, error, lost);
    const cq_status status = run(6, &hash);
    if (machine->fail_after >= 0) break;   // there are fewer of this name
    check_left(call, k);
    failed += status != CQ_OK;
    told += status == wanted && strlen(cq_error()) > 20;
    fine += status == CQ_OK && hash == whole;
    CHECK(status != CQ_OK || hash == whole, "call %d of %s fails, and nobody tells that the results are wrong", k,
          call);
    CHECK(status == CQ_OK || call[0] || lost || machine->launches == machine->launches_before,
          "call %d fails, and %d launches follow: \"%s\"", k, (int)(machine->launches - machine->launches_before),
          cq_error());
  }
  CHECK(failed > 0 && told == failed, "%s: of %d failures %d were told by status %d and a sentence (%d had no effect)",
        call, failed, told, (int)wanted, fine);
  reset();
  CHECK(run(6, &hash) == CQ_OK && hash == whole, "%s: no world works after the failures", call);
}

// A rollout that ran out of the GPU's memory is begun again with the same bits, in the same world.
static void check_recovery(void) {
  const test_choice choice = {
      .dim = 2, .side = 10, .precision = CQ_FLOAT64, .steps = STEPS, .batch = 2, .device = CQ_DEVICE_CUDA};
  test_run t;
  reset();
  test_run_open(&t, &choice);
  const uint64_t whole = test_run_hash(&t, STEPS);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = STEPS;
  def.batch = choice.batch;
  int failures = 0;
  for (int32_t k = 0;; k++) {
    cq_rollout_destroy(t.rollout);
    fail("cudaMallocHost", k, MEMORY, 0);
    cq_status status = cq_rollout_create(t.world, &def, &t.rollout);
    const int made = !status;
    if (!status) status = cq_rollout_begin(t.rollout);
    for (int i = 0; i < STEPS && !status; i++) status = test_run_step(&t, i);
    const int over = machine->fail_after >= 0;
    failures += status != CQ_OK;
    CHECK(over ? !status : status == CQ_MEMORY, "status %d: %s", (int)status, cq_error());
    reset();
    if (!made) REQUIRE(cq_rollout_create(t.world, &def, &t.rollout) == CQ_OK);
    CHECK(test_run_hash(&t, STEPS) == whole, "other bits after failure %d", k);
    if (over) break;
  }
  CHECK(failures > 0, "%d failures", failures);
  test_run_close(&t);
  check_left("recovery", 0);
}

// ---- launches -------------------------------------------------------------------------------------------------------

// Every kernel, and in the name of what its failure is told; those of a substep go by one name.
static const struct { const char *name, *what;
} launches[] = {{"write_first", "sorting"},
                {"find_box", "sorting"},
                {"find_keys", "sorting"},
                {"scan_parts<2>", "sorting"},
                {"scan_sums", "sorting"},
                {"scan_tiles", "sorting"},
                {"write_tiles<2>", "sorting"},
                {"fill_wall_entries", "sorting"},
                {"place_slots", "sorting"},
                {"order_tiles", "sorting"},
                {"move_slots", "sorting"},
                {"move_slots", "sorting the adjoint"},
                {"load_values", "loading the values of a rollout"},
                {"load_actuation", "a run of substeps"},
                {"load_actuation", "recording the launches of a run"},
                {"kernel", "a run of substeps"},
                {"kernel", "recording the launches of a run"},
                {"grid_adj", "a run of substeps"},
                {"grid_adj", "recording the launches of a run"},
                {"a kernel whose blocks work together", "a run of substeps"},
                {"network_signals", "a policy"},
                {"network_signals_adj", "a policy"},
                {"add_gradients", "a policy"},
                {"actuation_shares", "the adjoint of the controls"},
                {"actuation_signals", "the adjoint of the controls"},
                {"read_portions", "a readout"},
                {"read_portions", "the adjoint of a readout"},
                {"read_portions", "a policy"},
                {"read_groups", "a readout"},
                {"read_groups", "the adjoint of a readout"},
                {"read_groups", "a policy"},
                {"read_gather", "a readout"},
                {"read_adj", "the adjoint of a readout"},
                {"read_adj", "a policy"},
                {"store_params_adj", "adding up gradients"},
                {"sum_tiles", "adding up gradients"},
                {"square_portions", "the norm of the adjoint"},
                {"add_portions", "the norm of the adjoint"},
                {"store_state_adj", "storing gradients"}};
enum { LAUNCHES = sizeof launches / sizeof *launches };

// notes which launch was refused; 0 if the sentence does not tell
static int note_refused(int32_t refused[LAUNCHES]) {
  for (int i = 0; i < LAUNCHES; i++) {
    char wanted[200];
    snprintf(wanted, sizeof wanted,
             "%s failed on the GPU: too many resources requested for launch (cudaErrorLaunchOutOfResources); start the "
             "program again",
             launches[i].what);
    if (strcmp(machine->refused, launches[i].name) || strncmp(cq_error(), wanted, strlen(wanted))) continue;
    refused[i]++;
    return 1;
  }
  return 0;
}

// particles that must be sorted in the middle of a control step, in a world so wide that the window is one of their
// own, and so far apart that it takes several blocks to number its tiles
static void fast_and_wide(test_scene *s) {
  s->def.dt = 6e-3;
  s->def.substeps = 4;
  s->def.wall_count = 0;
  for (int i = 0; i < 2; i++) s->def.cells[i] = 4200;
  for (int64_t p = 0; p < s->n; p++) {
    s->velocity[2 * p] += 9;
    for (int i = 0; i < 2; i++) s->position[2 * p + i] += p < s->n / 2 ? 0 : 500 * s->def.dx;
  }
}

// One launch of a pass is refused, and the GPU goes on: nothing is launched on top of what was not made, the failure
// has its name, and the same rollout gives the same bits when it begins again. 0: there are not so many launches.
static int check_launch(int k, const test_choice *choice, uint64_t whole, int32_t refused[LAUNCHES]) {
  uint64_t hash;
  test_run t;
  reset();
  REQUIRE(create(&t, choice) == CQ_OK);
  fail("launch", k, OUT_OF_RESOURCES, 0);
  const cq_status status = pass(&t, &hash);
  if (machine->fail_after >= 0) {
    CHECK(status == CQ_OK && hash == whole, "status %d: %s", (int)status, cq_error());
    destroy(&t);
    return 0;
  }
  CHECK(status == CQ_DEVICE && note_refused(refused), "launch %d, %s, is refused: status %d, \"%s\"", k,
        machine->refused, (int)status, cq_error());
  CHECK(machine->launches == machine->launches_before && machine->faults == 0,
        "launch %d, %s, is refused: %d more are made; %s", k, machine->refused,
        (int)(machine->launches - machine->launches_before), machine->fault);
  reset();
  const cq_status again = pass(&t, &hash);
  CHECK(again == CQ_OK && hash == whole && machine->faults == 0, "after launch %d: status %d, \"%s\", %s bits; %s", k,
        (int)again, cq_error(), hash == whole ? "the same" : "other", machine->fault);
  destroy(&t);
  check_left("launch", k);
  return 1;
}

static void check_every_launch(void) {
  int32_t refused[LAUNCHES] = {0};
  for (int way = 0; way < 4; way++) {
    const test_choice choice = {.side = 5, .forward_only = way / 2, .change = fast_and_wide};
    uint64_t whole;
    test_run t;
    setenv("CQLUA_CUDA_RUN", way % 2 ? "launches" : "grid", 1);
    reset();
    REQUIRE(create(&t, &choice) == CQ_OK && pass(&t, &whole) == CQ_OK);
    destroy(&t);
    for (int k = 0; check_launch(k, &choice, whole, refused); k++) continue;
  }
  for (int i = 0; i < LAUNCHES; i++)
    CHECK(refused[i], "%s: no launch of %s was refused", launches[i].what, launches[i].name);
}

int main(int argc, char **argv) {
  const char *emulated = getenv("CQLUA_CUDA");
  char stranger[4096], object[4096];
  (void)argc;
  if (!emulated) {
    printf("CQLUA_CUDA must name the emulated device\n0 passed, 1 failed\n");
    return 1;
  }
  snprintf(object, sizeof object, "%s", emulated);
  snprintf(stranger, sizeof stranger, "%s.stranger.so", argv[0]);
  check_files(stranger);
  setenv("CQLUA_CUDA", object, 1);
  void *handle = dlopen(object, RTLD_NOW);
  REQUIRE(handle);
  cq_emulation *(*find)(void);
  *(void **)&find = dlsym(handle, "cq_emulation_machine");
  *(void **)&reset = dlsym(handle, "cq_emulation_reset");
  REQUIRE(find && reset);
  machine = find();
  check_auto(8, CQ_DEVICE_CPU, "there are 64");
  check_auto(160, CQ_DEVICE_CUDA, "Emulated GPU");
  check_averaging();
  check_sentences();
  for (int by_launches = 0; by_launches < 2; by_launches++) {
    setenv("CQLUA_CUDA_RUN", by_launches ? "launches" : "grid", 1);
    check_every_call("", UNKNOWN, 0, CQ_DEVICE);
    check_every_call("", MEMORY, 0, CQ_MEMORY);   // some runs go on without the start that was kept
    check_every_call("", ILLEGAL_ADDRESS, 1, CQ_DEVICE);
    check_every_call("kernel", ILLEGAL_ADDRESS, 1, CQ_DEVICE);
    check_every_call("launch", OUT_OF_RESOURCES, 1, CQ_DEVICE);
  }
  check_every_launch();
  check_memory();
  check_recovery();
  return check_report();
}
