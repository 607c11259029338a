// space: a 3D scene with a camera: surfaces are drawn into a depth buffer. They are lit later, all at once, by shade.c.
#include "picture.h"
#include "vector.h"
#include <string.h>

// [sample] a ball of this radius on the canvas is met by rays, a smaller one is drawn flat
enum { NEAR_BALL = 48 };

// Fills a camera with defaults: it looks from (0, 0, 1) at the origin.
void cq_camera_init(cq_camera *camera) {
  *camera = (cq_camera){.cookie = CQ_COOKIE,
                        .eye = {0, 0, 1},
                        .up = {0, 1, 0},
                        .field_of_view = 0.6,
                        .light = {0.4, 1, 0.5},
                        .focus_radius = 1};
}

// Fills a plane with defaults: white ground through the origin, y up.
void cq_plane_init(cq_plane *plane) {
  *plane =
      (cq_plane){.cookie = CQ_COOKIE, .rgba = 0xFFFFFFFF, .line = 0x000000FF, .normal = {0, 1, 0}, .first = {1, 0, 0}};
}

// Frees depth buffer, shadow map, occlusion, planes and translucent surfaces of a picture. NULL: does nothing.
void space_destroy(space *s) {
  if (!s) return;
  cq_free(s->surfaces);
  cq_free(s->shadow);
  cq_free(s->occlusion);
  cq_free(s->scratch);
  cq_free(s->depth);
  cq_free(s->planes);
  cq_free(s->clear_facets);
  cq_free(s->clear_globes);
  cq_free(s);
}

// Clears rows [first, last) of the depth buffer: no surface, at depth INFINITY. context: the picture.
static void clear_surfaces(void *context, int32_t first, int32_t last) {
  const cq_picture *p = context;
  surface *from = p->space->surfaces + (size_t)first * (size_t)p->w,
          *to = p->space->surfaces + (size_t)last * (size_t)p->w;
  for (surface *at = from; at < to; at++) *at = (surface){ .depth = INFINITY };
}

// Sets the camera of a picture and forgets all surfaces: from now on 3D surfaces can be drawn, which hide each other by
// depth. CQ_OK, CQ_MEMORY, or CQ_INVALID for values that are not allowed, or a view or a light without a direction.
cq_status cq_picture_camera(cq_picture *p, const cq_camera *camera) {
  if (camera->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "the camera was not filled by cq_camera_init");
  if (!(camera->field_of_view > 0 && camera->field_of_view < 3.1))
    return cq_fail(CQ_INVALID, "the camera's field of view is %g, between 0 and 3.1 rad is allowed",
                   camera->field_of_view);
  if (!(camera->focus_radius > 0))
    return cq_fail(CQ_INVALID, "the camera's focus radius is %g, above 0 is allowed", camera->focus_radius);
  size_t pixels = (size_t)p->width * (size_t)p->height, samples = (size_t)p->w * (size_t)p->h,
         texels = (size_t)SHADOW_SIDE * SHADOW_SIDE;
  space *s = p->space;
  if (!s) {
    s = cq_alloc(1, sizeof *s, "camera");
    if (!s) return CQ_MEMORY;
    s->surfaces = cq_alloc(samples, sizeof *s->surfaces, "picture surfaces");
    s->shadow = cq_alloc(texels, sizeof *s->shadow, "picture shadows");
    s->occlusion = cq_alloc(pixels, 1, "picture occlusion");
    s->scratch = cq_alloc(pixels, 1, "picture occlusion");
    s->depth = cq_alloc(pixels, sizeof *s->depth, "picture occlusion");
    s->planes = cq_alloc(PLANES_MAX, sizeof *s->planes, "picture planes");
    if (!s->surfaces || !s->shadow || !s->occlusion || !s->scratch || !s->depth || !s->planes) {
      space_destroy(s);
      return CQ_MEMORY;
    }
  }
  p->space = s;
  s->def = *camera;
  const double hint[3] = { 0.3, 0.2, 1 };
  for (int d = 0; d < 3; d++) {
    s->forward[d] = camera->target[d] - camera->eye[d];
    s->light[d] = camera->light[d];
  }
  cross3(s->forward, camera->up, s->right);
  if (!normalize3(s->forward) || !normalize3(s->right))
    return cq_fail(CQ_INVALID,
                   "the camera cannot look: eye and target must differ, and up must not point along the view");
  cross3(s->right, s->forward, s->up);
  if (!normalize3(s->light) || !across3(s->light, hint, s->light_right, s->light_up))
    return cq_fail(CQ_INVALID, "the camera's light must have a direction");
  s->focal = 0.5 * p->h / tan(0.5 * camera->field_of_view);
  s->per_focal = 1 / s->focal;
  s->texels = SHADOW_SIDE / (2 * camera->focus_radius);
  s->plane_count = 0;
  s->facet_count = s->globe_count = 0;
  in_bands(p->threads, p->h, BAND, clear_surfaces, p);
  for (size_t i = 0; i < texels; i++) s->shadow[i] = -INFINITY;
  return CQ_OK;
}

