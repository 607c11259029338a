// launch: the few words in which a kernel meets the machine, so that the same source runs on a GPU and, in the tests, under a
// host emulation: there an include path ahead of the toolkit's provides <cuda_runtime.h>, with fibers for threads.
#ifndef CQ_CUDA_LAUNCH_H
#define CQ_CUDA_LAUNCH_H

#include <cuda_runtime.h>
#include "../engine/base/base.h"

#if defined(__CUDACC__)
// a kernel on a stream; what fails shows at cq_cuda_check
#define CQ_LAUNCH(kernel, blocks, threads, stream, ...) kernel<<<(unsigned)(blocks), (unsigned)(threads), 0, stream>>>(__VA_ARGS__)
// an array that the threads of a block share
#define CQ_SHARED(type, name, count) __shared__ type name[count]
#define CQ_NOINLINE __noinline__
// hides where an int comes from, so that what follows from it is not kept in registers from turn to turn of a loop
#define CQ_OPAQUE(x) asm volatile("" : "+r"(x))
#define CQ_ROLLED _Pragma("unroll 1")
// a pointer that was read from memory: of the device's, not of a block's
#define CQ_GLOBAL(p) __builtin_assume(__isGlobal(p))
#else
#define CQ_NOINLINE
#define CQ_OPAQUE(x)
#define CQ_ROLLED
#define CQ_GLOBAL(p)
#endif

#define CQ_KERNEL static __global__ void
#define CQ_GPU static __device__ __forceinline__
// what few threads need: a call keeps its registers and its stack away from all others
#define CQ_RARE static __device__ CQ_NOINLINE

// A word that other threads read and write at the same time: once each time, and where all of them see it.
template <class T> CQ_GPU T load_volatile(const T *from) { return *(const volatile T *)from; }
template <class T> CQ_GPU void store_volatile(T *to, const T value) { *(volatile T *)to = value; }

// Every call of the CUDA runtime goes through here: its failure becomes a sentence that says what to do.
cq_status cq_cuda_check(cudaError_t error, const char *what);

#endif
