// control_step: one control step of one scene, forward and backward.
#include "arrange.h"
#include "implicit/implicit.h"
#include <float.h>
#include <string.h>

// cells that the fastest particle may have moved since the last sort; less than the margin, for rounding
static const double drift_limit = CQ_MARGIN - 1e-3;

// The distance [cells] by which rounding may lengthen a particle's way in one engine step: half a unit in the last
// place of the largest coordinate. Counted with the drift since the last sort.
static double drift_of_rounding(const cq_scene *s) {
  int32_t cells = 0;
  for (int i = 0; i < s->model->dim; i++)
    if (s->model->cells[i] > cells) cells = s->model->cells[i];
  return cells * (s->kernels->real_bytes == 4 ? (double)FLT_EPSILON : DBL_EPSILON) / 2;
}

// Sets the active stress, force and pressure of all particles for the running control step (actuation.inl), and the
// constants of cables. By all workers of the scene; again after each sort, since the numbers lie in sorted order.
static void load_actuation(cq_scene *s, cq_worker *worker) {
  int begin, end;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->load_actuation(s, r);
  if (s->model->cables.all) {
    cq_worker_wait(worker);   // for the forces of all ranges
    if (worker->rank == 0) s->kernels->load_cables(s);
  } else if (cq_is_mixed(s->model)) {
    cq_worker_wait(worker);   // who has a range here has others in a step
  }
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
}

// Sets the forces of cables and chambers on their particles for an engine step; the first worker computes them, all
// wait. in: the state at the start of the step; out: NULL, or the state at its end, for cables that pull by that
// (implicit steps). Other workers may still be in the pass before when it begins: that pass must not read forces.
static void pull_cables(cq_scene *s, cq_worker *worker, const cq_slice *in, const cq_slice *out) {
  if (!s->model->cables.all) return;
  if (cq_is_mixed(s->model)) {     // they are of bodies with reference grids
    cq_reference_pull_cables(s, worker, in);
    return;
  }
  if (worker->rank == 0) s->kernels->pull_cables(s, in, out);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
}

// Makes the arrays over grid nodes of a step's record large enough for the live arrangement; contents are lost. CQ_OK
// or CQ_MEMORY.
static cq_status reserve_grid_record(cq_scene *s, cq_step_record *record) {
  const int64_t wanted = s->arrangement->record_nodes;
  if (s->widest < wanted) s->widest = wanted;
  if (record->grid_capacity >= wanted) return CQ_OK;
  cq_free(record->grid);
  cq_free(record->held);
  record->grid_capacity = 0;
  record->held = NULL;
  const size_t node = (size_t)(cq_scene_grid_reals(s->model) * s->kernels->real_bytes);
  record->grid = cq_alloc((size_t)wanted, node, "memo of the grid");
  if (cq_is_implicit(s->model)) record->held = cq_alloc((size_t)wanted, sizeof *record->held, "memo of the grid");
  if (!record->grid || (cq_is_implicit(s->model) && !record->held)) return CQ_MEMORY;
  record->grid_capacity = wanted;
  return CQ_OK;
}

// Prepares an engine step, by the first worker: allocates s->next, which the step will write, fills the record's
// references (NULL: no record), and in mixed worlds sets forces between surfaces. CQ_OK, CQ_MEMORY, or their error.
static cq_status prepare_step(cq_scene *s, cq_step_record *record) {
  s->record = NULL;
  s->next = cq_slice_create(s);
  if (!s->next) return CQ_MEMORY;
  cq_status status = cq_is_implicit(s->model) ? cq_implicit_reserve(s) : CQ_OK;
  if (!status && cq_is_mixed(s->model)) status = cq_reference_reserve_record(s, record);
  if (!status && cq_is_mixed(s->model)) status = cq_reference_repel(s, s->live);
  if (status || !record) return status;
  status = reserve_grid_record(s, record);
  if (status) return status;
  cq_step_record_clear(s, record);
  record->in = cq_slice_retain(s->live);
  record->out = cq_slice_retain(s->next);
  record->arrangement = cq_arrangement_retain(s->arrangement);
  s->record = record->grid;
  return CQ_OK;
}

