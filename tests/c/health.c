// What goes wrong during a rollout is said, by particle, step and cause, and the rollout works as before afterwards.
#include "rollout.h"

enum { STEPS = 8, SUBSTEPS = 3 };

// a block, and two particles far from it and from each other: user's indices 0 and n - 1
typedef struct {
  test_run run;
  int64_t first, last;
} patient;

static void open_patient(patient *t, int dim, int precision, int batch) {
  const test_choice choice = {.dim = dim,
                              .side = dim == 2 ? 12 : 7,
                              .precision = precision,
                              .threads = 2,
                              .substeps = SUBSTEPS,
                              .steps = STEPS,
                              .batch = batch};
  test_run_open(&t->run, &choice);
  t->first = 0;
  t->last = t->run.scene.n - 1;
  double *x = t->run.scene.position, *v = t->run.scene.velocity;
  const double dx = t->run.scene.def.dx, end = t->run.scene.def.cells[0] * dx;
  for (int i = 0; i < dim; i++) {
    x[i] = end - 3.5 * dx;
    x[t->last * dim + i] = i == 1 ? end - 3.5 * dx : 3.5 * dx;
    v[i] = v[t->last * dim + i] = 0;
  }
}

// the world's values again, but for those that a case has changed
static void set_field(patient *t, int32_t field, const double *value) {
  REQUIRE(cq_rollout_set(t->run.rollout, field, value, 0) == CQ_OK);
}

static void heal(patient *t) {
  double walls[16] = {0};
  TEST_FIELDS_EACH(f) set_field(t, f, test_scene_value(&t->run.scene, f, walls));
}

// runs until it fails
static cq_health fail(patient *t, const char *what) {
  cq_health health = {0};
  cq_status status = cq_rollout_begin(t->run.rollout);
  if (!status) status = cq_rollout_begin_adjoint(t->run.rollout);      // which the first step, or its failure, ends
  int made = 0;
  while (!status && made < STEPS) {
    status = test_run_step(&t->run, made);
    made += !status;
  }
  CHECK(status == CQ_UNSTABLE && strstr(cq_error(), "unstable"), "%dD %s: status %d, \"%s\"", t->run.choice.dim, what,
        status, cq_error());
  cq_rollout_health(t->run.rollout, &health);
  CHECK(cq_rollout_at(t->run.rollout) == made, "%dD %s: at step %d after %d", t->run.choice.dim, what,
        cq_rollout_at(t->run.rollout), made);
  CHECK(health.step >= made * SUBSTEPS && health.step <= (made + 1) * SUBSTEPS,
        "%dD %s: engine step %d in control step %d", t->run.choice.dim, what, (int)health.step, made);
  // people count from 1
  char named[64];
  snprintf(named, sizeof named, "engine step %d: particle %d ", (int)health.step + 1, (int)health.particle + 1);
  CHECK(status != CQ_UNSTABLE || strstr(cq_error(), named), "%dD %s: \"%s\" without \"%s\"", t->run.choice.dim, what,
        cq_error(), named);
  if (status != CQ_UNSTABLE) return health;
  // nothing goes on from a state in the middle of a control step
  CHECK_FAILS(test_run_step(&t->run, made < STEPS ? made : 0), CQ_INVALID, "begin");
  CHECK_FAILS(cq_rollout_begin_adjoint(t->run.rollout), CQ_INVALID, "begin");
  CHECK_FAILS(cq_rollout_run_adjoint(t->run.rollout, 1, NULL, NULL), CQ_INVALID, "begin the adjoint");
  return health;
}

#define CHECK_HEALTH(t, what, h, kind, who)                                                                            \
  CHECK((h).bad == (kind) && (h).particle == (who), "%dD %s: kind %d of particle %d, wanted %d of %d", (t)->run.choice.dim, \
        what, (h).bad, (int)(h).particle, kind, (int)(who))

