// Flat ground: each ray meets the plane, and the grid of lines is filtered by the footprint of the sample.
#include "picture.h"
#include "vector.h"

typedef struct paving {
  const cq_plane *def;
  double normal[3], first[3], second[3];
  int endless;
} paving;

static uint32_t mix(uint32_t a, uint32_t b, double t) {
  uint32_t out = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    double x = a >> shift & 255, y = b >> shift & 255;
    out |= (uint32_t)(x + t * (y - x) + 0.5) << shift;
  }
  return out;
}

// how much of a footprint of this width lies on lines of half width around the multiples of 1
static double line_share(double x, double half, double footprint) {
  double distance = fabs(x - floor(x + 0.5));
  double part = (half + 0.5 * footprint - distance) / footprint;
  return fmin(fmax(part, 0), fmin(1, 2 * half / footprint));
}

// colour at grid coordinates a, b; the checkerboard and the lines fade where a sample holds many of them
static uint32_t pave(const paving *g, double a, double b, double footprint) {
  double cell = g->def->cell;
  if (!(cell > 0)) return g->def->rgba;
  double f = footprint / cell, u = a / cell, v = b / cell, calm = 1 - smooth(0.15, 0.5, f);
  if (calm <= 0) return mix(g->def->rgba, g->def->line, 0.04);
  int odd = (int)((int64_t)floor(u) + (int64_t)floor(v)) & 1;
  double line = fmax(line_share(u, 0.011, f), line_share(v, 0.011, f));
  return mix(g->def->rgba, g->def->line, 0.04 + calm * (0.55 * line + (odd ? 0.025 : -0.025)));
}

cq_status cq_picture_plane(cq_picture *p, const cq_plane *plane) {
  space *s = p->space;
  if (!s) return cq_fail(CQ_INVALID, "the picture has no camera, set one with cq_picture_camera first");
  if (plane->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "the plane was not filled by cq_plane_init");
  paving g = { .def = plane, .endless = plane->lower[0] == plane->upper[0] && plane->lower[1] == plane->upper[1] };
  for (int d = 0; d < 3; d++) g.normal[d] = plane->normal[d];
  if (!normalize3(g.normal) || !across3(g.normal, plane->first, g.first, g.second))
    return cq_fail(CQ_INVALID, "the plane's normal must have a direction, and first must not lie along it");

  double offset[3], to_focus[3], facing[3];
  for (int d = 0; d < 3; d++) {
    offset[d] = plane->point[d] - s->def.eye[d];
    to_focus[d] = s->def.focus[d] - plane->point[d];
  }
  double height = dot3(offset, g.normal), side = height > 0 ? -1 : 1;      // the side that the camera sees
  for (int d = 0; d < 3; d++) facing[d] = side * g.normal[d];
  double focus[2] = { dot3(to_focus, g.first), dot3(to_focus, g.second) }, eye[2] = { -dot3(offset, g.first), -dot3(offset, g.second) };
  double near = 3 * s->def.focus_radius, far = 14 * s->def.focus_radius;   // where endless ground fades

  // along a row the ray changes linearly: (slope, a, b) = components of the ray along normal, first, second
  double step[3] = { dot3(s->right, g.normal) / s->focal, dot3(s->right, g.first) / s->focal, dot3(s->right, g.second) / s->focal };
  for (int32_t y = 0; y < p->h; y++) {
    double v = (0.5 * p->h - y - 0.5) / s->focal, ray[3], along[3];
    for (int d = 0; d < 3; d++) ray[d] = s->forward[d] + v * s->up[d] + (0.5 - 0.5 * p->w) / s->focal * s->right[d];
    along[0] = dot3(ray, g.normal);
    along[1] = dot3(ray, g.first);
    along[2] = dot3(ray, g.second);
    surface *row = s->surfaces + (size_t)y * (size_t)p->w;
    for (int32_t x = 0; x < p->w; x++, along[0] += step[0], along[1] += step[1], along[2] += step[2]) {
      double t = height / along[0];
      if (!(t > 0) || t >= row[x].depth) continue;
      double a = eye[0] + t * along[1], b = eye[1] + t * along[2], open = 1;
      if (g.endless) open = 1 - smooth(near, far, sqrt((a - focus[0]) * (a - focus[0]) + (b - focus[1]) * (b - focus[1])));
      else if (a < plane->lower[0] || a > plane->upper[0] || b < plane->lower[1] || b > plane->upper[1]) continue;
      if (open <= 0) continue;
      uint32_t rgba = pave(&g, a, b, t / s->focal / fmax(fabs(along[0]), 0.05));
      row[x].depth = (float)t;
      for (int d = 0; d < 3; d++) row[x].normal[d] = (int8_t)(127 * facing[d]);
      row[x].kind = SURFACE_PLANE;
      row[x].rgba = (rgba & ~255u) | (uint32_t)((rgba & 255) * open + 0.5);
    }
  }
  return CQ_OK;
}
