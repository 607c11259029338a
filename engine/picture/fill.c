// fill: filled shapes in 2D: polygons and discs; and capsules, of which lines are made.
#include "picture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS = 4 };              // scan lines through a row of samples

// Order of two doubles, for qsort.
static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Adds coverage from x0 to x1 [sample] to a row of the coverage mask, w samples wide; samples at both ends count by the
// covered part. A span is one of BANDS scan lines through the row, and adds 1 / BANDS of full coverage.
static void add_span(uint8_t *mask, int32_t w, double x0, double x1) {
  if (x0 < 0) x0 = 0;
  if (x1 > w) x1 = w;
  if (!(x0 < x1)) return;
  int32_t i0 = (int32_t)x0, i1 = (int32_t)x1;
  for (int32_t i = i0; i <= i1 && i < w; i++) {
    double part = fmin(x1, i + 1.0) - fmax(x0, i);
    int32_t sum = mask[i] + (int32_t)(part * 256.0 / BANDS + 0.5);
    mask[i] = (uint8_t)(sum < 255 ? sum : 255);
  }
}

// Fills a polygon of n corners, points {n, 2} in units of the view, with a colour 0xRRGGBBAA, by the even-odd rule.
// CQ_OK, CQ_MEMORY, or CQ_INVALID for fewer than three corners.
cq_status cq_picture_polygon(cq_picture *p, int64_t n, const double *points, uint32_t rgba) {
  if (n < 3) return cq_fail(CQ_INVALID, "a polygon of %lld points is wanted, at least 3 make one", (long long)n);
  double *corner = cq_alloc((size_t)n, 3 * sizeof *corner, "polygon corners");
  if (!corner) return CQ_MEMORY;
  double *crossing = corner + 2 * n, x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    double x = corner[2 * i] = sample_x(p, points[2 * i]), y = corner[2 * i + 1] = sample_y(p, points[2 * i + 1]);
    x0 = fmin(x0, x); x1 = fmax(x1, x); y0 = fmin(y0, y); y1 = fmax(y1, y);
  }
  mask_touch(p, x0, y0, x1 + 1, y1);
  for (int32_t row = clamp_index(floor(y0), p->h), end = clamp_index(ceil(y1), p->h); row < end; row++)
    for (int band = 0; band < BANDS; band++) {
      double y = row + (band + 0.5) / BANDS;
      int64_t count = 0;
      for (int64_t i = 0, j = n - 1; i < n; j = i++) {
        const double *a = corner + 2 * j, *b = corner + 2 * i;
        if ((a[1] <= y) != (b[1] <= y)) crossing[count++] = a[0] + (y - a[1]) * (b[0] - a[0]) / (b[1] - a[1]);
      }
      qsort(crossing, (size_t)count, sizeof *crossing, ascending);
      for (int64_t i = 0; i + 1 < count; i += 2)
        add_span(p->mask + (size_t)row * (size_t)p->w, p->w, crossing[i], crossing[i + 1]);
    }
  mask_paint(p, rgba);
  cq_free(corner);
  return CQ_OK;
}

// Draws n discs of centre {n, 2} and radius {n} in units of the view, and colour rgba {n} (0xRRGGBBAA).
void cq_picture_discs(cq_picture *p, int64_t n, const double *centre, const double *radius, const uint32_t *rgba) {
  for (int64_t i = 0; i < n; i++) {
    double cx = sample_x(p, centre[2 * i]), cy = sample_y(p, centre[2 * i + 1]), r = sample_length(p, radius[i]);
    if (!(isfinite(cx) && isfinite(cy) && r > 0)) continue;
    uint32_t solid = premultiply(rgba[i], 255);
    for (int32_t y = clamp_index(floor(cy - r), p->h), y1 = clamp_index(ceil(cy + r), p->h); y < y1; y++) {
      double dy = y + 0.5 - cy, outer = (r + 0.5) * (r + 0.5) - dy * dy;
      if (outer <= 0) continue;
      double half = sqrt(outer), inner = r > 0.5 ? (r - 0.5) * (r - 0.5) : 0;
      uint32_t *row = p->colour + (size_t)y * (size_t)p->w;
      for (int32_t x = clamp_index(cx - half, p->w), x1 = clamp_index(ceil(cx + half), p->w); x < x1; x++) {
        double dx = x + 0.5 - cx, d2 = dx * dx + dy * dy;
        if (d2 <= inner) { row[x] = over(solid, row[x]); continue; }
        double cover = r + 0.5 - sqrt(d2);
        if (cover > 0) row[x] = over(premultiply(rgba[i], (uint32_t)(255 * fmin(cover, 1))), row[x]);
      }
    }
  }
}

// Adds a line with round ends, a to b, to the coverage mask; larger coverage stays. radius: half its width; in samples.
void mask_capsule(cq_picture *p, const double a[2], const double b[2], double radius) {
  double reach = radius + 0.5, ex = b[0] - a[0], ey = b[1] - a[1], length2 = ex * ex + ey * ey;
  if (!isfinite(length2)) return;
  double top = fmin(a[1], b[1]) - reach, bottom = fmax(a[1], b[1]) + reach;
  mask_touch(p, fmin(a[0], b[0]) - reach, top, fmax(a[0], b[0]) + reach, bottom);
  for (int32_t y = clamp_index(floor(top), p->h), y1 = clamp_index(ceil(bottom), p->h); y < y1; y++) {
    // the part of the segment within reach of this row bounds the x to look at
    double cy = y + 0.5, s = 0, t = 1;
    if (fabs(ey) > 1e-9) {
      double u = (cy - reach - a[1]) / ey, v = (cy + reach - a[1]) / ey;
      s = fmin(fmax(fmin(u, v), 0), 1);
      t = fmin(fmax(fmax(u, v), 0), 1);
    }
    double xs = a[0] + s * ex, xt = a[0] + t * ex;
    uint8_t *row = p->mask + (size_t)y * (size_t)p->w;
    for (int32_t x = clamp_index(floor(fmin(xs, xt) - reach), p->w), x1 = clamp_index(ceil(fmax(xs, xt) + reach), p->w);
         x < x1; x++) {
      double qx = x + 0.5 - a[0], qy = cy - a[1];
      double along = length2 > 0 ? fmin(fmax((qx * ex + qy * ey) / length2, 0), 1) : 0;
      double dx = qx - along * ex, dy = qy - along * ey, cover = reach - sqrt(dx * dx + dy * dy);
      if (cover <= 0) continue;
      uint8_t value = (uint8_t)(255 * fmin(cover, fmin(1, 2 * radius)));
      if (value > row[x]) row[x] = value;
    }
  }
}

// Draws a line through n points {n, 2} in units of the view; width in pixels, colour 0xRRGGBBAA. CQ_OK, or CQ_INVALID
// for fewer than two points or a width not above 0.
cq_status cq_picture_polyline(cq_picture *p, int64_t n, const double *points, double width, uint32_t rgba) {
  if (n < 2) return cq_fail(CQ_INVALID, "a line through %lld points is wanted, at least 2 make one", (long long)n);
  if (!(width > 0)) return cq_fail(CQ_INVALID, "a line of width %g is wanted, above 0 is allowed", width);
  for (int64_t i = 0; i + 1 < n; i++) {
    const double *q = points + 2 * i;
    double a[2] = { sample_x(p, q[0]), sample_y(p, q[1]) }, b[2] = { sample_x(p, q[2]), sample_y(p, q[3]) };
    mask_capsule(p, a, b, 0.5 * width * p->samples);
  }
  mask_paint(p, rgba);
  return CQ_OK;
}
