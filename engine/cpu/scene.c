// scene: memory of one scene; slices and arrangements by reference.
#include "kernels.h"
#include <string.h>

// The number of particle slots of a scene: whole chunks of 16, so some at the end have no particle.
static int64_t slots_of(const cq_scene *s) { return (int64_t)s->chunks * CQ_CHUNK; }

// The number of reals of v' and C' of one particle, the motion by which a step moves it.
static size_t motion_fields(const cq_scene *s) { return (size_t)(s->model->dim + s->model->dim * s->model->dim); }

// The number of reals of v' and C' of all particles in a slice (a state in memory); 0 where nothing reads them.
static size_t motion_reals(const cq_scene *s) {
  const int read = cq_keeps_unresolved(s->model) && (s->differentiable || s->model->averages_dilatation);
  return read ? (size_t)slots_of(s) * motion_fields(s) : 0;
}

// Lays out the chunks of particles on the spatial grid behind those on reference grids, and divides them into ranges,
// the units of parallel work. Their number depends on the particles, not on threads: so sums do not either.
static void split_ranges(cq_scene *s) {
  const int32_t chunks = (int32_t)((cq_scene_spatial_count(s) + CQ_CHUNK - 1) / CQ_CHUNK);
  int32_t ranges = chunks / CQ_RANGE_CHUNKS;
  if (ranges < 1) ranges = 1;
  if (ranges > CQ_BLOCKS_MAX) ranges = CQ_BLOCKS_MAX;
  s->chunks = s->first_chunk + chunks;
  s->ranges = s->first_range + ranges;
  for (int32_t r = 0; r <= ranges; r++)
    s->range_start[s->first_range + r] = s->first_chunk + (int32_t)((int64_t)chunks * r / ranges);
}

// Are there particles on the spatial grid? 1 yes, 0 no.
static int has_spatial(const cq_scene *s) { return !cq_is_reference(s->model) || cq_is_mixed(s->model); }

// Allocates the arrays for sorting particles by cell. Returns 1, or 0 without memory, as all alloc_ functions here.
static int alloc_sorting(cq_scene *s) {
  const size_t slots = (size_t)slots_of(s);
  int32_t longest = 0;
  for (int i = 0; i < s->model->dim; i++)
    if (s->model->cells[i] > longest) longest = s->model->cells[i];
  s->tally_stride = longest + 32;   // bases from -1 on; the rest keeps threads off each other's cache lines
  s->base = cq_alloc(slots * 3, sizeof *s->base, "sorting");
  s->source = cq_alloc(slots, sizeof *s->source, "sorting");
  s->source_other = cq_alloc(slots, sizeof *s->source_other, "sorting");
  s->plane = cq_alloc((size_t)s->tally_stride, sizeof *s->plane, "sorting");
  s->tally = cq_alloc((size_t)s->ranges * (size_t)s->tally_stride, sizeof *s->tally, "sorting");
  return s->base && s->source && s->source_other && s->plane && s->tally;
}

// The most weight rows that a chunk may need. A weight row holds the weights of one actuator on the 16 particles of a
// chunk: there are at most as many as actuators, and as entries of its particles; an actuator that a particle lists
// twice needs two rows.
static int32_t row_width(const cq_model *m) {
  int64_t most = 0;
  int twice = 0;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const int64_t begin = m->actuation_start[p], end = m->actuation_start[p + 1];
    if (end - begin > most) most = end - begin;
    for (int64_t k = begin + 1; k < end; k++) twice |= m->actuation_actuator[k] <= m->actuation_actuator[k - 1];
  }
  return (int32_t)(twice || most * CQ_CHUNK < m->actuator_count ? most * CQ_CHUNK : m->actuator_count);
}

