// Cross-correlation in two dimensions (one dimension is a picture of height 1): the patches under the kernel become the
// columns of a matrix, and a matrix product does the rest.
#include "tensor.h"

static int64_t out_size(const cq_convolution *c, int d) {
  return (c->size[d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1) / c->stride[d] + 1;
}

// For each tap (channel, ky, kx), a row of outputs: column(tap, output) is one input element, or none in the padding.
// direction 0 reads the picture into columns, 1 adds columns to the picture.
static void patches(const cq_convolution *c, double *picture, double *column, int direction) {
  int64_t height = out_size(c, 0), width = out_size(c, 1);
  for (int64_t channel = 0; channel < c->in; channel++)
    for (int64_t ky = 0; ky < c->kernel[0]; ky++)
      for (int64_t kx = 0; kx < c->kernel[1]; kx++)
        for (int64_t oy = 0; oy < height; oy++) {
          int64_t y = oy * c->stride[0] - c->padding[0] + ky * c->dilation[0];
          int inside_y = y >= 0 && y < c->size[0];
          double *line = picture + (channel * c->size[0] + (inside_y ? y : 0)) * c->size[1];
          for (int64_t ox = 0; ox < width; ox++, column++) {
            int64_t x = ox * c->stride[1] - c->padding[1] + kx * c->dilation[1];
            int inside = inside_y && x >= 0 && x < c->size[1];
            if (direction == 0) *column = inside ? line[x] : 0;
            else if (inside) line[x] += *column;
          }
        }
}

cq_status cq_tensor_convolve(const cq_convolution *c, const double *x, const double *w, double *y) {
  int64_t outputs = out_size(c, 0) * out_size(c, 1), taps = c->in * c->kernel[0] * c->kernel[1];
  double *column = cq_tensor_alloc(outputs * taps, 0);
  if (!column) return CQ_MEMORY;
  cq_product p = {.batch = 1, .m = c->out, .n = outputs, .k = taps};
  for (int64_t b = 0; b < c->batch; b++) {
    patches(c, (double *)(uintptr_t)(x + b * c->in * c->size[0] * c->size[1]), column, 0);
    cq_tensor_matmul(&p, w, column, y + b * c->out * outputs);
  }
  cq_tensor_free(column);
  return CQ_OK;
}

cq_status cq_tensor_convolve_adj(const cq_convolution *c, const double *x, const double *w, double *grad_x,
                                 double *grad_w, const double *grad_y) {
  int64_t outputs = out_size(c, 0) * out_size(c, 1), taps = c->in * c->kernel[0] * c->kernel[1];
  int64_t picture = c->in * c->size[0] * c->size[1];
  double *column = cq_tensor_alloc(outputs * taps, 0);
  if (!column) return CQ_MEMORY;
  // y = w columns: dw += dy columns^T, dcolumns = w^T dy
  cq_product to_w = {.batch = 1, .m = c->out, .n = taps, .k = outputs, .transpose_b = 1, .accumulate = 1};
  cq_product to_x = {.batch = 1, .m = taps, .n = outputs, .k = c->out, .transpose_a = 1};
  for (int64_t b = 0; b < c->batch; b++) {
    const double *gy = grad_y + b * c->out * outputs;
    if (grad_w) {
      patches(c, (double *)(uintptr_t)(x + b * picture), column, 0);
      cq_tensor_matmul(&to_w, gy, column, grad_w);
    }
    if (grad_x) {
      cq_tensor_matmul(&to_x, w, gy, column);
      patches(c, grad_x + b * picture, column, 1);
    }
  }
  cq_tensor_free(column);
  return CQ_OK;
}
