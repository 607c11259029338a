// walls: velocities of walls and gravity for each control step, and impulses of contacts. Velocities and gravity are
// sent to the device with each run of engine steps. During a run, each tile sums the impulses of its own nodes. After
// the run, the sums of all tiles of a scene are added to the row of the control step. Gradients of velocities and of
// gravity are summed in the same two stages.
#include "batch.h"
#include "window.h"
#include <string.h>

static const char *const what = "contacts of walls";

// The number of walls of all scenes together.
static size_t walls_of(const cq_device *d) { return (size_t)d->batch * (size_t)d->model->wall_count; }
// How many numbers the contact impulses of all scenes are in one control step.
static size_t impulse_width(const cq_device *d) { return (size_t)d->batch * (size_t)cq_impulse_count(d); }
// How many numbers the gradients of walls' velocities and places of all scenes are in one control step.
static size_t grad_width(const cq_device *d) { return 6 * walls_of(d); }

// Begins to copy `count` doubles in the direction `kind` on the device's stream.
static cq_status copy(cq_device *d, void *to, const void *from, size_t count, cudaMemcpyKind kind) {
  return cq_cuda_check(cudaMemcpyAsync(to, from, count * sizeof(double), kind, d->context->stream), what);
}
// Sets the first `count` doubles of a block of device memory to zero.
static cq_status clear(cq_device *d, const cq_memory *memory, size_t count) {
  return cq_cuda_check(cudaMemsetAsync(memory->data, 0, count * sizeof(double), d->context->stream), what);
}

// ---- velocities -----------------------------------------------------------------------------------------------------

// Writes a value to element `at` of a host array of reals in the device's precision.
static void put_real(const cq_device *d, double *array, size_t at, double value) {
  if (d->real_bytes == 4)
    ((float *)array)[at] = (float)value;
  else
    array[at] = value;
}

// Writes the velocities and displacements of all walls in the running control step to d->upload, and points its frame
// to them. on_device: where the upload will be on the device.
static void fill_motion(const cq_device *d, cq_upload *on_device) {
  const int32_t walls = d->model->wall_count, dim = d->model->dim;
  const double *velocity = d->track->velocity + (int64_t)d->control_step * d->batch * walls * dim;
  const double *place = d->track->place + (int64_t)d->control_step * d->batch * walls * dim;
  double *to = cq_upload_motion(d->upload), *to_place = to + 3 * walls_of(d);
  memset(to, 0, cq_wall_motion(d) * sizeof *to);
  for (size_t w = 0; w < walls_of(d); w++)
    for (int32_t i = 0; i < dim; i++) {
      const size_t at = 3 * w + (size_t)i;
      put_real(d, to, at, velocity[w * (size_t)dim + (size_t)i]);
      to_place[at] = place[w * (size_t)dim + (size_t)i];
    }
  cq_frame *f = &d->upload->frame;
  f->wall_velocity = cq_upload_motion(on_device);
  f->wall_stride = 3 * walls;
  f->wall_place = cq_upload_motion(on_device) + 3 * walls_of(d);
  f->wall_step = (int64_t)d->control_step * d->model->substeps;
  f->wall_age = NULL;
}

// Writes the gravity of all scenes in the running control step to d->upload. on_device: as in fill_motion.
static void fill_gravity(const cq_device *d, cq_upload *on_device) {
  const size_t at = d->track->velocity ? cq_wall_motion(d) : 0, dim = (size_t)d->model->dim;
  const double *gravity = d->track->gravity + (size_t)d->control_step * (size_t)d->batch * dim;
  double *to = cq_upload_motion(d->upload) + at;
  for (size_t k = 0; k < (size_t)d->batch * dim; k++) put_real(d, to, k / dim * 3 + k % dim, gravity[k]);
  d->upload->frame.gravity = cq_upload_motion(on_device) + at;
  d->upload->frame.gravity_stride = 3;
}

// Completes the frame of d->upload with gravity, wall velocities and contact impulses of the running control step, and
// writes the motion of walls and gravity to the upload if these change between control steps. on_device: as in
// fill_motion.
void cq_cuda_walls_fill(const cq_device *d, cq_upload *on_device) {
  cq_frame *f = &d->upload->frame;
  f->gravity = d->given.globals->data;
  f->gravity_stride = cq_global_count(d);
  f->wall_velocity =
      (const char *)d->given.globals->data + (size_t)(CQ_AT_FRICTION + d->model->wall_count) * d->real_bytes;
  f->wall_stride = cq_global_count(d);
  f->wall_place = NULL;
  f->wall_step = 0;
  f->wall_age = d->wall_age ? (const int64_t *)d->wall_age->data : NULL;
  if (d->track->velocity) fill_motion(d, on_device);
  if (d->track->gravity) fill_gravity(d, on_device);
  f->impulse_count = cq_impulse_count(d);
  f->impulse = d->track->impulse && d->impulse ? (double *)d->impulse->data : NULL;
  f->grad_impulse = NULL;
  if (d->track->grad_impulse)
    f->grad_impulse = (const double *)d->impulse_rows->data + (size_t)d->control_row * impulse_width(d);
}

