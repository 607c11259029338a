// polar: the rotation R of F = R S, and its adjoint. No singular values are needed, so repeated stretches are harmless.

// iterations of Newton's method in 3D at most: stretches between 0.1 and 10 to rounding, x <- (x + 1/x) / 2
enum { CQ_POLAR_ITERATIONS = sizeof(real) == 4 ? 7 : 9 };

// is a lane of c above 0? Where Real is no vector, c is the only one.
#ifndef r_any
#define r_any(c) ((c) > 0)
#endif

// Sets r to the rotation R of F = R S, S symmetric, for det F > 0.
//   2D: R = [a -b; b a] / sqrt(a^2 + b^2), a = F00 + F11, b = F10 - F01
//   3D: R <- (R + R^-T) / 2 (Higham 1986). After one iteration no stretch of R is below 1, so that det R - 1 bounds
//       their distance from 1, which each iteration squares and halves. A lane that has converged keeps its R,
//       however many iterations its neighbours need.
CQ_INLINE void polar(const Real f[CQ_DIM][CQ_DIM], Real r[CQ_DIM][CQ_DIM]) {
#if CQ_DIM == 2
  const Real a = f[0][0] + f[1][1], b = f[1][0] - f[0][1];
  const Real scale = (real)1 / r_sqrt(a * a + b * b);
  r[0][0] = a * scale;
  r[1][1] = r[0][0];
  r[1][0] = b * scale;
  r[0][1] = -r[1][0];
#else
  const real near = sizeof(real) == 4 ? (real)(1 + 2e-4) : (real)(1 + 1e-8);
  EACH(i) EACH(j) r[i][j] = f[i][j];
  Real more = f[0][0] - f[0][0] + (real)1;
  CQ_ROLL for (int n = 0; n < CQ_POLAR_ITERATIONS; n++) {
    Real c[3][3];
    mat_cofactor(r, c);
    const Real det = mat_det_of(r, c), h = (real)0.5 / det;
    EACH(i) EACH(j) r[i][j] = r_pick(more, (real)0.5 * r[i][j] + h * c[i][j], r[i][j]);
    if (n > 0) more = r_pick(more, det - near, more);
    if (!r_any(more)) break;
  }
#endif
}

// (E5) Adjoint of polar: adds dL/dF to grad_f, from grad_r = dL/dR; r is R of F. dR = R W with W skew and (tr(S) I - S)
// w = axial(R^T dF - dF^T R). The map is self-adjoint: grad_F += R [y], where (tr(S) I - S) y = axial(R^T grad_R -
// grad_R^T R).
CQ_INLINE void polar_adj(const Real f[CQ_DIM][CQ_DIM], const Real r[CQ_DIM][CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM],
                         const Real grad_r[CQ_DIM][CQ_DIM]) {
  Real s[CQ_DIM][CQ_DIM], m[CQ_DIM][CQ_DIM];
  mat_mul_tn(r, f, s);
  mat_mul_tn(r, grad_r, m);
#if CQ_DIM == 2
  const Real y = (m[1][0] - m[0][1]) / (s[0][0] + s[1][1]);
  EACH(i) {
    grad_f[i][0] += r[i][1] * y;
    grad_f[i][1] -= r[i][0] * y;
  }
#else
  Real k[3][3], c[3][3];
  const Real trace = mat_trace(s);
  EACH(i) EACH(j) k[i][j] = -s[i][j];
  EACH(i) k[i][i] += trace;
  mat_cofactor(k, c);
  const Real h = (real)1 / mat_det_of(k, c);
  const Real m0 = m[2][1] - m[1][2], m1 = m[0][2] - m[2][0], m2 = m[1][0] - m[0][1];
  const Real y0 = h * (c[0][0] * m0 + c[0][1] * m1 + c[0][2] * m2);
  const Real y1 = h * (c[1][0] * m0 + c[1][1] * m1 + c[1][2] * m2);
  const Real y2 = h * (c[2][0] * m0 + c[2][1] * m1 + c[2][2] * m2);
  EACH(i) {
    grad_f[i][0] += r[i][1] * y2 - r[i][2] * y1;
    grad_f[i][1] += r[i][2] * y0 - r[i][0] * y2;
    grad_f[i][2] += r[i][0] * y1 - r[i][1] * y0;
  }
#endif
}
