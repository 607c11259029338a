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
  // Hides the value of an int from the compiler, which then keeps nothing computed from it in registers from one turn
  // of a loop to the next.
  #define CQ_OPAQUE(x) asm volatile("" : "+r"(x))
  #define CQ_ROLLED _Pragma("unroll 1")
  #define CQ_UNROLLED _Pragma("unroll")
  // A loop that waits for memory: the loads of 16 turns are issued before the first one is used.
  #define CQ_UNROLLED_16 _Pragma("unroll 16")
  // a pointer that was read from memory: of the device's, not of a block's
  #define CQ_GLOBAL(p) __builtin_assume(__isGlobal(p))
  // A pointer argument that points to shared memory.
  #define CQ_BLOCKS_OWN(p) __builtin_assume(__isShared(p))
  // of doubles, rounded before anything is added to it
  #define CQ_PRODUCT(a, b) __dmul_rn(a, b)

// A barrier of all blocks of a cooperative launch. Behind it a thread sees all that other threads wrote before it. It
// is a counter in global memory. In each round the blocks add 2^31 in all, so that the last one flips the highest bit,
// the other bits return to their values, and the counter needs no reset. The first thread of a block arrives for the
// block: __syncthreads before and after it orders the writes and reads of the other threads.
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

// Launches a kernel on a stream. A failure is reported by cq_cuda_check; until then no other kernel is launched,
// because its input was not computed.
#define CQ_LAUNCH(kernel, blocks, threads, stream, ...)                                               \
  do {                                                                                                \
    if (cudaPeekAtLastError() == cudaSuccess) CQ_START(kernel, blocks, threads, stream, __VA_ARGS__); \
  } while (0)

#define CQ_KERNEL static __global__ void
#define CQ_GPU static __device__ __forceinline__
// A device function that is never inlined: for code that few threads reach, or that is large. Inlined, its registers
// would lower the occupancy of the whole kernel.
#define CQ_RARE [[maybe_unused]] static __device__ CQ_NOINLINE

// Reads a word that other threads may write at the same time: from memory at each call, and whole.
template <class T> CQ_GPU T load_volatile(const T *from) { return *(const volatile T *)from; }
// Writes a word that other threads may read at the same time: to memory at each call, and whole.
template <class T> CQ_GPU void store_volatile(T *to, const T value) { *(volatile T *)to = value; }

// Returns CQ_OK, or for a failed CUDA call a status and a sentence with a remedy. what: the work that failed.
cq_status cq_cuda_check(cudaError_t error, const char *what);

#endif
