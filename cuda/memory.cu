// memory: a pool of device memory, which keeps freed blocks for the next request of their size; and the sentences of
// failed calls.
#include "memory.h"

static const size_t UNIT = 256;             // sizes are rounded up to a multiple of it [bytes]
static const size_t PIECE = 32 << 20;       // smallest piece that is asked of CUDA [bytes]
static const size_t PIECE_MOST = 1 << 30;   // largest, unless one request needs more

struct cq_piece {
  char *data;
  size_t bytes, carved;
  int64_t used;                             // requests that lie in it now
  cq_piece *next;
};

// ---- sentences ------------------------------------------------------------------------------------------------------

// Returns CQ_DEVICE with a sentence: the NVIDIA driver is missing, older than the CUDA that this build needs, or its
// parts do not fit together. text: CUDA's description of the error.
static cq_status fail_driver(const char *text) {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    cudaGetLastError();
  if (!driver)
    return cq_fail(CQ_DEVICE, "no NVIDIA driver was found on this machine: install one, or take the device \"cpu\"");
  // after an update of the driver, until the machine starts again
  if (driver >= runtime)
    return cq_fail(
        CQ_DEVICE,
        "the parts of the NVIDIA driver do not fit together (%s): restart the machine, or take the device \"cpu\"",
        text);
  return cq_fail(
      CQ_DEVICE,
      "the NVIDIA driver serves CUDA %d.%d; this build needs %d.%d: update the driver, or take the device \"cpu\"",
      driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

// Returns CQ_DEVICE with a sentence: this build has no kernels for the GPU. text: CUDA's description of the error.
static cq_status fail_kernels(const char *text) {
  cudaDeviceProp gpu;
  if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) {
    cudaGetLastError();
    return cq_fail(
        CQ_DEVICE,
        "this build has no kernels for the GPU (%s): build for it with `make cuda`, or take the device \"cpu\"", text);
  }
  return cq_fail(
      CQ_DEVICE,
      "this build has no kernels for the GPU, %s of compute capability %d.%d (%s): `make cuda CUDA_ARCHS=%d%d` builds "
      "them, or take the device \"cpu\"",
      gpu.name, gpu.major, gpu.minor, text, gpu.major, gpu.minor);
}

// Turns the result of a CUDA call into a status: CQ_OK, or CQ_MEMORY or CQ_DEVICE with a sentence that says a remedy;
// clears CUDA's error. what: the work that failed, for the sentence.
cq_status cq_cuda_check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return CQ_OK;
  cudaGetLastError();   // clears the error, which the next launch would report again
  const char *text = cudaGetErrorString(error), *name = cudaGetErrorName(error);
  switch (error) {
    case cudaErrorMemoryAllocation:
      return cq_fail(
          CQ_MEMORY,
          "out of memory: the GPU has none left for %s: end other programs that use it, or take the device \"cpu\"",
          what);
    case cudaErrorInsufficientDriver: case cudaErrorCallRequiresNewerDriver: case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return fail_driver(text);
    case cudaErrorNoDevice: case cudaErrorInvalidDevice:
      return cq_fail(CQ_DEVICE,
                     "no GPU was found (%s): is it hidden by CUDA_VISIBLE_DEVICES? Or take the device \"cpu\"", text);
    case cudaErrorInitializationError: case cudaErrorOperatingSystem: case cudaErrorSystemNotReady:
      return cq_fail(CQ_DEVICE,
                     "the GPU cannot be used (%s): does nvidia-smi show it as well? Or take the device \"cpu\"", text);
    case cudaErrorDevicesUnavailable: case cudaErrorMpsServerNotReady: case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return cq_fail(CQ_DEVICE,
                     "the GPU is busy, or another program has it to itself (%s): wait, or take the device \"cpu\"",
                     text);
    case cudaErrorNoKernelImageForDevice: case cudaErrorUnsupportedPtxVersion: case cudaErrorInvalidDeviceFunction:
      return fail_kernels(text);
    case cudaErrorLaunchTimeout:
      return cq_fail(
          CQ_DEVICE,
          "%s took longer than the driver lets a GPU with a display work: use another GPU, or the device \"cpu\"",
          what);
    // after one of these errors all later calls return it
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace: case cudaErrorInvalidPc: case cudaErrorMpsClientTerminated:
      return cq_fail(CQ_DEVICE, "the GPU was lost during %s: %s (%s); start the program again", what, text, name);
    default:
      return cq_fail(CQ_DEVICE, "%s failed on the GPU: %s (%s); start the program again, or take the device \"cpu\"",
                     what, text, name);
  }
}

