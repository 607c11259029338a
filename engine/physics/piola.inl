// piola: P of any elastic law at a point of a reference grid, with its adjoint; and the velocity gradient in space from
// that in the undeformed body.

// (E42) Adds P of the viscosity to p: tau F^-T = 2 eta J D F^-T = 2 eta D cof(F), D the part of the rate that changes
// shape (viscous.inl).
CQ_INLINE void viscous_piola(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  viscous_rate(at->rate, rate);
  mat_cofactor(at->f, cof);
  mat_mul(rate, cof, t);
  EACH(i) EACH(j) p[i][j] += (real)2 * at->extra[0] * t[i][j];
}

// Adjoint of viscous_piola: adds to grad the gradients of F, rate and viscosity. With G = dL/dP it gives dL/deta =
// 2 <D, G cof^T>, the rate 2 eta times the part of G cof^T that changes shape, and the cofactors 2 eta D G, whose
// derivative is its own adjoint.
CQ_INLINE void viscous_piola_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
  const Real twice = (real)2 * at->extra[0];
  viscous_rate(at->rate, rate);
  mat_cofactor(at->f, cof);
  mat_mul_nt(grad_p, cof, t);
  grad->extra[0] += (real)2 * mat_dot(rate, t);
  viscous_rate(t, back);
  EACH(i) EACH(j) grad->rate[i][j] += twice * back[i][j];
  mat_mul(rate, grad_p, t);
  cofactor_derivative(at->f, t, back);
  EACH(i) EACH(j) grad->f[i][j] += twice * back[i][j];
}

// Sets p to the first Piola-Kirchhoff stress P of a particle of any law, with Maxwell branches and viscosity.
CQ_INLINE void piola_of_law(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  material_stress(at, p);
  if (at->law->viscous) viscous_piola(at, p);
}

// Adjoint of piola_of_law: adds to the gradients of F, rate, constants and internal variables, from grad_p = dL/dP.
CQ_INLINE void piola_of_law_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  material_stress_adj(at, grad, grad_p);
  if (at->law->viscous) viscous_piola_adj(at, grad, grad_p);
}

// (E114) The velocity gradient in space C = W H^-1, into rate. slope: W = sum v (x) grad N, the gradient by undeformed
// places; stretch: H = I + sum u (x) grad N, the deformation since then.
CQ_INLINE void rate_in_space(const Real slope[CQ_DIM][CQ_DIM], const Real stretch[CQ_DIM][CQ_DIM],
                             Real rate[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(stretch, cof);
  const Real by = (real)1 / mat_det_of(stretch, cof);
  mat_mul_nt(slope, cof, rate);
  EACH(i) EACH(j) rate[i][j] *= by;
}

// Adjoint of rate_in_space, C = W H^-1: sets grad_slope = dL/dW and adds dL/dH to grad_stretch, from grad_rate =
// dL/dC.
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
