// Light: a sun with soft shadows, a sky that corners see less of, and a little shine. Everything by what the canvas and a map from
// the sun hold, so the cost does not depend on the number of surfaces.
#include "picture.h"
#include "vector.h"
#include <string.h>

enum { TAPS = 10 };              // neighbours asked how much sky they hide

static float to_linear[256];
static uint8_t to_display[4097];
static double tap[16][TAPS][2];  // a spiral of neighbours, in 16 turns

static void fill_tables(void) {
  if (to_display[4096]) return;
  for (int turn = 0; turn < 16; turn++)
    for (int k = 0; k < TAPS; k++) {
      double radius = sqrt((k + 0.5) / TAPS), angle = turn * 0.3927 + k * 2.39996;      // the golden angle
      tap[turn][k][0] = radius * cos(angle);
      tap[turn][k][1] = radius * sin(angle);
    }
  for (int i = 0; i < 256; i++) to_linear[i] = powf((float)i / 255, 2.2f);
  for (int i = 0; i <= 4096; i++) to_display[i] = (uint8_t)(255 * pow(i / 4096.0, 1 / 2.2) + 0.5);
}

// ---- shadow map: height of the highest ball along the light ----------------------------------------------------------------

static double shadow_scale(const space *s) { return SHADOW_SIDE / (2 * s->def.focus_radius); }

static void to_light(const space *s, const double x[3], double out[3]) {
  double q[3] = { x[0] - s->def.focus[0], x[1] - s->def.focus[1], x[2] - s->def.focus[2] };
  out[0] = 0.5 * SHADOW_SIDE + shadow_scale(s) * dot3(q, s->light_right);
  out[1] = 0.5 * SHADOW_SIDE + shadow_scale(s) * dot3(q, s->light_up);
  out[2] = dot3(q, s->light);
}

void shadow_sphere(space *s, const double centre[3], double radius) {
  double c[3], r = radius * shadow_scale(s);
  to_light(s, centre, c);
  for (int32_t y = clamp_index(ceil(c[1] - r), SHADOW_SIDE), y1 = clamp_index(ceil(c[1] + r), SHADOW_SIDE); y < y1; y++)
    for (int32_t x = clamp_index(ceil(c[0] - r), SHADOW_SIDE), x1 = clamp_index(ceil(c[0] + r), SHADOW_SIDE); x < x1; x++) {
      double rest = r * r - (x - c[0]) * (x - c[0]) - (y - c[1]) * (y - c[1]);
      if (rest < 0) continue;
      float top = (float)(c[2] + sqrt(rest) / shadow_scale(s)), *at = s->shadow + (size_t)y * SHADOW_SIDE + x;
      if (top > *at) *at = top;
    }
}

// share of the sun that reaches x: a disc of the map is asked, wide enough to hide its texels
static double sunlight(const space *s, const double x[3], double bias) {
  static const double ring[8][2] = { { 1, 0 }, { 0.7, 0.7 }, { 0, 1 }, { -0.7, 0.7 }, { -1, 0 }, { -0.7, -0.7 }, { 0, -1 }, { 0.7, -0.7 } };
  double q[3];
  to_light(s, x, q);
  if (!(q[0] >= 8 && q[0] < SHADOW_SIDE - 8 && q[1] >= 8 && q[1] < SHADOW_SIDE - 8)) return 1;
  float limit = (float)(q[2] + bias);
  double open = 0;
  for (int k = 0; k < 8; k++) {
    double wide = k & 1 ? 5.5 : 2.5;
    int32_t i = (int32_t)(q[0] + wide * ring[k][0]), j = (int32_t)(q[1] + wide * ring[k][1]);
    open += s->shadow[(size_t)j * SHADOW_SIDE + (size_t)i] <= limit;
  }
  return open / 8;
}

// ---- sky: how much of it is hidden by what stands near, per pixel ------------------------------------------------------------

