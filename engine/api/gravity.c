// gravity: accelerations that change from one control step of a rollout to the next.
#include "world.h"
#include <math.h>
#include <string.h>

// The number of components of gravity in one control step of all scenes.
static int64_t width_of(const cq_rollout *r) { return (int64_t)r->def.batch * r->world->model.dim; }

// Frees a rollout's gravity by control steps and its gradient.
void cq_gravity_close(cq_rollout *r) {
  cq_free(r->gravity_begun);
  cq_free(r->gravity_next);
  cq_free(r->track.grad_gravity);
}

// Allocates a rollout's array of gravity by control step, {steps, batch, dim}, unless it is allocated. 1, or 0 without
// memory.
static int reserve(const cq_rollout *r, double **array) {
  return cq_step_rows_reserve(r, array, r->world->model.dim, "gravity of control steps");
}

// Sets gravity for each control step, instead of CQ_FIELD_GRAVITY, from the next cq_rollout_begin on: {steps, dim} for
// all scenes (per_scene 0), or {B, steps, dim} for each (1). NULL: the field's gravity again. CQ_OK, CQ_MEMORY, or
// CQ_INVALID for a number that is not finite.
cq_status cq_rollout_set_gravity(cq_rollout *r, const double *gravity, int32_t per_scene) {
  const int64_t steps = r->def.steps, dim = r->world->model.dim, batch = r->def.batch;
  for (int64_t k = 0; gravity && k < (per_scene ? batch : 1) * steps * dim; k++)
    if (!isfinite(gravity[k]))
      return cq_fail(CQ_INVALID, "gravity is %g at control step %lld; it must be finite", gravity[k],
                     (long long)(k / dim % steps) + 1);
  if (gravity && (!reserve(r, &r->gravity_next) || (r->def.differentiable && !reserve(r, &r->track.grad_gravity))))
    return CQ_MEMORY;
  if (gravity) cq_step_rows_copy(r, r->gravity_next, gravity, dim, per_scene);
  r->gravity_set = gravity != NULL;
  r->gravity_changed = 1;
  return CQ_OK;
}

// At the beginning of a rollout: puts the gravity by control steps that was set last into use.
void cq_gravity_begin(cq_rollout *r) {
  if (!r->gravity_changed) return;
  r->track.gravity = NULL;
  if (r->gravity_set) {
    double *begun = r->gravity_next;
    r->gravity_next = r->gravity_begun;
    r->gravity_begun = begun;
    r->track.gravity = begun;
  }
  r->gravity_changed = 0;
}

// When an adjoint begins: clears the gradient of the gravity of each control step, if gravity was set by control steps.
void cq_gravity_begin_adjoint(cq_rollout *r) {
  if (r->track.gravity) memset(r->track.grad_gravity, 0, (size_t)(r->def.steps * width_of(r)) * sizeof(double));
}

// Sets out to the gradient of the gravity of each control step, {steps, dim} summed over scenes (per_scene 0), or {B,
// steps, dim} for each (1). CQ_OK, CQ_INVALID if gravity was not set by control steps or the gradient is not complete,
// or an error of the device.
cq_status cq_rollout_gravity_gradient(cq_rollout *r, double *out, int32_t per_scene) {
  const int64_t steps = r->def.steps, dim = r->world->model.dim, batch = r->def.batch;
  if (!r->track.gravity) return cq_fail(CQ_INVALID, "this rollout began without gravity for each control step");
  const cq_status status = cq_rollout_complete(r, CQ_FIELD_GRAVITY);
  if (status) return status;
  memset(out, 0, (size_t)((per_scene ? batch : 1) * steps * dim) * sizeof *out);
  for (int64_t row = 0; row < steps * batch; row++) {
    double *to = out + cq_step_row(r, row, per_scene) * dim;
    for (int64_t i = 0; i < dim; i++) to[i] += r->track.grad_gravity[row * dim + i];
  }
  return CQ_OK;
}
