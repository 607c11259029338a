// A shared object as the loader must refuse it: that of another build.
#include "backend/backend.h"

const cq_backend *cq_backend_cuda(void) { return 0; }
int64_t cq_backend_cuda_abi(void) { return cq_backend_abi() + 1; }
cq_status cq_backend_cuda_gpu(int32_t index, cq_gpu *gpu) {
  (void)index, (void)gpu;
  return CQ_OK;
}
