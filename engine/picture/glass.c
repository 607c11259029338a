// glass: translucent triangles and balls, drawn over the finished scene, the farthest first.
#include "facet.h"
#include "vector.h"
#include <stdlib.h>
#include <string.h>

// Makes sure that *list, an array of `count` elements of `size` bytes, has memory for one more; *room: the number of
// elements that it has memory for. Returns 1, or 0 if there is no memory.
static int grow(void **list, int64_t count, int64_t *room, size_t size) {
  if (count < *room) return 1;
  int64_t wanted = *room ? 2 * *room : 256;
  void *larger = cq_alloc((size_t)wanted, size, "translucent surfaces");
  if (!larger) return 0;
  if (count) memcpy(larger, *list, (size_t)count * size);
  cq_free(*list);
  *list = larger;
  *room = wanted;
  return 1;
}

// Adds a translucent triangle on the canvas to the list that draw_glass draws later. CQ_OK or CQ_MEMORY.
cq_status keep_facet(space *s, const facet *f) {
  void *list = s->clear_facets;
  if (!grow(&list, s->facet_count, &s->facet_room, sizeof *f)) return CQ_MEMORY;
  s->clear_facets = list;
  s->clear_facets[s->facet_count++] = *f;
  return CQ_OK;
}

// Adds a translucent ball in the camera's coordinates to the list that draw_glass draws later. CQ_OK or CQ_MEMORY.
cq_status keep_globe(space *s, const globe *g) {
  void *list = s->clear_globes;
  if (!grow(&list, s->globe_count, &s->globe_room, sizeof *g)) return CQ_MEMORY;
  s->clear_globes = list;
  s->clear_globes[s->globe_count++] = *g;
  return CQ_OK;
}

typedef struct glazing {
  cq_picture *picture;
  const pane *panes;
  int64_t count;
} glazing;

// Order of panes for qsort: the farthest first.
static int farther(const void *a, const void *b) {
  const pane *x = a, *y = b;
  if (x->depth != y->depth) return x->depth < y->depth ? 1 : -1;
  if (x->is_globe != y->is_globe) return x->is_globe - y->is_globe;
  return (x->index > y->index) - (x->index < y->index);
}

// Lights a translucent sheet of unit normal n and colour rgba, and blends it over sample number `at` of the canvas.
// ray: direction of view. At a flat angle the sheet is more opaque, since the ray's way through it is longer.
static void tint(cq_picture *p, size_t at, const double n[3], const double ray[3], uint32_t rgba) {
  double across = fabs(dot3(n, ray)) / sqrt(dot3(ray, ray)), clear = 1 - (rgba & 255) / 255.0;
  double alpha = 1 - pow(clear, 1 / fmax(across, 0.25));
  uint32_t shaded = lit_body(p, n, ray, 1, 1, rgba | 255);
  p->colour[at] = over(premultiply((shaded & ~255u) | (uint32_t)(255 * alpha + 0.5), 255), p->colour[at]);
}

// Sets ray to the direction in the world, not normalized, from the camera through sample (x, y) of the canvas.
static void ray_of(const cq_picture *p, int32_t x, int32_t y, double ray[3]) {
  const space *s = p->space;
  for (int d = 0; d < 3; d++)
    ray[d] =
        s->forward[d] + (x + 0.5 - 0.5 * p->w) / s->focal * s->right[d] + (0.5 * p->h - y - 0.5) / s->focal * s->up[d];
}

// Blends a translucent triangle, in its part within rows [first, last), over the samples that it is nearer than.
static void glaze_facet(cq_picture *p, const facet *f, int32_t first, int32_t last) {
  float low = fminf(f->y[0], fminf(f->y[1], f->y[2])), high = fmaxf(f->y[0], fmaxf(f->y[1], f->y[2]));
  facet_scan scan;
  if (!(high > (float)first && low < (float)last) || !facet_begin(f, &scan)) return;
  int32_t row = clamp_index(ceil(low - 0.5), last), end = clamp_index(ceil(high - 0.5), last);
  for (row = row > first ? row : first; row < end; row++) {
    int32_t x0, x1;
    if (!facet_span(f, row, p->w, &x0, &x1)) continue;
    facet_row(f, &scan, row, x0);
    for (int32_t i = 0; i < x1 - x0; i++) {
      size_t at = (size_t)row * (size_t)p->w + (size_t)(x0 + i);
      float share[3], normal[3], depth = facet_at(&scan, i, share);
      if (!(depth > 0 && depth < p->space->surfaces[at].depth)) continue;
      facet_normal(f, share, normal);
      double n[3] = { normal[0], normal[1], normal[2] }, ray[3];
      ray_of(p, x0 + i, row, ray);
      tint(p, at, n, ray, facet_colour(f, share));
    }
  }
}