// Allocates the weight rows of actuation (row_width). 1, or 0 without memory. Unwritten rows take no physical memory.
static int alloc_weight_rows(cq_scene *s) {
  s->row_width = row_width(s->model);
  const size_t weight_rows = (size_t)s->chunks * (size_t)s->row_width;
  s->weight_rows = cq_alloc((size_t)s->chunks, sizeof *s->weight_rows, "actuation");
  s->row_actuator = cq_alloc(weight_rows, sizeof *s->row_actuator, "actuation");
  s->row_weight = cq_alloc(weight_rows * CQ_CHUNK, (size_t)s->kernels->real_bytes, "actuation");
  s->row_entry = cq_alloc(weight_rows * CQ_CHUNK, sizeof *s->row_entry, "actuation");
  for (int r = 0; r < CQ_RANGES_MAX; r++) s->rows_sorted_at[r] = -1;
  return s->weight_rows && s->row_actuator && s->row_weight && s->row_entry;
}

// Allocates what cables and chambers of a scene need, in double (in tests dual numbers). 1, or 0 without memory.
static int alloc_cables(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  const size_t size = s->kernels->real_bytes > 8 ? (size_t)s->kernels->real_bytes : sizeof(double);
  const size_t places = (size_t)(c->points * s->model->dim);
  if (!c->all) return 1;
  s->cable = cq_alloc((size_t)c->all * CQ_CABLE_NUMBERS, size, "cables");
  s->cable_x = cq_alloc(places, size, "cables");
  s->cable_force = cq_alloc(places, size, "cables");
  s->cable_grad = cq_alloc(places, size, "cables");
  s->cable_share = cq_alloc((size_t)c->points, size, "cables");
  s->cable_base = cq_alloc((size_t)(c->pulled_count * s->model->dim), size, "cables");
  s->cable_end = cq_alloc(places, size, "cables");
  s->cable_pulled = cq_alloc((size_t)c->pulled_count * CQ_PULLED_NUMBERS, size, "cables");
  return s->cable && s->cable_x && s->cable_force && s->cable_grad && s->cable_share && s->cable_base && s->cable_end &&
         s->cable_pulled;
}

// Allocates displacements and impulses of walls, in double (in tests dual numbers). 1, or 0 without memory.
static int alloc_walls(cq_scene *s) {
  const size_t size = s->kernels->real_bytes > 8 ? (size_t)s->kernels->real_bytes : sizeof(double),
               walls = (size_t)s->model->wall_count;
  s->wall_place = cq_alloc(3 * walls, size, "walls");
  const size_t contacts = (size_t)s->model->contact_count * (size_t)cq_contact_width(s->model->dim);
  s->impulse = cq_alloc((size_t)s->ranges * contacts, size, "walls");
  return s->wall_place && s->impulse;
}

// Allocates what smoothing J of liquids (volume.inl) keeps of particles, if it is on. 1, or 0 without memory.
static int alloc_volumes(cq_scene *s) {
  const size_t size = s->kernels->real_bytes > 8 ? (size_t)s->kernels->real_bytes : sizeof(double);
  if (!(s->model->volume_share > 0)) return 1;
  s->volume_part = cq_alloc((size_t)s->model->particle_count * CQ_VOLUME_PART, size, "volumes of the liquid");
  return s->volume_part != NULL;
}

// Allocates what averaging dilatations (dilatation.inl) keeps of particles, if it is on. 1, or 0 without memory.
static int alloc_dilatation(cq_scene *s) {
  if (!s->model->averages_dilatation) return 1;
  s->dilatation = cq_alloc((size_t)slots_of(s) * CQ_DILATATION_FIELDS, (size_t)s->kernels->real_bytes, "dilatation");
  return s->dilatation != NULL;
}

// Allocates the gradients by fields, or for material constants by slots, in the user's order. 1, or 0 without memory.
static int alloc_gradients(cq_scene *s) {
  cq_gradients *g = &s->gradients;
  int complete = 1;
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) {
    if (cq_constant_bits() & cq_bit(f)) continue;
    g->value[f] = cq_alloc((size_t)cq_model_field_count(s->model, f), sizeof(double), "gradients");
    complete &= g->value[f] != NULL;
  }
  for (int32_t k = 0; k < s->model->slot_count; k++) {
    g->slot[k] = cq_alloc((size_t)s->model->particle_count, sizeof(double), "gradients");
    complete &= g->slot[k] != NULL;
  }
  return complete;
}

