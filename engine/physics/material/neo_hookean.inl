// neo-Hookean (advanced-chainqueen eq. 13); in 2D plane strain. Stiffens without bound as J -> 0.
//   psi = mu/2 (tr F^T F - dim) - mu log J + lambda/2 log^2 J
//   P = mu (F - F^-T) + lambda log J F^-T

#if defined(CQ_LAW_TABLE)
static const cq_law neo_hookean_law = {
    .name = "neo_hookean", .slot_count = LAME_COUNT, .slot = {LAME_SLOTS}, .modulus = lame_modulus};
#endif

// The energy density psi = mu/2 (tr F^T F - dim) - mu log J + lambda/2 log^2 J.
CQ_INLINE Real neo_hookean_energy(const MaterialPoint *at) {
  const Real log_jac = r_log(mat_det(at->f)), mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA];
  return (real)0.5 * mu * (mat_dot(at->f, at->f) - (real)CQ_DIM) - mu * log_jac +
         (real)0.5 * lambda * log_jac * log_jac;
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain, lambda log J.
CQ_INLINE Real neo_hookean_piola_zz(const MaterialPoint *at) { return at->c[LAME_LAMBDA] * r_log(mat_det(at->f)); }
// Adjoint of neo_hookean_piola_zz: adds grad_p's share to the gradients of lambda and F.
CQ_INLINE void neo_hookean_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof);
  grad->c[LAME_LAMBDA] += grad_p * r_log(jac);
  EACH(i) EACH(j) grad->f[i][j] += grad_p * at->c[LAME_LAMBDA] / jac * cof[i][j];
}
#endif

// Sets p to P = mu F + (lambda log J - mu) F^-T.
CQ_INLINE void neo_hookean_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), mu = at->c[LAME_MU];
  const Real pressure = (at->c[LAME_LAMBDA] * r_log(jac) - mu) * ((real)1 / jac);
  EACH(i) EACH(j) p[i][j] = mu * at->f[i][j] + pressure * cof[i][j];
}

// Sets dp to the change of P by a change df of F: dP = mu dF + (mu - lambda log J) F^-T dF^T F^-T + lambda <F^-T, dF>
// F^-T, written with cofactors: F^-T = cof / J.
CQ_INLINE void neo_hookean_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                             Real dp[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM], dcof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  cofactor_derivative(at->f, df, dcof);
  const Real jac = mat_det_of(at->f, cof), by = (real)1 / jac, mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA];
  const Real pressure = (lambda * r_log(jac) - mu) * by, slope = (lambda * by - pressure) * (by * mat_dot(cof, df));
  EACH(i) EACH(j) dp[i][j] = mu * df[i][j] + pressure * dcof[i][j] + slope * cof[i][j];
}

// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void neo_hookean_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                          const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), along = (real)1 / jac * mat_dot(cof, grad_p);
  grad->c[LAME_MU] += mat_dot(at->f, grad_p) - along;
  grad->c[LAME_LAMBDA] += r_log(jac) * along;
}

// ---- fused: tau = P F^T = mu F F^T + pressure I, pressure = lambda log J - mu                                    (E7)

// (E7) Sets tau to mu F F^T, and returns the factor lambda log J - mu of I, which the caller adds. kept: log J.
CQ_INLINE Real neo_hookean_kirchhoff(const MaterialPoint *at, const MaterialKept *kept, Real tau[CQ_DIM][CQ_DIM]) {
  const Real mu = at->c[LAME_MU];
  mat_mul_nt(at->f, at->f, tau);
  EACH(i) EACH(j) tau[i][j] = mu * tau[i][j];
  return at->c[LAME_LAMBDA] * kept->log_jac - mu;
}

// Adjoint of neo_hookean_kirchhoff, G = grad_tau: adds mu (G + G^T) F to dL/dF, and to the gradients of mu and lambda;
// returns the factor lambda tr(G) / J of cof(F) that the caller adds to dL/dF.
CQ_INLINE Real neo_hookean_kirchhoff_adj(const MaterialPoint *at, const MaterialKept *kept, const Real jac,
                                         MaterialPoint *grad, const Real grad_tau[CQ_DIM][CQ_DIM]) {
  const Real trace = mat_trace(grad_tau), mu = at->c[LAME_MU];
  Real sym[CQ_DIM][CQ_DIM], sf[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) sym[i][j] = grad_tau[i][j] + grad_tau[j][i];
  mat_mul(sym, at->f, sf);
  EACH(i) EACH(j) grad->f[i][j] += mu * sf[i][j];
  grad->c[LAME_MU] += (real)0.5 * mat_dot(sf, at->f) - trace;
  grad->c[LAME_LAMBDA] += trace * kept->log_jac;
  return at->c[LAME_LAMBDA] * trace / jac;
}
