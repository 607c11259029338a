// wire: lines through a finished scene with a camera. What lies behind a surface is drawn too, but pale.
#include "picture.h"
#include "vector.h"
#include <math.h>

#define PIECE 4                  // [sample] of a line that is hidden or not as a whole

// Is a point behind a surface of the depth buffer? c: the point in the camera's coordinates; at: on the canvas
// [sample]. 1 yes, 0 no.
static int is_hidden(const cq_picture *p, const double c[3], const double at[2]) {
  if (!(at[0] >= 0 && at[1] >= 0 && at[0] < p->w && at[1] < p->h)) return 0;
  return p->space->surfaces[(size_t)at[1] * (size_t)p->w + (size_t)at[0]].depth < c[2];
}

// Draws a line through points {n, 3} of the world, but only its parts that are behind surfaces (hidden 1), or only its
// visible parts (hidden 0). width in pixels.
static void draw_some(cq_picture *p, const double *points, int64_t n, double width, uint32_t rgba, int hidden) {
  const space *s = p->space;
  for (int64_t i = 0; i + 1 < n; i++) {
    double a[3], b[3], from[2], to[2];
    to_camera(s, points + 3 * i, a);
    to_camera(s, points + 3 * (i + 1), b);
    if (!(a[2] > 0 && b[2] > 0) || !isfinite(a[0] + a[1] + a[2] + b[0] + b[1] + b[2])) continue;
    double ends[4] = { 0.5 * p->w + s->focal * a[0] / a[2], 0.5 * p->h - s->focal * a[1] / a[2],
                       0.5 * p->w + s->focal * b[0] / b[2], 0.5 * p->h - s->focal * b[1] / b[2] };
    double pieces = ceil(hypot(ends[2] - ends[0], ends[3] - ends[1]) / PIECE);
    int32_t count = 1 + clamp_index(pieces, 4096);
    for (int32_t k = 0; k < count; k++) {
      // places along the line, and its depth in the middle of the piece: 1 / depth is linear on the canvas
      double t = (double)k / count, u = (double)(k + 1) / count, m = 0.5 * (t + u), middle[2],
             c[3] = {0, 0, 1 / ((1 - m) / a[2] + m / b[2])};
      for (int d = 0; d < 2; d++) {
        from[d] = ends[d] + t * (ends[2 + d] - ends[d]);
        to[d] = ends[d] + u * (ends[2 + d] - ends[d]);
        middle[d] = 0.5 * (from[d] + to[d]);
      }
      if (is_hidden(p, c, middle) == hidden) mask_capsule(p, from, to, 0.5 * width * p->samples);
    }
  }
  mask_paint(p, rgba);
}

// Draws a line through points {n, 3} of the world over a lit scene; width in pixels. hidden: how visible the line is
// behind surfaces, 0 to 1. CQ_OK, or CQ_INVALID without a camera or for values that are not allowed.
cq_status cq_picture_wire(cq_picture *p, int64_t n, const double *points, double width, uint32_t rgba, double hidden) {
  if (!p->space) return no_camera();
  if (n < 2) return cq_fail(CQ_INVALID, "a line through %lld points is wanted, at least 2 make one", (long long)n);
  if (!(width > 0)) return cq_fail(CQ_INVALID, "a line of width %g is wanted, above 0 is allowed", width);
  if (!(hidden >= 0 && hidden <= 1))
    return cq_fail(CQ_INVALID, "a hidden line is %g as visible as others, from 0 to 1 is allowed", hidden);
  if (hidden > 0) draw_some(p, points, n, width, (rgba & ~255u) | (uint32_t)((rgba & 255) * hidden + 0.5), 1);
  draw_some(p, points, n, width, rgba, 0);
  return CQ_OK;
}
