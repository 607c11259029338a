// arrange: sorts the particles of a scene by cell, and finds the nodes that they reach.
#include "arrange.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  REACH_BELOW = CQ_MARGIN,          // nodes below a base cell that its particles may reach
  REACH_ABOVE = 2 + CQ_MARGIN,      // nodes above it
  ROW_TAIL = 1,                     // a row is four nodes, a stencil three: one more is read, with weight zero
};

// ---- memory ---------------------------------------------------------------------------------------------------------

// Makes *array hold at least `wanted` elements of `size` bytes: where *capacity (in elements) is less, replaces it by a
// larger array of zeros, and the old contents are lost. CQ_OK, or CQ_MEMORY with a sentence that names `what`.
static cq_status reserve_zero(void **array, int64_t *capacity, int64_t wanted, size_t size, const char *what) {
  if (*capacity >= wanted) return CQ_OK;
  const int64_t room = wanted + wanted / 4;
  cq_free(*array);
  *array = cq_alloc((size_t)room, size, what);
  *capacity = *array ? room : 0;
  return *array ? CQ_OK : CQ_MEMORY;
}

// As reserve_zero, for two arrays over grid nodes that share one capacity; `second` grows only if wanted_second is 1.
// wanted: number of nodes; size: bytes of a node. CQ_OK or CQ_MEMORY.
static cq_status reserve_two(void **array, void **second, int wanted_second, int64_t *capacity, int64_t wanted,
                             size_t size) {
  int64_t other = *capacity;
  cq_status status = reserve_zero(array, capacity, wanted, size, "grid");
  if (!status && wanted_second) status = reserve_zero(second, &other, wanted, size, "grid");
  if (status) *capacity = 0;
  return status;
}

// Makes all arrays over grid nodes large enough for the live arrangement: the slab (private node array that particles
// scatter to) of each range of chunks, and the shared grids. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_reserve(cq_scene *s) {
  const cq_arrangement *a = s->arrangement;
  const size_t node = 4 * (size_t)s->kernels->real_bytes;
  const int64_t plane = s->model->dim == 3 ? (int64_t)a->size[1] * a->size[2] : a->size[1];
  const int keeps = cq_keeps_unresolved(s->model);
  cq_status status = CQ_OK;
  for (int32_t r = 0; r < s->ranges && !status; r++)
    status = reserve_two(&s->slab[r], &s->inertia_slab[r], keeps || (r < s->first_range && cq_is_mixed(s->model)),
                         &s->slab_capacity[r], plane * a->slab_size[r] + 4, node);
  const int64_t wanted = plane * a->size[0] + 4;
  int64_t capacity = s->carrier_capacity;
  if (!status && cq_is_mixed(s->model) && s->adj)
    status = reserve_zero(&s->carrier_q, &capacity, wanted, node, "grid");
  if (!status && cq_is_mixed(s->model))
    status = reserve_two(&s->carrier_change, &s->carrier_blend, 1, &s->carrier_capacity, wanted, node);
  capacity = s->grid_capacity;
  if (!status && s->adj) status = reserve_two(&s->grid_q, &s->inertia_q, keeps, &capacity, wanted, node);
  if (!status) status = reserve_two(&s->grid_v, &s->inertia_v, keeps, &s->grid_capacity, wanted, node);
  if (status) s->grid_capacity = s->carrier_capacity = 0;      // arrays of one capacity may have different ones now
  return status;
}

// ---- order ----------------------------------------------------------------------------------------------------------

// Particles are sorted by base cell, first axis slowest; particles of one cell keep their order. A counting sort deals
// them to planes of one x, then each plane is sorted by z, and by y. All of these sorts are stable, so the order does
// not depend on how the work is split; and none of them takes time proportional to the volume of the window.

// the bounding box of base nodes, both ends included; z of the last axis stands at 2
typedef struct box {
  int32_t lower[3], upper[3];
} box;

// Returns the bounding box of the base nodes (lowest nodes of the stencils) of all particles, joined from the boxes of
// all ranges of chunks in s->partial, which find_bases has set.
static box join_boxes(const cq_scene *s) {
  box all = {{INT32_MAX, INT32_MAX, INT32_MAX}, {INT32_MIN, INT32_MIN, INT32_MIN}};
  for (int32_t r = 0; r < s->ranges; r++)
    for (int i = 0; i < 3; i++) {
      if (s->partial[r].lower[i] < all.lower[i]) all.lower[i] = s->partial[r].lower[i];
      if (s->partial[r].upper[i] > all.upper[i]) all.upper[i] = s->partial[r].upper[i];
    }
  return all;
}

