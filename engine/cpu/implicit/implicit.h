// implicit: backward Euler on the CPU. The unknowns of a step are the velocities of the grid's nodes: a minimiser of
// the incremental potential (E80), found by Newton's method with conjugate gradients. method.c is the method, without
// types; the loops over particles and nodes are the .inl files of this folder, compiled with the other kernels
// (../kernels.c). README.md draws the way of a step.
#ifndef CQ_IMPLICIT_H
#define CQ_IMPLICIT_H

#include "../scene.h"

// passes over nodes of averaged dilatation, from sums over particles: 1 / volume; means a; 2 a - b, b the means of a
typedef enum cq_dilatation_pass { CQ_DILATATION_VOLUME, CQ_DILATATION_MEAN, CQ_DILATATION_AGAIN } cq_dilatation_pass;

typedef struct cq_implicit_kernels {
  int32_t tangent;                       // 1: over dual numbers, whose slopes are solved for after the values
  // particles: momentum, mass and given forces to the nodes; nodes: where Newton's method begins, and their contacts
  void (*momentum)(cq_scene *s, const cq_slice *in, int32_t range, int32_t at);
  void (*start)(cq_scene *s, int32_t block, double *sum);
  // Averaged dilatation (dilatation_solve.inl): how many numbers it keeps of a particle; passes over particles: weights
  // and volumes; rates by a vector; the average again; the averaged stress to the nodes; and over nodes, by a
  // cq_dilatation_pass.
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
  // Cables and chambers whose forces are those at the end of the step, by one worker: stencils of their particles;
  // their impulses at a vector, to PULL; where VELOCITY leads their points; there the product of their second
  // derivative with a vector, to PULL.
  void (*cables_begin)(cq_scene *s, const cq_slice *in);
  void (*cables_evaluate)(cq_scene *s, const cq_slice *in, int32_t at, double *sum);
  void (*cables_settle)(cq_scene *s, const cq_slice *in);
  void (*cables_product)(cq_scene *s, int32_t from);
  void (*cables_follow_adj)(cq_scene *s, const cq_slice *out);   // from STEP, the solution of the adjoint
  // active contacts, and velocities that keep to them; release 0: none becomes inactive
  void (*activate)(cq_scene *s, int32_t block, int32_t release, double *sum);
  // counts the active contacts that pull, and releases those that `which` asks for
  void (*release)(cq_scene *s, int32_t block, cq_release which, double *sum);
  // VELOCITY and active contacts: keeps them (back 0), or returns to the kept ones (back 1)
  void (*keep)(cq_scene *s, int32_t block, int32_t back);
  // the impulses by which walls with friction press, from a residual at VELOCITY; sum: the change of the potential
  void (*press)(cq_scene *s, int32_t block, int32_t from, double *sum);
  void (*norms)(cq_scene *s, int32_t block, double *sum);
  // PRODUCT = H times a vector: particles, then nodes
  void (*product)(cq_scene *s, const cq_slice *in, int32_t range, int32_t from);
  void (*multiply)(cq_scene *s, int32_t block, int32_t from, cq_grid_product of, double *sum);
  // conjugate gradients for H STEP = sign * RESIDUAL on free components
  void (*cg_start)(cq_scene *s, int32_t block, double sign, double *sum);
  void (*cg_advance)(cq_scene *s, int32_t block, double alpha, double *sum);
  void (*cg_turn)(cq_scene *s, int32_t block, double beta);
  void (*take_direction)(cq_scene *s, int32_t block);    // STEP = DIRECTION
  void (*cg_again)(cq_scene *s, int32_t block, double *sum);   // from REST, with DIRECTION = M^-1 REST
  // The coarse lattice: its nodes, by one worker; its matrix, from particles and from nodes; REST to the lattice, and
  // its solution to DIRECTION. NULL: there is none.
  void (*coarse_index)(cq_scene *s);
  void (*coarse_gather)(cq_scene *s, const cq_slice *in, int32_t range, double *matrix);
  void (*coarse_nodes)(cq_scene *s, int32_t block, double *matrix);
  void (*coarse_restrict)(cq_scene *s, int32_t block, double *to);
  void (*coarse_prolong)(cq_scene *s, int32_t block, const double *from);
  // Conjugate gradients on an assembled matrix: its sizes, 0: there is none; columns and cells; rows, from particles;
  // contacts and preconditioner. Then from REST: each iteration is turn, product, advance. Blocks with an even number
  // go before those with an odd one in first and product, and after them in turn.
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
  // adds the gradients of impulses that are read to dL/dv, in TRIAL and RESIDUAL
  void (*impulse_to_velocity)(cq_scene *s, int32_t block);
  // the terms of the right side that depend on STEP: by a pressure that follows the surface; add_followed sets RESIDUAL
  // to them and dL/dv, which TRIAL keeps
  void (*follow)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  // adds to STEP its part along held directions, kept in DIRECTION; removes it
  void (*lean)(cq_scene *s, int32_t block);
  void (*straighten)(cq_scene *s, int32_t block);
  void (*add_followed)(cq_scene *s, int32_t block, double *sum);
  void (*finish_adj)(cq_scene *s, int32_t block);
  // on reference grids: sets the state that a vector leads to, for loops over particles; the state after a step; in the
  // adjoint, from its solution y, the gradients of forces, masses and velocities before the step
  void (*spread)(cq_scene *s, int32_t block, int32_t from);
  void (*end_on_reference)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t block, cq_found *found);
  void (*begin_reference_adj)(cq_scene *s, const cq_slice *in, int32_t block);
  // their Cholesky factor (factor.h): which nodes are held; a share of its matrix, shifted by a part of the diagonal;
  // REST to its right side, and its solution to CONDITIONED; from particles the matrix that factor_take reads
  void (*factor_mark)(cq_scene *s, int32_t block, double *sum);
  void (*factor_take)(cq_scene *s, int32_t share, int32_t shares, double shift);
  void (*factor_load)(cq_scene *s, int32_t block);
  void (*factor_store)(cq_scene *s, int32_t block, double *sum);
  void (*factor_assemble)(cq_scene *s, int32_t share, int32_t shares);
  // averaged dilatation: rates of particles by STEP, for dilatation_wanted; and the adjoint of particles
  void (*dilatation_solve_first_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*p2g_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
} cq_implicit_kernels;

