// light: how much of the sun and of the sky reaches a place. The sun's share is asked of a map from its side, the sky's
// of what the canvas shows nearby, so the cost does not depend on the number of surfaces.
#include "picture.h"
#include "vector.h"
#include <string.h>

enum { SKY_TAPS = 10, SUN_TAPS = 16 };      // neighbours asked how much sky, and sun, they hide

// ---- the sun: height of the highest surface along the light ---------------------------------------------------------

// Sets out to place x of the world in the shadow map: two coordinates in texels, and the height towards the sun.
static void to_light(const space *s, const double x[3], double out[3]) {
  double q[3] = { x[0] - s->def.focus[0], x[1] - s->def.focus[1], x[2] - s->def.focus[2] };
  out[0] = 0.5 * SHADOW_SIDE + s->texels * dot3(q, s->light_right);
  out[1] = 0.5 * SHADOW_SIDE + s->texels * dot3(q, s->light_up);
  out[2] = dot3(q, s->light);
}

// Draws a ball of the world into the shadow map: each texel keeps the greatest height towards the sun of all surfaces.
void shadow_sphere(space *s, const double centre[3], double radius) {
  double c[3], r = radius * s->texels;
  to_light(s, centre, c);
  for (int32_t y = clamp_index(ceil(c[1] - r), SHADOW_SIDE), y1 = clamp_index(ceil(c[1] + r), SHADOW_SIDE); y < y1; y++)
    for (int32_t x = clamp_index(ceil(c[0] - r), SHADOW_SIDE), x1 = clamp_index(ceil(c[0] + r), SHADOW_SIDE); x < x1;
         x++) {
      double rest = r * r - (x - c[0]) * (x - c[0]) - (y - c[1]) * (y - c[1]);
      if (rest < 0) continue;
      float top = (float)(c[2] + sqrt(rest) / s->texels), *at = s->shadow + (size_t)y * SHADOW_SIDE + x;
      if (top > *at) *at = top;
    }
}

typedef struct cast_one { double c[3][3], least[2], most[2]; } cast_one;      // a triangle from the sun's side

typedef struct casting {
  cq_picture *picture;
  const cast_one *of;
  int64_t count;
} casting;

// Returns a triangle with corners x {3, 3} in the world in coordinates of the shadow map (to_light), with its bounds.
static cast_one from_sun(const space *s, const double x[9]) {
  cast_one t = { .least = { INFINITY, INFINITY }, .most = { -INFINITY, -INFINITY } };
  for (int i = 0; i < 3; i++) {
    to_light(s, x + 3 * i, t.c[i]);
    for (int d = 0; d < 2; d++) {
      t.least[d] = lesser(t.least[d], t.c[i][d]);
      t.most[d] = larger(t.most[d], t.c[i][d]);
    }
  }
  return t;
}

// Draws a triangle, in its part within rows [first, last), into the shadow map, as shadow_sphere draws a ball.
static void cast(space *s, const cast_one *t, int32_t first, int32_t last) {
  const double (*c)[3] = t->c;
  if (!(t->most[1] >= first && t->least[1] < last)) return;
  double area = (c[1][0] - c[0][0]) * (c[2][1] - c[0][1]) - (c[2][0] - c[0][0]) * (c[1][1] - c[0][1]),
         per_area = 1 / area;
  if (!(fabs(area) > 1e-12)) return;
  int32_t y = clamp_index(ceil(t->least[1]), last), y1 = clamp_index(floor(t->most[1]) + 1, last),
          x0 = clamp_index(ceil(t->least[0]), SHADOW_SIDE);
  int32_t x1 = clamp_index(floor(t->most[0]) + 1, SHADOW_SIDE);
  for (y = y > first ? y : first; y < y1; y++)
    for (int32_t i = x0; i < x1; i++) {
      double b0 = ((c[1][0] - i) * (c[2][1] - y) - (c[2][0] - i) * (c[1][1] - y)) * per_area;
      double b1 = ((c[2][0] - i) * (c[0][1] - y) - (c[0][0] - i) * (c[2][1] - y)) * per_area, b2 = 1 - b0 - b1;
      if (b0 < -1e-6 || b1 < -1e-6 || b2 < -1e-6) continue;      // no seam between two triangles
      float top = (float)(b0 * c[0][2] + b1 * c[1][2] + b2 * c[2][2]), *at = s->shadow + (size_t)y * SHADOW_SIDE + i;
      if (top > *at) *at = top;
    }
}

// Draws all triangles of a `casting` (context) into rows [first, last) of the shadow map.
static void cast_band(void *context, int32_t first, int32_t last) {
  const casting *c = context;
  for (int64_t i = 0; i < c->count; i++) cast(c->picture->space, c->of + i, first, last);
}

