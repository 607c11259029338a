// Ogden (1972), up to three terms, in the isochoric stretches l_i = J^(-1/3) s_i; a term that is not used has mu = 0.
//   psi = sum_k mu_k/alpha_k (l_1^alpha_k + l_2^alpha_k + l_3^alpha_k - 3) + U(J), U of invariants.inl            (E35)
// Shear modulus at rest sum_k mu_k alpha_k / 2. With e_i = log l_i, of sum 0, and E_ki = exp(alpha_k e_i) the principal
// Kirchhoff stresses are tau_i = sum_k mu_k (E_ki - (E_k1 + E_k2 + E_k3)/3) + J U', and P = U diag(tau_i / s_i) V^T.
// 2D is plane strain, s_3 = 1.

enum { OGDEN_MU, OGDEN_ALPHA = 3, OGDEN_BULK = 6, OGDEN_COUNT, OGDEN_TERMS = 3 };

#if defined(CQ_LAW_TABLE)
// The shear modulus at rest [stress], sum_k mu_k alpha_k / 2, from slot, the law's constants.
static double ogden_shear(const double *slot) {
  double sum = 0;
  for (int k = 0; k < OGDEN_TERMS; k++) sum += slot[OGDEN_MU + k] * slot[OGDEN_ALPHA + k];
  return sum / 2;
}
// cq_law.check: CQ_OK if the shear modulus at rest is positive, else CQ_INVALID and a sentence that names the particle
// (from 1). slot: the law's constants.
static cq_status ogden_check(const double *slot, int64_t particle) {
  if (ogden_shear(slot) > 0) return CQ_OK;
  return cq_fail(CQ_INVALID,
                 "mu_1 alpha_1 + mu_2 alpha_2 + mu_3 alpha_3 of particle %lld is %g; it is twice the shear modulus at "
                 "rest and must be positive",
                 (long long)particle, 2 * ogden_shear(slot));
}
// The P-wave modulus at rest [stress], K + 4/3 mu, from slot, the law's constants.
static double ogden_modulus(const cq_material *material, const double *slot) {
  (void)material;
  return slot[OGDEN_BULK] + 4.0 / 3 * ogden_shear(slot);
}
static const cq_law ogden_law = {.name = "ogden",
                                 .slot_count = OGDEN_COUNT,
                                 .slot = {CQ_FIELD_MU_1, CQ_FIELD_MU_2, CQ_FIELD_MU_3, CQ_FIELD_ALPHA_1,
                                          CQ_FIELD_ALPHA_2, CQ_FIELD_ALPHA_3, CQ_FIELD_BULK},
                                 .modulus = ogden_modulus,
                                 .check = ogden_check};
#endif

typedef struct {
  Singular of;
  Real log_s[CQ_DIM], e[3], jac, power[OGDEN_TERMS][3], mean[OGDEN_TERMS];   // power E_ki, mean (E_k1 + E_k2 + E_k3)/3
  Real tau[CQ_DIM];
} OgdenStretches;

// Sets q to the singular values of F, the isochoric stretches and their powers, and the principal Kirchhoff stresses
// tau_i (E35).
CQ_INLINE void ogden_stretches(const MaterialPoint *at, OgdenStretches *q) {
  singular(at->f, &q->of);
  EACH(i) q->log_s[i] = r_log(q->of.s[i]);
  Real log_jac = q->log_s[0];
  CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) log_jac += q->log_s[i];
  q->jac = r_exp(log_jac);
  CQ_UNROLL for (int i = 0; i < 3; i++) {
    q->e[i] = (real)(-1.0 / 3) * log_jac;
    if (i < CQ_DIM) q->e[i] += q->log_s[i];
  }
  EACH(i) q->tau[i] = (real)0.5 * at->c[OGDEN_BULK] * (q->jac * q->jac - (real)1);
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) {
    CQ_UNROLL for (int i = 0; i < 3; i++) q->power[k][i] = r_exp(at->c[OGDEN_ALPHA + k] * q->e[i]);
    q->mean[k] = (real)(1.0 / 3) * (q->power[k][0] + q->power[k][1] + q->power[k][2]);
    EACH(i) q->tau[i] += at->c[OGDEN_MU + k] * (q->power[k][i] - q->mean[k]);
  }
}

// (E35) The energy density psi. Of a term mu/alpha (l^alpha - 1) = mu e (exp(alpha e) - 1) / (alpha e), which has a
// limit at alpha = 0.
CQ_INLINE Real ogden_energy(const MaterialPoint *at) {
  OgdenStretches q;
  ogden_stretches(at, &q);
  Real psi = bulk_energy(at->c[OGDEN_BULK], q.jac);
  const Real zero = q.jac * (real)0;
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) CQ_UNROLL for (int i = 0; i < 3; i++)
    psi += at->c[OGDEN_MU + k] * q.e[i] * exp_apart(at->c[OGDEN_ALPHA + k] * q.e[i], zero);
  return psi;
}

// (E35) Sets p to P = U diag(tau_i / s_i) V^T.
CQ_INLINE void ogden_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  OgdenStretches q;
  Real g[CQ_DIM];
  ogden_stretches(at, &q);
  EACH(i) g[i] = q.tau[i] / q.of.s[i];
  singular_join(&q.of, g, p);
}

