// The table of laws, and the functions of them that the host calls in double.
#include <math.h>
#include <stddef.h>

#define CQ_DIM 3
#define CQ_LAW_TABLE
typedef double real, Real;
#define r_sqrt sqrt
#define r_exp exp
#define r_log log
static inline double r_pick(double c, double a, double b) { return c > 0 ? a : b; }
#pragma GCC diagnostic ignored "-Wpedantic"   // const of arrays of arrays, as in the kernels
#include "../math/real.h"
#include "../math/matrix.inl"
#include "../math/polar.inl"
#include "material.inl"

const cq_law *cq_law_of(int32_t kind) {
  switch (kind) {
#define CQ_LAW_CASE(ID, law, meaning) case CQ_MATERIAL_##ID: return &law##_law;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  return NULL;
}
