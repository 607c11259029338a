// Mooney-Rivlin (Mooney 1940, Rivlin 1948): rubber up to stretches of about 2.
//   psi = C10 (I1 - 3) + C01 (I2 - 3) + U(J), invariants and U of invariants.inl                                  (E33)
// Shear modulus at rest 2 (C10 + C01).

enum { MOONEY_C10, MOONEY_C01, MOONEY_BULK, MOONEY_COUNT };

#if defined(CQ_LAW_TABLE)
// cq_law.check: CQ_OK if c10 + c01 is positive, else CQ_INVALID and a sentence that names the particle (from 1).
static cq_status mooney_rivlin_check(const double *slot, int64_t particle) {
  if (slot[MOONEY_C10] + slot[MOONEY_C01] > 0) return CQ_OK;
  return cq_fail(
      CQ_INVALID,
      "c10 + c01 of particle %lld is %g + %g; the sum is half the shear modulus at rest and must be positive",
      (long long)particle, slot[MOONEY_C10], slot[MOONEY_C01]);
}
// The P-wave modulus at rest [stress], K + 4/3 mu with mu = 2 (C10 + C01), from slot, the law's constants.
static double mooney_rivlin_modulus(const cq_material *material, const double *slot) {
  (void)material;
  return slot[MOONEY_BULK] + 8.0 / 3 * (slot[MOONEY_C10] + slot[MOONEY_C01]);
}
static const cq_law mooney_rivlin_law = {
    .name = "mooney_rivlin", .slot_count = MOONEY_COUNT, .slot = {CQ_FIELD_C10, CQ_FIELD_C01, CQ_FIELD_BULK},
    .modulus = mooney_rivlin_modulus, .check = mooney_rivlin_check};
#endif

// (E33) The energy density psi = C10 (I1 - 3) + C01 (I2 - 3) + U(J).
CQ_INLINE Real mooney_rivlin_energy(const MaterialPoint *at) {
  Invariants of;
  invariants(at->f, 1, &of);
  return at->c[MOONEY_C10] * (of.first - (real)3) + at->c[MOONEY_C01] * (of.second - (real)3) +
         bulk_energy(at->c[MOONEY_BULK], of.jac);
}

// The derivatives of psi by I1, I2 and J, at the invariants `of`.
CQ_INLINE InvariantSlopes mooney_rivlin_slopes(const MaterialPoint *at, const Invariants *of) {
  const InvariantSlopes w = {at->c[MOONEY_C10], at->c[MOONEY_C01], bulk_slope(at->c[MOONEY_BULK], of->jac)};
  return w;
}

// Sets p to P = dpsi/dF, from the derivatives of psi by I1, I2 and J (invariants_stress).
CQ_INLINE void mooney_rivlin_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 1, &of);
  const InvariantSlopes w = mooney_rivlin_slopes(at, &of);
  invariants_stress(&of, 1, &w, p);
}

// Sets dp to the change of P by a change df of F: the curvature of the invariants, and the change of U', since W_1 and
// W_2 are constant.
CQ_INLINE void mooney_rivlin_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                               Real dp[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 1, &of);
  const InvariantSlopes w = mooney_rivlin_slopes(at, &of);
  invariants_stress_derivative(at->f, &of, 1, &w, df, dp);
  const Real volume = bulk_curve(at->c[MOONEY_BULK], of.jac) * mat_dot(of.cof, df);
  EACH(i) EACH(j) dp[i][j] += volume * of.cof[i][j];
}

// Adds the derivatives of <P, grad_p> by C10, C01 and K to grad->c.
CQ_INLINE void mooney_rivlin_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                            const Real grad_p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 1, &of);
  grad->c[MOONEY_C10] += mat_dot(of.grad_first, grad_p);
  grad->c[MOONEY_C01] += mat_dot(of.grad_second, grad_p);
  grad->c[MOONEY_BULK] += bulk_slope(of.jac * (real)0 + (real)1, of.jac) * mat_dot(of.cof, grad_p);
}

#if CQ_DIM == 2
// (E56) P_zz of plane strain.
CQ_INLINE Real mooney_rivlin_piola_zz(const MaterialPoint *at) { return isochoric_piola_zz(at, MOONEY_BULK); }
// Adjoint of mooney_rivlin_piola_zz: adds grad_p's share to the gradients of F and the constants.
CQ_INLINE void mooney_rivlin_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  isochoric_piola_zz_adj(at, grad, MOONEY_BULK, grad_p);
}
#endif
