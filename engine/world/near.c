// near: finds all pairs of surface nodes that are near each other and were apart in the undeformed bodies.
#include "grids.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "touch.inl"

// Surface nodes sorted by the search cells of a box around them. Search cells are as large as the reach, or larger
// where they would be too many. The last axis is the fastest; in 2D there is one cell along the first axis.
typedef struct {
  const cq_rim *rim;
  double reach;              // distance within which two nodes are near
  int32_t count, cells[3];
  double size, low[3];
  int32_t *start;            // {cells + 1} where the nodes of a cell begin in the order
  int32_t *order, *cell;     // {count} nodes in the order of their cells; the cell of each
  double *at;                // {count, 3} positions of the nodes, in that order
} boxes;

// Chooses the size and number of search cells in b for surface nodes at positions {count, dim}, so that near ones are
// in the same or neighbouring cells. Positions that are not finite are left out; the step itself finds those.
static void set_cells(boxes *b, int dim, const double *positions) {
  double high[3], all;
  for (int i = 0; i < 3; i++) {
    b->low[i] = INFINITY;
    high[i] = -INFINITY;
    for (int32_t k = 0; k < b->count && i >= 3 - dim; k++) {
      const double x = positions[(int64_t)k * dim + i - (3 - dim)];
      if (!(fabs(x) < 1e100)) continue;
      b->low[i] = fmin(b->low[i], x);
      high[i] = fmax(high[i], x);
    }
    if (!(b->low[i] <= high[i])) b->low[i] = high[i] = 0;
  }
  b->size = b->reach / 2;
  do {
    b->size *= 2;
    all = 1;
    for (int i = 0; i < 3; i++) all *= floor((high[i] - b->low[i]) / b->size) + 1;
  } while (all > 4.0 * b->count + 64);
  for (int i = 0; i < 3; i++) b->cells[i] = (int32_t)((high[i] - b->low[i]) / b->size) + 1;
}

// The index of the search cell that a node at x {dim} lies in.
static int32_t cell_at(const boxes *b, int dim, const double *x) {
  int32_t cell = 0;
  for (int i = 0; i < 3; i++) {
    const double at = i < 3 - dim ? 0 : (x[i - (3 - dim)] - b->low[i]) / b->size;
    cell = cell * b->cells[i] + (at >= 0 && at < b->cells[i] ? (int32_t)at : 0);
  }
  return cell;
}

// Sorts the b->count surface nodes at positions {count, dim} by search cell. rim, reach and count of b are given; this
// chooses cells for that reach, and allocates and sets start, order, cell and at. CQ_OK or CQ_MEMORY; call free_boxes
// after either.
static cq_status fill_boxes(boxes *b, int dim, const double *positions) {
  set_cells(b, dim, positions);
  const int32_t cells = b->cells[0] * b->cells[1] * b->cells[2];
  b->start = calloc((size_t)cells + 1, sizeof *b->start);
  b->order = malloc(((size_t)b->count + 1) * sizeof *b->order);
  b->cell = malloc(((size_t)b->count + 1) * sizeof *b->cell);
  b->at = calloc((size_t)b->count + 1, 3 * sizeof *b->at);
  if (!b->start || !b->order || !b->cell || !b->at)
    return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  for (int32_t k = 0; k < b->count; k++) b->start[b->cell[k] = cell_at(b, dim, positions + (int64_t)k * dim)]++;
  for (int32_t c = 1; c <= cells; c++) b->start[c] += b->start[c - 1];
  for (int32_t k = b->count - 1; k >= 0; k--) {
    const int32_t place = --b->start[b->cell[k]];
    b->order[place] = k;
    memcpy(b->at + (int64_t)place * 3, positions + (int64_t)k * dim, (size_t)dim * sizeof *positions);
  }
  return CQ_OK;
}

// Frees what fill_boxes allocated.
static void free_boxes(boxes *b) {
  free(b->start);
  free(b->order);
  free(b->cell);
  free(b->at);
}

// Appends the pair of near nodes a and b, the greater index first. CQ_OK or CQ_MEMORY.
static cq_status add_pair(cq_near *near, int32_t a, int32_t b) {
  if (near->count == near->room) {
    if (near->room > INT32_MAX / 4) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
    const int32_t room = near->room ? 2 * near->room : 256;
    int32_t *more = realloc(near->pair, 2 * (size_t)room * sizeof *more);
    if (!more) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
    near->pair = more;
    near->room = room;
  }
  int32_t *pair = near->pair + 2 * (int64_t)near->count++;
  pair[0] = a > b ? a : b;
  pair[1] = a > b ? b : a;
  return CQ_OK;
}

