// canvas: memory, background, the coverage mask, and the conversion from samples to pixels.
#include "picture.h"
#include <math.h>
#include <string.h>

enum { SIDE_MAX = 8192, SAMPLES_MAX = 4 };

// Sets *picture to a new, transparent picture of width x height pixels, each the mean of samples x samples samples
// (supersampling); to NULL on failure. CQ_OK, CQ_MEMORY, or CQ_INVALID for sizes that are not allowed.
cq_status cq_picture_create(int32_t width, int32_t height, int32_t samples, cq_picture **picture) {
  *picture = NULL;
  if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX)
    return cq_fail(CQ_INVALID, "a picture of %d x %d pixels is wanted, from 1 to %d on a side are allowed", width,
                   height, SIDE_MAX);
  if (samples < 1 || samples > SAMPLES_MAX)
    return cq_fail(CQ_INVALID, "%d samples along a pixel are wanted, from 1 to %d are allowed", samples, SAMPLES_MAX);
  cq_picture *p = cq_alloc(1, sizeof *p, "picture");
  if (!p) return CQ_MEMORY;
  p->width = width;
  p->height = height;
  p->samples = samples;
  p->w = width * samples;
  p->h = height * samples;
  p->threads = 1;
  p->colour = cq_alloc((size_t)p->w * (size_t)p->h, sizeof *p->colour, "picture samples");
  p->mask = cq_alloc((size_t)p->w * (size_t)p->h, 1, "picture mask");
  if (!p->colour || !p->mask) {
    cq_picture_destroy(p);
    return CQ_MEMORY;
  }
  p->box[0] = p->w;
  p->box[1] = p->h;
  cq_picture_background(p, 0, 0);
  *picture = p;
  return CQ_OK;
}

// Frees a picture; NULL: does nothing.
void cq_picture_destroy(cq_picture *p) {
  if (!p) return;
  space_destroy(p->space);
  cq_free(p->colour);
  cq_free(p->mask);
  cq_free(p);
}

// Sets the number of threads that draw; 0: one for each core. What is drawn does not depend on it.
void cq_picture_threads(cq_picture *p, int32_t threads) { p->threads = thread_count(threads); }

// The premultiplied background colour of row y [sample], mixed linearly from the colours at top and bottom.
uint32_t background_at(const cq_picture *p, int32_t y) {
  double t = ((double)y + 0.5) / p->h;
  uint32_t mixed = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    double a = p->top >> shift & 255, b = p->bottom >> shift & 255;
    mixed |= (uint32_t)(a + t * (b - a) + 0.5) << shift;
  }
  return premultiply(mixed, 255);
}

// Forgets drawings, view and camera, and fills the canvas with a vertical gradient of two colours 0xRRGGBBAA.
void cq_picture_background(cq_picture *p, uint32_t top, uint32_t bottom) {
  p->top = top;
  p->bottom = bottom;
  p->scale = 0;
  space_destroy(p->space);
  p->space = NULL;
  for (int32_t y = 0; y < p->h; y++) {
    uint32_t colour = background_at(p, y), *row = p->colour + (size_t)y * (size_t)p->w;
    for (int32_t x = 0; x < p->w; x++) row[x] = colour;
  }
}

// Sets the coordinates of 2D drawing to those of a plane with y up: (x, y) is drawn at pixel scale * (x - left),
// height - scale * (y - bottom). scale 0: to pixels, y down.
void cq_picture_view(cq_picture *p, double scale, double left, double bottom) {
  p->scale = scale;
  p->left = left;
  p->lower = bottom;
}

// Extends p->box, the used part of the coverage mask, by the rectangle x0, y0 to x1, y1 [sample]; mask_paint visits
// only this box. Called before a shape is added to the mask.
void mask_touch(cq_picture *p, double x0, double y0, double x1, double y1) {
  int32_t box[4] = {clamp_index(floor(x0), p->w), clamp_index(floor(y0), p->h), clamp_index(ceil(x1), p->w),
                    clamp_index(ceil(y1), p->h)};
  for (int i = 0; i < 2; i++) {
    if (box[i] < p->box[i]) p->box[i] = box[i];
    if (box[i + 2] > p->box[i + 2]) p->box[i + 2] = box[i + 2];
  }
}

