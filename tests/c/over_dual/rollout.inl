// rollout: kernels over dual numbers in CQ_DIM dimensions, and the comparison; included by rollout.cc.

typedef dual real;
#include "cpu/kernels.c"

enum { SUBSTEPS = 2, D = CQ_DIM, DD = D * D };
int control_steps = 50;
uint64_t unwanted = 0;       // fields whose gradients are not asked for

typedef std::vector<double> numbers;

// A direction in everything that a rollout takes, in the user's order: zero but for what is differentiated.
struct heading {
  // signals {steps, actuators}, forces {steps, count, D}
  numbers field[CQ_FIELD_COUNT], slot[CQ_SLOTS_MAX], signals, forces;
  // {steps, walls, D} velocities, and what they make; or empty
  numbers walls, places;
  int32_t step;                                                      // control step that runs
  std::vector<dual> room;                                            // as large as the largest array of a scene
};
static heading toward;

static cq_values values_of(const heading &h) {
  cq_values v = {};
  for (int f = 0; f < CQ_FIELD_COUNT; f++) v.value[f] = h.field[f].empty() ? NULL : h.field[f].data();
  return v;
}

// ---- loaders that seed ----------------------------------------------------------------------------------------------
// What the kernels load is linear in the user's arrays, so the slopes are what the product's
// loaders make of the direction.

static void seed(void *data, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; k++) ((dual *)data)[k].slope = toward.room[(size_t)k].value;
}

static void load_state_seeded(const cq_scene *s, cq_slice *out, int32_t begin, int32_t end) {
  cq_scene other = *s;
  cq_slice slice = *out;
  other.values = values_of(toward);
  slice.data = toward.room.data();
  load_state(s, out, begin, end);
  load_state(&other, &slice, begin, end);
  seed(out->data, AT(begin, FIELDS, 0), AT(end, FIELDS, 0));
}

static void load_params_seeded(const cq_scene *s, cq_arrangement *a, int32_t begin, int32_t end) {
  cq_scene other = *s;
  cq_arrangement arrangement = *a;
  other.values = values_of(toward);
  for (int k = 0; k < s->model->slot_count; k++) other.slot[k] = toward.slot[k].data();
  arrangement.params = toward.room.data();
  load_params(s, a, begin, end);
  load_params(&other, &arrangement, begin, end);
  seed(a->params, AT(begin, s->params, 0), AT(end, s->params, 0));
}

static void load_globals_seeded(cq_scene *s) {
  cq_scene other = *s;
  other.values = values_of(toward);
  other.globals = toward.room.data();
  load_globals(s);
  load_globals(&other);
  seed(s->globals, 0, 4 + 4 * s->model->wall_count);
}

// weights times signals: linear in each of them; all share the weight_rows, which are laid anew for each
static void load_drive_seeded(cq_scene *s, int32_t range) {
  const int64_t begin = AT(s->range_start[range], ACTUATION_FIELDS, 0),
                end = AT(s->range_start[range + 1], ACTUATION_FIELDS, 0);
  cq_scene weights = *s, signals = *s;
  weights.values = values_of(toward);
  weights.forces = &toward.forces[(size_t)(toward.step * s->model->force_count * D)];
  signals.signals = &toward.signals[(size_t)(toward.step * s->model->actuator_count)];
  signals.forces = NULL;
  weights.actuation = signals.actuation = toward.room.data();
  s->rows_sorted_at[range] = weights.rows_sorted_at[range] = signals.rows_sorted_at[range] = -1;
  load_actuation(s, range);
  load_actuation(&weights, range);
  seed(s->actuation, begin, end);
  for (int64_t k = begin; k < end; k++)
    if (k / CQ_CHUNK % ACTUATION_FIELDS >= PRESSURE) ((dual *)s->actuation)[k].slope = 0;   // it has no weights
  load_actuation(&signals, range);
  for (int64_t k = begin; k < end; k++) ((dual *)s->actuation)[k].slope += toward.room[(size_t)k].value;
}

