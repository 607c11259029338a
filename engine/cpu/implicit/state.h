// state: what a scene keeps for implicit steps: vectors over the nodes of the grid, contacts, sums.
#ifndef CQ_IMPLICIT_STATE_H
#define CQ_IMPLICIT_STATE_H

#include "factor.h"
#include <stdint.h>

enum { CQ_BLOCKS_MAX = 8 };    // of columns: as many as ranges

// Vectors over nodes, {nodes, 4}. Components beyond those of a velocity are zero, but for the mass in MOMENTUM.
typedef enum cq_grid_vector {
  CQ_GRID_VELOCITY,          // Newton's present iterate
  CQ_GRID_TRIAL,             // velocities that the line search tries
  CQ_GRID_MOMENTUM,          // momentum and mass that particles bring, with the impulse of given forces
  CQ_GRID_RESIDUAL, CQ_GRID_RESIDUAL_TRIAL,
  CQ_GRID_STEP,              // solution of the linear system
  CQ_GRID_REST,              // its residual
  CQ_GRID_DIRECTION, CQ_GRID_PRODUCT, CQ_GRID_CONDITIONED,   // of conjugate gradients: p, H p, M^-1 r
  CQ_GRID_DIAGONAL,          // of the blocks of H: xx yy xy, or xx yy zz; and in component 3 how the residual rounds
  CQ_GRID_CROSS,             // xy xz yz in 3D
  CQ_GRID_PULL,              // of cables at the end of the step, or their part of PRODUCT
  // of dilatations: dilatation.inl has four numbers a node there, dilatation_solve.inl one, and 1/M
  CQ_GRID_MEANS,
  CQ_GRID_KEPT,              // velocities at convergence with the fewest active contacts that pull
  CQ_GRID_INVERSE,           // columns of the inverse blocks, and dim - 1 vectors more
  CQ_GRID_VECTORS = CQ_GRID_INVERSE + 3,
} cq_grid_vector;

// Vectors of conjugate gradients on the assembled matrix, component by component (sweep.inl).
typedef enum cq_sweep_vector {
  CQ_SWEEP_STEP,                         // the solution so far, over nodes
  CQ_SWEEP_REST, CQ_SWEEP_CONDITIONED,   // K^-1 r of the residual r; D times it
  CQ_SWEEP_P, CQ_SWEEP_SOLVED,           // the direction p, transformed by K^T; D^-1 p
  CQ_SWEEP_T, CQ_SWEEP_Q,                // K^-T p, the direction over nodes; K^-1 (p - D t + R t)
  CQ_SWEEP_VECTORS,
} cq_sweep_vector;

// the diagonal block of a group of nodes: none, as no node has mass; that of H; a positive one in its place
typedef enum cq_group_kind { CQ_GROUP_NONE, CQ_GROUP_OWN, CQ_GROUP_REPLACED } cq_group_kind;

// Bits of the sides of its column where a group is coupled to groups that a sweep comes to before it, after it, or at
// the same time.
typedef struct cq_sides {
  uint32_t before, after, across;
  int32_t kind;
} cq_sides;

// A product with H: with friction, in the directions that contacts leave free; the same, with the sum of the vector
// times REST; or of all components, without friction.
typedef enum cq_grid_product { CQ_PRODUCT_FREE, CQ_PRODUCT_FREE_SLOPE, CQ_PRODUCT_ALL } cq_grid_product;

// What a pass sums up.
typedef enum cq_grid_sum {
  CQ_SUM_ENERGY, CQ_SUM_STIFFNESS,       // the potential; sum of volume times stiffness, by which it rounds
  CQ_SUM_INVERTED,                       // particles whose det F^ is not positive
  CQ_SUM_FAR,                            // mass times the square of its way in the step, less that of a cell
  CQ_SUM_RESIDUAL, CQ_SUM_INERTIA, CQ_SUM_INNER, CQ_SUM_MOVED, CQ_SUM_NOISE,   // squares of norms by M^-1
  CQ_SUM_SLOPE,                          // residual times way, or times the direction
  CQ_SUM_DOT, CQ_SUM_SQUARE,
  CQ_SUM_CHANGED,                        // nodes with changed contacts; infinite: no memory
  CQ_SUM_PULLING, CQ_SUM_UNSETTLED,      // contacts that hold although they pull: may let go; have done so too often
  CQ_SUM_COUNT,
} cq_grid_sum;

// Which of the active contacts that pull are released (E106): none, they are only counted; all; the first.
typedef enum cq_release { CQ_RELEASE_NONE, CQ_RELEASE_ALL, CQ_RELEASE_FIRST } cq_release;

// Contacts of the nodes of one block of columns.
typedef struct cq_constrained_nodes {
  void *node;                            // {count} in the order of the columns
  void *contact;                         // of all of them, one after another
  int32_t count, capacity, contacts, contact_capacity;
} cq_constrained_nodes;

// The coarse lattice of the preconditioner (coarse.inl): its nodes at most, and the cells of the grid between two of
// them at least. A particle's stencil must not reach over more than two cells of the lattice.
enum { CQ_COARSE_NODES = 32, CQ_COARSE_SPACING = 4 };

typedef struct cq_coarse {
  int32_t spacing, size[3];              // cells between nodes; nodes over the window
  int32_t *index;                        // {size} number of each, -1: its hat reaches no mass
  size_t capacity;
  int32_t count;
  double *matrix[CQ_BLOCKS_MAX];         // {count dim, count dim} of each range; the first becomes the factor
  double *right[CQ_BLOCKS_MAX];          // {count dim} of each block
} cq_coarse;

typedef struct cq_implicit {
  void *vector[CQ_GRID_VECTORS];
  int64_t capacity;                      // nodes of each
  void *tensor;                          // {chunks, packed symmetric dim^2 x dim^2, 16}: C -> V dt^2 (dP(C F)) F^T
  // of particles in a step: weights {chunks, 16, dim quads}, and first nodes of their stencils {chunks, 16}
  void *weight;
  int32_t *node;
  void *dilatation;                      // rates and traces of particles where they are averaged: dilatation_solve.inl
  cq_constrained_nodes constrained[CQ_BLOCKS_MAX];
  // the assembled matrix and the blocks of its groups, see matrix.inl; NULL: it would be too large
  void *matrix, *own, *sweep[CQ_SWEEP_VECTORS];
  int64_t matrix_capacity, own_capacity, sides_capacity;       // groups
  int64_t sweep_capacity, sweep_stride, sweep_guard;           // nodes
  cq_sides *sides;                       // {groups}
  // of columns in the window, and of its cells the first particle; the next one of the same cell; -1: none
  int32_t *column_at, *cell_first, *cell_next;
  int64_t places, places_capacity, cells_capacity;
  double sum[2][CQ_BLOCKS_MAX][CQ_SUM_COUNT];   // of two passes: one is read while the other is written
  cq_coarse coarse;
  cq_factor factor;                      // on reference grids
  void *block;                           // {offsets, dim, dim, nodes} reals of its matrix, as particles give them
  struct cq_implicit_kernels *loops;     // those of the world's grid, or with those of particles on reference grids
  double hold;                           // mass by which Newton's method holds a body where it is, as a share (E103)
  int32_t secant;                        // friction's slope is that of its chord from rest, never below the true one
  int32_t tangent;                       // tests over dual numbers: the linear system is that of the slopes
  double *report;                        // {substeps, CQ_SOLVER_WIDTH} of the running control step, NULL: nobody asks
} cq_implicit;

#endif
