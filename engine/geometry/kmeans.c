// k-means clustering: Lloyd's iteration from k-means++ seeds (Arthur and Vassilvitskii 2007). The same
// points, k and seed give the same labels on every machine: own random numbers, fixed order of sums, and
// clusters numbered by their centres.
#include "../base/base.h"
#include <math.h>
#include <string.h>

enum { ITERATIONS_MAX = 300 };   // Lloyd's iteration settles long before; a bound against cycling by rounding

// A random number in [0, 1) by splitmix64 (Steele, Lea, Flood 2014); advances the state.
static double draw(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// The squared distance of two points.
static double distance2(int32_t dim, const double *a, const double *b) {
  double sum = 0;
  for (int32_t d = 0; d < dim; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

typedef struct task {
  int64_t n;
  int32_t dim, k;
  const double *points;          // {n, dim}
  double *centre;                // {k, dim}
  double *near;                  // {n} squared distance to the own centre
  int64_t *size;                 // {k}
  int32_t *label;                // {n}
} task;

// Sets the first centres (k-means++): the first at random among the points, each next one with a probability
// proportional to the squared distance from the nearest earlier centre. CQ_OK, or CQ_INVALID if the points have fewer
// different positions than there are clusters.
static cq_status choose_seeds(task *t, uint64_t seed) {
  uint64_t state = seed;
  int64_t pick = (int64_t)(draw(&state) * (double)t->n);
  for (int64_t p = 0; p < t->n; p++) t->near[p] = INFINITY;
  for (int32_t c = 0;; c++) {
    double *centre = t->centre + (size_t)c * (size_t)t->dim;
    memcpy(centre, t->points + pick * t->dim, (size_t)t->dim * sizeof *centre);
    if (c + 1 == t->k) return CQ_OK;
    double total = 0;
    for (int64_t p = 0; p < t->n; p++) {
      t->near[p] = fmin(t->near[p], distance2(t->dim, t->points + p * t->dim, centre));
      total += t->near[p];
    }
    if (!(total > 0))
      return cq_fail(CQ_INVALID, "k-means: %d clusters are wanted of points at only %d different place%s", t->k, c + 1,
                     c ? "s" : "");
    double target = draw(&state) * total, sum = 0;
    int64_t last = 0;
    for (pick = 0; pick < t->n; pick++) {
      if (t->near[pick] > 0) last = pick;
      sum += t->near[pick];
      if (sum > target) break;
    }
    if (pick == t->n) pick = last;       // rounding ate the tail of the sum
  }
}

// Assigns each point to the nearest centre, sets its squared distance, and counts the points of each cluster. Returns
// the number of points whose centre has changed.
static int64_t assign(task *t) {
  int64_t moved = 0;
  memset(t->size, 0, (size_t)t->k * sizeof *t->size);
  for (int64_t p = 0; p < t->n; p++) {
    int32_t best = 0;
    double least = INFINITY;
    for (int32_t c = 0; c < t->k; c++) {
      double d = distance2(t->dim, t->points + p * t->dim, t->centre + (size_t)c * (size_t)t->dim);
      if (d < least) { least = d; best = c; }
    }
    moved += best != t->label[p];
    t->label[p] = best;
    t->near[p] = least;
    t->size[best]++;
  }
  return moved;
}

// Gives each empty cluster the point that is farthest from its own centre, out of a cluster with more than one point.
// Changes labels and sizes; move_centres then moves the centres.
static void refill(task *t) {
  for (int32_t c = 0; c < t->k; c++) {
    if (t->size[c]) continue;
    int64_t worst = -1;
    for (int64_t p = 0; p < t->n; p++)
      if (t->size[t->label[p]] > 1 && (worst < 0 || t->near[p] > t->near[worst])) worst = p;
    t->size[t->label[worst]]--;
    t->label[worst] = c;
    t->near[worst] = 0;
    t->size[c] = 1;
  }
}

// Moves each centre to the mean of the points with its label.
static void move_centres(task *t) {
  memset(t->centre, 0, (size_t)t->k * (size_t)t->dim * sizeof *t->centre);
  for (int64_t p = 0; p < t->n; p++)
    for (int32_t d = 0; d < t->dim; d++) t->centre[t->label[p] * t->dim + d] += t->points[p * t->dim + d];
  for (int32_t c = 0; c < t->k; c++)
    for (int32_t d = 0; d < t->dim; d++) t->centre[c * t->dim + d] /= (double)t->size[c];
}

// Renumbers the clusters in the order of their centres, by the first coordinate first, so that equal inputs give equal
// labels. rank {k}: set to the new number of each cluster.
static void number_by_place(task *t, int32_t *rank) {
  for (int32_t a = 0; a < t->k; a++) {
    rank[a] = 0;
    for (int32_t b = 0; b < t->k; b++) {
      const double *x = t->centre + (size_t)a * (size_t)t->dim, *y = t->centre + (size_t)b * (size_t)t->dim;
      int32_t d = 0;
      while (d < t->dim && x[d] == y[d]) d++;
      rank[a] += d < t->dim ? y[d] < x[d] : b < a;
    }
  }
  for (int64_t p = 0; p < t->n; p++) t->label[p] = rank[t->label[p]];
}

// Sets labels {n}, 0 to k-1, of points {n, dim} by k-means clustering, no cluster empty, numbered by their centres, the
// first coordinate first. CQ_OK, CQ_MEMORY, or CQ_INVALID for points that are not finite or have fewer than k different
// positions.
cq_status cq_kmeans(int64_t n, int32_t dim, const double *points, int32_t k, uint64_t seed, int32_t *labels) {
  if (dim < 1) return cq_fail(CQ_INVALID, "k-means: points have %d coordinates, at least 1 is wanted", dim);
  if (k < 1 || k > n)
    return cq_fail(CQ_INVALID, "k-means: %d clusters of %lld points, from 1 up to the number of points are allowed", k,
                   (long long)n);
  for (int64_t i = 0; i < n * dim; i++)
    if (!isfinite(points[i]))
      return cq_fail(CQ_INVALID, "k-means: coordinate %lld of point %lld is %g, finite ones are wanted",
                     (long long)(i % dim) + 1, (long long)(i / dim) + 1, points[i]);
  task t = { .n = n, .dim = dim, .k = k, .points = points, .label = labels };
  t.centre = cq_alloc((size_t)k * (size_t)dim, sizeof *t.centre, "k-means centres");
  t.near = cq_alloc((size_t)n, sizeof *t.near, "k-means distances");
  t.size = cq_alloc((size_t)k, sizeof *t.size, "k-means sizes");
  int32_t *rank = cq_alloc((size_t)k, sizeof *rank, "k-means numbering");
  cq_status status = t.centre && t.near && t.size && rank ? choose_seeds(&t, seed) : CQ_MEMORY;
  if (!status) {
    for (int64_t p = 0; p < n; p++) labels[p] = -1;
    for (int i = 0; i < ITERATIONS_MAX && assign(&t); i++) {
      refill(&t);
      move_centres(&t);
    }
    number_by_place(&t, rank);
  }
  cq_free(t.centre);
  cq_free(t.near);
  cq_free(t.size);
  cq_free(rank);
  return status;
}