static void load_cables_seeded(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  load_cables(s);
  for (int32_t k = 0; k < c->count; k++) {
    Cable *cable = cable_at(s, k);
    cable->stiffness.slope = toward.field[CQ_FIELD_CABLE_STIFFNESS][(size_t)k];
    cable->length.slope = toward.field[CQ_FIELD_CABLE_LENGTH][(size_t)k];
    cable->friction.slope = toward.field[CQ_FIELD_CABLE_FRICTION][(size_t)k];
    cable->signal.slope = toward.signals[(size_t)(toward.step * s->model->actuator_count + c->actuator[k])];
  }
  for (int32_t k = 0; k < c->chambers; k++)
    chamber_at(s, k)->pressure.slope =
        toward.signals[(size_t)(toward.step * s->model->actuator_count + c->actuator[c->count + k])];
}

static void load_walls_seeded(cq_scene *s, int64_t step, const double *velocity, const double *place) {
  const int32_t walls = s->model->wall_count;
  const size_t at = (size_t)(toward.step * walls * D);
  load_walls(s, step, velocity, place);
  for (int32_t w = 0; w < walls; w++)
    for (int i = 0; i < D; i++) {
      ((dual *)s->globals)[3 + walls + 3 * w + i].slope = toward.walls[at + (size_t)(w * D + i)];
      ((dual *)s->wall_place)[3 * w + i].slope = toward.places[at + (size_t)(w * D + i)];
    }
}

// the weights of the impulses of a control step in the loss, and what they have given its slope
static const double *impulse_weight;
static double impulse_slope;

static void store_impulse_seeded(cq_scene *s) {
  for (int32_t r = 0; r < s->ranges; r++)
    for (int32_t k = 0; k < s->model->contact_count * CONTACT_WIDTH; k++)
      impulse_slope += impulse_weight[k] * impulse_of(s, r)[k].slope;
  store_impulse(s);
}

// ---- one rollout over dual numbers ----------------------------------------------------------------------------------

struct subject {
  test_scene scene;
  cq_world *world;
  cq_rollout *rollout;
  heading value;             // what the rollout takes, as the direction is held
  numbers weight;            // of the loss {n, FIELDS}
  numbers derived;           // of the derived readouts in it {n, quantities, DD}
  numbers impulse;           // of the impulses of walls and groups of pins {steps, contacts, CONTACT_WIDTH}
};

// the direction in the slots of a particle, from that in the fields
static void head_slots(const cq_model *m, size_t p) {
  int32_t of[CQ_SLOTS_MAX];
  const int32_t count = cq_material_slots(&m->materials[m->material[p]], of);
  dual lame[3];
  for (int32_t k = 0; k < count; k++) {
    if (of[k] == CQ_SLOT_MU)
      over_dual::cq_lame({m->young[p], toward.field[CQ_FIELD_YOUNG][p]},
                         {m->poisson[p], toward.field[CQ_FIELD_POISSON][p]}, &lame[0], &lame[1], &lame[2]);
    size_t component = 0;   // of a vector, which takes three slots in 2D too
    for (int32_t before = 0; before < k; before++) component += of[before] == of[k];
    const bool vector = of[k] >= 0 && cq_field_describe(of[k])->rank;
    toward.slot[k][p] = of[k] < 0              ? lame[-1 - of[k]].slope
                        : !vector              ? toward.field[of[k]][p]
                        : component < (size_t)D ? toward.field[of[k]][p * D + component]
                                               : 0;
  }
}

enum { DERIVED = CQ_QUANTITY_COUNT - CQ_STATE_FIELD_COUNT };

// Is a derived readout at a kink, where its derivative is 0? The speed of a particle at rest, von Mises of a fluid.
// Walls stop a node to rounding only, so that a particle among held nodes may keep a speed of 1e-35.
static bool is_kink(int q, double value) {
  const int32_t id = CQ_STATE_FIELD_COUNT + q;
  return (id == CQ_DERIVED_SPEED || id == CQ_DERIVED_VON_MISES) && value < 1e-20;
}

