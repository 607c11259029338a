// Matrix products by BLAS, on one thread: a result that depended on the number of threads would not be repeatable.
#include "tensor.h"
#include <cblas.h>
#include <string.h>

// in OpenBLAS, though not in its header: ends its threads; not in builds of it that have none
extern int blas_thread_shutdown_(void) __attribute__((weak));

// Before main: makes OpenBLAS use one thread. It starts a thread for every core when it is loaded, and each spins for a
// tenth of a second before it sleeps, during which the engine's threads would share their cores with it.
__attribute__((constructor)) static void one_thread(void) {
  openblas_set_num_threads(1);
  if (blas_thread_shutdown_) blas_thread_shutdown_();
}

// c = op(a) b, or c += op(a) b where p says so, for a vector b {k}. op: transposed if p->transpose_a.
static void matrix_vector(const cq_product *p, const double *a, const double *b, double *c) {
  int rows = (int)(p->transpose_a ? p->k : p->m), columns = (int)(p->transpose_a ? p->m : p->k);
  cblas_dgemv(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, rows, columns, 1, a, columns, b, 1,
              p->accumulate, c, 1);
}

// c = a op(b), or c += a op(b) where p says so, for a vector a {k}. op: transposed if p->transpose_b.
static void vector_matrix(const cq_product *p, const double *a, const double *b, double *c) {
  int rows = (int)(p->transpose_b ? p->n : p->k), columns = (int)(p->transpose_b ? p->k : p->n);
  cblas_dgemv(CblasRowMajor, p->transpose_b ? CblasNoTrans : CblasTrans, rows, columns, 1, b, columns, a, 1,
              p->accumulate, c, 1);
}

// c = op(a) op(b), or c += op(a) op(b), of two matrices by BLAS; op: transposed where p says so.
static void matrix_matrix(const cq_product *p, const double *a, const double *b, double *c) {
  cblas_dgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans,
              (int)p->m, (int)p->n, (int)p->k, 1, a, (int)(p->transpose_a ? p->m : p->k), b,
              (int)(p->transpose_b ? p->k : p->n), p->accumulate, c, (int)p->n);
}

// Matrix products of a batch: c {m, n} = op(a) op(b), or c += the product if p->accumulate; op transposes where
// p->transpose_a and transpose_b say so.
void cq_tensor_matmul(const cq_product *p, const double *a, const double *b, double *c) {
  if (p->m == 0 || p->n == 0) return;
  for (int64_t i = 0; i < p->batch; i++, a += p->stride_a, b += p->stride_b, c += p->stride_c) {
    if (p->k == 0) {
      if (!p->accumulate) memset(c, 0, (size_t)(p->m * p->n) * sizeof *c);
    } else if (p->n == 1) {
      matrix_vector(p, a, b, c);
    } else if (p->m == 1) {
      vector_matrix(p, a, b, c);
    } else {
      matrix_matrix(p, a, b, c);
    }
  }
}
