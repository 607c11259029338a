// object: the build number of the shared object, and the GPUs of the machine, for a program that has no world yet.
#include "../engine/backend/backend.h"
#include "launch.h"
#include <stdio.h>
#include <string.h>

// The ABI number of this shared object's build, which the program compares with its own number (cq_backend_abi).
int64_t cq_backend_cuda_abi(void) { return cq_backend_abi(); }

// Fills gpu with the properties of GPU number `index`, from 0: name, memory, processors, versions. CQ_OK, or CQ_DEVICE
// if there is no such GPU. The GPU that CUDA uses stays the same.
cq_status cq_backend_cuda_gpu(int32_t index, cq_gpu *gpu) {
  memset(gpu, 0, sizeof *gpu);
  int count = 0;
  cq_status status = cq_cuda_check(cudaGetDeviceCount(&count), "looking for a GPU");
  if (status) return status;
  if (index < 0 || index >= count) return cq_fail(CQ_DEVICE, "there is no GPU %d; this machine has %d", index, count);
  cudaDeviceProp found;
  status = cq_cuda_check(cudaGetDeviceProperties(&found, index), "asking a GPU what it is");
  int driver = 0, runtime = 0, before = 0;
  if (!status) status = cq_cuda_check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  if (!status) status = cq_cuda_check(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  if (!status) status = cq_cuda_check(cudaGetDevice(&before), "asking which GPU is used");
  if (status) return status;
  size_t available = 0, total = 0;
  status = cq_cuda_check(cudaSetDevice(index), "taking a GPU");
  if (!status) status = cq_cuda_check(cudaMemGetInfo(&available, &total), "asking a GPU for its memory");
  // worlds may be on the one before, whatever became of this one
  const cudaError_t back = before != index ? cudaSetDevice(before) : cudaSuccess;
  if (!status) status = cq_cuda_check(back, "taking a GPU");
  if (status) return status;
  snprintf(gpu->name, sizeof gpu->name, "%s", found.name);
  gpu->memory = (int64_t)found.totalGlobalMem;
  gpu->memory_available = (int64_t)available;
  gpu->processors = found.multiProcessorCount;
  gpu->compute = found.major * 10 + found.minor;
  gpu->driver = driver;
  gpu->runtime = runtime;
  gpu->count = count;
  return CQ_OK;
}
