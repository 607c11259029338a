// shade: lights the surfaces of a scene: a sun with soft shadows, a sky that corners see less of, and a little shine. A
// pixel that shows one smooth surface is lit once; a pixel with an edge is lit at each of its samples.
#include "picture.h"
#include "vector.h"
#include <pthread.h>

static float to_linear[256];
static uint8_t to_display[4097];

// Fills the tables that convert between display colours (0 to 255) and linear light (gamma 2.2).
static void fill(void) {
  for (int i = 0; i < 256; i++) to_linear[i] = powf((float)i / 255, 2.2f);
  for (int i = 0; i <= 4096; i++) to_display[i] = (uint8_t)(255 * pow(i / 4096.0, 1 / 2.2) + 0.5);
}

// Fills the tables between display colours and linear light, at the first call of the program only; thread-safe.
void fill_tables(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill);
}

// The colour rgba times the light on it, factor {red, green, blue}, plus a highlight `shine`, in linear light.
static uint32_t lit(uint32_t rgba, const double factor[3], double shine) {
  uint32_t out = rgba & 255;
  for (int c = 0; c < 3; c++) {
    double value = to_linear[rgba >> (24 - 8 * c) & 255] * factor[c] + shine;
    out |= (uint32_t)to_display[(int)(4096 * lesser(value, 1))] << (24 - 8 * c);
  }
  return out;
}

// The colour of a body, of unlit colour rgba, lit by a cool sky from above and a warm sun. n: unit normal; ray:
// direction of view; sky, sun: the shares of sky and sun that reach it, 0 to 1.
uint32_t lit_body(const cq_picture *p, const double n[3], const double ray[3], double sky, double sun, uint32_t rgba) {
  const space *s = p->space;
  double facing = larger(dot3(n, s->light), 0), shine = 0, factor[3];
  double above = 0.5 + 0.5 * dot3(n, s->def.up), ambient = sky * (0.30 + 0.28 * above), direct = 0.82 * sun * facing;
  factor[0] = 0.95 * ambient + direct;
  factor[1] = 0.98 * ambient + 0.97 * direct;
  factor[2] = 1.06 * ambient + 0.91 * direct;
  double half[3] = { s->light[0], s->light[1], s->light[2] }, length = sqrt(dot3(ray, ray));
  for (int d = 0; d < 3; d++) half[d] -= ray[d] / length;
  if (sun > 0 && normalize3(half)) {
    double gloss = larger(dot3(n, half), 0);
    gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss; gloss *= gloss;      // to the 32nd
    shine = 0.10 * sun * gloss;
  }
  return lit(rgba, factor, shine);
}

// Sets ray to the way, in the world, from the camera through (x, y) of the canvas [sample] to a depth of 1.
static void ray_at(const cq_picture *p, double x, double y, double ray[3]) {
  const space *s = p->space;
  double a = (x - 0.5 * p->w) * s->per_focal, b = (0.5 * p->h - y) * s->per_focal;
  for (int d = 0; d < 3; d++) ray[d] = s->forward[d] + a * s->right[d] + b * s->up[d];
}

// The lit colour of plane `number` where the canvas shows it at (x, y) [sample]. wide: size of the area to average over
// [sample]; sky: the share of the sky that reaches it, 0 to 1. 0: transparent.
static uint32_t shade_plane(const cq_picture *p, uint32_t number, double x, double y, double wide, double sky) {
  const space *s = p->space;
  const paving *g = &s->planes[number];
  double ray[3], at[3], factor[3];
  ray_at(p, x, y, ray);
  double along = dot3(ray, g->normal), t = g->height / along;
  uint32_t rgba = pave(s, g, g->eye[0] + t * dot3(ray, g->first), g->eye[1] + t * dot3(ray, g->second),
                       wide * t * s->per_focal / larger(fabs(along), 0.05));
  if (!(rgba & 255)) return 0;
  for (int d = 0; d < 3; d++) at[d] = s->def.eye[d] + t * ray[d];
  // as bright as its colour says in the open
  double sun = sunlight(s, at, 0.004 * s->def.focus_radius), light = g->tilt * sky * (0.52 + 0.48 * sun);
  factor[0] = light * (0.96 + 0.04 * sun);
  factor[1] = light * (0.98 + 0.02 * sun);
  factor[2] = light;
  return lit(rgba, factor, 0);
}

// The lit colour of a body's surface with unlit colour rgba and unit normal n, which the canvas shows at `at` [sample]
// at a depth [length]. sky: the share of the sky that reaches it, 0 to 1.
static uint32_t shade_body(const cq_picture *p, const double n[3], double depth, uint32_t rgba, const double at[2],
                           double sky) {
  const space *s = p->space;
  double ray[3], place[3], reach = s->def.focus_radius;
  ray_at(p, at[0], at[1], ray);
  // the shadow is asked a little outside of the surface, which else would hide itself
  for (int d = 0; d < 3; d++) place[d] = s->def.eye[d] + depth * ray[d] + 0.012 * reach * n[d];
  double sun = dot3(n, s->light) > 0 ? sunlight(s, place, 0.012 * reach) : 0;
  return lit_body(p, n, ray, sky, sun, rgba);
}