// Releases s->next, the state that a failed step was to write.
static void release_next_slice(cq_scene *s) {
  cq_slice_release(s, s->next);
  s->next = NULL;
}

// Sets s->health to the particle by which an engine step failed. An inverted particle shows in the state before the
// step, one that is not finite or has left the world in the state after it. If neither shows, a determinant was
// positive in double only, and the smallest one before the step counts as inverted.
static void find_failed_particle(cq_scene *s) {
  if (cq_is_mixed(s->model)) {
    cq_reference_find_culprit(s);
    return;
  }
  s->health = (cq_health){.step = s->step};
  s->kernels->diagnose(s, s->live, &s->health);
  if (s->health.bad) return;
  cq_health after = {.step = s->step};
  s->kernels->diagnose(s, s->next, &after);
  if (after.bad)
    s->health = after;
  else
    s->health.bad = CQ_HEALTH_INVERTED;
}

// First part of an engine step, by all workers: computes the velocities of grid nodes, by P2G and the grid pass, or by
// an implicit solve. live: the state before; record: NULL or takes what the adjoint needs; found: for each range of
// chunks, whether particles of an explicit step were good; substep: its number in the control step. CQ_OK, or the error
// of the implicit solve or of carriers.
static cq_status node_velocities(cq_scene *s, cq_worker *worker, const cq_slice *live, cq_step_record *record,
                                 cq_found *found, int32_t substep) {
  int begin, end;
  cq_scene_share_spatial(s, worker, &begin, &end);
  if (cq_is_implicit(s->model)) {
    cq_worker_wait(worker);   // for the status of the first
    for (int32_t r = begin; r < end; r++) found[r] = (cq_found){0};
    return s->status ? s->status : cq_implicit_solve(s, worker, live, record, substep);
  }
  for (int32_t r = begin; r < end; r++) s->kernels->p2g(s, live, r, &found[r]);
  cq_status status = cq_is_mixed(s->model) ? cq_carriers_bring(s, worker, live, found) : CQ_OK;
  cq_worker_phase(worker, CQ_PHASE_P2G);
  cq_worker_wait(worker);
  if (!status) status = s->status;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->grid(s, s->record, r);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_GRID);
  return status;
}

// After an implicit step: CQ_UNSTABLE with s->health if the fastest particle (speed: fastest) moves by more than a
// cell, since it could pass through walls and bodies; else, and for static steps, CQ_OK.
static cq_status check_step_length(cq_scene *s, cq_worker *worker, double fastest) {
  const double cells = fastest * s->model->dt / s->model->dx;
  if (s->model->integrator.statics || !(cells > 1)) return CQ_OK;
  if (worker->rank == 0) s->health = (cq_health){.bad = CQ_HEALTH_TOO_FAR, .step = s->step, .value = cells};
  return CQ_UNSTABLE;
}

// Between two passes of an averaged dilatation, by all workers: turns the sums that particles of all ranges have
// scattered to the nodes into means. With a barrier before and after.
static void dilatation_means(cq_scene *s, cq_worker *worker) {
  int begin, end;
  cq_worker_share(worker, s->ranges, &begin, &end);
  cq_worker_wait(worker);
  for (int32_t b = begin; b < end; b++) s->kernels->dilatation_nodes(s, b);
  cq_worker_wait(worker);
}

// (E37) At the end of an engine step, by all workers: averages the dilatation of the step over the grid, and corrects F
// in the state `out` by it. in: the state before the step. Nothing where no material averages its dilatation.
static void average_dilatation(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_slice *out) {
  enum { PASSES = 3 };
  int begin, end;
  if (!s->model->averages_dilatation) return;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t pass = 0; pass < PASSES; pass++) {
    for (int32_t r = begin; r < end; r++) s->kernels->dilatation(s, in, out, r, pass);
    if (pass < PASSES - 1) dilatation_means(s, worker);
  }
}

