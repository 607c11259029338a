// picture: the canvas inside. Colours are premultiplied 0xRRGGBBAA at samples; a pixel is the mean of its samples.
#ifndef CQ_PICTURE_H
#define CQ_PICTURE_H

#include "../base/base.h"

enum { SURFACE_NONE = 0, SURFACE_BODY, SURFACE_PLANE };   // what a sample shows

typedef struct surface {         // of one sample of a scene with a camera
  float depth;                   // along the view direction [length]
  int32_t nx : 10, ny : 10, nz : 10;   // normal, times 511
  uint32_t kind : 2;             // SURFACE_...
  uint32_t rgba;                 // unlit colour of a body; of a plane its number among the planes of the scene
} surface;

typedef struct paving {          // a plane, and how the camera sees it
  cq_plane def;
  double normal[3], first[3], second[3];
  double facing[3];              // the normal on the camera's side
  double height, eye[2], focus[2];   // of the camera over the plane; places on the plane's axes [length]
  double per_cell;               // 1 / the size of a cell
  double tilt;                   // how bright the sun makes it
  double tint[4], line[4];       // its colour from alpha to red, and the way from there to that of lines
  uint32_t calm;                 // its colour where a footprint holds many cells
  int endless;
} paving;

typedef struct facet {           // a triangle on the canvas
  float x[3], y[3], q[3];        // [sample]; 1 / depth
  float normal[3][3];
  uint32_t rgba[3];
  float depth;                   // of its middle
} facet;

typedef struct globe {           // a ball in the camera's axes
  double c[3], radius;
  uint32_t rgba;
} globe;

// what lets light through: one of the facets or globes that are drawn last, the farthest first
typedef struct pane {
  float depth;
  int32_t index, is_globe;
} pane;

typedef struct space {           // the camera, its light, and what they need
  cq_camera def;
  double right[3], up[3], forward[3], light[3];
  double light_right[3], light_up[3];
  double focal, per_focal;       // [sample], and 1 / focal
  double texels;                 // of the map of shadows in a unit of length
  surface *surfaces;             // {h, w}
  float *shadow;                 // {SHADOW_SIDE, SHADOW_SIDE} highest occluder along the light [length]
  uint8_t *occlusion, *scratch;  // {height, width} open sky in 1/255
  float *depth;                  // {height, width} of what each pixel shows
  paving *planes;
  int32_t plane_count;
  facet *clear_facets;           // translucent ones, in the order that they were given
  globe *clear_globes;
  int64_t facet_count, facet_room, globe_count, globe_room;
} space;

enum { SHADOW_SIDE = 1024, PLANES_MAX = 64, BAND = 16 };

struct cq_picture {
  int32_t width, height;         // [pixel]
  int32_t samples;               // along each side of a pixel
  int32_t w, h;                  // [sample]
  int32_t threads;
  uint32_t *colour;              // {h, w}
  uint8_t *mask;                 // {h, w} coverage of the shape being drawn, zero between drawings
  int32_t box[4];                // what of the mask is touched: x0, y0, x1, y1, exclusive
  uint32_t top, bottom;          // background
  double scale, left, lower;     // view: scale 0 is pixels
  space *space;                  // NULL until a camera is set
};

// Converts x from units of the view (pixels without a view) to samples.
static inline double sample_x(const cq_picture *p, double x) {
  return p->samples * (p->scale > 0 ? p->scale * (x - p->left) : x);
}
// Converts y from units of the view, upward (pixels, downward, without a view), to samples, downward.
static inline double sample_y(const cq_picture *p, double y) {
  return p->samples * (p->scale > 0 ? p->height - p->scale * (y - p->lower) : y);
}
// Converts a length from units of the view (pixels without a view) to samples.
static inline double sample_length(const cq_picture *p, double length) {
  return p->samples * (p->scale > 0 ? p->scale * length : length);
}

