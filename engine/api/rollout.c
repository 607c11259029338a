// rollout: values in, control steps, gradients out.
#include "../world/constants.h"
#include "../world/state.h"
#include "world.h"
#include <math.h>
#include <string.h>

// Fills the definition of a rollout with defaults: one scene, one control step, differentiable.
void cq_rollout_def_init(cq_rollout_def *def) {
  *def = (cq_rollout_def){.cookie = CQ_COOKIE, .batch = 1, .steps = 1, .differentiable = 1};
}

// The number of elements of a field in one scene; -1 for an unknown field.
int64_t cq_field_count(const cq_world *world, int32_t field) { return cq_model_field_count(&world->model, field); }

// The name of a field (cq_field), for error sentences.
static const char *field_name(int32_t field) { return cq_field_describe(field)->name; }

// Sets all fields of a rollout, in all scenes, to the values of its world, which hold until the user sets others.
static void set_defaults(cq_rollout *r) {
  const cq_model *m = &r->world->model;
  for (int32_t w = 0; w < m->wall_count; w++) {
    r->friction[w] = m->walls[w].friction;
    for (int i = 0; i < m->dim; i++) r->wall_velocity[w * m->dim + i] = m->walls[w].velocity[i];
  }
  cq_values values = {
      .gravity = m->gravity, .damping = &m->damping, .friction = r->friction, .wall_velocity = r->wall_velocity};
  for (int32_t f = 0; f < CQ_FIELD_GRAVITY; f++) values.value[f] = m->value[f];
  for (int32_t s = 0; s < r->def.batch; s++) r->values_next[s] = values;
}

// Frees a rollout; NULL: does nothing.
void cq_rollout_destroy(cq_rollout *r) {
  if (!r) return;
  cq_world *world = r->world;
  if (r->previous) r->previous->next = r->next;
  if (r->next) r->next->previous = r->previous;
  if (world->rollouts == r) world->rollouts = r->next;
  cq_memo_destroy(r->memo);
  world->backend->destroy(r->device);
  for (int f = 0; f < CQ_FIELD_COUNT; f++)
    for (int k = 0; k < 2; k++) cq_free(r->owned[f][k]);
  cq_walls_close(r);
  cq_gravity_close(r);
  cq_free(r->changing.kept);
  cq_free(r->changing.grad);
  cq_free(r->rules.norms);
  cq_free(r->friction);
  cq_free(r->wall_velocity);
  cq_free(r->values);
  cq_free(r->values_next);
  cq_free(r);
}

// Free bytes of the host's memory, for devices that do not report memory of their own. context: ignored.
static int64_t host_memory(const cq_context *context) {
  (void)context;
  return cq_memory_available();
}