// (E38) Adjoint of one averaging of dilatations, by all workers. average: which one, a cq_average. Called when
// particles have scattered their rates to the nodes for the first mean.
static void one_average_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t average) {
  int begin, end;
  cq_worker_share(worker, s->ranges, &begin, &end);
  dilatation_means(s, worker);
  for (int32_t r = begin; r < end; r++) s->kernels->dilatation_wanted(s, record->in, record->out, r, average);
  for (int32_t second = 1; second >= 0; second--) {
    dilatation_means(s, worker);
    for (int32_t r = begin; r < end; r++) s->kernels->dilatation_adj(s, record->in, record->out, r, average, second);
  }
}

// (E38) Adjoint of average_dilatation for a recorded step, by all workers, before g2p_adj: adds to dL/dC'; gradients
// of positions wait for average_positions_adj. Nothing where no material averages dilatation.
static void average_dilatation_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record) {
  int begin, end;
  if (!s->model->averages_dilatation) return;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->dilatation(s, record->in, record->out, r, 0);
  one_average_adj(s, worker, record, CQ_AVERAGE_END);
}

// Adds the gradients of positions that average_dilatation_adj has found to s->adj. A pass of its own, after g2p_adj,
// which still reads dL/d(positions) of the step's end in s->adj.
static void average_positions_adj(cq_scene *s, cq_worker *worker) {
  int begin, end;
  if (!s->model->averages_dilatation) return;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->dilatation_places_adj(s, r);
}

// (E102) Adjoint of the two averages of dilatations within the stress of an implicit step, by all workers: after the
// adjoint of the solve for node velocities, before that of P2G.
static void average_stress_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record) {
  int begin, end;
  if (!s->model->averages_dilatation) return;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->implicit->dilatation_solve_first_adj(s, record->in, record->out, r);
  one_average_adj(s, worker, record, CQ_AVERAGE_VARIED);
  for (int32_t r = begin; r < end; r++) s->kernels->dilatation(s, record->in, record->out, r, 0);
  one_average_adj(s, worker, record, CQ_AVERAGE_STRESS);
  average_positions_adj(s, worker);
  cq_worker_wait(worker);      // the first worker adds what cables give to places of all ranges
}

// How far the fastest particle may have gone [cells] since particles were sorted, and since surfaces of bodies with
// reference grids were checked.
typedef struct {
  double drift, way;
} Gone;

// One engine step by all workers: P2G, grid and G2P, or an implicit solve. *live: the state before, then after it;
// gone: bounds on how far particles have moved, which the step increases; record: NULL or takes what the adjoint needs;
// substep: its number in the control step. The first worker prepares and concludes; the others see its changes after
// the next barrier. CQ_OK, an error, or CQ_UNSTABLE with s->health.
static cq_status run_step(cq_scene *s, cq_worker *worker, cq_slice **live, Gone *gone, cq_step_record *record,
                          int32_t substep) {
  int begin, end;
  cq_found *found = s->found[substep & 1], sum = {0};
  cq_scene_share_spatial(s, worker, &begin, &end);
  if (worker->rank == 0) s->status = prepare_step(s, record);
  pull_cables(s, worker, *live, NULL);
  cq_status status = node_velocities(s, worker, *live, record, found, substep);
  cq_slice *next = s->next;
  if (!status)
    for (int32_t r = begin; r < end; r++) s->kernels->g2p(s, *live, next, r, &found[r]);
  if (!status && cq_is_mixed(s->model)) cq_carriers_take(s, worker, *live, next, found);
  cq_worker_wait(worker);
  double node = 0;                       // the fastest of reference grids
  for (int32_t r = 0; r < s->ranges; r++) {
    const double fastest = r < s->first_range ? found[r].carrier : found[r].fastest;
    if (fastest > sum.fastest) sum.fastest = fastest;
    if (r < s->first_range && found[r].fastest > node) node = found[r].fastest;
    sum.bad |= found[r].bad;
  }
  if (!status && cq_is_implicit(s->model)) status = check_step_length(s, worker, sum.fastest);
  const double cells = sum.fastest * s->model->dt / s->model->dx, drifted = gone->drift + cells + drift_of_rounding(s);
  // particles that cannot have reached the edge of the world are not checked
  if (!status && !sum.bad && drifted > s->arrangement->room) sum.bad = cq_arrange_outside(s, worker, next);
  if (status || sum.bad) {
    if (worker->rank == 0) {
      if (!status) find_failed_particle(s);
      release_next_slice(s);
    }
    cq_worker_wait(worker);
    return status ? status : CQ_UNSTABLE;
  }
  average_dilatation(s, worker, *live, next);
  *live = next;
  gone->drift = drifted;
  gone->way += node * s->model->dt / s->model->dx;
  if (worker->rank == 0) {
    cq_slice_release(s, s->live);
    s->live = next;
    s->next = NULL;
    s->drift = drifted;
    s->step++;
  }
  cq_worker_phase(worker, CQ_PHASE_G2P);
  return CQ_OK;
}