// x rounded down to a whole number from 0 to n; defined for all doubles: 0 for NaN, n for large ones.
static inline int32_t clamp_index(double x, int32_t n) {
  return x > 0 ? (x < n ? (int32_t)x : n) : 0;
}

// Premultiplies a colour 0xRRGGBBAA: its alpha becomes alpha times coverage / 255, and red, green and blue are
// multiplied by the new alpha. coverage: 0 to 255.
static inline uint32_t premultiply(uint32_t rgba, uint32_t coverage) {
  uint32_t a = (rgba & 255) * coverage / 255;
  uint32_t r = (rgba >> 24) * a / 255, g = (rgba >> 16 & 255) * a / 255, b = (rgba >> 8 & 255) * a / 255;
  return r << 24 | g << 16 | b << 8 | a;
}

// Blends colour `source` over colour `dest`, both premultiplied 0xRRGGBBAA.
static inline uint32_t over(uint32_t source, uint32_t dest) {
  uint32_t rest = 255 - (source & 255);
  uint32_t high = (dest >> 8 & 0x00FF00FF) * rest + 0x00800080, low = (dest & 0x00FF00FF) * rest + 0x00800080;
  high = (high + (high >> 8 & 0x00FF00FF)) & 0xFF00FF00;
  low = ((low + (low >> 8 & 0x00FF00FF)) >> 8) & 0x00FF00FF;
  return source + (high | low);
}

// ---- canvas.c ----
// The premultiplied background colour of row y [sample].
uint32_t background_at(const cq_picture *p, int32_t y);
void mask_touch(cq_picture *p, double x0, double y0, double x1, double y1);
// Blends a colour over the canvas where the coverage mask is not 0, and clears the mask.
void mask_paint(cq_picture *p, uint32_t rgba);

// ---- fill.c ----
// Adds a line from a to b with round ends and half width `radius` to the coverage mask, all in samples.
void mask_capsule(cq_picture *p, const double a[2], const double b[2], double radius);

// ---- bands.c ----
typedef void band_function(void *context, int32_t first, int32_t last);
// The number of threads to draw with. wanted 0: one for each core that this process may use.
int32_t thread_count(int32_t wanted);
// Calls function on all rows 0..rows-1, in bands that no two threads share.
void in_bands(int32_t threads, int32_t rows, int32_t band, band_function *function, void *context);

// ---- space.c ----
void space_destroy(space *s);
cq_status no_camera(void);
// Sets c to place x of the world along the camera's axes: right, up, away from the camera.
void to_camera(const space *s, const double x[3], double c[3]);

// ---- triangle.c ----
// Triangles of corners {n, 3, 3} with a normal and a colour at each corner: those that are opaque into the surfaces and
// the shadow, the others kept for later.
cq_status draw_facets(cq_picture *p, int64_t n, const double *corner, const double *normal, const uint32_t *rgba);

// ---- light.c ----
void shadow_sphere(space *s, const double centre[3], double radius);
cq_status shadow_triangles(cq_picture *p, int64_t n, const double *corner, const uint32_t *rgba);
// The share of the sun that reaches place x, 0 to 1. bias [length]: how much higher than x a surface is that shades it.
double sunlight(const space *s, const double x[3], double bias);
// Sets occlusion of each pixel, the share of the sky that reaches it in 1/255.
void find_sky(cq_picture *p);

// ---- plane.c ----
// colour at a place on the plane
uint32_t pave(const space *s, const paving *g, double a, double b, double footprint);

// ---- shade.c ----
void fill_tables(void);
// The lit colour of a body of unlit colour rgba. ray: direction of view; sky, sun: the shares that reach it, 0 to 1.
uint32_t lit_body(const cq_picture *p, const double normal[3], const double ray[3], double sky, double sun,
                  uint32_t rgba);

// ---- glass.c ----
cq_status keep_facet(space *s, const facet *f);
cq_status keep_globe(space *s, const globe *g);
cq_status draw_glass(cq_picture *p);

#endif
