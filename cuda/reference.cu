// reference: memory of reference grids, and what is done with them beside the runs of engine steps.
#include "reference.h"
#include "layout.h"
#include "window.h"
#include <limits.h>
#include <math.h>
#include <string.h>

static const char *const what = "grids of bodies";

// ---- its memory -----------------------------------------------------------------------------------------------------

// An array of host memory that goes to the device in one piece with others.
typedef struct Piece {
  const void *from;
  size_t bytes;
  const void **to;
} Piece;

// Rounds a size in bytes up to a multiple of 128, the alignment of arrays that share a block of device memory.
static size_t rounded(size_t bytes) { return (bytes + 127) / 128 * 128; }

// Reserves one block of device memory, *memory, for `count` arrays, sets the device address of each (pieces[k].to), and
// copies the host data of those that have any; waits for the copies.
static cq_status send_pieces(cq_device *d, const Piece *pieces, int32_t count, cq_memory **memory) {
  size_t total = 0;
  for (int32_t k = 0; k < count; k++) total += rounded(pieces[k].bytes);
  cq_status status = cq_pool_reserve(&d->context->pool, memory, total, what);
  if (status) return status;
  char *at = (char *)(*memory)->data;
  for (int32_t k = 0; k < count && !status; k++, at += rounded(pieces[k - 1].bytes)) {
    *pieces[k].to = at;
    if (pieces[k].bytes && pieces[k].from)
      status = cq_cuda_check(
          cudaMemcpyAsync(at, pieces[k].from, pieces[k].bytes, cudaMemcpyHostToDevice, d->context->stream), what);
  }
  // the host's copies go when this returns
  return status ? status : cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
}

// Converts vectors of nodes, doubles {count, dim}, to the device's format, in new host memory: four reals for each
// node, in the device's precision. The caller frees it; NULL if there is no memory.
static void *reals_of_nodes(const cq_device *d, const double *from, int64_t count) {
  const int32_t dim = d->model->dim;
  char *to = (char *)cq_alloc((size_t)count * 4, d->real_bytes, what);
  for (int64_t k = 0; k < count * dim && to; k++) {
    const int64_t at = k / dim * 4 + k % dim;
    if (d->real_bytes == 4) ((float *)to)[at] = (float)from[k];
    else ((double *)to)[at] = from[k];
  }
  return to;
}
// Converts vectors of particles, doubles {slots, dim}, to the device's format, in new host memory: reals, a component
// of 32 slots after another (CQ_SLOT_AT). The caller frees it; NULL if there is no memory.
static void *reals_of_slots(const cq_device *d, const double *from) {
  const int32_t dim = d->model->dim;
  char *to = (char *)cq_alloc((size_t)d->stride * (size_t)dim, d->real_bytes, what);
  for (int64_t k = 0; k < (int64_t)d->slots * dim && to; k++) {
    const int64_t at = CQ_SLOT_AT(dim, k / dim) + k % dim * CQ_GROUP;
    if (d->real_bytes == 4) ((float *)to)[at] = (float)from[k];
    else ((double *)to)[at] = from[k];
  }
  return to;
}