// Allocates adjoints that lie by chunk or range: of state, constants, actuation, signals. 1, or 0 without memory.
static int alloc_adjoint(cq_scene *s) {
  const cq_model *m = s->model;
  const size_t size = (size_t)s->kernels->real_bytes, slots = (size_t)slots_of(s),
               internals = slots * (size_t)m->internal_count;
  s->adj = cq_alloc(slots * (size_t)cq_scene_fields(s), size, "adjoint state");
  s->adj_other = cq_alloc(slots * (size_t)cq_scene_fields(s), size, "adjoint state");
  if (internals) s->internal_adj = cq_alloc(internals, size, "adjoint state");
  if (internals) s->internal_adj_other = cq_alloc(internals, size, "adjoint state");
  const int keeps = cq_keeps_unresolved(m);
  if (keeps) s->kept_adj = cq_alloc(slots * motion_fields(s), size, "adjoint state");
  s->params_adj = cq_alloc(slots * (size_t)s->params, size, "adjoint constants");
  s->actuation_adj = cq_alloc(slots * (size_t)cq_scene_actuation_fields(s), size, "adjoint actuation");
  s->signals_partial = cq_alloc((size_t)s->ranges * (size_t)m->actuator_count, sizeof(double), "adjoint signals");
  return s->adj && s->adj_other && (!internals || (s->internal_adj && s->internal_adj_other)) &&
         (!keeps || s->kept_adj) && s->params_adj && s->actuation_adj && s->signals_partial;
}

// Allocates the gradients that are stored in the user's order. 1, or 0 without memory.
static int alloc_user_adjoint(cq_scene *s) {
  const cq_model *m = s->model;
  s->signals_adj = cq_alloc((size_t)m->actuator_count, sizeof(double), "adjoint signals");
  s->forces_adj = cq_alloc((size_t)m->force_count * (size_t)m->dim, sizeof(double), "adjoint forces");
  return s->signals_adj && s->forces_adj && alloc_gradients(s);
}

// Allocates an array over particles for each constant that the material laws in use read, counts the params of a
// particle (s->params), and notes whether some law updates particles after a step (s->updates). 1, or 0 without memory.
static int alloc_slots(cq_scene *s) {
  s->params = CQ_PARAM_SLOTS + s->model->slot_count;
  for (int32_t k = 0; k < s->model->material_count; k++) s->updates |= cq_material_updates(&s->model->materials[k]);
  for (int32_t k = 0; k < s->model->slot_count; k++) {
    s->slot[k] = cq_alloc((size_t)s->model->particle_count, sizeof(double), "material constants");
    if (!s->slot[k]) return 0;
  }
  return 1;
}

// Allocates all arrays whose length depends on the number of chunks or ranges. 1, or 0 without memory.
static int alloc_chunks(cq_scene *s) {
  const size_t size = (size_t)s->kernels->real_bytes, slots = (size_t)slots_of(s);
  s->actuation = cq_alloc(slots * (size_t)cq_scene_actuation_fields(s), size, "actuation");
  return s->actuation && (!has_spatial(s) || alloc_sorting(s)) && alloc_weight_rows(s) && alloc_walls(s) &&
         alloc_dilatation(s) && (!s->differentiable || alloc_adjoint(s));
}

