// Splat: amounts of points onto the pixels of a window by quadratic B-splines, and its adjoint. Both go over points in
// their order and over a tile: four channels of the picture side by side in memory, with a frame of pixels around the
// window, so that the stencil of a point at its border needs no special case. What falls onto the frame is lost.
#include "tensor.h"
#include <string.h>

enum {
  REACH = 3,               // pixels of a point along an axis
  FRAME = 2,               // pixels around the window that the stencil of a point may reach
  WIDTH = 4                // channels of a tile
};

typedef double pixel[WIDTH];

// Four channels of one picture of a batch: {z, y, x} with the frame, y upward.
typedef struct tile {
  pixel *at;
  int64_t size[3], count;  // pixels along x, y, z, and all; z has one in 2D
} tile;

// Where a point falls along one axis: its first pixel, counted from the frame's, and weights of three with their
// derivatives by the coordinate [1/pixel].
typedef struct axis {
  int64_t first;
  double weight[REACH], slope[REACH];
} axis;

// Sets a to where a coordinate x [pixels from the lower corner] lies along an axis of `size` pixels. Returns 0 where
// the point reaches no pixel of the window, or x is not finite; else 1.
static inline int place(double x, int64_t size, axis *a) {
  const double y = x - 1;
  if (!(y >= -FRAME && y < (double)size)) return 0;
  const int64_t first = (int64_t)(y + FRAME) - FRAME;              // rounded down: y + FRAME is not negative
  const double f = x - 0.5 - (double)first;                        // in [1/2, 3/2) from the centre of the first pixel
  const double u = 1.5 - f, v = f - 1, w = f - 0.5;
  *a = (axis){first + FRAME, {0.5 * u * u, 0.75 - v * v, 0.5 * w * w}, {-u, -2 * v, w}};
  return 1;
}

// What the loops over points work on: four channels, from `first` on, of the picture of batch entry b. grad: gradients
// of the points, NULL forward.
typedef struct job {
  const cq_splat *s;
  const cq_splat_points *p, *grad;
  int64_t b, first;
  tile t;
} job;

// A tile for pictures of s, its pixels zero; at is NULL without memory.
static tile tile_of(const cq_splat *s) {
  tile t = {.count = 1};
  for (int d = 0; d < 3; d++) {
    t.size[d] = d < s->dim ? s->size[d] + 2 * FRAME : 1;
    t.count *= t.size[d];
  }
  t.at = (pixel *)(void *)cq_tensor_alloc(WIDTH * t.count, 1);
  return t;
}

// A picture's channels: the amounts', or with velocities 1 + dim.
static int64_t channels_of(const cq_splat *s, const cq_splat_points *p) {
  return p->velocity ? 1 + s->dim : s->channels;
}

// The number of channels that the picture has of the tile's four.
static int width_of(const job *j) {
  const int64_t left = channels_of(j->s, j->p) - j->first;
  return (int)(left < WIDTH ? left : WIDTH);
}

// Adds the window of a tile, times s->scale, to its channels of a batch of pictures (to_picture), or sets it to these
// channels, times s->scale. Rows of a picture run down along y.
static inline void move(const job *j, int to_picture, double *pictures) {
  const cq_splat *s = j->s;
  const int64_t *size = s->size, pixels = size[0] * size[1] * size[2], width = width_of(j);
  double *channels = pictures + (j->b * channels_of(s, j->p) + j->first) * pixels;
  for (int64_t z = 0; z < size[2]; z++)
    for (int64_t y = 0; y < size[1]; y++) {
      pixel *inside = j->t.at + ((z + (s->dim == 3 ? FRAME : 0)) * j->t.size[1] + y + FRAME) * j->t.size[0] + FRAME;
      double *line = channels + (z * size[1] + size[1] - 1 - y) * size[0];
      for (int64_t c = 0; c < width; c++, line += pixels)
        for (int64_t x = 0; x < size[0]; x++)
          if (to_picture) line[x] += s->scale * inside[x][c];
          else inside[x][c] = s->scale * line[x];
    }
}

// ---- forward --------------------------------------------------------------------------------------------------------

// Where point n falls along each axis; 0 if it reaches no pixel. dim: 2 or 3, a constant.
static inline int place_all(const job *j, int64_t n, int dim, axis at[3]) {
  const cq_splat_points *p = j->p;
  at[2] = (axis){0, {1}, {0}};                                     // in 2D the tile has one layer
  for (int d = 0; d < dim; d++) {
    const double from_corner = p->x[n * dim + d] - (p->origin ? p->origin[j->b * dim + d] : 0);
    if (!place(from_corner / j->s->spacing, j->s->size[d], &at[d])) return 0;
  }
  return 1;
}

// The first pixel that a point reaches in line o1 of layer o2 of its stencil.
static inline pixel *line_of(const tile *t, const axis at[3], int o1, int o2) {
  return t->at + ((at[2].first + o2) * t->size[1] + at[1].first + o1) * t->size[0] + at[0].first;
}

// Sets a to the numbers of point n for the tile's channels: its amounts, or with velocities its amount and amount *
// velocity; zeros where the picture has no more channels.
static inline void amounts_of(const job *j, int64_t n, double a[WIDTH]) {
  const cq_splat *s = j->s;
  const cq_splat_points *p = j->p;
  if (p->velocity) {
    a[0] = p->amount[n];
    for (int d = 0; d < WIDTH - 1; d++) a[1 + d] = d < s->dim ? a[0] * p->velocity[n * s->dim + d] : 0;
  } else {
    for (int c = 0; c < WIDTH; c++) a[c] = j->first + c < s->channels ? p->amount[n * s->channels + j->first + c] : 0;
  }
}

