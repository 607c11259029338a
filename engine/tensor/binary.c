// Elementwise functions of two tensors with broadcasting. The last dimension is the inner loop; the others are counted.
#include "tensor.h"
#include <math.h>
#include <string.h>

// Iteration over all but the last dimension: the index along each, and its offsets into both operands.
typedef struct walk {
  int64_t index[CQ_TENSOR_RANK_MAX], a, b;
} walk;

// Moves to the next row (all indices but the last) of a layout, and returns 1; 0 when all are done.
static int walk_next(walk *w, const cq_layout *layout) {
  for (int32_t d = layout->rank - 2; d >= 0; d--) {
    w->a += layout->stride_a[d];
    w->b += layout->stride_b[d];
    if (++w->index[d] < layout->shape[d]) return 1;
    w->a -= layout->stride_a[d] * layout->shape[d];
    w->b -= layout->stride_b[d] * layout->shape[d];
    w->index[d] = 0;
  }
  return 0;
}

// The number of elements of a layout's result.
static int64_t element_count(const cq_layout *layout) {
  int64_t count = 1;
  for (int32_t d = 0; d < layout->rank; d++) count *= layout->shape[d];
  return count;
}

// One row: count elements of strides sa and sb.
typedef struct row {
  int64_t count, sa, sb;
} row;

// The innermost loop of a layout: its length, and the strides of both operands.
static row row_of(const cq_layout *layout) {
  if (layout->rank == 0) return (row){1, 1, 1};
  int32_t last = layout->rank - 1;
  return (row){layout->shape[last], layout->stride_a[last], layout->stride_b[last]};
}

// x^e, where a square avoids the library's pow.
static double power(double x, double e) { return e == 2 ? x * x : pow(x, e); }

// The smaller operand; the first one at a tie, NaN if either is.
static double least(double x, double z) { return x <= z || isnan(x) ? x : z; }
// The larger operand; the first one at a tie, NaN if either is.
static double greatest(double x, double z) { return x >= z || isnan(x) ? x : z; }

// the common strides apart, so that the compiler can use vectors
#define EACH(expression) \
  if (r.sa == 1 && r.sb == 1) { \
    for (int64_t i = 0; i < r.count; i++) { const double u = a[i], v = b[i]; y[i] = (expression); } \
  } else if (r.sa == 1 && r.sb == 0) { \
    const double v = b[0]; \
    for (int64_t i = 0; i < r.count; i++) { const double u = a[i]; y[i] = (expression); } \
  } else { \
    for (int64_t i = 0; i < r.count; i++) { const double u = a[i * r.sa], v = b[i * r.sb]; y[i] = (expression); } \
  } \
  break

// Sets one row y {r.count} to a binary operation (CQ_BINARY_...) of two tensors, whose rows begin at a and b.
static void binary_row(int32_t op, row r, const double *a, const double *b, double *restrict y) {
  switch (op) {
    case CQ_BINARY_ADD: EACH(u + v);
    case CQ_BINARY_SUBTRACT: EACH(u - v);
    case CQ_BINARY_MULTIPLY: EACH(u * v);
    case CQ_BINARY_DIVIDE: EACH(u / v);
    case CQ_BINARY_POWER: EACH(power(u, v));
    case CQ_BINARY_MINIMUM: EACH(least(u, v));
    case CQ_BINARY_MAXIMUM: EACH(greatest(u, v));
    case CQ_BINARY_ATAN2: EACH(atan2(u, v));
    case CQ_BINARY_LESS: EACH(u < v);
    case CQ_BINARY_LESS_EQUAL: EACH(u <= v);
    case CQ_BINARY_EQUAL: EACH(u == v);
    default: break;
  }
}

// Sets y, of the layout's shape, to a binary operation (CQ_BINARY_...) of a and b, read by the layout's strides: 0
// where an operand is broadcast.
void cq_tensor_binary(int32_t op, const cq_layout *layout, const double *a, const double *b, double *y) {
  if (element_count(layout) == 0) return;
  row r = row_of(layout);
  walk w = {{0}, 0, 0};
  do {
    binary_row(op, r, a + w.a, b + w.b, y);
    y += r.count;
  } while (walk_next(&w, layout));
}

// The derivative of x^e by x; 0 of x^0, also at x = 0.
static double power_dx(double x, double e) { return e == 0 ? 0 : e == 2 ? 2 * x : e * pow(x, e - 1); }

// The derivative of x^e by e; its limit 0 at x = 0 for e > 0.
static double power_de(double x, double e) { return x == 0 && e > 0 ? 0 : pow(x, e) * log(x); }

