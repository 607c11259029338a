// factor: the sparse Cholesky factor of the second derivative on reference grids (factor.c).
#ifndef CQ_FACTOR_H
#define CQ_FACTOR_H

#include "../../world/grids.h"

// Nodes of the matrix that are eliminated together, and the rows below them.
typedef struct cq_front {
  int32_t first, own;        // positions in the elimination order: the first one, and how many
  int32_t below;             // rows below, at row[rows]
  // the front that takes up the Schur complement, -1: none; first of the fronts it takes up, next of its parent's, both
  // counted from 1, 0: none
  int32_t parent, child, sibling;
  int64_t rows;
} cq_front;

// Blocks of the matrix {dim, dim} are with the first of two nodes, by the way to the other: none and those after it in
// a square, or cube, of five nodes.
typedef struct cq_factor {
  int32_t dim, count;        // nodes; 0: there is no factor, for it would be too large
  int positive;              // was the last matrix positive definite?
  int32_t *position;         // {nodes of the grids} in the elimination order, -1: without mass
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
  uint64_t *active;          // {count} bits of the contacts that held when factor_mark was last called
  // {fronts}, each {(own + below) dim, (own + below) dim}: own columns of the factor, and what was left of the rest
  double **work;
} cq_factor;

// The number of {dim, dim} blocks that the symmetric matrix stores for a node: its own, and those with one half of its
// neighbours, the nodes of a square, or cube, of five a side that may share a particle with it.
static inline int32_t cq_factor_offsets(int32_t dim) { return dim == 3 ? 63 : 13; }

// The node at offset k from a node of a body, or -1 where that is outside of the body's grid. k numbers the square, or
// cube, of five nodes a side around the node, the last axis fastest: 12 in 2D, or 62 in 3D, is the node itself.
int64_t cq_factor_near(const cq_body *body, int32_t dim, int64_t node, int k);

// Orders the nodes with mass of all bodies for elimination, by nested dissection, and allocates the factor f anew; its
// count is 0 where it would be too large. active {node_count}: 1 for nodes with mass. CQ_OK or CQ_MEMORY.
cq_status cq_factor_order(cq_factor *f, const cq_body *bodies, int32_t body_count, int64_t node_count, int32_t dim,
                          const uint8_t *active);
// Computes the Cholesky factor of the matrix in f->block, front by front. Returns 1, or 0 where the matrix is not
// positive definite: there is no factor then.
int cq_factor_make(cq_factor *f, const cq_body *bodies);
// Solves with the factor, front by front: replaces the right side f->x {count, dim} by the solution.
void cq_factor_solve(cq_factor *f);
// Frees all that a factor holds, and leaves it empty.
void cq_factor_destroy(cq_factor *f);

#endif
