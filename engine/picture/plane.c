// plane: flat ground. Each sample's ray is intersected with the plane, and the grid of lines is antialiased.
#include "picture.h"
#include "vector.h"

// The colour of a plane mixed with the colour of its grid lines: t = 0 is the plane's own, 1 that of the lines, and
// negative t goes away from the lines' colour.
static uint32_t mixed(const paving *g, double t) {
  uint32_t out = 0;
  for (int c = 0; c < 4; c++) out |= (uint32_t)(int)(g->tint[c] + t * g->line[c] + 0.5) << 8 * c;
  return out;
}

// The share of a pixel that grid lines cover, for antialiasing: the pixel covers an interval of length `footprint`
// around x, and lines of half width `half` are at the whole numbers. per_footprint: 1 / footprint.
static double line_share(double x, double half, double footprint, double per_footprint) {
  double distance = fabs(x - floor_of(x + 0.5));
  double part = (half + 0.5 * footprint - distance) * per_footprint;
  return lesser(larger(part, 0), lesser(1, 2 * half * per_footprint));
}

// The colour of the ground at coordinates (a, b) of its plane [length], with checkerboard and grid lines, which fade
// where a pixel covers many cells. footprint: the length on the plane that a pixel covers.
static uint32_t tile(const paving *g, double a, double b, double footprint) {
  if (!(g->def.cell > 0)) return g->def.rgba;
  double f = footprint * g->per_cell, u = a * g->per_cell, v = b * g->per_cell, calm = 1 - smooth(0.15, 0.5, f);
  if (calm <= 0) return g->calm;
  int odd = (int)((int64_t)floor_of(u) + (int64_t)floor_of(v)) & 1;
  double per_f = 1 / f, line = larger(line_share(u, 0.011, f, per_f), line_share(v, 0.011, f, per_f));
  return mixed(g, 0.04 + calm * (0.55 * line + (odd ? 0.025 : -0.025)));
}

// The unlit colour of the ground at coordinates (a, b) of its plane [length], from the plane's point along its grid
// axes; 0: transparent, where endless ground has faded far from the camera's focus. footprint: as in `tile`.
uint32_t pave(const space *s, const paving *g, double a, double b, double footprint) {
  double open = 1, du = a - g->focus[0], dv = b - g->focus[1];
  // endless ground fades far away
  if (g->endless) open = 1 - smooth(3 * s->def.focus_radius, 14 * s->def.focus_radius, sqrt(du * du + dv * dv));
  if (open <= 0) return 0;
  uint32_t rgba = tile(g, a, b, footprint);
  return (rgba & ~255u) | (uint32_t)((rgba & 255) * open + 0.5);
}

typedef struct laying {
  cq_picture *picture;
  const paving *g;
  uint32_t number;
} laying;

// Draws the plane of a `laying` (context) into rows [first, last) of the depth buffer, where no nearer surface is.
static void lay(void *context, int32_t first, int32_t last) {
  const laying *l = context;
  const cq_picture *p = l->picture;
  const space *s = p->space;
  const paving *g = l->g;
  surface look = {.kind = SURFACE_PLANE,
                  .rgba = l->number,
                  .nx = nearest_int(511 * g->facing[0]),
                  .ny = nearest_int(511 * g->facing[1]),
                  .nz = nearest_int(511 * g->facing[2])};
  // along a row the ray changes linearly: (slope, a, b) = components of the ray along normal, first, second
  double step[3] = {dot3(s->right, g->normal) / s->focal, dot3(s->right, g->first) / s->focal,
                    dot3(s->right, g->second) / s->focal};
  for (int32_t y = first; y < last; y++) {
    double v = (0.5 * p->h - y - 0.5) / s->focal, ray[3], along[3];
    for (int d = 0; d < 3; d++) ray[d] = s->forward[d] + v * s->up[d] + (0.5 - 0.5 * p->w) / s->focal * s->right[d];
    along[0] = dot3(ray, g->normal);
    along[1] = dot3(ray, g->first);
    along[2] = dot3(ray, g->second);
    surface *row = s->surfaces + (size_t)y * (size_t)p->w;
    for (int32_t x = 0; x < p->w; x++) {
      double t = g->height / (along[0] + x * step[0]);
      if (!(t > 0) || t >= row[x].depth) continue;
      if (!g->endless) {
        double a = g->eye[0] + t * (along[1] + x * step[1]), b = g->eye[1] + t * (along[2] + x * step[2]);
        if (a < g->def.lower[0] || a > g->def.upper[0] || b < g->def.lower[1] || b > g->def.upper[1]) continue;
      }
      look.depth = (float)t;
      row[x] = look;
    }
  }
}

// Draws a flat ground into the depth buffer of a scene with a camera; it is lit later (cq_picture_shade). CQ_OK, or
// CQ_INVALID without a camera, for a normal or first grid axis without a direction, or for too many planes.
cq_status cq_picture_plane(cq_picture *p, const cq_plane *plane) {
  space *s = p->space;
  if (!s) return no_camera();
  if (plane->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "the plane was not filled by cq_plane_init");
  if (s->plane_count == PLANES_MAX) return cq_fail(CQ_INVALID, "a picture shows at most %d planes", PLANES_MAX);
  paving *g = &s->planes[s->plane_count];
  *g = (paving){ .def = *plane, .endless = plane->lower[0] == plane->upper[0] && plane->lower[1] == plane->upper[1] };
  for (int d = 0; d < 3; d++) g->normal[d] = plane->normal[d];
  if (!normalize3(g->normal) || !across3(g->normal, plane->first, g->first, g->second))
    return cq_fail(CQ_INVALID, "the plane's normal must have a direction, and first must not lie along it");
  double offset[3], to_focus[3];
  for (int d = 0; d < 3; d++) {
    offset[d] = plane->point[d] - s->def.eye[d];
    to_focus[d] = s->def.focus[d] - plane->point[d];
  }
  g->height = dot3(offset, g->normal);
  // the side that the camera sees
  for (int d = 0; d < 3; d++) g->facing[d] = (g->height > 0 ? -1 : 1) * g->normal[d];
  g->focus[0] = dot3(to_focus, g->first);
  g->focus[1] = dot3(to_focus, g->second);
  g->per_cell = 1 / g->def.cell;
  g->tilt = 0.75 + 0.25 * lesser(larger(dot3(g->facing, s->light), 0) / larger(s->light[1], 0.3), 1);
  for (int c = 0; c < 4; c++) {
    g->tint[c] = g->def.rgba >> 8 * c & 255;
    g->line[c] = (g->def.line >> 8 * c & 255) - g->tint[c];
  }
  g->calm = mixed(g, 0.04);
  g->eye[0] = -dot3(offset, g->first);
  g->eye[1] = -dot3(offset, g->second);
  laying l = { p, g, (uint32_t)s->plane_count++ };
  in_bands(p->threads, p->h, 2 * BAND, lay, &l);
  return CQ_OK;
}
