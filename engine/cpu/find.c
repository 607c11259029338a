// Chooses the kernels for this machine.
#include "kernels.h"

#define CQ_TABLES(level) cq_kernels_2_4_##level, cq_kernels_2_8_##level, cq_kernels_3_4_##level, cq_kernels_3_8_##level
extern const cq_kernels CQ_TABLES(1);
#if defined(__x86_64__)
extern const cq_kernels CQ_TABLES(3);
extern const cq_kernels CQ_TABLES(4);
#endif

static const cq_kernels *pick(int32_t dim, int32_t precision, const cq_kernels *const tables[4]) {
  return tables[(dim == 3) * 2 + (precision == CQ_FLOAT64)];
}

const cq_kernels *cq_kernels_find(int32_t dim, int32_t precision, int32_t simd) {
  static const cq_kernels *const baseline[4] = {&cq_kernels_2_4_1, &cq_kernels_2_8_1, &cq_kernels_3_4_1, &cq_kernels_3_8_1};
#if defined(__x86_64__)
  static const cq_kernels *const avx2[4] = {&cq_kernels_2_4_3, &cq_kernels_2_8_3, &cq_kernels_3_4_3, &cq_kernels_3_8_3};
  static const cq_kernels *const avx512[4] = {&cq_kernels_2_4_4, &cq_kernels_2_8_4, &cq_kernels_3_4_4, &cq_kernels_3_8_4};
  const int has3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const int has4 = has3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (has4 && (simd == 0 || simd == 4)) return pick(dim, precision, avx512);
  if (has3 && (simd == 0 || simd == 3)) return pick(dim, precision, avx2);
#endif
  return simd == 0 || simd == 1 ? pick(dim, precision, baseline) : NULL;
}
