// real: what math and physics are written over. Before including any .inl of these rooms, an instantiation defines
//   CQ_DIM  2 or 3
//   real    the scalar type of storage: float, double, or a dual number in C++ tests
//   Real    the type of arithmetic: real itself, or a vector of reals with element-wise operators (engine/cpu/lanes.h)
//   wide   the type of sums whose cancellation float could not bear: double, or a dual number in C++ tests; w_sqrt,
//   w_exp, w_atan2
// and the functions over Real: r_set(real), r_log, r_exp, r_sqrt, r_floor, r_abs, r_max(a, b), r_pick(c, a, b) = c > 0
// ? a : b. Operators may mix Real and real. Code over Real has no branches on values, but for r_any(c), whether a lane
// of c is above 0, which a vector defines.
#ifndef CQ_REAL_H
#define CQ_REAL_H

#if CQ_DIM != 2 && CQ_DIM != 3
#error "define CQ_DIM as 2 or 3 before including math and physics"
#endif

#if defined(__CUDACC__)
#define CQ_INLINE static __device__ __forceinline__
#define CQ_UNROLL _Pragma("unroll")
#define CQ_ROLL _Pragma("unroll 1")
#else
#define CQ_INLINE static inline __attribute__((always_inline, unused))
#define CQ_UNROLL _Pragma("GCC unroll 9")
#define CQ_ROLL _Pragma("GCC unroll 1")
#endif

// A function that is never inlined: it is large, or few particles reach it. Inlined, its registers would slow its
// callers. The CUDA device defines its own (cuda/launch.h).
#if !defined(CQ_RARE)
#define CQ_RARE static __attribute__((noinline, unused))
#endif

// loop over the axes, unrolled so that small matrices stay in registers
#define EACH(i) CQ_UNROLL for (int i = 0; i < CQ_DIM; i++)

enum { CQ_SYM = CQ_DIM * (CQ_DIM + 1) / 2 };   // entries of a symmetric matrix: xx yy xy, or xx yy zz xy xz yz

#endif
