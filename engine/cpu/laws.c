// laws: the laws of materials, compiled for each CQ_DIM, CQ_REAL_BYTES and CQ_SIMD as kernels.c is, and apart from it.
// A change in a law without a fused form compiles this alone, in a quarter of the time.
#include "lanes.h"
#include "laws.h"

#include "../base/base.h"
#include "../math/real.h"
#include "../math/matrix.inl"
#include "../math/polar.inl"
#include "../math/eigen.inl"
#include "../physics/material.inl"