// Sets out to a new rollout of a world, which must outlive it. CQ_OK, CQ_INVALID for a wrong definition, or CQ_MEMORY.
cq_status cq_rollout_create(cq_world *world, const cq_rollout_def *def, cq_rollout **out) {
  if (def->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "a cq_rollout_def was not filled by cq_rollout_def_init");
  if (def->batch < 1 || def->batch > CQ_BATCH_MAX)
    return cq_fail(CQ_INVALID, "batch is %d; it must be 1 to %d", def->batch, CQ_BATCH_MAX);
  if (def->steps < 1) return cq_fail(CQ_INVALID, "steps is %d; it must be at least 1", def->steps);
  if (def->memory < 0)
    return cq_fail(CQ_INVALID, "memory is %lld bytes; it must not be negative", (long long)def->memory);
  cq_rollout *r = cq_alloc(1, sizeof *r, "rollout");
  if (!r) return CQ_MEMORY;
  const cq_model *m = &world->model;
  r->world = world;
  r->def = *def;
  r->wanted = r->changed = UINT64_MAX;
  const cq_backend *b = world->backend;
  r->rules = (cq_adjoint_rules){.discount = 1, .most = INFINITY};
  int64_t (*available)(const cq_context *) = b->memory_available ? b->memory_available : host_memory;
  if (!def->memory) r->def.memory = available(world->context) / 4 * 3;
  r->friction = cq_alloc((size_t)m->wall_count, sizeof(double), "walls");
  r->wall_velocity = cq_alloc((size_t)m->wall_count * (size_t)m->dim, sizeof(double), "walls");
  r->values = cq_alloc((size_t)def->batch, sizeof *r->values, "batch");
  r->values_next = cq_alloc((size_t)def->batch, sizeof *r->values_next, "batch");
  cq_status status = r->friction && r->wall_velocity && r->values && r->values_next ? CQ_OK : CQ_MEMORY;
  if (!status) status = cq_walls_open(r);
  if (!status && cq_is_implicit(m)) {
    const size_t solved = (size_t)def->steps * (size_t)def->batch * (size_t)m->substeps * CQ_SOLVER_WIDTH;
    r->track.solver = cq_alloc(solved, sizeof(double), "reports of the solver");
    if (!r->track.solver) status = CQ_MEMORY;
  }
  if (!status && def->differentiable) {
    r->rules.norms = cq_alloc((size_t)def->steps * (size_t)def->batch, sizeof(double), "norms of adjoints");
    if (!r->rules.norms) status = CQ_MEMORY;
  }
  if (!status) status = b->create(world->context, def->batch, def->differentiable, &r->device);
  if (!status) {
    const cq_memo_def memo = {
        .backend = b,
        .device = r->device,
        .steps = def->steps,
        .batch = def->batch,
        .signals = (int64_t)def->batch * m->actuator_count,
        .forces = def->batch * m->force_count * m->dim,
        .budget = r->def.memory,
        .differentiable = def->differentiable,
        .track = &r->track,
        .available = def->memory ? NULL : available,
        .context = world->context,
    };
    status = cq_memo_create(&memo, &r->memo);
  }
  r->next = world->rollouts;
  if (r->next) r->next->previous = r;
  world->rollouts = r;
  if (status) {
    cq_rollout_destroy(r);
    return status;
  }
  set_defaults(r);
  *out = r;
  return CQ_OK;
}

// The memo's array of forces {steps, B, force_count, dim}, into which a caller may write the forces that it gives to
// cq_rollout_run, so that they are not copied. NULL: the rollout is forward only.
double *cq_rollout_forces(cq_rollout *r) { return cq_memo_forces(r->memo); }
// Iterations and residuals of all implicit steps so far, {steps, B, substeps, CQ_SOLVER_WIDTH}; NULL: steps are
// explicit.
const double *cq_rollout_solver(const cq_rollout *r) { return r->track.solver; }

// Sets plan to how the rollout spends its memory: records, checkpoints, and how often control steps are recomputed.
void cq_rollout_plan(const cq_rollout *r, cq_plan *plan) { *plan = *cq_memo_plan(r->memo); }

// CQ_OK, or CQ_INVALID if a pinned particle of an updated body starts in another cell than in the world's definition:
// the nodes that its pins hold were found when the world was made. position {n, dim}.
static cq_status check_pins(const cq_model *m, const double *position) {
  for (int64_t k = 0; k < m->pin_count; k++)
    for (int i = 0; i < m->dim && !cq_on_reference(m, m->pins[k]); i++) {
      const int64_t at = (int64_t)m->pins[k] * m->dim + i;
      if (floor(position[at] / m->dx - 0.5) == floor(m->position[at] / m->dx - 0.5)) continue;
      return cq_fail(
          CQ_INVALID,
          "pinned particle %d is set to coordinate %d = %g, another cell than its %g; pins hold nodes where the world "
          "put them: make a world with the particle there",
          m->pins[k] + 1, i + 1, position[at], m->position[at]);
    }
  return CQ_OK;
}

// Does a model have the field? 1 yes, 0 no. It has a material constant if the law of some particle reads it; the
// constant then has a value for every particle.
static int has_field(const cq_model *m, int32_t field) {
  return cq_field_describe(field)->owner != CQ_OWNER_CONSTANT || m->value[field];
}
// Does number k of a field (from 0, in the array of one scene) have an effect? 1 yes, 0 no. A material constant has one
// if the law of its particle reads it.
static int takes_value(const cq_model *m, int32_t field, int64_t k) {
  const cq_field_info *info = cq_field_describe(field);
  if (info->owner != CQ_OWNER_CONSTANT) return 1;
  return cq_material_takes(&m->materials[m->material[info->rank ? k / m->dim : k]], field);
}

