// Faults that were found once, each with the smallest scene that showed it.
#include "check.h"
#include "scene.h"

// particles of unit cells and next to no stiffness, at rest; a case changes what it needs
typedef struct {
  cq_world_def def;
  cq_material material;
  double position[64], velocity[64], volume[32], mass[32], young[32], poisson[32];
  cq_world *world;
  cq_rollout *rollout;
} bench;

static void bench_make(bench *b, int dim, int64_t n, int precision, int cells) {
  memset(b, 0, sizeof *b);
  cq_world_def_init(&b->def);
  cq_world_def *d = &b->def;
  d->dim = dim;
  d->precision = precision;
  d->threads = 1;
  d->dx = 1;
  d->dt = 1;
  for (int i = 0; i < 3; i++) d->cells[i] = cells;
  d->particle_count = n;
  for (int64_t p = 0; p < n; p++) {
    b->volume[p] = b->mass[p] = 0.25;
    b->young[p] = 1e-9;
    b->poisson[p] = 0.3;
    for (int i = 0; i < dim; i++) b->position[p * dim + i] = cells / 2;
  }
  d->position = b->position;
  d->velocity = b->velocity;
  d->volume = b->volume;
  d->mass = b->mass;
  d->young = b->young;
  d->poisson = b->poisson;
  d->material_count = 1;
  d->materials = &b->material;
}

static cq_status bench_begin(bench *b, int steps, int batch) {
  REQUIRE(cq_world_create(&b->def, &b->world) == CQ_OK);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = steps;
  def.batch = batch;
  REQUIRE(cq_rollout_create(b->world, &def, &b->rollout) == CQ_OK);
  return cq_rollout_begin(b->rollout);
}

// the position of the first particle
static cq_readout first_particle(void) {
  static const int64_t start[2] = {0, 1};
  static const int32_t first = 0;
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_GATHER;
  r.group_count = 1;
  r.group_start = start;
  r.particles = &first;
  return r;
}

// a coordinate of the first particle
static double bench_read(const bench *b, int axis) {
  const cq_readout r = first_particle();
  double x[3];
  REQUIRE(cq_rollout_read(b->rollout, &r, x) == CQ_OK);
  return x[axis];
}

// far from the origin, float32 rounds each step of a slow particle up to twice its length: sorting must come in time
static void check_slow_drift(void) {
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT32, 600);
  b.def.substeps = 1000;
  b.position[0] = b.position[1] = 300.3;
  b.velocity[0] = b.velocity[1] = 1.6e-2;
  REQUIRE(bench_begin(&b, 100, 1) == CQ_OK);
  double x = b.position[0];
  for (int i = 0; i < 100; i++) {
    const double before = x;
    REQUIRE(cq_rollout_run(b.rollout, 1, NULL, NULL) == CQ_OK);
    x = bench_read(&b, 0);
    if (i % 20 == 19)
      CHECK(x - before > 0.01, "a free particle at speed 0.016 moved by %g in time %d", x - before, i + 1);
  }
  cq_world_destroy(b.world);
}

// Leaving the world is noticed in the step that does it, however slow the particle and
// however long since it was sorted.
static void check_leaving(double y, double v, int step) {
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT64, 16);
  b.position[1] = y;
  b.velocity[1] = v;
  REQUIRE(bench_begin(&b, 100, 1) == CQ_OK);
  cq_status status = CQ_OK;
  for (int i = 0; i < step; i++) status = status ? status : cq_rollout_run(b.rollout, 1, NULL, NULL);
  CHECK(status == CQ_OK, "from %g at speed %g: %s after %d steps", y, v, cq_error(), cq_rollout_at(b.rollout));
  status = cq_rollout_run(b.rollout, 1, NULL, NULL);
  cq_health h;
  cq_rollout_health(b.rollout, &h);
  CHECK(status == CQ_UNSTABLE && h.bad == CQ_HEALTH_LEFT_GRID && h.step == step && h.axis == 1 && h.particle == 0,
        "from %g at speed %g: status %d, health %d at step %d, wanted step %d", y, v, status, h.bad, (int)h.step, step);
  CHECK(fabs(h.value - (y + (step + 1) * v)) < 1e-6, "it is at %g, %g wanted", h.value, y + (step + 1) * v);
  cq_world_destroy(b.world);
}

