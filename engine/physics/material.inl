// material: Kirchhoff stress tau = P(F) F^T of each hyperelastic law, and its adjoint. To add a law: one case in each of
// the functions below, one value of cq_material_kind, one row in tests/c/physics_dual.inl.

// (J - 1)^(power - 1) for power 2, 4, 6, 8
CQ_INLINE Real material_odd_power(const Real e, const int power) {
  Real out = e;
  for (int i = 2; i < power; i += 2) out = out * (e * e);
  return out;
}

// What stress and its adjoint both need and is not cheap: log J of neo-Hookean, the rotation of fixed corotated material.
typedef struct {
  Real log_jac, rotation[CQ_DIM][CQ_DIM];
} MaterialKept;

CQ_INLINE void material_keep(const int kind, const Real f[CQ_DIM][CQ_DIM], const Real jac, MaterialKept *kept) {
  kept->log_jac = jac;
  EACH(i) EACH(j) kept->rotation[i][j] = f[i][j];
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) kept->log_jac = r_log(jac);
  if (kind == CQ_MATERIAL_COROTATED) polar(f, kept->rotation);
}

// tau = P F^T; returns J = det F for the health check. kept is filled.
//   (E7) neo-Hookean     tau = mu (F F^T - I) + lambda log(J) I
//   (E8) fixed corotated tau = 2 mu (F - R) F^T + lambda (J - 1) J I
//   (E9) linear          tau = (mu (F + F^T - 2 I) + lambda tr(F - I) I) F^T
//   (E10) near-incompressibility of power p adds bulk p (J - 1)^(p-1) J I
CQ_INLINE Real material_stress_keep(const int kind, const int power, const Real f[CQ_DIM][CQ_DIM], const Real mu,
                                    const Real lambda, const Real bulk, MaterialKept *kept, Real tau[CQ_DIM][CQ_DIM]) {
  const Real jac = mat_det(f);
  material_keep(kind, f, jac, kept);
  Real pressure = mu * (real)0;
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) {
    mat_mul_nt(f, f, tau);
    EACH(i) EACH(j) tau[i][j] = mu * tau[i][j];
    pressure = lambda * kept->log_jac - mu;
  } else if (kind == CQ_MATERIAL_COROTATED) {
    Real d[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) d[i][j] = (real)2 * mu * (f[i][j] - kept->rotation[i][j]);
    mat_mul_nt(d, f, tau);
    pressure = lambda * (jac - (real)1) * jac;
  } else {
    Real p[CQ_DIM][CQ_DIM];
    const Real volumetric = lambda * (mat_trace(f) - (real)CQ_DIM) - (real)2 * mu;
    EACH(i) EACH(j) p[i][j] = mu * (f[i][j] + f[j][i]);
    EACH(i) p[i][i] += volumetric;
    mat_mul_nt(p, f, tau);
  }
  if (power) pressure += (real)power * bulk * material_odd_power(jac - (real)1, power) * jac;
  EACH(i) tau[i][i] += pressure;
  return jac;
}