// Returns the coordinate of the base node (lowest node of the stencil) of the particle in `slot`, along axis 0, 1, or 2
// for the last axis, also in 2D. base: s->base. Unsigned arithmetic, because dividing signed numbers takes longer.
static int32_t base_at(const int32_t *base, int32_t slot, uint32_t axis) {
  return base[((uint32_t)slot / CQ_CHUNK * 3 + axis) * CQ_CHUNK + (uint32_t)slot % CQ_CHUNK];
}

// Returns the first particle slot (index in the sorted order) of a range of chunks.
static int32_t range_begin(const cq_scene *s, int32_t range) { return s->range_start[range] * CQ_CHUNK; }

// Returns one past the last particle slot of a range of chunks, without the padding slots at the end.
static int32_t range_end(const cq_scene *s, int32_t range) {
  const int32_t end = s->range_start[range + 1] * CQ_CHUNK;
  return end < cq_scene_spatial_end(s) ? end : cq_scene_spatial_end(s);
}

// Returns row number `range` of s->tally, counters for a counting sort of a range's particles by the coordinate of
// their base nodes along an axis. sort_planes uses the row of a worker's rank.
static int32_t *tally_of(const cq_scene *s, int32_t range) { return s->tally + range * s->tally_stride; }

// First step of the sort along x, for a range of chunks: counts its particles by plane, all base nodes with the same x,
// in the range's row of counters (tally_of). b: bounding box of all base nodes.
static void count_planes(const cq_scene *s, int32_t range, const box *b) {
  const int32_t *base = s->base, end = range_end(s, range), lower = b->lower[0];
  int32_t *tally = tally_of(s, range);
  memset(tally, 0, (size_t)(b->upper[0] - lower + 1) * sizeof *tally);
  for (int32_t slot = range_begin(s, range); slot < end; slot++) tally[base_at(base, slot, 0) - lower]++;
}

// Second step of the sort along x, from the counts of all ranges: sets s->plane to the first new slot of each plane,
// and replaces each range's counts by the new slots of its first particle in each plane.
static void place_planes(cq_scene *s, const box *b) {
  const int32_t planes = b->upper[0] - b->lower[0] + 1;
  int32_t sum = s->first_chunk * CQ_CHUNK;
  for (int32_t x = 0; x < planes; x++) {
    s->plane[x] = sum;
    for (int32_t r = s->first_range; r < s->ranges; r++) {
      const int32_t count = tally_of(s, r)[x];
      tally_of(s, r)[x] = sum;
      sum += count;
    }
  }
  s->plane[planes] = sum;
}

// Returns the array into which place_slots writes the old slots, sorted by plane. Each plane is then sorted along its
// other axes (one in 2D, two in 3D), from s->source to s->source_other or back, so that the result ends in s->source.
static int32_t *slots_by_plane(const cq_scene *s) { return s->model->dim == 3 ? s->source : s->source_other; }

// Third step of the sort along x, for a range of chunks: writes its old slots into slots_by_plane, at the new slots
// that place_planes has set for each plane.
static void place_slots(cq_scene *s, int32_t range, const box *b) {
  const int32_t *base = s->base, end = range_end(s, range), lower = b->lower[0];
  int32_t *tally = tally_of(s, range), *out = slots_by_plane(s);
  for (int32_t slot = range_begin(s, range); slot < end; slot++) out[tally[base_at(base, slot, 0) - lower]++] = slot;
}

// a counting sort of some slots: s->base, the box of base nodes, how many slots, and counters
typedef struct {
  const int32_t *base;
  const box *b;
  int32_t count, *tally;
} sorting;

// Stable counting sort of s->count slots by the coordinate of their base node along `axis`, from `in` to `out`.
static void sort_along(const sorting *s, uint32_t axis, const int32_t *in, int32_t *out) {
  const int32_t *base = s->base, lower = s->b->lower[axis], size = s->b->upper[axis] - lower + 1, count = s->count;
  int32_t *tally = s->tally;
  memset(tally, 0, (size_t)size * sizeof *tally);
  for (int32_t k = 0; k < count; k++) tally[base_at(base, in[k], axis) - lower]++;
  for (int32_t i = 0, sum = 0; i < size; i++) {
    const int32_t here = tally[i];
    tally[i] = sum;
    sum += here;
  }
  for (int32_t k = 0; k < count; k++) out[tally[base_at(base, in[k], axis) - lower]++] = in[k];
}