// A particle on the upper edge is in the world, whatever float32 makes of the edge.
static void check_upper_edge(void) {
  int refused = 0;
  for (int k = 1; k < 200; k++) {
    bench b;
    bench_make(&b, 2, 1, CQ_FLOAT32, 4 + k);
    b.def.dx = 1.1 / (k % 37 + 3);
    b.position[0] = b.def.cells[0] * b.def.dx;
    b.position[1] = 2 * b.def.dx;
    refused += bench_begin(&b, 1, 1) != CQ_OK;
    cq_world_destroy(b.world);
  }
  CHECK(refused == 0, "%d of 199 worlds refuse a particle on their upper edge: %s", refused, cq_error());
}

// What is set takes effect at the next begin: the running rollout keeps what it began with,
// whatever becomes of the arrays.
static void check_set(void) {
  bench b;
  bench_make(&b, 2, 2, CQ_FLOAT64, 16);
  b.position[0] = 4;
  REQUIRE(bench_begin(&b, 4, 2) == CQ_OK);
  const int64_t start[2] = {0, 2};
  const int32_t both[2] = {0, 1};
  cq_readout r;
  cq_readout_init(&r);
  r.group_count = 1;
  r.group_start = start;
  r.particles = both;
  const double first[2] = {1, 3}, second[4] = {1, 1, 5, 1}, third[2] = {7, 1};
  double x[4], wanted = (1 * 4 + 3 * 8) / 4.0;
  REQUIRE(cq_rollout_set(b.rollout, CQ_FIELD_MASS, first, 0) == CQ_OK);
  REQUIRE(cq_rollout_begin(b.rollout) == CQ_OK);
  for (int k = 0; k < 3; k++) {
    if (k) REQUIRE(cq_rollout_set(b.rollout, CQ_FIELD_MASS, k == 1 ? second : third, k == 1) == CQ_OK);
    REQUIRE(cq_rollout_read(b.rollout, &r, x) == CQ_OK);
    CHECK(x[0] == wanted && x[2] == wanted, "centres at %g and %g after %d values were set, both were %g", x[0], x[2],
          k, wanted);
  }
  wanted = (7 * 4 + 1 * 8) / 8.0;
  REQUIRE(cq_rollout_begin(b.rollout) == CQ_OK);
  REQUIRE(cq_rollout_read(b.rollout, &r, x) == CQ_OK);
  CHECK(x[0] == wanted && x[2] == wanted, "centres at %g and %g after the next begin, %g wanted", x[0], x[2], wanted);

  // a step forward leaves the adjoint of the state before
  REQUIRE(cq_rollout_begin_adjoint(b.rollout) == CQ_OK);
  REQUIRE(cq_rollout_run(b.rollout, 1, NULL, NULL) == CQ_OK);
  CHECK_FAILS(cq_rollout_run_adjoint(b.rollout, 1, NULL, NULL), CQ_INVALID, "begin the adjoint");
  cq_world_destroy(b.world);
}

// two particles in far corners: what lies between them cannot be counted, and is not
static void check_far_apart(int cells, cq_status wanted) {
  bench b;
  bench_make(&b, 3, 2, CQ_FLOAT32, cells);
  for (int i = 0; i < 3; i++) {
    b.position[i] = 4;
    b.position[3 + i] = cells - 4;
  }
  const cq_status status = bench_begin(&b, 1, 2);
  CHECK(status == wanted && (!wanted || strstr(cq_error(), "box around all particles")),
        "%d cells apart: status %d, %s", cells, status, cq_error());
  cq_world_destroy(b.world);
}

