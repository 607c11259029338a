// Saint Venant-Kirchhoff: linear in the Green strain, so right for large rotations and small strains. In compression it
// softens, and below a stretch of 0.58 it gives way: no law for squeezed bodies.
//   E = (F^T F - I) / 2, psi = mu |E|^2 + lambda/2 tr(E)^2
//   P = F S, S = 2 mu E + lambda tr(E) I                                                                          (E30)

#if defined(CQ_LAW_TABLE)
static const cq_law saint_venant_kirchhoff_law = {
    .name = "saint_venant_kirchhoff", .slot_count = LAME_COUNT, .slot = {LAME_SLOTS}, .modulus = lame_modulus};
#endif

// Sets e to the Green strain (F^T F - I) / 2; returns its trace.
CQ_INLINE Real green_strain(const Real f[CQ_DIM][CQ_DIM], Real e[CQ_DIM][CQ_DIM]) {
  mat_mul_tn(f, f, e);
  EACH(i) EACH(j) e[i][j] = (real)0.5 * (e[i][j] - (real)(i == j));
  return mat_trace(e);
}

// (E30) The energy density psi = mu |E|^2 + lambda/2 tr(E)^2.
CQ_INLINE Real saint_venant_kirchhoff_energy(const MaterialPoint *at) {
  Real e[CQ_DIM][CQ_DIM];
  const Real trace = green_strain(at->f, e);
  return at->c[LAME_MU] * mat_dot(e, e) + (real)0.5 * at->c[LAME_LAMBDA] * trace * trace;
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain, lambda tr(E).
CQ_INLINE Real saint_venant_kirchhoff_piola_zz(const MaterialPoint *at) {
  Real e[CQ_DIM][CQ_DIM];
  return at->c[LAME_LAMBDA] * green_strain(at->f, e);
}
// Adjoint of saint_venant_kirchhoff_piola_zz: adds grad_p's share to the gradients of lambda and F.
CQ_INLINE void saint_venant_kirchhoff_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  Real e[CQ_DIM][CQ_DIM];
  grad->c[LAME_LAMBDA] += grad_p * green_strain(at->f, e);
  EACH(i) EACH(j) grad->f[i][j] += grad_p * at->c[LAME_LAMBDA] * at->f[i][j];
}
#endif

// (E30) Sets p to P = F S, S = 2 mu E + lambda tr(E) I.
CQ_INLINE void saint_venant_kirchhoff_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real s[CQ_DIM][CQ_DIM];
  const Real pressure = at->c[LAME_LAMBDA] * green_strain(at->f, s);
  EACH(i) EACH(j) s[i][j] = (real)2 * at->c[LAME_MU] * s[i][j];
  EACH(i) s[i][i] += pressure;
  mat_mul(at->f, s, p);
}

// Sets dp to the change of P by a change df of F: dP = dF S + F dS, dS = mu (F^T dF + dF^T F) + lambda <F, dF> I.
CQ_INLINE void saint_venant_kirchhoff_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                                        Real dp[CQ_DIM][CQ_DIM]) {
  Real s[CQ_DIM][CQ_DIM], ds[CQ_DIM][CQ_DIM], fdf[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  const Real mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA], trace = green_strain(at->f, s);
  mat_mul_tn(at->f, df, fdf);
  EACH(i) EACH(j) {
    s[i][j] = (real)2 * mu * s[i][j];
    ds[i][j] = mu * (fdf[i][j] + fdf[j][i]);
  }
  EACH(i) {
    s[i][i] += lambda * trace;
    ds[i][i] += lambda * mat_trace(fdf);
  }
  mat_mul(df, s, dp);
  mat_mul(at->f, ds, t);
  EACH(i) EACH(j) dp[i][j] += t[i][j];
}

// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void saint_venant_kirchhoff_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                                     const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real e[CQ_DIM][CQ_DIM], fe[CQ_DIM][CQ_DIM];
  const Real trace = green_strain(at->f, e);
  mat_mul(at->f, e, fe);
  grad->c[LAME_MU] += (real)2 * mat_dot(fe, grad_p);
  grad->c[LAME_LAMBDA] += trace * mat_dot(at->f, grad_p);
}
