// arrange: sorting the live state by tile.
#include "batch.h"
#include "window.h"
#include <limits.h>

enum {
  // tiles of a window around the whole world that cost less than to look where the particles are
  WINDOW_WORLD = 1 << 18,
};

static const char *const what = "sorting";

// The number of thread blocks for a kernel that works on all particle slots (cq_cuda_blocks).
static int32_t blocks_of(const cq_device *d) { return cq_cuda_blocks(d, d->slots, 256); }

// The arguments of the kernels that sort the particles of the live state: sizes, positions, and the work memory of each
// slot. Window and tables of tiles are set later (set_window, reserve_window).
static cq_sorting sorting_of(const cq_device *d) {
  const cq_model *m = d->model;
  cq_sorting s = {};
  s.dim = m->dim;
  s.slots = d->slots;
  s.particles = d->particles;
  s.inv_dx = 1 / m->dx;
  for (int i = 0; i < 3; i++) {
    s.limit[i] = m->cells[i] * (1 + 1e-6);
    s.size[i] = 1;
  }
  s.state = d->live->memory->data;
  s.order = d->arrangement->order;
  s.key = (int32_t *)d->sorting->data;
  s.rank = s.key + d->stride;
  s.placed = s.rank + d->stride;
  s.by_cell = s.placed + d->stride;
  s.cell = (uint8_t *)(s.by_cell + d->stride);
  s.found = (cq_found *)d->found->data;
  return s;
}

// Copies the results of sorting (box around the particles, counts of tiles) between d->found on the device and
// d->found_host in the direction `kind`; waits for a copy to the host.
static cq_status copy_found(cq_device *d, cudaMemcpyKind kind) {
  const cq_status status =
      kind == cudaMemcpyHostToDevice
          ? cq_cuda_check(cudaMemcpyAsync(d->found->data, d->found_host, sizeof(cq_found), kind, d->context->stream),
                          what)
          : cq_cuda_check(cudaMemcpyAsync(d->found_host, d->found->data, sizeof(cq_found), kind, d->context->stream),
                          what);
  if (status || kind == cudaMemcpyHostToDevice) return status;
  return cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
}

// Sets the window, the box of grid tiles that sorting covers: tiles lower to upper along each axis, which hold all
// particles, and one more on each side, since particles reach nodes of neighbouring tiles.
static void set_window(cq_sorting *s, const int32_t lower[3], const int32_t upper[3]) {
  for (int i = 0; i < s->dim; i++) {
    s->lower[i] = lower[i] - 1;
    s->size[i] = upper[i] + 1 - s->lower[i] + 1;
  }
}

// The number of tiles in the windows of all scenes, as a double so that it cannot overflow.
static double window_tiles(const cq_device *d, const cq_sorting *s) {
  return (double)d->batch * s->size[0] * s->size[1] * s->size[2];
}

// Returns CQ_MEMORY with a sentence: the box around all particles (window of s) has too many grid nodes for sorting.
static cq_status fail_window(const cq_device *d, const cq_sorting *s) {
  return cq_fail(
      CQ_MEMORY,
      "out of memory: the box around all particles of all scenes holds %.3g grid nodes, which is more than the "
      "GPU can sort by; keep them closer together, or make dx larger",
      window_tiles(d, s) * CQ_TILE_NODES);
}

// Sets the window of s, the box of tiles to sort by: all of a small world, and *outside stays; else a box around all
// particles, and *outside is 0, or 1 if one has left the world (then all of it is the window). Clears d->found.
static cq_status find_window(cq_device *d, cq_sorting *s, int32_t *outside) {
  const int32_t side = cq_tile_side(s->dim);
  int32_t lower[3], upper[3];
  for (int i = 0; i < 3; i++) {
    lower[i] = -1;
    upper[i] = (d->model->cells[i] - 1) / side;
  }
  set_window(s, lower, upper);
  *d->found_host = {0, {INT_MAX, INT_MAX, INT_MAX}, {INT_MIN, INT_MIN, INT_MIN}, 0, 0};
  cq_status status = copy_found(d, cudaMemcpyHostToDevice);
  if (status || window_tiles(d, s) <= WINDOW_WORLD) return status;
  d->kernels->box(d->context->stream, blocks_of(d), s);
  status = cq_cuda_check(cudaGetLastError(), what);
  if (!status) status = copy_found(d, cudaMemcpyDeviceToHost);
  *outside = d->found_host->outside;
  if (!status && !*outside) set_window(s, d->found_host->lower, d->found_host->upper);
  return status;
}

// Reserves device memory for the tables of all tiles in the window of s, sets their addresses and sizes in s, and
// clears the tiles' counts of particles. CQ_MEMORY if the window has too many tiles.
static cq_status reserve_window(cq_device *d, cq_sorting *s) {
  if (window_tiles(d, s) > INT_MAX - CQ_SCAN) return fail_window(d, s);
  s->tiles = s->size[0] * s->size[1] * s->size[2];
  s->total = d->batch * s->tiles;
  const size_t ints = 3 * (size_t)s->total + 3 * (size_t)cq_scan_blocks(s->total);
  const cq_status status = cq_pool_reserve(&d->context->pool, &d->window, ints * sizeof(int32_t), what);
  if (status) return status == CQ_MEMORY ? fail_window(d, s) : status;
  s->count = (int32_t *)d->window->data;
  s->first = s->count + s->total;
  s->number = s->first + s->total;
  s->partial = s->number + s->total;
  return cq_cuda_check(cudaMemsetAsync(s->count, 0, (size_t)s->total * sizeof(int32_t), d->context->stream), what);
}

