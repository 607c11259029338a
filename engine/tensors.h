// tensors: the part of cq.h that Lua's tensors are computed by: loops over doubles, row-major and contiguous. cq.h
// includes it. Shapes are checked by the caller. `..._adj` adds to gradients, and a NULL gradient is not wanted. Sums
// have one fixed order; one thread calls at a time.
#ifndef CQ_TENSORS_H
#define CQ_TENSORS_H

enum { CQ_TENSOR_RANK_MAX = 6 };

typedef enum cq_unary {
  CQ_UNARY_NEGATE = 0, CQ_UNARY_ABS, CQ_UNARY_SQUARE, CQ_UNARY_SQRT, CQ_UNARY_EXP, CQ_UNARY_LOG,
  CQ_UNARY_SIN, CQ_UNARY_COS, CQ_UNARY_TAN, CQ_UNARY_ASIN, CQ_UNARY_ACOS, CQ_UNARY_ATAN,
  CQ_UNARY_TANH, CQ_UNARY_SIGMOID, CQ_UNARY_RELU, CQ_UNARY_SOFTPLUS, CQ_UNARY_ELU,
  CQ_UNARY_SIGN, CQ_UNARY_FLOOR, CQ_UNARY_ROUND,        // no gradient from here on
} cq_unary;

typedef enum cq_binary {
  CQ_BINARY_ADD = 0, CQ_BINARY_SUBTRACT, CQ_BINARY_MULTIPLY, CQ_BINARY_DIVIDE, CQ_BINARY_POWER,
  CQ_BINARY_MINIMUM, CQ_BINARY_MAXIMUM, CQ_BINARY_ATAN2,
  CQ_BINARY_LESS, CQ_BINARY_LESS_EQUAL, CQ_BINARY_EQUAL,   // 1 or 0; no gradient from here on
} cq_binary;

typedef enum cq_reduction {             // {outer, axis, inner} to {outer, inner}
  CQ_REDUCTION_SUM = 0, CQ_REDUCTION_MEAN, CQ_REDUCTION_PRODUCT, CQ_REDUCTION_MAX, CQ_REDUCTION_MIN,
  CQ_REDUCTION_NORM, CQ_REDUCTION_LOGSUMEXP,
  CQ_REDUCTION_ARGMAX, CQ_REDUCTION_ARGMIN,             // from 1; no gradient from here on
} cq_reduction;

typedef enum cq_scan {                  // {outer, axis, inner} to the same
  CQ_SCAN_CUMSUM = 0, CQ_SCAN_SOFTMAX, CQ_SCAN_LOG_SOFTMAX,
} cq_scan;

typedef struct cq_layout {              // one shape, and strides of two arrays in elements; stride 0 broadcasts
  int32_t rank;
  int64_t shape[6], stride_a[6], stride_b[6];
} cq_layout;

typedef struct cq_product {             // c {m, n} = or += op(a) {m, k} op(b) {k, n}, for each of a batch
  int64_t batch, m, n, k;
  int32_t transpose_a, transpose_b;     // a is stored {k, m}, b is stored {n, k}
  int32_t accumulate;                   // 1: +=
  int64_t stride_a, stride_b, stride_c; // from one matrix of the batch to the next, 0: the same
} cq_product;

typedef struct cq_dense {               // y {rows, out} = f(x {rows, in} w {in, out} + b {out})
  int64_t rows, in, out;
  int32_t activation;                   // f: CQ_UNARY_TANH, SIGMOID, RELU, SOFTPLUS or ELU; -1: none
} cq_dense;

typedef struct cq_dense_grad {          // of x, w and b
  double *x, *w, *b;
} cq_dense_grad;

// cross-correlation: x {batch, in, size}, w {out, in, kernel}, y {batch, out, ...}; of fewer than three dimensions the
// first have size, kernel and stride 1
typedef struct cq_convolution {
  int64_t batch, in, out;
  int64_t size[3], kernel[3], stride[3], padding[3], dilation[3];
  int32_t accumulate;                   // adds to y
} cq_convolution;

// points onto pixels {batch, channels, z, y, x}
typedef struct cq_splat {
  int64_t batch, count, channels;       // points of each of a batch; channels of the amounts, with velocities 1
  int64_t size[3];                      // pixels along x, y, z (1 in 2D); row 1 is the largest y
  int32_t dim;
  double spacing;                       // of pixels [length]
  double scale;                         // that all pixels are multiplied by
} cq_splat;

typedef struct cq_splat_points {        // of points, or gradients of them
  double *x;                            // places {batch, count, dim} [length]
  double *origin;                       // lower corner of the window {batch, dim} [length]; NULL: 0
  double *amount;                       // {batch, count, channels}
  double *velocity;                     // {batch, count, dim}: pixels get amount, amount * velocity; NULL: the amounts
} cq_splat_points;

// a matrix {rows, columns} in rows: the entries of row r are start[r] to start[r + 1] - 1
typedef struct cq_sparse {
  int64_t rows, columns;
  const int64_t *start, *column;        // {rows + 1}; and of each entry, from 0
} cq_sparse;

// of places {places, dim} among points {count, dim}: those nearer than the radius
typedef struct cq_neighbours {
  int64_t count, places;
  int32_t dim;
  double radius;
} cq_neighbours;

typedef struct cq_neighbour_list {
  int64_t room;                         // entries that column and distance have
  int64_t *start, *column;              // {places + 1}; column NULL: only counted
  double *distance;
} cq_neighbour_list;