// The derivative of the principal Kirchhoff stress tau_i by log s_j: sum_k mu_k alpha_k (E_ki delta_ij - (E_ki +
// E_kj)/3 + mean_k/3) + K J^2.
CQ_INLINE Real ogden_tau_slope(const MaterialPoint *at, const OgdenStretches *q, const int i, const int j) {
  Real slope = at->c[OGDEN_BULK] * q->jac * q->jac;
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) {
    Real own = (real)(1.0 / 3) * (q->mean[k] - q->power[k][i] - q->power[k][j]);
    if (i == j) own += q->power[k][i];
    slope += at->c[OGDEN_MU + k] * at->c[OGDEN_ALPHA + k] * own;
  }
  return slope;
}

// The divided difference (tau_i - tau_j) / (s_i - s_j) of principal stresses, or its limit where the stretches are
// equal.
CQ_INLINE Real ogden_tau_apart(const MaterialPoint *at, const OgdenStretches *q, const int i, const int j) {
  Real sum = q->jac * (real)0;
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) {
    const Real alpha = at->c[OGDEN_ALPHA + k];
    sum += at->c[OGDEN_MU + k] * alpha * exp_apart(alpha * q->e[i], alpha * q->e[j]);
  }
  return sum / exp_apart(q->log_s[i], q->log_s[j]);
}

// (E23) Sets dp to the change of P by a change df of F: the derivative of U diag(g) V^T with g_i = tau_i / s_i.
CQ_INLINE void ogden_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                       Real dp[CQ_DIM][CQ_DIM]) {
  OgdenStretches q;
  SingularSlopes slopes;
  ogden_stretches(at, &q);
  const Real *s = q.of.s, *tau = q.tau;
  EACH(i) EACH(j) {
    const Real product = s[i] * s[j], sum = s[i] + s[j];
    slopes.slope[i][j] = ogden_tau_slope(at, &q, i, j) / product;
    if (i == j) slopes.slope[i][i] -= tau[i] / product;
    if (i >= j) continue;
    slopes.apart[i][j] = (real)0.5 * (sum * ogden_tau_apart(at, &q, i, j) - (tau[i] + tau[j])) / product;
    slopes.along[i][j] = (tau[i] / s[i] + tau[j] / s[j]) / sum;
  }
  singular_derivative(&q.of, &slopes, df, dp);
}

// Adds the derivatives of <P, grad_p> by mu_k, alpha_k and K to grad->c.
CQ_INLINE void ogden_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  OgdenStretches q;
  Real ug[CQ_DIM][CQ_DIM], m[CQ_DIM][CQ_DIM];
  ogden_stretches(at, &q);
  mat_mul_tn(q.of.u, grad_p, ug);
  mat_mul(ug, q.of.v, m);
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) {
    const Real slope_mean =
        (real)(1.0 / 3) * (q.e[0] * q.power[k][0] + q.e[1] * q.power[k][1] + q.e[2] * q.power[k][2]);
    EACH(i) {
      const Real along = m[i][i] / q.of.s[i];
      grad->c[OGDEN_MU + k] += (q.power[k][i] - q.mean[k]) * along;
      grad->c[OGDEN_ALPHA + k] += at->c[OGDEN_MU + k] * (q.e[i] * q.power[k][i] - slope_mean) * along;
    }
  }
  EACH(i) grad->c[OGDEN_BULK] += (real)0.5 * (q.jac * q.jac - (real)1) * m[i][i] / q.of.s[i];
}

// (E55) Adds grad_psi times the derivatives of psi by the constants to grad->c: dpsi/dmu_k = sum_i e_i
// exp_apart(alpha_k e_i, 0), dpsi/dalpha_k = mu_k sum_i e_i^2 exp_moment(alpha_k e_i).
CQ_INLINE void ogden_energy_grad(const MaterialPoint *at, MaterialPoint *grad, const Real grad_psi) {
  OgdenStretches q;
  ogden_stretches(at, &q);
  const Real zero = q.jac * (real)0;
  CQ_UNROLL for (int k = 0; k < OGDEN_TERMS; k++) CQ_UNROLL for (int i = 0; i < 3; i++) {
    const Real z = at->c[OGDEN_ALPHA + k] * q.e[i], along = grad_psi * q.e[i];
    grad->c[OGDEN_MU + k] += along * exp_apart(z, zero);
    grad->c[OGDEN_ALPHA + k] += along * at->c[OGDEN_MU + k] * q.e[i] * exp_moment(z);
  }
  grad->c[OGDEN_BULK] += grad_psi * bulk_energy(zero + (real)1, q.jac);
}

#if CQ_DIM == 2
// (E56) P_zz of plane strain.
CQ_INLINE Real ogden_piola_zz(const MaterialPoint *at) { return isochoric_piola_zz(at, OGDEN_BULK); }
// Adjoint of ogden_piola_zz: adds grad_p's share to the gradients of F and the constants.
CQ_INLINE void ogden_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  isochoric_piola_zz_adj(at, grad, OGDEN_BULK, grad_p);
}
#endif
