// reference: total Lagrangian steps. Each body has a grid of its own undeformed shape. Velocities and displacements
// live on the nodes of that grid and are never transferred; particles are quadrature points that stay where they are
// on it.
// What a scene keeps for them, and the table of typed loops, one for each kernel build (kernels.c).
#ifndef CQ_REFERENCE_H
#define CQ_REFERENCE_H

#include "../../world/grids.h"
#include "../../world/model.h"
#include "../implicit/state.h"
#include "../worker.h"

struct cq_scene;
struct cq_slice;
struct cq_step_record;
struct cq_found;

enum {
  CQ_REFERENCE_FIELDS = 2,   // of a node in a slice: displacement and velocity, dim numbers each
  CQ_REFERENCE_SHIFTS = 3,   // arrays of a slab: from cells to the node before, at, and after them along the last axis
  CQ_REFERENCE_VECTOR = 16,  // nodes of a vector
  CQ_REFERENCE_RUN = 8,      // cells in a row among those of a vector
};

// Two runs of eight cells along the last axis, a lane each, and the chunks that hold their particles: the k-th chunk
// holds the k-th particle of every cell. A cell is what lies nearest to its node.
typedef struct cq_cells {
  int64_t node[2];           // of the first cell of each run
  int32_t body, chunk, chunks;
  int32_t runs;              // 1: lanes 8 to 15 have no particle
  uint32_t used;             // bit l: lane l has a particle
  int32_t lattice;           // 1: particles are a lattice of two along each axis of a cell, in the order of its corners
  int32_t kind;              // law of all its particles where that is one with a fused form, else -1
  int32_t viscous, forced;   // some material is viscous; some particle has a force
} cq_cells;

// The node of the cell in lane `lane`, 0 to 15, of a vector of cells.
static inline int64_t cq_cells_node(const cq_cells *cells, int lane) {
  return cells->node[lane / CQ_REFERENCE_RUN] + lane % CQ_REFERENCE_RUN;
}

// Sixteen nodes with mass among them.
typedef struct cq_nodes {
  int64_t node;
  uint32_t ranges;           // bit r: range r scatters to them
  uint32_t touched;          // bit l: particles reach node + l
  uint32_t carriers;         // bit l: node + l takes part on the spatial grid as well
  int32_t pinned;            // some node is held by a pin
} cq_nodes;

typedef struct cq_reference {
  // the layout, for some positions
  int32_t laid_out;          // 1: all of it is there
  double *positions;         // {n, dim} that it was made for
  cq_body *bodies;
  const int32_t *body_of;    // {n} the model's
  int32_t body_count;
  int64_t node_count;        // of all bodies, a multiple of CQ_REFERENCE_VECTOR
  int32_t *order;            // {chunks * 16} as that of an arrangement
  int32_t chunks;
  cq_cells *cells;
  int32_t cells_count, cells_start[CQ_BLOCKS_MAX + 1];     // of each range
  int32_t *cells_of_chunk;   // {chunks}
  uint16_t *used;            // {chunks} bit l: lane l has a particle
  cq_nodes *nodes;
  int32_t nodes_count, nodes_start[CQ_BLOCKS_MAX + 1];     // of each block, as many as there are ranges
  int64_t window[CQ_BLOCKS_MAX], window_size[CQ_BLOCKS_MAX];   // nodes that a range may scatter to
  int32_t *pin;              // {nodes} wall index of the pin that holds a node, 0 for none
  cq_rim *rim;               // {rim_count} nodes of the cells at the surface of a body
  int32_t rim_count;
  double *rim_at;            // {rim_count, dim} where they are in a step
  cq_near near;              // pairs of them
  int32_t meet[2];           // two that are inside of each other; -1: none are
  cq_rim_places *rim_place;   // {rim_count} where they are, and the edges of their cells
  double highest[CQ_WALLS_MAX];   // of height fields

  // reals
  void *origin;              // {bodies, dim} place of the first node
  void *rest;                // {dim, nodes} places of the nodes
  void *mass, *inverse;      // {nodes}
  void *push;                // {dim, nodes} forces of surfaces that are near each other; NULL without collisions
  void *fraction, *place;    // {chunks, dim, 16} of a particle from the node of its cell [cells]; its place at rest
  void *start;               // {chunks, dim * dim, 16} F at rest
  int32_t started;           // some F at rest is not the identity

  // {dim, nodes} of nodes beside particles on the spatial grid (../carrier.inl), else NULL: places, velocities, and the
  // velocity by which places move beside these; backward its gradient
  void *node_place, *node_velocity, *node_shift;
  void *carried;             // {nodes} mass of those that take part there, else 0
  int32_t *node_base;        // {nodes, 3} base cells there: x, y (0 in 2D), last axis

  void *slab[CQ_BLOCKS_MAX];           // scatter buffer of each range: forces, or gradients; see stencil.inl

  // of implicit steps: the state before the running step, and the state that a vector of velocities leads to
  const struct cq_slice *from;
  struct cq_slice *moved;

  struct cq_slice *first;    // the first state of a rollout that began with the values of particles; NULL: none did

  // particles of the present state, for readouts, and the engine step they were made at, -1 for none
  struct cq_slice *seen;
  int64_t seen_step;

  // backward; reals
  void *adj;                 // {2 dim, nodes} of the present state
  void *force_adj;           // {dim, nodes} dL/d(force) of the running step
  void *mass_adj, *rest_adj; // {nodes}, {dim, nodes}
  void *fraction_adj, *place_adj, *start_adj;   // as fraction, place and start
  int32_t read;              // the adjoint of particles in scene.adj has not reached the nodes yet
} cq_reference;

