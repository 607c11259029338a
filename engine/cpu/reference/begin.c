// begin: memory of reference grids, and the first state of a rollout; no types, no loops over particles or nodes.
#include "../kernels.h"
#include <math.h>
#include <string.h>

// ---- memory ---------------------------------------------------------------------------------------------------------

// Frees *array and allocates a zeroed one of `count` entries of `size` bytes in its place. what: its name in an error.
// NULL if there is no memory.
static void *renew(void **array, size_t count, size_t size, const char *what) {
  cq_free(*array);
  return *array = cq_alloc(count, size, what);
}

// Sets r->highest {walls} to the highest point of each height field, above which no node is tested for contact;
// -infinity for walls of other shapes.
static void find_highest(cq_scene *s) {
  cq_reference *r = &s->reference;
  for (int32_t w = 0; w < s->model->wall_count; w++) {
    const cq_wall *wall = &s->model->walls[w];
    r->highest[w] = -INFINITY;
    if (wall->shape != CQ_WALL_HEIGHT_FIELD) continue;
    const int64_t count = (int64_t)wall->height_count[0] * (s->model->dim == 3 ? wall->height_count[1] : 1);
    for (int64_t k = 0; k < count; k++) r->highest[w] = fmax(r->highest[w], wall->height[k]);
  }
}

// Allocates anew the arrays of reference grids whose sizes follow from their layout. Slabs of differentiable scenes or
// implicit steps hold two vector fields, as gradients of displacements and of velocities. CQ_OK or CQ_MEMORY.
cq_status cq_reference_reserve(cq_scene *s) {
  const int differentiable = s->differentiable;
  cq_reference *r = &s->reference;
  const size_t real = (size_t)s->kernels->real_bytes, dim = (size_t)s->model->dim, nodes = (size_t)r->node_count,
               slots = (size_t)r->chunks * CQ_CHUNK,
               fields = differentiable || cq_is_implicit(s->model) ? 2 : 1;
  int ok = renew(&r->origin, (size_t)r->body_count * dim, real, "grids of bodies") &&
           renew(&r->rest, nodes * dim, real, "grids of bodies") &&
           (!(s->model->collision_stiffness > 0) || renew(&r->push, nodes * dim, real, "surfaces of bodies")) &&
           renew(&r->mass, nodes, real, "grids of bodies") && renew(&r->inverse, nodes, real, "grids of bodies") &&
           renew(&r->fraction, slots * dim, real, "places of particles") &&
           renew(&r->place, slots * dim, real, "places of particles") &&
           renew(&r->start, slots * dim * dim, real, "places of particles");
  if (ok && cq_is_mixed(s->model))
    ok = renew(&r->node_place, nodes * dim, real, "grids of bodies") &&
         renew(&r->node_velocity, nodes * dim, real, "grids of bodies") &&
         renew(&r->node_shift, nodes * dim, real, "grids of bodies") &&
         renew(&r->carried, nodes, real, "grids of bodies") &&
         renew((void **)&r->node_base, 3 * nodes, sizeof *r->node_base, "grids of bodies");
  for (int32_t k = 0; k < s->first_range && ok; k++) {
    const size_t length = (size_t)r->window_size[k] + 2 * CQ_CHUNK;
    ok = renew(&r->slab[k], fields * CQ_REFERENCE_SHIFTS * dim * length, real, "grids of bodies") != NULL;
  }
  if (ok && differentiable)
    ok = renew(&r->adj, 2 * dim * nodes, real, "adjoint state") &&
         renew(&r->force_adj, dim * nodes, real, "adjoint state") &&
         renew(&r->mass_adj, nodes, real, "adjoint constants") &&
         renew(&r->rest_adj, dim * nodes, real, "adjoint constants") &&
         renew(&r->fraction_adj, slots * dim, real, "adjoint constants") &&
         renew(&r->place_adj, slots * dim, real, "adjoint constants") &&
         renew(&r->start_adj, slots * dim * dim, real, "adjoint constants");
  if (!ok) return CQ_MEMORY;
  if (cq_is_implicit(s->model)) {
    const cq_status status = cq_implicit_lay_out(s);
    if (status) return status;
  }
  find_highest(s);
  cq_slice_free(r->seen);
  r->seen = cq_alloc(1, sizeof *r->seen, "particles");
  if (r->seen)
    r->seen->particles = cq_alloc((size_t)s->chunks * CQ_CHUNK * (size_t)cq_scene_fields(s), real, "particles");
  if (r->seen) r->seen->data = r->seen->particles;
  return r->seen && r->seen->data ? CQ_OK : CQ_MEMORY;
}

// Frees the reference grids of a scene.
void cq_reference_destroy(cq_scene *s) {
  cq_reference *r = &s->reference;
  void *owned[] = {r->positions, r->bodies, r->order, r->cells, r->cells_of_chunk, r->used, r->nodes, r->pin, r->rim,
                   r->origin, r->rest, r->rim_place, r->mass, r->inverse, r->place, r->fraction, r->start,
                   r->node_place, r->node_velocity, r->node_shift, r->carried, r->node_base,
                   r->adj, r->force_adj, r->mass_adj, r->rest_adj, r->push, r->rim_at,
                   r->fraction_adj, r->place_adj, r->start_adj};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
  for (int32_t k = 0; k < CQ_BLOCKS_MAX; k++) cq_free(r->slab[k]);
  cq_slice_free(r->seen);
  cq_slice_free(r->moved);
  cq_near_free(&r->near);
  *r = (cq_reference){0};
}

// ---- the first state ------------------------------------------------------------------------------------------------