// place in the camera's axes of what a pixel shows
static int place(const cq_picture *p, int32_t x, int32_t y, double out[3]) {
  if (x < 0 || y < 0 || x >= p->width || y >= p->height) return 0;
  const space *s = p->space;
  int32_t i = x * p->samples, j = y * p->samples;
  const surface *at = s->surfaces + (size_t)j * (size_t)p->w + (size_t)i;
  if (at->kind == SURFACE_NONE) return 0;
  out[2] = at->depth;
  out[0] = (i + 0.5 - 0.5 * p->w) / s->focal * out[2];
  out[1] = (0.5 * p->h - j - 0.5) / s->focal * out[2];
  return 1;
}

static double open_sky(const cq_picture *p, int32_t x, int32_t y, double reach) {
  const space *s = p->space;
  double q[3], n[3];
  if (!place(p, x, y, q)) return 1;
  const surface *at = s->surfaces + (size_t)y * (size_t)p->samples * (size_t)p->w + (size_t)x * (size_t)p->samples;
  double world[3] = { at->normal[0] / 127.0, at->normal[1] / 127.0, at->normal[2] / 127.0 };
  n[0] = dot3(world, s->right);
  n[1] = dot3(world, s->up);
  n[2] = dot3(world, s->forward);
  double pixels = reach * s->focal / q[2] / p->samples;
  if (pixels < 1.5) return 1;
  if (pixels > 80) pixels = 80;                    // very near: the cache, and taste
  // the spiral turns from pixel to pixel; the blur after it averages over 4 x 4 of them
  double (*spiral)[2] = tap[(((uint32_t)x & 3) * 5 + ((uint32_t)y & 3) * 11) & 15];
  double hidden = 0;
  for (int k = 0; k < TAPS; k++) {
    double other[3];
    if (!place(p, x + (int32_t)floor(pixels * spiral[k][0] + 0.5), y + (int32_t)floor(pixels * spiral[k][1] + 0.5), other)) continue;
    double v[3] = { other[0] - q[0], other[1] - q[1], other[2] - q[2] }, d2 = dot3(v, v);
    if (d2 > reach * reach || d2 == 0) continue;
    double rise = dot3(v, n) / sqrt(d2) - 0.12;
    if (rise > 0) hidden += rise * (1 - d2 / (reach * reach));
  }
  return fmax(0, 1 - 2.2 * hidden / TAPS);
}

static void blur_sky(cq_picture *p, const int32_t box[4]) {
  space *s = p->space;
  memcpy(s->scratch, s->occlusion, (size_t)p->width * (size_t)p->height);
  for (int32_t y = box[1] + 2; y < box[3] - 2; y++)
    for (int32_t x = box[0] + 2; x < box[2] - 2; x++) {
      int sum = 0;
      for (int j = -2; j < 2; j++)
        for (int i = -2; i < 2; i++) sum += s->scratch[(y + j) * p->width + x + i];
      s->occlusion[y * p->width + x] = (uint8_t)(sum / 16);
    }
}

static void find_sky(cq_picture *p) {
  space *s = p->space;
  double reach = 0.09 * s->def.focus_radius;
  memset(s->occlusion, 255, (size_t)p->width * (size_t)p->height);
  // only around bodies: a bare plane hides nothing
  int32_t box[4] = { p->width, p->height, 0, 0 };
  double pad = 0;
  for (int32_t y = 0; y < p->height; y++)
    for (int32_t x = 0; x < p->width; x++) {
      const surface *at = s->surfaces + (size_t)y * (size_t)p->samples * (size_t)p->w + (size_t)x * (size_t)p->samples;
      if (at->kind != SURFACE_BODY) continue;
      if (x < box[0]) box[0] = x;
      if (y < box[1]) box[1] = y;
      if (x >= box[2]) box[2] = x + 1;
      if (y >= box[3]) box[3] = y + 1;
      pad = fmax(pad, reach * s->focal / at->depth / p->samples);
    }
  int32_t margin = 3 + (int32_t)fmin(pad, 80);
  box[0] = box[0] > margin ? box[0] - margin : 0;
  box[1] = box[1] > margin ? box[1] - margin : 0;
  box[2] = box[2] + margin < p->width ? box[2] + margin : p->width;
  box[3] = box[3] + margin < p->height ? box[3] + margin : p->height;
  for (int32_t y = box[1]; y < box[3]; y++)
    for (int32_t x = box[0]; x < box[2]; x++) s->occlusion[y * p->width + x] = (uint8_t)(255 * open_sky(p, x, y, reach));
  blur_sky(p, box);
}

