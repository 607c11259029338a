// lanes: the checks of lanes.cc, for one vector type; included once for each.
#undef CQ_LANES_H
#undef CQ_LANES
#undef CQ_REAL_H
#undef r_any
#undef s_sqrt
#undef s_log
#undef s_exp
#undef s_floor
#undef s_value
#undef R_INLINE
#include "cpu/lanes.h"
#include "math/real.h"
#include "math/matrix.inl"
#include "math/polar.inl"
#include "math/eigen.inl"

enum { D = CQ_DIM, ROUNDS = 500 };
static const double epsilon = CQ_REAL_BYTES == 4 ? 6e-8 : 1.2e-16;

#if CQ_LANES == 1
static real lane_of(Real x, int) { return x; }
static void set_lane(Real *x, int, real to) { *x = to; }
#else
static real lane_of(Real x, int l) { return x[l]; }
static void set_lane(Real *x, int l, real to) { (*x)[l] = to; }
#endif

static void check_functions(const char *name) {
  const double top = CQ_REAL_BYTES == 4 ? 88 : 709;
  double off = 0, off_log = 0, off_sinhc = 0;
  for (int round = 0; round < 20000; round++) {
    Real x = r_set(0);
    for (int l = 0; l < CQ_LANES; l++) set_lane(&x, l, (real)uniform(-1, 1) * (round % 3 ? (real)1 : (real)top));
    const Real e = r_exp(x), back = r_log(e), s = r_sinhc((real)0.5 * x);
    for (int l = 0; l < CQ_LANES; l++) {
      const double wanted = exp((double)lane_of(x, l)), half = 0.5 * lane_of(x, l);
      if (wanted < (CQ_REAL_BYTES == 4 ? 1.2e-38 : 2.3e-308)) continue;
      off = fmax(off, fabs(lane_of(e, l) / wanted - 1));
      off_log = fmax(off_log, fabs(lane_of(back, l) - lane_of(x, l)) / fmax(1, fabs((double)lane_of(x, l))));
      off_sinhc = fmax(off_sinhc, half == 0 ? 0 : fabs(lane_of(s, l) / (sinh(half) / half) - 1));
    }
  }
  CHECK(off < 3 * epsilon, "%s: exp is off by %.1f roundings", name, off / epsilon);
  CHECK(off_log < 6 * epsilon, "%s: log of exp is off by %.1f roundings", name, off_log / epsilon);
  CHECK(off_sinhc < 8 * epsilon, "%s: sinh(x) / x is off by %.1f roundings", name, off_sinhc / epsilon);
  const real some[][2] = {{0, 1}, {INFINITY, INFINITY}, {(real)1e30, INFINITY}, {-INFINITY, 0}, {(real)-1e30, 0}};
  for (const auto &s : some) {
    const real e = lane_of(r_exp(r_set(s[0])), 0);
    CHECK(e == s[1], "%s: exp(%g) is %g", name, (double)s[0], (double)e);
  }
  const real lost = lane_of(r_exp(r_set(NAN)), 0), one = lane_of(r_sinhc(r_set(0)), 0);
  CHECK(isnan(lost) && one == 1, "%s: exp(NaN) is %g, sinh(x) / x at 0 is %g", name, (double)lost, (double)one);
}

// each lane another rotation
static void random_rotations(Real r[D][D]) {
  Real f[D][D];
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) f[i][j] = r_set((real)0);
  for (int l = 0; l < CQ_LANES; l++)
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) set_lane(&f[i][j], l, (real)((i == j) + uniform(-0.3, 0.3)));
  polar(f, r);
}

static double largest(Real x) { return (double)r_largest(r_abs(x)); }

static void check_decompositions(const char *name) {
  static const char *const cases[] = {"any", "repeated", "close", "far apart", "tiny", "huge", "diagonal", "zero"};
  for (int kind = 0; kind < 8; kind++) {
    double off = 0, turned = 0, values = 0, again = 0, small = 0;
    for (int round = 0; round < ROUNDS; round++) {
      const real scale = kind == 4 ? (real)1e-30 : kind == 5 ? (real)1e30 : (real)1;
      const double gap = kind == 1 ? 0 : kind == 2 ? 1e-7 : 1;
      Real q[D][D], r[D][D], d[D], a[D][D], m[D][D], n[D][D], w[D], v[D][D];
      random_rotations(q);
      random_rotations(r);
      for (int i = 0; i < D; i++)
        d[i] = scale * r_set(kind == 7   ? (real)0
                             : kind == 3 ? (real)pow(10, uniform(-8, 7))
                                         : (real)(0.7 + (i == 2 ? uniform(0, 1) : i * gap)));
      if (kind == 6) mat_identity(d[0], q), mat_identity(d[0], r);
      // symmetric, of any signs
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) m[i][j] = q[i][j] * (j ? d[j] : -d[j]);
      mat_mul_nt(m, q, a);
      eigen(a, w, v);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) m[i][j] = v[i][j] * w[j];
      mat_mul_nt(m, v, n);
      const Real size = mat_largest(a);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) off = fmax(off, largest((n[i][j] - a[i][j]) / size));
      mat_mul_tn(v, v, n);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) turned = fmax(turned, largest(n[i][j] - (real)(i == j)));
      if (kind == 7) continue;   // no stretch is zero
      // F = Q D R^T
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) m[i][j] = q[i][j] * d[j];
      mat_mul_nt(m, r, a);
      Singular of;
      singular(a, &of);
      singular_join(&of, of.s, n);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) again = fmax(again, largest((n[i][j] - a[i][j]) / mat_largest(a)));
      mat_mul_tn(of.u, of.u, n);
      mat_mul_tn(of.v, of.v, m);
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
          // orthogonal columns of F V, however short they are
          if (kind != 3) turned = fmax(turned, largest(n[i][j] - (real)(i == j)));
          turned = fmax(turned, largest(m[i][j] - (real)(i == j)));
        }
      for (int l = 0; l < CQ_LANES; l++) {
        // in order
        double got[D], wanted[D];
        for (int i = 0; i < D; i++) got[i] = lane_of(of.s[i], l), wanted[i] = lane_of(d[i], l);
        for (int i = 0; i < D; i++)
          for (int j = i + 1; j < D; j++) {
            if (got[j] > got[i]) { const double t = got[i]; got[i] = got[j], got[j] = t; }
            if (wanted[j] > wanted[i]) { const double t = wanted[i]; wanted[i] = wanted[j], wanted[j] = t; }
          }
        for (int i = 0; i < D; i++) {
          values = fmax(values, fabs(got[i] - wanted[i]) / wanted[0]);
          if (kind != 3) small = fmax(small, fabs(got[i] / wanted[i] - 1));
        }
      }
    }
    CHECK(off < 32 * epsilon, "%s, %s: V diag(w) V^T is off by %.1f roundings", name, cases[kind], off / epsilon);
    CHECK(again < 24 * epsilon, "%s, %s: U diag(s) V^T is off by %.1f roundings", name, cases[kind], again / epsilon);
    CHECK(turned < 24 * epsilon, "%s, %s: rotations are off by %.1f roundings", name, cases[kind], turned / epsilon);
    CHECK(values < 24 * epsilon && small < 24 * epsilon,
          "%s, %s: stretches are off by %.1f roundings of the largest, %.1f of each", name, cases[kind],
          values / epsilon, small / epsilon);
  }
}

static void all(const char *name) {
  check_functions(name);
  check_decompositions(name);
}