// (E49) At the end of a control step: moves J of liquids towards the mean of their neighbours, in a new live state, and
// releases the one before; does nothing where pressure is not smoothed. By all workers together; CQ_OK, or CQ_MEMORY,
// where the live state stays.
static cq_status average_volume(cq_scene *s, cq_worker *worker) {
  if (!(s->model->volume_share > 0)) return CQ_OK;
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    cq_slice *next = cq_slice_create(s);
    s->status = next ? CQ_OK : CQ_MEMORY;
    if (next) s->kernels->average_volume(s, s->live, next, &s->status);
    cq_slice_release(s, s->status ? next : s->live);
    if (!s->status) s->live = next;
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_G2P);
  return s->status;
}

// Adjoint of average_volume, by all workers: s->adj of the state after the averaging becomes that of the state `in`
// before it. An error is in s->status.
static void average_volume_adj(cq_scene *s, cq_worker *worker, const cq_slice *in) {
  if (!(s->model->volume_share > 0)) return;
  cq_worker_wait(worker);
  if (worker->rank == 0) s->kernels->average_volume_adj(s, in, &s->status);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_G2P_ADJ);
}

// Runs one control step forward (all its engine steps), by all workers. records {substeps}: takes what the adjoint of
// each engine step needs; NULL: nothing is recorded. CQ_OK, an error, or CQ_UNSTABLE with s->health.
cq_status cq_scene_advance(cq_scene *s, cq_worker *worker, cq_step_record *records) {
  cq_slice *live = s->live;
  Gone gone = {.drift = s->drift};
  const int64_t first = s->step;
  const int32_t last = s->model->substeps - 1;
  if (gone.drift <= drift_limit) load_actuation(s, worker);
  if (cq_is_reference(s->model) && !cq_is_mixed(s->model)) return cq_reference_advance(s, worker, records);
  cq_status status = cq_is_mixed(s->model) && !first ? cq_reference_check_surfaces(s, worker, 0) : CQ_OK;
  for (int32_t k = 0; k <= last && !status; k++) {
    if (gone.drift > drift_limit) {
      cq_worker_wait(worker);
      status = cq_arrange(s, worker);
      if (status) return status;
      live = s->live;
      gone.drift = 0;
      load_actuation(s, worker);
    }
    status = run_step(s, worker, &live, &gone, records ? &records[k] : NULL, k);
    if (status || !cq_is_mixed(s->model) || (gone.way < cq_checked_way && k < last)) continue;
    status = cq_reference_check_surfaces(s, worker, first + k);
    gone.way = 0;
  }
  if (!status) status = average_volume(s, worker);
  cq_worker_wait(worker);
  if (worker->rank == 0 && s->impulse_out) s->kernels->store_impulse(s);
  return status;
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Marks s->adj as being in the particle order of the live arrangement (s->adj_arrangement).
static void set_adjoint_order(cq_scene *s) {
  cq_arrangement *old = s->adj_arrangement;
  s->adj_arrangement = cq_arrangement_retain(s->arrangement);
  cq_arrangement_release(s, old);
}

// Begins the reverse pass at the live state, by all workers: sets its adjoint and all gradients to zero.
void cq_scene_begin_adjoint(cq_scene *s, cq_worker *worker) {
  if (worker->rank == 0) {
    set_adjoint_order(s);
    const cq_model *m = s->model;
    const size_t size = (size_t)s->kernels->real_bytes, slots = (size_t)s->chunks * CQ_CHUNK;
    const size_t real = sizeof(double);
    cq_gradients *g = &s->gradients;
    memset(s->adj, 0, slots * (size_t)cq_scene_fields(s) * size);
    if (s->internal_adj) memset(s->internal_adj, 0, slots * (size_t)m->internal_count * size);
    memset(s->params_adj, 0, slots * (size_t)s->params * size);
    memset(s->actuation_adj, 0, slots * (size_t)cq_scene_actuation_fields(s) * size);
    memset(s->signals_partial, 0, (size_t)s->ranges * (size_t)m->actuator_count * real);
    memset(s->partial, 0, sizeof s->partial);
    if (cq_is_reference(m)) cq_reference_begin_adjoint(s);
    for (int32_t f = 0; f < CQ_FIELD_COUNT; f++)
      if (g->value[f]) memset(g->value[f], 0, (size_t)cq_model_field_count(m, f) * real);
    for (int32_t k = 0; k < m->slot_count; k++) memset(g->slot[k], 0, (size_t)m->particle_count * real);
  }
  cq_worker_wait(worker);
}

// Sets an adjoint {chunks, fields, 16} to zero in the padding slots behind the last particle on the spatial grid. adj
// NULL: does nothing.
static void clear_padding_of(const cq_scene *s, void *adj, int32_t fields) {
  const size_t size = (size_t)s->kernels->real_bytes;
  for (int64_t slot = cq_scene_spatial_end(s); adj && slot < (int64_t)s->chunks * CQ_CHUNK; slot++)
    for (int32_t f = 0; f < fields; f++)
      memset((char *)adj + (size_t)((slot / CQ_CHUNK * fields + f) * CQ_CHUNK + slot % CQ_CHUNK) * size, 0, size);
}

// Sets the adjoint of the live state to zero in padding slots: they hold no particle, and must not add to nodes.
static void clear_padding(cq_scene *s) {
  clear_padding_of(s, s->adj, cq_scene_fields(s));
  clear_padding_of(s, s->internal_adj, s->model->internal_count);
}

// Exchanges two pointers.
static void swap_pointers(void **a, void **b) {
  void *was = *a;
  *a = *b;
  *b = was;
}

// Goes back over a sort, by all workers: brings the adjoint (not the live slice) from the live order into `to`, that
// before the sort, which becomes live. Gradients of constants and of actuation, which lie in the live order too, are
// added to those in the user's order first; actuation is loaded again at the end. An error is in s->status.
static void cross_sorting(cq_scene *s, cq_worker *worker, cq_arrangement *to) {
  const int32_t n = cq_scene_spatial_end(s);
  int begin, end;
  cq_scene_share_spatial(s, worker, &begin, &end);
  cq_worker_wait(worker);   // for the adjoint of all ranges
  for (int32_t r = begin; r < end; r++) {
    s->kernels->store_params_adj(s, s->range_start[r], s->range_start[r + 1]);
    s->kernels->load_actuation_adj(s, r);
    for (int32_t slot = s->range_start[r] * CQ_CHUNK; slot < s->range_start[r + 1] * CQ_CHUNK; slot++)
      s->source[slot] = s->arrangement->slot[to->order[slot < n ? slot : n - 1]];
    s->kernels->reorder(s, s->adj, s->adj_other, cq_scene_fields(s), s->range_start[r], s->range_start[r + 1]);
    if (s->internal_adj)
      s->kernels->reorder(s, s->internal_adj, s->internal_adj_other, s->model->internal_count, s->range_start[r],
                          s->range_start[r + 1]);
  }
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    swap_pointers(&s->adj, &s->adj_other);
    swap_pointers(&s->internal_adj, &s->internal_adj_other);
    cq_scene_resume(s, s->live, to, 0, s->step);
    clear_padding(s);
    s->status = cq_arrange_reserve(s);
    if (!s->status && cq_is_implicit(s->model)) s->status = cq_implicit_reserve(s);
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_SORT);
  load_actuation(s, worker);
}

