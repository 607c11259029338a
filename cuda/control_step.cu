// control_step: control steps of all scenes, forward and backward, as runs of substeps of one arrangement.
#include "batch.h"
#include "reference.h"
#include "window.h"
#include <limits.h>
#include <string.h>

// The host launches engine steps ahead, then waits for the GPU and reads how far it came. Between two waits there are
// at most this many particles times engine steps, about a second of work, during which the user cannot interrupt.
static const int64_t work_ahead = 1 << 30;
// Engine steps that are launched ahead at least. If particles must be sorted before one of them, its kernels return at
// once. On an H100 an empty kernel of a graph takes 1 us, and a wait of the host 12 us (tests/cuda/latency.cu).
static const int64_t least_ahead = 32;

// ---- forward --------------------------------------------------------------------------------------------------------

// Runs that are launched one after another from the live state, before the host waits and reads how far they came:
//
//   first control step          live state                  last launch
//   o----o----o----o----o----o----o----o----o----o----o----o     engine steps
//   |<----------- at ------------>|<-------- sent -------->|
//
typedef struct Chain {
  const cq_controls *controls;
  cq_record *const *records; // {count} NULL: not wanted
  int32_t at;                // engine steps from the first control step to the live state
  int32_t sent;              // engine steps launched from there
  int32_t policy_steps;      // control steps among these whose signals the policy gives
  cq_slice *turn[2];         // without records, states are written to these two in turn
} Chain;

// The record of an engine step for the adjoint; NULL if steps are not recorded. substep: from the first control step.
static cq_step_record *record_of(const cq_device *d, const Chain *c, int32_t substep) {
  return c->records ? &c->records[substep / d->model->substeps]->steps[substep % d->model->substeps] : NULL;
}

// The memory of the state `count` engine steps after the live one: in a record, or one of two states used in turn.
static cq_slice *state_of(const cq_device *d, const Chain *c, int32_t count) {
  if (!count) return d->live;
  return c->records ? record_of(d, c, c->at + count - 1)->out : c->turn[count % 2];
}

// Makes control step i of `c` (0-based) the running one: sets its signals, its forces and its number in d.
static void set_controls(cq_device *d, const cq_controls *c, int32_t i) {
  d->signals = c->signals + (size_t)i * cq_signal_count(d);
  d->forces = c->forces ? c->forces + (size_t)i * cq_force_count(d) : NULL;
  d->track = c->track;
  d->control_step = c->at + i;
}

// The control step that engine step `substep` of the chain belongs to, counted from the control step of the live state.
// It is the row of the arrays that keep impulses of several control steps.
static int32_t row_of(const cq_device *d, const Chain *c, int32_t substep) {
  return substep / d->model->substeps - c->at / d->model->substeps;
}

// The number of engine steps to launch before the host waits again: a guess of when particles must be sorted next, from
// how long the last sorting lasted. Results do not depend on it: kernels return at once when particles must be sorted,
// and launches beyond that step are wasted.
static int64_t substeps_ahead(const cq_device *d) {
  if (d->reference) return work_ahead / d->slots;   // particles are never sorted
  const int64_t age = cq_cuda_since_sorted(d), most = work_ahead / d->slots,
                more = age / 2 > least_ahead ? age / 2 : least_ahead;
  const int64_t guess = age < d->span ? d->span - age : more;
  return guess < most ? guess : most;
}

// Allocates the state after engine step k of the next run (without records: only the two that are used in turn), and
// fills the step's record, if steps are recorded, and its entry in d->upload.
static cq_status prepare_state(cq_device *d, Chain *c, int32_t k) {
  const int32_t count = c->sent + k;
  const size_t grid = (size_t)d->arrangement->block_count * CQ_TILE_NODES * cq_node_size(d);
  cq_step_record *record = record_of(d, c, c->at + count);
  cq_slice *in = state_of(d, c, count);
  cq_status status = CQ_OK;
  if (record) {
    cq_cuda_step_record_clear(d, record);
    if (cq_cuda_keeps_grid(d)) status = cq_pool_reserve(&d->context->pool, &record->grid, grid, "memo of the grid");
    if (!status) status = cq_cuda_slice_create(d, &record->out);
    record->in = cq_cuda_slice_retain(in);
    record->arrangement = cq_cuda_arrangement_retain(d->arrangement);
  } else if (count < 2) {
    status = cq_cuda_slice_create(d, &c->turn[(count + 1) % 2]);
  }
  if (status) return status;
  d->upload->substeps[k] = {in->memory->data, state_of(d, c, count + 1)->memory->data,
                            record && cq_cuda_keeps_grid(d) ? record->grid->data : NULL};
  return CQ_OK;
}