// Copies the tables of the layout of reference grids to the device, and sets their addresses in reference->shapes.
static cq_status send_tables(cq_device *d, const cq_shapes_layout *l) {
  cq_shapes *s = &d->reference->shapes;
  const int64_t tiles = l->tiles, nodes = l->nodes;
  const size_t i = sizeof(int32_t);
  void *rest = reals_of_nodes(d, l->rest, nodes), *fraction = reals_of_slots(d, l->fractions),
       *place = reals_of_slots(d, l->places);
  const size_t node = cq_node_size(d), by_slot = (size_t)d->stride * (size_t)d->model->dim * d->real_bytes;
  const Piece pieces[] = {
      {l->tile, (size_t)tiles * sizeof *l->tile, (const void **)&s->tile},
      {l->hulls, (size_t)(tiles * l->hull) * i, (const void **)&s->hull},
      {l->cell_start, (size_t)(tiles * (l->cells + 1)) * i, (const void **)&s->cell_start},
      {l->corner, (size_t)d->slots * i, (const void **)&s->corner},
      {l->given, (size_t)(nodes * l->axes) * i, (const void **)&s->given},
      {l->pins, (size_t)nodes * i, (const void **)&s->pin},
      {l->scene, (size_t)(nodes / CQ_TILE_NODES) * i, (const void **)&s->scene},
      {l->rim, (size_t)l->rims * sizeof *l->rim, (const void **)&s->rim},
      {l->rim_node, (size_t)(l->rims * (1 + 2 * l->dim)) * i, (const void **)&s->rim_node},
      {l->rim_scene, (size_t)l->rims * i, (const void **)&s->rim_scene},
      {l->body_tile, ((size_t)s->bodies + 1) * i, (const void **)&s->body_tile},
      {l->body_count, (size_t)s->bodies * sizeof(int64_t), (const void **)&s->body_count},
      {rest, (size_t)nodes * node, &s->rest},
      {fraction, by_slot, &s->fraction},
      {place, by_slot, &s->place},
      {NULL, (size_t)nodes * node, (const void **)&s->mass},
  };
  const cq_status status = rest && fraction && place
                               ? send_pieces(d, pieces, sizeof pieces / sizeof *pieces, &d->reference->tables)
                               : CQ_MEMORY;
  cq_free(rest);
  cq_free(fraction);
  cq_free(place);
  return status;
}

// Reserves and clears device memory for the search of surfaces that are near each other, in worlds with collisions.
// Searches are numbered from 1, so that zeroed entries belong to none.
static cq_status reserve_near(cq_device *d) {
  cq_reference *r = d->reference;
  cq_shapes *s = &r->shapes;
  s->friction = d->model->collision_friction;
  s->near_size = 64;
  while (s->near_size < 2 * (int64_t)s->rims) s->near_size *= 2;
  const Piece pieces[] = {
      {NULL, (size_t)s->nodes * cq_node_size(d), (const void **)&s->push},
      {NULL, (size_t)s->rims * (size_t)s->dim * sizeof *s->near_at, (const void **)&s->near_at},
      {NULL, (size_t)s->near_size * sizeof *s->near_first, (const void **)&s->near_first},
      {NULL, (size_t)s->rims * sizeof *s->near_next, (const void **)&s->near_next},
  };
  const cq_status status = send_pieces(d, pieces, sizeof pieces / sizeof *pieces, &r->near);
  return status ? status
                : cq_cuda_check(cudaMemsetAsync(r->near->data, 0, r->near->bytes, d->context->stream), what);
}

// Reserves the device memory that engine steps on the present layout need: nodes that tiles of cells add forces to
// (arenas), the hash table of the check for surfaces that meet, and, if differentiable, the adjoints of nodes.
static cq_status reserve(cq_device *d) {
  cq_reference *r = d->reference;
  cq_shapes *s = &r->shapes;
  cq_pool *pool = &d->context->pool;
  const size_t node = cq_node_size(d), nodes = (size_t)s->nodes, dim = (size_t)s->dim,
               arena = (size_t)s->tiles * (size_t)cq_hull_nodes(s->dim) * node;
  cq_status status = cq_pool_reserve(pool, &r->arenas, 2 * arena, what);
  if (status) return status;
  s->arena[0] = r->arenas->data;
  s->arena[1] = (char *)r->arenas->data + arena;
  // as many places as stretched edges have at most are rare: the table is for a few of each node
  s->touch_size = 64;
  while (s->touch_size < 8 * (int64_t)s->rims) s->touch_size *= 2;
  const size_t table = (size_t)s->touch_size * 2 * sizeof(unsigned long long);
  status = cq_pool_reserve(pool, &r->touch, table, "surfaces of bodies");
  if (!status) status = cq_cuda_check(cudaMemsetAsync(r->touch->data, 0xff, table, d->context->stream), what);
  if (status) return status;
  s->touch_cell = (unsigned long long *)r->touch->data;
  s->touch_rim = s->touch_cell + s->touch_size;
  if (d->model->collision_stiffness > 0) status = reserve_near(d);
  if (status || !d->differentiable) return status;
  void *unused;
  const size_t by_slot = (size_t)d->stride * dim * d->real_bytes;
  const Piece pieces[] = {
      {NULL, 2 * nodes * node, (const void **)&s->adj},
      {NULL, nodes * node, (const void **)&s->force_adj},
      {NULL, nodes * d->real_bytes, (const void **)&s->mass_adj},
      {NULL, nodes * node, (const void **)&s->rest_adj},
      {NULL, by_slot, (const void **)&s->fraction_adj},
      {NULL, by_slot, (const void **)&s->place_adj},
      {NULL, by_slot * dim, (const void **)&s->start_adj},
      {NULL, (size_t)s->bodies * dim * sizeof(double), (const void **)&s->origin_adj},
      {NULL, 0, (const void **)&unused},
  };
  return send_pieces(d, pieces, sizeof pieces / sizeof *pieces, &r->backward);
}