// Sorts the slots of each plane along its other axes, into s->source. Each worker sorts the planes whose first slot
// lies in its share of the particles.
static void sort_planes(cq_scene *s, const cq_worker *worker, const box *b) {
  int begin, end;
  cq_worker_share(worker, (int)cq_scene_spatial_count(s), &begin, &end);
  begin += s->first_chunk * CQ_CHUNK;
  end += s->first_chunk * CQ_CHUNK;
  for (int32_t x = 0; x <= b->upper[0] - b->lower[0]; x++) {
    const int32_t at = s->plane[x], count = s->plane[x + 1] - at;
    if (at < begin || at >= end || count == 0) continue;
    int32_t *from = slots_by_plane(s) + at, *to = (slots_by_plane(s) == s->source ? s->source_other : s->source) + at;
    const sorting plane = {s->base, b, count, tally_of(s, worker->rank)};
    sort_along(&plane, 2, from, to);
    if (s->model->dim == 3) sort_along(&plane, 1, to, from);
  }
}

// ---- columns --------------------------------------------------------------------------------------------------------

// Returns the row of s->reach for a range of chunks and plane x, from 0, of the window (the box of nodes in use).
// row[0]: interval of the plane's columns y that the range's particles can reach; row[1 + y]: interval, along the last
// axis of the world, of base nodes of those that can reach column y. Lower above upper: empty. add_reach fills rows.
static cq_reach *reach_of(const cq_scene *s, const cq_arrangement *a, int32_t range, int32_t x) {
  const int32_t ny = s->model->dim == 3 ? a->size[1] : 1;
  return s->reach + (s->reach_start[range] + x - a->slab_lower[range]) * (1 + ny);
}

// Sets a->slab_lower and a->slab_size, the planes of the window that each range of chunks can scatter to, and makes
// room for the rows of s->reach. Reads s->plane, and of reference grids s->partial. CQ_OK or CQ_MEMORY.
static cq_status set_slabs(cq_scene *s, cq_arrangement *a) {
  const int32_t ny = s->model->dim == 3 ? a->size[1] : 1;
  int64_t rows = 0;
  int32_t first = 0, last = 0;
  for (int32_t r = 0; r < s->ranges; r++) {
    if (r < s->first_range) {
      const cq_partial *carriers = &s->partial[r];
      const int any = carriers->lower[0] <= carriers->upper[0];
      a->slab_lower[r] = any ? carriers->lower[0] - REACH_BELOW - a->lower[0] : 0;
      a->slab_size[r] = any ? carriers->upper[0] - carriers->lower[0] + 1 + REACH_BELOW + REACH_ABOVE : 0;
    } else {
      while (s->plane[first + 1] <= range_begin(s, r)) first++;
      while (s->plane[last + 1] < range_end(s, r)) last++;
      a->slab_lower[r] = first;
      a->slab_size[r] = last - first + 1 + REACH_BELOW + REACH_ABOVE;
    }
    s->reach_start[r] = rows;
    rows += a->slab_size[r];
  }
  return reserve_zero((void **)&s->reach, &s->reach_capacity, rows * (1 + ny), sizeof *s->reach, "grid columns");
}

// Adds particles to the rows of s->reach of a range: their base nodes lie in column at = (x, y) of the window, from
// bases.lower to bases.upper along the last axis, counted in the world, and they can reach columns from REACH_BELOW
// below to REACH_ABOVE above it.
static void add_reach(const cq_scene *s, const cq_arrangement *a, int32_t range, const int32_t at[2], cq_reach bases) {
  const int flat = s->model->dim == 2;
  const int32_t from = flat ? 0 : at[1] - REACH_BELOW, to = flat ? 0 : at[1] + REACH_ABOVE;
  for (int32_t x = at[0] - REACH_BELOW; x <= at[0] + REACH_ABOVE; x++) {
    cq_reach *row = reach_of(s, a, range, x), *column = row + 1;
    if (row->lower > row->upper) *row = (cq_reach){from, from - 1};
    while (row->upper < to) column[++row->upper] = (cq_reach){INT32_MAX, INT32_MIN};
    while (row->lower > from) column[--row->lower] = (cq_reach){INT32_MAX, INT32_MIN};
    for (int32_t y = from; y <= to; y++) {
      if (bases.lower < column[y].lower) column[y].lower = bases.lower;
      if (bases.upper > column[y].upper) column[y].upper = bases.upper;
    }
  }
}