// Prepares the next run of a chain without launching it: the arguments of its kernels (d->upload), and the states and
// records of its engine steps. Sets *count to the number of steps; a run ends at the latest with its control step.
static cq_status prepare_next(cq_device *d, Chain *c, int32_t *count) {
  const int32_t substeps = d->model->substeps, at = c->at + c->sent, left = substeps - at % substeps;
  *count = left < CQ_RUN_MAX ? left : CQ_RUN_MAX;
  set_controls(d, c->controls, at / substeps);
  cq_status status = cq_cuda_prepare(d, d->arrangement, c->sent);
  if (!status) d->upload->frame.count = *count;
  for (int32_t k = 0; k < *count && !status; k++) status = prepare_state(d, c, k);
  return status;
}

// Launches the prepared run of `count` engine steps: policy, if a control step begins; steps; sums of impulses.
static cq_status launch_next(cq_device *d, Chain *c, int32_t count) {
  const int32_t substeps = d->model->substeps, at = c->at + c->sent;
  const cq_policy_run *policy_run = c->controls->policy_run;
  const int32_t policy_steps = policy_run && at % substeps == 0;
  // the host knows the policy's signals of the first control step at most: the later ones are on the device alone
  cq_status status = cq_cuda_send(d, !policy_run || !c->sent);
  if (!status && policy_steps)
    status = cq_cuda_policy_signals(d, policy_run, c->controls->at + at / substeps, state_of(d, c, c->sent),
                                    c->policy_steps);
  if (!status) status = cq_cuda_run_forward(d, count);
  if (!status) status = cq_cuda_impulse_add(d, row_of(d, c, at));
  c->sent += count;
  c->policy_steps += policy_steps;
  return status;
}

// Waits for all launches of a chain, and copies progress and the policy's signals and outputs to the host.
static cq_status finish_chain(cq_device *d, const Chain *c) {
  cq_status status = c->policy_steps ? cq_cuda_policy_fetch(d, c->policy_steps) : CQ_OK;
  if (!status) status = cq_cuda_read_progress(d);
  const int32_t first = (c->at + d->model->substeps - 1) / d->model->substeps;
  for (int32_t k = 0; k < c->policy_steps && !status; k++)
    cq_cuda_policy_store(d, c->controls->policy_run, c->controls->at + first + k, k,
                         c->controls->policy_signals + (size_t)(first + k) * cq_signal_count(d));
  return status;
}

// Finds which particle failed in the engine step after the live state. after: the state after that step. Returns
// CQ_UNSTABLE with a sentence, or the status of an error that prevented the search.
static cq_status fail_step(cq_device *d, const Chain *c, const cq_slice *after) {
  if (d->reference) return cq_cuda_reference_diagnose(d, after);
  // Runs P2G of the live state once more. If that reports step 0 as bad, the live state is inverted itself, and the
  // state after it was never computed.
  set_controls(d, c->controls, c->at / d->model->substeps);
  cq_status status = cq_cuda_prepare(d, d->arrangement, 0);
  d->upload->substeps[0] = {d->live->memory->data, NULL, NULL};
  if (!status) status = cq_cuda_send(d, 1);
  if (!status) status = cq_cuda_run_probe(d);
  if (!status) status = cq_cuda_read_progress(d);
  return status ? status : cq_cuda_diagnose(d, d->live, d->progress->bad == 0 ? NULL : after);
}

// After a chain has computed `made` engine steps: fetches the contact impulses of the control steps that are complete,
// and keeps the sums of an incomplete control step on the device for the next chain.
static cq_status keep_impulses(cq_device *d, const Chain *c, int32_t made) {
  const int32_t substeps = d->model->substeps, rows = row_of(d, c, c->at + made);
  const cq_status status = cq_cuda_impulse_fetch(d, c->controls->at + c->at / substeps, rows);
  return !status && (c->at + made) % substeps ? cq_cuda_impulse_keep(d, rows) : status;
}