// Sets a field for all scenes (per_scene 0: data {count}) or for each (1: data {B, count}) to a copy of data, from the
// next cq_rollout_begin on. A field that is never set has the world's values. CQ_OK, CQ_MEMORY, or CQ_INVALID for a
// value that is not allowed.
cq_status cq_rollout_set(cq_rollout *r, int32_t field, const double *data, int32_t per_scene) {
  const int64_t count = cq_field_count(r->world, field);
  if (count < 0) return cq_fail(CQ_INVALID, "there is no field %d", field);
  if (!has_field(&r->world->model, field))
    return cq_fail(CQ_INVALID, "%s is set, but no material of this world has it", field_name(field));
  const int64_t total = per_scene ? count * r->def.batch : count;
  for (int64_t k = 0; k < total; k++) {
    cq_status status =
        takes_value(&r->world->model, field, k % count) ? cq_field_check(field, field_name(field), k, data[k]) : CQ_OK;
    if (!status) status = cq_cables_check(&r->world->model, field, data[k]);
    if (status) return status;
  }
  for (int64_t at = 0; field == CQ_FIELD_POSITION && at < total; at += count) {
    const cq_status status = check_pins(&r->world->model, data + at);
    if (status) return status;
  }
  const double *present = r->values_next[0].value[field];
  const int64_t apart = r->def.batch > 1 ? r->values_next[1].value[field] - present : per_scene ? count : 0;
  if (present && apart == (per_scene ? count : 0) && !memcmp(present, data, (size_t)total * sizeof *data)) return CQ_OK;
  const int32_t spare = !r->begun[field];
  if (r->capacity[field][spare] < total) {
    double *owned = cq_alloc((size_t)total, sizeof *owned, field_name(field));
    if (!owned) return CQ_MEMORY;
    cq_free(r->owned[field][spare]);
    r->owned[field][spare] = owned;
    r->capacity[field][spare] = total;
  }
  double *to = r->owned[field][spare];
  if (total) memcpy(to, data, (size_t)total * sizeof *data);
  for (int32_t s = 0; s < r->def.batch; s++)
    r->values_next[s].value[field] = to ? to + (per_scene ? s * count : 0) : NULL;
  r->latest[field] = spare;
  r->changed |= cq_bit(field);
  return CQ_OK;
}

// The largest Courant number of all scenes, with the values that were set.
double cq_rollout_courant(const cq_rollout *r) {
  const cq_values *v = r->values_next;
  double courant = 0;
  for (int32_t s = 0; s < r->def.batch; s++) {
    // scenes that share all values of particles have the same Courant number
    if (s && !memcmp(v[s].value, v[s - 1].value, CQ_FIELD_GRAVITY * sizeof *v->value)) continue;
    courant = fmax(courant, cq_model_courant(&r->world->model, v[s].value, 0));
  }
  return courant;
}

// CQ_OK if every scene may start with its values, or CQ_INVALID: material constants that do not go together, or a body
// that was made larger and has too few particles along a cell. Looks at values that have changed since the last time.
// scene: as in begin.
static cq_status check_start(const cq_rollout *r, const int32_t *scene) {
  const cq_model *m = &r->world->model;
  for (int32_t s = 0; s < r->def.batch; s++) {
    const double *const *v = r->values_next[s].value;
    cq_status status = r->changed & cq_constant_bits() ? cq_constants_check(m, v) : CQ_OK;
    if (!status && cq_is_reference(m) && r->changed & cq_bit(CQ_FIELD_VOLUME) && !(scene && scene[s] >= 0))
      status = cq_model_check_density(m, v[CQ_FIELD_VOLUME]);
    if (status) return status;
  }
  return CQ_OK;
}

// Begins a rollout: checks the values that were set and hands them to the device. Scene s goes on from the live state
// of scene[s] of the rollout `from`, or starts with its own values where scene[s] is -1, as all do if from is NULL.
// CQ_OK, or the error of a value, of memory, or of a particle outside of the world.
static cq_status begin(cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  r->began = r->adjoint = r->finished = r->failed = 0;
  r->changing.steps = r->changing.pending = 0;
  const cq_status checked = check_start(r, scene);
  if (checked) return checked;
  memcpy(r->values, r->values_next, (size_t)r->def.batch * sizeof *r->values);
  memcpy(r->begun, r->latest, sizeof r->begun);
  const cq_status opened = cq_walls_begin(r, from, scene);
  if (opened) return opened;
  cq_gravity_begin(r);
  // Forgetting comes first: the device would otherwise need memory for the new state beside that of the last rollout.
  cq_memo_forget(r->memo);
  const cq_backend *b = r->world->backend;
  cq_status status = b->begin(r->device, r->values, r->changed, from ? from->device : NULL, scene);
  r->changed = status ? UINT64_MAX : 0;
  if (!status) status = cq_memo_begin(r->memo);
  r->began = !status;
  return status;
}