// Do all samples of a pixel show the same smooth surface, so that the pixel can be lit once? first: the pixel's upper
// left sample. 1 yes, 0 no.
static int is_smooth(const cq_picture *p, const surface *first) {
  for (int32_t j = 0; j < p->samples; j++)
    for (int32_t i = 0; i < p->samples; i++) {
      const surface *at = first + (size_t)j * (size_t)p->w + i;
      if (at->kind != first->kind) return 0;
      if (at->kind == SURFACE_PLANE && at->rgba != first->rgba) return 0;
      if (at->kind != SURFACE_BODY) continue;
      if (at->nx * first->nx + at->ny * first->ny + at->nz * first->nz < 0.9 * 511 * 511) return 0;
      if (fabsf(at->depth - first->depth) > 0.02f * (float)p->space->def.focus_radius) return 0;
    }
  return 1;
}

// The lit colour of pixel (x, y), whose samples all show one smooth surface: their normals, depths and colours are
// averaged and lit once. first: its upper left sample; sky: the share of the sky that reaches it, 0 to 1.
static uint32_t shade_smooth(const cq_picture *p, const surface *first, int32_t x, int32_t y, double sky) {
  double at[2] = { (x + 0.5) * p->samples, (y + 0.5) * p->samples };
  if (first->kind == SURFACE_PLANE) return shade_plane(p, first->rgba, at[0], at[1], p->samples, sky);
  double n[3] = { 0 }, depth = 0;
  uint32_t sum[4] = { 0 }, area = (uint32_t)(p->samples * p->samples), rgba = 0;
  for (int32_t j = 0; j < p->samples; j++)
    for (int32_t i = 0; i < p->samples; i++) {
      const surface *one = first + (size_t)j * (size_t)p->w + i;
      n[0] += one->nx, n[1] += one->ny, n[2] += one->nz;
      depth += one->depth / area;
      for (int c = 0; c < 4; c++) sum[c] += one->rgba >> (24 - 8 * c) & 255;
    }
  normalize3(n);
  for (int c = 0; c < 4; c++) rgba |= (sum[c] + area / 2) / area << (24 - 8 * c);
  return shade_body(p, n, depth, rgba, at, sky);
}

// The lit colour of sample (x, y), which shows the surface `at`. sky: the share of the sky that reaches it, 0 to 1.
static uint32_t shade_sample(const cq_picture *p, const surface *at, int32_t x, int32_t y, double sky) {
  double middle[2] = { x + 0.5, y + 0.5 }, n[3] = { at->nx, at->ny, at->nz };
  if (at->kind == SURFACE_PLANE) return shade_plane(p, at->rgba, middle[0], middle[1], 1, sky);
  normalize3(n);
  return shade_body(p, n, at->depth, at->rgba, middle, sky);
}

// Blends a premultiplied colour `source` over *colour, in place.
static void cover(uint32_t *colour, uint32_t source) {
  *colour = (source & 255) == 255 ? source : over(source, *colour);
}

// Lights all surfaces in pixel rows [first, last) of the depth buffer, and blends them over the canvas; the band
// function of cq_picture_shade. context: the picture.
static void shade_rows(void *context, int32_t first, int32_t last) {
  const cq_picture *p = context;
  int32_t samples = p->samples;
  for (int32_t y = first; y < last; y++)
    for (int32_t x = 0; x < p->width; x++) {
      size_t at = (size_t)y * (size_t)samples * (size_t)p->w + (size_t)x * (size_t)samples;
      const surface *one = p->space->surfaces + at;
      double sky = p->space->occlusion[y * p->width + x] / 255.0;
      int calm = is_smooth(p, one);
      if (calm && one->kind == SURFACE_NONE) continue;
      uint32_t shaded = calm ? premultiply(shade_smooth(p, one, x, y, sky), 255) : 0;
      for (int32_t j = 0; j < samples; j++)
        for (int32_t i = 0; i < samples; i++) {
          size_t k = (size_t)j * (size_t)p->w + (size_t)i;
          if (one[k].kind == SURFACE_NONE) continue;
          uint32_t own =
              calm ? shaded : premultiply(shade_sample(p, one + k, x * samples + i, y * samples + j, sky), 255);
          cover(p->colour + at + k, own);
        }
    }
}

// Lights all surfaces drawn so far into a scene with a camera, and then draws its translucent triangles and balls over
// them. CQ_OK, CQ_MEMORY, or CQ_INVALID without a camera.
cq_status cq_picture_shade(cq_picture *p) {
  if (!p->space) return no_camera();
  fill_tables();
  find_sky(p);
  in_bands(p->threads, p->height, BAND / 2, shade_rows, p);
  return draw_glass(p);
}
