// Yeoh (1993), three terms: filled rubber and silicone up to large stretches, from tensile tests alone.
//   psi = sum_k C_k0 (I1 - 3)^k + U(J), k = 1, 2, 3, I1 and U of invariants.inl                                   (E34)
// Shear modulus at rest 2 C10.

enum { YEOH_C10, YEOH_C20, YEOH_C30, YEOH_BULK, YEOH_COUNT };

#if defined(CQ_LAW_TABLE)
// cq_law.check: CQ_OK if c10 is positive, else CQ_INVALID and a sentence that names the particle (from 1).
static cq_status yeoh_check(const double *slot, int64_t particle) {
  if (slot[YEOH_C10] > 0) return CQ_OK;
  return cq_fail(CQ_INVALID, "c10 of particle %lld is %g; it is half the shear modulus at rest and must be positive",
                 (long long)particle, slot[YEOH_C10]);
}
// The P-wave modulus at rest [stress], K + 4/3 mu with mu = 2 C10, from slot, the law's constants.
static double yeoh_modulus(const cq_material *material, const double *slot) {
  (void)material;
  return slot[YEOH_BULK] + 8.0 / 3 * slot[YEOH_C10];
}
static const cq_law yeoh_law = {
    .name = "yeoh", .slot_count = YEOH_COUNT, .slot = {CQ_FIELD_C10, CQ_FIELD_C20, CQ_FIELD_C30, CQ_FIELD_BULK},
    .modulus = yeoh_modulus, .check = yeoh_check};
#endif

// (E34) The energy density psi = sum_k C_k0 (I1 - 3)^k + U(J).
CQ_INLINE Real yeoh_energy(const MaterialPoint *at) {
  Invariants of;
  invariants(at->f, 0, &of);
  const Real x = of.first - (real)3;
  return x * (at->c[YEOH_C10] + x * (at->c[YEOH_C20] + x * at->c[YEOH_C30])) + bulk_energy(at->c[YEOH_BULK], of.jac);
}

// The derivatives of psi by I1, I2 (0) and J, at the invariants `of`.
CQ_INLINE InvariantSlopes yeoh_slopes(const MaterialPoint *at, const Invariants *of) {
  const Real x = of->first - (real)3;
  const InvariantSlopes w = {at->c[YEOH_C10] + x * ((real)2 * at->c[YEOH_C20] + (real)3 * x * at->c[YEOH_C30]),
                             x * (real)0, bulk_slope(at->c[YEOH_BULK], of->jac)};
  return w;
}

// Sets p to P = dpsi/dF, from the derivatives of psi by I1 and J (invariants_stress).
CQ_INLINE void yeoh_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 0, &of);
  const InvariantSlopes w = yeoh_slopes(at, &of);
  invariants_stress(&of, 0, &w, p);
}

// Sets dp to the change of P by a change df of F: the curvature of the invariants, and the change of the derivatives by
// I1 and J.
CQ_INLINE void yeoh_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM], Real dp[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 0, &of);
  const InvariantSlopes w = yeoh_slopes(at, &of);
  invariants_stress_derivative(at->f, &of, 0, &w, df, dp);
  const Real x = of.first - (real)3;
  const Real first = ((real)2 * at->c[YEOH_C20] + (real)6 * x * at->c[YEOH_C30]) * mat_dot(of.grad_first, df);
  const Real volume = bulk_curve(at->c[YEOH_BULK], of.jac) * mat_dot(of.cof, df);
  EACH(i) EACH(j) dp[i][j] += first * of.grad_first[i][j] + volume * of.cof[i][j];
}

// Adds the derivatives of <P, grad_p> by C10, C20, C30 and K to grad->c.
CQ_INLINE void yeoh_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  invariants(at->f, 0, &of);
  const Real x = of.first - (real)3, along = mat_dot(of.grad_first, grad_p);
  grad->c[YEOH_C10] += along;
  grad->c[YEOH_C20] += (real)2 * x * along;
  grad->c[YEOH_C30] += (real)3 * x * x * along;
  grad->c[YEOH_BULK] += bulk_slope(x * (real)0 + (real)1, of.jac) * mat_dot(of.cof, grad_p);
}

#if CQ_DIM == 2
// (E56) P_zz of plane strain.
CQ_INLINE Real yeoh_piola_zz(const MaterialPoint *at) { return isochoric_piola_zz(at, YEOH_BULK); }
// Adjoint of yeoh_piola_zz: adds grad_p's share to the gradients of F and the constants.
CQ_INLINE void yeoh_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  isochoric_piola_zz_adj(at, grad, YEOH_BULK, grad_p);
}
#endif