// a force on particle first in the third control step: one that overflows, and one that only throws it out of the world
static void check_forces(patient *t) {
  const int at = 2, single = t->run.choice.precision == CQ_FLOAT32;
  double *force = t->run.forces + at * t->run.force_count, kept = force[1];
  force[1] = single ? 1e38 : 1e308;
  cq_health h = fail(t, "an overflow");
  CHECK_HEALTH(t, "an overflow", h, CQ_HEALTH_NOT_FINITE, t->first);
  CHECK(h.step == at * SUBSTEPS && !isfinite(h.value), "step %d, value %g", (int)h.step, h.value);
  force[1] = single ? 1e28 : 1e280;
  h = fail(t, "an enormous force");
  force[1] = kept;
  CHECK_HEALTH(t, "an enormous force", h, CQ_HEALTH_LEFT_GRID, t->first);
  CHECK(h.step == at * SUBSTEPS && h.axis == 1 && h.value > 1e20, "step %d, value %g", (int)h.step, h.value);
}

// F with a negative determinant at the start; and one that the velocity field turns inside out in the first step
static void check_inverted(patient *t, int64_t who) {
  const int dim = t->run.choice.dim, dd = dim * dim;
  const int64_t count = t->run.scene.n * dd;
  double *f = test_array(count), *c = test_array(count);
  memcpy(f, t->run.scene.deformation, (size_t)count * sizeof *f);
  for (int k = 0; k < dd; k++) f[who * dd + k] = k % (dim + 1) == 0;
  f[who * dd] = -0.5;
  set_field(t, CQ_FIELD_DEFORMATION, f);
  cq_health h = fail(t, "an inverted start");
  CHECK_HEALTH(t, "an inverted start", h, CQ_HEALTH_INVERTED, who);
  CHECK(h.step == 0 && fabs(h.value + 0.5) < 1e-6, "step %d, det F %g", (int)h.step, h.value);
  heal(t);
  // F' = (I + dt C) F, and a particle alone keeps its C
  f[who * dd] = 1;
  memcpy(c, t->run.scene.affine, (size_t)count * sizeof *c);
  for (int k = 0; k < dd; k++) c[who * dd + k] = 0;
  c[who * dd + dd - 1] = -1.5 * SUBSTEPS / t->run.scene.def.dt;
  set_field(t, CQ_FIELD_DEFORMATION, f);
  set_field(t, CQ_FIELD_AFFINE, c);
  h = fail(t, "a collapsing velocity");
  CHECK_HEALTH(t, "a collapsing velocity", h, CQ_HEALTH_INVERTED, who);
  CHECK(h.step == 1 && fabs(h.value + 0.5) < 1e-2, "step %d, det F %g", (int)h.step, h.value);
  heal(t);
  free(f);
  free(c);
}

static void check_leaving(patient *t, int64_t who, int axis, int side) {
  const int dim = t->run.choice.dim;
  const cq_world_def *d = &t->run.scene.def;
  const int64_t count = t->run.scene.n * dim;
  double *v = test_array(count), *x = test_array(count);
  memcpy(v, t->run.scene.velocity, (size_t)count * sizeof *v);
  memcpy(x, t->run.scene.position, (size_t)count * sizeof *x);
  const double size = d->cells[axis] * d->dx, speed = 0.4 * d->dx / (d->dt / SUBSTEPS);
  v[who * dim + axis] = side * speed;
  // far from walls: from the upper part of the world out at the side
  for (int i = 0; i < dim; i++) x[who * dim + i] = size - 2.5 * d->dx;
  x[who * dim + axis] = side < 0 ? (axis == 1 ? size - 2.5 * d->dx : 2.5 * d->dx) : size - 2.5 * d->dx;
  set_field(t, CQ_FIELD_VELOCITY, v);
  set_field(t, CQ_FIELD_POSITION, x);
  const cq_health h = fail(t, "leaving");
  CHECK_HEALTH(t, "leaving", h, CQ_HEALTH_LEFT_GRID, who);
  CHECK(h.axis == axis && (side < 0 ? h.value < 0 : h.value > size) &&
            fabs(h.value - (side < 0 ? 0 : size)) < 2 * d->dx,
        "%dD leaving: axis %d at %g, wanted axis %d of [0, %g]", dim, h.axis, h.value, axis, size);
  // 2.5 cells at 0.4 a step and a little more or less by the force on it
  CHECK(h.step >= 5 && h.step <= 7, "left at step %d", (int)h.step);
  heal(t);
  free(v);
  free(x);
}

