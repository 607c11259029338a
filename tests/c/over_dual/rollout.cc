// rollout: kernels over dual numbers in 2D and in 3D, and what compares whole rollouts of them with the product's. Of
// all tests their object takes longest to compile; two programs share it.
extern "C" {
#include "api/world.h"
#include "cpu/kernels.h"
}

#include "../check.h"
#include "../dual.h"
typedef dual_of<double> dual;
#include "../dual_lame.h"
#include "../rollout_dual.h"
#include <vector>

#define CQ_REAL_DUAL
#define CQ_REAL_BYTES 16
#define CQ_SIMD 1

#define CQ_DIM 2
namespace plane {
#include "rollout.inl"
}
#undef CQ_DIM
#undef CQ_LANES_H
#undef CQ_ROWS_H
#undef CQ_REAL_H
#define CQ_DIM 3
namespace space {
#include "rollout.inl"
}

int dual_report(void) { return check_report(); }