// Blends a colour 0xRRGGBBAA over the canvas where the coverage mask is not 0, in proportion to the mask, and clears
// the mask. Called after all shapes of one colour were added to the mask.
void mask_paint(cq_picture *p, uint32_t rgba) {
  for (int32_t y = p->box[1]; y < p->box[3]; y++) {
    uint8_t *mask = p->mask + (size_t)y * (size_t)p->w;
    uint32_t *row = p->colour + (size_t)y * (size_t)p->w;
    for (int32_t x = p->box[0]; x < p->box[2]; x++)
      if (mask[x]) row[x] = over(premultiply(rgba, mask[x]), row[x]);
    if (p->box[2] > p->box[0]) memset(mask + p->box[0], 0, (size_t)(p->box[2] - p->box[0]));
  }
  p->box[0] = p->w;
  p->box[1] = p->h;
  p->box[2] = p->box[3] = 0;
}

// Copies the picture `from` onto p, its upper left corner at pixel (x, y) of p; parts that do not fit are cut off.
// CQ_OK, or CQ_INVALID if the two differ in samples for a pixel, or for a negative x or y.
cq_status cq_picture_paste(cq_picture *p, const cq_picture *from, int32_t x, int32_t y) {
  if (p->samples != from->samples)
    return cq_fail(CQ_INVALID,
                   "a picture of %d samples along a pixel is to be pasted into one of %d, they must have as many",
                   from->samples, p->samples);
  if (x < 0 || y < 0)
    return cq_fail(CQ_INVALID, "a picture is to be pasted at pixel (%d, %d), from (0, 0) on is allowed", x, y);
  int64_t left = (int64_t)x * p->samples, upper = (int64_t)y * p->samples;
  for (int32_t row = 0; row < from->h && upper + row < p->h; row++) {
    int64_t count = from->w < p->w - left ? from->w : p->w - left;
    if (count > 0)
      memcpy(p->colour + (size_t)((upper + row) * p->w + left), from->colour + (size_t)row * (size_t)from->w,
             (size_t)count * sizeof *p->colour);
  }
  return CQ_OK;
}

typedef struct developing {
  const cq_picture *picture;
  uint8_t *rgba;
} developing;

// Sums the samples of the pixel at x, y: red and blue into one word, green and alpha into another, 16 bits each.
static void sum_samples(const cq_picture *p, int32_t x, int32_t y, uint32_t *red_blue, uint32_t *green_alpha) {
  *red_blue = *green_alpha = 0;
  for (int32_t j = 0; j < p->samples; j++) {
    const uint32_t *row = p->colour + (size_t)(y * p->samples + j) * (size_t)p->w + (size_t)x * (size_t)p->samples;
    for (int32_t i = 0; i < p->samples; i++) {
      *red_blue += row[i] >> 8 & 0x00FF00FF;
      *green_alpha += row[i] & 0x00FF00FF;
    }
  }
}

// Sets the pixels of rows [first, last) to the means of their samples, in colours that are not multiplied by alpha; the
// band function of cq_picture_pixels. context: a `developing`.
static void develop(void *context, int32_t first, int32_t last) {
  const developing *d = context;
  const cq_picture *p = d->picture;
  // sum * share >> 20 is sum / area: exact, for a sum is less than 2^14
  uint32_t area = (uint32_t)(p->samples * p->samples);
  uint64_t share = ((1u << 20) + area - 1) / area;
  uint8_t *rgba = d->rgba + (size_t)first * (size_t)p->width * 4;
  for (int32_t y = first; y < last; y++)
    for (int32_t x = 0; x < p->width; x++, rgba += 4) {
      uint32_t red_blue, green_alpha;
      sum_samples(p, x, y, &red_blue, &green_alpha);
      uint32_t sum[3] = { red_blue >> 16, green_alpha >> 16, red_blue & 65535 }, alpha = green_alpha & 65535;
      // files hold colours that are not multiplied by alpha
      for (int c = 0; c < 3; c++) {
        uint32_t value = alpha == 255 * area ? (uint32_t)((sum[c] + area / 2) * share >> 20)
                         : alpha             ? (sum[c] * 255 + alpha / 2) / alpha
                                             : 0;
        rgba[c] = (uint8_t)(value < 255 ? value : 255);
      }
      rgba[3] = (uint8_t)((alpha + area / 2) * share >> 20);
    }
}

// Sets rgba {height, width, 4} to the picture's pixels, the top row first, colours not multiplied by alpha.
void cq_picture_pixels(const cq_picture *p, uint8_t *rgba) {
  developing d = { p, rgba };
  in_bands(p->threads, p->height, BAND, develop, &d);
}