// Begins a rollout with the values that were set, in its start state. CQ_OK or an error: a value, memory, or a
// particle outside of the world.
cq_status cq_rollout_begin(cq_rollout *r) { return begin(r, NULL, NULL); }

// Returns CQ_INVALID with a sentence: no control step can be made after a failed one, since scenes may stand in the
// middle of it; their states can still be read.
static cq_status failed_before(const cq_rollout *r) {
  return cq_fail(CQ_INVALID, "this rollout failed at control step %d; begin it again", cq_memo_at(r->memo) + 1);
}

// CQ_OK if the scenes of a rollout can go on from the live states of `from`, which must be of the same world, begun and
// not failed; else an error. scene {batch}: as in begin.
static cq_status check_from(const cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  if (from->world != r->world) return cq_fail(CQ_INVALID, "a rollout goes on from a state of its own world");
  if (from == r) return cq_fail(CQ_INVALID, "a rollout cannot go on from itself");
  if (!from->began) return cq_fail(CQ_INVALID, "the rollout to go on from has no live state; begin it first");
  if (from->failed) return failed_before(from);
  for (int32_t s = 0; s < r->def.batch; s++)
    if (scene[s] < -1 || scene[s] >= from->def.batch)
      return cq_fail(CQ_INVALID, "scene %d is to go on from scene %d of a rollout of %d", s + 1, scene[s] + 1,
                     from->def.batch);
  return CQ_OK;
}

// CQ_OK if the total Lagrangian bodies of each scene, with these values {batch}, have the same undeformed shapes as in
// scene[s] of `from`, from which it goes on; else CQ_INVALID.
static cq_status check_shapes(const cq_rollout *r, const cq_values *values, const cq_rollout *from,
                              const int32_t *scene) {
  for (int32_t s = 0; s < r->def.batch; s++)
    if (scene[s] >= 0 && !cq_values_have_same_shapes(&r->world->model, &values[s], &from->values[scene[s]]))
      return cq_fail(CQ_INVALID,
                     "a rollout of total Lagrangian steps goes on from a state of the same undeformed shape, and the "
                     "positions of the robot are others here");
  return CQ_OK;
}

// Begins a rollout with the values that were set, each scene s with scene[s] >= 0 in the live state of scene[s] of
// `from`, a rollout of the same world; where scene[s] is -1, at its own start. scene {B}. CQ_OK or an error.
cq_status cq_rollout_begin_from(cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  cq_status status = check_from(r, from, scene);
  if (!status) status = check_shapes(r, r->values_next, from, scene);
  return status ? status : begin(r, from, scene);
}

// At step 0 of a rollout that went on from `from`, before gradients are read: adds the adjoint of its first state to
// the adjoint of the live state of `from`, whose adjoint has begun, and clears it. from NULL: only clears it. scene
// {B}: as in cq_rollout_begin_from. CQ_OK or an error.
cq_status cq_rollout_pass_adjoint(cq_rollout *r, cq_rollout *from, const int32_t *scene) {
  cq_status status = from ? check_from(r, from, scene) : CQ_OK;
  if (!status && from) status = check_shapes(r, r->values, from, scene);
  if (status) return status;
  if (!r->adjoint || cq_memo_at(r->memo) || r->finished)
    return cq_fail(CQ_INVALID, "the adjoint of a first state is passed on at step 0, before gradients are read");
  if (from && (!from->adjoint || from->finished))
    return cq_fail(CQ_INVALID, "begin the adjoint of the rollout before, to which this one adds");
  if (from) status = cq_walls_pass_adjoint(r, from, scene);
  return status ? status : r->world->backend->pass_adjoint(r->device, from ? from->device : NULL, scene);
}

