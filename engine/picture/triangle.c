// triangle: triangles of a scene with a camera: clipped behind it, projected onto the canvas, and drawn by depth.
#include "facet.h"
#include "vector.h"
#include <stdlib.h>
#include <string.h>

typedef struct placed {          // a facet in the order of depth, and the rows that it lies in
  float depth, low, high;
  int64_t index;
} placed;

typedef struct filling {
  cq_picture *picture;
  const facet *facets;
  const placed *order;
  int64_t count;
} filling;

// Order of facets for qsort: the nearest first.
static int before(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

// Returns a list of all facets (triangles on the canvas) in order of depth, the nearest first, so that most hidden
// samples fail the depth test at once, with the rows that each covers. NULL without memory; the caller frees it.
static placed *in_order(const facet *facets, int64_t count) {
  placed *order = cq_alloc((size_t)count + 1, sizeof *order, "triangles of a picture");
  for (int64_t i = 0; i < count && order; i++) {
    const float *y = facets[i].y;
    order[i] = (placed){ .depth = facets[i].depth, .index = i,
                         .low = (float)lesser(y[0], lesser(y[1], y[2])),
                         .high = (float)larger(y[0], larger(y[1], y[2])) };
  }
  if (order) qsort(order, (size_t)count, sizeof *order, before);
  return order;
}

// Draws a facet (a triangle on the canvas), in its part within rows [first, last), into the depth buffer. at_rows: the
// rows that it covers.
static void fill_facet(cq_picture *p, const facet *f, const placed *at_rows, int32_t first, int32_t last) {
  facet_scan scan;
  if (!facet_begin(f, &scan)) return;
  int32_t row = clamp_index(ceil(at_rows->low - 0.5), p->h), end = clamp_index(ceil(at_rows->high - 0.5), p->h);
  if (row < first) row = first;
  if (end > last) end = last;
  for (; row < end; row++) {
    int32_t x0, x1;
    if (!facet_span(f, row, p->w, &x0, &x1)) continue;
    facet_row(f, &scan, row, x0);
    surface *at = p->space->surfaces + (size_t)row * (size_t)p->w + x0;
    for (int32_t i = 0; i < x1 - x0; i++, at++) {
      float share[3], normal[3], depth = facet_at(&scan, i, share);
      if (!(depth < at->depth && depth > 0)) continue;
      facet_normal(f, share, normal);
      *at = (surface){.depth = depth,
                      .nx = nearest_int(511 * normal[0]),
                      .ny = nearest_int(511 * normal[1]),
                      .nz = nearest_int(511 * normal[2]),
                      .kind = SURFACE_BODY,
                      .rgba = facet_colour(f, share)};
    }
  }
}

// Draws all facets (triangles on the canvas) of a `filling` (context) into rows [first, last) of the depth buffer.
static void fill_band(void *context, int32_t first, int32_t last) {
  const filling *f = context;
  for (int64_t i = 0; i < f->count; i++) {
    const placed *one = f->order + i;
    if (one->high > (float)first && one->low < (float)last)
      fill_facet(f->picture, f->facets + one->index, one, first, last);
  }
}

typedef struct corner {          // in the camera's axes
  double c[3], normal[3], tint[4];
} corner;

// Sets out to place, normal and colour at share t (0 to 1) of the edge from corner a to corner b, by interpolation.
static void mix(const corner *a, const corner *b, double t, corner *out) {
  for (int d = 0; d < 3; d++) {
    out->c[d] = a->c[d] + t * (b->c[d] - a->c[d]);
    out->normal[d] = a->normal[d] + t * (b->normal[d] - a->normal[d]);
  }
  for (int k = 0; k < 4; k++) out->tint[k] = a->tint[k] + t * (b->tint[k] - a->tint[k]);
}

// Projects a triangle, whose three corners are in front of the camera, onto the canvas.
static facet to_facet(const cq_picture *p, const corner *const of[3]) {
  facet f;
  double depth = 0;
  for (int i = 0; i < 3; i++) {
    double q = 1 / of[i]->c[2];
    f.q[i] = (float)q;
    f.x[i] = (float)(0.5 * p->w + p->space->focal * of[i]->c[0] * q);
    f.y[i] = (float)(0.5 * p->h - p->space->focal * of[i]->c[1] * q);
    f.rgba[i] = 0;
    for (int k = 0; k < 4; k++) f.rgba[i] |= (uint32_t)(of[i]->tint[k] + 0.5) << (24 - 8 * k);
    for (int d = 0; d < 3; d++) f.normal[i][d] = (float)of[i]->normal[d];
    depth += of[i]->c[2] / 3;
  }
  f.depth = (float)depth;
  return f;
}

// Projects a triangle with corners x {3, 3} in the world, normals {3, 3} and colours rgba {3} onto the canvas, into
// out. The part behind the camera is cut off, which can leave a quadrangle: returns the number of triangles, 0 to 2.
static int project(const cq_picture *p, const double *x, const double *normal, const uint32_t *rgba, facet out[2]) {
  corner c[3], kept[4];
  double front = 1e-3 * p->space->def.focus_radius;
  int before = 0, count = 0;
  for (int i = 0; i < 3; i++) {
    to_camera(p->space, x + 3 * i, c[i].c);
    if (!isfinite(c[i].c[0] + c[i].c[1] + c[i].c[2])) return 0;
    for (int d = 0; d < 3; d++) c[i].normal[d] = normal[3 * i + d];
    for (int k = 0; k < 4; k++) c[i].tint[k] = rgba[i] >> (24 - 8 * k) & 255;
    before += c[i].c[2] >= front;
  }
  if (before == 3) {
    const corner *of[3] = { &c[0], &c[1], &c[2] };
    out[0] = to_facet(p, of);
    return 1;
  }
  if (before == 0) return 0;
  for (int i = 0; i < 3; i++) {
    const corner *u = &c[i], *v = &c[(i + 1) % 3];
    if (u->c[2] >= front) kept[count++] = *u;
    if ((u->c[2] >= front) != (v->c[2] >= front)) mix(u, v, (front - u->c[2]) / (v->c[2] - u->c[2]), &kept[count++]);
  }
  for (int i = 2; i < count; i++) {
    const corner *of[3] = { &kept[0], &kept[i - 1], &kept[i] };
    out[i - 2] = to_facet(p, of);
  }
  return count - 2;
}

// Draws n triangles with corners and their normals {n, 3, 3} in the world and colours rgba {n, 3}: opaque ones into the
// depth buffer and the shadow map; translucent ones are listed and drawn when the scene is lit. CQ_OK or CQ_MEMORY.
cq_status draw_facets(cq_picture *p, int64_t n, const double *corners, const double *normal, const uint32_t *rgba) {
  facet *facets = cq_alloc((size_t)(2 * n + 1), sizeof *facets, "triangles of a picture");
  if (!facets) return CQ_MEMORY;
  filling f = { .picture = p, .facets = facets };
  cq_status status = CQ_OK;
  for (int64_t i = 0; i < n && !status; i++) {
    facet made[2];
    const uint32_t *tint = rgba + 3 * i;
    int count = project(p, corners + 9 * i, normal + 9 * i, tint, made),
        clear = (tint[0] & tint[1] & tint[2] & 255) < 255;
    for (int k = 0; k < count && !status; k++) {
      if (clear) status = keep_facet(p->space, &made[k]);
      else facets[f.count++] = made[k];
    }
  }
  placed *order = status ? NULL : in_order(facets, f.count);
  if (!status && !order) status = CQ_MEMORY;
  if (!status) {
    f.order = order;
    in_bands(p->threads, p->h, 2 * BAND, fill_band, &f);
    status = shadow_triangles(p, n, corners, rgba);
  }
  cq_free(order);
  cq_free(facets);
  return status;
}

// Draws n flat triangles with corners {n, 3, 3} in the world and colours rgba {n}, visible from both sides, into a
// scene with a camera. CQ_OK, CQ_MEMORY, or CQ_INVALID without a camera.
cq_status cq_picture_triangles(cq_picture *p, int64_t n, const double *corners, const uint32_t *rgba) {
  if (!p->space) return no_camera();
  double *normal = cq_alloc((size_t)n + 1, 9 * sizeof *normal, "triangles of a picture");
  uint32_t *tint = cq_alloc((size_t)n + 1, 3 * sizeof *tint, "triangles of a picture");
  if (!normal || !tint) {
    cq_free(normal);
    cq_free(tint);
    return CQ_MEMORY;
  }
  for (int64_t i = 0; i < n; i++) {
    const double *x = corners + 9 * i;
    double a[3], b[3], to_eye[3], *across = normal + 9 * i;
    for (int d = 0; d < 3; d++) {
      a[d] = x[3 + d] - x[d];
      b[d] = x[6 + d] - x[d];
      to_eye[d] = p->space->def.eye[d] - x[d];
    }
    cross3(a, b, across);
    if (!normalize3(across)) across[1] = 1;
    if (dot3(across, to_eye) < 0) for (int d = 0; d < 3; d++) across[d] = -across[d];
    for (int k = 0; k < 3; k++) {
      if (k) memcpy(across + 3 * k, across, 3 * sizeof *across);
      tint[3 * i + k] = rgba[i];
    }
  }
  cq_status status = draw_facets(p, n, corners, normal, tint);
  cq_free(normal);
  cq_free(tint);
  return status;
}