// Draws n triangles of corners {n, 3, 3} in the world into the shadow map, except for translucent ones (rgba {n, 3}:
// colours of the corners). CQ_OK or CQ_MEMORY.
cq_status shadow_triangles(cq_picture *p, int64_t n, const double *corner, const uint32_t *rgba) {
  cast_one *of = cq_alloc((size_t)n + 1, sizeof *of, "shadows of a picture");
  if (!of) return CQ_MEMORY;
  casting c = { .picture = p, .of = of };
  for (int64_t i = 0; i < n; i++)
    if ((rgba[3 * i] & rgba[3 * i + 1] & rgba[3 * i + 2] & 255) == 255)
      of[c.count++] = from_sun(p->space, corner + 9 * i);
  in_bands(p->threads, SHADOW_SIDE, SHADOW_SIDE / 8, cast_band, &c);
  cq_free(of);
  return CQ_OK;
}

// The share of the sun that reaches place x of the world, 0 to 1, with a soft edge of shadows: the share of texels in a
// small disc of the shadow map around x that hold no surface above x; 1 beyond the map. bias: how much higher than x a
// surface must be to throw a shadow on it [length]. If the rim of the disc agrees, its inner texels are not read.
double sunlight(const space *s, const double x[3], double bias) {
  static const float disc[SUN_TAPS][2] = {
    { 6, 0 }, { 0, 6 }, { -6, 0 }, { 0, -6 }, { 4, 4 }, { -4, 4 }, { -4, -4 }, { 4, -4 },
    { 3, 1 }, { -1, 3 }, { -3, -1 }, { 1, -3 }, { 1, 1 }, { -1, 1 }, { -1, -1 }, { 1, -1 },
  };
  double q[3];
  to_light(s, x, q);
  if (!(q[0] >= 8 && q[0] < SHADOW_SIDE - 8 && q[1] >= 8 && q[1] < SHADOW_SIDE - 8)) return 1;
  float limit = (float)(q[2] + bias);
  int open = 0;
  for (int k = 0; k < SUN_TAPS; k++) {
    if (k == 8 && (open == 0 || open == 8)) return open / 8;
    int32_t i = (int32_t)(q[0] + disc[k][0]), j = (int32_t)(q[1] + disc[k][1]);
    open += s->shadow[(size_t)j * SHADOW_SIDE + (size_t)i] <= limit;
  }
  return open / (double)SUN_TAPS;
}

// ---- the sky: how much of it is hidden by what stands near, per pixel -----------------------------------------------

typedef struct looking {
  cq_picture *picture;
  double reach;
  int32_t box[4];
  float tap[16][SKY_TAPS][2];    // a spiral of neighbours, in 16 turns
} looking;

// The upper left sample of pixel (x, y) in the depth buffer.
static const surface *seen(const cq_picture *p, int32_t x, int32_t y) {
  return p->space->surfaces + (size_t)y * (size_t)p->samples * (size_t)p->w + (size_t)x * (size_t)p->samples;
}

// The share of the sky that the surface at pixel (x, y) sees, 0 to 1 (screen-space ambient occlusion): near places that
// neighbouring pixels show and that stand out above the surface hide parts of it.
static float open_sky(const looking *l, int32_t x, int32_t y) {
  const cq_picture *p = l->picture;
  const space *s = p->space;
  const surface *at = seen(p, x, y);
  float depth = at->depth, reach = (float)l->reach, samples = (float)p->samples, inverse = (float)s->per_focal;
  float per_square = 1 / (reach * reach);
  if (at->kind == SURFACE_NONE) return 1;
  float pixels = reach / (inverse * depth) / samples;
  if (pixels < 1.5f) return 1;
  if (pixels > 80) pixels = 80;                    // very near: the cache, and taste
  double world[3] = { at->nx / 511.0, at->ny / 511.0, at->nz / 511.0 };
  float n[3] = { (float)dot3(world, s->right), (float)dot3(world, s->up), (float)dot3(world, s->forward) };
  // where the middle of the canvas is, from this pixel's, in units of the distance
  float u = ((float)x * samples + 0.5f - 0.5f * (float)p->w) * inverse,
        v = (0.5f * (float)p->h - (float)y * samples - 0.5f) * inverse;
  // the spiral turns from pixel to pixel; the blur after it averages over 8 of them
  const float (*spiral)[2] = l->tap[(((uint32_t)x & 3) * 5 + ((uint32_t)y & 3) * 11) & 15];
  float hidden = 0;
  for (int k = 0; k < SKY_TAPS; k++) {
    int32_t dx = (int32_t)(pixels * spiral[k][0] + 1000.5f) - 1000,
            dy = (int32_t)(pixels * spiral[k][1] + 1000.5f) - 1000;
    if (x + dx < 0 || y + dy < 0 || x + dx >= p->width || y + dy >= p->height) continue;
    float other = s->depth[(y + dy) * p->width + x + dx], c = other - depth;
    if (!(fabsf(c) < reach)) continue;
    float a = other * (u + (float)dx * samples * inverse) - depth * u,
          b = other * (v - (float)dy * samples * inverse) - depth * v;
    float d2 = a * a + b * b + c * c;
    if (d2 > reach * reach || d2 == 0) continue;
    float rise = (a * n[0] + b * n[1] + c * n[2]) / sqrtf(d2) - 0.12f;
    if (rise > 0) hidden += rise * (1 - d2 * per_square);
  }
  return (float)larger(0, 1 - 2.2f * hidden / SKY_TAPS);
}