// Ends a chain after the GPU is done: makes its last good state live. If later engine steps of the chain did nothing
// because particles had moved too far from their tiles, sorts the particles. CQ_UNSTABLE if a step failed.
static cq_status conclude(cq_device *d, Chain *c) {
  const cq_progress p = *d->progress;
  const int32_t failed = p.bad < c->sent && p.bad <= p.stop, made = failed             ? p.bad
                                                                    : p.stop < c->sent ? p.stop
                                                                                       : c->sent;
  const cq_slice *after = failed ? state_of(d, c, made + 1) : NULL;
  const cq_status kept = failed ? CQ_OK : keep_impulses(d, c, made);
  if (kept) return kept;   // the live state is the one before the launches
  if (made) cq_cuda_resume(d, state_of(d, c, made), d->arrangement, d->step + made);
  c->at += made;
  if (failed) return fail_step(d, c, after);
  if (made == c->sent) return CQ_OK;
  d->span = cq_cuda_since_sorted(d);
  if (d->span == 0)
    return cq_fail(CQ_DEVICE, "the GPU sorted particles into tiles that do not hold them; its memory may be faulty");
  return cq_cuda_arrange(d);
}

// Launches runs of engine steps, one after another, until the host is as far ahead of the GPU as it may be. If
// launching fails in the middle of a run, the whole chain counts as not computed, because that run may have overwritten
// the state before it.
static cq_status launch_all(cq_device *d, Chain *c) {
  const int64_t left = (int64_t)c->controls->count * d->model->substeps - c->at, ahead = substeps_ahead(d);
  const int32_t rows = c->controls->policy_run ? cq_cuda_policy_rows(d) : CQ_RUNS_AHEAD;
  const int32_t impulse_rows = c->controls->track->impulse ? cq_cuda_impulse_rows(d) : INT_MAX;
  int32_t count;
  c->sent = c->policy_steps = 0;
  set_controls(d, c->controls, c->at / d->model->substeps);
  cq_status status = cq_cuda_impulse_begin(d, c->at % d->model->substeps);
  if (!status) status = prepare_next(d, c, &count);
  if (!status) status = launch_next(d, c, count);
  while (!status && c->sent < left && c->sent + d->model->substeps <= ahead && d->pending < d->uploads_count &&
         c->policy_steps < rows && row_of(d, c, c->at + c->sent) < impulse_rows) {
    if (prepare_next(d, c, &count)) break;   // the next chain meets the same failure and reports it
    status = launch_next(d, c, count);
  }
  return status;
}

// Launches a chain of runs from the live state, waits for it, and makes its last good state live.
static cq_status run_chain(cq_device *d, Chain *c) {
  cq_status status = cq_cuda_timer_begin(d->context, CQ_PHASE_P2G);
  if (!status) status = launch_all(d, c);
  if (!status) status = cq_cuda_timer_end(d->context);
  if (!status) status = finish_chain(d, c);
  if (!status) status = conclude(d, c);
  for (int k = 0; k < 2; k++) {
    cq_cuda_slice_release(d, c->turn[k]);
    c->turn[k] = NULL;
  }
  return status;
}

