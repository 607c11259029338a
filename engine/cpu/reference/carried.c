// carried: the parts of a step on reference grids in a world that also has particles on the spatial grid, where nodes
// of both grids exchange momentum (../carrier.inl). No types, no loops over particles or nodes.
#include "../kernels.h"

// For a block of reference nodes in the state `in`: sets r->node_place, r->node_base (the base cells of their stencils
// on the spatial grid), and s->partial[block] to the box of these, or marks there that one is outside of the world.
void cq_carriers_find(cq_scene *s, const cq_slice *in, int32_t block) {
  s->kernels->reference->move_places(s, in, block);
  s->kernels->carrier_bases(s, block, &s->partial[block]);
}

// ---- forward --------------------------------------------------------------------------------------------------------

// Before the spatial grid's pass over nodes, by all workers: computes the forces on reference nodes, and scatters their
// mass and momentum to the spatial grid. in: the state before the step; found: of each range. CQ_OK, or the error of
// the forces between surfaces.
cq_status cq_carriers_bring(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_found *found) {
  const cq_reference_kernels *kernels = s->kernels->reference;
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) kernels->forces(s, in, k, &found[k]);
  cq_worker_wait(worker);
  const cq_status status = s->status;      // of what the first worker has prepared
  for (int32_t k = begin; k < end && !status; k++) {
    kernels->move_places(s, in, k);
    kernels->move_free(s, in, s->nodes_record, k);
    s->kernels->carrier_p2g(s, k);
  }
  return status;
}

// After the spatial grid's pass over nodes, by all workers: takes velocities of reference nodes from the spatial grid,
// and sets the state `out` after the step. found: of each block.
void cq_carriers_take(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_slice *out, cq_found *found) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->carrier_g2p(s, k);
    s->kernels->reference->move_held(s, in, out, s->nodes_record, k, &found[k]);
  }
}

// ---- backward -------------------------------------------------------------------------------------------------------

// The part of a step's record with the velocities {dim, nodes} of reference nodes before the spatial grid changed them.
static const void *free_velocities(const cq_scene *s, const cq_step_record *record) {
  return (const char *)record->nodes + (size_t)(s->model->dim * s->reference.node_count * s->kernels->real_bytes);
}

// Adjoint of cq_carriers_take for a recorded step, by all workers: turns the adjoint of nodes after the step into that
// of their displacements before it and of their velocities before walls, and scatters the gradients of the velocities
// that they took to the slabs of the spatial grid. given: fields in the slabs of reference grids to add first.
static void take_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t given) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->reference->move_places(s, record->in, k);
    s->kernels->reference->move_held_adj(s, record->in, record->nodes, k, given);
    s->kernels->carrier_g2p_adj(s, free_velocities(s, record), k);
  }
}

// Adjoint of cq_carriers_bring for a recorded step, by all workers: adds the gradients by mass and momentum on the
// spatial grid, by forces between surfaces, of cells and of cables to the adjoint of nodes before the step, or leaves
// them in the slabs. CQ_OK, or the error of the forces between surfaces.
static cq_status bring_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record) {
  const cq_reference_kernels *kernels = s->kernels->reference;
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->carrier_p2g_adj(s, free_velocities(s, record), k);
    kernels->move_free_adj(s, record->in, record->nodes, k);
  }
  cq_worker_wait(worker);
  if (worker->rank == 0 && s->model->collision_stiffness > 0) s->status = kernels->repel_adj(s, record->in);
  cq_reference_pull_cables(s, worker, record->in);
  cq_worker_wait(worker);
  if (s->status) return s->status;
  for (int32_t k = begin; k < end; k++) kernels->forces_adj(s, record->in, k, cq_reference_fields_given(s));
  cq_reference_pull_cables_adj(s, worker, record->in);
  return CQ_OK;
}

// Reverses one engine step in which both grids take part, the spatial one and the reference grids. given: the number of
// vector fields (0, 1 or 2) that the step reversed before this one left in the slabs of the reference grids. CQ_OK, or
// the error of the forces between surfaces.
cq_status cq_carriers_reverse(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t given) {
  int begin, end, first, last;
  cq_worker_share(worker, s->ranges, &begin, &end);
  cq_scene_share_spatial(s, worker, &first, &last);
  cq_worker_wait(worker);   // for the index of the step, by which walls move
  for (int32_t r = first; r < last; r++) s->kernels->g2p_adj(s, record->in, record->out, r);
  take_adj(s, worker, record, given);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_G2P_ADJ);
  for (int32_t r = begin; r < end; r++) s->kernels->grid_adj(s, record->grid, r);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_GRID_ADJ);
  for (int32_t r = first; r < last; r++) s->kernels->p2g_adj(s, record->in, record->out, r);
  const cq_status status = bring_adj(s, worker, record);
  cq_worker_phase(worker, CQ_PHASE_P2G_ADJ);
  return status;
}