// Reverses one recorded engine step, by all workers: adjoints of G2P, of the grid pass or the implicit solve, of P2G,
// then of cables. s->adj, of the state after the step, becomes that of the state before it. substep: number in the
// control step. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE where an implicit adjoint did not converge.
static cq_status reverse_step(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t substep) {
  int begin, end;
  cq_worker_share(worker, s->ranges, &begin, &end);
  average_dilatation_adj(s, worker, record);
  for (int32_t r = begin; r < end; r++) s->kernels->g2p_adj(s, record->in, record->out, r);
  average_positions_adj(s, worker);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_G2P_ADJ);
  const int implicit = cq_is_implicit(s->model);
  if (!implicit) {
    for (int32_t r = begin; r < end; r++) s->kernels->grid_adj(s, record->grid, r);
    cq_worker_wait(worker);
    cq_worker_phase(worker, CQ_PHASE_GRID_ADJ);
  }
  pull_cables(s, worker, record->in, NULL);
  if (implicit) {
    const cq_status status = cq_implicit_solve_adj(s, worker, record, substep);
    if (status) return status;
    average_stress_adj(s, worker, record);
    cq_worker_phase(worker, CQ_PHASE_GRID_ADJ);
  }
  if (cq_cables_follow(s->model)) {   // forces of particles then are with those of the step's end
    if (worker->rank == 0) s->kernels->implicit->cables_follow_adj(s, record->out);
    pull_cables(s, worker, record->in, record->out);
  }
  void (*const p2g_adj)(cq_scene *, const cq_slice *, const cq_slice *, int32_t) =
      implicit ? s->kernels->implicit->p2g_adj : s->kernels->p2g_adj;
  for (int32_t r = begin; r < end; r++) p2g_adj(s, record->in, record->out, r);
  cq_worker_phase(worker, CQ_PHASE_P2G_ADJ);
  if (!s->model->cables.all) return CQ_OK;
  cq_worker_wait(worker);
  if (worker->rank == 0) s->kernels->pull_cables_adj(s, record->in);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
  return CQ_OK;
}