// CQ_OK, or CQ_INVALID if one of the numbers {count, width}, a row for each coming control step, is not finite; NULL:
// CQ_OK. shape: count and width; `what` names one of them in the sentence ("force component"), `kind` all ("force").
static cq_status check_finite(const cq_rollout *r, const char *what, const char *kind, const double *number,
                              const int64_t shape[2]) {
  for (int64_t k = 0; number && k < shape[0] * shape[1]; k++)
    if (!isfinite(number[k]))
      return cq_fail(CQ_INVALID, "%s %lld is %g at control step %lld; every %s must be finite", what,
                     (long long)(k % shape[1]) + 1, number[k], (long long)(cq_memo_at(r->memo) + k / shape[1]) + 1,
                     kind);
  return CQ_OK;
}

// CQ_OK if a rollout can run `count` control steps from its live state, else CQ_INVALID and a sentence.
cq_status cq_rollout_ready(const cq_rollout *r, int32_t count) {
  const int32_t at = cq_memo_at(r->memo);
  if (!r->began) return cq_fail(CQ_INVALID, "begin the rollout before its first step");
  if (r->failed) return failed_before(r);
  if (count < 0) return cq_fail(CQ_INVALID, "%d control steps cannot be made", count);
  if (count > r->def.steps - at)
    return cq_fail(CQ_INVALID, "this rollout was made for %d control step%s; after %d it cannot make %d more",
                   r->def.steps, r->def.steps == 1 ? "" : "s", at, count);
  return CQ_OK;
}

// CQ_OK if the last `count` control steps of a rollout can be reversed, else CQ_INVALID and a sentence.
cq_status cq_rollout_ready_adjoint(const cq_rollout *r, int32_t count) {
  const int32_t at = cq_memo_at(r->memo);
  if (!r->adjoint) return cq_fail(CQ_INVALID, "begin the adjoint before stepping back");
  if (count < 0) return cq_fail(CQ_INVALID, "%d control steps cannot be reversed", count);
  if (count && !at) return cq_fail(CQ_INVALID, "this rollout is at its first state; there is no step to reverse");
  if (count > at) return cq_fail(CQ_INVALID, "this rollout is at control step %d; it cannot go back %d", at, count);
  return CQ_OK;
}

// Runs controls->count control steps, checked before by cq_rollout_ready, and notes whether the rollout failed. CQ_OK,
// which ends an adjoint that had begun, or the error of a step.
cq_status cq_rollout_forward(cq_rollout *r, const cq_controls *controls) {
  const int32_t before = cq_memo_at(r->memo);
  const cq_status status = cq_memo_run(r->memo, controls);
  if (cq_memo_at(r->memo) < before) r->began = 0;   // interrupted while steps were made again
  r->failed = status == CQ_UNSTABLE || status == CQ_MEMORY || status == CQ_DEVICE;
  if (status != CQ_INVALID) r->adjoint = 0;   // the adjoint belonged to the state before, which any step leaves
  return status;
}

// Reverses controls->count control steps, checked before by cq_rollout_ready_adjoint. CQ_OK or an error; after any but
// CQ_INVALID the rollout must begin again.
cq_status cq_rollout_backward(cq_rollout *r, const cq_controls *controls) {
  const cq_status status = cq_memo_reverse(r->memo, controls, &r->rules);
  // The reverse pass failed part way through a control step: the device holds neither the state before it nor the one
  // after, so the rollout must begin again.
  if (status && status != CQ_INVALID) r->began = r->adjoint = 0;
  return status;
}

// Runs `count` control steps with signals {count, B, actuators} and forces {count, B, force_count, dim} (NULL: none).
// CQ_OK, CQ_INVALID for numbers that are not finite or too many steps, or the error of a step.
cq_status cq_rollout_run(cq_rollout *r, int32_t count, const double *signals, const double *forces) {
  cq_status status = cq_rollout_ready(r, count);
  if (status) return status;
  const cq_model *m = &r->world->model;
  if (!signals && count && m->actuator_count)
    return cq_fail(CQ_INVALID, "there are no signals, the actuators need %d of them", m->actuator_count);
  const int64_t signal_rows[2] = {count, (int64_t)r->def.batch * m->actuator_count};
  const int64_t components[2] = {count, r->def.batch * m->force_count * m->dim};
  status = check_finite(r, "signal", "signal", signals, signal_rows);
  if (!status) status = check_finite(r, "force component", "force", forces, components);
  return status ? status : cq_rollout_forward(r, &(cq_controls){.count = count, .signals = signals, .forces = forces});
}