// Chooses the loops of implicit steps of a scene, and on the spatial grid allocates their arrays over particles; those
// of reference grids wait for the layout (cq_implicit_lay_out). CQ_OK or CQ_MEMORY.
cq_status cq_implicit_create(cq_scene *s);
// Allocates anew the arrays of implicit steps whose sizes follow from the layout of reference grids, s->grid_v and
// s->grid_q, and orders the nodes for the factor. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_lay_out(cq_scene *s);
// Frees all memory that a scene has for implicit steps.
void cq_implicit_destroy(cq_scene *s);
// Makes vectors over nodes, assembled matrix and coarse lattice large enough for the scene's present order of
// particles. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_reserve(cq_scene *s);

// Solves for the velocities of nodes at the end of one implicit step, by all workers of a scene together, and leaves
// them in s->grid_v, where G2P reads them. in: the state before the step; record: NULL, or takes what the adjoint
// needs; step: its index in the running control step. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
cq_status cq_implicit_solve(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_step_record *record, int32_t step);
// Adjoint of cq_implicit_solve for a recorded step, between g2p_adj and the implicit p2g_adj: from dL/dv of nodes in
// the slabs, or of r->adj on reference grids, sets s->grid_q = dL/d(momentum, mass) (E89) and s->grid_v, the
// velocities; adds to the gradients of gravity, damping and walls. step: its index in the control step. CQ_OK,
// CQ_MEMORY, or CQ_UNSTABLE where the linear system is not solved: s->health says why.
cq_status cq_implicit_solve_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t step);

#endif
