// Scans along one axis of {outer, axis, inner}: the result has the shape of the input.
#include "tensor.h"
#include <math.h>

// Sets y to the cumulative sums of x along a line of n elements, s apart.
static void cumsum(int64_t n, int64_t s, const double *x, double *y) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) y[i * s] = sum += x[i * s];
}

// Adjoint of cumsum: adds to element i of grad_x the sum of grad_y from i to the end.
static void cumsum_adj(int64_t n, int64_t s, double *grad_x, const double *grad_y) {
  double sum = 0;
  for (int64_t i = n - 1; i >= 0; i--) grad_x[i * s] += sum += grad_y[i * s];
}

// Sets y to the softmax of a line of n numbers, s apart, e^(x - max) / sum e^(x - max); logarithm 1: to its logarithm.
static void softmax(int64_t n, int64_t s, const double *x, double *y, int logarithm) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    if (!(x[i * s] <= top)) top = x[i * s];
  for (int64_t i = 0; i < n; i++) sum += exp(x[i * s] - top);
  double shift = top + log(sum);
  for (int64_t i = 0; i < n; i++) y[i * s] = logarithm ? x[i * s] - shift : exp(x[i * s] - top) / sum;
}

// Adjoint of softmax with result y: for a line of n numbers, s apart, with g = grad_y, grad_x_i += y_i (g_i - sum_j g_j
// y_j).
static void softmax_adj(int64_t n, int64_t s, const double *y, double *grad_x, const double *grad_y) {
  double mean = 0;
  for (int64_t i = 0; i < n; i++) mean += grad_y[i * s] * y[i * s];
  for (int64_t i = 0; i < n; i++) grad_x[i * s] += y[i * s] * (grad_y[i * s] - mean);
}

// Adjoint of the logarithm of softmax with result y: for a line of n numbers, s apart, with g = grad_y, grad_x_i += g_i
// - e^y_i sum_j g_j.
static void log_softmax_adj(int64_t n, int64_t s, const double *y, double *grad_x, const double *grad_y) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += grad_y[i * s];
  for (int64_t i = 0; i < n; i++) grad_x[i * s] += grad_y[i * s] - exp(y[i * s]) * sum;
}

// Sets y, of the shape of x, to a scan (CQ_SCAN_...) along the second axis of x {extent[0], extent[1], extent[2]}:
// cumulative sum, softmax or its logarithm.
void cq_tensor_scan(int32_t op, const int64_t extent[3], const double *x, double *y) {
  int64_t n = extent[1], s = extent[2];
  for (int64_t o = 0; o < extent[0]; o++)
    for (int64_t i = 0; i < s; i++) {
      int64_t at = o * n * s + i;
      if (op == CQ_SCAN_CUMSUM) cumsum(n, s, x + at, y + at);
      else softmax(n, s, x + at, y + at, op == CQ_SCAN_LOG_SOFTMAX);
    }
}

// Adjoint of cq_tensor_scan, from its result y and grad_y: adds to grad_x; all have the shape of x.
void cq_tensor_scan_adj(int32_t op, const int64_t extent[3], const double *y, double *grad_x, const double *grad_y) {
  int64_t n = extent[1], s = extent[2];
  for (int64_t o = 0; o < extent[0]; o++)
    for (int64_t i = 0; i < s; i++) {
      int64_t at = o * n * s + i;
      if (op == CQ_SCAN_CUMSUM) cumsum_adj(n, s, grad_x + at, grad_y + at);
      else if (op == CQ_SCAN_SOFTMAX) softmax_adj(n, s, y + at, grad_x + at, grad_y + at);
      else log_softmax_adj(n, s, y + at, grad_x + at, grad_y + at);
    }
}
