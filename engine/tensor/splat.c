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

// x: in pixels from the lower corner. 0: nowhere near the window, or no number.
static int place(double x, int64_t size, axis *a) {
  const double base = floor(x - 1), f = x - 0.5 - base;   // f in [1/2, 3/2) from the centre of the first pixel
  if (!(base > -REACH && base < (double)size)) return 0;
  const double u = 1.5 - f, v = f - 1, w = f - 0.5;
  *a = (axis){(int64_t)base, {0.5 * u * u, 0.75 - v * v, 0.5 * w * w}, {-u, -2 * v, w}};
  return 1;
}

// Where a point falls; an axis that is not there has one pixel, of weight one in the middle.
static int place_all(const cq_splat *s, const double *x, axis at[3]) {
  for (int d = 0; d < 3; d++) {
    at[d] = (axis){-1, {0, 1, 0}, {0}};
    if (d < s->dim && !place(x[d] / s->spacing, s->size[d], &at[d])) return 0;
  }
  return 1;
}

// The pixel of a neighbour of a point, from the start of a channel; -1: outside. Columns run along x, rows
// down along y, depth along z.
static int64_t pixel_of(const cq_splat *s, const axis at[3], const int o[3]) {
  int64_t k[3];
  for (int d = 0; d < 3; d++) {
    k[d] = at[d].first + o[d];
    if (k[d] < 0 || k[d] >= s->size[d]) return -1;
  }
  return (k[2] * s->size[1] + s->size[1] - 1 - k[1]) * s->size[0] + k[0];
}

#define NEIGHBOURS_EACH(o)                    \
  for (int o[3] = {0}; o[2] < REACH; o[2]++)   \
    for (o[1] = 0; o[1] < REACH; o[1]++)      \
      for (o[0] = 0; o[0] < REACH; o[0]++)

void cq_tensor_splat(const cq_splat *s, const double *x, const double *q, double *out) {
  const int64_t pixels = s->size[0] * s->size[1] * s->size[2];
  for (int64_t b = 0; b < s->batch; b++, out += s->channels * pixels)
    for (int64_t p = 0; p < s->count; p++, x += s->dim, q += s->channels) {
      axis at[3];
      if (!place_all(s, x, at)) continue;
      NEIGHBOURS_EACH(o) {
        const int64_t pixel = pixel_of(s, at, o);
        const double w = at[0].weight[o[0]] * at[1].weight[o[1]] * at[2].weight[o[2]];
        for (int64_t c = 0; pixel >= 0 && c < s->channels; c++) out[c * pixels + pixel] += w * q[c];
      }
    }
}

// dL/dq_c += sum w g_c, dL/dx += sum dw/dx g . q
void cq_tensor_splat_adj(const cq_splat *s, const double *x, const double *q, double *grad_x, double *grad_q,
                         const double *grad_out) {
  const int64_t pixels = s->size[0] * s->size[1] * s->size[2];
  for (int64_t b = 0; b < s->batch; b++, grad_out += s->channels * pixels)
    for (int64_t p = 0; p < s->count; p++) {
      const int64_t n = b * s->count + p;
      axis at[3];
      if (!place_all(s, x + n * s->dim, at)) continue;
      NEIGHBOURS_EACH(o) {
        const int64_t pixel = pixel_of(s, at, o);
        const double w[3] = {at[0].weight[o[0]], at[1].weight[o[1]], at[2].weight[o[2]]};
        double along = 0;
        for (int64_t c = 0; pixel >= 0 && c < s->channels; c++) {
          const double g = grad_out[c * pixels + pixel];
          along += g * q[n * s->channels + c];
          if (grad_q) grad_q[n * s->channels + c] += w[0] * w[1] * w[2] * g;
        }
        for (int d = 0; d < s->dim && grad_x; d++)
          grad_x[n * s->dim + d] += along * at[d].slope[o[d]] * w[(d + 1) % 3] * w[(d + 2) % 3] / s->spacing;
      }
    }
}