// ---- impulses of contacts -------------------------------------------------------------------------------------------

// The number of control steps whose contact impulses the device has memory for, before the host must fetch them.
int32_t cq_cuda_impulse_rows(const cq_device *d) {
  const size_t fit = CQ_STAGING / impulse_width(d);
  return fit < 1 ? 1 : fit < CQ_RUNS_AHEAD ? (int32_t)fit : CQ_RUNS_AHEAD;
}

// Before a chain of runs, if the rollout reads impulses: reserves and clears memory for them. within not 0: the chain
// begins within a control step, and row 0 continues with the impulses that the step has given so far.
cq_status cq_cuda_impulse_begin(cq_device *d, int32_t within) {
  if (!d->track->impulse) return CQ_OK;
  cq_pool *pool = &d->context->pool;
  const size_t width = impulse_width(d), rows = (size_t)cq_cuda_impulse_rows(d) * width;
  const size_t tiles = (size_t)d->arrangement->block_count * (size_t)cq_impulse_count(d);
  cq_status status = cq_pool_reserve(pool, &d->impulse, tiles * sizeof(double), what);
  if (!status) status = cq_pool_reserve(pool, &d->impulse_rows, rows * sizeof(double), what);
  if (!status) status = cq_pool_reserve(pool, &d->impulse_before, width * sizeof(double), what);
  if (!status) status = clear(d, d->impulse, tiles);
  if (!status) status = clear(d, d->impulse_rows, rows);
  return status || !within ? status
                           : copy(d, d->impulse_rows->data, d->impulse_before->data, width, cudaMemcpyDeviceToDevice);
}

// Launches the sums of the tiles' impulses of each scene, which are added to row `row` (a control step) and cleared in
// the tiles. over: a word on the device that is not 0 if the run stopped before its end, so that nothing is added;
// NULL: add in any case.
static cq_status add_tiles(cq_device *d, int32_t row, const int32_t *over) {
  const cq_arrangement *a = d->arrangement;
  const int32_t count = cq_impulse_count(d);
  const cq_summing s = {d->batch, a->tile_count, a->block_count, a->tiles, (double *)d->impulse->data, count, 0, count,
                        (double *)d->impulse_rows->data + (size_t)row * impulse_width(d), over};
  cq_window_sum(d->context->stream, &s);
  return cq_cuda_check(cudaGetLastError(), what);
}

// After a run: adds the impulses that its engine steps have summed in tiles to row `row`, that of its control step, if
// the rollout reads impulses and the run was not stopped.
cq_status cq_cuda_impulse_add(cq_device *d, int32_t row) {
  return d->track->impulse ? add_tiles(d, row, &((const cq_upload *)d->on_device->data)->progress.over) : CQ_OK;
}

// After a chain of runs that ended within a control step: adds the tiles' impulses to row `row`, and keeps this row on
// the device, from which cq_cuda_impulse_begin continues.
cq_status cq_cuda_impulse_keep(cq_device *d, int32_t row) {
  if (!d->track->impulse) return CQ_OK;
  const cq_status status = add_tiles(d, row, NULL);
  const double *from = (const double *)d->impulse_rows->data + (size_t)row * impulse_width(d);
  return status ? status : copy(d, d->impulse_before->data, from, impulse_width(d), cudaMemcpyDeviceToDevice);
}