// Allocates *array, {steps, batch, width}, for values that change from one control step to the next, unless it is
// allocated; `what` names it in a sentence. 1, or 0 without memory.
int cq_step_rows_reserve(const cq_rollout *r, double **array, int64_t width, const char *what) {
  if (!*array) *array = cq_alloc((size_t)((int64_t)r->def.steps * r->def.batch * width), sizeof(double), what);
  return *array != NULL;
}

// Copies rows of the user, `from`, {steps, width} for all scenes (per_scene 0) or {batch, steps, width} for each (1),
// to `to`, {steps, batch, width}.
void cq_step_rows_copy(const cq_rollout *r, double *to, const double *from, int64_t width, int32_t per_scene) {
  for (int64_t row = 0; row < (int64_t)r->def.steps * r->def.batch; row++)
    memcpy(to + row * width, from + cq_step_row(r, row, per_scene) * width, (size_t)width * sizeof *to);
}

// The index of the live state: how many control steps lead to it from the start.
int32_t cq_rollout_at(const cq_rollout *r) { return cq_memo_at(r->memo); }
// Sets health to the last failure: which particle of which scene failed at which step, and how; zeros if there was
// none.
void cq_rollout_health(const cq_rollout *r, cq_health *health) { *health = *r->world->backend->health(r->device); }

// Begins the adjoint at the live state: sets all adjoints and gradients to zero. CQ_OK, CQ_INVALID for a rollout that
// is forward only, not begun or failed, or an error of the device.
cq_status cq_rollout_begin_adjoint(cq_rollout *r) {
  if (!r->began) return cq_fail(CQ_INVALID, "the rollout has no live state; begin it first");
  if (r->failed) return failed_before(r);
  if (!r->def.differentiable) return cq_fail(CQ_INVALID, "this rollout was made forward only (differentiable = 0)");
  const cq_status status = r->world->backend->begin_adjoint(r->device, r->wanted);
  if (status) return status;
  cq_walls_begin_adjoint(r);
  cq_gravity_begin_adjoint(r);
  r->computed = r->wanted;
  r->adjoint = 1;
  r->finished = r->changing.pending = 0;
  return CQ_OK;
}

// Returns to the last state of the forward pass, where another adjoint can begin; records that were dropped are
// recomputed. CQ_OK or an error, after which the rollout must begin again.
cq_status cq_rollout_return(cq_rollout *r) {
  if (!r->began) return cq_fail(CQ_INVALID, "the rollout has no live state; begin it first");
  if (r->failed) return failed_before(r);
  const cq_status status = cq_memo_return(r->memo);
  r->adjoint = 0;
  if (status) r->began = 0;   // it stopped at a state between, from which nothing goes on
  return status;
}

// Sets which gradients will be read, bits (1 << cq_field), from the next cq_rollout_begin_adjoint on. Default: all.
void cq_rollout_want(cq_rollout *r, uint64_t fields) { r->wanted = fields; }

// Sets how the adjoint of the state goes from one control step of a call to the one before: times discount (1 unless
// set); times 0 at multiples of window (0: nowhere); scaled to a norm of at most `most` for each scene (INFINITY: any).
// CQ_OK, or CQ_INVALID for a number out of bounds.
cq_status cq_rollout_set_adjoint(cq_rollout *r, double discount, int32_t window, double most) {
  if (!(discount >= 0 && discount <= 1)) return cq_fail(CQ_INVALID, "a discount must be 0 to 1, got %g", discount);
  if (window < 0) return cq_fail(CQ_INVALID, "a window must be 0 control steps or more, got %d", window);
  if (!(most > 0)) return cq_fail(CQ_INVALID, "the largest norm of the adjoint must be above 0, got %g", most);
  r->rules.discount = discount, r->rules.window = window, r->rules.most = most;
  return CQ_OK;
}

// Norms {steps, B} of the adjoint of the state after each reversed control step, before scaling; NULL: forward only.
const double *cq_rollout_adjoint_norms(const cq_rollout *r) { return r->rules.norms; }