// a list may name a particle more than once, and threads share the work: each gradient arrives
static void check_repeats(void) {
  enum { TIMES = 4001 };
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT64, 16);
  b.def.threads = 8;
  REQUIRE(bench_begin(&b, 1, 1) == CQ_OK);
  static double ones[2 * TIMES];
  static int32_t same[TIMES];
  const int64_t start[2] = {0, TIMES};
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_GATHER;
  r.group_count = 1;
  r.group_start = start;
  r.particles = same;
  for (int k = 0; k < 2 * TIMES; k++) ones[k] = 1;
  int off = 0;
  for (int k = 0; k < 20; k++) {
    double grad[2];
    REQUIRE(cq_rollout_begin_adjoint(b.rollout) == CQ_OK);
    REQUIRE(cq_rollout_read_adjoint(b.rollout, &r, ones) == CQ_OK);
    REQUIRE(cq_rollout_gradient(b.rollout, CQ_FIELD_POSITION, grad, 0) == CQ_OK);
    off += grad[0] != TIMES || grad[1] != TIMES;
  }
  CHECK(off == 0, "%d of 20 gradients of a particle listed %d times are wrong", off, TIMES);
  cq_world_destroy(b.world);
}

static void check_threads(void) {
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT64, 16);
  b.def.threads = 100000;
  CHECK_FAILS(cq_world_create(&b.def, &b.world), CQ_INVALID, "threads is 100000");
}

// as many moving walls as a world has may hold a node: none is forgotten
static void check_many_movers(void) {
  enum { WALLS = 12 };
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT64, 16);
  b.velocity[0] = 0.1;
  cq_wall walls[WALLS];
  for (int w = 0; w < WALLS; w++) {
    cq_wall_init(&walls[w]);
    walls[w].point[1] = 100;   // solid everywhere
    walls[w].moves = 1;
    walls[w].kind = w < WALLS - 1 ? CQ_CONTACT_SLIP : CQ_CONTACT_STICKY;
  }
  b.def.wall_count = WALLS;
  b.def.walls = walls;
  REQUIRE(bench_begin(&b, 1, 1) == CQ_OK);
  REQUIRE(cq_rollout_run(b.rollout, 1, NULL, NULL) == CQ_OK);
  CHECK(bench_read(&b, 0) == 8, "the sticky one of %d moving walls let the particle move to %g", WALLS,
        bench_read(&b, 0));
  cq_world_destroy(b.world);
}

// a pin holds nodes where the world put it: elsewhere it would hold nothing, silently
static void check_pin_moved(void) {
  bench b;
  bench_make(&b, 2, 1, CQ_FLOAT64, 16);
  const int32_t pin = 0;
  b.def.pins = &pin;
  b.def.pin_count = 1;
  REQUIRE(bench_begin(&b, 1, 1) == CQ_OK);
  const double near[2] = {b.def.position[0] + 1e-3 * b.def.dx, b.def.position[1]};
  const double far[2] = {b.def.position[0] + 2 * b.def.dx, b.def.position[1]};
  CHECK(cq_rollout_set(b.rollout, CQ_FIELD_POSITION, near, 0) == CQ_OK, "%s", cq_error());
  CHECK_FAILS(cq_rollout_set(b.rollout, CQ_FIELD_POSITION, far, 0), CQ_INVALID, "pinned particle 1");
  cq_world_destroy(b.world);
}

// control steps of a rollout, those before a second one begins from it, and those of the second one
enum { FIRST = 4, MIDDLE = 2, AFTER = 2 };

