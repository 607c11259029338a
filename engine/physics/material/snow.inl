// snow (Stomakhin et al. 2013): fixed corotated elasticity whose moduli grow with compaction, and stretches that flow
// outside of [1 - theta_c, 1 + theta_s].
//   psi = h psi_corotated, h = exp(xi (1 - J_P));  after a step s_i <- min(max(s_i, 1 - theta_c), 1 + theta_s)    (E48)
// J_P = det F_P, the one internal variable, is the volume that was lost to flow: J_P <- J_P prod_i s_i / s_i'. It is 1
// at the start. In 2D the two stretches in the plane flow.

enum { SNOW_HARDENING = LAME_LAMBDA + 1, SNOW_COMPRESSION, SNOW_STRETCH, SNOW_COUNT };

#if defined(CQ_LAW_TABLE)
static const cq_law snow_law = {.name = "snow",
                                .slot_count = SNOW_COUNT,
                                .internal_count = {1, 1},
                                .internal_start = 1,
                                .slot = {CQ_SLOT_MU, CQ_SLOT_LAMBDA, CQ_FIELD_SNOW_HARDENING,
                                         CQ_FIELD_CRITICAL_COMPRESSION, CQ_FIELD_CRITICAL_STRETCH},
                                .modulus = lame_modulus};
#endif

// (E48) The factor h = exp(xi (1 - J_P)) by which compaction has hardened the moduli.
CQ_INLINE Real snow_stiffness(const MaterialPoint *at) {
  return r_exp(at->c[SNOW_HARDENING] * ((real)1 - at->internal[0]));
}

// (E48) The energy density h psi_corotated of the elastic F.
CQ_INLINE Real snow_energy(const MaterialPoint *at) { return snow_stiffness(at) * corotated_energy(at); }

// (E48) Sets p to P = dpsi/dF of the elastic F: h times P of fixed corotated material.
CQ_INLINE void snow_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  const Real h = snow_stiffness(at);
  corotated_stress(at, p);
  EACH(i) EACH(j) p[i][j] = h * p[i][j];
}

// Sets dp to the change of P by a change df of the elastic F.
CQ_INLINE void snow_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM], Real dp[CQ_DIM][CQ_DIM]) {
  const Real h = snow_stiffness(at);
  corotated_stress_derivative(at, df, dp);
  EACH(i) EACH(j) dp[i][j] = h * dp[i][j];
}

// Adds the derivatives of <P, grad_p> by mu, lambda, xi (grad->c) and J_P (grad->internal).
CQ_INLINE void snow_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  const Real h = snow_stiffness(at);
  Real p[CQ_DIM][CQ_DIM], scaled[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) scaled[i][j] = h * grad_p[i][j];
  corotated_grad_constants(at, grad, scaled);
  corotated_stress(at, p);
  const Real along = mat_dot(p, scaled);
  grad->c[SNOW_HARDENING] += ((real)1 - at->internal[0]) * along;
  grad->internal[0] -= at->c[SNOW_HARDENING] * along;
}

// (E55) Adds grad_psi times the derivatives of psi by mu, lambda, xi (grad->c) and J_P (grad->internal).
CQ_INLINE void snow_energy_grad(const MaterialPoint *at, MaterialPoint *grad, const Real grad_psi) {
  Real rotation[CQ_DIM][CQ_DIM], d[CQ_DIM][CQ_DIM];
  corotated_strain(at, rotation, d);
  const Real e = mat_det(at->f) - (real)1, scaled = grad_psi * snow_stiffness(at);
  const Real shear = scaled * mat_dot(d, d), volume = (real)0.5 * scaled * e * e;
  const Real along = at->c[LAME_MU] * shear + at->c[LAME_LAMBDA] * volume;
  grad->c[LAME_MU] += shear;
  grad->c[LAME_LAMBDA] += volume;
  grad->c[SNOW_HARDENING] += ((real)1 - at->internal[0]) * along;
  grad->internal[0] -= at->c[SNOW_HARDENING] * along;
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain, h times P_zz of fixed corotated material: in 2D only the stretches in the plane flow.
CQ_INLINE Real snow_piola_zz(const MaterialPoint *at) { return snow_stiffness(at) * corotated_piola_zz(at); }
// Adjoint of snow_piola_zz: adds grad_p's share to the gradients of F, constants and J_P.
CQ_INLINE void snow_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  const Real scaled = grad_p * snow_stiffness(at), along = scaled * corotated_piola_zz(at);
  corotated_piola_zz_adj(at, grad, scaled);
  grad->c[SNOW_HARDENING] += ((real)1 - at->internal[0]) * along;
  grad->internal[0] -= at->c[SNOW_HARDENING] * along;
}
#endif