// Blends the front of a translucent ball, in its part within rows [first, last), over the samples that it is nearer
// than; each sample's ray is intersected with the ball.
static void glaze_globe(cq_picture *p, const globe *g, int32_t first, int32_t last) {
  const space *s = p->space;
  if (g->c[2] <= g->radius) return;                // the camera is in it or past it
  // a ball seen from aside is an ellipse on the canvas, within a disc of this radius
  double k = s->focal / (g->c[2] - g->radius), cx = 0.5 * p->w + s->focal / g->c[2] * g->c[0],
         cy = 0.5 * p->h - s->focal / g->c[2] * g->c[1];
  double reach = 1.5 * k * g->radius * sqrt(1 + (g->c[0] * g->c[0] + g->c[1] * g->c[1]) / (g->c[2] * g->c[2])),
         cc = dot3(g->c, g->c) - g->radius * g->radius;
  int32_t y = clamp_index(cy - reach, last), y1 = clamp_index(cy + reach + 1, last);
  for (y = y > first ? y : first; y < y1; y++)
    for (int32_t x = clamp_index(cx - reach, p->w), x1 = clamp_index(cx + reach + 1, p->w); x < x1; x++) {
      double d[3] = {(x + 0.5 - 0.5 * p->w) / s->focal, (0.5 * p->h - y - 0.5) / s->focal, 1}, dd = dot3(d, d),
             dc = dot3(d, g->c);
      double root = dc * dc - dd * cc;
      if (root <= 0) continue;
      double t = (dc - sqrt(root)) / dd, m[3], n[3], ray[3];
      size_t at = (size_t)y * (size_t)p->w + (size_t)x;
      if (t >= s->surfaces[at].depth) continue;
      for (int i = 0; i < 3; i++) m[i] = (t * d[i] - g->c[i]) / g->radius;
      for (int i = 0; i < 3; i++) n[i] = m[0] * s->right[i] + m[1] * s->up[i] + m[2] * s->forward[i];
      ray_of(p, x, y, ray);
      tint(p, at, n, ray, g->rgba);
    }
}

// Blends all translucent triangles and balls of a `glazing` (context) over rows [first, last), the farthest first.
static void glaze(void *context, int32_t first, int32_t last) {
  const glazing *g = context;
  const space *s = g->picture->space;
  for (int64_t k = 0; k < g->count; k++) {
    const pane *one = &g->panes[k];
    if (one->is_globe) glaze_globe(g->picture, &s->clear_globes[one->index], first, last);
    else glaze_facet(g->picture, &s->clear_facets[one->index], first, last);
  }
}

// Draws the translucent triangles and balls that keep_facet and keep_globe have listed over the lit scene, the farthest
// first, and empties the lists. CQ_OK or CQ_MEMORY.
cq_status draw_glass(cq_picture *p) {
  space *s = p->space;
  int64_t count = s->facet_count + s->globe_count;
  if (!count) return CQ_OK;
  pane *panes = cq_alloc((size_t)count, sizeof *panes, "translucent surfaces");
  if (!panes) return CQ_MEMORY;
  for (int64_t k = 0; k < s->facet_count; k++) panes[k] = (pane){ s->clear_facets[k].depth, (int32_t)k, 0 };
  for (int64_t k = 0; k < s->globe_count; k++)
    panes[s->facet_count + k] = (pane){(float)s->clear_globes[k].c[2], (int32_t)k, 1};
  qsort(panes, (size_t)count, sizeof *panes, farther);
  glazing g = { p, panes, count };
  in_bands(p->threads, p->h, 2 * BAND, glaze, &g);
  cq_free(panes);
  s->facet_count = s->globe_count = 0;
  return CQ_OK;
}
