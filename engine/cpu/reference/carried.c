// carried: the parts of a step on reference grids beside particles on the spatial grid, where nodes of both meet
// (../carrier.inl). No types, no loops over particles or nodes.
#include "../kernels.h"

void cq_carriers_find(cq_scene *s, const cq_slice *in, int32_t block) {
  s->kernels->reference->move_places(s, in, block);
  s->kernels->carrier_bases(s, block, &s->partial[block]);
}

// ---- forward --------------------------------------------------------------------------------------------------------

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

void cq_carriers_take(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_slice *out, cq_found *found) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->carrier_g2p(s, k);
    s->kernels->reference->move_held(s, in, out, s->nodes_record, k, &found[k]);
  }
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Velocities before the spatial grid changed them, in a record.
static const void *free_velocities(const cq_scene *s, const cq_step_record *record) {
  return (const char *)record->nodes + (size_t)(s->model->dim * s->reference.node_count * s->kernels->real_bytes);
}

void cq_carriers_take_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t given) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->reference->move_places(s, record->in, k);
    s->kernels->reference->move_held_adj(s, record->in, record->nodes, k, given);
    s->kernels->carrier_g2p_adj(s, free_velocities(s, record), k);
  }
}

cq_status cq_carriers_bring_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record) {
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
