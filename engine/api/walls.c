// walls: impulses that walls give in each control step of a rollout, and velocities of walls that change from one
// control step to the next.
#include "world.h"
#include <math.h>
#include <string.h>

// The number of values of wall impulses in one control step of all scenes.
static int64_t impulse_count(const cq_rollout *r) {
  return (int64_t)r->def.batch * r->world->model.contact_count * cq_contact_width(r->world->model.dim);
}

// The number of components of wall velocities in one control step of all scenes.
static int64_t velocity_count(const cq_rollout *r) { return (int64_t)r->def.batch * cq_wall_numbers(&r->world->model); }

// Frees a rollout's wall impulses, velocities and their gradients, and the reports of its solver.
void cq_walls_close(cq_rollout *r) {
  double *owned[] = {r->walls_begun.velocity, r->walls_begun.place, r->walls_next.velocity, r->walls_next.place,
                     r->track.grad_velocity, r->track.grad_place, r->track.impulse, r->grad_impulse, r->track.solver,
                     r->grad_place_end};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
}

// ---- impulses -------------------------------------------------------------------------------------------------------

// When a rollout is created: allocates the impulses of its walls and their gradients, if they are asked for. CQ_OK,
// CQ_MEMORY, or CQ_INVALID in a world without walls and pins.
cq_status cq_walls_open(cq_rollout *r) {
  const size_t count = (size_t)impulse_count(r) * (size_t)r->def.steps;
  if (!r->def.contact) return CQ_OK;
  if (!r->world->model.wall_count && !r->world->model.pin_count)
    return cq_fail(CQ_INVALID, "contact is to be read, but the world has no walls and no pins");
  r->track.impulse = cq_alloc(count, sizeof(double), "contact");
  if (r->def.differentiable) r->grad_impulse = cq_alloc(count, sizeof(double), "contact");
  return r->track.impulse && (r->grad_impulse || !r->def.differentiable) ? CQ_OK : CQ_MEMORY;
}

// The impulses of walls and pins in all control steps so far, {steps, B, cq_contact_count, width}; NULL: the rollout
// was created without contact.
const double *cq_rollout_contact(const cq_rollout *r) { return r->track.impulse; }

// Adds grad {count, B, cq_contact_count, width} to the gradient of the impulses of `count` control steps from number
// `step`, from 0, on, before these are reversed. CQ_OK or CQ_INVALID.
cq_status cq_rollout_contact_adjoint(cq_rollout *r, int32_t step, int32_t count, const double *grad) {
  const int64_t width = impulse_count(r);
  const int32_t at = cq_rollout_at(r);
  if (!r->def.contact) return cq_fail(CQ_INVALID, "this rollout was made without contact");
  if (!r->adjoint) return cq_fail(CQ_INVALID, "begin the adjoint before adding to it");
  if (step < 0 || count < 0 || count > at - step)
    return cq_fail(CQ_INVALID, "a gradient of contact at control steps %d to %d cannot be added: the adjoint is at %d",
                   step + 1, step + count, at);
  for (int64_t k = 0; k < count * width; k++) r->grad_impulse[step * width + k] += grad[k];
  r->track.grad_impulse = r->grad_impulse;
  return CQ_OK;
}

// ---- their velocities -----------------------------------------------------------------------------------------------

// Allocates an array of wall velocities by control step, {steps, batch, walls, dim}, unless it is allocated. 1, or 0
// without memory.
static int reserve(const cq_rollout *r, double **array) {
  return cq_step_rows_reserve(r, array, cq_wall_numbers(&r->world->model), "velocities of walls");
}

// Allocates velocities and displacements of walls for all control steps, and their gradients where the rollout is
// differentiable. CQ_OK or CQ_MEMORY.
static cq_status reserve_motion(cq_rollout *r) {
  cq_walls *next = &r->walls_next;
  if (!reserve(r, &next->velocity) || !reserve(r, &next->place)) return CQ_MEMORY;
  if (!r->def.differentiable) return CQ_OK;
  return reserve(r, &r->track.grad_velocity) && reserve(r, &r->track.grad_place) ? CQ_OK : CQ_MEMORY;
}

