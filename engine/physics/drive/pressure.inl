// pressure: a pressure that follows a surface, at one particle. Nanson's formula makes its deformed area vector of the
// undeformed one: n a = J F^-T N A = cof(F) N A, N out of the solid.

// (E63) Adds the force of a pressure on a particle at an open surface: force -= cof(F) h, h = p N A, N A its undeformed
// area vector, outward.
CQ_INLINE void pressure_force(const Real f[CQ_DIM][CQ_DIM], const Real h[CQ_DIM], Real force[CQ_DIM]) {
  Real cofactor[CQ_DIM][CQ_DIM];
  mat_cofactor(f, cofactor);
  EACH(i) EACH(j) force[i] -= cofactor[i][j] * h[j];
}

// (E66) Adjoint of pressure_force, g = grad_force: dL/dh -= cof(F)^T g, and to grad_f the derivative of -g.cof(F) h by
// F, which is linear in F in 2D and quadratic in 3D.
CQ_INLINE void pressure_force_adj(const Real f[CQ_DIM][CQ_DIM], const Real h[CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM],
                                  Real grad_h[CQ_DIM], const Real grad_force[CQ_DIM]) {
  Real cofactor[CQ_DIM][CQ_DIM];
  mat_cofactor(f, cofactor);
  EACH(i) EACH(j) grad_h[j] -= cofactor[i][j] * grad_force[i];
#if CQ_DIM == 2
  grad_f[0][0] -= grad_force[1] * h[1];
  grad_f[0][1] += grad_force[1] * h[0];
  grad_f[1][0] += grad_force[0] * h[1];
  grad_f[1][1] -= grad_force[0] * h[0];
#else
  // g . cof(F) h = sum over i, j of g_i h_j (F_ab F_cd - F_ad F_cb), (i, a, c) and (j, b, d) cyclic
  EACH(i) EACH(j) {
    const int a = (i + 1) % 3, c = (i + 2) % 3, b = (j + 1) % 3, d = (j + 2) % 3;
    const Real share = grad_force[i] * h[j];
    grad_f[a][b] -= share * f[c][d];
    grad_f[c][d] -= share * f[a][b];
    grad_f[a][d] += share * f[c][b];
    grad_f[c][b] += share * f[a][d];
  }
#endif
}