// Weight of a particle in the derived readouts of the loss: they are read as sums, by mass, by
// volume and of particles alike.
static dual weight_of(const subject &t, int weighting, size_t p) {
  if (weighting == CQ_WEIGHT_PARTICLE) return 1;
  const int32_t field = weighting == CQ_WEIGHT_MASS ? CQ_FIELD_MASS : CQ_FIELD_VOLUME;
  return dual(t.value.field[field][p], toward.field[field][p]);
}

// what the derived readouts of the last state give the slope of the loss
static double slope_of_derived(const cq_scene *s, const subject &t) {
  double slope = 0;
  for (int32_t p = 0; p < s->model->particle_count; p++) {
    entries e;
    e.count = 1;
    e.slot[0] = s->arrangement->slot[p];
    ReadoutPoint at;
    Real slot[CQ_SLOTS_MAX];
    load_points(s, &e, 0, &at, slot);
    readout_as(&at, &s->model->materials[s->model->material[p]], slot);
    for (int q = 0; q < DERIVED; q++) {
      dual value[READOUT_WIDTH];
      readout(CQ_STATE_FIELD_COUNT + q, &at, value);
      if (is_kink(q, value[0].value)) continue;
      for (int i = 0; i < cq_quantity_width(CQ_STATE_FIELD_COUNT + q, D); i++)
        slope += (t.derived[(size_t)((p * DERIVED + q) * DD + i)] * weight_of(t, q % 3, (size_t)p) * value[i]).slope;
    }
  }
  return slope;
}

// the derivative of the loss toward the heading
static double slope_of_loss(const subject &t) {
  const cq_model *m = &t.world->model;
  cq_kernels kernels = CQ_TABLE;
  kernels.load_state = load_state_seeded;
  kernels.load_params = load_params_seeded;
  kernels.load_globals = load_globals_seeded;
  kernels.load_actuation = load_drive_seeded;
  kernels.load_cables = load_cables_seeded;
  kernels.load_walls = load_walls_seeded;
  kernels.store_impulse = store_impulse_seeded;
  cq_scene s;
  cq_worker worker = {0, 1, NULL, NULL, 0, 0};
  REQUIRE(cq_scene_create(&s, m, &kernels, 0) == CQ_OK);
  toward.room.assign((size_t)(s.chunks * CQ_CHUNK * (FIELDS + CQ_PARAM_SLOTS + CQ_SLOTS_MAX) + 4 + 4 * m->wall_count),
                     dual(0));
  for (int64_t p = 0; p < m->particle_count; p++) head_slots(m, (size_t)p);
  s.values = values_of(t.value);
  toward.step = 0;
  s.signals = t.value.signals.data();
  s.forces = t.value.forces.data();
  impulse_slope = 0;
  const size_t impulses = (size_t)m->contact_count * CONTACT_WIDTH, velocities = (size_t)m->wall_count * D;
  numbers given(impulses);
  s.impulse_out = given.data();
  REQUIRE(cq_scene_begin(&s, &worker) == CQ_OK);
  for (int32_t i = 0; i < control_steps; i++) {
    toward.step = i;
    s.signals = &t.value.signals[(size_t)(i * m->actuator_count)];
    s.forces = &t.value.forces[(size_t)(i * m->force_count * D)];
    impulse_weight = t.impulse.data() + (size_t)i * impulses;
    const size_t at = (size_t)i * velocities;
    if (!t.value.walls.empty()) kernels.load_walls(&s, i * SUBSTEPS, &t.value.walls[at], &t.value.places[at]);
    REQUIRE(cq_scene_advance(&s, &worker, NULL) == CQ_OK);
  }
  double slope = 0;
  if (cq_is_reference(m)) cq_reference_observe(&s, &worker);
  dual *seen = (dual *)cq_scene_seen(&s)->data;
  for (int32_t p = 0; p < m->particle_count; p++)
    for (int k = 0; k < FIELDS; k++)
      slope += t.weight[(size_t)(p * FIELDS + k)] * slot_at(seen, FIELDS, s.arrangement->slot[p], k)->slope;
  if (!t.derived.empty()) slope += slope_of_derived(&s, t);
  slope += impulse_slope;
  cq_scene_destroy(&s);
  return slope;
}

