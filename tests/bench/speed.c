// speed: million particle-steps per second of the engine alone, forward and backward, without Lua: for machines that
// have only a compiler, and for a GPU above all.
//   speed [--device cuda|cpu] [--case name, or part of some] [--steps N] [--repeat N] [--csv FILE] [--threads N]
// The scene is that of scenes/falling_block.lua: a jittered block that turns and slides along a floor with friction;
// tl-: the same by total Lagrangian steps, of a lattice. A
// control step has 10 engine steps; all of them are kept for the adjoint, where memory is short there are fewer.
#include "cq.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  const char *name;
  int dim, side, cells[3], steps, precision, batch, reference;
} bench_case;

static const bench_case cases[] = {
    {"2d-1600", 2, 40, {100, 100, 1}, 500, CQ_FLOAT32, 1, 0},
    {"2d-6400", 2, 80, {100, 120, 1}, 500, CQ_FLOAT32, 1, 0},
    {"2d-1600-batch64", 2, 40, {100, 100, 1}, 200, CQ_FLOAT32, 64, 0},
    {"2d-6400-batch128", 2, 80, {100, 120, 1}, 200, CQ_FLOAT32, 128, 0},
    {"2d-640000", 2, 800, {500, 620, 1}, 100, CQ_FLOAT32, 1, 0},
    {"3d-8000", 3, 20, {50, 50, 50}, 200, CQ_FLOAT32, 1, 0},
    {"3d-8000-grid100", 3, 20, {100, 100, 100}, 10000, CQ_FLOAT32, 1, 0},
    {"3d-8000-float64", 3, 20, {50, 50, 50}, 200, CQ_FLOAT64, 1, 0},
    {"3d-8000-batch16", 3, 20, {50, 50, 50}, 200, CQ_FLOAT32, 16, 0},
    {"3d-64000", 3, 40, {50, 70, 50}, 200, CQ_FLOAT32, 1, 0},
    {"3d-64000-float64", 3, 40, {50, 70, 50}, 100, CQ_FLOAT64, 1, 0},
    {"3d-512000", 3, 80, {100, 120, 100}, 100, CQ_FLOAT32, 1, 0},
    {"3d-512000-float64", 3, 80, {100, 120, 100}, 50, CQ_FLOAT64, 1, 0},
    {"3d-4096000", 3, 160, {200, 220, 200}, 30, CQ_FLOAT32, 1, 0},
    {"tl-2d-6400", 2, 80, {100, 120, 1}, 200, CQ_FLOAT32, 1, 1},
    {"tl-2d-6400-batch128", 2, 80, {100, 120, 1}, 200, CQ_FLOAT32, 128, 1},
    {"tl-2d-640000", 2, 800, {500, 620, 1}, 100, CQ_FLOAT32, 1, 1},
    {"tl-3d-8000", 3, 20, {50, 50, 50}, 200, CQ_FLOAT32, 1, 1},
    {"tl-3d-64000", 3, 40, {50, 70, 50}, 200, CQ_FLOAT32, 1, 1},
    {"tl-3d-64000-float64", 3, 40, {50, 70, 50}, 100, CQ_FLOAT64, 1, 1},
    {"tl-3d-512000", 3, 80, {100, 120, 100}, 100, CQ_FLOAT32, 1, 1},
    {"tl-3d-4096000", 3, 160, {200, 220, 200}, 30, CQ_FLOAT32, 1, 1},
};

typedef struct {
  int device, steps, repeats, threads;
  const char *only, *csv;
} options;

enum { SUBSTEPS = 10, REPEATS_MAX = 1000, WALLS = 3, BATCH_MAX = 128 };

typedef struct {
  int steps;                 // engine steps of a repetition
  double forward[REPEATS_MAX], backward[REPEATS_MAX];   // [s]
  double phases[CQ_PHASE_COUNT];                        // [s] of all repetitions
  char engine[768];
} timing;

static void require(cq_status status, const char *what) {
  if (!status) return;
  fprintf(stderr, "speed: %s: %s\n", what, cq_error());
  exit(1);
}

static double jitter(void) {   // uniform in [-1, 1]
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) * (2.0 / 9007199254740992.0) - 1;
}

static double *numbers(int64_t count) {
  double *data = malloc((size_t)count * sizeof *data);
  if (data) return data;
  fprintf(stderr, "speed: there is no memory for %lld numbers\n", (long long)count);
  exit(1);
}

// ---- the scene ------------------------------------------------------------------------------------------------------

