// method: control steps on reference grids, forward and backward; no types, no loops over particles or nodes.
#include "../kernels.h"
#include <string.h>

const double cq_checked_way = 0.25;

// ---- forward --------------------------------------------------------------------------------------------------------

// Makes room in a step's record for the solution of an implicit step, four reals a node, and the bits of active
// contacts. CQ_OK or CQ_MEMORY.
static cq_status reserve_solution(const cq_scene *s, cq_step_record *record) {
  const size_t nodes = (size_t)s->reference.node_count;
  if (record->grid_capacity >= s->reference.node_count) return CQ_OK;
  cq_free(record->grid);
  cq_free(record->held);
  record->grid_capacity = 0;
  record->grid = cq_alloc(nodes * 4, (size_t)s->kernels->real_bytes, "memo of the grid");
  record->held = cq_alloc(nodes, sizeof *record->held, "memo of the grid");
  if (!record->grid || !record->held) return CQ_MEMORY;
  record->grid_capacity = s->reference.node_count;
  return CQ_OK;
}

// Makes room in a step's record for the velocities of nodes that its adjoint needs beside the states, with walls, pins
// or both grids. s->nodes_record points to them, or is NULL where record is NULL. CQ_OK or CQ_MEMORY.
cq_status cq_reference_reserve_record(cq_scene *s, cq_step_record *record) {
  const size_t width = (size_t)cq_scene_node_reals(s->model);
  s->nodes_record = NULL;
  if (!record || !width) return CQ_OK;
  if (record->nodes_capacity < s->reference.node_count) {
    cq_free(record->nodes);
    record->nodes_capacity = 0;
    record->nodes = cq_alloc((size_t)s->reference.node_count * width, (size_t)s->kernels->real_bytes, "memo of nodes");
    if (!record->nodes) return CQ_MEMORY;
    record->nodes_capacity = s->reference.node_count;
  }
  s->nodes_record = record->nodes;
  return CQ_OK;
}

// By one worker: creates s->next, the slice that the step will write; with a record, which may be NULL, sets the
// record's slices and arrangement, and makes room for what the adjoint needs of nodes. CQ_OK or CQ_MEMORY.
static cq_status prepare_step(cq_scene *s, cq_step_record *record) {
  s->next = cq_slice_create(s);
  if (!s->next) return CQ_MEMORY;
  const cq_status status = !cq_is_implicit(s->model) ? cq_reference_reserve_record(s, record)
                           : record                  ? reserve_solution(s, record)
                                                     : CQ_OK;
  if (status || !record) return status;
  cq_step_record_clear(s, record);
  record->in = cq_slice_retain(s->live);
  record->out = cq_slice_retain(s->next);
  record->arrangement = cq_arrangement_retain(s->arrangement);
  return CQ_OK;
}

// Sets a range of r->seen, the particles that readouts see, to those of a state: on reference grids from nodes, on the
// spatial grid by a copy.
static void see_range(cq_scene *s, const cq_slice *slice, int32_t range) {
  const size_t chunk = (size_t)(cq_scene_fields(s) * CQ_CHUNK * s->kernels->real_bytes),
               from = (size_t)s->range_start[range], chunks = (size_t)s->range_start[range + 1] - from;
  if (range < s->first_range)
    s->kernels->reference->observe(s, slice, range);
  else
    memcpy((char *)s->reference.seen->data + from * chunk,
           (const char *)slice->particles + (from - (size_t)s->first_chunk) * chunk, chunks * chunk);
}

// By one worker: sets r->seen, the particles that readouts see, to those of a state, to look for an unsound one.
static void see(cq_scene *s, const cq_slice *slice) {
  s->reference.seen_step = -1;
  for (int32_t range = 0; range < s->ranges; range++) see_range(s, slice, range);
}

