// implicit: backward Euler on the CPU. The unknowns of a step are the velocities of the grid's nodes: a minimiser of
// the incremental potential (E80), found by Newton's method with conjugate gradients. method.c is the method, without
// types; the loops over particles and nodes are the .inl files of this folder, compiled with the other kernels
// (../kernels.c). README.md draws the way of a step.
#ifndef CQ_IMPLICIT_H
#define CQ_IMPLICIT_H

#include "../scene.h"

// what nodes make of the numbers that particles gave them: the inverse of their volume; a mean; the mean of it again
typedef enum cq_dilatation_pass { CQ_DILATATION_VOLUME, CQ_DILATATION_MEAN, CQ_DILATATION_AGAIN } cq_dilatation_pass;

typedef struct cq_implicit_kernels {
  int32_t tangent;                       // numbers carry slopes, which are solved for beside the values
  // momentum and mass of particles, with given forces; then, of nodes, where the method begins and what holds them
  void (*momentum)(cq_scene *s, const cq_slice *in, int32_t range, int32_t at);
  void (*start)(cq_scene *s, int32_t block, double *sum);
  // Where dilatations are averaged (dilatation_solve.inl): numbers of a particle; weights and volumes of a range; rates
  // of particles by a vector, and their mean twice; what the rest of the stress gives the nodes; and nodes, by a pass
  // of cq_dilatation_pass.
  int32_t dilatation_solve_fields;
  void (*dilatation_solve_open)(cq_scene *s, const cq_slice *in, int32_t range);
  void (*dilatation_solve_first)(cq_scene *s, const cq_slice *in, int32_t range, int32_t from);
  void (*dilatation_solve_again)(cq_scene *s, const cq_slice *in, int32_t range);
  void (*dilatation_solve_last)(cq_scene *s, const cq_slice *in, int32_t range);
  void (*dilatation_solve_nodes)(cq_scene *s, int32_t block, int32_t pass);
  // potential, stress and residual at a vector: to RESIDUAL_TRIAL
  void (*evaluate)(cq_scene *s, const cq_slice *in, int32_t range, int32_t at, double *sum);
  void (*residual)(cq_scene *s, int32_t block, int32_t at, double *sum);
  // second derivative at VELOCITY: tensors of particles; diagonal of nodes in `parts` parts, then its inverse
  int32_t parts;
  void (*tensors)(cq_scene *s, const cq_slice *in, int32_t range, double *sum);
  void (*diagonal)(cq_scene *s, const cq_slice *in, int32_t range, int32_t part);
  void (*gather_diagonal)(cq_scene *s, int32_t block, int32_t part);
  void (*invert_node_blocks)(cq_scene *s, int32_t block);
  // Cables and chambers whose forces are those of the end of the step, by one worker: where they are in the grid; their
  // forces at a vector, to PULL; their part of the second derivative at VELOCITY, and its product with a vector, to
  // PULL.
  void (*cables_begin)(cq_scene *s, const cq_slice *in);
  void (*cables_evaluate)(cq_scene *s, const cq_slice *in, int32_t at, double *sum);
  void (*cables_settle)(cq_scene *s, const cq_slice *in);
  void (*cables_product)(cq_scene *s, int32_t from);
  void (*cables_follow_adj)(cq_scene *s, const cq_slice *out);   // from STEP, the solution of the adjoint
  // which contacts hold, and velocities that keep them; release 0: none is let go
  void (*activate)(cq_scene *s, int32_t block, int32_t release, double *sum);
  // of the contacts that hold although they pull, those that `which` asks for let go
  void (*release)(cq_scene *s, int32_t block, cq_release which, double *sum);
  // VELOCITY and contacts that hold, to keep them and back
  void (*keep)(cq_scene *s, int32_t block, int32_t back);
  // the impulses by which walls with friction press, from a residual at VELOCITY; sum: the change of the potential
  void (*press)(cq_scene *s, int32_t block, int32_t from, double *sum);
  void (*norms)(cq_scene *s, int32_t block, double *sum);
  // PRODUCT = H times a vector: particles, then nodes; of: which components, and whether the slope is summed
  void (*product)(cq_scene *s, const cq_slice *in, int32_t range, int32_t from);
  void (*multiply)(cq_scene *s, int32_t block, int32_t from, cq_grid_product of, double *sum);
  // conjugate gradients for H STEP = sign * RESIDUAL on free components
  void (*cg_start)(cq_scene *s, int32_t block, double sign, double *sum);
  void (*cg_advance)(cq_scene *s, int32_t block, double alpha, double *sum);
  void (*cg_turn)(cq_scene *s, int32_t block, double beta);
  void (*take_direction)(cq_scene *s, int32_t block);    // STEP = DIRECTION
  void (*cg_again)(cq_scene *s, int32_t block, double *sum);   // from REST, with DIRECTION = M^-1 REST
  // The coarse lattice: its nodes, by one worker; what particles and nodes give the matrix of its hats; REST to hats,
  // and hats to DIRECTION. NULL: there is none.
  void (*coarse_index)(cq_scene *s);
  void (*coarse_gather)(cq_scene *s, const cq_slice *in, int32_t range, double *matrix);
  void (*coarse_nodes)(cq_scene *s, int32_t block, double *matrix);
  void (*coarse_restrict)(cq_scene *s, int32_t block, double *to);
  void (*coarse_prolong)(cq_scene *s, int32_t block, const double *from);
  // The same on an assembled matrix: its sizes, 0: there is none; what is where; rows of particles; what contacts hold,
  // and preconditioner. Then from REST: each iteration turns, makes the product and advances. Blocks with an even
  // number go before those with an odd one in first and product, and after them in turn.
  int32_t matrix_reals, own_reals;       // of four nodes
  void (*index_matrix)(cq_scene *s);
  void (*assemble)(cq_scene *s, const cq_slice *in, int32_t block);
  void (*precondition)(cq_scene *s, int32_t block);
  void (*sweep_load)(cq_scene *s, int32_t block);
  void (*sweep_first)(cq_scene *s, int32_t block);
  void (*sweep_begin)(cq_scene *s, int32_t block, double *sum);
  void (*sweep_turn)(cq_scene *s, int32_t block, double beta);
  void (*sweep_product)(cq_scene *s, int32_t block, double *sum);
  void (*sweep_advance)(cq_scene *s, int32_t block, double alpha, double *sum);
  void (*sweep_end)(cq_scene *s, int32_t block);
  // TRIAL from VELOCITY along STEP; RESIDUAL_TRIAL along STEP
  void (*trial)(cq_scene *s, int32_t block, double length, double *sum);
  void (*slope)(cq_scene *s, int32_t block, double *sum);
  void (*shrink)(cq_scene *s, int32_t block, double factor, double *sum);
  void (*finish)(cq_scene *s, int32_t block, void *record, uint64_t *held);
  // the adjoint of a step: converged velocities and contacts of the record, dL/dv of the slabs to RESIDUAL
  void (*load)(cq_scene *s, int32_t block, const void *record, const uint64_t *held);
  void (*take_momentum)(cq_scene *s, int32_t block);
  // dL/dv, kept in TRIAL and RESIDUAL, with what impulses that are read give it
  void (*impulse_to_velocity)(cq_scene *s, int32_t block);
  // what STEP gives through a pressure that follows; after the next two TRIAL, which keeps dL/dv, with it to RESIDUAL
  void (*follow)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  // STEP and DIRECTION with what impulses of walls get of it and give it, then without
  void (*lean)(cq_scene *s, int32_t block);
  void (*straighten)(cq_scene *s, int32_t block);
  void (*add_followed)(cq_scene *s, int32_t block, double *sum);
  void (*finish_adj)(cq_scene *s, int32_t block);
  // where dilatations are averaged: rates of particles by STEP, for dilatation_wanted
  // on reference grids: a vector, as its loops over particles read it; the state after a step; and of the adjoint, from
  // the solution y, what forces, masses and velocities before the step get
  void (*spread)(cq_scene *s, int32_t block, int32_t from);
  void (*end_on_reference)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t block, cq_found *found);
  void (*begin_reference_adj)(cq_scene *s, const cq_slice *in, int32_t block);
  // of the factor there (factor.h): which nodes are held; a share of the matrix, shifted by a part of its diagonal;
  // REST to its right side, and its solution to CONDITIONED; and of particles what factor_take reads
  void (*factor_mark)(cq_scene *s, int32_t block, double *sum);
  void (*factor_take)(cq_scene *s, int32_t share, int32_t shares, double shift);
  void (*factor_load)(cq_scene *s, int32_t block);
  void (*factor_store)(cq_scene *s, int32_t block, double *sum);
  void (*factor_assemble)(cq_scene *s, int32_t share, int32_t shares);
  void (*dilatation_solve_first_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*p2g_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
} cq_implicit_kernels;

// Chooses the loops of implicit steps of a scene, and allocates their arrays of particles. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_create(cq_scene *s);
// Allocates what depends on the layout of reference grids. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_lay_out(cq_scene *s);
// Frees the memory of implicit steps of a scene.
void cq_implicit_destroy(cq_scene *s);
// Makes room for vectors over nodes, matrix and coarse lattice of the live arrangement. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_reserve(cq_scene *s);

// Solves for the velocities of nodes at the end of one implicit step, by all workers of a scene together, and leaves
// them where G2P reads them. in: the state before the step; record: NULL, or takes what the adjoint needs; step: its
// number in the running control step. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
cq_status cq_implicit_solve(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_step_record *record, int32_t step);
// Adjoint of cq_implicit_solve, between g2p_adj and the implicit p2g_adj: from dL/dv of nodes in the slabs, sets
// s->grid_q = dL/d(momentum, mass) (E89). CQ_OK, CQ_MEMORY, or CQ_UNSTABLE where the linear system is not solved:
// s->health says why.
cq_status cq_implicit_solve_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t step);

#endif