// ---- and of the product ---------------------------------------------------------------------------------------------

static void gather(const subject &t, int32_t field, double *out, bool adjoint) {
  const int64_t n = t.scene.n, start[2] = {0, n};
  std::vector<int32_t> all((size_t)n);
  for (int64_t p = 0; p < n; p++) all[(size_t)p] = (int32_t)p;
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_GATHER;
  r.fields = 1u << field;
  r.group_count = 1;
  r.group_start = start;
  r.particles = all.data();
  REQUIRE((adjoint ? cq_rollout_read_adjoint(t.rollout, &r, out) : cq_rollout_read(t.rollout, &r, out)) == CQ_OK);
}

// The adjoint of the derived readouts of the loss: each particle is a group of its own. Where rounding alone leads away
// from a kink, the direction of its derivative is rounding too, and the readout is not asked for.
static void seed_derived(const subject &t) {
  std::vector<int64_t> start;
  std::vector<int32_t> all;
  for (int32_t p = 0; p <= t.scene.n; p++) start.push_back(p);
  for (int32_t p = 0; p < t.scene.n; p++) all.push_back(p);
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_SUM;
  r.group_count = (int32_t)t.scene.n;
  r.group_start = start.data();
  r.particles = all.data();
  for (int q = 0; q < DERIVED; q++) {
    const int width = cq_quantity_width(CQ_STATE_FIELD_COUNT + q, D);
    r.fields = 1u << (CQ_STATE_FIELD_COUNT + q);
    r.weighting = CQ_WEIGHT_PARTICLE;
    numbers weight, value((size_t)(t.scene.n * width));
    REQUIRE(cq_rollout_read(t.rollout, &r, value.data()) == CQ_OK);
    for (int64_t p = 0; p < t.scene.n; p++) {
      const double at = value[(size_t)(p * width)];
      const bool asked = at == 0 || !is_kink(q, at);
      for (int i = 0; i < width; i++) weight.push_back(asked ? t.derived[(size_t)((p * DERIVED + q) * DD + i)] : 0);
    }
    r.weighting = q % 3;
    REQUIRE(cq_rollout_read_adjoint(t.rollout, &r, weight.data()) == CQ_OK);
  }
}

// gradients of signals and forces; those of fields stay in the rollout
static void run_product(subject &t, numbers &grad_signals, numbers &grad_forces) {
  const size_t actuators = (size_t)t.scene.def.actuator_count, forces = (size_t)t.scene.def.force_count * D;
  REQUIRE(cq_rollout_begin(t.rollout) == CQ_OK);
  for (size_t i = 0; i < (size_t)control_steps; i++)
    REQUIRE(cq_rollout_run(t.rollout, 1, &t.value.signals[i * actuators], &t.value.forces[i * forces]) == CQ_OK);
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  static const int32_t field[4] = {CQ_FIELD_POSITION, CQ_FIELD_VELOCITY, CQ_FIELD_AFFINE, CQ_FIELD_DEFORMATION};
  static const int first[4] = {X, V, C, F}, width[4] = {D, D, DD, DD};
  for (int f = 0; f < 4; f++) {
    numbers weight;
    for (int64_t p = 0; p < t.scene.n; p++)
      for (int k = 0; k < width[f]; k++) weight.push_back(t.weight[(size_t)(p * FIELDS + first[f] + k)]);
    gather(t, field[f], weight.data(), true);
  }
  if (!t.derived.empty()) seed_derived(t);
  REQUIRE(cq_rollout_contact_adjoint(t.rollout, 0, control_steps, t.impulse.data()) == CQ_OK);
  grad_signals.assign((size_t)control_steps * actuators, 0);
  grad_forces.assign((size_t)control_steps * forces, 0);
  for (size_t i = (size_t)control_steps; i-- > 0;)
    REQUIRE(cq_rollout_run_adjoint(t.rollout, 1, &grad_signals[i * actuators], &grad_forces[i * forces]) == CQ_OK);
}