// Initialises *s as a scene of a model, with work memory but no state yet. kernels: typed loops for the model's
// dimension and precision; differentiable: 1 for adjoints. CQ_OK, or an error that leaves nothing to free: no memory,
// or a layout of reference grids that fails.
cq_status cq_scene_create(cq_scene *s, const cq_model *model, const cq_kernels *kernels, int differentiable) {
  *s = (cq_scene){.model = model, .kernels = kernels, .differentiable = differentiable};
  cq_status status = CQ_OK;
  if (!cq_is_reference(model)) split_ranges(s);
  const size_t size = (size_t)kernels->real_bytes;
  s->globals = cq_alloc(4 + 4 * (size_t)model->wall_count, size, "globals");
  if (!alloc_slots(s) || !s->globals || !alloc_cables(s) || !alloc_volumes(s) ||
      (cq_is_implicit(model) && cq_implicit_create(s)) || (differentiable && !alloc_user_adjoint(s)))
    status = CQ_MEMORY;
  if (!status && cq_is_reference(model)) status = cq_scene_lay_out(s, model->position);
  else if (!status && !alloc_chunks(s)) status = CQ_MEMORY;
  if (status) cq_scene_destroy(s);
  return status;
}

// Frees an arrangement and its memory, however many references there are.
static void arrangement_free(cq_arrangement *a) {
  cq_free(a->order);
  cq_free(a->slot);
  cq_free(a->params);
  cq_free(a->materials);
  cq_free(a->material);
  cq_free(a->slot_actuated);
  cq_free(a->actuated);
  cq_free(a->columns);
  cq_free(a);
}

// Frees a slice (a state in memory), however many references there are; NULL: nothing.
void cq_slice_free(cq_slice *slice) {
  if (!slice) return;
  cq_free(slice->particles);
  cq_free(slice->nodes);
  cq_free(slice->internal);
  cq_free(slice->motion);
  cq_free(slice);
}

// Releases the scene's states and arrangements, and frees all that are then without references; those of records stay.
static void drop_states(cq_scene *s) {
  cq_slice_release(s, s->reference.first);
  cq_slice_release(s, s->live);
  cq_arrangement_release(s, s->arrangement);
  cq_arrangement_release(s, s->adj_arrangement);
  s->live = s->reference.first = NULL;
  s->arrangement = s->adj_arrangement = NULL;
  while (s->free_slices) {
    cq_slice *next = s->free_slices->next;
    cq_slice_free(s->free_slices);
    s->free_slices = next;
  }
  while (s->free_arrangements) {
    cq_arrangement *next = s->free_arrangements->next;
    arrangement_free(s->free_arrangements);
    s->free_arrangements = next;
  }
}

// Frees the arrays of alloc_chunks, before the number of chunks changes or the scene ends.
static void drop_chunks(cq_scene *s) {
  void **owned[] = {&s->wall_place, &s->impulse, &s->actuation, &s->dilatation, (void **)&s->base, (void **)&s->source,
                    (void **)&s->source_other, (void **)&s->plane, (void **)&s->tally, (void **)&s->weight_rows,
                    (void **)&s->row_actuator, &s->row_weight, (void **)&s->row_entry, &s->adj, &s->adj_other,
                    &s->internal_adj, &s->internal_adj_other, &s->params_adj, &s->actuation_adj,
                    (void **)&s->signals_partial, &s->kept_adj};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) {
    cq_free(*owned[k]);
    *owned[k] = NULL;
  }
}

// Frees the slabs (node arrays of ranges), since the next layout may have other grids.
static void drop_slabs(cq_scene *s) {
  for (int r = 0; r < CQ_RANGES_MAX; r++) {
    void **owned[] = {&s->slab[r], &s->inertia_slab[r]};
    for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) {
      cq_free(*owned[k]);
      *owned[k] = NULL;
    }
    s->slab_capacity[r] = 0;
  }
}

// Makes the reference grids of a scene for undeformed positions {n, dim}, and allocates again all memory that depends
// on them; the scene's states are released. CQ_OK, CQ_MEMORY, or an error of the layout, after which the next rollout
// makes them again.
cq_status cq_scene_lay_out(cq_scene *s, const double *positions) {
  s->reference.laid_out = 0;
  drop_states(s);
  drop_chunks(s);
  drop_slabs(s);
  cq_status status = cq_reference_layout(s, positions);
  if (status) return status;
  if (cq_is_mixed(s->model)) split_ranges(s);
  if (!alloc_chunks(s)) return CQ_MEMORY;
  status = cq_reference_reserve(s);
  s->reference.laid_out = !status;
  return status;
}

