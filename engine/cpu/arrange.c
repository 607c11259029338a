#include "arrange.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  REACH_BELOW = CQ_MARGIN,          // nodes below a base cell that its particles may reach
  REACH_ABOVE = 2 + CQ_MARGIN,      // and above
  ROW_TAIL = 1,                     // a row is four nodes, a stencil three: one more is read, with weight zero
};

// ---- memory -------------------------------------------------------------------------------------------------------------

// grows an array, whose contents are lost; a new one is all zero
static cq_status reserve_zero(void **array, int64_t *capacity, int64_t wanted, size_t size, const char *what) {
  if (*capacity >= wanted) return CQ_OK;
  const int64_t room = wanted + wanted / 4;
  cq_free(*array);
  *array = cq_alloc((size_t)room, size, what);
  *capacity = *array ? room : 0;
  return *array ? CQ_OK : CQ_MEMORY;
}

cq_status cq_arrange_reserve(cq_scene *s) {
  const cq_arrangement *a = s->arrangement;
  const size_t node = 4 * (size_t)s->kernels->real_bytes;
  const int64_t plane = s->model->dim == 3 ? (int64_t)a->size[1] * a->size[2] : a->size[1];
  for (int32_t r = 0; r < s->ranges; r++) {
    cq_status status = reserve_zero(&s->slab[r], &s->slab_capacity[r], plane * a->slab_size[r] + 4, node, "grid");
    if (status) return status;
  }
  const int64_t wanted = plane * a->size[0] + 4;
  if (s->grid_capacity >= wanted) return CQ_OK;
  int64_t capacity_v = s->grid_capacity, capacity_q = s->grid_capacity;
  cq_status status = reserve_zero(&s->grid_v, &capacity_v, wanted, node, "grid");
  if (!status && s->adj) status = reserve_zero(&s->grid_q, &capacity_q, wanted, node, "grid");
  s->grid_capacity = status ? 0 : capacity_v;
  return status;
}

// ---- columns ------------------------------------------------------------------------------------------------------------

// Lowest and highest base along the last axis of each base column, for one range of the new order: span {size[0], ny, 2}.
// base is by slot of the old order.
static void span_of_range(const cq_scene *s, const cq_arrangement *a, const int32_t *base, int32_t range, int32_t ny,
                          int32_t *span) {
  const int32_t n = (int32_t)s->model->particle_count;
  for (int64_t k = 0; k < (int64_t)a->size[0] * ny; k++) {
    span[2 * k] = INT32_MAX;
    span[2 * k + 1] = INT32_MIN;
  }
  for (int32_t slot = s->range_start[range] * CQ_CHUNK; slot < s->range_start[range + 1] * CQ_CHUNK; slot++) {
    // padding sits where the last particle does
    const int32_t *b = base + 3 * (int64_t)s->arrangement->slot[a->order[slot < n ? slot : n - 1]];
    int32_t *at = span + 2 * ((int64_t)(b[0] - a->lower[0]) * ny + (s->model->dim == 3 ? b[1] - a->lower[1] : 0));
    if (b[2] < at[0]) at[0] = b[2];
    if (b[2] > at[1]) at[1] = b[2];
  }
}

// the bases that can reach column (x, y), within one range
static void reach(const int32_t *span, int32_t nx, int32_t ny, int32_t x, int32_t y, int32_t *lower, int32_t *upper) {
  for (int32_t i = x - REACH_ABOVE; i <= x + REACH_BELOW; i++)
    for (int32_t j = ny > 1 ? y - REACH_ABOVE : 0; j <= (ny > 1 ? y + REACH_BELOW : 0); j++) {
      if (i < 0 || i >= nx || j < 0 || j >= ny) continue;
      const int32_t *at = span + 2 * ((int64_t)i * ny + j);
      if (at[0] < *lower) *lower = at[0];
      if (at[1] > *upper) *upper = at[1];
    }
}

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

// blocks of columns with about as many nodes each
static void split_columns(const cq_scene *s, cq_arrangement *a) {
  int32_t c = 0;
  for (int32_t b = 0; b < s->ranges; b++) {
    a->column_block[b] = c;
    const int64_t until = a->record_nodes * (b + 1) / s->ranges;
    while (c < a->column_count && a->columns[c].record < until) c++;
  }
  a->column_block[s->ranges] = a->column_count;
}

// the window around all bases with their reach, and how far it is to the edge of the world
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

