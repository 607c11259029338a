// begin: how a scene begins: with the values of a rollout, as the last time, or in the live state of another scene.
#include "arrange.h"
#include "../world/constants.h"
#include <string.h>

// ---- with values ----------------------------------------------------------------------------------------------------

// Sets s->slot {slot_count, n}: the constants that each particle's material law reads (as Lame's constants), computed
// from the user's fields of this rollout (as Young's modulus). Called by all workers.
void cq_scene_make_slots(cq_scene *s, const cq_worker *worker) {
  int begin, end;
  cq_worker_share(worker, (int)s->model->particle_count, &begin, &end);
  for (int p = begin; p < end; p++) {
    double slot[CQ_SLOTS_MAX];
    cq_constants_of(s->model, s->values.value, p, slot);
    for (int32_t k = 0; k < s->model->slot_count; k++) s->slot[k][p] = slot[k];
  }
}

// Starts a rollout at step 0, by all workers: loads state and constants in s->values, clears walls, and sorts particles
// on the spatial grid. CQ_OK, CQ_MEMORY, CQ_UNSTABLE (one is outside the world), or an error of reference grids.
cq_status cq_scene_begin(cq_scene *s, cq_worker *worker) {
  if (worker->rank == 0) {
    s->health = (cq_health){0};
    s->status = cq_is_reference(s->model) ? cq_reference_begin(s) : cq_arrange_first(s);
    s->kernels->load_globals(s);
    if (!s->status) s->kernels->clear_walls(s);
  }
  cq_scene_make_slots(s, worker);
  cq_worker_wait(worker);
  if (s->status) return s->status;
  if (cq_is_reference(s->model)) {
    const cq_status status = cq_reference_load(s, worker);
    if (status || !cq_is_mixed(s->model)) return status;
  }
  int begin, end;
  cq_scene_share_spatial(s, worker, &begin, &end);
  for (int32_t r = begin; r < end; r++) s->kernels->load_state(s, s->live, s->range_start[r], s->range_start[r + 1]);
  cq_worker_wait(worker);
  return cq_arrange(s, worker);
}

// Starts a rollout with the same values as the last one: a scene all on reference grids goes back to its first state if
// it has kept one, any other one calls cq_scene_begin. Called by all workers. Returns as cq_scene_begin.
cq_status cq_scene_begin_again(cq_scene *s, cq_worker *worker) {
  if (!cq_is_reference(s->model) || !s->reference.first) return cq_scene_begin(s, worker);
  cq_worker_wait(worker);       // all have asked
  if (worker->rank == 0) {
    s->health = (cq_health){0};
    cq_reference_begin_again(s);
    s->kernels->load_globals(s);
    s->kernels->clear_walls(s);
  }
  cq_worker_wait(worker);
  return CQ_OK;
}

// ---- in the state of another scene ----------------------------------------------------------------------------------

// For a scene s that begins at step 0 where `from` is now: copies how far the walls of `from` have moved, and clears
// the impulses of walls. Where walls have a velocity of their own in each control step, load_walls sets both later.
static void take_walls(cq_scene *s, const cq_scene *from) {
  const size_t size = s->kernels->real_bytes > 8 ? (size_t)s->kernels->real_bytes : sizeof(double);
  s->kernels->clear_walls(s);
  if (s->model->wall_count) memcpy(s->wall_place, from->wall_place, 3 * (size_t)s->model->wall_count * size);
  s->wall_place_step = from->wall_place_step - from->step;
}

// Makes copies of the live state of `from`, of its particle order and of its particles' constants the live ones of s,
// at step 0, and takes over where its walls are. Called by one thread. CQ_OK or CQ_MEMORY.
static cq_status take_state(cq_scene *s, const cq_scene *from) {
  s->health = (cq_health){0};
  cq_slice *slice = cq_slice_copy(s, from->live);
  cq_arrangement *a = cq_arrangement_copy(s, from->arrangement);
  if (slice && a) cq_scene_resume(s, slice, a, from->drift, 0);
  cq_status status = slice && a ? CQ_OK : CQ_MEMORY;
  cq_slice_release(s, slice);
  cq_arrangement_release(s, a);
  s->kernels->load_globals(s);
  take_walls(s, from);
  return status ? status : cq_arrange_reserve(s);
}