// Frees all memory of a scene and clears *s; does nothing for a scene that is all zero.
void cq_scene_destroy(cq_scene *s) {
  if (!s->model) return;
  drop_states(s);
  drop_chunks(s);
  void *owned[] = {s->globals, s->cable, s->cable_x, s->cable_force, s->cable_grad, s->cable_share, s->cable_base,
                   s->cable_end, s->cable_pulled, s->volume_part, s->volume_node, s->reach, s->grid_v, s->grid_q,
                   s->inertia_v, s->inertia_q, s->carrier_change, s->carrier_blend, s->carrier_q,
                   s->signals_adj, s->forces_adj};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
  cq_implicit_destroy(s);
  cq_reference_destroy(s);
  for (int32_t k = 0; k < CQ_SLOTS_MAX; k++) cq_free(s->slot[k]);
  for (int32_t k = 0; k < CQ_SLOTS_MAX; k++) cq_free(s->gradients.slot[k]);
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) cq_free(s->gradients.value[f]);
  drop_slabs(s);
  *s = (cq_scene){0};
}

// The number of reals of the particles on the spatial grid in a slice, padding included.
static size_t particle_reals(const cq_scene *s) {
  return (size_t)(s->chunks - s->first_chunk) * CQ_CHUNK * (size_t)cq_scene_fields(s);
}
// The number of reals of the nodes of reference grids in a slice.
static size_t node_reals(const cq_scene *s) {
  return (size_t)(s->reference.node_count * CQ_REFERENCE_FIELDS * s->model->dim);
}

// The bytes of one slice, the state of all particles and nodes between two engine steps.
static int64_t slice_bytes(const cq_scene *s) {
  const int64_t internals = (int64_t)s->chunks * CQ_CHUNK * s->model->internal_count;
  return ((int64_t)(particle_reals(s) + node_reals(s) + motion_reals(s)) + internals) * s->kernels->real_bytes;
}

// The approximate bytes of one arrangement: order, constants and masks of the particles.
static int64_t arrangement_bytes(const cq_scene *s) {
  return (int64_t)s->chunks * CQ_CHUNK * (9 + s->params * s->kernels->real_bytes);
}

// The approximate bytes of a checkpoint of a scene, a slice and an arrangement.
int64_t cq_scene_mark_bytes(const cq_scene *s) { return slice_bytes(s) + arrangement_bytes(s); }

// The estimated bytes of the record of one control step of a scene, what its adjoint needs of each engine step. Assumes
// that one step of ten sorts, which takes one more slice and arrangement, and that the grid grows by half, or as far as
// it did in earlier rollouts.
int64_t cq_scene_record_bytes(const cq_scene *s) {
  const cq_model *m = s->model;
  // of implicit steps what they solve for, and which contacts hold
  const int64_t held = cq_is_implicit(m) ? (int64_t)sizeof(uint64_t) : 0, real = s->kernels->real_bytes,
                solved = (cq_is_implicit(m) ? 4 : cq_scene_node_reals(m)) * real + held,
                nodes = solved * s->reference.node_count;
  if (!has_spatial(s)) return m->substeps * (slice_bytes(s) + nodes);
  const int64_t begun = s->arrangement ? s->arrangement->record_nodes : 0, grown = begun + begun / 2,
                grid = (s->widest > grown ? s->widest : grown) * (cq_scene_grid_reals(m) * real + held);
  const int64_t step = slice_bytes(s) + nodes + grid + cq_scene_mark_bytes(s) / 10;
  return m->substeps * step + (m->volume_share > 0 ? slice_bytes(s) : 0);
}

