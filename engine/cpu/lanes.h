// lanes: Real for the CPU, a vector of CQ_LANES reals with element-wise operators, chosen by CQ_REAL_BYTES and CQ_SIMD;
// one lane, so plain C, on compilers without vector extensions. A test may define CQ_REAL_DUAL and its own real before.
#ifndef CQ_LANES_H
#define CQ_LANES_H

#include <math.h>
#include <stdint.h>

#if defined(CQ_REAL_DUAL)
#define CQ_LANES 1
#elif CQ_REAL_BYTES == 4
typedef float real;
#define s_sqrt sqrtf
#define s_log logf
#define s_exp expf
#define s_expm1 expm1f
#define s_floor floorf
#define s_value(x) (x)
#else
typedef double real;
#define s_sqrt sqrt
#define s_log log
#define s_exp exp
#define s_expm1 expm1
#define s_floor floor
#define s_value(x) (x)
#endif

#if defined(CQ_REAL_DUAL)
typedef real wide;
#define w_sqrt s_sqrt
#define w_exp s_exp
#define w_atan2 s_atan2
#else
typedef double wide;
#define w_sqrt sqrt
#define w_exp exp
#define w_atan2 atan2
#endif

#ifndef CQ_LANES
#if !defined(__GNUC__)
#define CQ_LANES 1
#elif CQ_SIMD == 4
#define CQ_LANES (64 / CQ_REAL_BYTES)
#elif CQ_SIMD == 3
#define CQ_LANES (32 / CQ_REAL_BYTES)
#else
#define CQ_LANES 4   // of float a vector of the baseline, of double two
#endif
#endif

#if CQ_LANES == 1

// ISO C before C23 wants no const added to arrays of arrays of scalars; the functions mean it all the same
#pragma GCC diagnostic ignored "-Wpedantic"
typedef real Real;
#define r_set(x) ((Real)(x))
#define r_load(p) (*(p))
#define r_store(p, x) (*(p) = (x))
#define r_sqrt s_sqrt
#define r_log s_log
#define r_exp s_exp
#define r_floor s_floor
// |x|, lane by lane
static inline Real r_abs(Real x) { return x < 0 ? -x : x; }
// The larger of a and b, lane by lane.
static inline Real r_max(Real a, Real b) { return a > b ? a : b; }
// Lane by lane: a where c > 0, else b.
static inline Real r_pick(Real c, Real a, Real b) { return c > 0 ? a : b; }
// The largest of the lanes.
static inline real r_largest(Real x) { return x; }
// The smallest of the lanes.
static inline real r_smallest(Real x) { return x; }
// 1 if all lanes are finite, else 0.
static inline int r_finite(Real x) { return isfinite(s_value(x)) != 0; }

#else

// vectors wider than the machine's are passed between inlined functions only, so no ABI is at stake
#pragma GCC diagnostic ignored "-Wpsabi"
typedef real Real __attribute__((vector_size(CQ_LANES * CQ_REAL_BYTES), may_alias));
#if CQ_REAL_BYTES == 4
typedef int32_t RealBits __attribute__((vector_size(CQ_LANES * CQ_REAL_BYTES)));
#else
typedef int64_t RealBits __attribute__((vector_size(CQ_LANES * CQ_REAL_BYTES)));
#endif
#define R_INLINE static inline __attribute__((always_inline, unused))

// A vector with x in all lanes.
R_INLINE Real r_set(real x) { return x - (Real){0}; }
// CQ_LANES numbers from aligned memory.
R_INLINE Real r_load(const real *p) { return *(const Real *)p; }
// Writes all lanes to aligned memory.
R_INLINE void r_store(real *p, Real x) { *(Real *)p = x; }
// Lane by lane: a where all bits of c are set, b where none is.
R_INLINE Real r_pick_bits(RealBits c, Real a, Real b) { return (Real)((c & (RealBits)a) | (~c & (RealBits)b)); }
// Lane by lane: a where c > 0, else b.
R_INLINE Real r_pick(Real c, Real a, Real b) { return r_pick_bits((RealBits)(c > (Real){0}), a, b); }
// The larger of a and b, lane by lane.
R_INLINE Real r_max(Real a, Real b) { return r_pick_bits((RealBits)(a > b), a, b); }
// |x|, lane by lane
R_INLINE Real r_abs(Real x) { return r_max(x, -x); }

// Square roots of all lanes; the compiler turns the loop into the vector instruction where there is one.
R_INLINE Real r_sqrt(Real x) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  r_store(lane, x);
  for (int i = 0; i < CQ_LANES; i++) lane[i] = s_sqrt(lane[i]);
  return r_load(lane);
}