// Adds the numbers (amounts_of) of all points of batch entry j->b to the tile. dim: 2 or 3, a constant.
static inline void spread(const job *j, int dim) {
  for (int64_t n = j->b * j->s->count; n < (j->b + 1) * j->s->count; n++) {
    axis at[3];
    double a[WIDTH];
    if (!place_all(j, n, dim, at)) continue;
    amounts_of(j, n, a);
    for (int o2 = 0; o2 < (dim == 3 ? REACH : 1); o2++)
      for (int o1 = 0; o1 < REACH; o1++) {
        pixel *line = line_of(&j->t, at, o1, o2);
        const double along = at[1].weight[o1] * at[2].weight[o2];
        for (int o0 = 0; o0 < REACH; o0++)
          for (int c = 0; c < WIDTH; c++) line[o0][c] += at[0].weight[o0] * along * a[c];
      }
  }
}

// Adds the amounts of points, times s->scale, to the pixels around them, out {batch, channels, z, y, x}, by quadratic
// B-splines. What falls outside of the window is lost. CQ_OK or CQ_MEMORY.
cq_status cq_tensor_splat(const cq_splat *s, const cq_splat_points *p, double *out) {
  job j = {.s = s, .p = p, .t = tile_of(s)};
  if (!j.t.at) return CQ_MEMORY;
  for (j.b = 0; j.b < s->batch; j.b++)
    for (j.first = 0; j.first < channels_of(s, p); j.first += WIDTH) {
      if (j.b || j.first) memset(j.t.at, 0, (size_t)j.t.count * sizeof *j.t.at);
      if (s->dim == 2) spread(&j, 2);
      else spread(&j, 3);
      move(&j, 1, out);
    }
  cq_tensor_free(&j.t.at[0][0]);
  return CQ_OK;
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// Adds to the gradients of point n and of the window's corner. grad_a: gradient of the numbers of amounts_of; grad_x
// {dim}: of the point's place, in pixels.
static inline void give(const job *j, int64_t n, const double grad_a[WIDTH], const double grad_x[3]) {
  const cq_splat *s = j->s;
  const cq_splat_points *p = j->p, *grad = j->grad;
  for (int d = 0; d < s->dim; d++) {
    if (grad->x) grad->x[n * s->dim + d] += grad_x[d] / s->spacing;
    if (grad->origin) grad->origin[j->b * s->dim + d] -= grad_x[d] / s->spacing;
  }
  if (!p->velocity) {
    for (int c = 0; grad->amount && c < width_of(j); c++) grad->amount[n * s->channels + j->first + c] += grad_a[c];
    return;
  }
  if (grad->amount) grad->amount[n] += grad_a[0];
  for (int d = 0; d < s->dim; d++) {
    if (grad->amount) grad->amount[n] += p->velocity[n * s->dim + d] * grad_a[1 + d];
    if (grad->velocity) grad->velocity[n * s->dim + d] += p->amount[n] * grad_a[1 + d];
  }
}

// Adjoint of spread: from the tile, which holds the gradient of the picture, adds to the gradients of batch entry j->b:
// its points and the corner of its window. dim: 2 or 3, a constant.
static inline void spread_adj(const job *j, int dim) {
  for (int64_t n = j->b * j->s->count; n < (j->b + 1) * j->s->count; n++) {
    axis at[3];
    double a[WIDTH], grad_a[WIDTH] = {0}, grad_x[3] = {0};
    if (!place_all(j, n, dim, at)) continue;
    amounts_of(j, n, a);
    for (int o2 = 0; o2 < (dim == 3 ? REACH : 1); o2++)
      for (int o1 = 0; o1 < REACH; o1++) {
        pixel *line = line_of(&j->t, at, o1, o2);
        const double wy = at[1].weight[o1], wz = at[2].weight[o2];
        double sum = 0, slope = 0;       // over the line: of weight (g . a), and of the weight's derivative (g . a)
        for (int o0 = 0; o0 < REACH; o0++) {
          double dot = 0;
          for (int c = 0; c < WIDTH; c++) {
            dot += line[o0][c] * a[c];
            grad_a[c] += at[0].weight[o0] * wy * wz * line[o0][c];
          }
          sum += at[0].weight[o0] * dot;
          slope += at[0].slope[o0] * dot;
        }
        grad_x[0] += slope * wy * wz;
        grad_x[1] += sum * at[1].slope[o1] * wz;
        grad_x[2] += sum * wy * at[2].slope[o2];
      }
    give(j, n, grad_a, grad_x);
  }
}

// Adjoint of cq_tensor_splat, from grad_out: adds to the gradients in grad, of which NULLs are not wanted. CQ_OK or
// CQ_MEMORY.
cq_status cq_tensor_splat_adj(const cq_splat *s, const cq_splat_points *p, const cq_splat_points *grad,
                              const double *grad_out) {
  job j = {.s = s, .p = p, .grad = grad, .t = tile_of(s)};
  if (!j.t.at) return CQ_MEMORY;
  for (j.b = 0; j.b < s->batch; j.b++)
    for (j.first = 0; j.first < channels_of(s, p); j.first += WIDTH) {
      move(&j, 0, (double *)(uintptr_t)grad_out);
      if (s->dim == 2) spread_adj(&j, 2);
      else spread_adj(&j, 3);
    }
  cq_tensor_free(&j.t.at[0][0]);
  return CQ_OK;
}
