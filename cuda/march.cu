// march: control steps of all scenes, forward and backward, as runs of substeps of one arrangement.
#include "scene.h"
#include "window.h"
#include <string.h>

// Cells that the fastest particle may move before sorting, about: what has left its tile's region all the same stops the run.
static const double drift_limit = 1;

// ---- forward ------------------------------------------------------------------------------------------------------------

// Substeps until the host looks again; sort: 1 if the particles had better be sorted before.
static int32_t plan_run(const cq_device *d, int32_t left, int32_t *sort) {
  const int32_t most = left < CQ_RUN_MAX ? left : CQ_RUN_MAX;
  *sort = 0;
  if (d->drift + d->pace * most <= drift_limit) return most;
  int32_t fit = (int32_t)((drift_limit - d->drift) / d->pace);
  if (d->drift > 0 && fit < (most + 1) / 2) {
    *sort = 1;
    fit = (int32_t)(drift_limit / d->pace);
  }
  return fit < 1 ? 1 : fit < most ? fit : most;
}

// the states of a run, and what is to be remembered of it; record: NULL or {count}
static cq_status prepare_states(cq_device *d, cq_step_record *records, int32_t count, cq_slice *out[CQ_RUN_MAX]) {
  cq_status status = CQ_OK;
  const size_t grid = (size_t)d->arrangement->block_count * CQ_TILE_NODES * cq_node_size(d);
  for (int32_t k = 0; k < count && !status; k++) {
    cq_slice *in = k ? out[k - 1] : d->live;
    // nobody asks for the states between: two take turns
    if (!records && k > 1) {
      out[k] = cq_cuda_slice_hold(out[k - 2]);
    } else {
      status = cq_cuda_slice_create(d, &out[k]);
    }
    if (!status && records) {
      cq_step_record *record = &records[k];
      cq_cuda_step_record_clear(d, record);
      status = cq_pool_reserve(&d->context->pool, &record->grid, grid, "memo of the grid");
      record->in = cq_cuda_slice_hold(in);
      record->out = cq_cuda_slice_hold(out[k]);
      record->arrangement = cq_cuda_arrangement_hold(d->arrangement);
    }
    if (!status) d->upload->substeps[k] = {in->memory->data, out[k]->memory->data, records ? records[k].grid->data : NULL};
  }
  return status;
}

// The first step that failed is the next one of the live state.
static cq_status fail_step(cq_device *d, const cq_slice *after) {
  // was the state after it made, or did the one before show that it must not be?
  cq_status status = cq_cuda_prepare(d, d->arrangement);
  d->upload->substeps[0] = {d->live->memory->data, NULL, NULL};
  if (!status) status = cq_cuda_run_probe(d);
  return status ? status : cq_cuda_diagnose(d, d->live, d->progress->bad == 0 ? NULL : after);
}

// Makes the last good state live. Sorting may be due before the run is at its end.
static cq_status conclude(cq_device *d, int32_t count, cq_slice *const out[CQ_RUN_MAX], int32_t *made) {
  const cq_progress p = *d->progress;
  const int32_t failed = p.bad < count && p.bad <= p.stop;
  *made = failed ? p.bad : p.stop < count ? p.stop : count;
  const double drift = d->drift;
  if (*made) cq_cuda_resume(d, out[*made - 1], d->arrangement, drift, d->pace, d->step + *made);
  if (failed) return fail_step(d, out[p.bad]);
  if (*made == count) {
    d->pace = p.fastest * d->model->dt / d->model->dx;
    d->drift += d->pace * count;
    return CQ_OK;
  }
  if (*made == 0 && drift == 0)
    return cq_fail(CQ_DEVICE, "the GPU sorted particles into tiles that do not hold them; its memory may be faulty");
  const double pace = (drift_limit - drift) / (*made ? *made : 1);
  if (pace > d->pace) d->pace = pace;
  return cq_cuda_arrange(d);
}

