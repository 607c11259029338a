// Picks along one axis of {outer, axis, inner}, and its adjoint.
#include "tensor.h"
#include <string.h>

// Picks along an axis: y {outer, count, inner} = x {outer, axis, inner} at index {count} (from 0) of the axis. extent:
// outer, axis, inner.
void cq_tensor_gather(const int64_t extent[3], int64_t count, const int64_t *index, const double *x, double *y) {
  int64_t inner = extent[2];
  for (int64_t o = 0; o < extent[0]; o++, x += extent[1] * inner)
    for (int64_t k = 0; k < count; k++, y += inner)
      memcpy(y, x + index[k] * inner, (size_t)inner * sizeof *y);
}

// Adjoint of cq_tensor_gather: grad_x {outer, axis, inner} at index += grad_y {outer, count, inner}.
void cq_tensor_gather_adj(const int64_t extent[3], int64_t count, const int64_t *index, double *grad_x,
                          const double *grad_y) {
  int64_t inner = extent[2];
  for (int64_t o = 0; o < extent[0]; o++, grad_x += extent[1] * inner)
    for (int64_t k = 0; k < count; k++, grad_y += inner) {
      double *to = grad_x + index[k] * inner;
      for (int64_t i = 0; i < inner; i++) to[i] += grad_y[i];
    }
}