// Moves those arrays of a layout to r that the host needs later: the order of particles, nodes' places at rest, and
// surface cells, for the next rollout and for the diagnosis of failures. The caller still frees l.
static void keep_layout(cq_reference *r, cq_shapes_layout *l) {
  void *old[] = {r->order, r->rests, r->rim, r->rim_node, r->rim_scene};
  for (size_t k = 0; k < sizeof old / sizeof *old; k++) cq_free(old[k]);
  r->order = l->order;
  r->rests = l->rest;
  r->rim = l->rim;
  r->rim_node = l->rim_node;
  r->rim_scene = l->rim_scene;
  l->order = l->rim_node = l->rim_scene = NULL;
  l->rest = NULL;
  l->rim = NULL;
}

// Are the positions of all scenes in values {batch} those that the reference grids were laid out for? 1 yes, 0 no.
static int32_t same_positions(const cq_device *d, const cq_values *values) {
  const cq_reference *r = d->reference;
  const size_t each = (size_t)d->particles * (size_t)d->model->dim;
  for (int32_t s = 0; s < d->batch; s++)
    if (memcmp(r->positions + (size_t)s * each, values[s].position, each * sizeof(double))) return 0;
  return 1;
}

// Lays out the reference grids of all scenes on the host by the positions in values {batch}, and sends their tables to
// the device. Does nothing if positions are those of the last layout.
static cq_status lay_out_all(cq_device *d, const cq_values *values) {
  cq_reference *r = d->reference;
  cq_shapes *s = &r->shapes;
  const size_t each = (size_t)d->particles * (size_t)d->model->dim;
  cq_shapes_layout l = {};
  if (r->order && same_positions(d, values)) return CQ_OK;
  cq_status status = cq_shapes_lay_out(d->model, values, d->batch, &l);
  // from here on the device has no layout, until all of the new one is there
  cq_free(r->order);
  r->order = NULL;
  if (!status) {
    s->tiles = l.tiles;
    s->nodes = l.nodes;
    s->rims = l.rims;
    status = send_tables(d, &l);
  }
  if (!status) status = reserve(d);
  if (!status) {
    keep_layout(r, &l);
    for (int32_t node = s->nodes - CQ_TILE_NODES; node >= 0; node -= CQ_TILE_NODES)
      r->first_node[l.scene[node / CQ_TILE_NODES]] = node;
    for (int32_t k = 0; k < d->batch; k++)
      memcpy(r->positions + (size_t)k * each, values[k].position, each * sizeof(double));
  }
  cq_shapes_free(&l);
  return status;
}

// ---- of a rollout ---------------------------------------------------------------------------------------------------