static cq_status run_forward(cq_device *d, cq_step_record *records, int32_t left, int32_t *made) {
  int32_t sort;
  const int32_t count = plan_run(d, left, &sort);
  cq_status status = sort ? cq_cuda_arrange(d) : CQ_OK;
  const double start = cq_clock(), sorted = d->context->seconds[CQ_PHASE_SORT];
  cq_slice *out[CQ_RUN_MAX] = {};
  *made = 0;
  if (!status) status = cq_cuda_prepare(d, d->arrangement);
  if (!status) status = prepare_states(d, records, count, out);
  if (!status) status = cq_cuda_run_forward(d, count);
  if (!status) status = conclude(d, count, out, made);
  for (int32_t k = 0; k < count; k++) cq_cuda_slice_release(d, out[k]);
  d->context->seconds[CQ_PHASE_P2G] += cq_clock() - start - (d->context->seconds[CQ_PHASE_SORT] - sorted);
  return status;
}

cq_status cq_cuda_advance(cq_device *d, cq_step_record *records) {
  cq_status status = CQ_OK;
  for (int32_t k = 0, made; k < d->model->substeps && !status; k += made)
    status = run_forward(d, records ? records + k : NULL, d->model->substeps - k, &made);
  return status;
}

// ---- backward -----------------------------------------------------------------------------------------------------------

static cq_status clear(cq_device *d, const cq_memory *memory, size_t bytes) {
  return cq_cuda_check(cudaMemsetAsync(memory->data, 0, bytes, d->context->stream), "clearing the adjoint");
}

static size_t drive_bytes(const cq_device *d) { return (size_t)d->drives * (size_t)d->stride * d->real_bytes; }

// sums of the tiles of an arrangement, all zero
static cq_status begin_sums(cq_device *d, const cq_arrangement *a) {
  const size_t bytes = (size_t)a->block_count * (size_t)cq_sum_count(d) * sizeof(double);
  const cq_status status = cq_pool_reserve(&d->context->pool, &d->sums, bytes, "gradients of gravity and walls");
  return status ? status : clear(d, d->sums, bytes);
}

static void hold_adjoint_order(cq_device *d, cq_arrangement *a) {
  cq_cuda_arrangement_hold(a);
  cq_cuda_arrangement_release(d, d->adj_arrangement);
  d->adj_arrangement = a;
}

cq_status cq_cuda_begin_adjoint(cq_device *d, uint32_t wanted) {
  d->wanted = wanted;
  hold_adjoint_order(d, d->arrangement);
  const size_t entries = (size_t)d->batch * (size_t)d->model->actuation_count;
  cq_status status = clear(d, d->adj, cq_slice_size(d));
  if (!status) status = clear(d, d->params_adj, CQ_PARAM_COUNT * (size_t)d->stride * d->real_bytes);
  if (!status && d->drive) status = clear(d, d->drive_adj, drive_bytes(d));
  if (!status) status = clear(d, d->totals, (size_t)cq_total_state(d) * sizeof(double));
  if (!status && entries) status = clear(d, d->grad_weight, entries * sizeof(double));
  return status ? status : begin_sums(d, d->arrangement);
}

// gradients of constants, and of gravity and walls, to where they do not depend on the order
static cq_status settle(cq_device *d) {
  const cq_arrangement *a = d->adj_arrangement;
  cudaStream_t stream = d->context->stream;
  double *totals = (double *)d->totals->data;
  const cq_storing params = {d->params_adj->data, CQ_PARAM_COUNT, d->slots, a->order, totals + cq_total_params(d)};
  d->kernels->store_params(stream, cq_cuda_blocks(d, d->slots, 256), &params);
  cq_window_sum(stream, d->batch, a->tile_count, a->block_count, a->tiles, (const double *)d->sums->data, cq_sum_count(d), totals);
  return cq_cuda_check(cudaGetLastError(), "adding up gradients");
}