// Sets s->signals_adj {actuators} to the gradient of the control step's signals, the sum of s->signals_partial over all
// ranges of chunks, which is cleared.
static void sum_signals(cq_scene *s) {
  const int32_t actuators = s->model->actuator_count;
  memset(s->signals_adj, 0, (size_t)actuators * sizeof(double));
  for (int32_t r = 0; r < s->ranges; r++)
    for (int32_t a = 0; a < actuators; a++) {
      s->signals_adj[a] += s->signals_partial[(int64_t)r * actuators + a];
      s->signals_partial[(int64_t)r * actuators + a] = 0;
    }
}

// Sets s->grad_wall_velocity and s->grad_wall_place {walls, dim}, the gradients of wall velocities in this control step
// and of the displacement of walls before it, to the sums over all ranges in s->partial, which are cleared.
static void sum_walls(cq_scene *s) {
  const int32_t dim = s->model->dim;
  memset(s->grad_wall_velocity, 0, (size_t)(s->model->wall_count * dim) * sizeof(double));
  memset(s->grad_wall_place, 0, (size_t)(s->model->wall_count * dim) * sizeof(double));
  for (int32_t r = 0; r < s->ranges; r++) {
    cq_partial *part = &s->partial[r];
    for (int32_t k = 0; k < s->model->wall_count * dim; k++) {
      s->grad_wall_velocity[k] += part->wall_velocity[k / dim][k % dim];
      s->grad_wall_place[k] += part->wall_place[k / dim][k % dim];
    }
    memset(part->wall_velocity, 0, sizeof part->wall_velocity);
    memset(part->wall_place, 0, sizeof part->wall_place);
  }
}

// Sets s->grad_gravity {dim}, the gradient of gravity in this control step, to the sum over all ranges in s->partial,
// which is cleared.
static void sum_gravity(cq_scene *s) {
  memset(s->grad_gravity, 0, (size_t)s->model->dim * sizeof(double));
  for (int32_t r = 0; r < s->ranges; r++) {
    for (int i = 0; i < s->model->dim; i++) s->grad_gravity[i] += s->partial[r].gravity[i];
    memset(s->partial[r].gravity, 0, sizeof s->partial[r].gravity);
  }
}