// Computes control steps forward: at least one, and as many as one chain of launches holds. Keeps in records {count},
// if not NULL, what the adjoint needs of each. Sets *steps_done to the number of control steps that are complete.
cq_status cq_cuda_advance(cq_device *d, const cq_controls *controls, cq_record *const *records, int32_t *steps_done) {
  const int32_t substeps = d->model->substeps;
  Chain chain = {};
  chain.controls = controls;
  chain.records = records;
  cq_status status = controls->policy_run ? cq_cuda_policy_set(d, controls->policy_run) : CQ_OK;
  while (!status && (!chain.at || chain.at % substeps)) {
    status = run_chain(d, &chain);
    // Out of memory: frees the sorted initial state, which only the next rollout would use, and tries again. The GPU
    // may still read memory of the launches, so the host waits for them before.
    if (status == CQ_MEMORY && cq_cuda_drop_start(d)) status = cq_cuda_read_progress(d);
  }
  *steps_done = chain.at / substeps;
  return status;
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Sets the first `bytes` of a block of device memory to zero.
static cq_status clear(cq_device *d, const cq_memory *memory, size_t bytes) {
  return cq_cuda_check(cudaMemsetAsync(memory->data, 0, bytes, d->context->stream), "clearing the adjoint");
}

// Clears those gradients in d->grad_cables that belong to one control step: of signals and of the script's forces.
static cq_status clear_cable_controls(cq_device *d) {
  const size_t values = cq_cable_values(d) * sizeof(double), all = cq_cable_grads(d) * sizeof(double);
  return cq_cuda_check(cudaMemsetAsync((char *)d->grad_cables->data + values, 0, all - values, d->context->stream),
                       "clearing the adjoint");
}

// The size in bytes of stress, force and pressure by actuation of all particles.
static size_t actuation_bytes(const cq_device *d) {
  return (size_t)d->actuation_fields * (size_t)d->stride * d->real_bytes;
}

// Reserves and clears d->sums, in which each tile of an arrangement collects gradients of gravity, damping and walls.
static cq_status begin_sums(cq_device *d, const cq_arrangement *a) {
  const size_t bytes = (size_t)a->block_count * (size_t)cq_sum_count(d) * sizeof(double);
  const cq_status status = cq_pool_reserve(&d->context->pool, &d->sums, bytes, "gradients of gravity and walls");
  return status ? status : clear(d, d->sums, bytes);
}

// Notes that the adjoint of the particles is in the order of arrangement a from now on.
static void set_adjoint_order(cq_device *d, cq_arrangement *a) {
  cq_cuda_arrangement_retain(a);
  cq_cuda_arrangement_release(d, d->adj_arrangement);
  d->adj_arrangement = a;
}

// Begins a reverse pass at the live state: clears all adjoints. wanted: bits (1 << cq_field) of the gradients to find.
cq_status cq_cuda_begin_adjoint(cq_device *d, uint64_t wanted) {
  d->wanted = wanted;
  set_adjoint_order(d, d->arrangement);
  const size_t entries = (size_t)d->batch * (size_t)d->model->actuation_count;
  cq_status status = clear(d, d->adj, cq_particles_size(d));
  if (!status && d->reference) status = cq_cuda_reference_begin_adjoint(d);
  if (!status) status = clear(d, d->params_adj, (size_t)d->params * (size_t)d->stride * d->real_bytes);
  if (!status && d->actuation) status = clear(d, d->actuation_adj, actuation_bytes(d));
  if (!status) status = clear(d, d->totals, (size_t)cq_total_state(d) * sizeof(double));
  if (!status && entries) status = clear(d, d->grad_weight, entries * sizeof(double));
  if (!status && d->grad_cables) status = clear(d, d->grad_cables, cq_cable_grads(d) * sizeof(double));
  return status ? status : begin_sums(d, d->arrangement);
}

// Multiplies the adjoint of the live state by a factor, between two control steps of the reverse pass: below 1
// gradients decay with time, with 0 they end there.
cq_status cq_cuda_discount_adjoint(cq_device *d, double factor) {
  const int64_t count = (int64_t)(cq_particles_size(d) / d->real_bytes);
  d->kernels->discount(d->context->stream, cq_cuda_blocks(d, d->slots, 256), d->adj->data, count, factor);
  const cq_status status = cq_cuda_check(cudaGetLastError(), "the decay of the adjoint");
  return status || !d->reference ? status : cq_cuda_reference_discount(d, factor);
}

// Adds the gradients that are stored by slot (particle constants) or by tile (gravity, damping, walls) to d->totals,
// which is in the user's order, and clears them. Called before the order of particles changes, and at the end.
static cq_status store_params_adj(cq_device *d) {
  const cq_arrangement *a = d->adj_arrangement;
  cudaStream_t stream = d->context->stream;
  double *totals = (double *)d->totals->data;
  const cq_storing params = {d->params_adj->data, d->params, d->slots, a->order, totals + cq_total_params(d)};
  d->kernels->store_params_adj(stream, cq_cuda_blocks(d, d->slots, 256), &params);
  const int32_t count = cq_sum_count(d);
  const cq_summing sums = {d->batch, a->tile_count, a->block_count, a->tiles, (double *)d->sums->data, count,
                           0,        count,         totals,         NULL};
  cq_window_sum(stream, &sums);
  return cq_cuda_check(cudaGetLastError(), "adding up gradients");
}

// Exchanges the pointers *a and *b.
static void swap(cq_memory **a, cq_memory **b) {
  cq_memory *other = *a;
  *a = *b;
  *b = other;
}

// Moves the adjoint from the order of particles after a sorting to the order before it (arrangement `to`), when the
// reverse pass comes to engine steps from before that sorting; gradients by slot and tile go to the totals before.
static cq_status cross_sorting(cq_device *d, cq_arrangement *to) {
  cq_status status = cq_cuda_timer_begin(d->context, CQ_PHASE_SORT);
  if (!status) status = cq_cuda_walls_sum(d);
  if (!status) status = store_params_adj(d);
  if (status) return status;
  const cq_moving m = {{d->adj->data, d->actuation_adj->data, cq_internal_of(d, d->adj)},
                       {d->adj_other->data, d->actuation_adj_other->data, cq_internal_of(d, d->adj_other)},
                       {d->fields, d->actuation_fields, d->internals},
                       d->slots,
                       NULL,
                       NULL,
                       to->order,
                       d->adj_arrangement->slot_of};
  d->kernels->move(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &m);
  swap(&d->adj, &d->adj_other);
  swap(&d->actuation_adj, &d->actuation_adj_other);
  status = cq_cuda_check(cudaGetLastError(), "sorting the adjoint");
  if (!status) status = begin_sums(d, to);
  set_adjoint_order(d, to);
  return status ? status : cq_cuda_timer_end(d->context);
}

// Reverses the last of the engine steps [0, end) of a control step, as many as share one order of particles and fit
// into one run, and takes d->step back. records {end}: of these steps. *left: set to the number of those before them.
static cq_status run_backward(cq_device *d, const cq_step_record *records, int32_t end, int32_t *left) {
  cq_arrangement *a = records[end - 1].arrangement;
  int32_t begin = end - 1;
  while (begin > 0 && end - begin < CQ_RUN_MAX && records[begin - 1].arrangement->sorted_at == a->sorted_at) begin--;
  *left = begin;
  cq_status status = a->sorted_at == d->adj_arrangement->sorted_at ? CQ_OK : cross_sorting(d, a);
  if (!status) status = cq_cuda_timer_begin(d->context, CQ_PHASE_P2G_ADJ);
  if (status) return status;
  d->step -= end - begin;   // for walls that move
  status = cq_cuda_prepare(d, a, 0);
  for (int32_t k = begin; k < end && !status; k++)
    d->upload->substeps[k - begin] = {records[k].in->memory->data, records[k].out->memory->data,
                                      cq_cuda_keeps_grid(d) ? records[k].grid->data : NULL};
  if (!status) status = cq_cuda_send(d, 1);
  if (!status) status = cq_cuda_run_backward(d, end - begin);
  return status ? status : cq_cuda_timer_end(d->context);
}

// Reverses one control step from the records of its engine steps, run by run, then its actuation, and makes the state
// before it live. dL/d(signals, forces) stay on the GPU, in row d->control_row, until fetch_controls.
static cq_status reverse_step(cq_device *d, const cq_step_record *records) {
  cq_status status = d->reference ? cq_cuda_reference_settle(d) : CQ_OK;
  for (int32_t end = d->model->substeps; end > 0 && !status;) status = run_backward(d, records, end, &end);
  if (!status) status = cq_cuda_walls_sum(d);
  if (!status && d->actuation) {
    status = cq_cuda_timer_begin(d->context, CQ_PHASE_ACTUATION);
    if (!status) status = cq_cuda_run_load_actuation_adj(d);
    if (!status) status = clear(d, d->actuation_adj, actuation_bytes(d));
    if (!status && d->grad_cables) status = clear_cable_controls(d);
    if (!status) status = cq_cuda_timer_end(d->context);
  }
  if (status) return status;
  cq_cuda_resume(d, records[0].in, records[0].arrangement, d->step);
  set_adjoint_order(d, d->arrangement);
  return CQ_OK;
}

// Applies the rules for the adjoint before control step `at` is reversed: multiplies it by the discount from the step
// after it (last not 0: there is none in this call); if norms are wanted, writes the norm of each scene's adjoint to
// row `row` of d->norms, and scales adjoints above the largest norm allowed down to it.
static cq_status follow_rules(cq_device *d, const cq_adjoint_rules *rules, int32_t at, int32_t last, int32_t row) {
  const double factor = last ? 1 : cq_adjoint_factor(rules, at + 1);
  cq_status status = factor == 1 ? CQ_OK : cq_cuda_discount_adjoint(d, factor);
  if (status || !rules->norms) return status;
  const size_t batch = (size_t)d->batch;
  double *norms = (double *)d->norms->data;
  cq_norming n = {d->batch,    d->particles, d->internals, d->adj->data, cq_internal_of(d, d->adj),
                  NULL,        NULL,         0,            rules->most,  norms + (size_t)d->control_rows * batch,
                  norms + (size_t)row * batch};
  if (d->reference) cq_cuda_reference_norm(d, &n);
  d->kernels->norm(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &n);
  return cq_cuda_check(cudaGetLastError(), "the norm of the adjoint");
}

// Begins to copy the norms of the adjoint {rows, batch} to `to` on the host, after all work launched so far.
static cq_status fetch_norms(cq_device *d, double *to, int32_t rows) {
  const size_t count = (size_t)rows * (size_t)d->batch;
  return cq_cuda_check(
      cudaMemcpyAsync(to, d->norms->data, count * sizeof *to, cudaMemcpyDeviceToHost, d->context->stream),
      "bringing the norms of the adjoint");
}

// Copies the gradients of signals {rows, batch, actuators} and forces {rows, batch, forces, dim} of `rows` control
// steps to the host (NULL: not wanted), through pinned memory where they fit, and waits for all launched work.
static cq_status fetch_controls(cq_device *d, double *grad_signals, double *grad_forces, int32_t rows) {
  const size_t signals = (size_t)rows * cq_signal_count(d), forces = (size_t)rows * cq_force_count(d);
  const double *from = (const double *)d->grad_controls->data,
               *from_forces = from + (size_t)d->control_rows * cq_signal_count(d);
  const char *const what = "bringing the gradients of the controls";
  const int32_t staged = signals + forces <= CQ_STAGING;
  double *to_signals = staged ? d->staging : grad_signals, *to_forces = staged ? d->staging + signals : grad_forces;
  cq_status status = CQ_OK;
  if (grad_signals && signals)
    status = cq_cuda_check(
        cudaMemcpyAsync(to_signals, from, signals * sizeof *from, cudaMemcpyDeviceToHost, d->context->stream), what);
  if (!status && grad_forces && forces)
    status = cq_cuda_check(
        cudaMemcpyAsync(to_forces, from_forces, forces * sizeof *from, cudaMemcpyDeviceToHost, d->context->stream),
        what);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "the adjoint of a control step");
  d->pending = 0;
  if (status || !staged) return status;
  if (grad_signals && signals) memcpy(grad_signals, to_signals, signals * sizeof *from);
  if (grad_forces && forces) memcpy(grad_forces, to_forces, forces * sizeof *from);
  return CQ_OK;
}