// In a total Lagrangian world: sets d->reference to a new cq_reference, without a layout of the grids yet.
cq_status cq_cuda_reference_create(cq_device *d) {
  const cq_model *m = d->model;
  if (!cq_is_reference(m)) return CQ_OK;
  cq_reference *r = d->reference = (cq_reference *)cq_alloc(1, sizeof *r, what);
  if (!r) return CQ_MEMORY;
  r->positions = (double *)cq_alloc((size_t)d->slots * (size_t)m->dim, sizeof *r->positions, what);
  r->first_node = (int32_t *)cq_alloc((size_t)d->batch, sizeof *r->first_node, what);
  if (!r->positions || !r->first_node) return CQ_MEMORY;
  r->shapes.bodies = d->batch * m->body_count;
  r->shapes.slots = d->slots;
  r->shapes.dim = m->dim;
  r->shapes.dx = m->dx;
  r->shapes.dt = m->dt;
  r->shapes.pinned = m->pin_count > 0;
  for (int i = 0; i < 3; i++) r->shapes.cells[i] = m->cells[i];
  for (int32_t k = 0; k < m->material_count; k++) r->shapes.viscous |= m->materials[k].viscous;
  const cq_status status = cq_cuda_particles_create(d, &r->seen);
  return status || !d->differentiable ? status : cq_cuda_particles_create(d, &r->first);
}

// Frees d->reference with all memory of reference grids, on device and host; does nothing if the world has none.
void cq_cuda_reference_destroy(cq_device *d) {
  cq_reference *r = d->reference;
  if (!r) return;
  cq_cuda_slice_release(d, r->seen);
  cq_cuda_slice_release(d, r->first);
  cq_memory *owned[] = {r->tables, r->reals, r->arenas, r->backward, r->touch, r->near};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_pool_give(&d->context->pool, owned[k]);
  void *of_host[] = {r->positions, r->first_node, r->order, r->rests, r->rim, r->rim_node, r->rim_scene, r};
  for (size_t k = 0; k < sizeof of_host / sizeof *of_host; k++) cq_free(of_host[k]);
  d->reference = NULL;
}

// Sets *out to the arrangement of a total Lagrangian world: the layout's order of particles, and blocks of
// CQ_TILE_NODES nodes in the place of tiles, which collect sums such as gradients of walls. The caller owns it, after a
// failure too.
static cq_status arrange(cq_device *d, cq_arrangement **out) {
  cq_reference *r = d->reference;
  const cq_shapes *s = &r->shapes;
  cudaStream_t stream = d->context->stream;
  cq_status status = cq_cuda_arrangement_create(d, out);
  if (status) return status;
  cq_arrangement *a = *out;
  a->sorted_at = 0;
  a->tile_count = a->block_count = s->nodes / CQ_TILE_NODES;
  status = cq_pool_take(&d->context->pool, (size_t)a->block_count * sizeof *a->tiles, "tiles", &a->by_tile);
  if (status) return status;
  a->tiles = (cq_tile *)a->by_tile->data;
  status = cq_cuda_check(cudaMemcpyAsync(a->order, r->order, (size_t)d->slots * sizeof *r->order,
                                         cudaMemcpyHostToDevice, stream), what);
  if (!status) cq_window_blocks(stream, cq_cuda_blocks(d, d->slots, 256), d->slots, a, s->scene);
  return status ? status : cq_cuda_check(cudaGetLastError(), what);
}

// Reserves device memory for the initial F of all particles (shapes.start), which the kernel reference_starts fills, if
// some particle begins deformed; else sets shapes.start to NULL, for the identity.
static cq_status keep_start(cq_device *d, const cq_values *values) {
  cq_reference *r = d->reference;
  const int32_t dim = d->model->dim;
  int32_t started = 0;
  for (int32_t s = 0; s < d->batch && !started; s++)
    for (int64_t k = 0; k < (int64_t)d->particles * dim * dim && !started; k++)
      started = values[s].deformation[k] != (k % (dim * dim) % (dim + 1) == 0);
  r->shapes.start = NULL;
  if (!started) return CQ_OK;
  const size_t bytes = (size_t)d->stride * (size_t)(dim * dim) * d->real_bytes;
  const cq_status status = cq_pool_reserve(&d->context->pool, &r->reals, bytes, what);
  if (status) return status;
  r->shapes.start = r->reals->data;
  return CQ_OK;
}