typedef struct cq_random {              // Philox 4x32-10: a block of the stream is a function of seed and position
  uint64_t seed, position;
} cq_random;

// freed blocks are kept by size and given again; NULL: cq_error()
double *cq_tensor_alloc(int64_t count, int32_t zeroed);
void cq_tensor_free(double *data);
void cq_tensor_fill(int64_t count, double value, double *x);
// Gives every NaN the bits that arithmetic gives it. LuaJIT tags its values by the bits of a NaN: to read
// another from memory would forge a value. For what comes from files, from other devices and from a user's own
// memory, before Lua reads it.
void cq_tensor_canonical(int64_t count, double *x);
void cq_tensor_unary(int32_t op, int64_t count, const double *x, double *y);
// Adds to grad_x, from grad_y, x and the result y; nothing where grad_y is 0.
void cq_tensor_unary_adj(int32_t op, int64_t count, const double *x, const double *y, double *grad_x,
                         const double *grad_y);
void cq_tensor_binary(int32_t op, const cq_layout *layout, const double *a, const double *b, double *y);
// Adds to grad_a and grad_b, by the strides of the layout, from grad_y of its shape. ab: both operands.
void cq_tensor_binary_adj(int32_t op, const cq_layout *layout, const double *const ab[2], double *grad_a,
                          double *grad_b, const double *grad_y);
// y = condition ? a : b, with zeros for a NULL.
void cq_tensor_select(int64_t count, const double *condition, const double *a, const double *b, double *y);
void cq_tensor_reduce(int32_t op, const int64_t extent[3], const double *x, double *y);
// Adds to grad_x; of equal extremes the first takes all of it. argmax and argmin have no gradient.
void cq_tensor_reduce_adj(int32_t op, const int64_t extent[3], const double *x, const double *y, double *grad_x,
                          const double *grad_y);
void cq_tensor_scan(int32_t op, const int64_t extent[3], const double *x, double *y);
void cq_tensor_scan_adj(int32_t op, const int64_t extent[3], const double *y, double *grad_x, const double *grad_y);
// b = a, or b += a, by the strides of the layout.
void cq_tensor_copy(const cq_layout *layout, int32_t accumulate, const double *a, double *b);
// y {outer, count, inner} = x {outer, axis, inner} at index (from 0) along the axis.
void cq_tensor_gather(const int64_t extent[3], int64_t count, const int64_t *index, const double *x, double *y);
// grad_x {outer, axis, inner} at index += grad_y {outer, count, inner}.
void cq_tensor_gather_adj(const int64_t extent[3], int64_t count, const int64_t *index, double *grad_x,
                          const double *grad_y);
void cq_tensor_matmul(const cq_product *product, const double *a, const double *b, double *c);
void cq_tensor_dense(const cq_dense *dense, const double *x, const double *w, const double *b, double *y);
// Adds to grad, of which NULLs are not wanted; grad_y is overwritten.
void cq_tensor_dense_adj(const cq_dense *dense, const double *x, const double *w, const double *y,
                         const cq_dense_grad *grad, double *grad_y);
cq_status cq_tensor_convolve(const cq_convolution *conv, const double *x, const double *w, double *y);
// Adds to grad_x and grad_w, either of which may be NULL. CQ_OK or CQ_MEMORY.
cq_status cq_tensor_convolve_adj(const cq_convolution *conv, const double *x, const double *w, double *grad_x,
                                 double *grad_w, const double *grad_y);
// y {batch, channels, count} = f(y + bias {channels}) in place; bias may be NULL, the activation f -1 for none.
typedef struct cq_channels { int64_t batch, channels, count; int32_t activation; } cq_channels;
void cq_tensor_activate(const cq_channels *channels, const double *bias, double *y);
// From the result y: overwrites grad_y with the gradient before the activation, and adds to grad_bias.
void cq_tensor_activate_adj(const cq_channels *channels, const double *y, double *grad_bias, double *grad_y);
// Adds the amounts of points to the pixels around them.
cq_status cq_tensor_splat(const cq_splat *splat, const cq_splat_points *points, double *out);
// From grad_out, adds to the gradients in grad, of which NULLs are not wanted.
cq_status cq_tensor_splat_adj(const cq_splat *splat, const cq_splat_points *points, const cq_splat_points *grad,
                              const double *grad_out);
// y {batch, rows} = A x {batch, columns} for each of a batch, with the values of the entries of A.
void cq_tensor_sparse(const cq_sparse *a, int64_t batch, const double *value, const double *x, double *y);
// Adds to grad_value and grad_x, of which NULLs are not wanted. value_x: value and x.
void cq_tensor_sparse_adj(const cq_sparse *a, int64_t batch, const double *const value_x[2], double *grad_value,
                          double *grad_x, const double *grad_y);
// The points {count, dim} nearer than the radius to each of places {places, dim}, as a sparse matrix with a row for
// each place. Called once with column NULL, which sets start, start[places] entries in all, and again to fill these.
cq_status cq_tensor_neighbours(const cq_neighbours *neighbours, const double *points, const double *places,
                               cq_neighbour_list *out);
void cq_random_uniform(cq_random *random, int64_t count, double min, double max, double *x);    // in [min, max)
void cq_random_normal(cq_random *random, int64_t count, double mean, double deviation, double *x);
void cq_random_integers(cq_random *random, int64_t count, int64_t min, int64_t max, double *x);  // both ends included
void cq_random_permutation(cq_random *random, int64_t count, double *x);                         // of 1..count

#endif