// Reverses control steps of `c`, the last one first, as many as one batch of launches holds, and sets *steps_done to
// their number. records: of the steps of c. Copies the gradients of their signals, forces, walls, gravity and policy,
// and the norms of adjoints, to the host.
cq_status cq_cuda_reverse(cq_device *d, const cq_controls *c, cq_record *const *records, int32_t *steps_done) {
  const int64_t most = work_ahead / d->slots / d->model->substeps;
  int32_t count = c->count < d->control_rows ? c->count : d->control_rows;
  cq_status status = c->policy_run ? cq_cuda_policy_set(d, c->policy_run) : CQ_OK;
  if (status) return status;
  if (count > most) count = most < 1 ? 1 : (int32_t)most;
  if (c->policy_run && count > cq_cuda_policy_rows(d)) count = cq_cuda_policy_rows(d);
  const int32_t first = c->count - count;
  set_controls(d, c, first);
  status = cq_cuda_walls_begin_adj(d, c->at + first, count);
  if (!status && c->policy_run) status = cq_cuda_policy_begin_adj(d, c->policy_run, c->at + first, count);
  for (int32_t i = c->count - 1; i >= first && !status; i--) {
    set_controls(d, c, i);
    d->control_row = i - first;
    if (c->rules) status = follow_rules(d, c->rules, c->at + i, i == c->count - 1, i - first);
    if (!status) status = reverse_step(d, records[i]->steps);
    if (!status && c->policy_run) status = cq_cuda_policy_adj(d, c->policy_run, c->at + i);
  }
  if (status) return status;
  if (c->policy_run) status = cq_cuda_policy_end_adj(d, c->policy_run);
  if (!status && c->rules && c->rules->norms)
    status = fetch_norms(d, c->rules->norms + (int64_t)(c->at + first) * d->batch, count);
  if (!status)
    status = fetch_controls(d, c->grad_signals ? c->grad_signals + (size_t)first * cq_signal_count(d) : NULL,
                            c->grad_forces ? c->grad_forces + (size_t)first * cq_force_count(d) : NULL, count);
  if (!status) status = cq_cuda_walls_fetch(d, c->at + first, count);
  if (!status) *steps_done = count;
  return status;
}