// Returns CQ_INVALID with the sentence that the picture has no camera.
cq_status no_camera(void) {
  return cq_fail(CQ_INVALID, "the picture has no camera, set one with cq_picture_camera first");
}

// Sets c to place x of the world in the camera's coordinates: right, up, and away from the camera (depth).
void to_camera(const space *s, const double x[3], double c[3]) {
  double q[3] = { x[0] - s->def.eye[0], x[1] - s->def.eye[1], x[2] - s->def.eye[2] };
  c[0] = dot3(q, s->right);
  c[1] = dot3(q, s->up);
  c[2] = dot3(q, s->forward);
}

// Sets a sample of the depth buffer to a body's surface with this depth, unit normal and unlit colour.
static void put(surface *at, double depth, const double normal[3], uint32_t rgba) {
  *at = (surface){.depth = (float)depth,
                  .nx = nearest_int(511 * normal[0]),
                  .ny = nearest_int(511 * normal[1]),
                  .nz = nearest_int(511 * normal[2]),
                  .kind = SURFACE_BODY,
                  .rgba = rgba};
}

// Sets out to the direction, in the world, that has components (a, b, c) along the camera's axes right, up and forward.
static void to_world(const space *s, double a, double b, double c, double out[3]) {
  for (int d = 0; d < 3; d++) out[d] = a * s->right[d] + b * s->up[d] + c * s->forward[d];
}

// Draws a ball that is far from the camera, in its part within rows [first, last), into the depth buffer: as a disc on
// the canvas with the depths and normals of a ball.
static void far_ball(cq_picture *p, const globe *g, int32_t first, int32_t last) {
  space *s = p->space;
  double k = s->focal / g->c[2], cx = 0.5 * p->w + k * g->c[0], cy = 0.5 * p->h - k * g->c[1], r = k * g->radius,
         inverse = 1 / r;
  int32_t y = clamp_index(ceil(cy - r - 0.5), last), y1 = clamp_index(ceil(cy + r - 0.5), last);
  for (y = y > first ? y : first; y < y1; y++) {
    double v = (cy - y - 0.5) * inverse, half = r * sqrt(larger(0, 1 - v * v));
    surface *row = s->surfaces + (size_t)y * (size_t)p->w;
    for (int32_t x = clamp_index(ceil(cx - half - 0.5), p->w), x1 = clamp_index(ceil(cx + half - 0.5), p->w); x < x1;
         x++) {
      double u = (x + 0.5 - cx) * inverse, w = sqrt(larger(0, 1 - u * u - v * v)), depth = g->c[2] - g->radius * w,
             normal[3];
      if (depth >= row[x].depth) continue;
      to_world(s, u, v, -w, normal);
      put(row + x, depth, normal, g->rgba);
    }
  }
}

