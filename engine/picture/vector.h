// Small vectors of the picture room.
#ifndef CQ_PICTURE_VECTOR_H
#define CQ_PICTURE_VECTOR_H

#include <math.h>
#include <stdint.h>

// The smaller of two numbers; as fmin for finite ones, without a call.
static inline double lesser(double a, double b) { return a < b ? a : b; }
// The larger of two numbers.
static inline double larger(double a, double b) { return a > b ? a : b; }

// The nearest whole number of a number that lies well within 32 bits.
static inline int nearest_int(double x) { return (int)(x + 65536.5) - 65536; }

// The largest whole number not above x, which lies within 64 bits.
static inline double floor_of(double x) {          // of what lies within 64 bits
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

// Gives v the length 1; returns 1, or 0 if it has no direction, and then does nothing.
static inline int normalize3(double v[3]) {       // 0 if it has no direction
  double length = sqrt(dot3(v, v));
  if (!(length > 0) || !isfinite(length)) return 0;
  for (int d = 0; d < 3; d++) v[d] /= length;
  return 1;
}

// Sets two directions perpendicular to n and to each other, the first as near to `hint` as can be; returns 1, or 0 if
// hint lies along n.
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