// Copies the first `rows` rows of impulses to the rollout's array on the host, as those of control steps step .. step +
// rows - 1; waits for them.
cq_status cq_cuda_impulse_fetch(cq_device *d, int32_t step, int32_t rows) {
  if (!d->track->impulse || !rows) return CQ_OK;
  const size_t count = (size_t)rows * impulse_width(d);
  double *to = d->track->impulse + (size_t)step * impulse_width(d);
  const int32_t staged = count <= CQ_STAGING;
  cq_status status = copy(d, staged ? d->staging : to, d->impulse_rows->data, count, cudaMemcpyDeviceToHost);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
  if (!status && staged) memcpy(to, d->staging, count * sizeof *to);
  return status;
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Are gradients of wall velocities wanted for each control step? 1 yes, 0 no.
static int32_t wants_wall_gradients(const cq_device *d) {
  return d->track->velocity && d->wanted & cq_bit(CQ_FIELD_WALL_VELOCITY);
}
// Are gradients of gravity wanted for each control step? 1 yes, 0 no.
static int32_t wants_gravity_gradients(const cq_device *d) {
  return d->track->gravity && d->track->grad_gravity && d->wanted & cq_bit(CQ_FIELD_GRAVITY);
}

// Reserves device memory for `count` doubles, *rows, and clears it.
static cq_status begin_rows(cq_device *d, cq_memory **rows, size_t count) {
  const cq_status status = cq_pool_reserve(&d->context->pool, rows, count * sizeof(double), what);
  return status ? status : clear(d, *rows, count);
}

// Before control steps step .. step + rows - 1 are reversed: sends the gradients of their impulses to the device, and
// clears the rows for gradients of wall motion and gravity.
cq_status cq_cuda_walls_begin_adj(cq_device *d, int32_t step, int32_t rows) {
  const size_t impulses = (size_t)rows * impulse_width(d);
  cq_status status = CQ_OK;
  if (d->track->grad_impulse) {
    const double *from = d->track->grad_impulse + (size_t)step * impulse_width(d);
    status = cq_pool_reserve(&d->context->pool, &d->impulse_rows, impulses * sizeof(double), what);
    if (!status) status = copy(d, d->impulse_rows->data, from, impulses, cudaMemcpyHostToDevice);
  }
  if (!status && wants_wall_gradients(d)) status = begin_rows(d, &d->grad_walls, (size_t)rows * grad_width(d));
  if (!status && wants_gravity_gradients(d))
    status = begin_rows(d, &d->grad_gravity, (size_t)rows * 3 * (size_t)d->batch);
  return status;
}

// Launches the sums over tiles of numbers [first, first + count) of d->sums (gradients of gravity and walls), for each
// scene; adds them to row d->control_row of `rows`, and clears them in the tiles.
static void sum_row(cq_device *d, int32_t first, int32_t count, const cq_memory *rows) {
  const cq_arrangement *a = d->adj_arrangement;
  double *row = (double *)rows->data + (size_t)d->control_row * (size_t)d->batch * (size_t)count;
  const cq_summing s = {d->batch, a->tile_count, a->block_count, a->tiles, (double *)d->sums->data, cq_sum_count(d),
                        first,    count,         row,            NULL};
  cq_window_sum(d->context->stream, &s);
}

// At the end of a control step backward, and before tiles change: adds the tiles' gradients of gravity and of walls'
// velocities and places to the row of the control step, if they are wanted for each control step.
cq_status cq_cuda_walls_sum(cq_device *d) {
  const int32_t walls = d->model->wall_count;
  if (wants_wall_gradients(d)) sum_row(d, CQ_AT_FRICTION + walls, 6 * walls, d->grad_walls);
  if (wants_gravity_gradients(d)) sum_row(d, 0, 3, d->grad_gravity);
  return cq_cuda_check(cudaGetLastError(), what);
}

// Copies gradients of walls from the layout of the device, `from`, to that of the host. On the device each {row, scene}
// holds {walls, 3} for velocities and then {walls, 3} for places. On the host these are two arrays {steps, batch,
// walls, dim}, from control step `step` on.
static void spread(const cq_device *d, int32_t step, int32_t rows, const double *from) {
  const size_t walls = (size_t)d->model->wall_count, dim = (size_t)d->model->dim,
               scenes = (size_t)rows * (size_t)d->batch;
  const size_t first = (size_t)step * walls_of(d) * dim;
  for (size_t k = 0; k < scenes * walls; k++) {
    const double *velocity = from + k / walls * 6 * walls + k % walls * 3;
    memcpy(d->track->grad_velocity + first + k * dim, velocity, dim * sizeof *from);
    memcpy(d->track->grad_place + first + k * dim, velocity + 3 * walls, dim * sizeof *from);
  }
}

// Copies gradients of gravity from `from`, a host copy of the device's {rows, batch, 3}, to the rollout's {steps,
// batch, dim}, in the place of those of `rows` control steps from `step` on.
static void spread_gravity(const cq_device *d, int32_t step, int32_t rows, const double *from) {
  const size_t dim = (size_t)d->model->dim, batch = (size_t)d->batch;
  for (size_t k = 0; k < (size_t)rows * batch; k++)
    memcpy(d->track->grad_gravity + ((size_t)step * batch + k) * dim, from + 3 * k, dim * sizeof *from);
}

// Returns a host copy of the first `count` doubles of `rows`, to be freed; NULL: no memory. Sets *status.
static double *fetch_rows(cq_device *d, const cq_memory *rows, size_t count, cq_status *status) {
  double *grad = (double *)cq_alloc(count, sizeof *grad, what);
  *status = grad ? copy(d, grad, rows->data, count, cudaMemcpyDeviceToHost) : CQ_MEMORY;
  if (!*status) *status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
  return grad;
}

// Copies the wanted gradients of wall motion and gravity in control steps step .. step + rows - 1 to the rollout's
// arrays on the host.
cq_status cq_cuda_walls_fetch(cq_device *d, int32_t step, int32_t rows) {
  cq_status status = CQ_OK;
  if (wants_wall_gradients(d)) {
    double *grad = fetch_rows(d, d->grad_walls, (size_t)rows * grad_width(d), &status);
    if (!status) spread(d, step, rows, grad);
    cq_free(grad);
  }
  if (!status && wants_gravity_gradients(d)) {
    double *grad = fetch_rows(d, d->grad_gravity, (size_t)rows * 3 * (size_t)d->batch, &status);
    if (!status) spread_gravity(d, step, rows, grad);
    cq_free(grad);
  }
  return status;
}