static cq_world *make_world(const bench_case *c, const options *o) {
  const double dx = 0.01, size = c->side * dx / 2, spin = 0.5 / (size / 2), speed[3] = {0.3, -0.8, 0.15};
  cq_world_def def;
  cq_world_def_init(&def);
  int64_t n = 1;
  for (int i = 0; i < c->dim; i++) n *= c->side;
  double *position = numbers(n * c->dim), *velocity = numbers(n * c->dim), *volume = numbers(n), *young = numbers(n),
         *poisson = numbers(n);
  for (int64_t p = 0; p < n; p++) {
    int64_t k = p;
    for (int i = c->dim - 1; i >= 0; i--, k /= c->side) {
      const double at = i == 1 ? 4.6 * dx : (c->cells[i] * dx - size) / 2;
      position[p * c->dim + i] = at + ((double)(k % c->side) + 0.5 + (c->reference ? 0 : 0.45 * jitter())) * dx / 2;
      velocity[p * c->dim + i] = speed[i];
    }
    const double x = position[p * c->dim] - c->cells[0] * dx / 2, y = position[p * c->dim + 1] - 4.6 * dx - size / 2;
    velocity[p * c->dim] -= spin * y;
    velocity[p * c->dim + 1] += spin * x;
    volume[p] = pow(dx / 2, c->dim);
    young[p] = 10;
    poisson[p] = 0.3;
  }
  cq_wall box;
  cq_wall_init(&box);
  box.shape = CQ_WALL_BOX;
  box.kind = CQ_CONTACT_FRICTION;
  box.friction = 0.4;
  box.hollow = 1;
  const cq_material material = {.kind = CQ_MATERIAL_NEO_HOOKEAN};
  for (int i = 0; i < c->dim; i++) {
    def.cells[i] = c->cells[i];
    box.lower[i] = WALLS * dx;
    box.upper[i] = (c->cells[i] - WALLS) * dx;
  }
  def.dim = c->dim;
  def.formulation = c->reference ? CQ_FORMULATION_TOTAL_LAGRANGIAN : CQ_FORMULATION_UPDATED;
  def.precision = c->precision;
  def.device = o->device;
  def.threads = o->threads;
  def.dx = dx;
  def.dt = 5e-4 * SUBSTEPS;
  def.substeps = SUBSTEPS;
  def.gravity[1] = -9.8;
  def.particle_count = n;
  def.position = position;
  def.velocity = velocity;
  def.volume = def.mass = volume;
  def.young = young;
  def.poisson = poisson;
  def.material_count = 1;
  def.materials = &material;
  def.wall_count = 1;
  def.walls = &box;
  cq_world *world = NULL;
  require(cq_world_create(&def, &world), c->name);
  double *owned[] = {position, velocity, volume, young, poisson};
  for (int k = 0; k < 5; k++) free(owned[k]);
  return world;
}

// ---- measuring ------------------------------------------------------------------------------------------------------

// one that keeps all its steps, as many as memory allows
static cq_rollout *make_rollout(cq_world *world, const bench_case *c, int *steps) {
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.batch = c->batch;
  def.steps = *steps;
  cq_rollout *rollout = NULL;
  cq_plan plan;
  for (;;) {
    require(cq_rollout_create(world, &def, &rollout), c->name);
    require(cq_rollout_begin(rollout), c->name);
    cq_rollout_plan(rollout, &plan);
    if (plan.recompute <= 1) break;
    cq_rollout_destroy(rollout);
    def.steps = plan.records > 0 && plan.records < def.steps ? plan.records : def.steps / 2;
  }
  *steps = def.steps;
  return rollout;
}

// the mean of the first particles: what the adjoint starts from, and short enough to wait for the device by
static double read_few(cq_rollout *rollout, const bench_case *c, int adjoint) {
  static const int64_t start[2] = {0, 4};
  static const int32_t particles[4] = {0, 1, 2, 3};
  static double data[BATCH_MAX * 3];
  cq_readout few;
  cq_readout_init(&few);
  few.group_count = 1;
  few.group_start = start;
  few.particles = particles;
  for (int k = 0; k < BATCH_MAX * 3; k++) data[k] = 1;
  require(adjoint ? cq_rollout_read_adjoint(rollout, &few, data) : cq_rollout_read(rollout, &few, data), c->name);
  return cq_clock();
}

static void measure(const bench_case *c, const options *o, timing *t) {
  cq_world *world = make_world(c, o);
  int steps = ((o->steps ? o->steps : c->steps) + SUBSTEPS - 1) / SUBSTEPS;
  cq_rollout *rollout = make_rollout(world, c, &steps);
  t->steps = steps * SUBSTEPS;
  snprintf(t->engine, sizeof t->engine, "%s", cq_world_device(world));
  for (int k = -1; k < o->repeats; k++) {   // the first one does not count
    require(cq_rollout_begin(rollout), c->name);
    const double start = read_few(rollout, c, 0);
    require(cq_rollout_run(rollout, steps, NULL, NULL), c->name);
    const double there = read_few(rollout, c, 0);
    require(cq_rollout_begin_adjoint(rollout), c->name);
    read_few(rollout, c, 1);
    const double turn = read_few(rollout, c, 0);
    require(cq_rollout_run_adjoint(rollout, steps, NULL, NULL), c->name);
    const double back = read_few(rollout, c, 0);
    if (k >= 0) {
      t->forward[k] = there - start;
      t->backward[k] = back - turn;
    } else {
      cq_world_timers(world, t->phases, 1);
    }
  }
  cq_world_timers(world, t->phases, 1);
  cq_world_destroy(world);
}

