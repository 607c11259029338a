// factor: the sparse Cholesky factor of the second derivative on reference grids (factor.c).
#ifndef CQ_FACTOR_H
#define CQ_FACTOR_H

#include "../../world/grids.h"

// Nodes of the matrix that are eliminated together, and the rows below them.
typedef struct cq_front {
  int32_t first, own;        // positions in the order
  int32_t below;             // rows below, at row[rows]
  int32_t parent, child, sibling;   // the front that takes up what is left; those before, from 1 on, 0: none
  int64_t rows;
} cq_front;

// Blocks of the matrix {dim, dim} are with the first of two nodes, by the way to the other: none and those after it in
// a square, or cube, of five nodes.
typedef struct cq_factor {
  int32_t dim, count;        // nodes; 0: there is no factor, for it would be too large
  int positive;              // was the matrix of the last one positive definite?
  int32_t *position;         // {nodes of the grids} in the order, -1: of no mass
  int64_t *node;             // {count}
  int32_t *body;             // {count}
  int64_t *held;             // {count} block and index of a constrained node, as block 2^32 + index + 1; 0: none
  cq_front *front;
  int32_t fronts;
  int32_t *row;
  double *block;             // {count, offsets, dim, dim} of the matrix
  double *x;                 // {count, dim} right side, then the solution
  double *below;             // {count, dim} at most, of one front
  int32_t *target;           // {count} where rows of a front are among those of another
  uint64_t *active;          // {count} bits of contacts that held when it was made
  // {fronts}, each {(own + below) dim, (own + below) dim}: own columns of the factor, and what was left of the rest
  double **work;
} cq_factor;

// Blocks that a node has in the symmetric matrix: its own, and those of one half of its neighbours, the 5^dim nodes
// that may share a particle with it.
static inline int32_t cq_factor_offsets(int32_t dim) { return dim == 3 ? 63 : 13; }

// The node that lies beside another one of a body by offset k of the square, or cube, of five nodes around it, of which
// the middle one is 12 or 62; -1: outside of the body's grid.
int64_t cq_factor_near(const cq_body *body, int32_t dim, int64_t node, int k);

// Orders the nodes with mass by nested dissection and allocates the factor; one that would be too large has a count of
// 0. active {node_count}: 1 for nodes with mass. CQ_OK or CQ_MEMORY.
cq_status cq_factor_order(cq_factor *f, const cq_body *bodies, int32_t body_count, int64_t node_count, int32_t dim,
                          const uint8_t *active);
// Computes the factor of the matrix in f->block. Returns 1, or 0 where the matrix is not positive definite, and there
// is no factor.
int cq_factor_make(cq_factor *f, const cq_body *bodies);
// Replaces f->x, the right side {count, dim}, by the solution.
void cq_factor_solve(cq_factor *f);
// Frees all that a factor holds, and leaves it empty.
void cq_factor_destroy(cq_factor *f);

#endif
