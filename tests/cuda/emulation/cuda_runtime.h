// cuda_runtime: the part of the CUDA runtime that cqlua uses, on the host. It stands before the toolkit's on
// the include path of tests, so that the sources of the device compile with a plain C++ compiler and run
// without a GPU: kernels in kernel.h, calls of the host below. Errors have the numbers of the toolkit. One
// thread of the host calls at a time.
#ifndef CQ_EMULATION_CUDA_RUNTIME_H
#define CQ_EMULATION_CUDA_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include "kernel.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorCallRequiresNewerDriver = 36,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorContained = 226,
  cudaErrorOperatingSystem = 304,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotSupported = 801,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorCompatNotSupportedOnDevice = 804,
  cudaErrorMpsServerNotReady = 807,
  cudaErrorMpsMaxClientsReached = 808,
  cudaErrorMpsMaxConnectionsReached = 809,
  cudaErrorMpsClientTerminated = 810,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorUnknown = 999,
};
typedef cudaError_t cudaError;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor,
      maxBlocksPerMultiProcessor;
  int major, minor, multiProcessorCount, l2CacheSize, concurrentKernels, ECCEnabled, unifiedAddressing;
  int pciBusID, pciDeviceID, pciDomainID, integrated, cooperativeLaunch;
};

typedef struct cq_emulated_stream *cudaStream_t;
typedef struct cq_emulated_event *cudaEvent_t;
typedef struct cq_emulated_graph *cudaGraph_t;
typedef struct cq_emulated_exec *cudaGraphExec_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaLaunchAttributeID { cudaLaunchAttributeCooperative = 2 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct { int cooperative; } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum {
  cudaDeviceScheduleAuto = 0,
  cudaDeviceScheduleSpin = 1,
  cudaDeviceScheduleYield = 2,
  cudaDeviceScheduleBlockingSync = 4
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
template <class T> cudaError_t cudaMalloc(T **memory, size_t bytes) { return cudaMalloc((void **)memory, bytes); }
template <class T> cudaError_t cudaMallocHost(T **memory, size_t bytes) {
  return cudaMallocHost((void **)memory, bytes);
}
template <class T> cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned flags) {
  return cudaHostAlloc((void **)memory, bytes, flags);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace emulation {
int blocks_of(int threads);   // that fit on a multiprocessor
// how a launch has its blocks, and whether the machine can
cudaError_t find_company(const cudaLaunchConfig_t *config, company *with);
cudaError_t function_call(const char *name);
}

template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads, size_t) {
  *blocks = emulation::blocks_of(threads);
  return emulation::function_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

// ---- the words of cuda/launch.h -------------------------------------------------------------------------------------

namespace emulation {
struct launched {
  const char *name;
  unsigned blocks, threads;
  company with;
  bool flushes;               // denormals, as nvcc's -ftz=true does in float32
};
cudaError_t enqueue_launch(const launched &what, cudaStream_t stream, std::function<void()> body);

// arguments are taken now, the kernel runs when the stream gets there
template <class... P, class... A>
void launch(const launched &what, cudaStream_t stream, void (*kernel)(P...), A... arguments) {
  enqueue_launch(what, stream, [kernel, packed = std::tuple<P...>(arguments...)] { std::apply(kernel, packed); });
}

template <class... P, class... A>
cudaError_t launch_together(bool flushes, const cudaLaunchConfig_t *config, void (*kernel)(P...), A... arguments) {
  company with;
  const cudaError_t error = find_company(config, &with);
  if (error) return error;
  return enqueue_launch({"a kernel whose blocks work together", config->gridDim.x, config->blockDim.x, with, flushes},
                        config->stream,
                        [kernel, packed = std::tuple<P...>(arguments...)] { std::apply(kernel, packed); });
}
}

// The kernels of float32 flush all that is denormal. On a GPU their few doubles are not flushed, nor are those of
// other kernels.
#if defined(CQ_REAL_BYTES) && CQ_REAL_BYTES == 4
#define CQ_EMULATED_FLUSH true
#else
#define CQ_EMULATED_FLUSH false
#endif
#define cudaLaunchKernelEx(...) emulation::launch_together(CQ_EMULATED_FLUSH, __VA_ARGS__)

#define CQ_START(kernel, blocks, threads, stream, ...)                                                                 \
  emulation::launch({#kernel, (unsigned)(blocks), (unsigned)(threads), emulation::company::none, CQ_EMULATED_FLUSH},   \
                    stream, kernel, __VA_ARGS__)

#endif
