// bins: boxes of space, to find the particles near a place.
#include "lattice.h"
#include <math.h>

// The index along axis d of the bin that x lies in; of the nearest one for x outside.
static int32_t place_of(const bins *b, int d, double x) {
  double i = floor((x - b->lower[d]) / b->size);
  return i > 0 ? (i < b->count[d] ? (int32_t)i : b->count[d] - 1) : 0;
}

// The index of the bin that place x {dim} lies in, last axis fastest; of the nearest bin for places outside.
static int64_t bin_of(const bins *b, const double *x) {
  int64_t k = 0;
  for (int d = 0; d < b->dim; d++) k = k * b->count[d] + place_of(b, d, x[d]);
  return k;
}

// Are all dim coordinates of a place numbers whose differences are finite?
static int is_place(const double *x, int dim) {
  for (int d = 0; d < dim; d++) if (!(fabs(x[d]) < 1e100)) return 0;
  return 1;
}

// Fills *b with cubic bins of side `size` [length] and sorts n particles at position {n, dim} into them, for
// bins_visit. Bins are larger if there would be many more bins than particles. Particles at places that are not finite,
// or beyond 1e100, are in no bin. CQ_OK or CQ_MEMORY.
cq_status bins_fill(bins *b, int32_t dim, int32_t n, const double *position, double size) {
  double upper[3] = { 0 };
  *b = (bins){ .dim = dim, .count = { 1, 1, 1 }, .size = size };
  for (int d = 0; d < dim; d++) {
    b->lower[d] = INFINITY, upper[d] = -INFINITY;
    for (int32_t p = 0; p < n; p++) {
      if (!is_place(position + (size_t)p * dim, dim)) continue;
      b->lower[d] = fmin(b->lower[d], position[(size_t)p * dim + d]);
      upper[d] = fmax(upper[d], position[(size_t)p * dim + d]);
    }
    if (!(upper[d] >= b->lower[d])) b->lower[d] = upper[d] = 0;
  }
  // bodies far apart would ask for more boxes than there are particles: larger boxes hold them too
  double boxes;
  do {
    boxes = 1;
    for (int d = 0; d < dim; d++) boxes *= floor((upper[d] - b->lower[d]) / b->size) + 1;
    if (boxes > 8.0 * n + 64) b->size *= 1.5;
  } while (boxes > 8.0 * n + 64);
  for (int d = 0; d < dim; d++) b->count[d] = (int32_t)floor((upper[d] - b->lower[d]) / b->size) + 1;
  int64_t total = (int64_t)b->count[0] * b->count[1] * b->count[2];
  b->start = cq_alloc((size_t)total + 2, sizeof *b->start, "bins of a picture");
  b->particle = cq_alloc((size_t)n + 1, sizeof *b->particle, "bins of a picture");
  if (!b->start || !b->particle) {
    bins_free(b);
    return CQ_MEMORY;
  }
  int32_t *next = b->start + 1;
  for (int32_t p = 0; p < n; p++)
    if (is_place(position + (size_t)p * dim, dim)) next[bin_of(b, position + (size_t)p * dim) + 1]++;
  for (int64_t k = 0; k < total; k++) next[k + 1] += next[k];
  // start[k + 1] is where the next particle of box k goes, and its end when all are there
  for (int32_t p = 0; p < n; p++)
    if (is_place(position + (size_t)p * dim, dim)) b->particle[next[bin_of(b, position + (size_t)p * dim)]++] = p;
  return CQ_OK;
}

// Frees the lists of bins, and empties the struct.
void bins_free(bins *b) {
  cq_free(b->start);
  cq_free(b->particle);
  *b = (bins){ 0 };
}

// Calls visit(context, particle, distance) for each particle within `radius` [length] of `place`, always in the same
// order. position {n, dim}: as given to bins_fill.
void bins_visit(const bins *b, const double *position, const double place[3], double radius,
                void (*visit)(void *context, int32_t particle, double distance), void *context) {
  int32_t lo[3] = { 0 }, hi[3] = { 0 };
  for (int d = 0; d < b->dim; d++) {
    lo[d] = place_of(b, d, place[d] - radius);
    hi[d] = place_of(b, d, place[d] + radius);
  }
  int two = b->dim == 2;
  for (int32_t i = lo[0]; i <= hi[0]; i++)
    for (int32_t j = lo[1]; j <= hi[1]; j++)
      for (int32_t k = two ? 0 : lo[2]; k <= (two ? 0 : hi[2]); k++) {
        int64_t box = two ? (int64_t)i * b->count[1] + j : ((int64_t)i * b->count[1] + j) * b->count[2] + k;
        for (int32_t m = b->start[box]; m < b->start[box + 1]; m++) {
          const double *x = position + (size_t)b->particle[m] * (size_t)b->dim;
          double square = 0;
          for (int d = 0; d < b->dim; d++) square += (x[d] - place[d]) * (x[d] - place[d]);
          if (square <= radius * radius) visit(context, b->particle[m], sqrt(square));
        }
      }
}