// Fills the rows of s->reach of a range of chunks from its particles, which are sorted: those with base nodes in one
// column (x, y) follow each other, lowest base node along the last axis first.
static void find_reach(const cq_scene *s, const cq_arrangement *a, int32_t range) {
  const int32_t *base = s->base, *source = s->source, end = range_end(s, range);
  for (int32_t x = 0; x < a->slab_size[range]; x++) *reach_of(s, a, range, a->slab_lower[range] + x) = (cq_reach){1, 0};
  for (int32_t slot = range_begin(s, range); slot < end;) {
    const int32_t x = base_at(base, source[slot], 0), y = base_at(base, source[slot], 1);
    const int32_t at[2] = {x - a->lower[0], s->model->dim == 3 ? y - a->lower[1] : 0};
    cq_reach bases = {.lower = base_at(base, source[slot], 2)};
    while (++slot < end && base_at(base, source[slot], 0) == x && base_at(base, source[slot], 1) == y) continue;
    bases.upper = base_at(base, source[slot - 1], 2);
    add_reach(s, a, range, at, bases);
  }
}

// As find_reach, for a block of nodes of reference grids: for those nodes that scatter to the spatial grid (carriers).
static void find_carrier_reach(const cq_scene *s, const cq_arrangement *a, int32_t block) {
  const cq_reference *r = &s->reference;
  for (int32_t x = 0; x < a->slab_size[block]; x++) *reach_of(s, a, block, a->slab_lower[block] + x) = (cq_reach){1, 0};
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++) {
      const int32_t *base = r->node_base + 3 * (r->nodes[k].node + l);
      if (!(r->nodes[k].carriers >> l & 1)) continue;
      const int32_t at[2] = {base[0] - a->lower[0], s->model->dim == 3 ? base[1] - a->lower[1] : 0};
      add_reach(s, a, block, at, (cq_reach){base[2], base[2]});
    }
}

// Appends a copy of *column to an arrangement's list of columns of nodes, which grows as needed. CQ_OK or CQ_MEMORY.
static cq_status push_column(cq_arrangement *a, const cq_column *column) {
  if (a->column_count == a->column_capacity) {
    const int32_t capacity = a->column_capacity ? a->column_capacity * 2 : 256;
    cq_column *columns = cq_alloc((size_t)capacity, sizeof *columns, "grid columns");
    if (!columns) return CQ_MEMORY;
    if (a->columns) memcpy(columns, a->columns, (size_t)a->column_count * sizeof *columns);
    cq_free(a->columns);
    a->columns = columns;
    a->column_capacity = capacity;
  }
  a->columns[a->column_count++] = *column;
  return CQ_OK;
}

// Sets a->column_block: splits the columns of an arrangement into s->ranges blocks with about as many nodes each. The
// grid pass works block by block.
static void split_columns(const cq_scene *s, cq_arrangement *a) {
  int32_t c = 0;
  for (int32_t b = 0; b < s->ranges; b++) {
    a->column_block[b] = c;
    const int64_t until = a->record_nodes * (b + 1) / s->ranges;
    while (c < a->column_count && a->columns[c].record < until) c++;
  }
  a->column_block[s->ranges] = a->column_count;
}

// Sets an arrangement's window, the box of all nodes that particles can reach until the next sort, from that of their
// base nodes, lower to upper (last axis at 2); and a->room: cells from the particles to the world's edge, at least.
static void set_window(const cq_scene *s, cq_arrangement *a, const int32_t lower[3], const int32_t upper[3]) {
  const int last = s->model->dim - 1;
  a->room = INFINITY;
  for (int i = 0; i < s->model->dim; i++) {
    const int from = i == last ? 2 : i;
    // particles of base b lie between b + 1/2 and b + 3/2
    a->room = fmin(a->room, fmin(lower[from] + 0.5, s->model->cells[i] - (upper[from] + 1.5)));
    a->lower[i] = lower[from] - REACH_BELOW;
    a->size[i] = upper[from] + REACH_ABOVE - a->lower[i] + 1;
  }
  // the last axis holds whole rows after its highest base
  a->size[last] = (a->size[last] + ROW_TAIL + 3) / 4 * 4;
  // not a power of two, for rows a power of two apart share cache sets
  if ((a->size[last] & (a->size[last] - 1)) == 0 && a->size[last] >= 64) a->size[last] += 4;
}

