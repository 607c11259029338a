// Products with sparse matrices in rows (CSR), their adjoints, and the matrix of neighbours of a set of points. All
// loops go over rows and entries in their order: the same sums always.
#include "tensor.h"
#include "../base/base.h"
#include <math.h>
#include <string.h>

// ---- product --------------------------------------------------------------------------------------------------------

// Multiplies a sparse matrix with vectors, for each of a batch: y_r = sum over the entries e of row r of value_e
// x_c(e), c(e) the column. value {entries}, x {batch, columns}, y {batch, rows}.
void cq_tensor_sparse(const cq_sparse *a, int64_t batch, const double *value, const double *x, double *y) {
  for (int64_t b = 0; b < batch; b++, x += a->columns, y += a->rows)
    for (int64_t r = 0; r < a->rows; r++) {
      double sum = 0;
      for (int64_t e = a->start[r]; e < a->start[r + 1]; e++) sum += value[e] * x[a->column[e]];
      y[r] = sum;
    }
}

// Adjoint of cq_tensor_sparse, y = A x, value_x: value and x. Adds to grad_x: dL/dx_c(e) += value_e dL/dy_r, and to
// grad_value: dL/dvalue_e += x_c(e) dL/dy_r; a NULL gradient is not wanted.
void cq_tensor_sparse_adj(const cq_sparse *a, int64_t batch, const double *const value_x[2], double *grad_value,
                          double *grad_x, const double *grad_y) {
  const double *value = value_x[0], *x = value_x[1];
  for (int64_t b = 0; b < batch; b++, x += a->columns, grad_y += a->rows) {
    for (int64_t r = 0; r < a->rows; r++)
      for (int64_t e = a->start[r]; e < a->start[r + 1]; e++) {
        if (grad_x) grad_x[a->column[e]] += value[e] * grad_y[r];
        if (grad_value) grad_value[e] += x[a->column[e]] * grad_y[r];
      }
    if (grad_x) grad_x += a->columns;
  }
}

// ---- neighbours -----------------------------------------------------------------------------------------------------

// Boxes at least as wide as the radius, so that the neighbours of a point lie in its own box and those around it.
// Points are sorted by box: those of box k are order[first[k]] to order[first[k + 1] - 1], ascending.
typedef struct boxes {
  double lower[3], width;
  int64_t size[3];
  int64_t *first, *order;
} boxes;

// The index along axis d of the search box that a point with coordinate x lies in; beyond the boxes, of the last one.
static int64_t along(const boxes *b, int d, double x) {
  const double k = floor((x - b->lower[d]) / b->width);
  return k < 0 ? 0 : k >= (double)b->size[d] ? b->size[d] - 1 : (int64_t)k;
}

// The index of the search box that a point x {dim} lies in.
static int64_t box_of(const boxes *b, int32_t dim, const double *x) {
  int64_t k = 0;
  for (int d = dim - 1; d >= 0; d--) k = k * b->size[d] + along(b, d, x[d]);
  return k;
}

// Chooses corner, width (the radius, or a power of two times it) and number of the search boxes b around the points x:
// no more than there are points, or than 64 where these are fewer. Returns how many boxes there are; 0: their extent is
// too large a number.
static int64_t lay_out(boxes *b, const cq_neighbours *n, const double *x) {
  double extent[3] = {0};
  for (int d = 0; d < n->dim; d++) {
    double upper = b->lower[d] = n->count ? x[d] : 0;
    for (int64_t p = 1; p < n->count; p++) {
      b->lower[d] = fmin(b->lower[d], x[p * n->dim + d]);
      upper = fmax(upper, x[p * n->dim + d]);
    }
    extent[d] = upper - b->lower[d];
    if (!isfinite(extent[d])) return 0;
  }
  for (b->width = n->radius;; b->width *= 2) {
    double total = 1;
    for (int d = 0; d < n->dim; d++) total *= floor(extent[d] / b->width) + 1;
    if (total <= (double)n->count || total <= 64) break;
  }
  int64_t total = 1;
  for (int d = 0; d < 3; d++) {
    b->size[d] = d < n->dim ? (int64_t)floor(extent[d] / b->width) + 1 : 1;
    total *= b->size[d];
  }
  return total;
}

// Sorts the points x {count, dim} by their search boxes: sets up b, whose first and order the caller frees, also after
// an error. CQ_OK, CQ_MEMORY, or CQ_INVALID for points that are too far apart.
static cq_status sort(boxes *b, const cq_neighbours *n, const double *x) {
  const int64_t total = lay_out(b, n, x);
  if (!total) return cq_fail(CQ_INVALID, "points are farther apart than the largest number");
  b->first = cq_alloc((size_t)total + 2, sizeof *b->first, "boxes of points");
  b->order = cq_alloc((size_t)n->count, sizeof *b->order, "points by box");
  if (!b->first || (n->count && !b->order)) return CQ_MEMORY;
  // counted two places on, so that filling leaves the starts where they are looked for
  for (int64_t p = 0; p < n->count; p++) b->first[box_of(b, n->dim, x + p * n->dim) + 2]++;
  for (int64_t k = 2; k < total + 2; k++) b->first[k] += b->first[k - 1];
  for (int64_t p = 0; p < n->count; p++) b->order[b->first[box_of(b, n->dim, x + p * n->dim) + 1]++] = p;
  return CQ_OK;
}

// Appends the points x that are nearer to the query point `place` {dim} than the radius to the list, from entry number
// `at` on, while there is room; returns the number of the entry after the last, also of those that had no room.
static int64_t visit(const cq_neighbours *n, const boxes *b, const double *x, const double *place,
                     cq_neighbour_list *out, int64_t at) {
  int64_t low[3] = {0}, high[3] = {0}, k[3];
  for (int d = 0; d < n->dim; d++) {
    low[d] = along(b, d, place[d] - n->radius);
    high[d] = along(b, d, place[d] + n->radius);
  }
  for (k[2] = low[2]; k[2] <= high[2]; k[2]++)
    for (k[1] = low[1]; k[1] <= high[1]; k[1]++)
      for (k[0] = low[0]; k[0] <= high[0]; k[0]++) {
        const int64_t box = (k[2] * b->size[1] + k[1]) * b->size[0] + k[0];
        for (int64_t o = b->first[box]; o < b->first[box + 1]; o++) {
          const int64_t p = b->order[o];
          double square = 0;
          for (int d = 0; d < n->dim; d++) square += (x[p * n->dim + d] - place[d]) * (x[p * n->dim + d] - place[d]);
          if (!(square < n->radius * n->radius)) continue;
          if (out->column && at < out->room) {
            out->column[at] = p;
            out->distance[at] = sqrt(square);
          }
          at++;
        }
      }
  return at;
}

// Finds for each of n->places query points, places {places, dim}, the points x {count, dim} that are nearer than the
// radius, as a sparse matrix with a row for each query point: sets out->start {places + 1}, and column and distance of
// the entries as far as out->room; column NULL: only counts. CQ_OK, CQ_MEMORY, or CQ_INVALID for points too far apart.
cq_status cq_tensor_neighbours(const cq_neighbours *n, const double *x, const double *places, cq_neighbour_list *out) {
  boxes b = {.first = NULL};
  const cq_status status = sort(&b, n, x);
  out->start[0] = 0;
  for (int64_t r = 0; r < n->places && !status; r++)
    out->start[r + 1] = visit(n, &b, x, places + r * n->dim, out, out->start[r]);
  cq_free(b.first);
  cq_free(b.order);
  return status;
}