// Returns a slice (a state in memory) with one reference, the caller's; its contents are undefined, since memory is
// reused. NULL without memory.
cq_slice *cq_slice_create(cq_scene *s) {
  cq_slice *slice = s->free_slices;
  if (slice) {
    s->free_slices = slice->next;
  } else {
    const size_t slots = (size_t)slots_of(s), size = (size_t)s->kernels->real_bytes,
                 internals = slots * (size_t)s->model->internal_count, motion = motion_reals(s),
                 particles = particle_reals(s), nodes = node_reals(s);
    slice = cq_alloc(1, sizeof *slice, "state slice");
    if (!slice) return NULL;
    if (particles) slice->particles = cq_alloc(particles, size, "state slice");
    if (nodes) slice->nodes = cq_alloc(nodes, size, "state slice");
    if (internals) slice->internal = cq_alloc(internals, size, "state slice");
    if (motion) slice->motion = cq_alloc(motion, size, "state slice");
    if ((particles && !slice->particles) || (nodes && !slice->nodes) || (internals && !slice->internal) ||
        (motion && !slice->motion)) {
      cq_slice_free(slice);
      return NULL;
    }
    const size_t before = (size_t)s->first_chunk * CQ_CHUNK * (size_t)cq_scene_fields(s) * size;
    if (particles) slice->data = (void *)((uintptr_t)slice->particles - before);
  }
  slice->references = 1;
  slice->next = NULL;
  return slice;
}

// Copies displacements and velocities of the nodes of reference grids from one slice to another.
void cq_slice_copy_nodes(const cq_scene *s, const cq_slice *from, cq_slice *to) {
  memcpy(to->nodes, from->nodes, node_reals(s) * (size_t)s->kernels->real_bytes);
}

// Returns a new slice of scene s with the state of `slice`, which belongs to another scene of the model. The motion v'
// and C' of the step before it is not copied. NULL without memory.
cq_slice *cq_slice_copy(cq_scene *s, const cq_slice *slice) {
  cq_slice *copy = cq_slice_create(s);
  if (!copy) return NULL;
  const size_t size = (size_t)s->kernels->real_bytes;
  if (copy->particles) memcpy(copy->particles, slice->particles, particle_reals(s) * size);
  if (copy->nodes) cq_slice_copy_nodes(s, slice, copy);
  if (copy->internal)
    memcpy(copy->internal, slice->internal, (size_t)slots_of(s) * (size_t)s->model->internal_count * size);
  return copy;
}

// Adds a reference to a slice, and returns it.
cq_slice *cq_slice_retain(cq_slice *slice) {
  slice->references++;
  return slice;
}

// Drops a reference to a slice; without references it waits for reuse by cq_slice_create. NULL: nothing.
void cq_slice_release(cq_scene *s, cq_slice *slice) {
  if (!slice || --slice->references) return;
  slice->next = s->free_slices;
  s->free_slices = slice;
}

// Returns an arrangement (particle order, constants, active nodes) with one reference, the caller's, and no columns of
// nodes, for the caller to fill. NULL without memory.
cq_arrangement *cq_arrangement_create(cq_scene *s) {
  cq_arrangement *a = s->free_arrangements;
  if (a) {
    s->free_arrangements = a->next;
  } else {
    const size_t slots = (size_t)slots_of(s);
    a = cq_alloc(1, sizeof *a, "arrangement");
    if (!a) return NULL;
    a->order = cq_alloc(slots, sizeof *a->order, "arrangement");
    a->slot = cq_alloc((size_t)s->model->particle_count, sizeof *a->slot, "arrangement");
    a->params = cq_alloc(slots * (size_t)s->params, (size_t)s->kernels->real_bytes, "arrangement");
    a->materials = cq_alloc((size_t)s->chunks, sizeof *a->materials, "arrangement");
    a->material = cq_alloc(slots, 1, "arrangement");
    a->slot_actuated = cq_alloc(slots, 1, "arrangement");
    a->actuated = cq_alloc((size_t)s->chunks, 1, "arrangement");
    if (!a->order || !a->slot || !a->params || !a->materials || !a->material || !a->slot_actuated || !a->actuated) {
      arrangement_free(a);
      return NULL;
    }
  }
  a->references = 1;
  a->next = NULL;
  a->column_count = 0;
  return a;
}

