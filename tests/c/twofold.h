// twofold: a number of about 32 digits as the sum of two doubles (Dekker 1971). A derivative that is divided by a
// difference of 1e-16 keeps sixteen of them. Needs products and sums as they are written: no contraction (Makefile).
#ifndef TEST_TWOFOLD_H
#define TEST_TWOFOLD_H

#include <math.h>

struct twofold {
  double high, low;
  twofold() = default;
  twofold(double x) : high(x), low(0) {}
  twofold(double h, double l) : high(h), low(l) {}
  explicit operator double() const { return high; }
};

// a + b and a b without rounding
inline twofold exact_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
inline twofold exact_product(double a, double b) {
  const double p = a * b, ta = 134217729 * a, tb = 134217729 * b;
  const double ah = ta - (ta - a), al = a - ah, bh = tb - (tb - b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

inline twofold operator-(twofold a) { return {-a.high, -a.low}; }
inline twofold operator+(twofold a, twofold b) {
  const twofold s = exact_sum(a.high, b.high), t = exact_sum(a.low, b.low), u = exact_sum(s.high, s.low + t.high);
  return exact_sum(u.high, u.low + t.low);
}
inline twofold operator-(twofold a, twofold b) { return a + -b; }
inline twofold operator*(twofold a, twofold b) {
  const twofold p = exact_product(a.high, b.high);
  return exact_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
inline twofold operator/(twofold a, twofold b) {
  const double q = a.high / b.high;
  const twofold rest = a - b * twofold(q);
  return exact_sum(q, rest.high / b.high);
}
inline bool operator<(twofold a, twofold b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
inline bool operator>(twofold a, twofold b) { return b < a; }
inline bool operator<=(twofold a, twofold b) { return !(b < a); }
inline bool operator>=(twofold a, twofold b) { return !(a < b); }

inline twofold floor(twofold a) {
  const double whole = floor(a.high);
  return whole == a.high ? exact_sum(whole, floor(a.low)) : twofold(whole);
}
// a step of Newton's method from double doubles its digits
inline twofold sqrt(twofold a) {
  const double r = sqrt(a.high);
  if (r == 0) return r;
  const twofold rest = a - twofold(r) * twofold(r);
  return exact_sum(r, rest.high / (2 * r));
}
// the series of exp(x / 512), squared nine times
inline twofold exp(twofold a) {
  const twofold log2 = {0.693147180559945286, 2.319046813846299558e-17};
  const double k = floor(a.high / log2.high + 0.5);
  const twofold r = (a - twofold(k) * log2) * twofold(1.0 / 512);
  twofold sum = 1;
  for (int i = 14; i > 0; i--) sum = sum * r / twofold(i) + twofold(1);
  for (int i = 0; i < 9; i++) sum = sum * sum;
  return {ldexp(sum.high, (int)k), ldexp(sum.low, (int)k)};
}
inline twofold log(twofold a) {
  const twofold y = log(a.high);
  return y + a * exp(-y) - twofold(1);
}

#endif