// Returns the first of the wall map's entries [begin, end), which belong to one column and are sorted by z, whose z is
// not below `z`; `end` if there is none. Starts where that entry is if each node has one, as most nodes of a wall have.
static int64_t first_from(const cq_wall_map *map, int64_t begin, int64_t end, int32_t z) {
  if (begin == end) return end;
  int64_t at = begin + z - map->node[begin].z;
  at = at < begin ? begin : at > end ? end : at;
  while (at > begin && map->node[at - 1].z >= z) at--;
  while (at < end && map->node[at].z < z) at++;
  return at;
}

// Cuts each column's interval of wall map entries to those of the column's own nodes. Entries of different columns are
// far apart in memory; add_column has prefetched them for this pass.
static void clip_walls(const cq_scene *s, cq_arrangement *a) {
  for (int32_t c = 0; c < a->column_count; c++) {
    cq_column *column = &a->columns[c];
    column->wall_begin = first_from(&s->model->map, column->wall_begin, column->wall_end, column->z);
    column->wall_end = first_from(&s->model->map, column->wall_begin, column->wall_end, column->z + column->count);
  }
}

// Appends column (x, y) of the window to the arrangement if particles of any range can reach it, with its nodes along
// the last axis and its wall map entries. CQ_OK or CQ_MEMORY.
static cq_status add_column(cq_scene *s, cq_arrangement *a, int32_t x, int32_t y) {
  const int32_t dim = s->model->dim, last = dim - 1;
  cq_column column = {.x = x + a->lower[0], .y = dim == 3 ? y + a->lower[1] : 0};
  cq_reach bases = {INT32_MAX, INT32_MIN};
  for (int32_t r = 0; r < s->ranges; r++) {
    if (x < a->slab_lower[r] || x >= a->slab_lower[r] + a->slab_size[r]) continue;
    const cq_reach *row = reach_of(s, a, r, x), *here = &row[1 + y];
    if (y < row->lower || y > row->upper || here->lower > here->upper) continue;
    column.ranges |= 1u << r;
    if (here->lower < bases.lower) bases.lower = here->lower;
    if (here->upper > bases.upper) bases.upper = here->upper;
  }
  if (!column.ranges) return CQ_OK;
  column.z = bases.lower - REACH_BELOW;
  column.count = (bases.upper + REACH_ABOVE + ROW_TAIL - column.z + 1 + 3) / 4 * 4;
  // a column must not run into the next one: start lower where the window ends
  const int32_t over = column.z - a->lower[last] + column.count - a->size[last];
  if (over > 0) column.z -= over;
  column.node = ((int64_t)x * (dim == 3 ? a->size[1] : 1) + y) * a->size[last] + column.z - a->lower[last];
  column.record = a->record_nodes;
  a->record_nodes += column.count;
  cq_wall_map_column(&s->model->map, column.x, column.y, &column.wall_begin, &column.wall_end);
  if (column.wall_begin < column.wall_end) {
    __builtin_prefetch(s->model->map.node + column.wall_begin);
    __builtin_prefetch(s->model->map.node + column.wall_end - 1);
  }
  return push_column(a, &column);
}

// Lists the columns of the window that particles of any range can reach, from s->reach, and splits them into blocks.
// CQ_OK or CQ_MEMORY.
static cq_status find_columns(cq_scene *s, cq_arrangement *a) {
  a->record_nodes = 0;
  for (int32_t x = 0; x < a->size[0]; x++) {
    cq_reach ys = {INT32_MAX, INT32_MIN};
    for (int32_t r = 0; r < s->ranges; r++) {
      if (x < a->slab_lower[r] || x >= a->slab_lower[r] + a->slab_size[r]) continue;
      const cq_reach *row = reach_of(s, a, r, x);
      if (row->lower > row->upper) continue;
      if (row->lower < ys.lower) ys.lower = row->lower;
      if (row->upper > ys.upper) ys.upper = row->upper;
    }
    for (int32_t y = ys.lower; y <= ys.upper; y++) {
      const cq_status status = add_column(s, a, x, y);
      if (status) return status;
    }
  }
  split_columns(s, a);
  clip_walls(s, a);
  return CQ_OK;
}