// Sets s->health to the first particle that shows why a step failed: in the state before it if one is inverted, else in
// the state after, if one is not finite or has left the world; to CQ_HEALTH_INVERTED if there is none.
void cq_reference_find_culprit(cq_scene *s) {
  const cq_slice *slices[] = {s->live, s->next};
  for (int k = 0; k < 2 && slices[k]; k++) {
    s->health = (cq_health){.step = s->step};
    see(s, slices[k]);
    s->kernels->diagnose(s, s->reference.seen, &s->health);
    if (s->health.bad) return;
  }
  s->health.bad = CQ_HEALTH_INVERTED;
}

// By one worker: looks for surfaces of bodies in the present state that were apart and share a cell of the world.
// CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health if there are any; step: for s->health. Sets edge to 1 if a surface is
// near the edge of the world.
static cq_status find_touch(cq_scene *s, int64_t step, int *edge) {
  const cq_reference *r = &s->reference;
  int32_t pair[2];
  s->kernels->reference->observe_rim(s, s->live);
  const cq_status status = cq_touch_find(s->model, r->rim, r->rim_place, r->rim_count, pair, edge);
  if (status || pair[0] < 0) return status;
  s->health = (cq_health){.bad = CQ_HEALTH_TOUCHES,
                          .step = step,
                          .particle = r->rim[pair[0]].particle,
                          .value = r->rim[pair[1]].particle};
  return CQ_UNSTABLE;
}

// By all workers, after an engine step: CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health if two surfaces have met or a
// particle has left the world, which is looked for if a surface is near the world's edge. step: for s->health.
cq_status cq_reference_check_surfaces(cq_scene *s, cq_worker *worker, int64_t step) {
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    int edge = 0;
    s->status = find_touch(s, step, &edge);
    if (!s->status && edge) {
      s->health = (cq_health){.step = step};
      see(s, s->live);
      s->kernels->diagnose(s, s->reference.seen, &s->health);
      if (s->health.bad) s->status = CQ_UNSTABLE;
    }
  }
  cq_worker_wait(worker);
  return s->status;
}

// Releases s->next, the slice that a failed step was to write.
static void release_next_slice(cq_scene *s) {
  cq_slice_release(s, s->next);
  s->next = NULL;
}

// By all workers: sets the forces of cables and pressure chambers on their particles in the state `in`; the first
// worker computes them.
void cq_reference_pull_cables(cq_scene *s, cq_worker *worker, const cq_slice *in) {
  if (!s->model->cables.all) return;
  if (worker->rank == 0) {
    s->kernels->reference->place_points(s, in);
    s->kernels->pull_placed(s);
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
}

// Adjoint of cq_reference_pull_cables, by all workers: from the gradients of forces on particles, adds to those of the
// places of nodes, of signals and of constants of cables. in: the state whose places the cables had.
void cq_reference_pull_cables_adj(cq_scene *s, cq_worker *worker, const cq_slice *in) {
  if (!s->model->cables.all) return;
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    s->kernels->pull_placed_adj(s);
    s->kernels->reference->place_points_adj(s, in);
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
}

// (E117, E120) By one worker: sets the forces between surfaces that are near each other in the state `in` (r->push).
// CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health where two have passed into each other.
cq_status cq_reference_repel(cq_scene *s, const cq_slice *in) {
  const cq_reference *r = &s->reference;
  if (!(s->model->collision_stiffness > 0)) return CQ_OK;
  const cq_status status = s->kernels->reference->repel(s, in);
  if (status || r->meet[0] < 0) return status;
  s->health = (cq_health){.bad = CQ_HEALTH_TOUCHES,
                          .step = s->step,
                          .particle = r->rim[r->meet[0]].particle,
                          .value = r->rim[r->meet[1]].particle};
  return CQ_UNSTABLE;
}

// Computes one explicit step by all workers: forces in the state `live`, then velocities and displacements of nodes;
// sets *next to the state after it. s->found[substep % 2] tells whether each range is sound. Returns s->status.
static cq_status move_explicitly(cq_scene *s, cq_worker *worker, const cq_slice *live, cq_slice **next,
                                 int32_t substep) {
  const cq_reference_kernels *kernels = s->kernels->reference;
  cq_found *found = s->found[substep & 1];
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) kernels->forces(s, live, k, &found[k]);
  cq_worker_phase(worker, CQ_PHASE_P2G);
  cq_worker_wait(worker);
  const cq_status status = s->status;
  *next = s->next;
  for (int32_t k = begin; k < end && !status; k++) kernels->move(s, live, *next, s->nodes_record, k, &found[k]);
  cq_worker_wait(worker);
  return status;
}

