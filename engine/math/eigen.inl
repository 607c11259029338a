// eigen: decompositions by Jacobi's method, and functions of matrices through them. Every lane turns as often as
// every other, without branches, so a lane's bits do not depend on its neighbours; repeated values are harmless.
//   eigen      A = V diag(w) V^T of a symmetric A, any signs
//   singular   F = U diag(s) V^T with det F > 0: U and V rotations, s > 0 the principal stretches
// Values come in no order. A function g of the stretches gives a matrix G = U diag(g) V^T: the stress of an isotropic
// law, or the elastic F after plastic flow. Its derivative needs no derivative of U and V, which repeated stretches do
// not have (E23).

// Sweeps over all pairs of axes. One sweep less leaves off-diagonals above rounding now and then, these none of a
// million matrices. The numbers of tests have more digits.
enum { CQ_JACOBI_SWEEPS = CQ_DIM == 2 ? 2 : sizeof(real) == 4 ? 3 : sizeof(real) == 8 ? 4 : 7 };

// Sets c and s to cosine and sine of the rotation G = [c s; -s c] that makes a symmetric [a b; b d] diagonal, the
// smaller of the two that do: G^T [a b; b d] G has the diagonal a - t b, d + t b, with t = s / c. b = 0 gives no
// rotation, also where a = d.
CQ_INLINE void jacobi_angle(const Real a, const Real b, const Real d, Real *c, Real *s) {
  // never 0 / 0: entries are scaled to about one, and below this nothing is left to turn
  const real tiny = sizeof(real) == 4 ? (real)1e-37 : (real)1e-300;
  const Real gap = (real)0.5 * (d - a), size = r_abs(gap) + r_sqrt(gap * gap + b * b + tiny);
  const Real t = r_pick(gap, b, -b) / size;
  *c = (real)1 / r_sqrt(t * t + (real)1);
  *s = t * *c;
}

// Rotates columns p and q of m, in place: m[.][p], m[.][q] = c m[.][p] - s m[.][q], s m[.][p] + c m[.][q].
CQ_INLINE void turn_columns(Real m[CQ_DIM][CQ_DIM], const int p, const int q, const Real c, const Real s) {
  EACH(i) {
    const Real x = m[i][p], y = m[i][q];
    m[i][p] = c * x - s * y;
    m[i][q] = s * x + c * y;
  }
}

// The largest absolute value of the entries of m, or 1 if all are zero: matrices are divided by it, so that no square
// overflows or vanishes.
CQ_INLINE Real mat_largest(const Real m[CQ_DIM][CQ_DIM]) {
  Real largest = r_abs(m[0][0]);
  EACH(i) EACH(j) largest = r_max(largest, r_abs(m[i][j]));
  return r_pick(largest, largest, largest * (real)0 + (real)1);
}

// Sets m to the identity, in all lanes. like: any finite number of type Real, from which the zeros are made.
CQ_INLINE void mat_identity(const Real like, Real m[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) m[i][j] = like * (real)0;
  EACH(i) m[i][i] += (real)1;
}

// Sets value to the eigenvalues of a symmetric matrix a, in no order, and the columns of vector, a rotation, to its
// eigenvectors: A = V diag(value) V^T.
CQ_RARE void eigen(const Real a[CQ_DIM][CQ_DIM], Real value[CQ_DIM], Real vector[CQ_DIM][CQ_DIM]) {
  const Real scale = mat_largest(a), inverse = (real)1 / scale;
  Real m[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) m[i][j] = inverse * a[i][j];
  mat_identity(inverse, vector);
  CQ_ROLL for (int sweep = 0; sweep < CQ_JACOBI_SWEEPS; sweep++)
    CQ_UNROLL for (int p = 0; p < CQ_DIM - 1; p++) CQ_UNROLL for (int q = p + 1; q < CQ_DIM; q++) {
      Real c, s;
      jacobi_angle(m[p][p], m[p][q], m[q][q], &c, &s);
      turn_columns(m, p, q, c, s);
      EACH(j) {
        const Real x = m[p][j], y = m[q][j];
        m[p][j] = c * x - s * y;
        m[q][j] = s * x + c * y;
      }
      turn_columns(vector, p, q, c, s);
    }
  EACH(i) value[i] = scale * m[i][i];
}

typedef struct {
  Real u[CQ_DIM][CQ_DIM], s[CQ_DIM], v[CQ_DIM][CQ_DIM];
} Singular;