// Gives an order of particles the columns by which implicit steps go over nodes: sixteen nodes of reference grids each,
// in the blocks of the layout. Nothing for explicit steps. CQ_OK or CQ_MEMORY.
static cq_status arrange_columns(const cq_scene *s, cq_arrangement *a) {
  const cq_reference *r = &s->reference;
  if (!cq_is_implicit(s->model)) return CQ_OK;
  if (a->column_capacity < r->nodes_count) {
    cq_free(a->columns);
    a->column_capacity = 0;
    a->columns = cq_alloc((size_t)r->nodes_count, sizeof *a->columns, "grid columns");
    if (!a->columns) return CQ_MEMORY;
    a->column_capacity = r->nodes_count;
  }
  a->column_count = r->nodes_count;
  a->record_nodes = r->node_count;
  for (int32_t k = 0; k < r->nodes_count; k++)
    a->columns[k] = (cq_column){.count = CQ_REFERENCE_VECTOR,
                                .node = r->nodes[k].node,
                                .record = r->nodes[k].node,
                                .ranges = r->nodes[k].ranges};
  for (int32_t b = 0; b <= s->ranges; b++) a->column_block[b] = r->nodes_start[b];
  return CQ_OK;
}

// Appends the particles on the spatial grid to `order`, the particle of each slot: in the user's order, then -1 for
// padding.
static void append_spatial(const cq_scene *s, int32_t *order) {
  int32_t slot = s->first_chunk * CQ_CHUNK;
  for (int64_t p = 0; p < s->model->particle_count; p++)
    if (!cq_on_reference(s->model, p)) order[slot++] = (int32_t)p;
  while (slot < s->chunks * CQ_CHUNK) order[slot++] = -1;
}

// Makes the order of particles (arrangement) that the layout gives, and an empty state (slice), the scene's present
// ones at step 0. CQ_OK or CQ_MEMORY.
static cq_status arrange(cq_scene *s) {
  cq_slice *slice = cq_slice_create(s);
  cq_arrangement *a = cq_arrangement_create(s);
  const cq_status columns = slice && a ? arrange_columns(s, a) : CQ_MEMORY;
  if (!columns) {
    a->sorted_at = cq_is_mixed(s->model) ? -1 : 0;
    memcpy(a->order, s->reference.order, (size_t)s->reference.chunks * CQ_CHUNK * sizeof *a->order);
    append_spatial(s, a->order);
    for (int32_t slot = 0; slot < s->chunks * CQ_CHUNK; slot++)
      if (a->order[slot] >= 0) a->slot[a->order[slot]] = slot;
    cq_scene_resume(s, slice, a, 0, 0);
  }
  cq_slice_release(s, slice);
  cq_arrangement_release(s, a);
  return columns;
}

// By one worker, at the start of a rollout: makes a layout, if the rollout's positions are not those of the present
// one, the first order of particles (arrangement), and an empty first state (slice). CQ_OK, CQ_MEMORY, or an error of
// the layout.
cq_status cq_reference_begin(cq_scene *s) {
  cq_reference *r = &s->reference;
  const size_t size = (size_t)(s->model->particle_count * s->model->dim) * sizeof *r->positions;
  if (!r->laid_out || memcmp(r->positions, s->values.position, size)) {
    const cq_status status = cq_scene_lay_out(s, s->values.position);
    if (status) return status;
  }
  r->seen_step = -1;
  r->read = 0;
  return arrange(s);
}

// By all workers, after cq_reference_begin: loads the first state from the user's values: particles, then nodes; keeps
// it as r->first if all particles are on reference grids. CQ_OK.
cq_status cq_reference_load(cq_scene *s, cq_worker *worker) {
  int begin, end;
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t k = begin; k < end; k++) {
    s->kernels->load_params(s, s->arrangement, s->range_start[k], s->range_start[k + 1]);
    s->kernels->load_state(s, s->reference.seen, s->range_start[k], s->range_start[k + 1]);
  }
  cq_worker_wait(worker);
  if (worker->rank == 0) {
    s->kernels->reference->prepare(s, s->live);
    cq_slice_release(s, s->reference.first);
    s->reference.first = cq_is_mixed(s->model) ? NULL : cq_slice_retain(s->live);
  }
  cq_worker_wait(worker);
  cq_worker_phase(worker, CQ_PHASE_SORT);
  return CQ_OK;
}

// By one worker, in place of loading: makes r->first, kept from an earlier rollout with the same values, the scene's
// present state.
void cq_reference_begin_again(cq_scene *s) {
  s->reference.seen_step = -1;
  s->reference.read = 0;
  cq_scene_resume(s, s->reference.first, s->arrangement, 0, 0);
}

// Copies what prepare() computes for reference grids, places, weights and masses, from another scene, `from`, with the
// same particles, constants and F at rest. Releases r->first of s.
void cq_reference_copy(cq_scene *s, const cq_scene *from) {
  cq_reference *r = &s->reference;
  const cq_reference *f = &from->reference;
  const size_t real = (size_t)s->kernels->real_bytes, dim = (size_t)s->model->dim, nodes = (size_t)r->node_count,
               slots = (size_t)r->chunks * CQ_CHUNK;
  memcpy(r->origin, f->origin, (size_t)r->body_count * dim * real);
  memcpy(r->rest, f->rest, nodes * dim * real);
  memcpy(r->mass, f->mass, nodes * real);
  memcpy(r->inverse, f->inverse, nodes * real);
  memcpy(r->fraction, f->fraction, slots * dim * real);
  memcpy(r->place, f->place, slots * dim * real);
  memcpy(r->start, f->start, slots * dim * dim * real);
  memcpy(r->cells, f->cells, (size_t)r->cells_count * sizeof *r->cells);
  r->started = f->started;
  cq_slice_release(s, r->first);
  r->first = NULL;
}