static void move_adjoint(cq_device *d, const cq_arrangement *to, int32_t fields, cq_memory **adj, cq_memory **other) {
  const cq_moving m = {(*adj)->data, (*other)->data, fields, d->slots, to->order, d->adj_arrangement->slot_of};
  d->kernels->move(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &m);
  cq_memory *swap = *adj;
  *adj = *other;
  *other = swap;
}

// The adjoint into the order that the step before had.
static cq_status cross_sorting(cq_device *d, cq_arrangement *to) {
  const double start = cq_clock();
  cq_status status = settle(d);
  if (status) return status;
  move_adjoint(d, to, d->fields, &d->adj, &d->adj_other);
  if (d->drive) move_adjoint(d, to, d->drives, &d->drive_adj, &d->drive_adj_other);
  status = cq_cuda_check(cudaGetLastError(), "sorting the adjoint");
  if (!status) status = begin_sums(d, to);
  hold_adjoint_order(d, to);
  d->context->seconds[CQ_PHASE_SORT] += cq_clock() - start;
  return status;
}

// A run of the last substeps before `end` that share an arrangement; left: substeps before it.
static cq_status run_backward(cq_device *d, const cq_step_record *records, int32_t end, int32_t *left) {
  cq_arrangement *a = records[end - 1].arrangement;
  int32_t begin = end - 1;
  while (begin > 0 && end - begin < CQ_RUN_MAX && records[begin - 1].arrangement->made == a->made) begin--;
  *left = begin;
  cq_status status = a->made == d->adj_arrangement->made ? CQ_OK : cross_sorting(d, a);
  if (status) return status;
  const double start = cq_clock();
  d->step -= end - begin;   // for walls that move
  status = cq_cuda_prepare(d, a);
  for (int32_t k = begin; k < end && !status; k++)
    d->upload->substeps[k - begin] = {records[k].in->memory->data, records[k].out->memory->data, records[k].grid->data};
  if (!status) status = cq_cuda_run_backward(d, end - begin);
  d->context->seconds[CQ_PHASE_P2G_ADJ] += cq_clock() - start;
  return status;
}

// brings the gradients of signals and forces, through pinned memory where they fit
static cq_status fetch_controls(cq_device *d, double *grad_signals, double *grad_forces) {
  const size_t signals = (size_t)d->batch * (size_t)d->model->actuator_count;
  const size_t forces = (size_t)d->batch * (size_t)d->model->force_count * (size_t)d->model->dim;
  double *from = (double *)d->grad_controls->data;
  const char *const what = "bringing the gradients of the controls";
  const int32_t staged = signals + forces <= CQ_STAGING;
  double *to_signals = staged ? d->staging : grad_signals, *to_forces = staged ? d->staging + signals : grad_forces;
  cq_status status = CQ_OK;
  if (grad_signals && signals)
    status = cq_cuda_check(cudaMemcpyAsync(to_signals, from, signals * sizeof *from, cudaMemcpyDeviceToHost, d->context->stream), what);
  if (!status && grad_forces && forces)
    status = cq_cuda_check(cudaMemcpyAsync(to_forces, from + signals, forces * sizeof *from, cudaMemcpyDeviceToHost,
                                           d->context->stream), what);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "the adjoint of a control step");
  d->pending = 0;
  if (status || !staged) return status;
  if (grad_signals && signals) memcpy(grad_signals, to_signals, signals * sizeof *from);
  if (grad_forces && forces) memcpy(grad_forces, to_forces, forces * sizeof *from);
  return CQ_OK;
}