// (E125 to E127) Computes one implicit step by all workers from the state `live`; sets *next to the state after it.
// record: NULL, or takes what the adjoint needs; substep: its index in the control step. CQ_OK or the solve's error.
static cq_status move_implicitly(cq_scene *s, cq_worker *worker, const cq_slice *live, cq_slice **next,
                                 cq_step_record *record, int32_t substep) {
  const cq_implicit_kernels *loops = s->implicit.loops;
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  if (worker->rank == 0) s->reference.from = live;
  cq_worker_wait(worker);
  cq_status status = s->status;
  *next = s->next;
  if (!status) status = cq_implicit_solve(s, worker, live, record, substep);
  for (int32_t k = begin; k < end && !status; k++)
    loops->end_on_reference(s, live, *next, k, &s->found[substep & 1][k]);
  cq_worker_wait(worker);
  return status;
}

// Runs one engine step by all workers. *live: the state before, then after it; *way: cells that the fastest node has
// moved since surfaces were checked, is added to; record: NULL, or takes what the adjoint needs; substep: the step's
// index in the control step. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
static cq_status run_step(cq_scene *s, cq_worker *worker, cq_slice **live, double *way, cq_step_record *record,
                          int32_t substep) {
  const int implicit = cq_is_implicit(s->model);
  int bad = 0;
  double fastest = 0;
  const cq_found *found = s->found[substep & 1];
  if (worker->rank == 0) s->status = prepare_step(s, record);
  if (worker->rank == 0 && !s->status) s->status = cq_reference_repel(s, *live);
  cq_reference_pull_cables(s, worker, *live);
  cq_slice *next = NULL;
  const cq_status status = implicit ? move_implicitly(s, worker, *live, &next, record, substep)
                                    : move_explicitly(s, worker, *live, &next, substep);
  for (int32_t k = 0; k < s->first_range && !status; k++) {
    bad |= found[k].bad;
    if (found[k].fastest > fastest) fastest = found[k].fastest;
  }
  if (status || bad) {
    if (worker->rank == 0) {
      if (!status) cq_reference_find_culprit(s);
      release_next_slice(s);
    }
    cq_worker_wait(worker);
    return status ? status : CQ_UNSTABLE;
  }
  *live = next;
  if (worker->rank == 0) {
    cq_slice_release(s, s->live);
    s->live = next;
    s->next = NULL;
    s->step++;
  }
  *way += fastest * s->model->dt / s->model->dx;
  cq_worker_phase(worker, CQ_PHASE_GRID);
  return CQ_OK;
}

// By all workers: runs the engine steps of one control step on reference grids, after its actuation is loaded. records
// {substeps}: NULL, or takes what the adjoint needs. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
cq_status cq_reference_advance(cq_scene *s, cq_worker *worker, cq_step_record *records) {
  cq_slice *live = s->live;
  const int64_t first = s->step;
  double way = 0;
  cq_status status = first ? CQ_OK : cq_reference_check_surfaces(s, worker, 0);
  for (int32_t k = 0; k < s->model->substeps && !status; k++) {
    status = run_step(s, worker, &live, &way, records ? &records[k] : NULL, k);
    if (status || (way < cq_checked_way && k + 1 < s->model->substeps)) continue;
    status = cq_reference_check_surfaces(s, worker, first + k);
    way = 0;
  }
  cq_worker_wait(worker);
  if (worker->rank == 0 && s->impulse_out) s->kernels->store_impulse(s);
  return status;
}

