// facet: a facet is a triangle of a 3D scene, projected onto the canvas; here its samples are found one row at a time.
#ifndef CQ_PICTURE_FACET_H
#define CQ_PICTURE_FACET_H

#include "picture.h"
#include "vector.h"

// The x at which the edge from a to b crosses height y. It is the same to the last bit for the edge from b to a, so
// that a sample on the common edge of two triangles belongs to one of them.
static inline double edge_crossing(double ax, double ay, double bx, double by, double y) {
  return ay < by ? ax + (y - ay) * (bx - ax) / (by - ay) : bx + (y - by) * (ax - bx) / (ay - by);
}

// Sets [first, last) to the samples of canvas row `row`, w samples wide, whose middles lie in a facet (a triangle on
// the canvas). Returns 0 if there are none, else 1.
static inline int facet_span(const facet *f, int32_t row, int32_t w, int32_t *first, int32_t *last) {
  double y = row + 0.5, lo = INFINITY, hi = -INFINITY;
  for (int i = 0, j = 2; i < 3; j = i++) {
    if ((f->y[i] <= y) == (f->y[j] <= y)) continue;
    double x = edge_crossing(f->x[j], f->y[j], f->x[i], f->y[i], y);
    lo = lesser(lo, x);
    hi = larger(hi, x);
  }
  if (!(lo < hi)) return 0;
  *first = clamp_index(ceil(lo - 0.5), w);
  *last = clamp_index(ceil(hi - 0.5), w);
  return *first < *last;
}

typedef struct facet_plane { float at, dx; } facet_plane;      // a number that changes linearly along a row

typedef struct facet_scan {      // shares of the corners along a row, each over the depth there
  facet_plane share[3];
  float area;
} facet_scan;

// Begins to scan a facet (a triangle on the canvas) row by row: sets s->area. Returns 0 if it has no area, else 1.
static inline int facet_begin(const facet *f, facet_scan *s) {
  s->area = (f->x[1] - f->x[0]) * (f->y[2] - f->y[0]) - (f->x[2] - f->x[0]) * (f->y[1] - f->y[0]);
  return isfinite(s->area) && fabsf(s->area) > 1e-9f;
}

// Begins canvas row `row` of the scan at sample `first`: sets in s the barycentric coordinates there, each divided by
// the depth of its corner, and their change from sample to sample.
static inline void facet_row(const facet *f, facet_scan *s, int32_t row, int32_t first) {
  float y = (float)row + 0.5f, x = (float)first + 0.5f, inverse = 1 / s->area;
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    s->share[i].at = ((f->x[j] - x) * (f->y[k] - y) - (f->x[k] - x) * (f->y[j] - y)) * inverse * f->q[i];
    s->share[i].dx = (f->y[j] - f->y[k]) * inverse * f->q[i];
  }
}

// Sets share to the barycentric coordinates, in perspective, of the facet's corners at the sample `along` samples after
// the first one of the row (facet_row); returns the depth there [length].
static inline float facet_at(const facet_scan *s, int32_t along, float share[3]) {
  float sum = 0;
  for (int i = 0; i < 3; i++) {
    share[i] = s->share[i].at + (float)along * s->share[i].dx;
    sum += share[i];
  }
  float depth = 1 / sum;
  for (int i = 0; i < 3; i++) share[i] *= depth;
  return depth;
}

// Sets the unit normal at a sample, interpolated between the facet's corners by their barycentric coordinates `share`.
static inline void facet_normal(const facet *f, const float share[3], float normal[3]) {
  for (int d = 0; d < 3; d++)
    normal[d] = share[0] * f->normal[0][d] + share[1] * f->normal[1][d] + share[2] * f->normal[2][d];
  float length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
  float inverse = length > 0 ? 1 / length : 1;
  for (int d = 0; d < 3; d++) normal[d] *= inverse;
}

// The colour at a sample, interpolated between the facet's corners by their barycentric coordinates `share`.
static inline uint32_t facet_colour(const facet *f, const float share[3]) {
  if (f->rgba[0] == f->rgba[1] && f->rgba[1] == f->rgba[2]) return f->rgba[0];
  uint32_t out = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    float value = 0;
    for (int i = 0; i < 3; i++) value += share[i] * (float)(f->rgba[i] >> shift & 255);
    out |= (uint32_t)(float)lesser((float)larger(value + 0.5f, 0), 255) << shift;
  }
  return out;
}

#endif
