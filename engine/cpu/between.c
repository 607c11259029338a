// between: what is asked of a scene between two rollouts, and of its adjoint between two control steps.
#include "arrange.h"
#include "between.h"
#include <math.h>
#include <string.h>

// Multiplies the adjoint of the live state by a factor, by all workers of the scene together. Returns CQ_OK.
cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor) {
  int begin, end;
  cq_worker_share(worker, s->chunks, &begin, &end);
  s->kernels->discount_adj(s, begin, end, factor);
  if (cq_is_reference(s->model) && worker->rank == 0) s->kernels->reference->discount(s, factor);
  return CQ_OK;
}

// Returns the norm of the adjoint of the live state, and scales the adjoint to the norm `most` where it is larger. By
// one thread, so that the sum has one order.
double cq_scene_limit_adj(cq_scene *s, double most) {
  const cq_reference_kernels *reference = cq_is_reference(s->model) ? s->kernels->reference : NULL;
  const double norm = sqrt(s->kernels->adj_square(s) + (reference ? reference->square(s) : 0));
  if (!(norm > most)) return norm;
  s->kernels->discount_adj(s, 0, s->chunks, most / norm);
  if (reference) reference->discount(s, most / norm);
  return norm;
}

// Sets where walls are at step 0 of s to where they are at the present step of another scene, and clears impulses.
// load_walls sets places of walls that change their velocity.
static void take_walls(cq_scene *s, const cq_scene *from) {
  const size_t size = s->kernels->real_bytes > 8 ? (size_t)s->kernels->real_bytes : sizeof(double);
  s->kernels->clear_walls(s);
  if (s->model->wall_count) memcpy(s->wall_place, from->wall_place, 3 * (size_t)s->model->wall_count * size);
  s->wall_place_step = from->wall_place_step - from->step;
}

// Makes copies of another scene's live state, order and params of particles the live ones of s, at step 0. Returns
// CQ_MEMORY without memory, else CQ_OK. By one thread.
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

// 1 if reference grids of a scene are as those of another one: same constants, positions and F at rest; else 0.
// Velocities of particles count for nothing, for nodes have theirs.
static int has_same_grids(const cq_scene *s, const cq_scene *from) {
  const size_t width = (size_t)(s->model->dim * s->model->dim) * sizeof(double);
  return !cq_is_mixed(s->model) && cq_values_have_same_constants(s->model, &s->values, &from->values) &&
         cq_values_have_same_shapes(s->model, &s->values, &from->values) &&
         !memcmp(s->values.deformation, from->values.deformation, (size_t)s->model->particle_count * width);
}

// The same for a scene whose reference grids are as those of the other one (has_same_grids), by one thread. CQ_OK,
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

// cq_scene_begin_from of a scene with reference grids, by all its workers: particles keep the order of the layout, and
// displacements and velocities of nodes are copied; of particles on the spatial grid also their order. CQ_OK,
// CQ_MEMORY, or an error of cq_scene_begin.
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

// Begins with a copy of the live state of another scene of the model, whose values may be others, as step 0. CQ_OK,
// CQ_MEMORY, or an error where reference grids differ.
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