// ---- sorting --------------------------------------------------------------------------------------------------------

// Returns CQ_OK if the number of nodes of the window fits a 32-bit index, else CQ_MEMORY and a sentence.
static cq_status check_window(const cq_scene *s, const cq_arrangement *a) {
  const int64_t ny = s->model->dim == 3 ? a->size[1] : 1, nodes = a->size[0] * ny * a->size[s->model->dim - 1];
  if (nodes < INT32_MAX) return CQ_OK;
  return cq_fail(CQ_MEMORY,
                 "out of memory: the box around all particles holds %.3g grid nodes, at most %.3g are possible; keep "
                 "them closer together, or make dx larger",
                 (double)nodes, (double)INT32_MAX);
}

// Prepares the state and arrangement that a sort will fill, s->next and s->next_arrangement, with window, planes and
// slabs, by one worker after count_planes. b: bounding box of all base nodes. CQ_OK, or CQ_MEMORY: too little memory or
// too many nodes.
static cq_status alloc_sorted(cq_scene *s, const box *b) {
  s->next = cq_slice_create(s);
  s->next_arrangement = cq_arrangement_create(s);
  if (!s->next || !s->next_arrangement) return CQ_MEMORY;
  s->next_arrangement->sorted_at = s->step;
  set_window(s, s->next_arrangement, b->lower, b->upper);
  const cq_status status = check_window(s, s->next_arrangement);
  if (status) return status;
  place_planes(s, b);
  return set_slabs(s, s->next_arrangement);
}

// Releases s->next and s->next_arrangement, the references that alloc_sorted has taken.
static void drop_prepared(cq_scene *s) {
  cq_slice_release(s, s->next);
  cq_arrangement_release(s, s->next_arrangement);
  s->next = NULL;
  s->next_arrangement = NULL;
}

// Fills a range of chunks of s->next and s->next_arrangement from the old slots in s->source: order, state and
// constants of its particles; and its rows of s->reach. Padding slots copy the last particle's state.
static void fill_range(cq_scene *s, int32_t range) {
  cq_arrangement *a = s->next_arrangement;
  const int32_t begin = s->range_start[range], end = s->range_start[range + 1], real_end = range_end(s, range);
  const int32_t *old = s->arrangement->order;
  int32_t *source = s->source, *order = a->order, *slot_of = a->slot;
  for (int32_t slot = begin * CQ_CHUNK; slot < real_end; slot++) {
    const int32_t p = old[source[slot]];
    order[slot] = p;
    slot_of[p] = slot;
  }
  for (int32_t slot = real_end; slot < end * CQ_CHUNK; slot++) {
    source[slot] = source[real_end - 1];
    order[slot] = -1;
  }
  find_reach(s, a, range);
  s->kernels->reorder(s, s->live->data, s->next->data, cq_scene_fields(s), begin, end);
  if (s->next->internal)
    s->kernels->reorder(s, s->live->internal, s->next->internal, s->model->internal_count, begin, end);
  if (s->arrangement->sorted_at == -1)
    s->kernels->load_params(s, a, begin, end);
  else
    s->kernels->reorder_params(s, s->arrangement, a, begin, end);
}

// As fill_range, for a range of chunks of bodies with reference grids: a sort leaves their order and state as they are.
static void fill_bodies(cq_scene *s, int32_t range) {
  cq_arrangement *a = s->next_arrangement;
  const int32_t begin = s->range_start[range], end = s->range_start[range + 1];
  for (int32_t slot = begin * CQ_CHUNK; slot < end * CQ_CHUNK; slot++) {
    s->source[slot] = slot;
    a->order[slot] = s->arrangement->order[slot];
    if (a->order[slot] >= 0) a->slot[a->order[slot]] = slot;
  }
  find_carrier_reach(s, a, range);
  s->kernels->reorder_params(s, s->arrangement, a, begin, end);
}