// ---- comparison -----------------------------------------------------------------------------------------------------

// of the terms of the last derivative along a direction: what rounding goes by where they cancel
static double magnitude;

// A random direction in part [begin, end) of an array, scaled to its values; returns the
// derivative that the adjoint gives.
static double head(numbers &direction, const numbers &value, const numbers &gradient, size_t begin, size_t end) {
  const bool position = &direction == &toward.field[CQ_FIELD_POSITION];
  double along = 0;
  magnitude = 0;
  for (size_t k = begin; k < end; k++) {
    direction[k] = test_random() * (position ? 0.01 : value[k] != 0 ? fabs(value[k]) : 0.05);
    along += gradient[k] * direction[k];
    magnitude += fabs(gradient[k] * direction[k]);
  }
  return along;
}

static void compare(const subject &t, const char *name, double along) {
  const double slope = slope_of_loss(t), error = fabs(along - slope) / fabs(slope);
  printf("%dD %-24s %16.9e  error %.1e\n", D, name, slope, error);
  CHECK(fabs(slope) > 1e-9, "%dD %s has a derivative: %g", D, name, slope);
  CHECK(error <= 1e-11 || fabs(along - slope) <= 1e-12 * magnitude,
        "%dD %s: adjoint %.15g, dual %.15g, relative error %.1e", D, name, along, slope, error);
}

// change: of the scene, NULL: none. shape: makes the fourth wall, which moves, another one, of this kind
static void open_subject(subject &t, int side, void (*change)(test_scene *), void (*shape)(test_scene *) = NULL,
                         int kind = 0) {
  test_scene_make(&t.scene, D, side, CQ_FLOAT64, 4);
  if (change) change(&t.scene);
  test_scene_add_mover(&t.scene);
  test_scene_add_pin_groups(&t.scene);
  t.scene.def.damping = 3;
  if (shape) shape(&t.scene);
  if (shape) t.scene.walls[3].kind = kind;
  cq_wall *mover = &t.scene.walls[t.scene.def.wall_count - 1];
  if (t.scene.def.integrator.kind == CQ_INTEGRATOR_IMPLICIT && mover->kind == CQ_CONTACT_FRICTION)
    mover->kind = CQ_CONTACT_SEPARATE;
  const cq_world_def &d = t.scene.def;
  REQUIRE(d.substeps == SUBSTEPS);
  REQUIRE(cq_world_create(&d, &t.world) == CQ_OK);
  cq_rollout_def def;
  cq_rollout_def_init(&def);
  def.steps = control_steps;
  def.contact = 1;
  REQUIRE(cq_rollout_create(t.world, &def, &t.rollout) == CQ_OK);
  cq_rollout_want(t.rollout, ~unwanted);
  TEST_FIELDS_EACH(f) {
    const int64_t count = cq_field_count(t.world, f);
    std::vector<double> walls(4 * CQ_WALLS_MAX);
    const double *value = test_scene_value(&t.scene, f, walls.data());
    t.value.field[f].assign(value, value + count);
    toward.field[f].assign((size_t)count, 0);
  }
  for (int i = 0; i < control_steps; i++) {
    for (int a = 0; a < d.actuator_count; a++) t.value.signals.push_back(test_signal(i, a));
    for (int64_t k = 0; k < d.force_count * D; k++) t.value.forces.push_back(test_force(i, k));
  }
  toward.signals.assign(t.value.signals.size(), 0);
  toward.forces.assign(t.value.forces.size(), 0);
  for (numbers &slot : toward.slot) slot.assign((size_t)t.scene.n, 0);
  for (int64_t k = 0; k < t.scene.n * FIELDS; k++) t.weight.push_back(test_random() / (double)t.scene.n);
  double mass = 0;
  for (double m : t.value.field[CQ_FIELD_MASS]) mass += m;
  for (int k = 0; k < control_steps * cq_contact_count(&d) * CONTACT_WIDTH; k++)
    t.impulse.push_back(test_random() / mass);
}

