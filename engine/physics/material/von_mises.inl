// von Mises plasticity of finite strain with linear isotropic hardening, for metals and clay (Simo 1992; Simo and
// Hughes, Computational Inelasticity, 1998, box 9.1): Hencky elasticity (hencky.inl), and a flow that keeps the volume.
//   yield: y = sqrt(3/2) 2 mu |dev e| - (sigma_y + H alpha) <= 0; flow: alpha += y / (3 mu + H), |dev e| shrinks to y =
//   0   (E46)
// alpha is the equivalent plastic strain, the one internal variable. In 2D the deviator is that of the two strains in
// the plane: the body yields at sigma_1 - sigma_2 = 2 sigma_y / sqrt(3), as incompressible flow in plane strain does.

enum { VON_MISES_YIELD = LAME_COUNT, VON_MISES_HARDENING, VON_MISES_COUNT };

#if defined(CQ_LAW_TABLE)
static const cq_law von_mises_law = {.name = "von_mises",
                                     .slot_count = VON_MISES_COUNT,
                                     .internal_count = {1, 1},
                                     .slot = {LAME_SLOTS, CQ_FIELD_YIELD_STRESS, CQ_FIELD_HARDENING},
                                     .modulus = lame_modulus};
#endif

// (E45) The energy density of the elastic F, Hencky's.
CQ_INLINE Real von_mises_energy(const MaterialPoint *at) { return hencky_energy(at); }
// (E45) Sets p to P = dpsi/dF of the elastic F, by Hencky's law.
CQ_INLINE void von_mises_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) { hencky_stress(at, p); }
// Sets dp to the change of P by a change df of the elastic F.
CQ_INLINE void von_mises_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                           Real dp[CQ_DIM][CQ_DIM]) {
  hencky_stress_derivative(at, df, dp);
}
// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void von_mises_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                        const Real grad_p[CQ_DIM][CQ_DIM]) {
  hencky_grad_constants(at, grad, grad_p);
}

#define SQRT_1_5 ((real)1.2247448713915890491)

// (E46) Radial return of the deviator of the trial strains h to the yield surface. Sets flow, and returns the growth of
// the plastic strain alpha. Both count only where flow->over > 0; elsewhere the particle is elastic.
CQ_INLINE Real von_mises_flow(const MaterialPoint *at, const Hencky *h, Flow *flow) {
  const Real mu = at->c[LAME_MU], hardening = at->c[VON_MISES_HARDENING];
  flow->over = (real)2 * SQRT_1_5 * mu * h->size - (at->c[VON_MISES_YIELD] + hardening * at->internal[0]);
  const Real growth = flow->over / ((real)3 * mu + hardening);
  flow->scale = (real)1 - SQRT_1_5 * growth / r_pick(h->size, h->size, h->size + (real)1);
  flow->sum = h->sum;
  return growth;
}

// (E46) After a step: returns F to the yield surface and adds the plastic strain to alpha, the internal variable, in
// place.
CQ_INLINE void von_mises_update(MaterialPoint *at) {
  Hencky h;
  Flow flow;
  hencky_of(at->f, &h);
  const Real growth = von_mises_flow(at, &h, &flow);
  flow_update(at, &h, &flow);
  at->internal[0] = r_pick(flow.over, at->internal[0] + growth, at->internal[0]);
}

// Adjoint of von_mises_update; at: the particle before the update. grad->f and grad->internal: on entry gradients of
// the values after the update, on return of those before it. Adds to the gradients of constants.
CQ_INLINE void von_mises_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  Hencky h;
  Flow flow;
  FlowGrad g;
  hencky_of(at->f, &h);
  const Real mu = at->c[LAME_MU], hardening = at->c[VON_MISES_HARDENING], zero = mu * (real)0,
             grad_alpha = grad->internal[0];
  const Real growth = von_mises_flow(at, &h, &flow), size = r_pick(h.size, h.size, h.size + (real)1);
  flow_grad(&h, &flow, grad->f, &g);
  // scale = 1 - sqrt(3/2) growth / size, growth = over / (3 mu + H)
  const Real grad_growth = grad_alpha - SQRT_1_5 / size * g.scale;
  const Real grad_over = grad_growth / ((real)3 * mu + hardening), grad_stiffness = -(growth * grad_over);
  EACH(i) g.strain[i] += g.sum;
  flow_size_grad(&h, ((real)1 - flow.scale) / size * g.scale + (real)2 * SQRT_1_5 * mu * grad_over, &g);
  flow_update_adj(&h, &flow, &g, grad->f);
  grad->c[LAME_MU] += r_pick(flow.over, (real)3 * grad_stiffness + (real)2 * SQRT_1_5 * h.size * grad_over, zero);
  grad->c[VON_MISES_HARDENING] += r_pick(flow.over, grad_stiffness - at->internal[0] * grad_over, zero);
  grad->c[VON_MISES_YIELD] -= r_pick(flow.over, grad_over, zero);
  grad->internal[0] = r_pick(flow.over, grad_alpha - hardening * grad_over, grad_alpha);
}
