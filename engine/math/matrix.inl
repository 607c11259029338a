// matrix: small dense matrices, {CQ_DIM, CQ_DIM} row-major. out must not be an input.

// The index of entry (i, j) of a symmetric matrix in its packed form: diagonal first, then 01 in 2D, 01, 02, 12 in 3D.
CQ_INLINE int sym_at(const int i, const int j) {
#if CQ_DIM == 2
  return i == j ? i : 2;
#else
  return i == j ? i : i + j + 2;   // 01 -> 3, 02 -> 4, 12 -> 5
#endif
}

// out = a b
CQ_INLINE void mat_mul(const Real a[CQ_DIM][CQ_DIM], const Real b[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) {
    Real s = a[i][0] * b[0][j];
    CQ_UNROLL for (int k = 1; k < CQ_DIM; k++) s += a[i][k] * b[k][j];
    out[i][j] = s;
  }
}

// out = a b^T
CQ_INLINE void mat_mul_nt(const Real a[CQ_DIM][CQ_DIM], const Real b[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) {
    Real s = a[i][0] * b[j][0];
    CQ_UNROLL for (int k = 1; k < CQ_DIM; k++) s += a[i][k] * b[j][k];
    out[i][j] = s;
  }
}

// out = a^T b
CQ_INLINE void mat_mul_tn(const Real a[CQ_DIM][CQ_DIM], const Real b[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) {
    Real s = a[0][i] * b[0][j];
    CQ_UNROLL for (int k = 1; k < CQ_DIM; k++) s += a[k][i] * b[k][j];
    out[i][j] = s;
  }
}

// <a, b> = sum_ij a_ij b_ij
CQ_INLINE Real mat_dot(const Real a[CQ_DIM][CQ_DIM], const Real b[CQ_DIM][CQ_DIM]) {
  Real s = a[0][0] * b[0][0];
  EACH(i) EACH(j) if (i + j) s += a[i][j] * b[i][j];
  return s;
}

// The trace sum_i a_ii of a matrix.
CQ_INLINE Real mat_trace(const Real a[CQ_DIM][CQ_DIM]) {
  Real s = a[0][0];
  CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) s += a[i][i];
  return s;
}

// Sets out to the cofactors of F, cof(F) = det(F) F^-T, finite for any F; d det(F) = <cof(F), dF>.
CQ_INLINE void mat_cofactor(const Real f[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
#if CQ_DIM == 3
  CQ_UNROLL for (int i = 0; i < 3; i++) CQ_UNROLL for (int j = 0; j < 3; j++) {
    const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    out[i][j] = f[a][c] * f[b][d] - f[a][d] * f[b][c];
  }
#else
  out[0][0] = f[1][1];
  out[0][1] = -f[1][0];
  out[1][0] = -f[0][1];
  out[1][1] = f[0][0];
#endif
}

// det F from F and its cofactors, by expansion along the first row.
CQ_INLINE Real mat_det_of(const Real f[CQ_DIM][CQ_DIM], const Real cofactor[CQ_DIM][CQ_DIM]) {
  Real s = f[0][0] * cofactor[0][0];
  CQ_UNROLL for (int k = 1; k < CQ_DIM; k++) s += f[0][k] * cofactor[0][k];
  return s;
}

// The determinant of F.
CQ_INLINE Real mat_det(const Real f[CQ_DIM][CQ_DIM]) {
  Real c[CQ_DIM][CQ_DIM];
  mat_cofactor(f, c);
  return mat_det_of(f, c);
}
