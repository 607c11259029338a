// coarse: the dense linear system of the coarse lattice (coarse.inl): its matrix, the matrix's Cholesky factor, and the
// solution for a residual that is restricted to the lattice.
#include "linear.h"
#include <math.h>

enum { DOFS = CQ_COARSE_NODES * 3 };

// The number of nodes of the finest coarse lattice (CQ_COARSE_SPACING cells) over the box of grid nodes that an
// arrangement of particles covers.
static size_t lattice_nodes(const cq_arrangement *a, int32_t dim) {
  size_t count = 1;
  for (int i = 0; i < dim; i++) count *= (size_t)(a->size[i] / CQ_COARSE_SPACING + 2);
  return count;
}

// Allocates the coarse lattice for the scene's present order of particles. Does nothing over dual numbers, on reference
// grids, or where there is an assembled matrix, which is used instead. CQ_OK or CQ_MEMORY.
cq_status cq_coarse_reserve(cq_scene *s) {
  cq_coarse *m = &s->implicit.coarse;
  if (!s->implicit.loops->coarse_index || s->implicit.matrix) return CQ_OK;
  const size_t wanted = lattice_nodes(s->arrangement, s->model->dim);
  if (m->capacity < wanted) {
    cq_free(m->index);
    m->capacity = 0;
    m->index = cq_alloc(wanted + wanted / 8, sizeof *m->index, "implicit steps");
    if (!m->index) return CQ_MEMORY;
    m->capacity = wanted + wanted / 8;
  }
  const size_t dofs = (size_t)(CQ_COARSE_NODES * s->model->dim);
  for (int r = 0; r < s->ranges; r++) {
    if (!m->matrix[r]) m->matrix[r] = cq_alloc(dofs * dofs, sizeof(double), "implicit steps");
    if (!m->right[r]) m->right[r] = cq_alloc(dofs, sizeof(double), "implicit steps");
    if (!m->matrix[r] || !m->right[r]) return CQ_MEMORY;
  }
  return CQ_OK;
}

// Frees the memory of a scene's coarse lattice.
void cq_coarse_destroy(cq_scene *s) {
  cq_coarse *m = &s->implicit.coarse;
  cq_free(m->index);
  for (int r = 0; r < CQ_BLOCKS_MAX; r++) {
    cq_free(m->matrix[r]);
    cq_free(m->right[r]);
  }
}

// The dot product of a and b {n}, in four partial sums, so that additions need not wait for each other.
static double dot(const double *a, const double *b, int n) {
  double sum[4] = {0, 0, 0, 0};
  int k = 0;
  for (; k + 4 <= n; k += 4)
    for (int l = 0; l < 4; l++) sum[l] += a[k + l] * b[k + l];
  for (; k < n; k++) sum[0] += a[k] * b[k];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Replaces the lower triangle of a matrix a {n, n}, stored by rows, by its Cholesky factor; the diagonal gets the
// inverse of the factor's. A degree of freedom without a positive pivot is left out: its inverse is 0.
static void factorize(double *a, int n) {
  const double least = 1e-6;   // of the diagonal that a pivot was
  for (int i = 0; i < n; i++) {
    double *row = a + (size_t)i * (size_t)n;
    for (int j = 0; j < i; j++) {
      const double *other = a + (size_t)j * (size_t)n;
      row[j] = (row[j] - dot(row, other, j)) * other[j];
    }
    const double pivot = row[i] - dot(row, row, i);
    row[i] = pivot > least * row[i] ? 1 / sqrt(pivot) : 0;
  }
}

// May the coarse lattice (E104) precondition this scene's linear systems? 1 yes. 0 no: over dual numbers and on
// reference grids, where an assembled matrix serves instead, or where cables couple distant nodes implicitly.
int cq_coarse_has(const solve *o) {
  return o->k->coarse_index && !o->s->implicit.matrix && !cq_pulls_follow(o->s->model);
}

// Numbers the nodes of the coarse lattice, and computes and factorises its matrix for the present tensors of particles
// and contacts. By all workers.
void cq_coarse_build(solve *o) {
  cq_coarse *m = &o->s->implicit.coarse;
  start_phase(o, CQ_PHASE_SOLVE);
  if (o->worker->rank == 0) o->k->coarse_index(o->s);
  barrier(o);
  const int n = m->count * o->s->model->dim;
  for (int r = o->begin; r < o->end; r++) {
    memset(m->matrix[r], 0, (size_t)n * (size_t)n * sizeof(double));
    o->k->coarse_gather(o->s, o->in, r, m->matrix[r]);
    o->k->coarse_nodes(o->s, r, m->matrix[r]);
  }
  barrier(o);
  if (o->worker->rank == 0) {
    for (int r = 1; r < o->s->ranges; r++)
      for (int k = 0; k < n * n; k++) m->matrix[0][k] += m->matrix[r][k];
    factorize(m->matrix[0], n);
  }
  barrier(o);
  start_phase(o, CQ_PHASE_ASSEMBLY);
  o->coarse = 1;
}

// Solves the coarse system for y {count dim}; its right side is the sum of the restricted residuals of all blocks
// (coarse_restrict). Each worker computes y for itself. Returns the dot product of the right side and y.
double cq_coarse_solve(solve *o, double *y) {
  const cq_coarse *m = &o->s->implicit.coarse;
  const int n = m->count * o->s->model->dim;
  const double *factor = m->matrix[0];
  double right[DOFS] = {0}, product = 0;
  for (int r = 0; r < o->s->ranges; r++)
    for (int i = 0; i < n; i++) right[i] += m->right[r][i];
  for (int i = 0; i < n; i++) {
    const double *row = factor + (size_t)i * (size_t)n;
    y[i] = (right[i] - dot(row, y, i)) * row[i];
  }
  for (int i = n - 1; i >= 0; i--) {
    const double *row = factor + (size_t)i * (size_t)n;
    y[i] *= row[i];
    for (int j = 0; j < i; j++) y[j] -= row[j] * y[i];
  }
  for (int i = 0; i < n; i++) product += right[i] * y[i];
  return product;
}
