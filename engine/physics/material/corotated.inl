// fixed corotated (advanced-chainqueen eq. 12), F = R S with R a rotation.
//   psi = mu |F - R|^2 + lambda/2 (J - 1)^2
//   P = 2 mu (F - R) + lambda (J - 1) cof(F)

#if defined(CQ_LAW_TABLE)
static const cq_law corotated_law = {
    .name = "corotated", .slot_count = LAME_COUNT, .slot = {LAME_SLOTS}, .modulus = lame_modulus};
#endif

// Sets rotation to R of the polar decomposition F = R S, and d to F - R.
CQ_INLINE void corotated_strain(const MaterialPoint *at, Real rotation[CQ_DIM][CQ_DIM], Real d[CQ_DIM][CQ_DIM]) {
  polar(at->f, rotation);
  EACH(i) EACH(j) d[i][j] = at->f[i][j] - rotation[i][j];
}

// The energy density psi = mu |F - R|^2 + lambda/2 (J - 1)^2.
CQ_INLINE Real corotated_energy(const MaterialPoint *at) {
  Real rotation[CQ_DIM][CQ_DIM], d[CQ_DIM][CQ_DIM];
  corotated_strain(at, rotation, d);
  const Real e = mat_det(at->f) - (real)1;
  return at->c[LAME_MU] * mat_dot(d, d) + (real)0.5 * at->c[LAME_LAMBDA] * e * e;
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain, lambda (J - 1) J.
CQ_INLINE Real corotated_piola_zz(const MaterialPoint *at) {
  const Real jac = mat_det(at->f);
  return at->c[LAME_LAMBDA] * (jac - (real)1) * jac;
}
// Adjoint of corotated_piola_zz: adds grad_p's share to the gradients of lambda and F.
CQ_INLINE void corotated_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof);
  grad->c[LAME_LAMBDA] += grad_p * (jac - (real)1) * jac;
  EACH(i) EACH(j) grad->f[i][j] += grad_p * at->c[LAME_LAMBDA] * ((real)2 * jac - (real)1) * cof[i][j];
}
#endif

// Sets p to P = 2 mu (F - R) + lambda (J - 1) cof(F).
CQ_INLINE void corotated_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real rotation[CQ_DIM][CQ_DIM], d[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  corotated_strain(at, rotation, d);
  mat_cofactor(at->f, cof);
  const Real pressure = at->c[LAME_LAMBDA] * (mat_det_of(at->f, cof) - (real)1);
  EACH(i) EACH(j) p[i][j] = (real)2 * at->c[LAME_MU] * d[i][j] + pressure * cof[i][j];
}

// Sets dp to the change of P by a change df of F: dP = 2 mu (dF - dR) + lambda (<cof, dF> cof + (J - 1) dcof); dR is
// its own adjoint (E5).
CQ_INLINE void corotated_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                           Real dp[CQ_DIM][CQ_DIM]) {
  Real rotation[CQ_DIM][CQ_DIM], dr[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], dcof[CQ_DIM][CQ_DIM];
  polar(at->f, rotation);
  EACH(i) EACH(j) dr[i][j] = at->f[0][0] * (real)0;
  polar_adj(at->f, rotation, dr, df);
  mat_cofactor(at->f, cof);
  cofactor_derivative(at->f, df, dcof);
  const Real lambda = at->c[LAME_LAMBDA], e = mat_det_of(at->f, cof) - (real)1, de = mat_dot(cof, df);
  EACH(i) EACH(j)
    dp[i][j] = (real)2 * at->c[LAME_MU] * (df[i][j] - dr[i][j]) + lambda * (de * cof[i][j] + e * dcof[i][j]);
}

// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void corotated_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                        const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real rotation[CQ_DIM][CQ_DIM], d[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  corotated_strain(at, rotation, d);
  mat_cofactor(at->f, cof);
  grad->c[LAME_MU] += (real)2 * mat_dot(d, grad_p);
  grad->c[LAME_LAMBDA] += (mat_det_of(at->f, cof) - (real)1) * mat_dot(cof, grad_p);
}

// ---- fused: tau = 2 mu (F - R) F^T + pressure I, pressure = lambda (J - 1) J                                     (E8)

// Sets tau to 2 mu (F - R) F^T, and returns the factor lambda (J - 1) J of I, which the caller adds. kept: the
// rotation R; jac: det F.
CQ_INLINE Real corotated_kirchhoff(const MaterialPoint *at, const MaterialKept *kept, const Real jac,
                                   Real tau[CQ_DIM][CQ_DIM]) {
  Real d[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) d[i][j] = (real)2 * at->c[LAME_MU] * (at->f[i][j] - kept->rotation[i][j]);
  mat_mul_nt(d, at->f, tau);
  return at->c[LAME_LAMBDA] * (jac - (real)1) * jac;
}

// Adjoint of corotated_kirchhoff: adds to the gradients of F, mu and lambda; returns the factor of cof(F) that the
// caller adds to dL/dF. tau = D F^T + ..., D = 2 mu (F - R): dL/dD = G F, dL/dF += G^T D, then through D and the polar
// adjoint.
CQ_INLINE Real corotated_kirchhoff_adj(const MaterialPoint *at, const MaterialKept *kept, const Real jac,
                                       MaterialPoint *grad, const Real grad_tau[CQ_DIM][CQ_DIM]) {
  const Real trace = mat_trace(grad_tau), mu = at->c[LAME_MU];
  Real d[CQ_DIM][CQ_DIM], gd[CQ_DIM][CQ_DIM], gtd[CQ_DIM][CQ_DIM], gr[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) d[i][j] = at->f[i][j] - kept->rotation[i][j];
  mat_mul(grad_tau, at->f, gd);
  mat_mul_tn(grad_tau, d, gtd);
  EACH(i) EACH(j) {
    grad->f[i][j] += (real)2 * mu * (gtd[i][j] + gd[i][j]);
    gr[i][j] = -(real)2 * mu * gd[i][j];
  }
  polar_adj(at->f, kept->rotation, grad->f, gr);
  grad->c[LAME_MU] += (real)2 * mat_dot(d, gd);
  grad->c[LAME_LAMBDA] += trace * (jac - (real)1) * jac;
  return at->c[LAME_LAMBDA] * trace * ((real)2 * jac - (real)1);
}