// each field by itself and each wall by itself, or all of them together
void check_scene(int side, bool together, void (*change)(test_scene *)) {
  subject t;
  numbers grad_signals, grad_forces;
  double sum = 0;
  open_subject(t, side, change);
  for (int64_t k = 0; k < t.scene.n * DERIVED * DD; k++) t.derived.push_back(test_random());
  run_product(t, grad_signals, grad_forces);
  const auto part = [&](const char *name, numbers &direction, const numbers &value, const numbers &gradient,
                        size_t begin, size_t end) {
    const double along = head(direction, value, gradient, begin, end);
    sum += along;
    if (together) return;
    compare(t, name, along);
    for (size_t k = begin; k < end; k++) direction[k] = 0;
  };
  TEST_FIELDS_EACH(f) {
    const size_t count = t.value.field[f].size();
    if (unwanted & cq_bit(f)) continue;
    numbers gradient(count);
    REQUIRE(cq_rollout_gradient(t.rollout, f, gradient.data(), 0) == CQ_OK);
    const bool walls = f == CQ_FIELD_WALL_VELOCITY || f == CQ_FIELD_FRICTION;
    const size_t each = walls ? count / (size_t)t.scene.def.wall_count : count;
    for (size_t begin = 0; begin < count; begin += each) {
      const int wall = walls ? (int)(begin / each) : 0;
      if (f == CQ_FIELD_FRICTION && t.scene.def.walls[wall].kind != CQ_CONTACT_FRICTION) {
        CHECK(gradient[begin] == 0, "wall %d without friction has its gradient %g", wall, gradient[begin]);
        continue;
      }
      char name[64];
      snprintf(name, sizeof name, walls ? "%s of wall %d" : "%s", cq_field_describe(f)->name, wall);
      part(name, toward.field[f], t.value.field[f], gradient, begin, begin + each);
    }
  }
  part("signals", toward.signals, t.value.signals, grad_signals, 0, grad_signals.size());
  part("forces", toward.forces, t.value.forces, grad_forces, 0, grad_forces.size());
  if (together) compare(t, "everything together", sum);
  cq_world_destroy(t.world);
  test_scene_free(&t.scene);
}

// ---- walls that move ------------------------------------------------------------------------------------------------
// Their velocity has a derivative by itself, and one by where it has brought them.

static void ball(test_scene *) {}
static void room(test_scene *s) {
  cq_wall *w = &s->walls[3];
  w->hollow = 1;
  w->radius = 5 * s->def.dx;
  for (int i = 0; i < 3; i++) w->point[i] = 7.5 * s->def.dx;
}
static void piston(test_scene *s) {
  cq_wall *w = &s->walls[3];
  w->shape = CQ_WALL_BOX;
  for (int i = 0; i < 3; i++) {
    w->lower[i] = 2 * s->def.dx;
    w->upper[i] = (i == 0 ? 5.5 : 12) * s->def.dx;
  }
}
static void closing_box(test_scene *s) {
  cq_wall *w = &s->walls[3];
  w->shape = CQ_WALL_BOX;
  w->hollow = 1;
  for (int i = 0; i < 3; i++) {
    w->lower[i] = 5.2 * s->def.dx;
    w->upper[i] = 30 * s->def.dx;
  }
}
static void plane_wall(test_scene *s) {
  cq_wall *w = &s->walls[3];
  w->shape = CQ_WALL_HALF_SPACE;
  w->normal[0] = 0.8;
  w->normal[1] = 0.6;
}
static void hills(test_scene *s) {
  static double height[7 * 7];
  cq_wall *w = &s->walls[3];
  for (int k = 0; k < 49; k++) height[k] = (5 + 0.8 * sin(1.7 * k)) * s->def.dx;
  w->shape = CQ_WALL_HEIGHT_FIELD;
  w->height = height;
  w->height_count[0] = 7;
  w->height_count[1] = D == 3 ? 7 : 1;
  for (int i = 0; i < 2; i++) {
    w->height_origin[i] = 0.3 * s->def.dx;
    w->height_spacing[i] = 2.1 * s->def.dx;
  }
}