// By all workers: sets r->seen, the particles that readouts see, to those of the present state, if they are not.
void cq_reference_observe(cq_scene *s, cq_worker *worker) {
  int begin, end;
  if (!cq_is_reference(s->model) || s->reference.seen_step == s->step) return;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t k = begin; k < end; k++) see_range(s, s->live, k);
  cq_worker_wait(worker);
  if (worker->rank == 0) s->reference.seen_step = s->step;
  cq_worker_wait(worker);
}

// ---- backward -------------------------------------------------------------------------------------------------------

// By one worker, before a backward pass: sets the adjoint of the nodes and the gradients on reference grids to zero;
// r->started to 1 where gradients of F at rest are wanted.
void cq_reference_begin_adjoint(cq_scene *s) {
  cq_reference *r = &s->reference;
  const size_t real = (size_t)s->kernels->real_bytes, dim = (size_t)s->model->dim, nodes = (size_t)r->node_count,
               slots = (size_t)r->chunks * CQ_CHUNK;
  memset(r->adj, 0, 2 * dim * nodes * real);
  memset(r->mass_adj, 0, nodes * real);
  memset(r->rest_adj, 0, dim * nodes * real);
  memset(r->fraction_adj, 0, slots * dim * real);
  memset(r->place_adj, 0, slots * dim * real);
  memset(r->start_adj, 0, slots * dim * dim * real);
  r->read = 0;
  // the identity, where none was given
  if (s->wanted & cq_bit(CQ_FIELD_DEFORMATION)) r->started = 1;
}

// The number of vector fields that the adjoint of forces scatters to nodes: 1, gradients of displacements, or 2, of
// velocities too, where a material is viscous.
int32_t cq_reference_fields_given(const cq_scene *s) {
  for (int32_t k = 0; k < s->model->material_count; k++)
    if (s->model->materials[k].viscous) return 2;
  return 1;
}

// By all workers: adds what ranges have scattered to their slabs to the adjoint of the nodes. given: vector fields that
// the slabs hold, 1 (displacements) or 2 (velocities too).
void cq_reference_collect(cq_scene *s, cq_worker *worker, int32_t given) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  cq_worker_wait(worker);
  for (int32_t k = begin; k < end; k++) s->kernels->reference->collect(s, k, given);
  cq_worker_wait(worker);
}

// By all workers: adds to the adjoint of nodes the gradients of particles that readouts left in s->adj; clears these.
void cq_reference_settle_adjoint(cq_scene *s, cq_worker *worker) {
  int begin, end;
  if (!s->reference.read) return;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) s->kernels->reference->observe_adj(s, s->live, k);
  cq_reference_collect(s, worker, 2);
  if (worker->rank == 0) s->reference.read = 0;
  cq_worker_wait(worker);
}

// Reverses one recorded implicit step by all workers: turns the adjoint of the state after it into that of the state
// before. substep: its index in the control step. CQ_OK or the error of the solve.
static cq_status reverse_implicitly(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t substep) {
  const cq_implicit_kernels *loops = s->implicit.loops;
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  if (worker->rank == 0) {
    s->step--;   // for walls that move
    s->reference.from = record->in;
  }
  cq_worker_wait(worker);
  cq_reference_pull_cables(s, worker, record->in);
  const cq_status status = cq_implicit_solve_adj(s, worker, record, substep);
  if (status) return status;
  for (int32_t b = begin; b < end; b++) {
    loops->begin_reference_adj(s, record->in, b);
    loops->spread(s, b, CQ_GRID_VELOCITY);
  }
  cq_worker_wait(worker);
  const int32_t fields = cq_reference_fields_given(s);
  for (int32_t b = begin; b < end; b++) s->kernels->reference->forces_adj(s, s->reference.moved, b, fields);
  // gradients of velocities within the step are in the matrix of the solve
  cq_reference_collect(s, worker, 1);
  if (cq_cables_follow(s->model)) {
    if (worker->rank == 0) loops->cables_follow_adj(s, s->reference.moved);
    cq_worker_wait(worker);
    cq_reference_pull_cables(s, worker, record->in);   // those at the end of the step were elsewhere
  }
  cq_reference_pull_cables_adj(s, worker, record->in);
  cq_worker_wait(worker);
  return CQ_OK;
}