// ---- gradients ------------------------------------------------------------------------------------------------------

// Begins to copy `count` doubles from the device to the host; the caller waits for the stream.
static cq_status fetch(cq_device *d, double *to, const double *from, int64_t count) {
  if (!count) return CQ_OK;
  return cq_cuda_check(
      cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost, d->context->stream),
      "bringing the gradients");
}

// Begins to copy the wanted gradients (d->wanted) of particles, actuation weights and cables to d->gradients on the
// host; the caller waits for the stream.
static cq_status fetch_particles(cq_device *d) {
  const cq_gradients *g = d->gradients;
  const double *totals = (const double *)d->totals->data, *params = totals + cq_total_params(d);
  cq_status status = CQ_OK;
  for (int32_t f = 0; f < CQ_STATE_FIELD_COUNT && !status; f++) {
    if (!(d->wanted & cq_bit(f))) continue;
    const int64_t at = cq_total_state(d) + (int64_t)cq_state_offset(f, d->model->dim) * d->slots;
    status = fetch(d, g->value[f], totals + at, (int64_t)cq_state_width(f, d->model->dim) * d->slots);
  }
  if (!status && d->wanted & cq_bit(CQ_FIELD_MASS))
    status = fetch(d, g->mass, params + (int64_t)CQ_PARAM_MASS * d->slots, d->slots);
  if (!status && d->wanted & cq_bit(CQ_FIELD_VOLUME))
    status = fetch(d, g->volume, params + (int64_t)CQ_PARAM_VOLUME * d->slots, d->slots);
  for (int32_t k = 0; k < d->model->slot_count && !status && d->wanted & cq_constant_bits(); k++)
    status = fetch(d, g->slot[k], params + (int64_t)(CQ_PARAM_SLOTS + k) * d->slots, d->slots);
  if (!status && d->wanted & cq_bit(CQ_FIELD_ACTUATION_WEIGHT))
    status = fetch(d, g->actuation_weight, (const double *)d->grad_weight->data, d->batch * d->model->actuation_count);
  const int64_t cables = (int64_t)d->batch * d->model->cables.count;
  for (int32_t k = 0; k < 3 && cables && !status; k++)
    if (d->wanted & cq_bit(CQ_FIELD_CABLE_STIFFNESS + k))
      status =
          fetch(d, g->value[CQ_FIELD_CABLE_STIFFNESS + k], (const double *)d->grad_cables->data + k * cables, cables);
  return status;
}