// a particle that sinks along a ball, whose velocity is another one in each control step; returns the second rollout
static cq_rollout *sink_open(bench *b, cq_wall *ball) {
  bench_make(b, 2, 1, CQ_FLOAT64, 16);
  cq_wall_init(ball);
  ball->shape = CQ_WALL_SPHERE;
  ball->kind = CQ_CONTACT_SLIP;
  ball->moves = 1;
  ball->point[0] = 7;
  ball->point[1] = 3;
  ball->radius = 6;
  b->velocity[0] = 0.02;
  b->velocity[1] = -0.05;
  b->def.wall_count = 1;
  b->def.walls = ball;
  REQUIRE(bench_begin(b, FIRST, 1) == CQ_OK);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = AFTER;
  def.batch = 1;
  cq_rollout *second;
  REQUIRE(cq_rollout_create(b->world, &def, &second) == CQ_OK);
  const double still[2 * AFTER] = {0};
  REQUIRE(cq_rollout_set_walls(second, still, 0) == CQ_OK);
  return second;
}

static const int32_t sink_scene = 0;

// where the particle is along x at the end of the second half, by velocities of the ball in the first rollout
static double sink_run(bench *b, cq_rollout *second, const double velocity[2 * FIRST]) {
  REQUIRE(cq_rollout_set_walls(b->rollout, velocity, 0) == CQ_OK);
  REQUIRE(cq_rollout_begin(b->rollout) == CQ_OK);
  REQUIRE(cq_rollout_run(b->rollout, MIDDLE, NULL, NULL) == CQ_OK);
  REQUIRE(cq_rollout_begin_from(second, b->rollout, &sink_scene) == CQ_OK);
  REQUIRE(cq_rollout_run(second, AFTER, NULL, NULL) == CQ_OK);
  bench end = *b;
  end.rollout = second;
  return bench_read(&end, 0);
}

// The place of a wall at the end of a half comes from its velocities in this half, and not from later ones.
static void check_middle(void) {
  bench b;
  cq_wall ball;
  cq_rollout *second = sink_open(&b, &ball);
  double velocity[2 * FIRST], grad[2 * FIRST];
  for (int k = 0; k < 2 * FIRST; k++) velocity[k] = 0.03 * sin(1.0 + k);
  sink_run(&b, second, velocity);
  const double along_x[2] = {1, 0};
  const cq_readout r = first_particle();
  REQUIRE(cq_rollout_begin_adjoint(b.rollout) == CQ_OK);
  REQUIRE(cq_rollout_begin_adjoint(second) == CQ_OK);
  REQUIRE(cq_rollout_read_adjoint(second, &r, along_x) == CQ_OK);
  REQUIRE(cq_rollout_run_adjoint(second, AFTER, NULL, NULL) == CQ_OK);
  REQUIRE(cq_rollout_pass_adjoint(second, b.rollout, &sink_scene) == CQ_OK);
  REQUIRE(cq_rollout_run_adjoint(b.rollout, MIDDLE, NULL, NULL) == CQ_OK);
  REQUIRE(cq_rollout_walls_gradient(b.rollout, grad, 0) == CQ_OK);
  for (int k = 0; k < 2 * FIRST; k++) {
    const double at = velocity[k], h = 1e-5;
    velocity[k] = at + h;
    const double above = sink_run(&b, second, velocity);
    velocity[k] = at - h;
    const double below = sink_run(&b, second, velocity), slope = (above - below) / (2 * h);
    velocity[k] = at;
    CHECK(fabs(grad[k] - slope) < 1e-6 && (slope != 0) == (k < 2 * MIDDLE),
          "gradient %d of the velocity of a ball is %.9g, by differences %.9g", k, grad[k], slope);
  }
  cq_world_destroy(b.world);
}

int main(void) {
  check_middle();
  check_pin_moved();
  check_many_movers();
  check_far_apart(2000, CQ_MEMORY);
  check_repeats();
  check_threads();
  check_set();
  check_slow_drift();
  check_leaving(0.325, -0.05, 6);
  check_leaving(15.675, 0.05, 6);
  check_leaving(8, -9, 0);   // in one leap from the middle
  check_upper_edge();
  return check_report();
}