// Last step of a sort, by one worker: lists the columns of active nodes, makes the sorted state and its arrangement
// live, and reserves memory for their grid. Nodes of reference grids are copied unchanged. CQ_OK or CQ_MEMORY.
static cq_status conclude(cq_scene *s) {
  cq_status status = find_columns(s, s->next_arrangement);
  if (s->next->nodes) cq_slice_copy_nodes(s, s->live, s->next);
  if (!status) {
    cq_scene_resume(s, s->next, s->next_arrangement, 0, s->step);
    status = cq_arrange_reserve(s);
  }
  drop_prepared(s);
  return status;
}

// Returns 1 if some particle of a slice (a state in memory) is outside the world or not finite, else 0. Also sets the
// base nodes of all particles and their boxes, which a sort reads. Called by all workers of a scene, at the start of a
// sort and when particles come near the edge of the world.
int cq_arrange_outside(cq_scene *s, cq_worker *worker, const cq_slice *slice) {
  int begin, end, outside = 0;
  cq_worker_share(worker, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) {
    if (r < s->first_range) cq_carriers_find(s, slice, r);
    else s->kernels->find_bases(s, slice, s->range_start[r], s->range_start[r + 1], &s->partial[r]);
  }
  cq_worker_wait(worker);
  for (int32_t r = 0; r < s->ranges; r++) outside |= s->partial[r].outside;
  return outside;
}

// Waits for all workers of the scene, then returns to each of them the status that the first one has left in s->status.
// Nobody overwrites it before all have read it.
static cq_status share_status(const cq_scene *s, cq_worker *worker) {
  cq_worker_wait(worker);
  const cq_status status = s->status;
  cq_worker_wait(worker);
  return status;
}

// Sorts the particles of the live state by grid cell and lists the nodes they can reach: a new slice (state) and a new
// arrangement (order and nodes) become live. Called by all workers of a scene at the start and whenever particles may
// have moved by a cell. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health for a particle outside the world or not finite.
cq_status cq_arrange(cq_scene *s, cq_worker *worker) {
  int begin, end;
  if (cq_arrange_outside(s, worker, s->live)) {
    cq_worker_wait(worker);
    if (worker->rank == 0 && cq_is_mixed(s->model)) cq_reference_find_culprit(s);
    else if (worker->rank == 0) {
      s->health = (cq_health){.step = s->step};
      s->kernels->diagnose(s, s->live, &s->health);
    }
    return CQ_UNSTABLE;
  }
  const box b = join_boxes(s);
  cq_scene_share_spatial(s, worker, &begin, &end);
  for (int32_t r = begin; r < end; r++) count_planes(s, r, &b);
  cq_worker_wait(worker);
  if (worker->rank == 0) s->status = alloc_sorted(s, &b);
  cq_status status = share_status(s, worker);
  if (status) {
    if (worker->rank == 0) drop_prepared(s);
    return status;
  }
  for (int32_t r = begin; r < end; r++) place_slots(s, r, &b);
  cq_worker_wait(worker);
  sort_planes(s, worker, &b);
  cq_worker_wait(worker);
  for (int32_t r = begin; r < end; r++) fill_range(s, r);
  cq_scene_share_reference(s, worker, &begin, &end);
  for (int32_t r = begin; r < end; r++) fill_bodies(s, r);
  cq_worker_wait(worker);
  if (worker->rank == 0) s->status = conclude(s);
  status = share_status(s, worker);
  cq_worker_phase(worker, CQ_PHASE_SORT);
  return status;
}

// Makes a slice with undefined contents, in the user's order of particles, the live state at step 0. The caller then
// loads the initial values into it and sorts it. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_first(cq_scene *s) {
  cq_slice *slice = cq_slice_create(s);
  cq_arrangement *a = cq_arrangement_create(s);
  if (slice && a) {
    a->sorted_at = -1;
    for (int32_t slot = 0; slot < s->chunks * CQ_CHUNK; slot++) {
      const int32_t p = slot < s->model->particle_count ? slot : -1;
      a->order[slot] = p;
      if (p >= 0) a->slot[p] = slot;
    }
    cq_scene_resume(s, slice, a, 0, 0);
  }
  const cq_status status = slice && a ? CQ_OK : CQ_MEMORY;
  cq_slice_release(s, slice);
  cq_arrangement_release(s, a);
  return status;
}
