// piola: P of any elastic law at a point of a reference grid, with its adjoint; and the velocity gradient in space from
// that in the undeformed body.

// First Piola-Kirchhoff stress P = tau F^-T from the Kirchhoff stress.
CQ_INLINE void piola_of_kirchhoff(const Real f[CQ_DIM][CQ_DIM], const Real tau[CQ_DIM][CQ_DIM],
                                  Real p[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(f, cof);
  const Real by = (real)1 / mat_det_of(f, cof);
  mat_mul(tau, cof, p);
  EACH(i) EACH(j) p[i][j] *= by;
}

// P of a law, viscous or not
CQ_INLINE void piola_of_law(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  if (!at->law->viscous) {
    material_stress(at, p);
    return;
  }
  Real tau[CQ_DIM][CQ_DIM];
  material_kirchhoff_plain(at, tau);
  piola_of_kirchhoff(at->f, tau, p);
}

// grad: added to
CQ_INLINE void piola_of_law_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  if (!at->law->viscous) {
    material_stress_adj(at, grad, grad_p);
    return;
  }
  // P = tau F^-T: dL/dtau = dL/dP F^-1, dL/dF -= F^-T dL/dP^T P
  Real cof[CQ_DIM][CQ_DIM], tau[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real by = (real)1 / mat_det_of(at->f, cof);
  material_kirchhoff_plain(at, tau);
  piola_of_kirchhoff(at->f, tau, p);
  mat_mul_nt(grad_p, cof, back);
  EACH(i) EACH(j) back[i][j] *= by;
  material_kirchhoff_plain_adj(at, grad, back);
  mat_mul_tn(grad_p, p, t);
  mat_mul(cof, t, back);
  EACH(i) EACH(j) grad->f[i][j] -= by * back[i][j];
}

// C = sum v (x) grad N (I + sum u (x) grad N)^-1                                                           (E114)
CQ_INLINE void rate_in_space(const Real slope[CQ_DIM][CQ_DIM], const Real stretch[CQ_DIM][CQ_DIM],
                             Real rate[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(stretch, cof);
  const Real by = (real)1 / mat_det_of(stretch, cof);
  mat_mul_nt(slope, cof, rate);
  EACH(i) EACH(j) rate[i][j] *= by;
}

// Adjoint of C = W H^-1 (rate_in_space): grad_rate = dL/dC to dL/dW (grad_slope), and to dL/dH, which is added to
// grad_stretch.
CQ_INLINE void rate_in_space_adj(const Real stretch[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                                 const Real grad_rate[CQ_DIM][CQ_DIM], Real grad_slope[CQ_DIM][CQ_DIM],
                                 Real grad_stretch[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  mat_cofactor(stretch, cof);
  const Real by = (real)1 / mat_det_of(stretch, cof);
  mat_mul(grad_rate, cof, grad_slope);
  EACH(i) EACH(j) grad_slope[i][j] *= by;
  mat_mul_tn(rate, grad_slope, t);
  EACH(i) EACH(j) grad_stretch[i][j] -= t[i][j];
}