cq_status cq_cuda_reverse(cq_device *d, const cq_step_record *records, double *grad_signals, double *grad_forces) {
  cq_status status = CQ_OK;
  for (int32_t end = d->model->substeps; end > 0 && !status;) status = run_backward(d, records, end, &end);
  if (status) return status;
  const double start = cq_clock();
  if (d->drive) {
    status = cq_cuda_run_drive_adj(d);
    if (!status) status = clear(d, d->drive_adj, drive_bytes(d));
  }
  const double waited = cq_clock();
  d->context->seconds[CQ_PHASE_DRIVE] += waited - start;
  if (!status) status = fetch_controls(d, grad_signals, grad_forces);
  // all of the run backward is waited for here
  d->context->seconds[CQ_PHASE_P2G_ADJ] += cq_clock() - waited;
  if (status) return status;
  cq_cuda_resume(d, records[0].in, records[0].arrangement, 0, 0, d->step);
  hold_adjoint_order(d, d->arrangement);
  return CQ_OK;
}

// ---- gradients ----------------------------------------------------------------------------------------------------------

static cq_status fetch(cq_device *d, double *to, const double *from, int64_t count) {
  if (!count) return CQ_OK;
  return cq_cuda_check(cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost, d->context->stream),
                       "bringing the gradients");
}

// those that are wanted; the others stay as they were
static cq_status fetch_particles(cq_device *d) {
  const int32_t fields[4] = {CQ_FIELD_POSITION, CQ_FIELD_VELOCITY, CQ_FIELD_AFFINE, CQ_FIELD_DEFORMATION};
  const cq_gradients *g = d->gradients;
  double *state[4] = {g->position, g->velocity, g->affine, g->deformation};
  double *params[CQ_PARAM_COUNT] = {g->mass, g->volume, g->mu, g->lambda, g->bulk};
  const uint32_t elastic = 1u << CQ_FIELD_YOUNG | 1u << CQ_FIELD_POISSON;
  const uint32_t asked[CQ_PARAM_COUNT] = {1u << CQ_FIELD_MASS, 1u << CQ_FIELD_VOLUME, elastic, elastic, elastic};
  const double *totals = (const double *)d->totals->data;
  cq_status status = CQ_OK;
  for (int32_t q = 0; q < 4 && !status; q++) {
    if (!(d->wanted >> fields[q] & 1)) continue;
    const int64_t at = cq_total_state(d) + (int64_t)cq_state_offset(fields[q], d->model->dim) * d->slots;
    status = fetch(d, state[q], totals + at, (int64_t)cq_state_width(fields[q], d->model->dim) * d->slots);
  }
  for (int32_t k = 0; k < CQ_PARAM_COUNT && !status; k++)
    if (d->wanted & asked[k]) status = fetch(d, params[k], totals + cq_total_params(d) + (int64_t)k * d->slots, d->slots);
  if (!status && d->wanted >> CQ_FIELD_ACTUATION_WEIGHT & 1)
    status = fetch(d, g->actuation_weight, (const double *)d->grad_weight->data, d->batch * d->model->actuation_count);
  return status;
}

cq_status cq_cuda_finish(cq_device *d) {
  const int32_t count = cq_sum_count(d), walls = d->model->wall_count;
  double *totals = (double *)d->totals->data;
  double *sums = (double *)cq_alloc((size_t)d->batch * (size_t)count, sizeof *sums, "gradients");
  if (!sums) return CQ_MEMORY;
  cq_status status = settle(d);
  const cq_storing state = {d->adj->data, d->fields, d->slots, d->adj_arrangement->order, totals + cq_total_state(d)};
  d->kernels->store_state(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &state);
  if (!status) status = cq_cuda_check(cudaGetLastError(), "storing gradients");
  if (!status) status = fetch_particles(d);
  if (!status) status = fetch(d, sums, totals, (int64_t)d->batch * count);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "bringing the gradients");
  for (int32_t s = 0; s < d->batch && !status; s++) {
    const double *sum = sums + (int64_t)s * count;
    cq_gradients *g = &d->gradients[s];
    memcpy(g->gravity, sum, sizeof g->gravity);
    memcpy(g->friction, sum + 3, (size_t)walls * sizeof *sum);
    memcpy(g->wall_velocity, sum + 3 + walls, 3 * (size_t)walls * sizeof *sum);
  }
  cq_free(sums);
  return status;
}