// Returns CQ_MEMORY with a sentence: `bytes` bytes for `what` cannot be allocated; it says how much memory is free.
static cq_status fail_memory(const cq_pool *pool, size_t bytes, const char *what) {
  const double mebibyte = 1 << 20;
  size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) cudaGetLastError();
  return cq_fail(
      CQ_MEMORY,
      "out of memory: %s would take %.1f MiB; of the %.0f MiB of the GPU %.1f are free and %.1f are this world's: end "
      "other programs that use it, let the memo take less, or take the device \"cpu\"",
      what, (double)bytes / mebibyte, (double)total / mebibyte, (double)available / mebibyte,
      (double)pool->bytes / mebibyte);
}

// ---- pool -----------------------------------------------------------------------------------------------------------

// Rounds *bytes up to the next block size of the pool, of which there are eight between a power of two and the next,
// and returns the index of the free list (bin) of that size.
static int32_t bin_of(size_t *bytes) {
  size_t units = *bytes ? (*bytes + UNIT - 1) / UNIT : 1;
  int32_t shift = 0;
  while (units >> shift >= 16) shift++;
  units = (units + ((size_t)1 << shift) - 1) >> shift;
  if (units == 16) {
    units = 8;
    shift++;
  }
  *bytes = (units << shift) * UNIT;
  return shift * 16 + (int32_t)units;
}

// Takes a free block off the list of a bin; NULL: the list is empty.
static cq_memory *pop(cq_pool *pool, int32_t bin) {
  cq_memory *memory = pool->bins[bin];
  if (memory) pool->bins[bin] = memory->next;
  return memory;
}

// Returns to CUDA the pieces of the pool of which no part is in use.
static void trim(cq_pool *pool) {
  for (int32_t bin = 0; bin < CQ_POOL_BINS; bin++)
    for (cq_memory **at = &pool->bins[bin]; *at;) {
      cq_memory *memory = *at;
      if (memory->piece->used) {
        at = &memory->next;
        continue;
      }
      *at = memory->next;
      cq_free(memory);
    }
  for (cq_piece **at = &pool->pieces; *at;) {
    cq_piece *piece = *at;
    if (piece->used) {
      at = &piece->next;
      continue;
    }
    *at = piece->next;
    pool->bytes -= piece->bytes;
    if (cudaFree(piece->data) != cudaSuccess) cudaGetLastError();   // the device is lost, and its memory with it
    cq_free(piece);
  }
}

// Allocates one more piece of `bytes` bytes of device memory with cudaMalloc, from which the pool cuts blocks.
static cq_status add_piece(cq_pool *pool, size_t bytes, const char *what) {
  cq_piece *piece = (cq_piece *)cq_alloc(1, sizeof *piece, what);
  if (!piece) return CQ_MEMORY;
  const cudaError_t error = cudaMalloc((void **)&piece->data, bytes);
  if (error != cudaSuccess) {
    cq_free(piece);
    return cq_cuda_check(error, what);
  }
  piece->bytes = bytes;
  piece->next = pool->pieces;
  pool->pieces = piece;
  pool->bytes += bytes;
  return CQ_OK;
}

