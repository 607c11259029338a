// linear: the linear systems of implicit steps. All workers of a scene run these functions together, see method.c.
#ifndef CQ_LINEAR_H
#define CQ_LINEAR_H

#include "implicit.h"
#include "../kernels.h"
#include <string.h>

// one worker's state of the solve of a step, or of its adjoint
typedef struct solve {
  cq_scene *s;
  cq_worker *worker;
  const cq_implicit_kernels *k;
  const cq_slice *in;
  int begin, end, parity;    // its ranges, and blocks of the same numbers; which of two sets of sums is written
  double sum[CQ_SUM_COUNT];  // of all blocks, of the last pass
  int32_t newton, linear;    // iterations made
  double unsettled;          // contacts that hold although they pull, where the method has ended
  int32_t saddle;            // directions along which H was negative, of a system that goes on
  int assembled, coarse;     // 1: the assembled matrix, the lattice's, is of the present tensors and active contacts
  int factored;              // FACTOR_NONE to FACTOR_OLD
} solve;

// The sums {CQ_SUM_COUNT} that a block of nodes adds up in the running phase. Those of the phase before are in the
// other of two sets (parity).
static inline double *sums(solve *o, int block) { return o->s->implicit.sum[o->parity][block]; }

// Clears the sums of this worker's blocks, before a phase in which blocks add to them.
static inline void begin_sums(solve *o) {
  for (int b = o->begin; b < o->end; b++) memset(sums(o, b), 0, CQ_SUM_COUNT * sizeof(double));
}

// Ends a phase in which blocks have added up sums: waits for all workers, and sets o->sum to the totals. The next phase
// adds to the other set of sums, so that no worker overwrites one that another still reads.
static inline void end_sums(solve *o) {
  cq_worker_wait(o->worker);
  memset(o->sum, 0, sizeof o->sum);
  for (int b = 0; b < o->s->ranges; b++)
    for (int k = 0; k < CQ_SUM_COUNT; k++) o->sum[k] += sums(o, b)[k];
  o->parity ^= 1;
}

// Does this worker compute the cables and chambers whose forces are those at the end of the step? 1 yes: the first
// worker, in worlds that have such; 0 no.
static inline int pulls(const solve *o) { return o->worker->rank == 0 && cq_cables_follow(o->s->model); }

// Waits until all workers of the scene have come here.
static inline void barrier(solve *o) { cq_worker_wait(o->worker); }

// Ends a phase for the timers: the time of this worker since the last call counts as phase `which` (CQ_PHASE_...).
static inline void start_phase(solve *o, int which) { cq_worker_phase(o->worker, which); }

// the factor on reference grids: there is none; it is of the present tensors; of tensors of an earlier iteration
enum { FACTOR_NONE, FACTOR_NEW, FACTOR_OLD };

typedef enum cg_end { CG_CONVERGED, CG_CURVATURE, CG_EXHAUSTED } cg_end;

// Passes before and after loops over particles, on reference grids and where dilatations are averaged (E101). Each of
// the three begins with cleared slabs, and the first two leave them cleared.

// Once a step, where dilatations are averaged: computes the volumes of nodes, which weigh the averages. Else nothing.
void cq_linear_open(solve *o);
// Prepares a loop over particles that reads the vector `from`: on reference grids sets r->moved, the state that it
// leads to, which the loop reads; where dilatations are averaged, computes the means of its rates.
void cq_linear_gather(solve *o, int32_t from);
// After a loop over particles that gives the nodes a stress or a product, where dilatations are averaged: averages the
// trace of the stress, and scatters the stress to the nodes. Else nothing.
void cq_linear_press(solve *o);
// Sets PRODUCT = H times the vector `from`, H the Hessian, and o->sum[CQ_SUM_DOT] = from . PRODUCT. of: in the
// directions that contacts leave free, with friction (CQ_PRODUCT_FREE; CQ_PRODUCT_FREE_SLOPE also sets
// o->sum[CQ_SUM_SLOPE] = from . REST), or all components without friction (CQ_PRODUCT_ALL).
void cq_linear_multiply(solve *o, int32_t from, cq_grid_product of);
// Solves H STEP = sign RESIDUAL (with friction if sign is -1) in the directions that contacts leave free, until the
// residual's norm by M^-1, the blocks of nodes, is `tolerance` times the first, with at most `most` products.
// truncated: 1 stops at a direction along which H is not positive, with the STEP so far, or that direction if it is the
// first; 0 goes on, as at a saddle. Returns how it ended; CG_CONVERGED, with such a STEP, if RESIDUAL is not finite.
cg_end cq_linear_solve(solve *o, double sign, double tolerance, int32_t most, int truncated);
// Sets STEP = -M^-1 RESIDUAL, with friction, in the directions that contacts leave free, M the nodes' diagonal blocks
// of the Hessian: steepest descent, where Newton's step leads nowhere.
void cq_linear_descend(solve *o);

// May the coarse lattice (E104) precondition this scene's linear systems? 1 yes. 0 no: over dual numbers and on
// reference grids, where an assembled matrix serves instead, or where cables couple distant nodes implicitly.
int cq_coarse_has(const solve *o);
// Numbers the nodes of the coarse lattice, and computes and factorises its matrix for the present tensors of particles
// and contacts. By all workers.
void cq_coarse_build(solve *o);
// Solves the coarse system for y {count dim}; its right side is the sum of the restricted residuals of all blocks
// (coarse_restrict). Each worker computes y for itself. Returns the dot product of the right side and y.
double cq_coarse_solve(solve *o, double *y);
// Allocates the coarse lattice for the scene's present order of particles. Does nothing over dual numbers, on reference
// grids, or where there is an assembled matrix, which is used instead. CQ_OK or CQ_MEMORY.
cq_status cq_coarse_reserve(cq_scene *s);
// Frees the memory of a scene's coarse lattice.
void cq_coarse_destroy(cq_scene *s);

// Allocates the assembled matrix of the Hessian H (E99) for the scene's present order of particles, or frees it where
// there is none: in 3D, above a size, and where dilatations are averaged, whose means couple distant nodes. CQ_OK or
// CQ_MEMORY.
cq_status cq_matrix_reserve(cq_scene *s);
// Frees the assembled matrix of a scene and the vectors of its sweeps.
void cq_matrix_destroy(cq_scene *s);

#endif