typedef struct cq_reference_kernels {
  // From the particles in seen: weights, masses and the state of the nodes.
  void (*prepare)(struct cq_scene *s, struct cq_slice *out);
  void (*place_points)(struct cq_scene *s, const struct cq_slice *in);   // of cables, in a state
  // forces by which surfaces push each other away, by one worker; and backward, after move_adj
  cq_status (*repel)(struct cq_scene *s, const struct cq_slice *in);
  cq_status (*repel_adj)(struct cq_scene *s, const struct cq_slice *in);
  // one engine step: forces of a range of cells to its slab; velocities and displacements of a block of nodes
  void (*forces)(struct cq_scene *s, const struct cq_slice *in, int32_t range, struct cq_found *found);
  void (*move)(struct cq_scene *s, const struct cq_slice *in, struct cq_slice *out, void *record, int32_t block,
               struct cq_found *found);
  void (*observe)(struct cq_scene *s, const struct cq_slice *in, int32_t range);   // particles to seen
  void (*observe_rim)(struct cq_scene *s, const struct cq_slice *in);              // to rim_place

  // Backward: adj of out becomes adj of in, but for gradients in the slabs. given: vector fields that the slabs hold
  // before (move_adj) or after (forces_adj); 1, of displacements; 2, of velocities too
  void (*move_adj)(struct cq_scene *s, const struct cq_slice *in, const struct cq_slice *out, const void *record,
                   int32_t block, int32_t given);
  void (*forces_adj)(struct cq_scene *s, const struct cq_slice *in, int32_t range, int32_t given);
  void (*place_points_adj)(struct cq_scene *s, const struct cq_slice *in);   // after pull_cables_adj
  void (*observe_adj)(struct cq_scene *s, const struct cq_slice *in, int32_t range);   // two fields
  void (*collect)(struct cq_scene *s, int32_t block, int32_t given);   // slabs to adj
  void (*discount)(struct cq_scene *s, double factor);
  double (*square)(const struct cq_scene *s);            // the sum of squares of adj
  void (*volume_adj)(struct cq_scene *s, int32_t range); // gradients of constants to those of volumes
  void (*complete)(struct cq_scene *s);                  // adj of the first state to the user's gradients

  // Beside particles on the spatial grid `move` has two parts, before and after that grid changes velocities of nodes.
  void (*move_places)(struct cq_scene *s, const struct cq_slice *in, int32_t block);
  void (*move_free)(struct cq_scene *s, const struct cq_slice *in, void *record, int32_t block);
  void (*move_held)(struct cq_scene *s, const struct cq_slice *in, struct cq_slice *out, void *record, int32_t block,
                    struct cq_found *found);
  void (*move_held_adj)(struct cq_scene *s, const struct cq_slice *in, const void *record, int32_t block,
                        int32_t given);
  void (*move_free_adj)(struct cq_scene *s, const struct cq_slice *in, const void *record, int32_t block);

  // loops over particles of implicit steps, in the places of those of the world's grid (../implicit/implicit.h)
  void (*solve_momentum)(struct cq_scene *s, const struct cq_slice *in, int32_t range, int32_t at);
  void (*solve_evaluate)(struct cq_scene *s, const struct cq_slice *in, int32_t range, int32_t at, double *sum);
  void (*solve_tensors)(struct cq_scene *s, const struct cq_slice *in, int32_t range, double *sum);
  void (*solve_diagonal)(struct cq_scene *s, const struct cq_slice *in, int32_t range, int32_t part);
  void (*solve_product)(struct cq_scene *s, const struct cq_slice *in, int32_t range, int32_t from);
  void (*solve_assemble)(struct cq_scene *s, int32_t share, int32_t shares);   // a share of the matrix of a factor
  void (*give_points_adj)(struct cq_scene *s);   // what the forces of points give places on the grid, by force_adj
} cq_reference_kernels;