// Finds the grid tile and the cell of every particle, and numbers the tiles that are needed, in the tables of s; waits
// until their counts are in d->found_host. *outside: set to 1 if a particle has left the world, else 0.
static cq_status find_tiles(cq_device *d, cq_sorting *s, int32_t *outside) {
  *outside = 0;
  cq_status status = find_window(d, s, outside);
  if (status || *outside) return status;
  status = reserve_window(d, s);
  if (status) return status;
  d->kernels->key(d->context->stream, blocks_of(d), s);
  cq_window_number(d->context->stream, s);
  status = cq_cuda_check(cudaGetLastError(), what);
  if (!status) status = copy_found(d, cudaMemcpyDeviceToHost);
  *outside = d->found_host->outside;
  return status;
}

// Makes a new arrangement (order of particles in device memory), *out, from the tables of s: the tiles that find_tiles
// found, their neighbours, and which of the user's particles each slot holds. The caller owns it, after a failure too.
static cq_status make_arrangement(cq_device *d, const cq_sorting *s, cq_arrangement **out) {
  cq_status status = cq_cuda_arrangement_create(d, out);
  if (status) return status;
  cq_arrangement *a = *out;
  a->sorted_at = d->before + d->step;
  a->tile_count = d->found_host->tiles;
  a->block_count = d->found_host->tiles + d->found_host->ring;
  const size_t blocks = (size_t)a->block_count;
  const size_t size = sizeof *a->tiles + CQ_TILE_NODES * sizeof *a->wall_entries +
                      CQ_NEIGHBORS_MAX * sizeof *a->neighbors;
  status = cq_pool_take(&d->context->pool, blocks * size, "tiles", &a->by_tile);
  if (status) return status;
  a->tiles = (cq_tile *)a->by_tile->data;
  a->wall_entries = (int64_t *)(a->tiles + blocks);
  a->neighbors = (int32_t *)(a->wall_entries + blocks * CQ_TILE_NODES);
  cudaStream_t stream = d->context->stream;
  cq_window_tiles(stream, cq_cuda_blocks(d, s->total, 256), s, a->tiles, a->neighbors);
  cq_window_walls(stream, a->block_count, d->model->dim, d->context->map, a->tiles, a->wall_entries);
  cq_window_order(stream, cq_cuda_blocks(d, d->slots, 256), s, a);
  return cq_cuda_check(cudaGetLastError(), what);
}

// Launches copies of the live state into `next`, and of the particles' constants and materials into the arrangement
// `to`, in the new order of particles that `to` holds.
static cq_status move_all(cq_device *d, const cq_arrangement *to, const cq_slice *next) {
  const cq_arrangement *from = d->arrangement;
  const cq_moving m = {{d->live->memory->data, from->params, cq_internal_of(d, d->live->memory)},
                       {next->memory->data, to->params, cq_internal_of(d, next->memory)},
                       {d->fields, d->params, d->internals},
                       d->slots,
                       from->material,
                       to->material,
                       to->order,
                       from->slot_of};
  d->kernels->move(d->context->stream, blocks_of(d), &m);
  return cq_cuda_check(cudaGetLastError(), what);
}

// Sorts the particles of the live state by tile and cell, and makes the sorted copy live. CQ_UNSTABLE, with a sentence
// that names the particle, if one is outside of the world.
static cq_status arrange(cq_device *d) {
  cq_sorting s = sorting_of(d);
  int32_t outside;
  cq_status status = find_tiles(d, &s, &outside);
  if (status) return status;
  if (outside) return cq_cuda_diagnose(d, d->live, NULL);
  cq_arrangement *a = NULL;
  cq_slice *next = NULL;
  status = make_arrangement(d, &s, &a);
  if (!status) status = cq_cuda_slice_create(d, &next);
  if (!status) status = move_all(d, a, next);
  if (!status) cq_cuda_resume(d, next, a, d->step);
  cq_cuda_slice_release(d, next);
  cq_cuda_arrangement_release(d, a);
  return status;
}

// Sorts the particles of the live state by tile and cell, and times that as CQ_PHASE_SORT. Called when a rollout begins
// and whenever particles have drifted too far from their tiles.
cq_status cq_cuda_arrange(cq_device *d) {
  cq_status status = cq_cuda_timer_begin(d->context, CQ_PHASE_SORT);
  if (!status) status = arrange(d);
  return status ? status : cq_cuda_timer_end(d->context);
}

// Makes a new state of particles, whose memory is not filled, the live one at engine step 0. Its arrangement has the
// user's order of particles and their materials, but no tiles. The caller loads values and then sorts.
cq_status cq_cuda_arrange_first(cq_device *d) {
  cq_slice *slice = NULL;
  cq_arrangement *a = NULL;
  cq_status status = cq_cuda_particles_create(d, &slice);
  if (!status) status = cq_cuda_arrangement_create(d, &a);
  if (!status) {
    a->sorted_at = -1;
    cq_window_first(d->context->stream, blocks_of(d), d->slots, d->particles, d->context->material, a);
    status = cq_cuda_check(cudaGetLastError(), what);
  }
  if (!status) cq_cuda_resume(d, slice, a, 0);
  cq_cuda_slice_release(d, slice);
  cq_cuda_arrangement_release(d, a);
  return status;
}
