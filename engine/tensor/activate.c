// activate: the bias of each channel and the activation that follow a layer, in place over its result.
#include "tensor.h"
#include <math.h>

#define CQ_ACTIVATION static inline
#include "../math/activation.inl"

// y = f(y + bias) in place, y {batch, channels, count}, bias {channels} or NULL, f the activation of c or none.
void cq_tensor_activate(const cq_channels *c, const double *bias, double *y) {
  double *to = y;
  for (int64_t b = 0; bias && b < c->batch; b++)
    for (int64_t k = 0; k < c->channels; k++, to += c->count)
      for (int64_t i = 0; i < c->count; i++) to[i] += bias[k];
  if (c->activation >= 0) cq_tensor_unary(c->activation, c->batch * c->channels * c->count, y, y);
}

// Adjoint of cq_tensor_activate, from the result y: overwrites grad_y with the gradient before the activation, and adds
// its sums over each channel to grad_bias, which may be NULL.
void cq_tensor_activate_adj(const cq_channels *c, const double *y, double *grad_bias, double *grad_y) {
  const int64_t all = c->batch * c->channels * c->count;
  if (c->activation == CQ_UNARY_RELU)                    // without the branches of the other activations
    for (int64_t i = 0; i < all; i++) grad_y[i] = y[i] > 0 ? grad_y[i] : 0;
  else
    for (int64_t i = 0; c->activation >= 0 && i < all; i++)
      if (grad_y[i] != 0) grad_y[i] *= activation_slope(c->activation, y[i]);
  const double *from = grad_y;
  for (int64_t b = 0; grad_bias && b < c->batch; b++)
    for (int64_t k = 0; k < c->channels; k++, from += c->count) grad_bias[k] += cq_tensor_sum(c->count, from);
}
