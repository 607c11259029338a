// linear: the linear systems of implicit steps. All workers of a scene run these functions together, see method.c.
#ifndef CQ_LINEAR_H
#define CQ_LINEAR_H

#include "implicit.h"
#include "../kernels.h"
#include <string.h>

// what one worker knows of the solve
typedef struct solve {
  cq_scene *s;
  cq_worker *worker;
  const cq_implicit_kernels *k;
  const cq_slice *in;
  int begin, end, parity;    // ranges, and as many blocks; the sums that are being written
  double sum[CQ_SUM_COUNT];  // of all blocks, of the last pass
  int32_t newton, linear;    // iterations made
  double unsettled;          // contacts that hold although they pull, where the method has ended
  int32_t saddle;            // directions along which H was negative, of a system that goes on
  int assembled, coarse;     // the matrix, that of the lattice, is that of the tensors and of contacts that hold
  int factored;              // FACTOR_NONE to FACTOR_OLD
} solve;

// The sums {CQ_SUM_COUNT} that a block of nodes adds up in this phase; those of the phase before lie beside, by parity.
static inline double *sums(solve *o, int block) { return o->s->implicit.sum[o->parity][block]; }

// Clears the sums of this worker's blocks before a phase that adds to them.
static inline void begin_sums(solve *o) {
  for (int b = o->begin; b < o->end; b++) memset(sums(o, b), 0, CQ_SUM_COUNT * sizeof(double));
}

// Ends a phase in which blocks added up sums: all workers wait, and read the total. The next phase writes other sums,
// so that no worker overtakes one that still reads these.
static inline void end_sums(solve *o) {
  cq_worker_wait(o->worker);
  memset(o->sum, 0, sizeof o->sum);
  for (int b = 0; b < o->s->ranges; b++)
    for (int k = 0; k < CQ_SUM_COUNT; k++) o->sum[k] += sums(o, b)[k];
  o->parity ^= 1;
}

// Does this worker compute cables that pull at the end of the step, as the first one does where there are any? 1 yes, 0
// no.
static inline int pulls(const solve *o) { return o->worker->rank == 0 && cq_cables_follow(o->s->model); }

// Waits until all workers of the scene have come here.
static inline void barrier(solve *o) { cq_worker_wait(o->worker); }

// Ends a phase: this worker's time since the last call counts as phase `which`.
static inline void start_phase(solve *o, int which) { cq_worker_phase(o->worker, which); }

// the factor on reference grids: there is none; that of the tensors as they are; of the step, but of tensors before
enum { FACTOR_NONE, FACTOR_NEW, FACTOR_OLD };

typedef enum cg_end { CG_CONVERGED, CG_CURVATURE, CG_EXHAUSTED } cg_end;

// What is to be done beside loops over particles, on reference grids and where dilatations are averaged (E101). Each of
// the three begins with the slabs of ranges clear, and the first two leave them so.

// Once a step, where dilatations are averaged: computes the volumes of nodes.
void cq_linear_open(solve *o);
// Before a loop over particles that reads the vector `from`: spreads it over reference grids; computes averaged rates.
void cq_linear_gather(solve *o, int32_t from);
// After a loop over particles, where dilatations are averaged: scatters the rest of the stress to the nodes.
void cq_linear_press(solve *o);
// Sets PRODUCT = H times the vector `from`; leaves from . PRODUCT in o->sum. of: with friction, on what contacts leave
// free, or the plain product.
void cq_linear_multiply(solve *o, int32_t from, cq_grid_product of);
// Solves H STEP = sign RESIDUAL on what contacts leave free, to a residual in the norm of M^-1 that is `tolerance`
// times the first, by at most `most` products. truncated: 1 stops where H is not positive along a direction, with what
// there is; 0 goes on, for the solver of a saddle may pass such directions. Returns how it ended.
cg_end cq_linear_solve(solve *o, double sign, double tolerance, int32_t most, int truncated);
// Sets STEP = -M^-1 RESIDUAL on what contacts leave free, M the blocks of nodes: steepest descent.
void cq_linear_descend(solve *o);

// May the coarse lattice (E104) precondition this scene's systems? 1 yes, 0 no: there is an assembled matrix, or cables
// couple nodes that are far from each other.
int cq_coarse_has(const solve *o);
// Builds and factors the matrix of the coarse lattice, for the tensors and contacts as they are.
void cq_coarse_build(solve *o);
// Once all blocks have given the lattice their residual: sets y to its solution, by each worker for itself. Returns the
// product of that residual and y.
double cq_coarse_solve(solve *o, double *y);
// Makes room for the coarse lattice of the live arrangement. CQ_OK or CQ_MEMORY.
cq_status cq_coarse_reserve(cq_scene *s);
// Frees the memory of the coarse lattice.
void cq_coarse_destroy(cq_scene *s);

// Makes room for the assembled matrix (E99) of the live arrangement, if it has one. CQ_OK or CQ_MEMORY.
cq_status cq_matrix_reserve(cq_scene *s);
// Frees the assembled matrix and the vectors of its sweeps.
void cq_matrix_destroy(cq_scene *s);

#endif