// Appends the pairs of the node at index `place` of the sorted order with those nodes at indices [begin, end) of that
// order that are near it, and apart from it in the undeformed bodies. CQ_OK or CQ_MEMORY.
static cq_status add_near(const boxes *b, int32_t place, int32_t begin, int32_t end, cq_near *near) {
  const double *x = b->at + (int64_t)place * 3;
  for (int32_t other = begin; other < end; other++) {
    const double *y = b->at + (int64_t)other * 3, u = x[0] - y[0], v = x[1] - y[1], w = x[2] - y[2];
    if (!(u * u + v * v + w * w < b->reach * b->reach)) continue;
    const int32_t k = b->order[place], j = b->order[other];
    const cq_status status = touch_apart(&b->rim[k], &b->rim[j]) ? add_pair(near, k, j) : CQ_OK;
    if (status) return status;
  }
  return CQ_OK;
}

// Appends the pairs of the node at index `place` of the sorted order with near nodes that come after it in that order,
// so that each pair is found once: in the rest of its own cell, in the next cell, and in the three cells of each later
// row of cells beside it. CQ_OK or CQ_MEMORY.
static cq_status add_after(const boxes *b, int32_t place, cq_near *near) {
  static const int beside[4][2] = {{0, 1}, {1, -1}, {1, 0}, {1, 1}};
  const int32_t cell = b->cell[b->order[place]], row = b->cells[2], along = cell % row, last = along + 1 < row;
  const int32_t first = cell / row / b->cells[1], across = cell / row % b->cells[1];
  cq_status status = add_near(b, place, place + 1, b->start[cell + last + 1], near);
  for (int n = 0; n < 4 && !status; n++) {
    const int32_t i = first + beside[n][0], j = across + beside[n][1];
    if (i >= b->cells[0] || j < 0 || j >= b->cells[1]) continue;
    const int32_t *start = b->start + ((int64_t)i * b->cells[1] + j) * row + along;
    status = add_near(b, place, start[along ? -1 : 0], start[last + 1], near);
  }
  return status;
}

// Compares two pairs for qsort, by the first node, then by the second: below 0, 0 or above 0.
static int before(const void *a, const void *b) {
  const int32_t *p = a, *q = b;
  const int first = (p[0] > q[0]) - (p[0] < q[0]);
  return first ? first : (p[1] > q[1]) - (p[1] < q[1]);
}

// Has any surface node moved so far since the near pairs were found that they must be found again? 1 yes, also if they
// never were; 0 no. The mean motion of all nodes does not count. positions {count, dim}: positions now.
static int has_moved(const cq_near *near, const cq_model *m, const double *positions, int32_t count) {
  const double most = CQ_NEAR_WAY * m->dx;
  double together[3] = {0};
  if (!near->at) return 1;
  for (int32_t k = 0; k < count; k++)
    for (int i = 0; i < m->dim; i++)
      together[i] += (positions[(int64_t)k * m->dim + i] - near->at[(int64_t)k * m->dim + i]) / count;
  for (int32_t k = 0; k < count; k++) {
    double square = 0;
    for (int i = 0; i < m->dim; i++) {
      const double way = positions[(int64_t)k * m->dim + i] - near->at[(int64_t)k * m->dim + i] - together[i];
      square += way * way;
    }
    if (!(square <= most * most)) return 1;
  }
  return 0;
}

// Finds the pairs of near nodes again if some node has moved so far that there may be others; else keeps them.
// positions {count, dim}: positions of the nodes of rim. CQ_OK or CQ_MEMORY.
cq_status cq_near_update(cq_near *near, const cq_model *m, const cq_rim *rim, const double *positions, int32_t count) {
  if (!has_moved(near, m, positions, count)) return CQ_OK;
  const size_t numbers = (size_t)count * (size_t)m->dim;
  double *at = realloc(near->at, (numbers ? numbers : 1) * sizeof *at);
  if (!at) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  near->at = at;
  near->count = 0;
  memcpy(at, positions, numbers * sizeof *at);
  boxes b = {.rim = rim, .reach = (CQ_NEAR_REACH + 2 * CQ_NEAR_WAY) * m->dx, .count = count};
  cq_status status = fill_boxes(&b, m->dim, positions);
  for (int32_t place = 0; place < count && !status; place++) status = add_after(&b, place, near);
  free_boxes(&b);
  // a list that lacks pairs would be kept until nodes move
  if (status) cq_near_free(near);
  if (!status && near->count > 1) qsort(near->pair, (size_t)near->count, 2 * sizeof *near->pair, before);
  return status;
}

// Frees the pairs of near nodes, and zeroes the struct; the next update finds them again.
void cq_near_free(cq_near *near) {
  free(near->pair);
  free(near->at);
  *near = (cq_near){0};
}
