// health: finds the particle that shows why a step failed, as the CPU does. Failures are rare, so that whole states are
// copied to the host.
#include "batch.h"
#include <math.h>

typedef struct State {
  const cq_device *device;
  void *data;                // {fields, slots} as on the device
  const int32_t *slot_of;
} State;

// Number `field` of a particle's x, v, C and F in a host copy of the state. id: scene * particles + particle.
static double field_of(const State *q, int64_t id, int32_t field) {
  const int64_t at = CQ_SLOT_AT(q->device->fields, q->slot_of[id]) + field * CQ_GROUP;
  return q->device->real_bytes == 4 ? (double)((const float *)q->data)[at] : ((const double *)q->data)[at];
}

// det F of a particle in a host copy of the state, computed in double. id: as in field_of.
static double determinant(const State *q, int64_t id) {
  const int32_t dim = q->device->model->dim, first = cq_state_offset(CQ_FIELD_DEFORMATION, dim);
  double f[3][3];
  for (int i = 0; i < dim; i++)
    for (int j = 0; j < dim; j++) f[i][j] = field_of(q, id, first + i * dim + j);
  if (dim == 2) return f[0][0] * f[1][1] - f[0][1] * f[1][0];
  return f[0][0] * (f[1][1] * f[2][2] - f[1][2] * f[2][1]) - f[0][1] * (f[1][0] * f[2][2] - f[1][2] * f[2][0]) +
         f[0][2] * (f[1][0] * f[2][1] - f[1][1] * f[2][0]);
}

// Is coordinate x [length] along `axis` in the world, by the precision of the device? Not 0: yes; 0: no, or x is NaN.
static int32_t in_world(const cq_device *d, int32_t axis, double x) {
  const double limit = d->model->cells[axis] * (1 + 1e-6), inv_dx = 1 / d->model->dx;
  if (d->real_bytes == 8) return inv_dx * x >= 0 && inv_dx * x <= limit;
  const float at = (float)inv_dx * (float)x;
  return at >= 0 && at <= (float)limit;
}

// The first axis along which a particle has left the world; dim if it is inside. id: as in field_of.
static int32_t axis_outside(const State *q, int64_t id) {
  int32_t axis = 0;
  while (axis < q->device->model->dim && in_world(q->device, axis, field_of(q, id, axis))) axis++;
  return axis;
}

// Sets in *h the kind of a failure (CQ_HEALTH_...), the particle's number in its scene, and the value that shows it.
static void set_health(cq_health *h, int32_t bad, int64_t particle, double value) {
  h->bad = bad;
  h->particle = particle;
  h->value = value;
}

// Looks for a failed particle of a scene in a host copy of the state: sets *h to the first one that is not finite, else
// the first one outside of the world, else the first one with det F <= 0. If there is none, h->bad is
// CQ_HEALTH_GOOD, and *h has the smallest det F and its particle.
static void diagnose(const State *q, int32_t scene, cq_health *h) {
  const cq_device *d = q->device;
  const int64_t n = d->particles, first = scene * n;
  h->scene = scene;
  for (int64_t p = 0; p < n; p++)
    for (int32_t f = 0; f < d->fields; f++) {
      const double value = field_of(q, first + p, f);
      if (value - value != 0) return set_health(h, CQ_HEALTH_NOT_FINITE, p, value);
    }
  for (int64_t p = 0; p < n; p++) {
    h->axis = axis_outside(q, first + p);
    if (h->axis < d->model->dim) return set_health(h, CQ_HEALTH_LEFT_GRID, p, field_of(q, first + p, h->axis));
  }
  h->axis = 0;
  h->value = INFINITY;
  for (int64_t p = 0; p < n; p++) {
    const double det = determinant(q, first + p);
    if (det < h->value) set_health(h, det > 0 ? CQ_HEALTH_GOOD : CQ_HEALTH_INVERTED, p, det);
    if (h->bad) return;
  }
}

// Sets d->health to a failed particle: of the first scene that has one in the state before the step, else of the first
// scene that has one in the state after it. The state before comes first because the failure of one scene there ended
// the step for all. If no scene has one, det F was <= 0 in the kernels' precision but is positive in double: then
// d->health has the particle with the smallest det F before the step.
static void find_failed_particle(cq_device *d, const State *before, const State *after) {
  const State *states[] = {before, after};
  cq_health worst = {};
  worst.value = INFINITY;
  for (int k = 0; k < 2 && states[k]->data; k++)
    for (int32_t s = 0; s < d->batch; s++) {
      cq_health h = {};
      diagnose(states[k], s, &h);
      if (k == 0 && h.value < worst.value) worst = h;
      if (!h.bad) continue;
      d->health = h;
      d->health.step = d->step;
      return;
    }
  d->health = worst;
  d->health.step = d->step;
  d->health.bad = CQ_HEALTH_INVERTED;
}

// Begins to copy a state to new host memory, q->data, which the caller waits for and frees; NULL if slice is NULL.
static cq_status fetch(cq_device *d, const cq_slice *slice, State *q) {
  q->data = NULL;
  if (!slice) return CQ_OK;
  q->data = cq_alloc(cq_particles_size(d), 1, "looking for what failed");
  if (!q->data) return CQ_MEMORY;
  return cq_cuda_check(
      cudaMemcpyAsync(q->data, slice->memory->data, cq_particles_size(d), cudaMemcpyDeviceToHost, d->context->stream),
      "looking for what failed");
}

// Finds the particle that failed in an engine step, from the states before (in) and after it (out, NULL: there is
// none), and puts it into d->health. Returns CQ_UNSTABLE with a sentence that names it, or the status of an error that
// prevented the search.
cq_status cq_cuda_diagnose(cq_device *d, const cq_slice *in, const cq_slice *out) {
  const char *const what = "looking for what failed";
  int32_t *slot_of = (int32_t *)cq_alloc((size_t)d->slots, sizeof *slot_of, what);
  State before = {d, NULL, slot_of}, after = before;
  cq_status status = slot_of ? fetch(d, in, &before) : CQ_MEMORY;
  if (!status) status = fetch(d, out, &after);
  if (!status)
    status = cq_cuda_check(cudaMemcpyAsync(slot_of, d->arrangement->slot_of, (size_t)d->slots * sizeof *slot_of,
                                           cudaMemcpyDeviceToHost, d->context->stream), what);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
  if (!status) {
    find_failed_particle(d, &before, &after);
    status = cq_health_fail(&d->health, d->batch);
  }
  cq_free(before.data);
  cq_free(after.data);
  cq_free(slot_of);
  return status;
}
