// A layer of a network as one operation: y = f(x w + b), and its adjoint from y alone.
#include "tensor.h"
#include <math.h>

void cq_tensor_dense(const cq_dense *d, const double *x, const double *w, const double *b, double *y) {
  const cq_product product = {.batch = 1, .m = d->rows, .n = d->out, .k = d->in};
  cq_tensor_matmul(&product, x, w, y);
  for (int64_t r = 0; r < d->rows; r++)
    for (int64_t j = 0; j < d->out; j++) y[r * d->out + j] += b[j];
  if (d->activation >= 0) cq_tensor_unary(d->activation, d->rows * d->out, y, y);
}

// dy / d(x w + b)
static double slope(int32_t activation, double y) {
  switch (activation) {
    case CQ_UNARY_TANH: return (1 - y) * (1 + y);
    case CQ_UNARY_SIGMOID: return y * (1 - y);
    case CQ_UNARY_RELU: return y > 0;
    case CQ_UNARY_SOFTPLUS: return -expm1(-y);
    default: return 1;
  }
}

void cq_tensor_dense_adj(const cq_dense *d, const double *x, const double *w, const double *y, double *grad_x, double *grad_w,
                         double *grad_b, double *grad_y) {
  for (int64_t i = 0; i < d->rows * d->out; i++)
    if (grad_y[i] != 0) grad_y[i] *= slope(d->activation, y[i]);
  for (int64_t i = 0; grad_b && i < d->rows * d->out; i++) grad_b[i % d->out] += grad_y[i];
  const cq_product to_x = {.batch = 1, .m = d->rows, .n = d->in, .k = d->out, .transpose_b = 1, .accumulate = 1};
  const cq_product to_w = {.batch = 1, .m = d->in, .n = d->out, .k = d->rows, .transpose_a = 1, .accumulate = 1};
  if (grad_x) cq_tensor_matmul(&to_x, grad_y, w, grad_x);
  if (grad_w) cq_tensor_matmul(&to_w, x, grad_y, grad_w);
}