static cq_status find_columns(cq_scene *s, cq_arrangement *a, const int32_t *base) {
  const int32_t dim = s->model->dim, last = dim - 1, nx = a->size[0], ny = dim == 3 ? a->size[1] : 1;
  const int64_t per_range = 2 * (int64_t)nx * ny;
  cq_status status = reserve_zero((void **)&s->span, &s->span_capacity, per_range * s->ranges, sizeof *s->span, "grid columns");
  if (status) return status;
  for (int32_t r = 0; r < s->ranges; r++) span_of_range(s, a, base, r, ny, s->span + per_range * r);
  for (int32_t r = 0; r < s->ranges; r++) {
    a->slab_lower[r] = nx;
    a->slab_size[r] = 0;
  }
  a->record_nodes = 0;
  for (int32_t x = 0; x < nx; x++)
    for (int32_t y = 0; y < ny; y++) {
      int32_t lower = INT32_MAX, upper = INT32_MIN;
      cq_column column = {.x = x + a->lower[0], .y = dim == 3 ? y + a->lower[1] : 0};
      for (int32_t r = 0; r < s->ranges; r++) {
        int32_t low = INT32_MAX, high = INT32_MIN;
        reach(s->span + per_range * r, nx, ny, x, y, &low, &high);
        if (low > high) continue;
        column.ranges |= 1u << r;
        if (low < lower) lower = low;
        if (high > upper) upper = high;
        if (x < a->slab_lower[r]) a->slab_lower[r] = x;
        a->slab_size[r] = x - a->slab_lower[r] + 1;
      }
      if (lower > upper) continue;
      column.z = lower - REACH_BELOW;
      column.count = (upper + REACH_ABOVE + ROW_TAIL - column.z + 1 + 3) / 4 * 4;
      // a column must not run into the next one: start lower where the window ends
      const int32_t over = column.z - a->lower[last] + column.count - a->size[last];
      if (over > 0) column.z -= over;
      column.node = ((int64_t)x * ny + y) * a->size[last] + column.z - a->lower[last];
      column.record = a->record_nodes;
      a->record_nodes += column.count;
      cq_wall_map_column(&s->model->map, column.x, column.y, &column.wall_begin, &column.wall_end);
      const cq_wall_node *node = s->model->map.node;
      while (column.wall_begin < column.wall_end && node[column.wall_begin].z < column.z) column.wall_begin++;
      while (column.wall_begin < column.wall_end && node[column.wall_end - 1].z >= column.z + column.count) column.wall_end--;
      status = push_column(a, &column);
      if (status) return status;
    }
  split_columns(s, a);
  return CQ_OK;
}

// ---- sorting ------------------------------------------------------------------------------------------------------------

// Counting sort of the particles by base cell, first axis slowest, particles of a cell in the order they had: the result
// depends on positions and the old order only.
static cq_status sort_by_cell(cq_scene *s, cq_arrangement *a, const int32_t *base) {
  const cq_arrangement *old = s->arrangement;
  const int32_t dim = s->model->dim, last = dim - 1, ny = dim == 3 ? a->size[1] : 1, slots = s->chunks * CQ_CHUNK;
  const int64_t cells = (int64_t)a->size[0] * ny * a->size[last];
  cq_status status =
      reserve_zero((void **)&s->histogram, &s->histogram_capacity, cells + 1, sizeof *s->histogram, "sorting");
  if (status) return status;
  int32_t *first = s->histogram;
  memset(first, 0, (size_t)(cells + 1) * sizeof *first);
  int32_t *cell = s->key + 3 * (int64_t)slots;
  for (int32_t slot = 0; slot < slots; slot++) {
    const int32_t *b = base + 3 * (int64_t)slot;
    const int32_t y = dim == 3 ? b[1] - a->lower[1] : 0;
    cell[slot] = ((b[0] - a->lower[0]) * ny + y) * a->size[last] + b[2] - a->lower[last];
    if (old->order[slot] >= 0) first[cell[slot] + 1]++;
  }
  for (int64_t c = 0; c < cells; c++) first[c + 1] += first[c];
  for (int32_t slot = 0; slot < slots; slot++) {
    const int32_t p = old->order[slot];
    if (p < 0) continue;
    const int32_t to = first[cell[slot]]++;
    a->order[to] = p;
    a->slot[p] = to;
  }
  for (int32_t slot = (int32_t)s->model->particle_count; slot < slots; slot++) a->order[slot] = -1;
  return CQ_OK;
}

