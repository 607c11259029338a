// dual: a + b e with e^2 = 0. Arithmetic on it carries the exact derivative in one direction beside each value, so a
// function of the engine over `real` gives its directional derivative to rounding. Branches go by the value.
#ifndef TEST_DUAL_H
#define TEST_DUAL_H

#include <math.h>

struct dual {
  double value, slope;
  dual() = default;
  dual(double v, double s = 0) : value(v), slope(s) {}   // a number of the engine is a constant
};

inline dual operator+(dual a, dual b) { return {a.value + b.value, a.slope + b.slope}; }
inline dual operator-(dual a, dual b) { return {a.value - b.value, a.slope - b.slope}; }
inline dual operator*(dual a, dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
inline dual operator/(dual a, dual b) {
  const double q = a.value / b.value;
  return {q, (a.slope - q * b.slope) / b.value};
}
inline dual operator-(dual a) { return {-a.value, -a.slope}; }
inline dual &operator+=(dual &a, dual b) { return a = a + b; }
inline dual &operator-=(dual &a, dual b) { return a = a - b; }
inline dual &operator*=(dual &a, dual b) { return a = a * b; }
inline dual &operator/=(dual &a, dual b) { return a = a / b; }
inline bool operator<(dual a, dual b) { return a.value < b.value; }
inline bool operator>(dual a, dual b) { return a.value > b.value; }
inline bool operator<=(dual a, dual b) { return a.value <= b.value; }
inline bool operator>=(dual a, dual b) { return a.value >= b.value; }

// of a scalar, as engine/cpu/lanes.h names them
inline double s_value(dual x) { return x.value; }
inline dual s_sqrt(dual x) {
  const double r = sqrt(x.value);
  return {r, x.slope / (2 * r)};
}
inline dual s_log(dual x) { return {log(x.value), x.slope / x.value}; }
inline dual s_exp(dual x) {
  const double e = exp(x.value);
  return {e, x.slope * e};
}
inline dual s_atan2(dual y, dual x) {
  const double square = x.value * x.value + y.value * y.value;
  return {atan2(y.value, x.value), (x.value * y.slope - y.value * x.slope) / square};
}
inline dual s_floor(dual x) { return {floor(x.value), 0}; }

#endif
