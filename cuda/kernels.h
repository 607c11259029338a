// kernels: the kernels of one {dimension, precision}, as a table for the host. Every function launches a kernel on a
// stream and returns at once. blocks: of the launch. Its threads walk over all tiles, or all slots, whatever their
// number, so that one captured graph serves every arrangement.
#ifndef CQ_CUDA_KERNELS_H
#define CQ_CUDA_KERNELS_H

#include "frame.h"
#include "launch.h"
#include "tasks.h"

// A cooperative launch: its blocks are on the GPU at the same time, so that they may wait for each other.
typedef void cq_cuda_resident(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t count);

typedef struct cq_cuda_kernels {
  int32_t dim, real_bytes;
  int32_t round;             // particles that a block goes over at once, backward; forward they are no fewer

  // Forward, k: substep. p2g scatters state k. grid computes velocities from momenta. impulse sums the impulses of
  // walls and pins. g2p computes state k + 1. g2p2g computes state k + 1 and scatters it.
  void (*p2g)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*grid)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*impulse)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p2g)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);

  // Backward over the substeps of one arrangement. First velocity and g2p_adj of the last substep. Then for each
  // substep k grid_adj, which also makes the velocities of substep k - 1 again if `more` is 1, and step_adj, which is
  // p2g_adj of substep k and g2p_adj of substep k - 1. At the first substep p2g_adj stands for step_adj.
  void (*velocity)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*grid_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k, int32_t more);
  void (*step_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*p2g_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);

  // All substeps of a run by one kernel, forward or, in 2D, backward; and the most blocks of these kernels that the GPU
  // can hold, 0 where there is no such kernel or the GPU has no cooperative launches.
  cq_cuda_resident *resident, *resident_adj;
  cudaError_t (*room)(const cudaDeviceProp *gpu, int32_t *forward, int32_t *backward);

  // sorting: box of the tiles, then tile and cell of each particle; moving into another order;
  // from and to the user's arrays
  void (*box)(cudaStream_t stream, int32_t blocks, const cq_sorting *sorting);
  void (*key)(cudaStream_t stream, int32_t blocks, const cq_sorting *sorting);
  void (*move)(cudaStream_t stream, int32_t blocks, const cq_moving *moving);
  void (*load)(cudaStream_t stream, int32_t blocks, const cq_loading *loading);
  void (*take)(cudaStream_t stream, int32_t blocks, const cq_taking *taking);   // of scenes of another rollout
  void (*store_state)(cudaStream_t stream, int32_t blocks, const cq_storing *storing);
  void (*store_params_adj)(cudaStream_t stream, int32_t blocks, const cq_storing *storing);
  void (*discount)(cudaStream_t stream, int32_t blocks, void *adj, int64_t count, double factor);   // of the live state
  void (*norm)(cudaStream_t stream, int32_t blocks, const cq_norming *norming);   // and the limit to it

  // From the controls to stresses and forces of particles; and back, to the gradients of signals, weights and forces.
  // actuation lies in device memory.
  void (*load_actuation)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation);
  void (*load_actuation_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation);

  // Cables in state k, a block for each scene: adds their pull to the forces of particles; and its adjoint, after
  // p2g_adj of substep k.
  void (*pull_cables)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation,
                      int32_t k);
  void (*pull_cables_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation,
                          int32_t k);

  // Total Lagrangian steps (shapes.h). reference_begin: masses and the first state of nodes, from particles. observe:
  // particles of a state. settle: what readouts gave to particles, adj, goes to the nodes. finish: from the adjoint of
  // the first state to adj and the masses of params_adj, of the particles that were given.
  void (*reference_begin)(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes, const cq_given_particles *given,
                          void *state);
  void (*reference_observe)(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes, const void *state, void *to);
  void (*reference_settle)(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes, const void *state, void *adj);
  void (*reference_finish)(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes,
                           const cq_given_particles *given, const void *state);
  // An engine step: collisions, forces of cells, then the nodes; impulses where they are wanted; do surfaces meet after
  // it? k -1: before the first step. pulled: places of the particles of cables in state k.
  void (*repel)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*cell_forces)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*node_move)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*node_impulse)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*touch)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*reference_pulled)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation,
                           int32_t k);
  // Backward: nodes, then collisions and cells. given: vector fields that the arenas hold, and which are added to the
  // adjoint of nodes by node_move_adj or node_collect. cell_settle: what cables gave to the particles of state k.
  void (*node_move_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k, int32_t given);
  void (*repel_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*cell_forces_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*cell_settle)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*node_collect)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t given);

  // readouts of the live state and their adjoints; weights: only the total weight of each group
  void (*read)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
  void (*read_weights)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
  void (*read_adj)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
} cq_cuda_kernels;

// weak: a developer's build (make cuda KERNELS=2.4) holds some of them only, and the addresses of the others are NULL
#define CQ_CUDA_TABLE extern const __attribute__((weak)) cq_cuda_kernels
CQ_CUDA_TABLE cq_cuda_kernels_2_4, cq_cuda_kernels_2_8, cq_cuda_kernels_3_4, cq_cuda_kernels_3_8;

#endif
