// kernels: the typed loops of the CPU device, one table for each {dimension, precision, instruction set}. kernels.c is
// compiled once for each; a C++ test compiles it once more with dual numbers.
#ifndef CQ_KERNELS_H
#define CQ_KERNELS_H

#include "implicit/implicit.h"
#include "scene.h"

// Which averaging of dilatations an adjoint reverses: of tr C' for F at a step's end; and of an implicit step those of
// tr Y, by which its stress is varied, and of tr C' for F^, of which its stress is.
typedef enum cq_average { CQ_AVERAGE_END, CQ_AVERAGE_VARIED, CQ_AVERAGE_STRESS } cq_average;

typedef struct cq_kernels {
  const char *name;                    // instruction set
  int32_t dim, real_bytes, lanes;

  // values of the user to chunks, in the order of an arrangement
  void (*load_state)(const cq_scene *s, cq_slice *out, int32_t chunk_begin, int32_t chunk_end);
  void (*load_params)(const cq_scene *s, cq_arrangement *a, int32_t chunk_begin, int32_t chunk_end);
  // the same copied from the arrangement before a sort, by s->source
  void (*reorder_params)(const cq_scene *s, const cq_arrangement *from, cq_arrangement *to, int32_t chunk_begin,
                         int32_t chunk_end);
  void (*load_globals)(cq_scene *s);
  // active stress and forces of the running control step; and the adjoint, to signals, weights and forces: sums of
  // signals go to the range's signals_partial
  void (*load_actuation)(cq_scene *s, int32_t range);
  void (*load_actuation_adj)(cq_scene *s, int32_t range);
  // Constants and signals of cables for the running control step, after load_actuation of all ranges; and the forces of
  // cables at the positions of a state, added to those of their particles.
  void (*load_cables)(cq_scene *s);
  void (*pull_cables)(cq_scene *s, const cq_slice *in, const cq_slice *out);
  void (*pull_placed)(cq_scene *s);    // the same, where the positions of their points are already set

  void (*clear_walls)(cq_scene *s);    // displacements and impulses to 0
  // Velocities of walls {walls, dim} in a control step that begins with this engine step, and how far moving walls
  // have moved before it.
  void (*load_walls)(cq_scene *s, int64_t step, const double *velocity, const double *place);
  void (*load_gravity)(cq_scene *s, const double *gravity);   // {dim} in a control step
  // Impulses of walls in the running control step, summed over all blocks into impulse_out, and cleared for the next.
  void (*store_impulse)(cq_scene *s);

  // sorting: base cells of the slots and their bounding box, and whether a position is outside the world; then copies
  // an array of particles into the new order, by s->source
  void (*find_bases)(const cq_scene *s, const cq_slice *in, int32_t chunk_begin, int32_t chunk_end, cq_partial *found);
  void (*reorder)(const cq_scene *s, const void *in, void *out, int32_t fields, int32_t chunk_begin, int32_t chunk_end);

  // one engine step; p2g sets what it found, g2p adds to it
  void (*p2g)(cq_scene *s, const cq_slice *in, int32_t range, cq_found *found);
  void (*grid)(cq_scene *s, void *record, int32_t block);
  void (*g2p)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, cq_found *found);

  // Nodes of reference grids on the spatial grid (carrier.inl), for a block of them: find their base cells, scatter
  // their mass and momentum to spatial nodes, and gather the change of their velocity from these.
  void (*carrier_bases)(const cq_scene *s, int32_t block, cq_partial *found);
  void (*carrier_p2g)(cq_scene *s, int32_t block);
  void (*carrier_g2p)(cq_scene *s, int32_t block);

  // moves J of liquids towards its mean over the grid: out is in with F changed; for all ranges at once
  void (*average_volume)(cq_scene *s, const cq_slice *in, cq_slice *out, cq_status *status);

  // averages the dilatation of a step over the grid: pass 0 to 2 over particles, dilatation_nodes after 0 and 1
  void (*dilatation)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, int32_t pass);
  void (*dilatation_nodes)(cq_scene *s, int32_t block);

  // adjoint of an engine step: s->adj of the state out becomes that of the state in
  void (*g2p_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*grid_adj)(cq_scene *s, const void *record, int32_t block);
  void (*p2g_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*carrier_g2p_adj)(cq_scene *s, const void *velocity, int32_t block);   // velocity: of nodes before carrier_g2p
  void (*carrier_p2g_adj)(cq_scene *s, const void *velocity, int32_t block);
  // for all ranges at once, after p2g_adj; pull_placed_adj stops at the gradients of the points' positions
  void (*pull_cables_adj)(cq_scene *s, const cq_slice *in);
  void (*pull_placed_adj)(cq_scene *s);
  void (*average_volume_adj)(cq_scene *s, const cq_slice *in, cq_status *status);   // in: before it was averaged
  // Adjoint of an averaging of dilatations, dilatation_nodes before each pass: dilatation_wanted finds the gradient by
  // the averaged rate; dilatation_adj reverses the second application of 1 - A, then the first. For a step's end before
  // g2p_adj; in an implicit step two more before p2g_adj. Later dilatation_places_adj adds gradients of positions.
  void (*dilatation_wanted)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average);
  void (*dilatation_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average,
                         int32_t second);
  void (*dilatation_places_adj)(cq_scene *s, int32_t range);

  void (*discount_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end, double factor);   // of the live state
  double (*adj_square)(const cq_scene *s);

  // gradients back to the user's order
  void (*store_params_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end);
  void (*store_state_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end);

  // readouts of the live state, for entries [begin, end) of the list: sums of weights and of weighted components or
  // pairs of the fields; or copies of the fields, out: where each field's numbers for the first entry go
  void (*read_sums)(const cq_scene *s, const cq_readout *r, uint32_t fields, int64_t begin, int64_t end, double *sums);
  void (*read_fields)(const cq_scene *s, const cq_readout *r, int64_t begin, int64_t end,
                      double *const out[CQ_QUANTITY_COUNT]);
  // adjoint of a readout of one group, for particles of some chunks; out: the group's sums (those of fields only where
  // gradients of weights are wanted), and the gradient by each field's numbers
  void (*read_adj)(cq_scene *s, const cq_readout *r, int32_t group, int32_t chunk_begin, int32_t chunk_end,
                   const cq_group_grad *out);

  const cq_implicit_kernels *implicit;   // steps of backward Euler
  const cq_reference_kernels *reference;   // steps on reference grids

  // first particle of a slice, in the user's order, that is not finite, has left the world, or is inverted
  void (*diagnose)(const cq_scene *s, const cq_slice *slice, cq_health *health);
} cq_kernels;

// Returns the best table of kernels that this build and this machine have for a dimension and a precision (CQ_FLOAT32,
// CQ_FLOAT64). simd: 0, or the level of instructions that it must be for (cq_world_def.simd). NULL: there is none.
const cq_kernels *cq_kernels_find(int32_t dim, int32_t precision, int32_t simd);
// Sets *out to the best table of kernels for a model on this machine. CQ_OK, or CQ_INVALID and a sentence that says
// what this machine or this build lacks.
cq_status cq_kernels_choose(const cq_model *model, const cq_kernels **out);

#endif