// Multiplies the adjoint of the live state by the factor that cq_rollout_set_adjoint sets between two control steps,
// for a caller that reverses them in several calls. CQ_OK or CQ_INVALID.
cq_status cq_rollout_discount(cq_rollout *r) {
  if (!r->adjoint) return cq_fail(CQ_INVALID, "begin the adjoint before it is discounted");
  const double factor = cq_adjoint_factor(&r->rules, cq_rollout_at(r));
  if (factor == 1) return CQ_OK;
  if (r->changing.pending)
    for (int64_t k = 0; k < r->changing.width; k++) r->changing.grad[k] = factor ? r->changing.grad[k] * factor : 0;
  return r->world->backend->discount_adjoint(r->device, factor);
}

// Reverses the last `count` control steps; the live state is then the one before them. grad_signals {count, B,
// actuators} and grad_forces {count, B, force_count, dim}, in the order of time, are overwritten; NULL: not wanted.
// CQ_OK or an error.
cq_status cq_rollout_run_adjoint(cq_rollout *r, int32_t count, double *grad_signals, double *grad_forces) {
  cq_status status = cq_rollout_ready_adjoint(r, count);
  if (!status && count) status = cq_policy_change_done(r);
  return status ? status
                : cq_rollout_backward(
                      r, &(cq_controls){.count = count, .grad_signals = grad_signals, .grad_forces = grad_forces});
}

// ---- gradients ------------------------------------------------------------------------------------------------------

// Adds the gradient of a field in one scene to out {count}, the caller's array. The gradient of a material constant
// follows from the gradients of the law's constants (slots) that depend on it.
static void add_gradient(const cq_rollout *r, int32_t scene, int32_t field, double *out) {
  const cq_model *m = &r->world->model;
  const cq_gradients *g = r->world->backend->gradients(r->device, scene);
  const double *const *value = r->values[scene].value;
  const int64_t count = cq_field_count(r->world, field);
  if (cq_field_describe(field)->owner != CQ_OWNER_CONSTANT) {
    for (int64_t k = 0; k < count; k++) out[k] += g->value[field][k];
    return;
  }
  for (int64_t p = 0; p < m->particle_count; p++) {
    double slot[CQ_SLOTS_MAX] = {0};
    for (int32_t k = 0; k < m->slot_count; k++) slot[k] = g->slot[k][p];
    cq_constants_adj(m, value, p, field, out + p * (count / m->particle_count), slot);
  }
}

// Lets the device complete all gradients, once the adjoint has reached step 0, before the gradient of `field` is read.
// CQ_OK, CQ_INVALID if the adjoint is not at step 0 or this gradient was not wanted, or an error of the device.
cq_status cq_rollout_complete(cq_rollout *r, int32_t field) {
  if (!r->adjoint || cq_memo_at(r->memo))
    return cq_fail(CQ_INVALID, "gradients are complete at step 0; the adjoint is at step %d", cq_memo_at(r->memo));
  if (!(r->computed & cq_bit(field)))
    return cq_fail(CQ_INVALID, "the gradient of %s was not wanted when the adjoint began", field_name(field));
  const cq_status status = r->finished ? CQ_OK : r->world->backend->finish(r->device);
  r->finished = !status;
  return status;
}

// Sets out to the gradient of a field, summed over scenes {count} (per_scene 0) or for each {B, count} (1), once the
// adjoint has reached step 0. CQ_OK, CQ_INVALID before that or if it was not wanted, or an error of the device.
cq_status cq_rollout_gradient(cq_rollout *r, int32_t field, double *out, int32_t per_scene) {
  const int64_t count = cq_field_count(r->world, field);
  if (count < 0) return cq_fail(CQ_INVALID, "there is no field %d", field);
  if (!has_field(&r->world->model, field))
    return cq_fail(CQ_INVALID, "there is no gradient of %s: no material of this world has it", field_name(field));
  const cq_status status = cq_rollout_complete(r, field);
  if (status) return status;
  memset(out, 0, (size_t)(per_scene ? count * r->def.batch : count) * sizeof *out);
  for (int32_t s = 0; s < r->def.batch; s++) add_gradient(r, s, field, out + (per_scene ? s * count : 0));
  return CQ_OK;
}

// ---- readouts -------------------------------------------------------------------------------------------------------

