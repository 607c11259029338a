// kernels: what kernels.cu offers the host, one table for each {dimension, precision}. Every function launches on a
// stream and returns at once. blocks: of a launch whose threads walk over all tiles, or all slots, whatever their
// number; so one graph serves every arrangement.
#ifndef CQ_CUDA_KERNELS_H
#define CQ_CUDA_KERNELS_H

#include "frame.h"
#include "launch.h"
#include "tasks.h"

// blocks of a kernel that are on the GPU together, so that they may wait for each other: as one
// cluster, or by a cooperative launch
typedef struct cq_block_group {
  int32_t blocks, cluster;   // cluster: 1 or 0
} cq_block_group;

// how many that may be: of a cooperative launch, of a cluster; 0 where the GPU, or the build for it, has no such thing
typedef struct cq_room {
  int32_t grid, cluster;
} cq_room;

typedef void cq_cuda_resident(cudaStream_t stream, cq_block_group group, const cq_frame *frame, int32_t count);

typedef struct cq_cuda_kernels {
  int32_t dim, real_bytes;
  int32_t round;             // particles that a block goes over at once, backward; forward they are no fewer

  // k: substep. p2g scatters state k; grid makes velocities of it, and impulse reads what walls and pins give in it;
  // g2p2g makes state k + 1 and scatters it; g2p makes state k + 1
  void (*p2g)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*grid)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*impulse)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p2g)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);

  // Backward over the substeps of one arrangement: velocity and g2p_adj of the last one; then, for each, grid_adj,
  // which also makes the velocities of step k - 1 again if more is 1, and p2g_adj; between two of them step_adj is
  // p2g_adj of k and g2p_adj of k - 1.
  void (*velocity)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*g2p_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*grid_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k, int32_t more);
  void (*step_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);
  void (*p2g_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k);

  // all substeps of a run forward, or backward, by one kernel; and how many blocks of these the GPU can have together
  cq_cuda_resident *resident, *resident_adj;
  cudaError_t (*room)(const cudaDeviceProp *gpu, cq_room *forward, cq_room *backward);

  // sorting: box of the tiles, then tile and cell of each particle; moving into another order;
  // from and to the user's arrays
  void (*box)(cudaStream_t stream, int32_t blocks, const cq_sorting *sorting);
  void (*key)(cudaStream_t stream, int32_t blocks, const cq_sorting *sorting);
  void (*move)(cudaStream_t stream, int32_t blocks, const cq_moving *moving);
  void (*load)(cudaStream_t stream, int32_t blocks, const cq_loading *loading);
  void (*store_state)(cudaStream_t stream, int32_t blocks, const cq_storing *storing);
  void (*store_params)(cudaStream_t stream, int32_t blocks, const cq_storing *storing);

  // the controls, with actuation in device memory: to sigma and forces of the frame; back
  // to signals, weights and forces
  void (*load_actuation)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation);
  void (*actuation_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation);

  // cables in state k, a block for each scene: to the forces of the frame; and back, after p2g_adj of k
  void (*pull_cables)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation,
                      int32_t k);
  void (*pull_cables_adj)(cudaStream_t stream, int32_t blocks, const cq_frame *frame, const cq_actuation *actuation,
                          int32_t k);

  // readouts of the live state and their adjoints; weights: only the total weight of each group
  void (*read)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
  void (*read_weights)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
  void (*read_adj)(cudaStream_t stream, int32_t blocks, const cq_reading *reading);
} cq_cuda_kernels;

// weak: a developer's build (make cuda KERNELS=2.4) holds some of them only, and the addresses of the others are NULL
#define CQ_CUDA_TABLE extern const __attribute__((weak)) cq_cuda_kernels
CQ_CUDA_TABLE cq_cuda_kernels_2_4, cq_cuda_kernels_2_8, cq_cuda_kernels_3_4, cq_cuda_kernels_3_8;

#endif
