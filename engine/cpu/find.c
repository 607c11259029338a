// find: chooses the table of kernels for this machine. A developer's build (make KERNELS=2.4) holds some of the tables
// only: each is declared weak, so that the address of one that was not built is NULL.
#include "kernels.h"

#define CQ_TABLE(dim, bytes, level) extern const cq_kernels cq_kernels_##dim##_##bytes##_##level __attribute__((weak));
#define CQ_TABLES(level) CQ_TABLE(2, 4, level) CQ_TABLE(2, 8, level) CQ_TABLE(3, 4, level) CQ_TABLE(3, 8, level)
CQ_TABLES(1)
CQ_TABLES(3)
CQ_TABLES(4)

enum { LEVELS = 3 };
static const int32_t level_of[LEVELS] = {4, 3, 1};   // best first

// The tables of kernels of a dimension and precision (CQ_FLOAT32, CQ_FLOAT64), {LEVELS} one for each instruction set,
// best first; an entry is NULL if it was not built.
static const cq_kernels *const *tables(int32_t dim, int32_t precision) {
  static const cq_kernels *const all[4][LEVELS] = {
      {&cq_kernels_2_4_4, &cq_kernels_2_4_3, &cq_kernels_2_4_1},
      {&cq_kernels_2_8_4, &cq_kernels_2_8_3, &cq_kernels_2_8_1},
      {&cq_kernels_3_4_4, &cq_kernels_3_4_3, &cq_kernels_3_4_1},
      {&cq_kernels_3_8_4, &cq_kernels_3_8_3, &cq_kernels_3_8_1},
  };
  return all[(dim == 3) * 2 + (precision == CQ_FLOAT64)];
}

// Returns 1 if this processor can run a level of kernels, else 0. Level 1 needs nothing, 3 AVX2, 4 AVX-512.
static int machine_has(int32_t level) {
#if defined(__x86_64__)
  const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (level == 3) return avx2;
  if (level == 4)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#endif
  return level == 1;
}

// Returns the best table of kernels that this build and this machine have for a dimension and a precision (CQ_FLOAT32,
// CQ_FLOAT64). simd: 0, or the level of instructions that it must be for (cq_world_def.simd). NULL: there is none.
const cq_kernels *cq_kernels_find(int32_t dim, int32_t precision, int32_t simd) {
  const cq_kernels *const *built = tables(dim, precision);
  for (int k = 0; k < LEVELS; k++)
    if ((simd == 0 || simd == level_of[k]) && built[k] && machine_has(level_of[k])) return built[k];
  return NULL;
}

// Sets *out to the best table of kernels for a model on this machine. CQ_OK, or CQ_INVALID and a sentence that says
// what this machine or this build lacks.
cq_status cq_kernels_choose(const cq_model *m, const cq_kernels **out) {
  *out = cq_kernels_find(m->dim, m->precision, m->simd);
  if (*out) return CQ_OK;
  if (m->simd && !machine_has(m->simd))
    return cq_fail(CQ_INVALID, "simd level %d is not one of this machine; 0 takes the best, 1 is the baseline",
                   m->simd);
  const cq_kernels *const *built = tables(m->dim, m->precision);
  const int bytes = m->precision == CQ_FLOAT64 ? 8 : 4;
  if (!built[0] && !built[1] && !built[2])
    return cq_fail(CQ_INVALID,
                   "this build has no %dD float%d kernels: `make` builds all kernels, `make KERNELS=%d.%d` these alone",
                   m->dim, bytes * 8, m->dim, bytes);
  return cq_fail(CQ_INVALID,
                 "this build's %dD float%d kernels are not for %s: `make` builds them for all instruction sets", m->dim,
                 bytes * 8, m->simd ? "the simd level that was asked for" : "this machine");
}