// Draws a ball near the camera, in its part within rows [first, last), into the depth buffer exactly: each sample's ray
// is intersected with the ball.
static void near_ball(cq_picture *p, const globe *g, int32_t first, int32_t last) {
  space *s = p->space;
  const double *c = g->c, radius = g->radius;
  double cc = dot3(c, c) - radius * radius;
  double reach = cc > 0 && c[2] > radius
                     ? s->focal * radius / (c[2] - radius) * sqrt(1 + (c[0] * c[0] + c[1] * c[1]) / (c[2] * c[2]))
                     : p->w + p->h;
  double cx = c[2] > radius ? 0.5 * p->w + s->focal / c[2] * c[0] : 0.5 * p->w,
         cy = c[2] > radius ? 0.5 * p->h - s->focal / c[2] * c[1] : 0.5 * p->h;
  int32_t y = clamp_index(cy - 1.5 * reach, last), y1 = clamp_index(cy + 1.5 * reach, last);
  for (y = y > first ? y : first; y < y1; y++)
    for (int32_t x = clamp_index(cx - 1.5 * reach, p->w), x1 = clamp_index(cx + 1.5 * reach, p->w); x < x1; x++) {
      double d[3] = { (x + 0.5 - 0.5 * p->w) / s->focal, (0.5 * p->h - y - 0.5) / s->focal, 1 };
      double dd = dot3(d, d), dc = dot3(d, c), root = dc * dc - dd * cc;
      if (root <= 0) continue;
      double t = (dc - sqrt(root)) / dd, normal[3];
      surface *at = s->surfaces + (size_t)y * (size_t)p->w + x;
      if (t <= 0 || t >= at->depth) continue;
      to_world(s, (t * d[0] - c[0]) / radius, (t * d[1] - c[1]) / radius, (t - c[2]) / radius, normal);
      put(at, t, normal, g->rgba);
    }
}

typedef struct rolling {
  cq_picture *picture;
  const globe *globes;
  int64_t count;
} rolling;

// Draws all balls of a `rolling` (context) into rows [first, last) of the depth buffer, distant ones as discs, near
// ones exactly; the band function of cq_picture_spheres.
static void roll(void *context, int32_t first, int32_t last) {
  const rolling *r = context;
  const space *s = r->picture->space;
  for (int64_t i = 0; i < r->count; i++) {
    const globe *g = &r->globes[i];
    // drawn flat, a ball is off by radius^2 / distance: that must stay small beside what a shadow forgives
    int far =
        g->radius * g->radius < 1e-3 * s->def.focus_radius * g->c[2] && s->focal * g->radius < NEAR_BALL * g->c[2];
    if (far) far_ball(r->picture, g, first, last);
    else near_ball(r->picture, g, first, last);
  }
}

// Draws n balls of centre {n, 3}, radius {n} and colour rgba {n} into the depth buffer and the shadow map of a scene
// with a camera. Balls with an alpha below 255 are translucent: they are listed and drawn when the scene is lit. CQ_OK,
// CQ_MEMORY, or CQ_INVALID without a camera.
cq_status cq_picture_spheres(cq_picture *p, int64_t n, const double *centre, const double *radius,
                             const uint32_t *rgba) {
  if (!p->space) return no_camera();
  globe *globes = cq_alloc((size_t)n + 1, sizeof *globes, "balls of a picture");
  if (!globes) return CQ_MEMORY;
  rolling r = { p, globes, 0 };
  cq_status status = CQ_OK;
  for (int64_t i = 0; i < n && !status; i++) {
    globe g = { .radius = radius[i], .rgba = rgba[i] };
    to_camera(p->space, centre + 3 * i, g.c);
    if (!isfinite(g.c[0] + g.c[1] + g.c[2]) || !(g.radius > 0)) continue;
    if ((g.rgba & 255) < 255) {
      status = keep_globe(p->space, &g);
      continue;
    }
    shadow_sphere(p->space, centre + 3 * i, g.radius);
    if (g.c[2] > -g.radius) globes[r.count++] = g;
  }
  if (!status) in_bands(p->threads, p->h, 2 * BAND, roll, &r);
  cq_free(globes);
  return status;
}

// Sets pixels {n, 2} to where the camera shows points {n, 3} of the world, NaN for points behind it. CQ_OK, or
// CQ_INVALID without a camera.
cq_status cq_picture_project(const cq_picture *p, int64_t n, const double *points, double *pixels) {
  if (!p->space) return no_camera();
  for (int64_t i = 0; i < n; i++) {
    double c[3];
    to_camera(p->space, points + 3 * i, c);
    double k = c[2] > 0 ? p->space->focal / c[2] : NAN;
    pixels[2 * i] = (0.5 * p->w + k * c[0]) / p->samples;
    pixels[2 * i + 1] = (0.5 * p->h - k * c[1]) / p->samples;
  }
  return CQ_OK;
}