// Makes the layout of a scene's reference grids for undeformed positions {n, dim}: grids, and the order of particles on
// them. The number of chunks may change. CQ_OK, CQ_MEMORY, or an error of a body.
cq_status cq_reference_layout(struct cq_scene *s, const double *positions);
// Allocates anew the arrays of reference grids whose sizes follow from their layout. Slabs of differentiable scenes or
// implicit steps hold two vector fields, as gradients of displacements and of velocities. CQ_OK or CQ_MEMORY.
cq_status cq_reference_reserve(struct cq_scene *s);
// Frees the reference grids of a scene.
void cq_reference_destroy(struct cq_scene *s);

// Surfaces are checked when a node may have gone this far since the last time [cells], and at the end of a control
// step: two that come towards each other then cannot pass through a cell between two checks.
extern const double cq_checked_way;

// Parts of a step that those with particles on the spatial grid (carried.c) have too.

// Makes room in a step's record for the velocities of nodes that its adjoint needs beside the states, with walls, pins
// or both grids. s->nodes_record points to them, or is NULL where record is NULL. CQ_OK or CQ_MEMORY.
cq_status cq_reference_reserve_record(struct cq_scene *s, struct cq_step_record *record);
// (E117, E120) By one worker: sets the forces between surfaces that are near each other in the state `in` (r->push).
// CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health where two have passed into each other.
cq_status cq_reference_repel(struct cq_scene *s, const struct cq_slice *in);
// By all workers: sets the forces of cables and pressure chambers on their particles in the state `in`; the first
// worker computes them.
void cq_reference_pull_cables(struct cq_scene *s, cq_worker *worker, const struct cq_slice *in);
// Adjoint of cq_reference_pull_cables, by all workers: from the gradients of forces on particles, adds to those of the
// places of nodes, of signals and of constants of cables. in: the state whose places the cables had.
void cq_reference_pull_cables_adj(struct cq_scene *s, cq_worker *worker, const struct cq_slice *in);
// By all workers, after an engine step: CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health if two surfaces have met or a
// particle has left the world, which is looked for if a surface is near the world's edge. step: for s->health.
cq_status cq_reference_check_surfaces(struct cq_scene *s, cq_worker *worker, int64_t step);
// Sets s->health to the first particle that shows why a step failed: in the state before it if one is inverted, else in
// the state after, if one is not finite or has left the world; to CQ_HEALTH_INVERTED if there is none.
void cq_reference_find_culprit(struct cq_scene *s);
// The number of vector fields that the adjoint of forces scatters to nodes: 1, gradients of displacements, or 2, of
// velocities too, where a material is viscous.
int32_t cq_reference_fields_given(const struct cq_scene *s);
// By all workers: adds what ranges have scattered to their slabs to the adjoint of the nodes. given: vector fields that
// the slabs hold, 1 (displacements) or 2 (velocities too).
void cq_reference_collect(struct cq_scene *s, cq_worker *worker, int32_t given);

