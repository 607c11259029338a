// linear: small-strain linear elasticity. For small rotations only: a body that turns grows.
//   e = (F + F^T)/2 - I, psi = mu |e|^2 + lambda/2 tr(e)^2
//   P = mu (F + F^T - 2 I) + lambda tr(F - I) I

#if defined(CQ_LAW_TABLE)
static const cq_law linear_law = {
    .name = "linear", .slot_count = LAME_COUNT, .slot = {LAME_SLOTS}, .small_strain = 1, .modulus = lame_modulus};
#endif

// Sets strain to F + F^T - 2 I, twice the small strain.
CQ_INLINE void linear_strain(const MaterialPoint *at, Real strain[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) strain[i][j] = at->f[i][j] + at->f[j][i];
  EACH(i) strain[i][i] -= (real)2;
}

// The energy density psi = mu |e|^2 + lambda/2 tr(e)^2, e = (F + F^T)/2 - I.
CQ_INLINE Real linear_energy(const MaterialPoint *at) {
  Real strain[CQ_DIM][CQ_DIM];
  linear_strain(at, strain);
  const Real stretch = mat_trace(at->f) - (real)CQ_DIM;
  return (real)0.25 * at->c[LAME_MU] * mat_dot(strain, strain) + (real)0.5 * at->c[LAME_LAMBDA] * stretch * stretch;
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain, lambda tr(F - I).
CQ_INLINE Real linear_piola_zz(const MaterialPoint *at) {
  return at->c[LAME_LAMBDA] * (mat_trace(at->f) - (real)CQ_DIM);
}
// Adjoint of linear_piola_zz: adds grad_p's share to the gradients of lambda and F.
CQ_INLINE void linear_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  grad->c[LAME_LAMBDA] += grad_p * (mat_trace(at->f) - (real)CQ_DIM);
  EACH(i) grad->f[i][i] += grad_p * at->c[LAME_LAMBDA];
}
#endif

// Sets p to P = mu (F + F^T - 2 I) + lambda tr(F - I) I.
CQ_INLINE void linear_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  const Real mu = at->c[LAME_MU];
  const Real volumetric = at->c[LAME_LAMBDA] * (mat_trace(at->f) - (real)CQ_DIM) - (real)2 * mu;
  EACH(i) EACH(j) p[i][j] = mu * (at->f[i][j] + at->f[j][i]);
  EACH(i) p[i][i] += volumetric;
}

// Sets dp to the change of P by a change df of F: dP = mu (dF + dF^T) + lambda tr(dF) I.
CQ_INLINE void linear_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                        Real dp[CQ_DIM][CQ_DIM]) {
  const Real mu = at->c[LAME_MU], volumetric = at->c[LAME_LAMBDA] * mat_trace(df);
  EACH(i) EACH(j) dp[i][j] = mu * (df[i][j] + df[j][i]);
  EACH(i) dp[i][i] += volumetric;
}

// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void linear_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real strain[CQ_DIM][CQ_DIM];
  linear_strain(at, strain);
  grad->c[LAME_MU] += mat_dot(strain, grad_p);
  grad->c[LAME_LAMBDA] += (mat_trace(at->f) - (real)CQ_DIM) * mat_trace(grad_p);
}

// ---- fused: tau = P F^T                                                                                          (E9)

// (E9) Sets tau to the Kirchhoff stress P F^T.
CQ_INLINE void linear_kirchhoff(const MaterialPoint *at, Real tau[CQ_DIM][CQ_DIM]) {
  Real p[CQ_DIM][CQ_DIM];
  linear_stress(at, p);
  mat_mul_nt(p, at->f, tau);
}

// Adjoint of linear_kirchhoff: adds to the gradients of F, mu and lambda, G = grad_tau. dL/dP = G F, dL/dF += G^T P,
// then through P.
CQ_INLINE void linear_kirchhoff_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_tau[CQ_DIM][CQ_DIM]) {
  Real p[CQ_DIM][CQ_DIM], strain[CQ_DIM][CQ_DIM], gp[CQ_DIM][CQ_DIM], gtp[CQ_DIM][CQ_DIM];
  const Real mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA], stretch = mat_trace(at->f) - (real)CQ_DIM;
  linear_strain(at, strain);
  EACH(i) EACH(j) p[i][j] = mu * strain[i][j];
  EACH(i) p[i][i] += lambda * stretch;
  mat_mul(grad_tau, at->f, gp);
  mat_mul_tn(grad_tau, p, gtp);
  const Real gp_trace = mat_trace(gp);
  EACH(i) EACH(j) grad->f[i][j] += gtp[i][j] + mu * (gp[i][j] + gp[j][i]);
  EACH(i) grad->f[i][i] += lambda * gp_trace;
  grad->c[LAME_MU] += mat_dot(strain, gp);
  grad->c[LAME_LAMBDA] += stretch * gp_trace;
}