// Returns 1 if the reference grids that s needs for its values are those of `from`: the same constants, undeformed
// positions and F at rest, and no particles on the spatial grid; else 0. Initial velocities are copied with the nodes.
static int has_same_grids(const cq_scene *s, const cq_scene *from) {
  const size_t width = (size_t)(s->model->dim * s->model->dim) * sizeof(double);
  return !cq_is_mixed(s->model) && cq_values_have_same_constants(s->model, &s->values, &from->values) &&
         cq_values_have_same_shapes(s->model, &s->values, &from->values) &&
         !memcmp(s->values.deformation, from->values.deformation, (size_t)s->model->particle_count * width);
}

// As take_state, for a scene s with the same reference grids as `from` (has_same_grids). Called by one thread. CQ_OK,
// CQ_MEMORY, or an error of the layout.
static cq_status take_same_grids(cq_scene *s, const cq_scene *from) {
  s->health = (cq_health){0};
  const cq_status status = cq_reference_begin(s);
  if (status) return status;
  cq_slice *slice = cq_slice_copy(s, from->live);
  cq_arrangement *a = cq_arrangement_copy(s, from->arrangement);
  if (slice && a) {
    a->sorted_at = 0;
    cq_scene_resume(s, slice, a, 0, 0);
    cq_reference_copy(s, from);
  }
  const int done = slice && a;
  cq_slice_release(s, slice);
  cq_arrangement_release(s, a);
  s->kernels->load_globals(s);
  take_walls(s, from);
  return done ? CQ_OK : CQ_MEMORY;
}

// cq_scene_begin_from for a scene with reference grids, called by all its workers: particles keep the order of their
// grids, displacements and velocities of nodes are copied. Particles on the spatial grid are copied with their order.
// CQ_OK, CQ_MEMORY, or an error of cq_scene_begin.
static cq_status take_reference(cq_scene *s, cq_worker *worker, const cq_scene *from) {
  if (has_same_grids(s, from)) {
    cq_worker_wait(worker);          // all have asked, before anything changes
    if (worker->rank == 0) s->status = take_same_grids(s, from);
    cq_worker_wait(worker);
    cq_worker_phase(worker, CQ_PHASE_SORT);
    return s->status;
  }
  const cq_status status = cq_scene_begin(s, worker);
  if (status) return status;
  if (worker->rank == 0 && cq_is_mixed(s->model)) {
    s->status = take_state(s, from);
    if (!s->status) s->kernels->load_params(s, s->arrangement, 0, s->chunks);
  } else if (worker->rank == 0) {
    cq_slice *slice = cq_slice_copy(s, from->live);
    s->status = slice ? CQ_OK : CQ_MEMORY;
    if (slice) cq_scene_resume(s, slice, s->arrangement, 0, 0);
    cq_slice_release(s, slice);
    take_walls(s, from);
  }
  cq_worker_wait(worker);
  return s->status;
}

// Starts a rollout of s at step 0 with a copy of the live state of `from`, another scene of the same model; constants
// and other fields are those of s->values. Called by all workers. CQ_OK, CQ_MEMORY, or an error of reference grids.
cq_status cq_scene_begin_from(cq_scene *s, cq_worker *worker, const cq_scene *from) {
  if (cq_is_reference(s->model)) return take_reference(s, worker, from);
  // those that come with the order
  const int has_params = cq_values_have_same_constants(s->model, &s->values, &from->values);
  if (worker->rank == 0) s->status = take_state(s, from);
  if (!has_params) cq_scene_make_slots(s, worker);
  cq_worker_wait(worker);
  if (s->status) return s->status;
  int begin, end;
  cq_worker_share(worker, has_params ? 0 : s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++)
    s->kernels->load_params(s, s->arrangement, s->range_start[r], s->range_start[r + 1]);
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_SORT);
  return CQ_OK;
}