// The length of a control step [time].
static double control_dt(const cq_rollout *r) { return r->world->model.dt * r->world->model.substeps; }

// The displacement of a wall of a scene along an axis [length], at the live state, since the world was made. k: dim
// times the wall's index, plus the axis.
static double place_now(const cq_rollout *r, int64_t scene, int64_t k) {
  const int64_t numbers = cq_wall_numbers(&r->world->model), at = cq_rollout_at(r);
  const int64_t row = ((at ? at - 1 : 0) * r->def.batch + scene) * numbers + k;
  return r->track.place[row] + (at ? control_dt(r) * r->track.velocity[row] : 0);
}

// Sets the displacement of each wall at the start of each control step, beginning with that at the live state of
// `from`, or 0. scene {batch}: as in cq_rollout_begin_from.
static void integrate(const cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  const cq_wall_track *walls = &r->track;
  double *place = r->walls_begun.place;
  const int64_t numbers = cq_wall_numbers(&r->world->model), width = velocity_count(r);
  const double dt = control_dt(r);
  for (int64_t k = 0; k < width; k++) {
    const int32_t s = from ? scene[k / numbers] : -1;
    place[k] = s < 0 || !from->track.place ? 0 : place_now(from, s, k % numbers);
  }
  for (int64_t k = width; k < r->def.steps * width; k++)
    place[k] = place[k - width] + dt * walls->velocity[k - width];
}

