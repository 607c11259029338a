// walls: impulses that walls give in each control step of a rollout, and velocities of walls that change from one
// control step to the next.
#include "world.h"
#include <math.h>
#include <string.h>

static int64_t impulse_count(const cq_rollout *r) {
  return (int64_t)r->def.batch * r->world->model.contact_count * cq_contact_width(r->world->model.dim);
}

static int64_t velocity_count(const cq_rollout *r) { return (int64_t)r->def.batch * cq_wall_numbers(&r->world->model); }

void cq_walls_close(cq_rollout *r) {
  double *owned[] = {r->walls_begun.velocity, r->walls_begun.place, r->walls_next.velocity, r->walls_next.place,
                     r->track.grad_velocity, r->track.grad_place, r->track.impulse, r->grad_impulse, r->track.solver};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
}

// ---- impulses -------------------------------------------------------------------------------------------------------

cq_status cq_walls_open(cq_rollout *r) {
  const size_t count = (size_t)impulse_count(r) * (size_t)r->def.steps;
  if (!r->def.contact) return CQ_OK;
  if (!r->world->model.wall_count && !r->world->model.pin_count)
    return cq_fail(CQ_INVALID, "contact is to be read, but the world has no walls and no pins");
  r->track.impulse = cq_alloc(count, sizeof(double), "contact");
  if (r->def.differentiable) r->grad_impulse = cq_alloc(count, sizeof(double), "contact");
  return r->track.impulse && (r->grad_impulse || !r->def.differentiable) ? CQ_OK : CQ_MEMORY;
}

const double *cq_rollout_contact(const cq_rollout *r) { return r->track.impulse; }

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

static int reserve(const cq_rollout *r, double **array) {
  return cq_step_rows_reserve(r, array, cq_wall_numbers(&r->world->model), "velocities of walls");
}

static cq_status reserve_motion(cq_rollout *r) {
  cq_walls *next = &r->walls_next;
  if (!reserve(r, &next->velocity) || !reserve(r, &next->place)) return CQ_MEMORY;
  if (!r->def.differentiable) return CQ_OK;
  return reserve(r, &r->track.grad_velocity) && reserve(r, &r->track.grad_place) ? CQ_OK : CQ_MEMORY;
}

// Adds up the displacement of each wall before each control step.
static void integrate(const cq_rollout *r, const cq_walls *walls) {
  const cq_model *m = &r->world->model;
  const int64_t width = velocity_count(r);
  const double dt = m->dt * m->substeps;
  for (int64_t k = 0; k < width; k++) walls->place[k] = 0;
  for (int64_t k = width; k < r->def.steps * width; k++)
    walls->place[k] = walls->place[k - width] + dt * walls->velocity[k - width];
}

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
  if (velocity) {
    cq_step_rows_copy(r, r->walls_next.velocity, velocity, numbers, per_scene);
    integrate(r, &r->walls_next);
  }
  r->walls_set = velocity != NULL;
  r->walls_changed = 1;
  return CQ_OK;
}

cq_status cq_walls_begin(cq_rollout *r) {
  cq_wall_track *track = &r->track;
  if (!r->walls_changed) return CQ_OK;
  track->velocity = track->place = NULL;
  if (r->walls_set) {
    const cq_walls begun = r->walls_next;
    r->walls_next = r->walls_begun;
    r->walls_begun = begun;
    track->velocity = begun.velocity;
    track->place = begun.place;
  }
  r->walls_changed = 0;
  return CQ_OK;
}

void cq_walls_begin_adjoint(cq_rollout *r) {
  r->track.grad_impulse = NULL;
  if (r->grad_impulse) memset(r->grad_impulse, 0, (size_t)(r->def.steps * impulse_count(r)) * sizeof(double));
  if (!r->track.velocity) return;
  memset(r->track.grad_velocity, 0, (size_t)(r->def.steps * velocity_count(r)) * sizeof(double));
  memset(r->track.grad_place, 0, (size_t)(r->def.steps * velocity_count(r)) * sizeof(double));
}

// (E73) A velocity acts in its own control step, and by the displacement of the wall in all later ones.
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
      double later = 0;
      for (int64_t i = steps - 1; i >= 0; i--) {
        const int64_t from = (i * batch + s) * numbers + k, to = ((per_scene ? s * steps : 0) + i) * numbers + k;
        out[to] += r->track.grad_velocity[from] + m->dt * m->substeps * later;
        later += r->track.grad_place[from];
      }
    }
  return CQ_OK;
}
