// A scene with a camera: surfaces by depth. They are lit later, all at once, by shade.c.
#include "picture.h"
#include "vector.h"
#include <string.h>

enum { NEAR_BALL = 48 };         // [sample] a ball of this radius on the canvas is met by rays, a smaller one is drawn flat

void cq_camera_init(cq_camera *camera) {
  *camera = (cq_camera){ .cookie = CQ_COOKIE, .eye = { 0, 0, 1 }, .up = { 0, 1, 0 }, .field_of_view = 0.6, .light = { 0.4, 1, 0.5 }, .focus_radius = 1 };
}

void cq_plane_init(cq_plane *plane) {
  *plane = (cq_plane){ .cookie = CQ_COOKIE, .rgba = 0xFFFFFFFF, .line = 0x000000FF, .normal = { 0, 1, 0 }, .first = { 1, 0, 0 } };
}

void space_destroy(space *s) {
  if (!s) return;
  cq_free(s->surfaces);
  cq_free(s->shadow);
  cq_free(s->occlusion);
  cq_free(s->scratch);
  cq_free(s);
}

cq_status cq_picture_camera(cq_picture *p, const cq_camera *camera) {
  if (camera->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "the camera was not filled by cq_camera_init");
  if (!(camera->field_of_view > 0 && camera->field_of_view < 3.1))
    return cq_fail(CQ_INVALID, "the camera's field of view is %g, between 0 and 3.1 rad is allowed", camera->field_of_view);
  if (!(camera->focus_radius > 0))
    return cq_fail(CQ_INVALID, "the camera's focus radius is %g, above 0 is allowed", camera->focus_radius);
  size_t pixels = (size_t)p->width * (size_t)p->height, samples = (size_t)p->w * (size_t)p->h, texels = (size_t)SHADOW_SIDE * SHADOW_SIDE;
  space *s = p->space;
  if (!s) {
    s = cq_alloc(1, sizeof *s, "camera");
    if (!s) return CQ_MEMORY;
    s->surfaces = cq_alloc(samples, sizeof *s->surfaces, "picture surfaces");
    s->shadow = cq_alloc(texels, sizeof *s->shadow, "picture shadows");
    s->occlusion = cq_alloc(pixels, 1, "picture occlusion");
    s->scratch = cq_alloc(pixels, 1, "picture occlusion");
    if (!s->surfaces || !s->shadow || !s->occlusion || !s->scratch) {
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
    return cq_fail(CQ_INVALID, "the camera cannot look: eye and target must differ, and up must not point along the view");
  cross3(s->right, s->forward, s->up);
  if (!normalize3(s->light) || !across3(s->light, hint, s->light_right, s->light_up)) return cq_fail(CQ_INVALID, "the camera's light must have a direction");
  s->focal = 0.5 * p->h / tan(0.5 * camera->field_of_view);
  for (size_t i = 0; i < samples; i++) s->surfaces[i] = (surface){ .depth = INFINITY };
  for (size_t i = 0; i < texels; i++) s->shadow[i] = -INFINITY;
  return CQ_OK;
}

static cq_status no_camera(void) { return cq_fail(CQ_INVALID, "the picture has no camera, set one with cq_picture_camera first"); }

// place in the camera's axes
static void to_camera(const space *s, const double x[3], double c[3]) {
  double q[3] = { x[0] - s->def.eye[0], x[1] - s->def.eye[1], x[2] - s->def.eye[2] };
  c[0] = dot3(q, s->right);
  c[1] = dot3(q, s->up);
  c[2] = dot3(q, s->forward);
}

static void put(surface *at, double depth, const double normal[3], uint8_t kind, uint32_t rgba) {
  at->depth = (float)depth;
  for (int d = 0; d < 3; d++) at->normal[d] = (int8_t)lrint(127 * normal[d]);
  at->kind = kind;
  at->rgba = rgba;
}

// the camera's direction (a, b, c) in the world's axes
static void to_world(const space *s, double a, double b, double c, double out[3]) {
  for (int d = 0; d < 3; d++) out[d] = a * s->right[d] + b * s->up[d] + c * s->forward[d];
}

// a far ball: a disc with the depth and the normals of a ball
static void far_ball(cq_picture *p, const double c[3], double radius, uint32_t rgba) {
  space *s = p->space;
  double k = s->focal / c[2], cx = 0.5 * p->w + k * c[0], cy = 0.5 * p->h - k * c[1], r = k * radius, inverse = 1 / r;
  for (int32_t y = clamp_index(ceil(cy - r - 0.5), p->h), y1 = clamp_index(ceil(cy + r - 0.5), p->h); y < y1; y++) {
    double v = (cy - y - 0.5) * inverse, half = r * sqrt(fmax(0, 1 - v * v));
    surface *row = s->surfaces + (size_t)y * (size_t)p->w;
    for (int32_t x = clamp_index(ceil(cx - half - 0.5), p->w), x1 = clamp_index(ceil(cx + half - 0.5), p->w); x < x1; x++) {
      double u = (x + 0.5 - cx) * inverse, w = sqrt(fmax(0, 1 - u * u - v * v)), depth = c[2] - radius * w, normal[3];
      if (depth >= row[x].depth) continue;
      to_world(s, u, v, -w, normal);
      put(row + x, depth, normal, SURFACE_BODY, rgba);
    }
  }
}

// a near one: each ray against the sphere, |t d - c| = radius with d = (sx, sy, 1)
static void near_ball(cq_picture *p, const double c[3], double radius, uint32_t rgba) {
  space *s = p->space;
  double cc = dot3(c, c) - radius * radius;
  double reach = cc > 0 && c[2] > radius ? s->focal * radius / (c[2] - radius) * sqrt(1 + (c[0] * c[0] + c[1] * c[1]) / (c[2] * c[2])) : p->w + p->h;
  double cx = c[2] > radius ? 0.5 * p->w + s->focal / c[2] * c[0] : 0.5 * p->w, cy = c[2] > radius ? 0.5 * p->h - s->focal / c[2] * c[1] : 0.5 * p->h;
  for (int32_t y = clamp_index(cy - 1.5 * reach, p->h), y1 = clamp_index(cy + 1.5 * reach, p->h); y < y1; y++)
    for (int32_t x = clamp_index(cx - 1.5 * reach, p->w), x1 = clamp_index(cx + 1.5 * reach, p->w); x < x1; x++) {
      double d[3] = { (x + 0.5 - 0.5 * p->w) / s->focal, (0.5 * p->h - y - 0.5) / s->focal, 1 };
      double dd = dot3(d, d), dc = dot3(d, c), root = dc * dc - dd * cc;
      if (root <= 0) continue;
      double t = (dc - sqrt(root)) / dd, normal[3];
      surface *at = s->surfaces + (size_t)y * (size_t)p->w + x;
      if (t <= 0 || t >= at->depth) continue;
      to_world(s, (t * d[0] - c[0]) / radius, (t * d[1] - c[1]) / radius, (t - c[2]) / radius, normal);
      put(at, t, normal, SURFACE_BODY, rgba);
    }
}

cq_status cq_picture_spheres(cq_picture *p, int64_t n, const double *centre, const double *radius, const uint32_t *rgba) {
  if (!p->space) return no_camera();
  for (int64_t i = 0; i < n; i++) {
    double c[3];
    to_camera(p->space, centre + 3 * i, c);
    if (!isfinite(c[0] + c[1] + c[2]) || !(radius[i] > 0)) continue;
    shadow_sphere(p->space, centre + 3 * i, radius[i]);
    if (c[2] <= -radius[i]) continue;
    // drawn flat, a ball is off by radius^2 / distance: that must stay small beside what a shadow forgives
    int far = radius[i] * radius[i] < 1e-3 * p->space->def.focus_radius * c[2] && p->space->focal * radius[i] < NEAR_BALL * c[2];
    if (far) far_ball(p, c, radius[i], rgba[i]);
    else near_ball(p, c, radius[i], rgba[i]);
  }
  return CQ_OK;
}

// a triangle in front of the camera; depth is 1 over a linear function on the canvas
static void fill_triangle(cq_picture *p, double (*c)[3], const double normal[3], uint32_t rgba) {
  space *s = p->space;
  double x[3], y[3], q[3];
  for (int i = 0; i < 3; i++) {
    q[i] = 1 / c[i][2];
    x[i] = 0.5 * p->w + s->focal * c[i][0] * q[i];
    y[i] = 0.5 * p->h - s->focal * c[i][1] * q[i];
  }
  double area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
  if (!isfinite(area) || fabs(area) < 1e-12) return;
  double x0 = fmin(x[0], fmin(x[1], x[2])), x1 = fmax(x[0], fmax(x[1], x[2])), y0 = fmin(y[0], fmin(y[1], y[2])), y1 = fmax(y[0], fmax(y[1], y[2]));
  for (int32_t j = clamp_index(floor(y0), p->h), jend = clamp_index(ceil(y1), p->h); j < jend; j++)
    for (int32_t i = clamp_index(floor(x0), p->w), iend = clamp_index(ceil(x1), p->w); i < iend; i++) {
      double px = i + 0.5, py = j + 0.5;
      double b0 = ((x[1] - px) * (y[2] - py) - (x[2] - px) * (y[1] - py)) / area, b1 = ((x[2] - px) * (y[0] - py) - (x[0] - px) * (y[2] - py)) / area;
      double b2 = 1 - b0 - b1;
      if (b0 < 0 || b1 < 0 || b2 < 0) continue;
      double depth = 1 / (b0 * q[0] + b1 * q[1] + b2 * q[2]);
      surface *at = s->surfaces + (size_t)j * (size_t)p->w + i;
      if (depth < at->depth) put(at, depth, normal, SURFACE_PLANE, rgba);
    }
}

cq_status cq_picture_triangles(cq_picture *p, int64_t n, const double *corner, const uint32_t *rgba) {
  space *s = p->space;
  if (!s) return no_camera();
  double front = 1e-3 * s->def.focus_radius;
  for (int64_t i = 0; i < n; i++) {
    double c[3][3], clipped[4][3], normal[3], a[3], b[3], to_eye[3];
    const double *x = corner + 9 * i;
    for (int d = 0; d < 3; d++) {
      a[d] = x[3 + d] - x[d];
      b[d] = x[6 + d] - x[d];
      to_eye[d] = s->def.eye[d] - x[d];
    }
    cross3(a, b, normal);
    if (!normalize3(normal)) continue;
    if (dot3(normal, to_eye) < 0) for (int d = 0; d < 3; d++) normal[d] = -normal[d];
    for (int j = 0; j < 3; j++) to_camera(s, x + 3 * j, c[j]);
    // cut off what lies behind the camera: three or four corners stay
    int count = 0;
    for (int j = 0; j < 3; j++) {
      const double *u = c[j], *v = c[(j + 1) % 3];
      if (u[2] >= front) memcpy(clipped[count++], u, sizeof clipped[0]);
      if ((u[2] >= front) != (v[2] >= front)) {
        double t = (front - u[2]) / (v[2] - u[2]);
        for (int d = 0; d < 3; d++) clipped[count][d] = u[d] + t * (v[d] - u[d]);
        count++;
      }
    }
    for (int j = 2; j < count; j++) {
      double fan[3][3];
      memcpy(fan[0], clipped[0], sizeof fan[0]);
      memcpy(fan[1], clipped[j - 1], sizeof fan[0]);
      memcpy(fan[2], clipped[j], sizeof fan[0]);
      fill_triangle(p, fan, normal, rgba[i]);
    }
  }
  return CQ_OK;
}

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
