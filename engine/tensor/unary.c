// unary: elementwise functions of one tensor. An adjoint may use the result where that is cheaper or more exact.
#include "tensor.h"
#include <math.h>

#define CQ_ACTIVATION static inline
#include "../math/activation.inl"

#define EACH(expression) \
  for (int64_t i = 0; i < count; i++) { const double v = x[i]; y[i] = (expression); } break

// 1, 0 or -1 by the sign of x; NaN stays NaN.
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }   // keeps nan

// Sets y {count} to an elementwise function (CQ_UNARY_...) of x.
void cq_tensor_unary(int32_t op, int64_t count, const double *x, double *y) {
  switch (op) {
    case CQ_UNARY_NEGATE: EACH(-v);
    case CQ_UNARY_ABS: EACH(fabs(v));
    case CQ_UNARY_SQUARE: EACH(v * v);
    case CQ_UNARY_SQRT: EACH(sqrt(v));
    case CQ_UNARY_EXP: EACH(exp(v));
    case CQ_UNARY_LOG: EACH(log(v));
    case CQ_UNARY_SIN: EACH(sin(v));
    case CQ_UNARY_COS: EACH(cos(v));
    case CQ_UNARY_TAN: EACH(tan(v));
    case CQ_UNARY_ASIN: EACH(asin(v));
    case CQ_UNARY_ACOS: EACH(acos(v));
    case CQ_UNARY_ATAN: EACH(atan(v));
    case CQ_UNARY_TANH: EACH(activation_value(CQ_UNARY_TANH, v));
    case CQ_UNARY_SIGMOID: EACH(activation_value(CQ_UNARY_SIGMOID, v));
    case CQ_UNARY_RELU: EACH(v < 0 ? 0 : v);   // keeps nan; without the branches of the other activations
    case CQ_UNARY_SOFTPLUS: EACH(activation_value(CQ_UNARY_SOFTPLUS, v));
    case CQ_UNARY_ELU: EACH(activation_value(CQ_UNARY_ELU, v));
    case CQ_UNARY_SIGN: EACH(sign(v));
    case CQ_UNARY_FLOOR: EACH(floor(v));
    case CQ_UNARY_ROUND: EACH(round(v));
    default: break;
  }
}

// r is the result, g its gradient. An element that the objective does not depend on gets nothing, also where the
// derivative is infinite or nan: so that the side of a selection that was not taken does no harm.
#define EACH_ADJ(expression) \
  for (int64_t i = 0; i < count; i++) { \
    const double v = x[i], r = y[i], g = grad_y[i]; \
    (void)v, (void)r; \
    if (g != 0) grad_x[i] += (expression); \
  } \
  break

// Adjoint of cq_tensor_unary: from grad_y, x and the result y, adds to grad_x {count}. An element whose grad_y is 0
// gets nothing, also where the derivative is infinite or NaN.
void cq_tensor_unary_adj(int32_t op, int64_t count, const double *x, const double *y, double *grad_x,
                         const double *grad_y) {
  switch (op) {
    case CQ_UNARY_NEGATE: EACH_ADJ(-g);
    case CQ_UNARY_ABS: EACH_ADJ(g * sign(v));
    case CQ_UNARY_SQUARE: EACH_ADJ(2 * v * g);
    case CQ_UNARY_SQRT: EACH_ADJ(g / (2 * r));
    case CQ_UNARY_EXP: EACH_ADJ(g * r);
    case CQ_UNARY_LOG: EACH_ADJ(g / v);
    case CQ_UNARY_SIN: EACH_ADJ(g * cos(v));
    case CQ_UNARY_COS: EACH_ADJ(-g * sin(v));
    case CQ_UNARY_TAN: EACH_ADJ(g * (1 + r * r));
    case CQ_UNARY_ASIN: EACH_ADJ(g / sqrt((1 - v) * (1 + v)));
    case CQ_UNARY_ACOS: EACH_ADJ(-g / sqrt((1 - v) * (1 + v)));
    case CQ_UNARY_ATAN: EACH_ADJ(g / (1 + v * v));
    case CQ_UNARY_TANH: EACH_ADJ(g * activation_slope(CQ_UNARY_TANH, r));
    case CQ_UNARY_SIGMOID: EACH_ADJ(g * activation_slope(CQ_UNARY_SIGMOID, r));
    case CQ_UNARY_RELU:      // a slope that is never infinite: no branch for each element
      for (int64_t i = 0; i < count; i++) grad_x[i] += grad_y[i] * (y[i] > 0);
      break;
    case CQ_UNARY_SOFTPLUS: EACH_ADJ(g * activation_slope(CQ_UNARY_SOFTPLUS, r));
    case CQ_UNARY_ELU: EACH_ADJ(g * activation_slope(CQ_UNARY_ELU, r));
    default: break;
  }
}
