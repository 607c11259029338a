// load: finds the shared object of the CUDA device beside the program, and says what to do where there is none.
#include "../engine/backend/backend.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECT "cqlua-cuda.so"

typedef struct object {
  void *handle;
  const cq_backend *backend;
  cq_status (*find_gpu)(int32_t index, cq_gpu *gpu);
} object;

static object loaded;      // once for the process; it stays

// The address of the function with this name in a loaded shared object; NULL if it has none.
static void *find(void *handle, const char *name) { return dlsym(handle, name); }

// Loads the shared object of the CUDA device at `path`, and keeps its functions in `loaded`. CQ_OK, or CQ_DEVICE with a
// sentence if it cannot be loaded, is not a CUDA device of cqlua, or belongs to a different build.
static cq_status open_object(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return cq_fail(CQ_DEVICE, "the CUDA device cannot be loaded (%s): build it again with `make cuda`", dlerror());
  int64_t (*abi)(void);
  const cq_backend *(*backend)(void);
  object o = {.handle = handle};
  // ISO C knows no way from an object pointer to a function
  *(void **)&abi = find(handle, "cq_backend_cuda_abi");
  *(void **)&backend = find(handle, "cq_backend_cuda");
  *(void **)&o.find_gpu = find(handle, "cq_backend_cuda_gpu");
  cq_status status = CQ_OK;
  if (!abi || !backend || !o.find_gpu)
    status = cq_fail(CQ_DEVICE, "%s is no CUDA device of cqlua: build it with `make cuda`", path);
  else if (abi() != cq_backend_abi())
    status =
        cq_fail(CQ_DEVICE, "%s belongs to another build of cqlua: build both again with `make` and `make cuda`", path);
  if (status) {
    dlclose(handle);
    return status;
  }
  o.backend = backend();
  loaded = o;
  return CQ_OK;
}

// Opens the shared object with the CUDA device, if no earlier call has: the file that the environment variable
// CQLUA_CUDA names, else the first one found beside the program, in the folder above it, or where make install puts it.
// CQ_OK or CQ_DEVICE with a sentence.
static cq_status load(void) {
  if (loaded.handle) return CQ_OK;
  const char *chosen = getenv("CQLUA_CUDA");
  if (chosen && *chosen) {
    if (access(chosen, R_OK) != 0)
      return cq_fail(CQ_DEVICE,
                     "CQLUA_CUDA names %s, which cannot be read: name the " OBJECT " that `make cuda` builds", chosen);
    // a name without a folder would be looked for among the system's libraries
    char path[PATH_MAX];
    return open_object(realpath(chosen, path) ? path : chosen);
  }
  // beside the program; above it, for tests; where make install puts it
  static const char *const folders[] = {"", "../", "../lib/cqlua/"};
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  char *slash = strrchr(program, '/');
  if (slash) slash[1] = 0;
  for (size_t k = 0; slash && k < sizeof folders / sizeof *folders; k++) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s" OBJECT, program, folders[k]);
    if (access(path, R_OK) == 0) return open_object(path);
  }
  return cq_fail(CQ_DEVICE, "this cqlua was built without CUDA, there is no " OBJECT
                            " beside it: `make cuda` builds it, with the nvcc of the "
                            "CUDA Toolkit; or take the device \"cpu\"");
}

// Loads the CUDA device, if it is not loaded, and sets *backend to its functions. CQ_OK, or CQ_DEVICE and a sentence.
cq_status cq_cuda_load(const cq_backend **backend) {
  const cq_status status = load();
  if (!status) *backend = loaded.backend;
  return status;
}

// Loads the CUDA device and fills gpu with the properties of GPU number `index`, from 0. CQ_OK, or CQ_DEVICE: none.
cq_status cq_cuda_find_gpu(int32_t index, cq_gpu *gpu) {
  const cq_status status = load();
  return status ? status : loaded.find_gpu(index, gpu);
}