// Reverses the recorded engine steps {substeps} of a control step on the spatial grid, last to first, by all workers.
// In mixed worlds with bodies on reference grids as well (carriers). CQ_OK or the first error of a step.
static cq_status reverse_steps(cq_scene *s, cq_worker *worker, const cq_step_record *records) {
  const int mixed = cq_is_mixed(s->model);
  int32_t given = 0;
  for (int32_t k = s->model->substeps - 1; k >= 0; k--) {
    if (records[k].arrangement->sorted_at != s->arrangement->sorted_at)
      cross_sorting(s, worker, records[k].arrangement);
    if (k == s->model->substeps - 1) average_volume_adj(s, worker, records[k].out);
    if (s->status) return s->status;
    if (worker->rank == 0) s->step--;   // for walls that move; read after the first barrier of the step
    const cq_status status =
        mixed ? cq_carriers_reverse(s, worker, &records[k], given) : reverse_step(s, worker, &records[k], k);
    if (status) return status;
    given = mixed ? cq_reference_fields_given(s) : 0;
  }
  if (mixed) cq_reference_collect(s, worker, given);
  return CQ_OK;
}

// Reverses one control step from its records {substeps}, by all workers: s->adj, the adjoint of the live state, becomes
// that of the state before the control step, which becomes the live one. Sets the gradients of the step's signals and
// forces, and of its wall velocities and gravity where they are given by control steps. CQ_OK, or a step's error.
cq_status cq_scene_reverse(cq_scene *s, cq_worker *worker, const cq_step_record *records) {
  if (worker->rank == 0) {
    s->status = CQ_OK;
    // the steps were made again from a checkpoint, up to before a sorting that the adjoint has not crossed yet
    if (s->adj_arrangement->sorted_at != s->arrangement->sorted_at)
      cq_scene_resume(s, s->live, s->adj_arrangement, 0, s->step);
    memset(s->forces_adj, 0, (size_t)s->model->force_count * (size_t)s->model->dim * sizeof(double));
    if (!cq_is_reference(s->model) || cq_is_mixed(s->model)) clear_padding(s);
    if (cq_is_implicit(s->model)) s->status = cq_implicit_reserve(s);
  }
  cq_worker_wait(worker);
  if (s->status) return s->status;
  if (cq_is_mixed(s->model)) cq_reference_settle_adjoint(s, worker);
  if (records[s->model->substeps - 1].arrangement->sorted_at == s->arrangement->sorted_at) load_actuation(s, worker);
  const int reference = cq_is_reference(s->model) && !cq_is_mixed(s->model);
  const cq_status status = reference ? cq_reference_reverse(s, worker, records) : reverse_steps(s, worker, records);
  if (status) return status;
  int begin, end;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->load_actuation_adj(s, r);
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    sum_signals(s);
    if (s->grad_wall_velocity) sum_walls(s);
    if (s->grad_gravity) sum_gravity(s);
    cq_scene_resume(s, records[0].in, s->arrangement, 0, s->step);
    set_adjoint_order(s);
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_ACTUATION);
  return CQ_OK;
}

// Ends the reverse pass at step 0, by all workers: adds the adjoints of the initial state and of the constants, and
// those of gravity, damping and walls, to s->gradients, which are in the user's order.
void cq_scene_finish(cq_scene *s, cq_worker *worker) {
  int begin, end;
  cq_scene_share_spatial(s, worker, &begin, &end);
  if (cq_is_reference(s->model)) cq_reference_finish(s, worker);
  for (int32_t r = begin; r < end; r++) {
    s->kernels->store_params_adj(s, s->range_start[r], s->range_start[r + 1]);
    s->kernels->store_state_adj(s, s->range_start[r], s->range_start[r + 1]);
  }
  cq_worker_wait(worker);
  if (worker->rank) return;
  const int32_t dim = s->model->dim;
  cq_gradients *g = &s->gradients;
  for (int32_t r = 0; r < s->ranges; r++) {
    const cq_partial *part = &s->partial[r];
    for (int i = 0; i < dim; i++) g->gravity[i] += part->gravity[i];
    g->damping[0] += part->damping;
    for (int32_t w = 0; w < s->model->wall_count; w++) {
      g->friction[w] += part->friction[w];
      for (int i = 0; i < dim; i++) g->wall_velocity[w * dim + i] += part->wall_velocity[w][i];
    }
  }
}
