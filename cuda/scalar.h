// scalar: Real for a thread of the GPU is one real; the functions over it that math and physics
// ask for (engine/math/real.h).
#ifndef CQ_CUDA_SCALAR_H
#define CQ_CUDA_SCALAR_H

#include "launch.h"
#include <math.h>

#if CQ_REAL_BYTES == 4
typedef float real;
#define s_sqrt sqrtf
#define s_log logf
#define s_exp expf
#define s_floor floorf
#else
typedef double real;
#define s_sqrt sqrt
#define s_log log
#define s_exp exp
#define s_floor floor
#endif

typedef real Real;
typedef double wide;
#define w_sqrt sqrt
#define w_exp exp
#define w_atan2 atan2
#define s_value(x) (x)
#define r_set(x) ((Real)(x))
#define r_sqrt s_sqrt
#define r_log s_log
#define r_exp s_exp
#define r_floor s_floor
#define r_abs(x) ((x) < 0 ? -(x) : (x))
#define r_max(a, b) ((a) > (b) ? (a) : (b))
#define r_pick(c, a, b) ((c) > 0 ? (a) : (b))

#endif
