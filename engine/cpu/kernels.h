// kernels: the typed loops of the CPU device, one table for each {dimension, precision, instruction set}. kernels.c is
// compiled once for each; a C++ test compiles it once more with dual numbers.
#ifndef CQ_KERNELS_H
#define CQ_KERNELS_H

#include "implicit/implicit.h"
#include "scene.h"

// What is averaged, backward: the trace of C' for F at a step's end; of an implicit step, that of Y by which its stress
// is varied, and that of C' for F^ where the stress is.
typedef enum cq_average { CQ_AVERAGE_END, CQ_AVERAGE_VARIED, CQ_AVERAGE_STRESS } cq_average;

typedef struct cq_kernels {
  const char *name;                    // instruction set
  int32_t dim, real_bytes, lanes;

  // values of the user to chunks, in the order of an arrangement
  void (*load_state)(const cq_scene *s, cq_slice *out, int32_t chunk_begin, int32_t chunk_end);
  void (*load_params)(const cq_scene *s, cq_arrangement *a, int32_t chunk_begin, int32_t chunk_end);
  // the same from another arrangement, by s->source: neighbours come from neighbours
  void (*reorder_params)(const cq_scene *s, const cq_arrangement *from, cq_arrangement *to, int32_t chunk_begin,
                         int32_t chunk_end);
  void (*load_globals)(cq_scene *s);
  // sigma and forces of the running control step; and back to signals, weights and forces, whose partial sums go to
  // signals_partial of the range
  void (*load_actuation)(cq_scene *s, int32_t range);
  void (*load_actuation_adj)(cq_scene *s, int32_t range);
  // Cables of the running control step, after load_actuation of all ranges; and their pull at the positions of a state,
  // added to the forces of their particles.
  void (*load_cables)(cq_scene *s);
  void (*pull_cables)(cq_scene *s, const cq_slice *in, const cq_slice *out);
  void (*pull_placed)(cq_scene *s);    // where other functions have placed their points

  void (*clear_walls)(cq_scene *s);    // they are where they start, and have given nothing
  // Velocities of walls {walls, dim} in a control step that begins with this engine step, and the way that those
  // that move have made before it.
  void (*load_walls)(cq_scene *s, int64_t step, const double *velocity, const double *place);
  void (*load_gravity)(cq_scene *s, const double *gravity);   // {dim} in a control step
  // What walls gave in the running control step, of all ranges: to impulse_out, and cleared for the next.
  void (*store_impulse)(cq_scene *s);

  // sorting: base cells of the slots and the box of them, or that some position is not in the world; and particles into
  // another order, from s->source
  void (*find_bases)(const cq_scene *s, const cq_slice *in, int32_t chunk_begin, int32_t chunk_end, cq_partial *found);
  void (*reorder)(const cq_scene *s, const void *in, void *out, int32_t fields, int32_t chunk_begin, int32_t chunk_end);

  // one engine step; p2g sets what it found, g2p adds to it
  void (*p2g)(cq_scene *s, const cq_slice *in, int32_t range, cq_found *found);
  void (*grid)(cq_scene *s, void *record, int32_t block);
  void (*g2p)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, cq_found *found);

  // Nodes of reference grids on this one (carrier.inl): where those of a block are, as find_bases; what they bring to
  // the nodes here, and what they take from them.
  void (*carrier_bases)(const cq_scene *s, int32_t block, cq_partial *found);
  void (*carrier_p2g)(cq_scene *s, int32_t block);
  void (*carrier_g2p)(cq_scene *s, int32_t block);

  // J of liquids nears its mean over the grid: out is in with other F; of all ranges
  void (*average_volume)(cq_scene *s, const cq_slice *in, cq_slice *out, cq_status *status);

  // the dilatation of a step, averaged over the grid: pass 0 to 2 over particles, nodes after 0 and 1
  void (*dilatation)(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, int32_t pass);
  void (*dilatation_nodes)(cq_scene *s, int32_t block);

  // its adjoint: adj of out becomes adj of in
  void (*g2p_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*grid_adj)(cq_scene *s, const void *record, int32_t block);
  void (*p2g_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range);
  void (*carrier_g2p_adj)(cq_scene *s, const void *velocity, int32_t block);   // velocity: of the nodes before
  void (*carrier_p2g_adj)(cq_scene *s, const void *velocity, int32_t block);
  // of all ranges, after them; lagged: with what the pull at their start gets, else of the particles' forces alone
  void (*pull_cables_adj)(cq_scene *s, const cq_slice *in);
  void (*pull_placed_adj)(cq_scene *s);
  void (*average_volume_adj)(cq_scene *s, const cq_slice *in, cq_status *status);   // in: before it was averaged
  // An average backward, each with means of nodes before it: what is wanted of it, from where the rate was given to the
  // nodes; the adjoint of the second application of 1 - A, then of the first. Before g2p_adj that of a step's end; of
  // an implicit step two more before its p2g_adj. After g2p_adj: what places get.
  void (*dilatation_wanted)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average);
  void (*dilatation_adj)(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average,
                         int32_t second);
  void (*dilatation_places_adj)(cq_scene *s, int32_t range);

  void (*discount_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end, double factor);   // of the live state
  double (*adj_square)(const cq_scene *s);

  // gradients back to the user's order
  void (*store_params_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end);
  void (*store_state_adj)(cq_scene *s, int32_t chunk_begin, int32_t chunk_end);

  // readouts of the live state, of some entries of the list: the sum of weights, then for each component or pair of the
  // fields the weighted sum; the fields themselves, out: of each field, for the first entry
  void (*read_sums)(const cq_scene *s, const cq_readout *r, uint32_t fields, int64_t begin, int64_t end, double *sums);
  void (*read_fields)(const cq_scene *s, const cq_readout *r, int64_t begin, int64_t end,
                      double *const out[CQ_QUANTITY_COUNT]);
  // the adjoint of one group, for particles of some chunks: its sums (without those of fields where no gradient by the
  // weights is wanted), and the gradient of each field's part
  void (*read_adj)(cq_scene *s, const cq_readout *r, int32_t group, int32_t chunk_begin, int32_t chunk_end,
                   const cq_group_grad *out);

  const cq_implicit_kernels *implicit;   // steps of backward Euler
  const cq_reference_kernels *reference;   // steps on reference grids

  // first particle of a slice, in the user's order, that is not finite, has left the world, or is inverted
  void (*diagnose)(const cq_scene *s, const cq_slice *slice, cq_health *health);
} cq_kernels;

// The best table of kernels for this machine of a dimension and a precision (CQ_FLOAT32, CQ_FLOAT64). simd: 0, or the
// level that is wanted (cq_world_def.simd). NULL where this build or this machine has none.
const cq_kernels *cq_kernels_find(int32_t dim, int32_t precision, int32_t simd);
// Sets out to the best table of kernels for a model on this machine. CQ_OK, or CQ_INVALID and a sentence that says what
// this machine or this build lacks.
cq_status cq_kernels_choose(const cq_model *model, const cq_kernels **out);

#endif