// several things at once: the lowest particle of the user is named
static void check_overlap(patient *t) {
  const int dd = t->run.choice.dim * t->run.choice.dim;
  const int64_t count = t->run.scene.n * dd, middle = t->run.scene.n / 2;
  double *f = test_array(count);
  memcpy(f, t->run.scene.deformation, (size_t)count * sizeof *f);
  for (int64_t p = middle; p <= t->last; p += t->last - middle) {
    for (int k = 0; k < dd; k++) f[p * dd + k] = k % (t->run.choice.dim + 1) == 0;
    f[p * dd] = -0.25 - 0.25 * (double)(p == t->last);
  }
  set_field(t, CQ_FIELD_DEFORMATION, f);
  t->run.forces[1] *= 1e305;   // on particle first, in the same step
  const cq_health h = fail(t, "two inverted and one not finite");
  t->run.forces[1] /= 1e305;
  CHECK_HEALTH(t, "two inverted and one not finite", h, CQ_HEALTH_INVERTED, middle);
  CHECK(fabs(h.value + 0.25) < 1e-6, "det F %g", h.value);
  heal(t);
  free(f);
}

static void check_patient(int dim, int precision) {
  patient t, fresh;
  open_patient(&t, dim, precision, 1);
  open_patient(&fresh, dim, precision, 1);
  // once more with a force on each of the two
  for (int k = 0; k < 2; k++) {
    patient *p = k ? &fresh : &t;
    p->run.scene.force_particle[0] = (int32_t)p->first;
    p->run.scene.force_particle[4] = (int32_t)p->last;
    p->run.scene.def.wall_count = 1;   // nothing in the way of those that leave
    cq_world_destroy(p->run.world);
    REQUIRE(cq_world_create(&p->run.scene.def, &p->run.world) == CQ_OK);
    cq_rollout_def def;
    cq_rollout_def_init(&def);
    def.steps = STEPS;
    REQUIRE(cq_rollout_create(p->run.world, &def, &p->run.rollout) == CQ_OK);
  }
  const uint64_t well = test_run_hash(&fresh.run, STEPS);
  check_forces(&t);
  CHECK(test_run_hash(&t.run, STEPS) == well, "%dD: other bits after something was not finite", dim);
  for (int k = 0; k < 2; k++) check_inverted(&t, k ? t.last : t.first);
  CHECK(test_run_hash(&t.run, STEPS) == well, "%dD: other bits after something was inverted", dim);
  for (int axis = 0; axis < dim; axis++) {
    check_leaving(&t, axis % 2 ? t.last : t.first, axis, 1);
    if (axis != 1) check_leaving(&t, t.last, axis, -1);   // the floor keeps it
  }
  CHECK(test_run_hash(&t.run, STEPS) == well, "%dD: other bits after a particle left", dim);
  check_overlap(&t);
  CHECK(test_run_hash(&t.run, STEPS) == well, "%dD: other bits after everything at once", dim);
  cq_health h;
  cq_rollout_health(t.run.rollout, &h);
  CHECK(h.bad == CQ_HEALTH_GOOD && h.particle == 0 && h.step == 0, "health %d after a good rollout", h.bad);
  test_run_close(&t.run);
  test_run_close(&fresh.run);
}

// the scene of a batch is named
static void check_batch(void) {
  patient t;
  open_patient(&t, 2, CQ_FLOAT64, 3);
  const int64_t count = t.run.scene.n * 4, who = 17;
  double *f = test_array(3 * count);
  for (int s = 0; s < 3; s++) memcpy(f + s * count, t.run.scene.deformation, (size_t)count * sizeof *f);
  f[2 * count + who * 4] *= -1;
  f[2 * count + who * 4 + 1] = 0;
  REQUIRE(cq_rollout_set(t.run.rollout, CQ_FIELD_DEFORMATION, f, 1) == CQ_OK);
  const cq_health h = fail(&t, "one scene of three");
  CHECK_HEALTH(&t, "one scene of three", h, CQ_HEALTH_INVERTED, who);
  CHECK(h.scene == 2, "scene %d", h.scene);
  free(f);
  test_run_close(&t.run);
}

int main(void) {
  check_patient(2, CQ_FLOAT64);
  check_patient(3, CQ_FLOAT32);
  check_batch();
  return check_report();
}
