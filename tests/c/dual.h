// dual: a + b e with e^2 = 0. Arithmetic on it carries the exact derivative in one direction beside each value, so a
// function of the engine over `real` gives its directional derivative to rounding. Branches go by the value. T holds
// each part: double, or twofold (twofold.h) for functions with a decomposition inside, whose own derivative grows
// without bound where two stretches meet.
#ifndef TEST_DUAL_H
#define TEST_DUAL_H

#include <math.h>

template <typename T> struct dual_of {
  T value, slope;
  dual_of() = default;
  dual_of(T v, T s) : value(v), slope(s) {}
  dual_of(T v) : value(v), slope(0) {}   // a number of the engine is a constant
  template <typename N> dual_of(N v) : value(v), slope(0) {}

  friend dual_of operator+(dual_of a, dual_of b) { return {a.value + b.value, a.slope + b.slope}; }
  friend dual_of operator-(dual_of a, dual_of b) { return {a.value - b.value, a.slope - b.slope}; }
  friend dual_of operator*(dual_of a, dual_of b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend dual_of operator/(dual_of a, dual_of b) {
    const T q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
  friend dual_of operator-(dual_of a) { return {-a.value, -a.slope}; }
  friend dual_of &operator+=(dual_of &a, dual_of b) { return a = a + b; }
  friend dual_of &operator-=(dual_of &a, dual_of b) { return a = a - b; }
  friend dual_of &operator*=(dual_of &a, dual_of b) { return a = a * b; }
  friend dual_of &operator/=(dual_of &a, dual_of b) { return a = a / b; }
  friend bool operator<(dual_of a, dual_of b) { return a.value < b.value; }
  friend bool operator>(dual_of a, dual_of b) { return a.value > b.value; }
  friend bool operator<=(dual_of a, dual_of b) { return a.value <= b.value; }
  friend bool operator>=(dual_of a, dual_of b) { return a.value >= b.value; }
};

// of a scalar, as engine/cpu/lanes.h names them
template <typename T> inline double s_value(dual_of<T> x) { return (double)x.value; }
template <typename T> inline dual_of<T> s_sqrt(dual_of<T> x) {
  const T r = sqrt(x.value);
  return {r, x.slope / (T(2) * r)};
}
template <typename T> inline dual_of<T> s_log(dual_of<T> x) { return {log(x.value), x.slope / x.value}; }
template <typename T> inline dual_of<T> s_exp(dual_of<T> x) {
  const T e = exp(x.value);
  return {e, x.slope * e};
}
template <typename T> inline dual_of<T> s_expm1(dual_of<T> x) { return {expm1(x.value), x.slope * exp(x.value)}; }
template <typename T> inline dual_of<T> s_atan2(dual_of<T> y, dual_of<T> x) {
  const T square = x.value * x.value + y.value * y.value;
  return {T(atan2((double)y.value, (double)x.value)), (x.value * y.slope - y.value * x.slope) / square};
}
template <typename T> inline dual_of<T> s_floor(dual_of<T> x) { return {floor(x.value), T(0)}; }

#endif