// Reverses the recorded implicit steps of one control step by all workers, the last first. records {substeps}. CQ_OK or
// the first error of a step.
static cq_status reverse_control_step(cq_scene *s, cq_worker *worker, const cq_step_record *records) {
  cq_status status = CQ_OK;
  for (int32_t k = s->model->substeps - 1; k >= 0 && !status; k--)
    status = reverse_implicitly(s, worker, &records[k], k);
  return status;
}

// Prefetches what the adjoint of a step reads of its record for the nodes of a block. Each record lies elsewhere in
// memory, in pieces too short for the processor to see a pattern.
static void fetch_record(const cq_scene *s, const cq_step_record *record, int32_t block) {
  static const size_t most = 64 << 10, line = 64;          // [bytes]; what is longer has a pattern
  const cq_reference *r = &s->reference;
  const int32_t first = r->nodes_start[block], last = r->nodes_start[block + 1] - 1;
  if (last < first) return;
  const size_t real = (size_t)s->kernels->real_bytes, from = (size_t)r->nodes[first].node * real,
               size = (size_t)(r->nodes[last].node + CQ_REFERENCE_VECTOR) * real - from,
               row = (size_t)r->node_count * real, rows = CQ_REFERENCE_FIELDS * (size_t)s->model->dim;
  if (size * rows > most) return;
  const char *state = record->in->nodes, *before = record->nodes;
  for (size_t at = from; at < from + size; at += line) {
    for (size_t k = 0; k < rows; k++) __builtin_prefetch(state + k * row + at, 0, 2);
    for (size_t k = 0; k < (size_t)s->model->dim && before; k++) __builtin_prefetch(before + k * row + at, 0, 2);
  }
}

// By all workers: reverses the recorded engine steps of a control step, the last first. records {substeps}. CQ_OK, or
// the error of a step's adjoint.
cq_status cq_reference_reverse(cq_scene *s, cq_worker *worker, const cq_step_record *records) {
  const cq_reference_kernels *kernels = s->kernels->reference;
  const int32_t fields = cq_reference_fields_given(s);
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  if (worker->rank == 0) s->status = CQ_OK;
  cq_reference_settle_adjoint(s, worker);
  if (cq_is_implicit(s->model)) return reverse_control_step(s, worker, records);
  for (int32_t k = s->model->substeps - 1, given = 0; k >= 0; k--, given = fields) {
    const cq_step_record *record = &records[k];
    if (worker->rank == 0) s->step--;   // for walls that move
    cq_worker_wait(worker);
    for (int32_t b = begin; b < end; b++)
      kernels->move_adj(s, record->in, record->out, record->nodes, b, given);
    cq_worker_wait(worker);
    cq_worker_phase(worker, CQ_PHASE_GRID_ADJ);
    cq_reference_pull_cables(s, worker, record->in);
    if (worker->rank == 0 && s->model->collision_stiffness > 0 && !s->status)
      s->status = kernels->repel_adj(s, record->in);
    for (int32_t b = begin; b < end && k > 0; b++) fetch_record(s, record - 1, b);
    for (int32_t b = begin; b < end; b++) kernels->forces_adj(s, record->in, b, fields);
    cq_worker_phase(worker, CQ_PHASE_P2G_ADJ);
    cq_reference_pull_cables_adj(s, worker, record->in);
  }
  cq_reference_collect(s, worker, fields);
  return s->status;
}

// By all workers, at the end of the backward pass, at the first state: turns adjoints into the user's gradients, but
// for those of walls and gravity.
void cq_reference_finish(cq_scene *s, cq_worker *worker) {
  int begin, end;
  cq_reference_settle_adjoint(s, worker);
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->reference->volume_adj(s, k);
    s->kernels->store_params_adj(s, s->range_start[k], s->range_start[k + 1]);
  }
  cq_worker_wait(worker);
  if (worker->rank == 0) s->kernels->reference->complete(s);
}