// Sets out to the singular value decomposition F = U diag(s) V^T of f with rotations U, V, for det F > 0; s > 0 in no
// order. Hestenes' one-sided form: columns of F V are turned until they are orthogonal.
CQ_RARE void singular(const Real f[CQ_DIM][CQ_DIM], Singular *out) {
  const Real scale = mat_largest(f), inverse = (real)1 / scale;
  EACH(i) EACH(j) out->u[i][j] = inverse * f[i][j];
  mat_identity(inverse, out->v);
  CQ_ROLL for (int sweep = 0; sweep < CQ_JACOBI_SWEEPS; sweep++)
    CQ_UNROLL for (int p = 0; p < CQ_DIM - 1; p++) CQ_UNROLL for (int q = p + 1; q < CQ_DIM; q++) {
      Real a = out->u[0][p] * out->u[0][p], b = out->u[0][p] * out->u[0][q], d = out->u[0][q] * out->u[0][q], c, s;
      CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) {
        a += out->u[i][p] * out->u[i][p];
        b += out->u[i][p] * out->u[i][q];
        d += out->u[i][q] * out->u[i][q];
      }
      jacobi_angle(a, b, d, &c, &s);
      turn_columns(out->u, p, q, c, s);
      turn_columns(out->v, p, q, c, s);
    }
  EACH(j) {
    Real length = out->u[0][j] * out->u[0][j];
    CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) length += out->u[i][j] * out->u[i][j];
    length = r_sqrt(length);
    EACH(i) out->u[i][j] = out->u[i][j] / length;
    out->s[j] = scale * length;
  }
}

// Sets out to G = U diag(g) V^T, with U and V of the decomposition `of`: a function of F from its principal values g.
CQ_INLINE void singular_join(const Singular *of, const Real g[CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  Real ug[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) ug[i][j] = of->u[i][j] * g[j];
  mat_mul_nt(ug, of->v, out);
}

// What the derivative of G needs: slope[i][j] = dg_i / ds_j, and for each pair i < j
//   apart[i][j] = (g_i - g_j) / (s_i - s_j), or its limit, and along[i][j] = (g_i + g_j) / (s_i + s_j)
typedef struct {
  Real slope[CQ_DIM][CQ_DIM], apart[CQ_DIM][CQ_DIM], along[CQ_DIM][CQ_DIM];
} SingularSlopes;

// (E23) Sets dg to the change of G = U diag(g) V^T, g functions of the stretches, by a change df of F. With M = U^T dF
// V, N = U^T dG V has N_ii = sum_j slope_ij M_jj, and of each pair a symmetric part, `apart` times that of M, and a
// skew part, `along` times that of M. Its adjoint is the same with slope transposed.
CQ_INLINE void singular_derivative(const Singular *of, const SingularSlopes *slopes, const Real df[CQ_DIM][CQ_DIM],
                                   Real dg[CQ_DIM][CQ_DIM]) {
  Real m[CQ_DIM][CQ_DIM], n[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  mat_mul_tn(of->u, df, t);
  mat_mul(t, of->v, m);
  EACH(i) EACH(j) {
    if (i < j) {
      const Real even = (real)0.5 * slopes->apart[i][j] * (m[i][j] + m[j][i]);
      const Real odd = (real)0.5 * slopes->along[i][j] * (m[i][j] - m[j][i]);
      n[i][j] = even + odd;
      n[j][i] = even - odd;
    }
    if (j == 0) {
      n[i][i] = slopes->slope[i][0] * m[0][0];
      CQ_UNROLL for (int k = 1; k < CQ_DIM; k++) n[i][i] += slopes->slope[i][k] * m[k][k];
    }
  }
  mat_mul(of->u, n, t);
  mat_mul_nt(t, of->v, dg);
}

// ---- divided differences that are exact where their ends meet ---------------------------------------------------

// sinh(x) / x: its series up to |x| = 1, exponentials beyond; 1 at 0.
CQ_INLINE Real r_sinhc(const Real x) {
  const Real x2 = x * x;
  const int terms = sizeof(real) == 4 ? 5 : 9;   // the first one that is left out is below rounding
  Real series = x2 * (real)0 + (real)1;
  CQ_UNROLL for (int k = terms; k > 0; k--) series = (real)1 + series * x2 * ((real)1 / (real)((2 * k) * (2 * k + 1)));
  const Real large = r_abs(x), e = r_exp(large);
  return r_pick(large - (real)1, (e - (real)1 / e) / ((real)2 * large), series);
}

// The divided difference of exp, (e^x - e^y) / (x - y), also where x = y. That of log is its inverse: (log a - log b) /
// (a - b) = 1 / exp_apart(log a, log b).
CQ_INLINE Real exp_apart(const Real x, const Real y) {
  return r_exp((real)0.5 * (x + y)) * r_sinhc((real)0.5 * (x - y));
}

// (x e^x - e^x + 1) / x^2, the integral of t e^(x t) over t from 0 to 1: the derivative of
// exp_apart(x, 0). Near 0 by its series.
CQ_INLINE Real exp_moment(const Real x) {
  enum { terms = sizeof(real) == sizeof(float) ? 11 : 18 };   // of |x| < 1: what follows them is below rounding
  const Real close = (real)1 - x * x, e = r_exp(x), far = r_pick(close, x * (real)0 + (real)1, x);
  Real series = x * (real)0 + (real)1 / (real)(terms + 2);
  CQ_ROLL for (int n = terms - 1; n >= 0; n--)
    series = (real)1 / (real)(n + 2) + x * series * ((real)1 / (real)(n + 1));
  return r_pick(close, series, (e * (far - (real)1) + (real)1) / (far * far));
}