// du and dv are the partial derivatives times g, taken as 0 where g is 0 (as in unary.c). A broadcast operand collects
// its row in a sum of its own first: fewer roundings than adding each element to the gradient.
#define EACH_ADJ(du, dv) \
  if (ga && r.sa == 0) { \
    double sum = 0; \
    for (int64_t i = 0; i < r.count; i++) { READ; (void)u, (void)v; if (g != 0) sum += (du); } \
    ga[0] += sum; \
  } else if (ga) { \
    for (int64_t i = 0; i < r.count; i++) { READ; (void)u, (void)v; if (g != 0) ga[i * r.sa] += (du); } \
  } \
  if (gb && r.sb == 0) { \
    double sum = 0; \
    for (int64_t i = 0; i < r.count; i++) { READ; (void)u, (void)v; if (g != 0) sum += (dv); } \
    gb[0] += sum; \
  } else if (gb) { \
    for (int64_t i = 0; i < r.count; i++) { READ; (void)u, (void)v; if (g != 0) gb[i * r.sb] += (dv); } \
  } \
  break
#define READ const double u = a[i * r.sa], v = b[i * r.sb], g = gy[i]

// Adjoint of binary_row, from gy {r.count}, whose zeros add nothing: adds to grad[0] and grad[1], the gradients of the
// operands ab; NULL: not wanted. At a tie of minimum or maximum the first operand takes all.
static void binary_row_adj(int32_t op, row r, const double *const ab[2], double *const grad[2], const double *gy) {
  const double *a = ab[0], *b = ab[1];
  double *ga = grad[0], *gb = grad[1];
  switch (op) {
    case CQ_BINARY_ADD: EACH_ADJ(g, g);
    case CQ_BINARY_SUBTRACT: EACH_ADJ(g, -g);
    case CQ_BINARY_MULTIPLY: EACH_ADJ(g * v, g * u);
    case CQ_BINARY_DIVIDE: EACH_ADJ(g / v, -g * (u / v) / v);
    case CQ_BINARY_POWER: EACH_ADJ(g * power_dx(u, v), g * power_de(u, v));
    case CQ_BINARY_MINIMUM: EACH_ADJ(u <= v ? g : 0, u <= v ? 0 : g);
    case CQ_BINARY_MAXIMUM: EACH_ADJ(u >= v ? g : 0, u >= v ? 0 : g);
    case CQ_BINARY_ATAN2: EACH_ADJ(g * v / (u * u + v * v), -g * u / (u * u + v * v));
    default: break;
  }
}

// Adjoint of cq_tensor_binary, from grad_y of the layout's shape: adds to grad_a and grad_b by the layout's strides;
// NULL: not wanted. ab: both operands.
void cq_tensor_binary_adj(int32_t op, const cq_layout *layout, const double *const ab[2], double *grad_a,
                          double *grad_b, const double *grad_y) {
  if (element_count(layout) == 0) return;
  row r = row_of(layout);
  walk w = {{0}, 0, 0};
  do {
    const double *at[2] = {ab[0] + w.a, ab[1] + w.b};
    double *grad[2] = {grad_a ? grad_a + w.a : NULL, grad_b ? grad_b + w.b : NULL};
    binary_row_adj(op, r, at, grad, grad_y);
    grad_y += r.count;
  } while (walk_next(&w, layout));
}

// Sets y {count} to a where condition is not 0, else to b; an a or b that is NULL stands for zeros.
void cq_tensor_select(int64_t count, const double *condition, const double *a, const double *b, double *y) {
  for (int64_t i = 0; i < count; i++) {
    const double *from = condition[i] != 0 ? a : b;
    y[i] = from ? from[i] : 0;
  }
}

// Copies a to b, read and written by the layout's strides; accumulate 1: adds a to b.
void cq_tensor_copy(const cq_layout *layout, int32_t accumulate, const double *a, double *b) {
  if (element_count(layout) == 0) return;
  row r = row_of(layout);
  walk w = {{0}, 0, 0};
  do {
    const double *from = a + w.a;
    double *to = b + w.b;
    if (accumulate)
      for (int64_t i = 0; i < r.count; i++) to[i * r.sb] += from[i * r.sa];
    else if (r.sa == 1 && r.sb == 1)
      memcpy(to, from, (size_t)r.count * sizeof *to);
    else
      for (int64_t i = 0; i < r.count; i++) to[i * r.sb] = from[i * r.sa];
  } while (walk_next(&w, layout));
}