// Sets velocities of walls for each control step, instead of CQ_FIELD_WALL_VELOCITY, from the next cq_rollout_begin on:
// {steps, walls, dim} for all scenes (per_scene 0), or {B, steps, walls, dim} for each (1). Their integral is the
// displacement of a moving wall. NULL: the field's velocities again. CQ_OK, CQ_MEMORY, or CQ_INVALID for a number that
// is not finite.
cq_status cq_rollout_set_walls(cq_rollout *r, const double *velocity, int32_t per_scene) {
  const cq_model *m = &r->world->model;
  const int64_t steps = r->def.steps, numbers = cq_wall_numbers(m), batch = r->def.batch;
  if (velocity && !numbers) return cq_fail(CQ_INVALID, "velocities of walls are set, but the world has no walls");
  for (int64_t k = 0; velocity && k < (per_scene ? batch : 1) * steps * numbers; k++)
    if (!isfinite(velocity[k]))
      return cq_fail(CQ_INVALID, "velocity of wall %lld is %g at control step %lld; it must be finite",
                     (long long)(k % numbers / m->dim) + 1, velocity[k], (long long)(k / numbers % steps) + 1);
  const cq_status status = velocity ? reserve_motion(r) : CQ_OK;
  if (status) return status;
  if (velocity) cq_step_rows_copy(r, r->walls_next.velocity, velocity, numbers, per_scene);
  r->walls_set = velocity != NULL;
  r->walls_changed = 1;
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a rollout that goes on from `from` with another velocity of a moving wall, unless both have
// velocities by control steps: the displacement of a wall with one velocity is that velocity times the time.
static cq_status check_moving(const cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  const cq_model *m = &r->world->model;
  const int changes = r->track.velocity != NULL, changed = from->track.velocity != NULL;
  for (int32_t s = 0; s < r->def.batch; s++)
    for (int32_t w = 0; w < m->wall_count && scene[s] >= 0; w++) {
      if (!m->walls[w].moves || (changes && changed)) continue;
      const double *now = r->values[s].wall_velocity + w * m->dim,
                   *before = from->values[scene[s]].wall_velocity + w * m->dim;
      if (!changes && !changed && !memcmp(now, before, (size_t)m->dim * sizeof *now)) continue;
      return cq_fail(CQ_INVALID,
                     "wall %d moves, and its velocity is another one than in the rollout that this one goes on from: give "
                     "both of them velocities of each control step",
                     w + 1);
    }
  return CQ_OK;
}

// At the beginning of a rollout: puts the velocities of walls that were set last into use, and computes the
// displacements of moving walls. from, scene: as in cq_rollout_begin_from, or NULL. CQ_OK or CQ_INVALID (check_moving).
cq_status cq_walls_begin(cq_rollout *r, const cq_rollout *from, const int32_t *scene) {
  cq_wall_track *track = &r->track;
  if (r->walls_changed) {
    track->velocity = track->place = NULL;
    if (r->walls_set) {
      const cq_walls begun = r->walls_next;
      r->walls_next = r->walls_begun;
      r->walls_begun = begun;
      track->velocity = begun.velocity;
      track->place = begun.place;
    }
    r->walls_changed = 0;
  }
  const cq_status status = from ? check_moving(r, from, scene) : CQ_OK;
  if (!status && track->velocity) integrate(r, from, scene);
  return status;
}

// Adds the gradients of wall displacements of r, which began in the live state of `from`, to those of `from` at that
// state, if both have wall velocities by control steps. scene {batch}: as in cq_rollout_begin_from. CQ_OK or CQ_MEMORY.
cq_status cq_walls_pass_adjoint(const cq_rollout *r, cq_rollout *from, const int32_t *scene) {
  const int64_t numbers = cq_wall_numbers(&r->world->model), width = velocity_count(r);
  if (!r->track.velocity || !from->track.velocity) return CQ_OK;
  if (!from->grad_place_end) from->grad_place_end = cq_alloc((size_t)velocity_count(from), sizeof(double), "walls");
  if (!from->grad_place_end) return CQ_MEMORY;
  const int64_t at = cq_rollout_at(from);
  double *grad = at == from->def.steps ? from->grad_place_end : from->track.grad_place + at * velocity_count(from);
  for (int64_t k = 0; k < width; k++) {
    const int32_t s = scene[k / numbers];
    double sum = r->grad_place_end ? r->grad_place_end[k] : 0;
    for (int64_t i = r->def.steps - 1; i >= 0; i--) sum += r->track.grad_place[i * width + k];
    if (s >= 0) grad[s * numbers + k % numbers] += sum;
  }
  return CQ_OK;
}

// When an adjoint begins: clears the gradients of wall impulses, velocities and displacements.
void cq_walls_begin_adjoint(cq_rollout *r) {
  r->track.grad_impulse = NULL;
  if (r->grad_impulse) memset(r->grad_impulse, 0, (size_t)(r->def.steps * impulse_count(r)) * sizeof(double));
  if (r->grad_place_end) memset(r->grad_place_end, 0, (size_t)velocity_count(r) * sizeof(double));
  if (!r->track.velocity) return;
  memset(r->track.grad_velocity, 0, (size_t)(r->def.steps * velocity_count(r)) * sizeof(double));
  memset(r->track.grad_place, 0, (size_t)(r->def.steps * velocity_count(r)) * sizeof(double));
}

// (E73) Sets out to the gradient of the velocities of walls by control step, {steps, walls, dim} summed over scenes,
// or {B, steps, walls, dim} for each. A velocity acts in its own control step, and by the displacement of the wall in
// all later ones. CQ_OK or an error.
cq_status cq_rollout_walls_gradient(cq_rollout *r, double *out, int32_t per_scene) {
  const cq_model *m = &r->world->model;
  const int64_t steps = r->def.steps, numbers = cq_wall_numbers(m), batch = r->def.batch;
  if (!r->track.velocity)
    return cq_fail(CQ_INVALID, "this rollout began without velocities of walls for each control step");
  const cq_status status = cq_rollout_complete(r, CQ_FIELD_WALL_VELOCITY);
  if (status) return status;
  memset(out, 0, (size_t)((per_scene ? batch : 1) * steps * numbers) * sizeof *out);
  for (int64_t s = 0; s < batch; s++)
    for (int64_t k = 0; k < numbers; k++) {
      double later = r->grad_place_end ? r->grad_place_end[s * numbers + k] : 0;
      for (int64_t i = steps - 1; i >= 0; i--) {
        const int64_t from = (i * batch + s) * numbers + k, to = ((per_scene ? s * steps : 0) + i) * numbers + k;
        out[to] += r->track.grad_velocity[from] + m->dt * m->substeps * later;
        later += r->track.grad_place[from];
      }
    }
  return CQ_OK;
}
