// launch: the few words in which a kernel meets the machine, so that the same source runs on a GPU and, in
// the tests, under a host emulation: there an include path ahead of the toolkit's provides
// <cuda_runtime.h>, with fibers for threads.
#ifndef CQ_CUDA_LAUNCH_H
#define CQ_CUDA_LAUNCH_H

#include <cuda_runtime.h>
#include "../engine/base/base.h"

#if defined(__CUDACC__)
  #define CQ_START(kernel, blocks, threads, stream, ...)                                                               \
    kernel<<<(unsigned)(blocks), (unsigned)(threads), 0, stream>>>(__VA_ARGS__)
  // an array that the threads of a block share
  #define CQ_SHARED(type, name, count) __shared__ type name[count]
  #define CQ_NOINLINE __noinline__
  // hides where an int comes from, so that what follows from it is not kept in registers from turn to turn of a loop
  #define CQ_OPAQUE(x) asm volatile("" : "+r"(x))
  #define CQ_ROLLED _Pragma("unroll 1")
  #define CQ_UNROLLED _Pragma("unroll")
  // of a loop that waits for memory: so many turns' loads are on their way together
  #define CQ_UNROLLED_16 _Pragma("unroll 16")
  // a pointer that was read from memory: of the device's, not of a block's
  #define CQ_GLOBAL(p) __builtin_assume(__isGlobal(p))
  // one that a call was given: to what the block shares
  #define CQ_BLOCKS_OWN(p) __builtin_assume(__isShared(p))
  // of doubles, rounded before anything is added to it
  #define CQ_PRODUCT(a, b) __dmul_rn(a, b)

// Waits for so many threads of the block, whole warps, that meet at one of its barriers 1 to 15.
static __device__ __forceinline__ void cq_sync_some(int barrier, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Two barriers of all blocks of a launch that has them on the GPU together (kernels.cu): who leaves sees what all wrote
// before they came. The cluster's is the machine's own, from 9.0 on; for an older one nobody makes a cluster.
static __device__ __forceinline__ void cq_sync_cluster(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// That of the grid is a counter in global memory. The blocks add up to 2^31 each time: the last to come turns its
// highest bit, the others are as before, and nobody has to set it back. A block's first thread speaks for it:
// __syncthreads hands on to it, and from it, what the other threads wrote and may read.
static __device__ __forceinline__ void cq_sync_grid(unsigned *arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned part = blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1);
    unsigned before, now;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(part) : "memory");
    for (now = before + part; !((before ^ now) >> 31);)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
  }
  __syncthreads();
}
#else
#define CQ_NOINLINE
#define CQ_OPAQUE(x)
#define CQ_ROLLED
#define CQ_UNROLLED
#define CQ_UNROLLED_16
#define CQ_GLOBAL(p)
#define CQ_BLOCKS_OWN(p)
#define CQ_PRODUCT(a, b) ((a) * (b))
#endif

// A kernel on a stream. What fails shows at cq_cuda_check; until then no other is launched, for it
// would work on what was not made.
#define CQ_LAUNCH(kernel, blocks, threads, stream, ...)                                               \
  do {                                                                                                \
    if (cudaPeekAtLastError() == cudaSuccess) CQ_START(kernel, blocks, threads, stream, __VA_ARGS__); \
  } while (0)

#define CQ_KERNEL static __global__ void
#define CQ_GPU static __device__ __forceinline__
// A device function that is never inlined: for code that few threads reach, or that is large. Inlined, its registers
// would lower the occupancy of the whole kernel.
#define CQ_RARE [[maybe_unused]] static __device__ CQ_NOINLINE

// A word that other threads read and write at the same time: once each time, and where all of them see it.
template <class T> CQ_GPU T load_volatile(const T *from) { return *(const volatile T *)from; }
template <class T> CQ_GPU void store_volatile(T *to, const T value) { *(volatile T *)to = value; }

// Every call of the CUDA runtime goes through here: its failure becomes a sentence that says what to do.
cq_status cq_cuda_check(cudaError_t error, const char *what);

#endif