// floor of each lane; callers keep |x| below 2^24 (a cell coordinate). By conversion to integer and back, but for
// doubles on AVX2, which has no such conversion and an instruction for floor (9: down, without exceptions).
R_INLINE Real r_floor(Real x) {
#if CQ_REAL_BYTES == 8 && CQ_LANES == 4 && defined(__AVX2__)
  return (Real)__builtin_ia32_roundpd256(x, 9);
#else
  const Real t = __builtin_convertvector(__builtin_convertvector(x, RealBits), Real);
  return t - r_pick_bits((RealBits)(t > x), r_set(1), (Real){0});
#endif
}

// log(x) = k log 2 + 2 atanh(s), s = (m - 1) / (m + 1), x = 2^k m with m in [sqrt(1/2), sqrt(2)); for x > 0 and normal.
// The series of atanh is cut where its terms fall below rounding: |s| <= 0.1716.
R_INLINE Real r_log(Real x) {
#if CQ_REAL_BYTES == 4
  const RealBits half_sqrt2 = (RealBits){0} + 0x3f3504f3, one = (RealBits){0} + 0x3f800000;
  const RealBits bits = (RealBits)x + (one - half_sqrt2);
  const RealBits k = (bits >> 23) - 127;
  const Real m = (Real)((bits & 0x007fffff) + half_sqrt2);
  enum { TERMS = 6 };
  const real ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
#else
  const RealBits half_sqrt2 = (RealBits){0} + 0x3fe6a09e667f3bcd, one = (RealBits){0} + 0x3ff0000000000000;
  const RealBits bits = (RealBits)x + (one - half_sqrt2);
  const RealBits k = (bits >> 52) - 1023;
  const Real m = (Real)((bits & 0x000fffffffffffff) + half_sqrt2);
  enum { TERMS = 11 };
  const real ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
#endif
  const Real f = m - (real)1, s = f / (f + (real)2), s2 = s * s, n = __builtin_convertvector(k, Real);
  Real sum = r_set((real)1 / (2 * TERMS + 1));
  for (int i = TERMS - 1; i >= 1; i--) sum = sum * s2 + (real)1 / (2 * i + 1);
  // 2 s = f - s f keeps the leading term exact for x near 1
  return n * ln2_high + (f - (s * f - ((real)2 * s * s2 * sum + n * ln2_low)));
}

// exp(x) = 2^k exp(r), k = round(x / log 2), |r| <= log(2) / 2, by the series up to where its terms fall below
// rounding. Any x is allowed: one too large gives infinity, one too small 0, NaN gives NaN.
R_INLINE Real r_exp(Real x) {
#if CQ_REAL_BYTES == 4
  const int terms = 7, fraction = 23, bias = 127;
  const real low = -110, high = 90, whole = 0x1.8p23f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
#else
  const int terms = 13, fraction = 52, bias = 1023;
  const real low = -760, high = 720, whole = 0x1.8p52;
  const real ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
#endif
  x = r_pick(low - x, r_set(low), r_pick(x - high, r_set(high), x));
  // a sum of this size has no digits after the point: its last ones are k
  const Real sum = x * (real)1.44269504088896340736 + whole, n = sum - whole;
  const RealBits k = (RealBits)sum - (RealBits)r_set(whole), half = k >> 1;
  const Real r = x - n * ln2_high - n * ln2_low;
  Real e = r_set((real)1);
  for (int i = terms; i > 1; i--) e = e * r * ((real)1 / (real)i) + (real)1;
  // the leading one is added last; 2^k in two factors, for it may itself be out of range
  return (e * r + (real)1) * (Real)((half + bias) << fraction) * (Real)((k - half + bias) << fraction);
}

// 1 if any lane of c is above 0, else 0.
R_INLINE int r_any(Real c) {
  typedef int8_t Bytes __attribute__((vector_size(CQ_LANES)));
  const Bytes above = __builtin_convertvector((RealBits)(c > (Real){0}), Bytes);
  uint32_t word[CQ_LANES / 4], any = 0;
  __builtin_memcpy(word, &above, sizeof word);
  for (int i = 0; i < CQ_LANES / 4; i++) any |= word[i];
  return any != 0;
}
#define r_any r_any

// The largest of the lanes.
R_INLINE real r_largest(Real x) {
  real m = x[0];
  for (int i = 1; i < CQ_LANES; i++) m = x[i] > m ? x[i] : m;
  return m;
}
// The smallest of the lanes.
R_INLINE real r_smallest(Real x) { return -r_largest(-x); }
// 1 if all lanes are finite, else 0.
R_INLINE int r_finite(Real x) {
  const Real zero = x - x;   // NaN where x is not finite
  real sum = 0;
  for (int i = 0; i < CQ_LANES; i++) sum += zero[i];
  return sum == 0;
}

#endif
#endif