// Sets the ambient occlusion of every second pixel of rows [first, last) within l->box, as the black squares of a chess
// board; all other pixels become open, and `blur` fills in those between. context: a `looking`.
static void look(void *context, int32_t first, int32_t last) {
  const looking *l = context;
  const cq_picture *p = l->picture;
  memset(p->space->occlusion + (size_t)first * (size_t)p->width, 255, (size_t)(last - first) * (size_t)p->width);
  for (int32_t y = first > l->box[1] ? first : l->box[1]; y < last && y < l->box[3]; y++)
    for (int32_t x = l->box[0] + ((l->box[0] + y) & 1); x < l->box[2]; x += 2)
      p->space->occlusion[y * p->width + x] = (uint8_t)(255 * open_sky(l, x, y));
}

// Sets `scratch`, for rows [first, last), to the ambient occlusion averaged, within l->box, over the eight pixels
// around each pixel that `look` has set; elsewhere copied. context: a `looking`.
static void blur(void *context, int32_t first, int32_t last) {
  const looking *l = context;
  const cq_picture *p = l->picture;
  const space *s = p->space;
  memcpy(s->scratch + (size_t)first * (size_t)p->width, s->occlusion + (size_t)first * (size_t)p->width,
         (size_t)(last - first) * (size_t)p->width);
  for (int32_t y = first > l->box[1] + 2 ? first : l->box[1] + 2; y < last && y < l->box[3] - 2; y++)
    for (int32_t x = l->box[0] + 2; x < l->box[2] - 2; x++) {
      int sum = 0;
      for (int j = -2; j < 2; j++) {
        const uint8_t *row = s->occlusion + (y + j) * p->width + x - 2 + ((x + y + j) & 1);
        sum += row[0] + row[2];
      }
      s->scratch[y * p->width + x] = (uint8_t)(sum / 8);
    }
}

// Copies the depth of each pixel's upper left sample in rows [first, last) to space->depth. context: the picture.
static void note_depth(void *context, int32_t first, int32_t last) {
  const cq_picture *p = context;
  for (int32_t y = first; y < last; y++)
    for (int32_t x = 0; x < p->width; x++) p->space->depth[y * p->width + x] = seen(p, x, y)->depth;
}

// Sets l->box to the rectangle of pixels that show bodies, with a margin: only there can a body hide the sky.
static void around_bodies(looking *l) {
  const cq_picture *p = l->picture;
  int32_t *box = l->box;
  box[0] = p->width, box[1] = p->height, box[2] = box[3] = 0;
  float nearest = INFINITY;
  for (int32_t y = 0; y < p->height; y++)
    for (int32_t x = 0; x < p->width; x++) {
      const surface *at = seen(p, x, y);
      if (at->kind != SURFACE_BODY) continue;
      if (x < box[0]) box[0] = x;
      if (y < box[1]) box[1] = y;
      if (x >= box[2]) box[2] = x + 1;
      if (y >= box[3]) box[3] = y + 1;
      if (at->depth < nearest) nearest = at->depth;
    }
  int32_t margin = 3 + (int32_t)lesser(l->reach * p->space->focal / nearest / p->samples, 80);
  for (int d = 0; d < 2; d++) {
    int32_t side = d ? p->height : p->width;
    box[d] = box[d] > margin ? box[d] - margin : 0;
    box[d + 2] = box[d + 2] + margin < side ? box[d + 2] + margin : side;
  }
}

// Sets occlusion of each pixel to the share of the sky that reaches it, in 1/255 (ambient occlusion), from the depths
// of pixels around it, blurred. Called when the scene is lit.
void find_sky(cq_picture *p) {
  space *s = p->space;
  looking l = { .picture = p, .reach = 0.09 * s->def.focus_radius };
  for (int turn = 0; turn < 16; turn++)
    for (int k = 0; k < SKY_TAPS; k++) {
      double radius = sqrt((k + 0.5) / SKY_TAPS), angle = turn * 0.3927 + k * 2.39996;      // the golden angle
      l.tap[turn][k][0] = (float)(radius * cos(angle));
      l.tap[turn][k][1] = (float)(radius * sin(angle));
    }
  in_bands(p->threads, p->height, BAND, note_depth, p);
  around_bodies(&l);
  in_bands(p->threads, p->height, BAND, look, &l);
  in_bands(p->threads, p->height, BAND, blur, &l);
  uint8_t *blurred = s->scratch;
  s->scratch = s->occlusion;
  s->occlusion = blurred;
}