// Sets *out to a new block of `bytes` bytes, the size of `bin`, cut from a piece that has room for it; gets another
// piece from CUDA if none has. what: for the sentence of an error.
static cq_status carve(cq_pool *pool, size_t bytes, int32_t bin, const char *what, cq_memory **out) {
  cq_piece *piece = pool->pieces;
  while (piece && piece->bytes - piece->carved < bytes) piece = piece->next;
  if (!piece) {
    size_t wanted = pool->bytes / 4 < PIECE_MOST ? pool->bytes / 4 : PIECE_MOST;
    if (wanted < PIECE) wanted = PIECE;
    cq_status status = add_piece(pool, bytes > wanted ? bytes : wanted, what);
    // Unused pieces go back to CUDA last: they will be needed again, and another program may have taken them by then.
    if (status == CQ_MEMORY && bytes < wanted) status = add_piece(pool, bytes, what);
    if (status == CQ_MEMORY) {
      trim(pool);
      status = add_piece(pool, bytes, what);
    }
    if (status) return status;
    piece = pool->pieces;
  }
  cq_memory *memory = (cq_memory *)cq_alloc(1, sizeof *memory, what);
  if (!memory) return CQ_MEMORY;
  memory->data = piece->data + piece->carved;
  memory->bytes = bytes;
  memory->bin = bin;
  memory->piece = piece;
  piece->carved += bytes;
  *out = memory;
  return CQ_OK;
}

// Sets *out to a block of at least `bytes` bytes of device memory, not zeroed; to NULL on failure. what: noun for the
// sentence of an error, e.g. "state slice".
cq_status cq_pool_take(cq_pool *pool, size_t bytes, const char *what, cq_memory **out) {
  *out = NULL;
  const size_t asked = bytes;
  const int32_t bin = bin_of(&bytes);
  if (bin >= CQ_POOL_BINS) return fail_memory(pool, asked, what);
  cq_memory *memory = pop(pool, bin);
  cq_status status = memory ? CQ_OK : carve(pool, bytes, bin, what, &memory);
  // a larger one is better than none
  for (int32_t larger = bin + 1; status == CQ_MEMORY && larger < CQ_POOL_BINS; larger++) {
    memory = pop(pool, larger);
    if (memory) status = CQ_OK;
  }
  if (status) return status == CQ_MEMORY ? fail_memory(pool, asked, what) : status;
  memory->next = NULL;
  memory->piece->used++;
  pool->used += memory->bytes;
  *out = memory;
  return CQ_OK;
}

// Returns a block to the pool, which keeps it for the next request of its size. NULL: does nothing.
void cq_pool_give(cq_pool *pool, cq_memory *memory) {
  if (!memory) return;
  memory->piece->used--;
  pool->used -= memory->bytes;
  memory->next = pool->bins[memory->bin];
  pool->bins[memory->bin] = memory;
}

// Makes sure that *memory is a block of at least `bytes` bytes. A smaller one is replaced by a new one, with a quarter
// to spare, and its contents are lost. NULL on failure. what: for the sentence.
cq_status cq_pool_reserve(cq_pool *pool, cq_memory **memory, size_t bytes, const char *what) {
  if (*memory && (*memory)->bytes >= bytes) return CQ_OK;
  const size_t room = *memory ? bytes + bytes / 4 : bytes;
  cq_pool_give(pool, *memory);
  *memory = NULL;
  return cq_pool_take(pool, room, what, memory);
}

// Returns the pieces of a pool to CUDA; all blocks were given back before.
void cq_pool_close(cq_pool *pool) { trim(pool); }

// ---- memory of the host ---------------------------------------------------------------------------------------------

// Sets *out to `bytes` bytes of page-locked host memory, which the GPU can copy to and from asynchronously; to NULL on
// failure. what: for the sentence of an error.
cq_status cq_pinned_take(size_t bytes, const char *what, void **out) {
  *out = NULL;
  const cudaError_t error = cudaMallocHost(out, bytes);
  if (error != cudaErrorMemoryAllocation) return cq_cuda_check(error, what);
  cudaGetLastError();
  return cq_fail(
      CQ_MEMORY,
      "out of memory: the host has no %.1f MiB that the GPU may read for %s: end other programs, or allow more locked "
      "memory (ulimit -l)",
      (double)bytes / (1 << 20), what);
}

// Frees page-locked host memory. NULL: does nothing.
void cq_pinned_give(void *memory) {
  if (memory && cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
}
