// Splat: amounts of points onto the pixels of a window by quadratic B-splines, and its adjoint. Pixel centres
// lie half a pixel within the window; what falls outside of it is lost. The loops go over points in their
// order: the same sums always.
#include "tensor.h"
#include <math.h>

enum { REACH = 3 };          // pixels of a point along an axis

// where a point falls along one axis: its first pixel, and weights and their slopes of three
typedef struct axis {
  int64_t first;
  double weight[REACH], slope[REACH];
} axis;

// Sets a to where a coordinate x [pixels from the lower corner] lies along an axis of `size` pixels: first pixel and
// weights. 1, or 0 where it reaches no pixel, or is not finite.
static inline int place(double x, int64_t size, axis *a) {
  const double y = x - 1;
  if (!(y >= -REACH && y < (double)size)) return 0;
  const int64_t first = (int64_t)y - (y < (double)(int64_t)y);     // floor, which is a call where there is no SSE4
  const double f = x - 0.5 - (double)first;                        // in [1/2, 3/2) from the centre of the first pixel
  const double u = 1.5 - f, v = f - 1, w = f - 0.5;
  *a = (axis){first, {0.5 * u * u, 0.75 - v * v, 0.5 * w * w}, {-u, -2 * v, w}};
  return 1;
}

// Sets at to where a point falls along each axis: first pixel and weights. An axis that the picture lacks has one
// pixel of weight 1, the middle one. 1, or 0 if the point falls beside the picture.
static inline int place_all(const cq_splat *s, const double *x, axis at[3]) {
  for (int d = 0; d < 3; d++) {
    at[d] = (axis){-1, {0, 1, 0}, {0}};
    if (d < s->dim && !place(x[d] / s->spacing, s->size[d], &at[d])) return 0;
  }
  return 1;
}

// The neighbours of a point that lie in the window, along each axis from `from` to `to`.
typedef struct reach {
  int from[3], to[3];
} reach;

// Which pixels of a point's stencil lie within the window.
static inline reach reach_of(const cq_splat *s, const axis at[3]) {
  reach r;
  for (int d = 0; d < 3; d++) {
    r.from[d] = at[d].first < 0 ? (int)-at[d].first : 0;
    const int64_t left = s->size[d] - at[d].first;
    r.to[d] = left < REACH ? (int)left : REACH;
  }
  return r;
}

// The pixel of a neighbour with o[0] = 0, from the start of a channel. Columns run along x, rows down along y, depth
// along z.
static int64_t line_of(const cq_splat *s, const axis at[3], int o1, int o2) {
  return ((at[2].first + o2) * s->size[1] + s->size[1] - 1 - at[1].first - o1) * s->size[0] + at[0].first;
}

#define LINES_EACH(r, o1, o2)                     \
  for (int o2 = r.from[2]; o2 < r.to[2]; o2++)    \
    for (int o1 = r.from[1]; o1 < r.to[1]; o1++)

// Adds the part of a point's amounts q that falls onto one line of pixels, of those from `from` to `to` (exclusive) of
// its stencil.
static inline void spread(double *line, const double w[REACH], const cq_splat *s, const double *q, int from, int to) {
  const int64_t pixels = s->size[0] * s->size[1] * s->size[2];
  for (int64_t c = 0; c < s->channels; c++, line += pixels)
    for (int o0 = from; o0 < to; o0++) line[o0] += w[o0] * q[c];
}

// Adds amounts q {batch, count, channels} of points at x {batch, count, dim} to the pixels around them, out {batch,
// channels, z, y, x}, by quadratic B-splines. x is counted from the lower corner of the window; what falls outside of
// it is lost.
void cq_tensor_splat(const cq_splat *s, const double *x, const double *q, double *out) {
  const int64_t pixels = s->size[0] * s->size[1] * s->size[2];
  for (int64_t b = 0; b < s->batch; b++, out += s->channels * pixels)
    for (int64_t p = 0; p < s->count; p++, x += s->dim, q += s->channels) {
      axis at[3];
      if (!place_all(s, x, at)) continue;
      const reach r = reach_of(s, at);
      LINES_EACH(r, o1, o2) {
        double *line = out + line_of(s, at, o1, o2), w[REACH];
        for (int o0 = 0; o0 < REACH; o0++) w[o0] = at[0].weight[o0] * at[1].weight[o1] * at[2].weight[o2];
        if (r.from[0] == 0 && r.to[0] == REACH) spread(line, w, s, q, 0, REACH);     // unrolled
        else spread(line, w, s, q, r.from[0], r.to[0]);
      }
    }
}

// Adjoint of cq_tensor_splat, from grad_out, g: grad_q_c += sum w g_c and grad_x += sum dw/dx g . q over the pixels
// that a point reaches; a NULL gradient is not wanted.
void cq_tensor_splat_adj(const cq_splat *s, const double *x, const double *q, double *grad_x, double *grad_q,
                         const double *grad_out) {
  const int64_t pixels = s->size[0] * s->size[1] * s->size[2];
  for (int64_t b = 0; b < s->batch; b++, grad_out += s->channels * pixels)
    for (int64_t p = 0; p < s->count; p++) {
      const int64_t n = b * s->count + p;
      axis at[3];
      if (!place_all(s, x + n * s->dim, at)) continue;
      const reach r = reach_of(s, at);
      LINES_EACH(r, o1, o2) {
        const double *line = grad_out + line_of(s, at, o1, o2);
        const int o[3] = {0, o1, o2};
        for (int o0 = r.from[0]; o0 < r.to[0]; o0++) {
          const double w[3] = {at[0].weight[o0], at[1].weight[o1], at[2].weight[o2]};
          double along = 0;
          for (int64_t c = 0; c < s->channels; c++) {
            const double g = line[c * pixels + o0];
            along += g * q[n * s->channels + c];
            if (grad_q) grad_q[n * s->channels + c] += w[0] * w[1] * w[2] * g;
          }
          for (int d = 0; d < s->dim && grad_x; d++)
            grad_x[n * s->dim + d] += along * at[d].slope[d == 0 ? o0 : o[d]] * w[(d + 1) % 3] * w[(d + 2) % 3]
              / s->spacing;
        }
      }
    }
}