// ---- all together ------------------------------------------------------------------------------------------------------------

static uint32_t lit(uint32_t rgba, const double factor[3], double shine) {
  uint32_t out = 255;
  for (int c = 0; c < 3; c++) {
    double value = to_linear[rgba >> (24 - 8 * c) & 255] * factor[c] + shine;
    out |= (uint32_t)to_display[(int)(4096 * fmin(value, 1))] << (24 - 8 * c);
  }
  return out;
}

static uint32_t shade_sample(const cq_picture *p, const surface *at, int32_t x, int32_t y) {
  const space *s = p->space;
  double a = (x + 0.5 - 0.5 * p->w) / s->focal, b = (0.5 * p->h - y - 0.5) / s->focal, place_[3], ray[3];
  double n[3] = { at->normal[0] / 127.0, at->normal[1] / 127.0, at->normal[2] / 127.0 };
  for (int d = 0; d < 3; d++) {
    ray[d] = s->forward[d] + a * s->right[d] + b * s->up[d];
    place_[d] = s->def.eye[d] + at->depth * ray[d];
  }
  double sky = s->occlusion[y / p->samples * p->width + x / p->samples] / 255.0, facing = dot3(n, s->light), shine = 0, factor[3];
  double sun = facing > 0 || at->kind == SURFACE_PLANE ? sunlight(s, place_, 0.012 * s->def.focus_radius) : 0;
  if (at->kind == SURFACE_PLANE) {
    // as bright as its colour says in the open
    double tilt = 0.75 + 0.25 * fmin(fmax(facing, 0) / fmax(s->light[1], 0.3), 1);
    double light = tilt * sky * (0.52 + 0.48 * sun);
    factor[0] = light * (0.96 + 0.04 * sun);
    factor[1] = light * (0.98 + 0.02 * sun);
    factor[2] = light;
  } else {
    // a cool sky from above, a warm sun
    double above = 0.5 + 0.5 * dot3(n, s->def.up), ambient = sky * (0.30 + 0.28 * above), direct = 0.82 * sun * fmax(facing, 0);
    factor[0] = 0.95 * ambient + direct;
    factor[1] = 0.98 * ambient + 0.97 * direct;
    factor[2] = 1.06 * ambient + 0.91 * direct;
    double half[3] = { s->light[0], s->light[1], s->light[2] }, length = sqrt(dot3(ray, ray));
    for (int d = 0; d < 3; d++) half[d] -= ray[d] / length;
    if (normalize3(half)) {
      double gloss = fmax(dot3(n, half), 0);
      gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss;      // to the 32nd
      shine = 0.10 * sun * gloss;
    }
  }
  return lit(at->rgba, factor, shine);
}

cq_status cq_picture_shade(cq_picture *p) {
  space *s = p->space;
  if (!s) return cq_fail(CQ_INVALID, "the picture has no camera, set one with cq_picture_camera first");
  fill_tables();
  find_sky(p);
  for (int32_t y = 0; y < p->h; y++) {
    const surface *row = s->surfaces + (size_t)y * (size_t)p->w;
    uint32_t *out = p->colour + (size_t)y * (size_t)p->w;
    for (int32_t x = 0; x < p->w; x++) {
      if (row[x].kind == SURFACE_NONE) continue;
      uint32_t shaded = shade_sample(p, row + x, x, y);
      out[x] = over(premultiply(shaded, row[x].rgba & 255), out[x]);
    }
  }
  return CQ_OK;
}
