// blas: kernels of OpenBLAS for a processor that it does not know. An OpenBLAS that is older than the processor takes
// those of 2004: slow, and their sums depend on where an array lies in memory, so that a training repeated is another
// one. It chooses once, while it is loaded, by an environment variable.
#include "host.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *openblas_get_corename(void);

#if defined(__x86_64__)
// OpenBLAS' name of the kernels that suit this processor best; NULL to leave the choice to OpenBLAS.
static const char *best_kernels(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : NULL;
}
#else
// NULL: on other processors the choice is left to OpenBLAS.
static const char *best_kernels(void) { return NULL; }
#endif

// Starts the program again with OPENBLAS_CORETYPE set, if OpenBLAS does not know the processor and the variable is not
// set: OpenBLAS chooses its kernels while it is loaded. Returns if there is nothing to do, or if that fails.
void cq_host_choose_blas(const char *executable, char **argv) {
  static const char variable[] = "OPENBLAS_CORETYPE";
  const char *best = best_kernels();
  if (!best || getenv(variable) || strcmp(openblas_get_corename(), "Prescott") != 0) return;
  if (setenv(variable, best, 1)) return;
  execv(executable, argv);   // where that fails, the program goes on as it is
}