// grad_tau need not be symmetric.
CQ_INLINE void material_stress_keep_adj(const int kind, const int power, const Real f[CQ_DIM][CQ_DIM], const Real mu,
                                        const Real lambda, const Real bulk, const MaterialKept *kept, Real grad_f[CQ_DIM][CQ_DIM],
                                        Real *grad_mu, Real *grad_lambda, Real *grad_bulk,
                                        const Real grad_tau[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(f, cof);
  const Real jac = mat_det_of(f, cof), trace = mat_trace(grad_tau);
  Real grad_jac = mu * (real)0;
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) {
    // tau = mu (F F^T - I) + lambda log(J) I: dL/dF += mu (G + G^T) F + lambda tr(G) / J cof(F)
    Real sym[CQ_DIM][CQ_DIM], sf[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) sym[i][j] = grad_tau[i][j] + grad_tau[j][i];
    mat_mul(sym, f, sf);
    EACH(i) EACH(j) grad_f[i][j] += mu * sf[i][j];
    *grad_mu += (real)0.5 * mat_dot(sf, f) - trace;
    *grad_lambda += trace * kept->log_jac;
    grad_jac = lambda * trace / jac;
  } else if (kind == CQ_MATERIAL_COROTATED) {
    // tau = D F^T + ..., D = 2 mu (F - R): dL/dD = G F, dL/dF += G^T D, then through D and the polar adjoint
    Real d[CQ_DIM][CQ_DIM], gd[CQ_DIM][CQ_DIM], gtd[CQ_DIM][CQ_DIM], gr[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) d[i][j] = f[i][j] - kept->rotation[i][j];
    mat_mul(grad_tau, f, gd);
    mat_mul_tn(grad_tau, d, gtd);
    EACH(i) EACH(j) {
      grad_f[i][j] += (real)2 * mu * (gtd[i][j] + gd[i][j]);
      gr[i][j] = -(real)2 * mu * gd[i][j];
    }
    polar_adj(f, kept->rotation, grad_f, gr);
    *grad_mu += (real)2 * mat_dot(d, gd);
    *grad_lambda += trace * (jac - (real)1) * jac;
    grad_jac = lambda * trace * ((real)2 * jac - (real)1);
  } else {
    // tau = P F^T: dL/dP = G F, dL/dF += G^T P, then through P
    Real p[CQ_DIM][CQ_DIM], strain[CQ_DIM][CQ_DIM], gp[CQ_DIM][CQ_DIM], gtp[CQ_DIM][CQ_DIM];
    const Real stretch = mat_trace(f) - (real)CQ_DIM;
    EACH(i) EACH(j) strain[i][j] = f[i][j] + f[j][i];
    EACH(i) strain[i][i] -= (real)2;
    EACH(i) EACH(j) p[i][j] = mu * strain[i][j];
    EACH(i) p[i][i] += lambda * stretch;
    mat_mul(grad_tau, f, gp);
    mat_mul_tn(grad_tau, p, gtp);
    const Real gp_trace = mat_trace(gp);
    EACH(i) EACH(j) grad_f[i][j] += gtp[i][j] + mu * (gp[i][j] + gp[j][i]);
    EACH(i) grad_f[i][i] += lambda * gp_trace;
    *grad_mu += mat_dot(strain, gp);
    *grad_lambda += stretch * gp_trace;
  }
  if (power) {
    // d/dJ [(J-1)^(p-1) J] = (J-1)^(p-2) (p J - 1); the even power is an odd one divided by e, written without division
    const Real e = jac - (real)1;
    Real even = mu * (real)0 + (real)1;
    for (int i = 2; i < power; i += 2) even = even * (e * e);
    *grad_bulk += (real)power * trace * even * e * jac;
    grad_jac += (real)power * bulk * trace * even * ((real)power * jac - (real)1);
  }
  EACH(i) EACH(j) grad_f[i][j] += grad_jac * cof[i][j];
}

// with nothing kept
CQ_INLINE Real material_stress(const int kind, const int power, const Real f[CQ_DIM][CQ_DIM], const Real mu,
                               const Real lambda, const Real bulk, Real tau[CQ_DIM][CQ_DIM]) {
  MaterialKept kept;
  return material_stress_keep(kind, power, f, mu, lambda, bulk, &kept, tau);
}

CQ_INLINE void material_stress_adj(const int kind, const int power, const Real f[CQ_DIM][CQ_DIM], const Real mu,
                                   const Real lambda, const Real bulk, Real grad_f[CQ_DIM][CQ_DIM], Real *grad_mu,
                                   Real *grad_lambda, Real *grad_bulk, const Real grad_tau[CQ_DIM][CQ_DIM]) {
  MaterialKept kept;
  material_keep(kind, f, mat_det(f), &kept);
  material_stress_keep_adj(kind, power, f, mu, lambda, bulk, &kept, grad_f, grad_mu, grad_lambda, grad_bulk, grad_tau);
}