// ---- after the step -------------------------------------------------------------------------------------------------

// stretches after the flow; below, above: over 0 where one is too small or too large
typedef struct {
  Singular of;
  Real stretch[CQ_DIM], below[CQ_DIM], above[CQ_DIM];
  Real flows;                   // above 0: one of them
} SnowFlow;

// (E48) Sets flow to the singular values of the elastic F, and to the stretches after the flow: the values clamped to
// [1 - theta_c, 1 + theta_s].
CQ_RARE void snow_flow(const MaterialPoint *at, SnowFlow *flow) {
  const Real low = (real)1 - at->c[SNOW_COMPRESSION], high = (real)1 + at->c[SNOW_STRETCH];
  singular(at->f, &flow->of);
  flow->flows = low * (real)0;
  EACH(i) {
    const Real s = flow->of.s[i];
    flow->below[i] = low - s;
    flow->above[i] = s - high;
    flow->stretch[i] = r_pick(flow->below[i], low, r_pick(flow->above[i], high, s));
    flow->flows = r_pick(flow->below[i], flow->below[i], r_pick(flow->above[i], flow->above[i], flow->flows));
  }
}

// (E48) After a step: clamps the stretches of F, and multiplies J_P, the internal variable, by the volume lost to flow,
// in place. Both stay as they are where nothing flows.
CQ_INLINE void snow_update(MaterialPoint *at) {
  SnowFlow flow;
  Real f[CQ_DIM][CQ_DIM], lost = at->internal[0];
  snow_flow(at, &flow);
  singular_join(&flow.of, flow.stretch, f);
  EACH(i) lost = lost * (flow.of.s[i] / flow.stretch[i]);
  EACH(i) EACH(j) at->f[i][j] = r_pick(flow.flows, f[i][j], at->f[i][j]);
  at->internal[0] = r_pick(flow.flows, lost, at->internal[0]);
}

// Adjoint of snow_update; at: the particle before the update. grad->f and grad->internal: on entry gradients of the
// values after the update, on return of those before it. Adds to the gradients of theta_c and theta_s.
CQ_INLINE void snow_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  SnowFlow flow;
  SingularSlopes slopes;
  Real t[CQ_DIM][CQ_DIM], m[CQ_DIM][CQ_DIM], pairs[CQ_DIM][CQ_DIM], own[CQ_DIM][CQ_DIM], wanted[CQ_DIM],
      lost = at->internal[0];
  snow_flow(at, &flow);
  const Real zero = lost * (real)0, grad_volume = grad->internal[0];
  EACH(i) lost = lost * (flow.of.s[i] / flow.stretch[i]);
  mat_mul_tn(flow.of.u, grad->f, t);
  mat_mul(t, flow.of.v, m);
  EACH(i) {
    // of the stretch after the flow: one that is held is a constant, another is s
    const Real after = m[i][i] - grad_volume * lost / flow.stretch[i];
    const Real low = r_pick(flow.below[i], after, zero),
               high = r_pick(flow.below[i], zero, r_pick(flow.above[i], after, zero));
    grad->c[SNOW_COMPRESSION] -= low;
    grad->c[SNOW_STRETCH] += high;
    wanted[i] = grad_volume * lost / flow.of.s[i] + (after - low - high);
    EACH(j) {
      // (s_i' - s_j') / (s_i - s_j): 1 of two that are free, 0 of two that are held by one
      // bound, also where they are equal
      const Real gap = flow.of.s[i] - flow.of.s[j], far = r_pick(gap, gap, -gap);
      const Real held = r_pick(flow.below[i], zero, r_pick(flow.above[i], zero, zero + (real)1));
      slopes.slope[i][j] = zero;
      slopes.apart[i][j] = r_pick(far, (flow.stretch[i] - flow.stretch[j]) / r_pick(far, gap, zero + (real)1), held);
      slopes.along[i][j] = (flow.stretch[i] + flow.stretch[j]) / (flow.of.s[i] + flow.of.s[j]);
    }
  }
  singular_derivative(&flow.of, &slopes, grad->f, pairs);
  singular_join(&flow.of, wanted, own);
  EACH(i) EACH(j) grad->f[i][j] = r_pick(flow.flows, pairs[i][j] + own[i][j], grad->f[i][j]);
  // J_P <- J_P prod s / s'
  grad->internal[0] = r_pick(flow.flows, grad_volume * (lost / at->internal[0]), grad_volume);
}