// Begins a rollout of a total Lagrangian world, after values were loaded as particles in the user's order into the live
// state: lays out the reference grids if positions have changed, computes the first state of their nodes from the
// particles, and makes it live, at step 0.
cq_status cq_cuda_reference_begin(cq_device *d, const cq_values *values) {
  cq_reference *r = d->reference;
  cq_arrangement *a = NULL;
  cq_slice *slice = NULL;
  r->read = 0;
  cq_status status = lay_out_all(d, values);
  if (!status) status = keep_start(d, values);
  if (!status) status = arrange(d, &a);
  if (!status) status = cq_cuda_slice_create(d, &slice);
  if (!status) {
    const cq_arrangement *from = d->arrangement;
    void *given = (r->first ? r->first : r->seen)->memory->data;
    const cq_moving m = {{d->live->memory->data, from->params, NULL},
                         {given, a->params, NULL},
                         {d->fields, d->params, 0},
                         d->slots,
                         from->material,
                         a->material,
                         a->order,
                         from->slot_of};
    d->kernels->move(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &m);
    const cq_given_particles particles = {given, a->params, d->params, NULL, NULL};
    d->kernels->reference_begin(d->context->stream, cq_cuda_blocks(d, d->slots, 64), &r->shapes, &particles,
                                slice->memory->data);
    status = cq_cuda_check(cudaGetLastError(), what);
  }
  if (!status) cq_cuda_resume(d, slice, a, 0);
  cq_cuda_slice_release(d, slice);
  cq_cuda_arrangement_release(d, a);
  return status;
}

// Launches the computation of all particles' x, v, F and C from a state of nodes to *out, valid until the next call.
cq_status cq_cuda_reference_observe(cq_device *d, const cq_slice *state, const cq_slice **out) {
  cq_reference *r = d->reference;
  *out = r->seen;
  d->kernels->reference_observe(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &r->shapes,
                                state->memory->data, r->seen->memory->data);
  return cq_cuda_check(cudaGetLastError(), "particles of a state");
}

// ---- failures -------------------------------------------------------------------------------------------------------

