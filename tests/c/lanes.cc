// The functions over Real that are not a compiler's own, and the decompositions, over the vectors of each instruction
// set: against the C library, and against what they were made from. Stretches are equal, close, and fifteen orders of
// magnitude apart.
#include "check.h"
#include <math.h>
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wpedantic"   // the engine is C

static uint64_t seed = 88172645463325252u;
static double uniform(double low, double high) {   // xorshift
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

#define CQ_DIM 3
#define CQ_REAL_BYTES 8
#define CQ_SIMD 4
namespace double_512 {
#include "lanes.inl"
}
#undef CQ_SIMD
#define CQ_SIMD 1
namespace double_128 {
#include "lanes.inl"
}
#undef CQ_REAL_BYTES
#define CQ_REAL_BYTES 4
namespace float_128 {
#include "lanes.inl"
}
#undef CQ_SIMD
#define CQ_SIMD 3
#undef CQ_DIM
#define CQ_DIM 2
namespace float_256 {
#include "lanes.inl"
}

int main(void) {
  double_512::all("double of 512 bits");
  double_128::all("double of 128 bits");
  float_128::all("float of 128 bits");
  float_256::all("float of 256 bits, in 2D");
  return check_report();
}