// The work on reference grids of a step on both grids: bring before the pass over nodes of the spatial grid, take after
// it. By all workers. in: the state before the step; found: what each range or block finds wrong.

// Before the spatial grid's pass over nodes, by all workers: computes the forces on reference nodes, and scatters their
// mass and momentum to the spatial grid. in: the state before the step; found: of each range. CQ_OK, or the error of
// the forces between surfaces.
cq_status cq_carriers_bring(struct cq_scene *s, cq_worker *worker, const struct cq_slice *in, struct cq_found *found);
// After the spatial grid's pass over nodes, by all workers: takes velocities of reference nodes from the spatial grid,
// and sets the state `out` after the step. found: of each block.
void cq_carriers_take(struct cq_scene *s, cq_worker *worker, const struct cq_slice *in, struct cq_slice *out,
                      struct cq_found *found);
// Reverses one engine step in which both grids take part, the spatial one and the reference grids. given: the number of
// vector fields (0, 1 or 2) that the step reversed before this one left in the slabs of the reference grids. CQ_OK, or
// the error of the forces between surfaces.
cq_status cq_carriers_reverse(struct cq_scene *s, cq_worker *worker, const struct cq_step_record *record,
                              int32_t given);
// For a block of reference nodes in the state `in`: sets r->node_place, r->node_base (the base cells of their stencils
// on the spatial grid), and s->partial[block] to the box of these, or marks there that one is outside of the world.
void cq_carriers_find(struct cq_scene *s, const struct cq_slice *in, int32_t block);

// What the calls of scene.h do for a scene with steps on a reference grid.

// By one worker, at the start of a rollout: makes a layout, if the rollout's positions are not those of the present
// one, the first order of particles (arrangement), and an empty first state (slice). CQ_OK, CQ_MEMORY, or an error of
// the layout.
cq_status cq_reference_begin(struct cq_scene *s);
// By all workers, after cq_reference_begin: loads the first state from the user's values: particles, then nodes; keeps
// it as r->first if all particles are on reference grids. CQ_OK.
cq_status cq_reference_load(struct cq_scene *s, cq_worker *worker);
// By one worker, in place of loading: makes r->first, kept from an earlier rollout with the same values, the scene's
// present state.
void cq_reference_begin_again(struct cq_scene *s);
// Copies what prepare() computes for reference grids, places, weights and masses, from another scene, `from`, with the
// same particles, constants and F at rest. Releases r->first of s.
void cq_reference_copy(struct cq_scene *s, const struct cq_scene *from);
// By all workers: runs the engine steps of one control step on reference grids, after its actuation is loaded. records
// {substeps}: NULL, or takes what the adjoint needs. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
cq_status cq_reference_advance(struct cq_scene *s, cq_worker *worker, struct cq_step_record *records);
// By all workers: reverses the recorded engine steps of a control step, the last first. records {substeps}. CQ_OK, or
// the error of a step's adjoint.
cq_status cq_reference_reverse(struct cq_scene *s, cq_worker *worker, const struct cq_step_record *records);
// By one worker, before a backward pass: sets the adjoint of the nodes and the gradients on reference grids to zero;
// r->started to 1 where gradients of F at rest are wanted.
void cq_reference_begin_adjoint(struct cq_scene *s);
// By all workers: adds to the adjoint of nodes the gradients of particles that readouts left in s->adj; clears these.
void cq_reference_settle_adjoint(struct cq_scene *s, cq_worker *worker);
// By all workers, at the end of the backward pass, at the first state: turns adjoints into the user's gradients, but
// for those of walls and gravity.
void cq_reference_finish(struct cq_scene *s, cq_worker *worker);
// By all workers: sets r->seen, the particles that readouts see, to those of the present state, if they are not.
void cq_reference_observe(struct cq_scene *s, cq_worker *worker);

#endif
