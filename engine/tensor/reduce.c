// Reductions and scans along one axis of {outer, axis, inner}.
#include "tensor.h"
#include <math.h>

// The sum of `count` numbers in one fixed order, in eight partial sums so that it is fast and its rounding error grows
// slowly.
double cq_tensor_sum(int64_t count, const double *x) {
  double lane[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; k++) lane[k] += x[i + k];
  double rest = 0;
  for (; i < count; i++) rest += x[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])) + rest;
}

// A line: the `count` elements along the reduced axis for one (outer, inner) pair, `stride` apart.
typedef struct line {
  int64_t count, stride;
} line;

// The sum of the line of elements from x on, in a fixed order.
static double line_sum(line l, const double *x) {
  if (l.stride == 1) return cq_tensor_sum(l.count, x);
  double sum = 0;
  for (int64_t i = 0; i < l.count; i++) sum += x[i * l.stride];
  return sum;
}

// The product of the line of elements from x on.
static double line_product(line l, const double *x) {
  double product = 1;
  for (int64_t i = 0; i < l.count; i++) product *= x[i * l.stride];
  return product;
}

// The index, from 0, of the first largest (s = 1) or smallest (s = -1) element of a line; of the first NaN if there is
// one.
static int64_t line_extreme(line l, const double *x, double s) {
  int64_t at = 0;
  for (int64_t i = 0; i < l.count; i++) {
    double v = x[i * l.stride];
    if (isnan(v)) return i;
    if (s * v > s * x[at * l.stride]) at = i;
  }
  return at;
}

// The Euclidean norm of a line of numbers, scaled so that squares neither overflow nor vanish.
static double line_norm(line l, const double *x) {
  double scale = 0, sum = 0;
  for (int64_t i = 0; i < l.count; i++) {
    double v = fabs(x[i * l.stride]);
    if (isnan(v)) return v;
    if (v > scale) scale = v;
  }
  if (scale == 0 || isinf(scale)) return scale;
  for (int64_t i = 0; i < l.count; i++) {
    double v = x[i * l.stride] / scale;
    sum += v * v;
  }
  return scale * sqrt(sum);
}

// log(sum e^x) of a line of numbers; the largest is subtracted before exp, so that nothing overflows.
static double line_logsumexp(line l, const double *x) {
  double top = x[line_extreme(l, x, 1) * l.stride], sum = 0;
  if (!isfinite(top)) return top;
  for (int64_t i = 0; i < l.count; i++) sum += exp(x[i * l.stride] - top);
  return top + log(sum);
}

// Reduces one line of a tensor to a number by an operation (CQ_REDUCTION_...): sum, mean, product, extreme or its index
// from 1, norm, logsumexp.
static double reduce_line(int32_t op, line l, const double *x) {
  switch (op) {
    case CQ_REDUCTION_SUM: return line_sum(l, x);
    case CQ_REDUCTION_MEAN: return line_sum(l, x) / (double)l.count;
    case CQ_REDUCTION_PRODUCT: return line_product(l, x);
    case CQ_REDUCTION_MAX: return x[line_extreme(l, x, 1) * l.stride];
    case CQ_REDUCTION_MIN: return x[line_extreme(l, x, -1) * l.stride];
    case CQ_REDUCTION_NORM: return line_norm(l, x);
    case CQ_REDUCTION_LOGSUMEXP: return line_logsumexp(l, x);
    case CQ_REDUCTION_ARGMAX: return (double)(line_extreme(l, x, 1) + 1);
    case CQ_REDUCTION_ARGMIN: return (double)(line_extreme(l, x, -1) + 1);
    default: return NAN;
  }
}

// Reduces x {extent[0], extent[1], extent[2]} along its second axis by an operation (CQ_REDUCTION_...), into y
// {extent[0], extent[2]}.
void cq_tensor_reduce(int32_t op, const int64_t extent[3], const double *x, double *y) {
  line l = {extent[1], extent[2]};
  for (int64_t o = 0; o < extent[0]; o++)
    for (int64_t i = 0; i < extent[2]; i++)
      y[o * extent[2] + i] = reduce_line(op, l, x + o * extent[1] * extent[2] + i);
}

// Adjoint of line_product, from g, the gradient of the product y: adds g times the product of all other numbers to each
// element of grad_x, also where some numbers are zero.
static void product_adj(line l, const double *x, double y, double *grad_x, double g) {
  int64_t zeros = 0, at = 0;
  for (int64_t i = 0; i < l.count; i++)
    if (x[i * l.stride] == 0) zeros++, at = i;
  if (zeros == 0)
    for (int64_t i = 0; i < l.count; i++) grad_x[i * l.stride] += g * y / x[i * l.stride];
  if (zeros != 1) return;
  double others = 1;
  for (int64_t i = 0; i < l.count; i++)
    if (i != at) others *= x[i * l.stride];
  grad_x[at * l.stride] += g * others;
}

// Adjoint of reduce_line: from g, the gradient of its result y, adds to grad_x of the line.
static void reduce_line_adj(int32_t op, line l, const double *x, double y, double *grad_x, double g) {
  switch (op) {
    case CQ_REDUCTION_MEAN: g /= (double)l.count; // fall through
    case CQ_REDUCTION_SUM:
      for (int64_t i = 0; i < l.count; i++) grad_x[i * l.stride] += g;
      break;
    case CQ_REDUCTION_PRODUCT: product_adj(l, x, y, grad_x, g); break;
    case CQ_REDUCTION_MAX: grad_x[line_extreme(l, x, 1) * l.stride] += g; break;
    case CQ_REDUCTION_MIN: grad_x[line_extreme(l, x, -1) * l.stride] += g; break;
    case CQ_REDUCTION_NORM:
      if (y != 0)
        for (int64_t i = 0; i < l.count; i++) grad_x[i * l.stride] += g * (x[i * l.stride] / y);
      break;
    case CQ_REDUCTION_LOGSUMEXP:
      for (int64_t i = 0; i < l.count; i++) grad_x[i * l.stride] += g * exp(x[i * l.stride] - y);
      break;
    default: break;
  }
}

// Adjoint of cq_tensor_reduce: from grad_y {extent[0], extent[2]}, adds to grad_x, of the shape of x; of equal
// extremes the first takes all of it. argmax and argmin have no gradient.
void cq_tensor_reduce_adj(int32_t op, const int64_t extent[3], const double *x, const double *y, double *grad_x,
                          const double *grad_y) {
  line l = {extent[1], extent[2]};
  if (l.count == 0) return;
  for (int64_t o = 0; o < extent[0]; o++)
    for (int64_t i = 0; i < extent[2]; i++) {
      int64_t at = o * extent[1] * extent[2] + i, to = o * extent[2] + i;
      reduce_line_adj(op, l, x + at, y[to], grad_x + at, grad_y[to]);
    }
}