// box of all bases
static void join_boxes(const cq_scene *s, int32_t lower[3], int32_t upper[3]) {
  for (int i = 0; i < 3; i++) {
    lower[i] = INT32_MAX;
    upper[i] = INT32_MIN;
  }
  for (int32_t r = 0; r < s->ranges; r++)
    for (int i = 0; i < 3; i++) {
      if (s->partial[r].lower[i] < lower[i]) lower[i] = s->partial[r].lower[i];
      if (s->partial[r].upper[i] > upper[i]) upper[i] = s->partial[r].upper[i];
    }
}

// nodes of the window and sums of them fit an index
static cq_status check_window(const cq_scene *s, const cq_arrangement *a) {
  const int64_t ny = s->model->dim == 3 ? a->size[1] : 1, nodes = a->size[0] * ny * a->size[s->model->dim - 1];
  if (nodes < INT32_MAX) return CQ_OK;
  return cq_fail(CQ_MEMORY, "out of memory: the box around all particles holds %.3g grid nodes, at most %.3g are possible; keep "
                 "them closer together, or make dx larger", (double)nodes, (double)INT32_MAX);
}

static cq_status prepare(cq_scene *s, const int32_t *base) {
  int32_t lower[3], upper[3];
  join_boxes(s, lower, upper);
  s->next = cq_slice_create(s);
  s->next_arrangement = cq_arrangement_create(s);
  if (!s->next || !s->next_arrangement) return CQ_MEMORY;
  s->next_arrangement->made = s->step;
  set_window(s, s->next_arrangement, lower, upper);
  cq_status status = check_window(s, s->next_arrangement);
  if (!status) status = sort_by_cell(s, s->next_arrangement, base);
  return status ? status : find_columns(s, s->next_arrangement, base);
}

static void drop_prepared(cq_scene *s) {
  cq_slice_release(s, s->next);
  cq_arrangement_release(s, s->next_arrangement);
  s->next = NULL;
  s->next_arrangement = NULL;
}

int cq_arrange_outside(cq_scene *s, cq_crew *crew, const cq_slice *slice) {
  int begin, end, outside = 0;
  cq_crew_share(crew, s->ranges, &begin, &end);
  for (int32_t r = begin; r < end; r++) {
    cq_partial *part = &s->partial[r];
    s->kernels->bases(s, slice, s->range_start[r], s->range_start[r + 1], s->key, part->lower, part->upper, &part->outside);
  }
  cq_crew_wait(crew);
  for (int32_t r = 0; r < s->ranges; r++) outside |= s->partial[r].outside;
  return outside;
}

cq_status cq_arrange(cq_scene *s, cq_crew *crew) {
  int begin, end;
  cq_crew_share(crew, s->ranges, &begin, &end);
  if (cq_arrange_outside(s, crew, s->live)) {
    cq_crew_wait(crew);
    if (crew->rank == 0) {
      s->health = (cq_health){.step = s->step};
      s->kernels->diagnose(s, s->live, &s->health);
    }
    return CQ_UNSTABLE;
  }
  if (crew->rank == 0) s->status = prepare(s, s->key);
  cq_crew_wait(crew);
  if (s->status) {
    const cq_status status = s->status;
    cq_crew_wait(crew);
    if (crew->rank == 0) drop_prepared(s);
    return status;
  }
  for (int32_t r = begin; r < end; r++) {
    s->kernels->reorder(s, s->live->data, s->next->data, s->arrangement, s->next_arrangement, s->range_start[r],
                        s->range_start[r + 1]);
    if (s->arrangement->made < 0)
      s->kernels->load_params(s, s->next_arrangement, s->range_start[r], s->range_start[r + 1]);
    else
      s->kernels->reorder_params(s, s->arrangement, s->next_arrangement, s->range_start[r], s->range_start[r + 1]);
  }
  cq_crew_wait(crew);
  if (crew->rank == 0) {
    cq_scene_resume(s, s->next, s->next_arrangement, 0, s->step);
    drop_prepared(s);
    s->status = cq_arrange_reserve(s);
  }
  cq_crew_wait(crew);
  const cq_status status = s->status;
  cq_crew_wait(crew);   // before the first of the crew writes it again
  cq_crew_phase(crew, CQ_PHASE_SORT);
  return status;
}

cq_status cq_arrange_first(cq_scene *s) {
  cq_slice *slice = cq_slice_create(s);
  cq_arrangement *a = cq_arrangement_create(s);
  if (slice && a) {
    a->made = -1;
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