// Returns a copy for scene s of `a`, an arrangement of another scene of the model, with the particles' constants,
// marked as left by the rollout before (CQ_SORTED_BEFORE). NULL without memory.
cq_arrangement *cq_arrangement_copy(cq_scene *s, const cq_arrangement *a) {
  cq_arrangement *copy = cq_arrangement_create(s);
  if (!copy) return NULL;
  if (copy->column_capacity < a->column_count) {
    cq_free(copy->columns);
    copy->column_capacity = 0;
    copy->columns = cq_alloc((size_t)a->column_count, sizeof *copy->columns, "grid columns");
    if (!copy->columns) {
      cq_arrangement_release(s, copy);
      return NULL;
    }
    copy->column_capacity = a->column_count;
  }
  memcpy(copy->order, a->order, (size_t)slots_of(s) * sizeof *copy->order);
  memcpy(copy->slot, a->slot, (size_t)s->model->particle_count * sizeof *copy->slot);
  memcpy(copy->params, a->params, (size_t)slots_of(s) * (size_t)s->params * (size_t)s->kernels->real_bytes);
  memcpy(copy->materials, a->materials, (size_t)s->chunks * sizeof *copy->materials);
  memcpy(copy->material, a->material, (size_t)slots_of(s));
  memcpy(copy->slot_actuated, a->slot_actuated, (size_t)slots_of(s));
  memcpy(copy->actuated, a->actuated, (size_t)s->chunks);
  if (a->column_count) memcpy(copy->columns, a->columns, (size_t)a->column_count * sizeof *copy->columns);
  memcpy(copy->lower, a->lower, sizeof copy->lower);
  memcpy(copy->size, a->size, sizeof copy->size);
  memcpy(copy->slab_lower, a->slab_lower, sizeof copy->slab_lower);
  memcpy(copy->slab_size, a->slab_size, sizeof copy->slab_size);
  memcpy(copy->column_block, a->column_block, sizeof copy->column_block);
  copy->room = a->room;
  copy->column_count = a->column_count;
  copy->record_nodes = a->record_nodes;
  copy->sorted_at = CQ_SORTED_BEFORE;
  return copy;
}

// Adds a reference to an arrangement, and returns it.
cq_arrangement *cq_arrangement_retain(cq_arrangement *a) {
  a->references++;
  return a;
}

// Drops a reference to an arrangement; without references it waits for reuse by cq_arrangement_create. NULL: nothing.
void cq_arrangement_release(cq_scene *s, cq_arrangement *a) {
  if (!a || --a->references) return;
  a->next = s->free_arrangements;
  s->free_arrangements = a;
}

// Releases the slices and the arrangement of a step's record, and keeps its arrays over nodes for another step.
void cq_step_record_clear(cq_scene *s, cq_step_record *record) {
  cq_slice_release(s, record->in);
  cq_slice_release(s, record->out);
  cq_arrangement_release(s, record->arrangement);
  record->in = record->out = NULL;
  record->arrangement = NULL;
}

// Releases the slices and the arrangement of a step's record, and frees its arrays over nodes.
void cq_step_record_destroy(cq_scene *s, cq_step_record *record) {
  cq_step_record_clear(s, record);
  cq_free(record->grid);
  cq_free(record->held);
  cq_free(record->nodes);
  *record = (cq_step_record){0};
}

// Makes a slice live, with an arrangement as its particle order, and releases the old ones; the caller keeps its own
// references. drift: cells that the fastest particle may have moved in that order; step: engine steps before the state.
void cq_scene_resume(cq_scene *s, cq_slice *slice, cq_arrangement *arrangement, double drift, int64_t step) {
  cq_slice_retain(slice);
  cq_arrangement_retain(arrangement);
  cq_slice_release(s, s->live);
  cq_arrangement_release(s, s->arrangement);
  s->live = slice;
  s->arrangement = arrangement;
  s->drift = drift;
  s->step = step;
}
