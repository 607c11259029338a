// picture: the canvas inside. Colours are premultiplied 0xRRGGBBAA at samples; a pixel is the mean of its samples.
#ifndef CQ_PICTURE_H
#define CQ_PICTURE_H

#include "../base/base.h"

enum { SURFACE_NONE = 0, SURFACE_BODY, SURFACE_PLANE };   // what a sample shows

typedef struct surface {         // of one sample of a scene with a camera
  float depth;                   // along the view direction [length]
  int8_t normal[3];              // times 127
  uint8_t kind;                  // SURFACE_...
  uint32_t rgba;                 // unlit colour; alpha is how much of it hides the background
} surface;

typedef struct space {           // the camera, its light, and what they need
  cq_camera def;
  double right[3], up[3], forward[3], light[3];
  double light_right[3], light_up[3];
  double focal;                  // [sample]
  surface *surfaces;             // {h, w}
  float *shadow;                 // {SHADOW_SIDE, SHADOW_SIDE} highest occluder along the light [length]
  uint8_t *occlusion, *scratch;  // {height, width} open sky in 1/255
} space;

enum { SHADOW_SIDE = 1024 };

struct cq_picture {
  int32_t width, height;         // [pixel]
  int32_t samples;               // along each side of a pixel
  int32_t w, h;                  // [sample]
  uint32_t *colour;              // {h, w}
  uint8_t *mask;                 // {h, w} coverage of the shape being drawn, zero between drawings
  int32_t box[4];                // what of the mask is touched: x0, y0, x1, y1, exclusive
  uint32_t top, bottom;          // background
  double scale, left, lower;     // view: scale 0 is pixels
  space *space;                  // NULL until a camera is set
};

// to samples
static inline double sample_x(const cq_picture *p, double x) {
  return p->samples * (p->scale > 0 ? p->scale * (x - p->left) : x);
}
static inline double sample_y(const cq_picture *p, double y) {
  return p->samples * (p->scale > 0 ? p->height - p->scale * (y - p->lower) : y);
}
static inline double sample_length(const cq_picture *p, double length) {
  return p->samples * (p->scale > 0 ? p->scale * length : length);
}

static inline int32_t clamp_index(double x, int32_t n) {   // into 0..n, also for what no integer holds
  return x > 0 ? (x < n ? (int32_t)x : n) : 0;
}

// premultiplied colour with its alpha times coverage / 255
static inline uint32_t premultiply(uint32_t rgba, uint32_t coverage) {
  uint32_t a = (rgba & 255) * coverage / 255;
  uint32_t r = (rgba >> 24) * a / 255, g = (rgba >> 16 & 255) * a / 255, b = (rgba >> 8 & 255) * a / 255;
  return r << 24 | g << 16 | b << 8 | a;
}

// source over destination, both premultiplied
static inline uint32_t over(uint32_t source, uint32_t dest) {
  uint32_t rest = 255 - (source & 255);
  uint32_t high = (dest >> 8 & 0x00FF00FF) * rest + 0x00800080, low = (dest & 0x00FF00FF) * rest + 0x00800080;
  high = (high + (high >> 8 & 0x00FF00FF)) & 0xFF00FF00;
  low = ((low + (low >> 8 & 0x00FF00FF)) >> 8) & 0x00FF00FF;
  return source + (high | low);
}

uint32_t background_at(const cq_picture *p, int32_t y);             // y [sample]
void mask_touch(cq_picture *p, double x0, double y0, double x1, double y1);
void mask_capsule(cq_picture *p, const double a[2], const double b[2], double radius);   // [sample]
void mask_paint(cq_picture *p, uint32_t rgba);                      // and clear
void space_destroy(space *s);
void shadow_sphere(space *s, const double centre[3], double radius);

#endif
