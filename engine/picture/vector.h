// vector: small functions of numbers and of vectors {3}.
#ifndef CQ_PICTURE_VECTOR_H
#define CQ_PICTURE_VECTOR_H

#include <math.h>
#include <stdint.h>

// The smaller of two numbers; as fmin for finite ones, without a call.
static inline double lesser(double a, double b) { return a < b ? a : b; }
// The larger of two numbers.
static inline double larger(double a, double b) { return a > b ? a : b; }

// x rounded to the nearest whole number; x must be above -65536 and well within 32 bits.
static inline int nearest_int(double x) { return (int)(x + 65536.5) - 65536; }

// The largest whole number not above x, as floor; x must lie within 64-bit integers.
static inline double floor_of(double x) {
  double whole = (double)(int64_t)x;
  return whole > x ? whole - 1 : whole;
}

// The dot product of two vectors.
static inline double dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Sets out to the cross product of two vectors.
static inline void cross3(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

// Scales v to length 1 and returns 1; if its length is 0 or not finite, returns 0 and leaves v as it is.
static inline int normalize3(double v[3]) {
  double length = sqrt(dot3(v, v));
  if (!(length > 0) || !isfinite(length)) return 0;
  for (int d = 0; d < 3; d++) v[d] /= length;
  return 1;
}

// Sets `first` and `second` to unit vectors perpendicular to n, a unit vector, and to each other, `first` as near to
// the direction `hint` as possible. Returns 1, or 0 if hint is parallel to n.
static inline int across3(const double n[3], const double hint[3], double first[3], double second[3]) {
  double along = dot3(hint, n);
  for (int d = 0; d < 3; d++) first[d] = hint[d] - along * n[d];
  if (!normalize3(first)) return 0;
  cross3(n, first, second);
  return 1;
}

// 0 for x below lo, 1 above hi, a smooth cubic between (smoothstep).
static inline double smooth(double lo, double hi, double x) {
  double t = lesser(larger((x - lo) * (1 / (hi - lo)), 0), 1);
  return t * t * (3 - 2 * t);
}

#endif