// Name, unit, meaning and rank of a quantity of readouts, a cq_field of the state or a cq_derived; NULL for an unknown
// one.
const cq_quantity_info *cq_quantity_describe(int32_t quantity) {
#define STATE_ROW(ID, name, rank, unit, bounds, value, meaning) {#name, unit, meaning, rank},
#define DERIVED_ROW(ID, name, rank, unit, meaning) {#name, unit, meaning, rank},
  static const cq_quantity_info info[CQ_QUANTITY_COUNT] = {CQ_STATE_FIELDS(STATE_ROW) CQ_READOUTS(DERIVED_ROW)};
  return quantity >= 0 && quantity < CQ_QUANTITY_COUNT ? &info[quantity] : NULL;
}

// Fills a readout with defaults: the mean of positions.
void cq_readout_init(cq_readout *readout) {
  *readout = (cq_readout){.cookie = CQ_COOKIE, .kind = CQ_READOUT_MEAN, .fields = 1u << CQ_FIELD_POSITION};
}

// The number of values of a readout in one scene: its width for each group, or for each listed particle of a gather.
int64_t cq_readout_count(const cq_world *world, const cq_readout *readout) {
  const int64_t width = cq_readout_width(readout->kind, readout->fields, world->model.dim);
  if (readout->kind != CQ_READOUT_GATHER) return readout->group_count * width;
  return (readout->group_start[readout->group_count] - readout->group_start[0]) * width;
}

// CQ_OK, or CQ_INVALID and a sentence for a readout that this rollout cannot make.
cq_status cq_readout_check(const cq_rollout *r, const cq_readout *q) {
  if (q->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "a cq_readout was not filled by cq_readout_init");
  if (!r->began) return cq_fail(CQ_INVALID, "the rollout has no live state; begin it first");
  if (q->kind < CQ_READOUT_MEAN || q->kind > CQ_READOUT_SUM)
    return cq_fail(CQ_INVALID, "there is no readout %d", q->kind);
  if (q->weighting < CQ_WEIGHT_MASS || q->weighting > CQ_WEIGHT_VOLUME)
    return cq_fail(CQ_INVALID, "there is no weighting %d", q->weighting);
  if (!q->fields) return cq_fail(CQ_INVALID, "a readout needs at least one field");
  for (int32_t f = 0; f < 32; f++)
    if ((q->fields >> f & 1) && !cq_quantity_width(f, r->world->model.dim))
      return cq_fail(CQ_INVALID, "field %d is not one of a state, and no derived quantity", f);
  if (q->group_count < 1) return cq_fail(CQ_INVALID, "a readout needs at least one group");
  for (int32_t g = 0; g < q->group_count; g++)
    if (q->group_start[g + 1] <= q->group_start[g]) return cq_fail(CQ_INVALID, "group %d of a readout is empty", g + 1);
  // At every call, since the list may have changed. A number below 0, or above the last particle, leaves a sign bit.
  const int32_t last = (int32_t)r->world->model.particle_count - 1, *list = q->particles;
  const int64_t begin = q->group_start[0], end = q->group_start[q->group_count];
  int32_t signs = 0;
  for (int64_t k = begin; k < end; k++) signs |= list[k] | (int32_t)((uint32_t)last - (uint32_t)list[k]);
  for (int64_t k = begin; signs < 0 && k < end; k++)
    if (list[k] < 0 || list[k] > last)
      return cq_fail(CQ_INVALID, "a readout wants particle %lld; there are %lld", list[k] + 1ll, (long long)last + 1);
  return CQ_OK;
}

// Computes a readout of the live state into out {B, cq_readout_count}. CQ_OK or an error.
cq_status cq_rollout_read(cq_rollout *r, const cq_readout *readout, double *out) {
  const cq_status status = cq_readout_check(r, readout);
  return status ? status : r->world->backend->read(r->device, readout, cq_readout_count(r->world, readout), out);
}

// Adds the adjoint of a readout of the live state, from grad_out {B, cq_readout_count}. CQ_OK or an error.
cq_status cq_rollout_read_adjoint(cq_rollout *r, const cq_readout *readout, const double *grad_out) {
  const cq_status status = cq_readout_check(r, readout);
  if (status) return status;
  if (!r->adjoint) return cq_fail(CQ_INVALID, "begin the adjoint before adding to it");
  if (r->finished)
    return cq_fail(CQ_INVALID, "the gradients were asked for already; begin the adjoint again before adding to it");
  return r->world->backend->read_adjoint(r->device, readout, cq_readout_count(r->world, readout), grad_out);
}
