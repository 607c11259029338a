// dense: a layer of a network as one operation: y = f(x w + b), and its adjoint from y alone.
#include "tensor.h"

// A layer of a network: y = f(x w + b), with x {rows, in}, w {in, out}, b {out}, y {rows, out} and the activation f of
// d, -1 for none.
void cq_tensor_dense(const cq_dense *d, const double *x, const double *w, const double *b, double *y) {
  const cq_product product = {.batch = 1, .m = d->rows, .n = d->out, .k = d->in};
  cq_tensor_matmul(&product, x, w, y);
  cq_tensor_activate(&(cq_channels){d->rows, d->out, 1, d->activation}, b, y);
}

// Adjoint of cq_tensor_dense, from the result y and grad_y, which it overwrites: adds to the gradients of x, w and b in
// grad; NULL: not wanted.
void cq_tensor_dense_adj(const cq_dense *d, const double *x, const double *w, const double *y,
                         const cq_dense_grad *grad, double *grad_y) {
  cq_tensor_activate_adj(&(cq_channels){d->rows, d->out, 1, d->activation}, y, grad->b, grad_y);
  const cq_product to_x = {.batch = 1, .m = d->rows, .n = d->in, .k = d->out, .transpose_b = 1, .accumulate = 1};
  const cq_product to_w = {.batch = 1, .m = d->in, .n = d->out, .k = d->rows, .transpose_a = 1, .accumulate = 1};
  if (grad->x) cq_tensor_matmul(&to_x, grad_y, w, grad->x);
  if (grad->w) cq_tensor_matmul(&to_w, x, grad_y, grad->w);
}