// ---- showing --------------------------------------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_columns(FILE *csv) {
  fprintf(csv, "case,device,threads,dim,particles,precision,forward_mps,backward_mps,forward_best_mps,backward_best_"
               "mps,steps,repeats,law,engine");
  for (int f = 0; f < CQ_PHASE_COUNT; f++) fprintf(csv, ",%s_ns", cq_phase_name(f));
  fprintf(csv, ",processor,cores,date\n");
}

static void tell(const bench_case *c, const options *o, timing *t, FILE *csv) {
  const int cuda = o->device == CQ_DEVICE_CUDA;
  double particles = c->batch;
  for (int i = 0; i < c->dim; i++) particles *= c->side;
  const double work = particles * t->steps / 1e6;
  qsort(t->forward, (size_t)o->repeats, sizeof(double), ascending);
  qsort(t->backward, (size_t)o->repeats, sizeof(double), ascending);
  const double forward = t->forward[o->repeats / 2], backward = t->backward[o->repeats / 2];
  printf("%-18s %9.0f float%-2d %6d  %9.1f (%9.1f)  %9.1f (%9.1f)  %9.2f %9.2f\n", c->name, particles, c->precision * 8,
         t->steps, work / forward, work / t->forward[0], work / backward, work / t->backward[0],
         forward / t->steps * 1e6, backward / t->steps * 1e6);
  fflush(stdout);
  if (!csv) return;
  fprintf(csv, "\"%s\",\"%s\",%d,%d,%.0f,\"float%d\",%.6g,%.6g,%.6g,%.6g,%d,%d,\"neo_hookean\",\"%s\"", c->name,
          cuda ? "cuda" : "cpu", o->threads, c->dim, particles, c->precision * 8, work / forward, work / backward,
          work / t->forward[0], work / t->backward[0], t->steps, o->repeats, t->engine);
  for (int f = 0; f < CQ_PHASE_COUNT; f++) fprintf(csv, ",%.4g", t->phases[f] / (work * 1e6 * o->repeats) * 1e9);
  cq_gpu gpu = {.name = ""};
  if (cuda) require(cq_gpu_find(0, &gpu), "asking the GPU what it is");
  char date[16];
  const time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  fprintf(csv, ",\"%s\",%d,%s\n", gpu.name, gpu.processors, date);
  fflush(csv);
}

// ---- the command line -----------------------------------------------------------------------------------------------

static options read_options(int argc, char **argv) {
  options o = {.device = CQ_DEVICE_CUDA, .repeats = 7, .only = ""};
  for (int k = 1; k < argc; k += 2) {
    const char *value = k + 1 < argc ? argv[k + 1] : "";
    if (!strcmp(argv[k], "--device") && (!strcmp(value, "cpu") || !strcmp(value, "cuda")))
      o.device = value[1] == 'p' ? CQ_DEVICE_CPU : CQ_DEVICE_CUDA;
    else if (!strcmp(argv[k], "--case")) o.only = value;
    else if (!strcmp(argv[k], "--csv") && *value) o.csv = value;
    else if (!strcmp(argv[k], "--steps") && atoi(value) > 0) o.steps = atoi(value);
    else if (!strcmp(argv[k], "--threads") && atoi(value) > 0) o.threads = atoi(value);
    else if (!strcmp(argv[k], "--repeat") && atoi(value) > 0 && atoi(value) <= REPEATS_MAX) o.repeats = atoi(value);
    else {
      fprintf(stderr,
              "speed: what is %s %s? Options: --device cuda|cpu, --case NAME, --steps N, --repeat N, --csv FILE, "
              "--threads N\n",
              argv[k], value);
      exit(2);
    }
  }
  return o;
}

int main(int argc, char **argv) {
  const options o = read_options(argc, argv);
  FILE *csv = NULL;
  if (o.csv && !(csv = fopen(o.csv, "w"))) {
    fprintf(stderr, "speed: %s cannot be written\n", o.csv);
    return 1;
  }
  if (csv) print_columns(csv);
  printf("million particle-steps per second, median (best), and microseconds a step\n%-18s %9s %-7s %6s  %21s  %21s  "
         "%9s %9s\n",
         "case", "particles", "", "steps", "forward", "backward", "forward", "backward");
  static timing t;
  int measured = 0, alone = 0;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) alone |= !strcmp(cases[k].name, o.only);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    if (alone ? strcmp(cases[k].name, o.only) != 0 : !strstr(cases[k].name, o.only)) continue;
    memset(&t, 0, sizeof t);
    measure(&cases[k], &o, &t);
    tell(&cases[k], &o, &t, csv);
    measured++;
  }
  if (csv && fclose(csv)) return 1;
  if (!measured) fprintf(stderr, "speed: no case has %s in its name\n", o.only);
  return measured ? 0 : 2;
}