// Ends a reverse pass at step 0: adds the gradients that are still stored by slot and tile, and copies all wanted
// gradients to d->gradients on the host, in the user's order of particles.
cq_status cq_cuda_finish(cq_device *d) {
  const int32_t count = cq_sum_count(d), walls = d->model->wall_count;
  double *totals = (double *)d->totals->data;
  double *sums = (double *)cq_alloc((size_t)d->batch * (size_t)count, sizeof *sums, "gradients");
  if (!sums) return CQ_MEMORY;
  cq_status status = d->reference ? cq_cuda_reference_finish(d) : CQ_OK;
  if (!status) status = store_params_adj(d);
  const cq_storing state = {d->adj->data, d->fields, d->slots, d->adj_arrangement->order, totals + cq_total_state(d)};
  if (!status) {
    d->kernels->store_state(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &state);
    status = cq_cuda_check(cudaGetLastError(), "storing gradients");
  }
  if (!status) status = fetch_particles(d);
  if (!status) status = fetch(d, sums, totals, (int64_t)d->batch * count);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "bringing the gradients");
  for (int32_t s = 0; s < d->batch && !status; s++) {
    const double *sum = sums + (int64_t)s * count;
    cq_gradients *g = &d->gradients[s];
    const int32_t dim = d->model->dim;
    memcpy(g->gravity, sum, (size_t)dim * sizeof *sum);
    g->damping[0] = sum[CQ_AT_DAMPING];
    memcpy(g->friction, sum + CQ_AT_FRICTION, (size_t)walls * sizeof *sum);
    for (int32_t w = 0; w < walls; w++)
      memcpy(g->wall_velocity + w * dim, sum + CQ_AT_FRICTION + walls + 3 * w, (size_t)dim * sizeof *sum);
  }
  cq_free(sums);
  return status;
}
