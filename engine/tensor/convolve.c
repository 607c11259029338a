// Cross-correlation in up to three dimensions; fewer have a size of one along the first. The patches under the kernel
// become the columns of a matrix, some lines of outputs at a time so that they stay in the cache, and a matrix product
// does the rest. Its adjoint by the input is the transposed convolution.
#include "tensor.h"
#include <cblas.h>
#include <string.h>

enum { BLOCK = 32768 };          // numbers of the columns at a time, 256 kB

// sizes that follow from a convolution
typedef struct layout {
  int64_t out[3];                // outputs along each axis
  int64_t outputs, inputs;       // of one channel
  int64_t taps;                  // inputs of one output: kernel entries times channels
  int64_t lines, block;          // rows of outputs along the last axis: in all, and computed at a time
} layout;

// The sizes that follow from a convolution: outputs, inputs, taps of the kernel, and how many lines of outputs are
// computed at a time.
static layout layout_of(const cq_convolution *c) {
  layout l = {.outputs = 1, .inputs = 1, .taps = c->in};
  for (int d = 0; d < 3; d++) {
    l.out[d] = (c->size[d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1) / c->stride[d] + 1;
    l.outputs *= l.out[d];
    l.inputs *= c->size[d];
    l.taps *= c->kernel[d];
  }
  l.lines = l.out[0] * l.out[1];
  l.block = BLOCK / (l.taps * l.out[2] + 1);
  if (l.block < 1) l.block = 1;
  if (l.block > l.lines) l.block = l.lines;
  return l;
}

// lines of outputs that are computed together
typedef struct span {
  int64_t first, lines, count;   // count: of outputs
} span;

// The next lines of outputs that are computed at a time, from line number `line` on.
static span span_at(const layout *l, int64_t line) {
  const int64_t lines = line + l->block < l->lines ? l->block : l->lines - line;
  return (span){line, lines, lines * l->out[2]};
}

// The inputs of a line of outputs through one tap: output x reads line[x * stride + first], which is padding unless
// begin <= x < end.
typedef struct reach {
  int64_t first, begin, end, count;
} reach;

// Which outputs of a line read the input through one tap, and not padding. first: the input that output 0 reads; count:
// outputs of a line.
static reach reach_of(const cq_convolution *c, int64_t first, int64_t count) {
  const int64_t stride = c->stride[2], size = c->size[2];
  int64_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
  int64_t end = size > first ? (size - first + stride - 1) / stride : 0;
  if (begin > count) begin = count;
  if (end > count) end = count;
  if (end < begin) end = begin;
  return (reach){first, begin, end, count};
}

// Copies every stride-th number of a line to a column; back 1: adds the column to these numbers. Inlined with a
// constant stride, so that the compiler uses vectors.
static inline void move(double *line, double *column, int64_t count, int64_t stride, int back) {
  if (back)
    for (int64_t x = 0; x < count; x++) line[x * stride] += column[x];
  else
    for (int64_t x = 0; x < count; x++) column[x] = line[x * stride];
}

// Copies the inputs of a line of outputs through one tap to a column, with zeros for padding; back 1: adds the column
// to the inputs.
static void move_line(double *line, int64_t stride, reach r, double *column, int back) {
  double *from = line + r.begin * stride + r.first, *to = column + r.begin;
  if (stride == 1) move(from, to, r.end - r.begin, 1, back);
  else if (stride == 2) move(from, to, r.end - r.begin, 2, back);
  else move(from, to, r.end - r.begin, stride, back);
  if (back) return;
  for (int64_t x = 0; x < r.begin; x++) column[x] = 0;
  for (int64_t x = r.end; x < r.count; x++) column[x] = 0;
}

// Fills column {taps, s.count} (im2col) for a span s of outputs of one picture {in, size}: for each tap (channel, kz,
// ky, kx) a row of the inputs that these outputs read. back 1: adds the columns to the picture.
static void patches(const cq_convolution *c, const layout *l, double *picture, span s, double *column, int back) {
  const int64_t *k = c->kernel, width = l->out[2], top = s.first / l->out[1], left = s.first % l->out[1];
  for (int64_t tap = 0; tap < l->taps; tap++) {
    const int64_t kx = tap % k[2], ky = tap / k[2] % k[1], kz = tap / (k[2] * k[1]) % k[0];
    double *channel = picture + tap / (k[2] * k[1] * k[0]) * l->inputs, *to = column + tap * s.count;
    const reach r = reach_of(c, kx * c->dilation[2] - c->padding[2], width);
    int64_t oz = top, oy = left;
    for (int64_t i = 0; i < s.lines; i++, to += width) {
      const int64_t z = oz * c->stride[0] - c->padding[0] + kz * c->dilation[0];
      const int64_t y = oy * c->stride[1] - c->padding[1] + ky * c->dilation[1];
      if (z >= 0 && z < c->size[0] && y >= 0 && y < c->size[1])
        move_line(channel + (z * c->size[1] + y) * c->size[2], c->stride[2], r, to, back);
      else if (!back) memset(to, 0, (size_t)width * sizeof *to);
      if (++oy == l->out[1]) oy = 0, oz++;
    }
  }
}

// Cross-correlation y = w columns(x) of a batch: x {batch, in, size}, w {out, in, kernel}, y {batch, out, outputs};
// c->accumulate 1: adds to y. CQ_OK or CQ_MEMORY.
cq_status cq_tensor_convolve(const cq_convolution *c, const double *x, const double *w, double *y) {
  const layout l = layout_of(c);
  double *column = cq_tensor_alloc(l.taps * l.block * l.out[2], 0);
  if (!column) return CQ_MEMORY;
  for (int64_t b = 0; b < c->batch; b++)
    for (int64_t line = 0; line < l.lines; line += l.block) {
      const span s = span_at(&l, line);
      patches(c, &l, (double *)(uintptr_t)(x + b * c->in * l.inputs), s, column, 0);
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)c->out, (int)s.count, (int)l.taps, 1, w, (int)l.taps,
                  column, (int)s.count, c->accumulate, y + b * c->out * l.outputs + line * l.out[2], (int)l.outputs);
    }
  cq_tensor_free(column);
  return CQ_OK;
}

// Adjoint of cq_tensor_convolve, y = w columns(x), from grad_y: adds grad_y columns^T to grad_w, and w^T grad_y,
// through the columns, to grad_x; either may be NULL. CQ_OK or CQ_MEMORY.
cq_status cq_tensor_convolve_adj(const cq_convolution *c, const double *x, const double *w, double *grad_x,
                                 double *grad_w, const double *grad_y) {
  const layout l = layout_of(c);
  double *column = cq_tensor_alloc(l.taps * l.block * l.out[2], 0);
  if (!column) return CQ_MEMORY;
  for (int64_t b = 0; b < c->batch; b++)
    for (int64_t line = 0; line < l.lines; line += l.block) {
      const span s = span_at(&l, line);
      const double *gy = grad_y + b * c->out * l.outputs + line * l.out[2];
      if (grad_w) {
        patches(c, &l, (double *)(uintptr_t)(x + b * c->in * l.inputs), s, column, 0);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)c->out, (int)l.taps, (int)s.count, 1, gy,
                    (int)l.outputs, column, (int)s.count, 1, grad_w, (int)l.taps);
      }
      if (grad_x) {
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)l.taps, (int)s.count, (int)c->out, 1, w, (int)l.taps,
                    gy, (int)l.outputs, 0, column, (int)s.count);
        patches(c, &l, grad_x + b * c->in * l.inputs, s, column, 1);
      }
    }
  cq_tensor_free(column);
  return CQ_OK;
}