void check_movers(void) {
  static const struct { const char *name; void (*shape)(test_scene *);
  } movers[] = {{"ball", ball},        {"room", room},  {"piston", piston}, {"closing box", closing_box},
                {"plane", plane_wall}, {"hills", hills}};
  static const char *const kinds[] = {"sticky", "slip", "separate", "friction", "hold"};
  for (const auto &mover : movers)
    for (int kind = CQ_CONTACT_STICKY; kind <= CQ_CONTACT_HOLD; kind++) {
      // an emulated GPU is slow
      if (test_device() == CQ_DEVICE_CUDA && kind != CQ_CONTACT_FRICTION && kind != CQ_CONTACT_HOLD) continue;
      subject t;
      numbers grad_signals, grad_forces, gradient(4 * D);
      open_subject(t, D == 3 ? 5 : 8, NULL, mover.shape, kind);
      run_product(t, grad_signals, grad_forces);
      REQUIRE(cq_rollout_gradient(t.rollout, CQ_FIELD_WALL_VELOCITY, gradient.data(), 0) == CQ_OK);
      char name[64];
      snprintf(name, sizeof name, "%s, %s", mover.name, kinds[kind]);
      compare(
          t, name,
          head(toward.field[CQ_FIELD_WALL_VELOCITY], t.value.field[CQ_FIELD_WALL_VELOCITY], gradient, 3 * D, 4 * D));
      cq_world_destroy(t.world);
      test_scene_free(&t.scene);
    }
}

// ---- walls whose velocity changes -----------------------------------------------------------------------------------

// velocities of a rollout, and the way that the product makes of them
static void set_walls(const subject &t, const numbers &velocity, numbers &place) {
  REQUIRE(cq_rollout_set_walls(t.rollout, velocity.data(), 0) == CQ_OK && cq_rollout_begin(t.rollout) == CQ_OK);
  place.assign(t.rollout->track.place, t.rollout->track.place + velocity.size());
}

// all walls at each control step, those that stay as conveyors
static void check_shaking(void (*shape)(test_scene *), const char *name, int kind) {
  subject t;
  numbers grad_signals, grad_forces;
  open_subject(t, D == 3 ? 5 : 8, NULL, shape, kind);
  const size_t each = (size_t)t.scene.def.wall_count * D, count = (size_t)control_steps * each;
  for (size_t k = 0; k < count; k++)
    t.value.walls.push_back(t.value.field[CQ_FIELD_WALL_VELOCITY][k % each] +
                            0.1 * sin(0.4 * (double)(k / each) + (double)(k % each)));
  toward.walls.assign(count, 0);
  set_walls(t, t.value.walls, t.value.places);
  run_product(t, grad_signals, grad_forces);
  numbers gradient(count);
  REQUIRE(cq_rollout_walls_gradient(t.rollout, gradient.data(), 0) == CQ_OK);
  char line[64];
  snprintf(line, sizeof line, "%s, shaking", name);
  const double along = head(toward.walls, t.value.walls, gradient, 0, count);
  set_walls(t, toward.walls, toward.places);
  compare(t, line, along);
  cq_world_destroy(t.world);
  test_scene_free(&t.scene);
}

void check_shakers(void) {
  check_shaking(ball, "ball", CQ_CONTACT_FRICTION);
  check_shaking(room, "room", CQ_CONTACT_SLIP);
  check_shaking(piston, "piston", CQ_CONTACT_STICKY);
  check_shaking(closing_box, "closing box", CQ_CONTACT_SEPARATE);
  check_shaking(plane_wall, "plane", CQ_CONTACT_HOLD);
  check_shaking(hills, "hills", CQ_CONTACT_FRICTION);
}