// Element `at` of an array of reals in the device's precision, in host memory, as a double.
static double number_at(const cq_device *d, const void *data, int64_t at) {
  return d->real_bytes == 4 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

// Sets x to the place of a node of a reference grid: its place at rest plus its displacement in `state`, a host copy.
static void node_at(const cq_device *d, const void *state, int32_t node, double x[3]) {
  for (int i = 0; i < d->model->dim; i++)
    x[i] = d->reference->rests[(int64_t)node * d->model->dim + i] + number_at(d, state, (int64_t)node * 4 + i);
}

#include "../engine/world/touch.inl"

// In a world with collisions: sets pair to the first two surface nodes of a scene, as indices into rim {count} and
// places {count}, that are nearer to each other than collision forces allow; leaves pair unchanged if there are none.
// CQ_OK or CQ_MEMORY.
static cq_status find_meeting(const cq_model *m, const cq_rim *rim, const cq_rim_places *places, int32_t count,
                              int32_t pair[2]) {
  static const double rounding = 1e-4;   // cells
  cq_near near = {};
  double *at = (double *)cq_alloc((size_t)count * (size_t)m->dim, sizeof *at, what);
  for (int64_t k = 0; k < (int64_t)count * m->dim && at; k++) at[k] = places[k / m->dim].node[k % m->dim];
  const cq_status status = at ? cq_near_update(&near, m, rim, at, count) : CQ_MEMORY;
  for (int32_t k = 0; k < near.count && pair[0] < 0; k++) {
    double square = 0;
    for (int i = 0; i < m->dim; i++) {
      const double way = at[near.pair[2 * k] * m->dim + i] - at[near.pair[2 * k + 1] * m->dim + i];
      square += way * way;
    }
    if (sqrt(square) > (CQ_NEAR_LEAST + rounding) * m->dx) continue;
    pair[0] = near.pair[2 * k];
    pair[1] = near.pair[2 * k + 1];
  }
  cq_near_free(&near);
  cq_free(at);
  return status;
}

// Looks for two surface cells that touch in a state, a host copy of nodes; step: its engine step. If there are any,
// sets d->health to the first pair and returns CQ_UNSTABLE with a sentence. CQ_OK: none; CQ_UNSUPPORTED: surfaces are
// stretched over more cells of the world than the table on the device holds.
static cq_status find_touch(cq_device *d, const void *state, int64_t step) {
  const cq_reference *r = d->reference;
  const cq_model *m = d->model;
  int64_t all = 0;
  cq_rim_places *places = (cq_rim_places *)cq_alloc((size_t)r->shapes.rims, sizeof *places, what);
  cq_status status = places ? CQ_OK : CQ_MEMORY;
  for (int32_t k = 0; k < r->shapes.rims && !status; k++) {
    const int32_t *node = r->rim_node + (int64_t)k * (1 + 2 * m->dim);
    double at[3], before[3][3], after[3][3];
    node_at(d, state, *node++, at);
    for (int i = 0; i < m->dim; i++) {
      node_at(d, state, *node++, before[i]);
      node_at(d, state, *node++, after[i]);
    }
    touch_place(m->dim, m->dx, at, before, after, &places[k]);
    all += places[k].all;
  }
  for (int32_t first = 0, end; first < r->shapes.rims && !status; first = end) {
    int32_t pair[2];
    int edge = 0;
    for (end = first; end < r->shapes.rims && r->rim_scene[end] == r->rim_scene[first];) end++;
    status = cq_touch_find(m, r->rim + first, places + first, end - first, pair, &edge);
    if (!status && pair[0] < 0 && m->collision_stiffness > 0)
      status = find_meeting(m, r->rim + first, places + first, end - first, pair);
    if (status || pair[0] < 0) continue;
    d->health = {};
    d->health.bad = CQ_HEALTH_TOUCHES;
    d->health.scene = r->rim_scene[first];
    d->health.step = step;
    d->health.particle = r->rim[first + pair[0]].particle;
    d->health.value = r->rim[first + pair[1]].particle;
    status = cq_health_fail(&d->health, d->batch);
  }
  cq_free(places);
  if (!status && all > r->shapes.touch_size)
    status = cq_fail(CQ_UNSUPPORTED,
                     "the surfaces of bodies are stretched over %lld cells of the world, and on CUDA at most %lld are "
                     "looked at for surfaces that meet: take device \"cpu\", or larger cells",
                     (long long)all, (long long)r->shapes.touch_size);
  return status;
}

// Finds on the host why the check of surfaces stopped a run at this state of nodes: two surfaces meet, or a particle is
// outside of the world. Returns CQ_UNSTABLE with a sentence, or the status of another error.
static cq_status diagnose_surfaces(cq_device *d, const cq_slice *state) {
  void *data = cq_alloc(cq_slice_size(d), 1, "looking for what failed");
  const cq_slice *particles;
  cq_status status = data ? cq_cuda_check(cudaMemcpy(data, state->memory->data, cq_slice_size(d),
                                                     cudaMemcpyDeviceToHost), "looking for what failed")
                          : CQ_MEMORY;
  if (!status) status = find_touch(d, data, d->step);
  cq_free(data);
  if (!status) status = cq_cuda_reference_observe(d, state, &particles);
  return status ? status : cq_cuda_diagnose(d, particles, NULL);
}

// Finds what failed in the engine step after the live state: surfaces that meet, or a particle. after: the state of
// nodes after that step. Returns CQ_UNSTABLE with a sentence, or the status of an error that prevented the search.
cq_status cq_cuda_reference_diagnose(cq_device *d, const cq_slice *after) {
  cq_reference *r = d->reference;
  const cq_slice *in, *out;
  cq_slice *before = NULL;
  if (d->progress->touches != INT_MAX)
    return diagnose_surfaces(d, d->progress->touches <= d->progress->bad ? d->live : after);
  // particles of the states before and after
  cq_status status = cq_cuda_reference_observe(d, d->live, &in);
  if (!status) status = cq_cuda_particles_create(d, &before);
  if (!status) {
    cq_slice *seen = r->seen;
    r->seen = before;
    before = seen;
    status = cq_cuda_reference_observe(d, after, &out);
  }
  if (!status) status = cq_cuda_diagnose(d, in, out);
  cq_cuda_slice_release(d, before);
  return status;
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Sets `bytes` of device memory to zero.
static cq_status clear(cq_device *d, void *data, size_t bytes) {
  return cq_cuda_check(cudaMemsetAsync(data, 0, bytes, d->context->stream), "clearing the adjoint");
}

// Begins a reverse pass on reference grids: clears the adjoints of nodes and of particles' places in their grids, and
// notes from d->wanted whether gradients of positions, F and volumes are wanted.
cq_status cq_cuda_reference_begin_adjoint(cq_device *d) {
  cq_reference *r = d->reference;
  r->read = 0;
  r->shapes.places = (d->wanted & cq_bit(CQ_FIELD_POSITION)) != 0;
  r->shapes.starts = (d->wanted & cq_bit(CQ_FIELD_DEFORMATION)) != 0;
  r->shapes.volumes = (d->wanted & cq_bit(CQ_FIELD_VOLUME)) != 0;
  return clear(d, r->backward->data, r->backward->bytes);
}

// Multiplies the adjoint of the nodes of the live state by a factor.
cq_status cq_cuda_reference_discount(cq_device *d, double factor) {
  const int64_t count = 2 * (int64_t)d->reference->shapes.nodes * 4;
  d->kernels->discount(d->context->stream, cq_cuda_blocks(d, count, 256), d->reference->shapes.adj, count, factor);
  return cq_cuda_check(cudaGetLastError(), "the decay of the adjoint");
}

// Sets, in the arguments n of the kernels for the adjoint's norm, the adjoints of the nodes of reference grids.
void cq_cuda_reference_norm(const cq_device *d, cq_norming *n) {
  const cq_shapes *shapes = &d->reference->shapes;
  n->nodes = shapes->adj, n->node_scene = shapes->scene, n->node_count = shapes->nodes;
}

// Moves the gradients that readouts have added to the adjoint of particles to the adjoint of the live state's nodes,
// from which the particles were computed. Does nothing if no readout has added any since the last call.
cq_status cq_cuda_reference_settle(cq_device *d) {
  cq_reference *r = d->reference;
  if (!r->read) return CQ_OK;
  r->read = 0;
  d->kernels->reference_settle(d->context->stream, cq_cuda_blocks(d, r->shapes.tiles, 1), &r->shapes,
                               d->live->memory->data, d->adj->data);
  return cq_cuda_check(cudaGetLastError(), "the adjoint of a readout");
}

// At step 0 of the reverse pass: turns the adjoint of the nodes' first state into the adjoint of the particles that it
// was computed from, in d->adj, and adds to the gradients of their masses.
cq_status cq_cuda_reference_finish(cq_device *d) {
  cq_reference *r = d->reference;
  cq_status status = cq_cuda_reference_settle(d);
  if (status) return status;
  const cq_given_particles particles = {r->first->memory->data, d->arrangement->params, d->params, d->adj->data,
                                        d->params_adj->data};
  d->kernels->reference_finish(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &r->shapes, &particles,
                               d->live->memory->data);
  return cq_cuda_check(cudaGetLastError(), "the gradients of the first state");
}
